#!/bin/bash
# Stages 40 to 43, layers by 33 and 36 in bands, chains of layers, and cuDNN on joined bands, on 2 and on 4 GPUs of one
# host. In a checkout's root; builds bin/several by itself, and takes the one in build/bin if it cannot. Weak scaling
# and small sizes come first, cuDNN last. About 8 minutes on 4 GPUs. OUT is a folder:
#   several-2.json, several-2-exchange.json, several-4.json, several-4-exchange.json   times, for docs/results
#   padding.txt   whether all paddings and thin bands have the bits of one GPU
#   log.txt       everything else; what was left out, and why
# CUDA_VISIBLE_DEVICES chooses the GPUs. A step that hangs is ended after $LIMIT seconds, the others still run. None
# begins after $BUDGET seconds.
set -u
OUT=${OUT:-/tmp/multi-out}
BUDGET=${BUDGET:-400} LIMIT=${LIMIT:-90}
mkdir -p "$OUT"
work=$(mktemp -d)
exec > >(tee "$OUT/log.txt") 2>&1
SECONDS=0
export NCCL_NVLS_ENABLE=0 NCCL_DEBUG=${NCCL_DEBUG:-WARN}
PATH=$PATH:/usr/local/cuda/bin

# NCCL: named, of python3's wheel, or of the system.
: "${NCCL_ROOT:=$(python3 -c "import importlib.util as u; print(next(iter(u.find_spec('nvidia.nccl').submodule_search_locations)))" 2>/dev/null)}"
export NCCL_ROOT
export LD_LIBRARY_PATH=${NCCL_ROOT:+$NCCL_ROOT/lib:}${LD_LIBRARY_PATH:-}
build() {
  local generator=()
  if command -v ninja >/dev/null && [ ! -f build/CMakeCache.txt ]; then generator=(-G Ninja); fi
  timeout 60 cmake -S . -B build "${generator[@]}" -DCMAKE_CUDA_ARCHITECTURES=90 \
    ${NCCL_ROOT:+"-DNCCL_ROOT=$NCCL_ROOT"} >"$work/build.txt" 2>&1 || return 1
  grep -iE "nccl|cudnn" "$work/build.txt"
  timeout 300 cmake --build build --target several -j "$(nproc)" >>"$work/build.txt" 2>&1
}
if build; then
  echo "built in $SECONDS s"
else
  echo "the build failed after $SECONDS s; its last lines:"
  tail -20 "$work/build.txt"
  [ -x build/bin/several ] || { echo "and there is no build/bin/several: nothing was run"; exit 1; }
  echo "what build/bin/several holds is used instead: $(stat -c %y build/bin/several)"
fi
ldd build/bin/several | grep -i nccl

if [ -n "${CUDA_VISIBLE_DEVICES:-}" ]; then
  gpus=$(tr ',' '\n' <<<"$CUDA_VISIBLE_DEVICES" | wc -l)
else
  gpus=$(nvidia-smi -L | wc -l)
fi
nvidia-smi --query-gpu=name,driver_version,clocks.sm --format=csv,noheader
nvidia-smi topo -m
echo "$gpus GPUs"
counts=()
for n in 4 2; do [ "$gpus" -ge $n ] && counts+=("$n"); done

# start COUNT ARGUMENT...: a process for each GPU. Where one fails, the others are ended.
start() {
  local n=$1 rc=0 pids=() r ended
  shift
  rm -f "$work/id"
  for ((r = 0; r < n; ++r)); do
    RANK=$r LOCAL_RANK=$r WORLD_SIZE=$n OMP_NUM_THREADS=$(($(nproc) / n + 1)) timeout -k 2 "$LIMIT" build/bin/several \
      --id-file "$work/id" "$@" &
    pids+=($!)
  done
  for ((r = 0; r < n; ++r)); do
    wait -n
    ended=$?
    if [ $ended -ne 0 ] && [ $rc -eq 0 ]; then rc=$ended && kill "${pids[@]}" 2>/dev/null; fi
  done
  return $rc
}

# step COUNT NAME ARGUMENT...: as start, with a line about how it ended.
step() {
  local n=$1 name=$2 begin=$SECONDS rc
  shift 2
  if [ "$SECONDS" -ge "$BUDGET" ]; then echo "== $n GPUs, $name: left out, $SECONDS s have gone"; return 1; fi
  start "$n" "$@"
  rc=$?
  echo "== $n GPUs, $name: status $rc, $((SECONDS - begin)) s"
  return $rc
}

# images PREFIX: a picture with 3 x 3, 11 x 11 and 31 x 31 taps.
images() { for side in 3 11 31; do echo "--shape $1,r=$side,s=$side"; done; }

echo "== one process, one GPU"
RANK=0 LOCAL_RANK=0 WORLD_SIZE=1 timeout "$LIMIT" build/bin/several --id-file "$work/id" --stage 41 \
  --shape h=67,w=128,r=3,s=3 --samples 3
echo "status $?"

# bits GPUS PADDING STAGES
bits() {
  # shellcheck disable=SC2086
  step "$1" "bits, $2, $3" $3 --padding "$2" --samples 3 --shape n=5,h=67,w=128,r=3,s=3 \
    --shape n=2,h=13,w=40,r=11,s=5 --shape h=40,w=33,r=31,s=5 --shape h=5,w=9,r=3,s=3 --shape h=3,w=9,r=3,s=3 \
    --shape n=4,h=12,w=11,r=3,s=3,pad_h=9,pad_w=2 --shape n=2,h=500,w=128,r=3,s=3 --shape n=2,h=900,w=90,r=11,s=5
}
# 43 reads other processes' memory, which a host may refuse: it is tried first, and left out where it fails.
pictures="--stage 41 --stage 42 --stage 43"
layer=c=64,k=64,r=3,s=3
for n in "${counts[@]}"; do
  bits "$n" zero "--stage 43" || pictures="--stage 41 --stage 42"
done >"$OUT/padding.txt" 2>&1
grep "^==" "$OUT/padding.txt"

# times NAME ARGUMENT...: with each number of GPUs; NAME is the part's file.
times() {
  local name=$1 n
  shift
  for n in "${counts[@]}"; do step "$n" "$name" --json "$work/$n-$name.json" "$@"; done
}
sizes() { for size in "$@"; do echo "--shape $layer,$size"; done; }
# shellcheck disable=SC2046,SC2086
weak_and_small() {
  for n in "${counts[@]}"; do
    step "$n" "weak, pictures" $pictures --json "$work/$n-01-weak.json" $(images h=$((2160 * n)),w=3840)
    step "$n" "weak, layers" --json "$work/$n-02-weak.json" $(sizes h=$((960 * n)),w=960)
  done
  times 03-2160 $pictures $(images h=2160,w=3840)
  times 04-1080 $pictures $(images h=1080,w=1920)
  times 05-960 $pictures $(images h=960,w=960)
  times 06-480 $pictures $(images h=480,w=640)
  times 07-small-layers --stage 33 $(sizes h=224,w=224 h=320,w=320 h=448,w=448 h=640,w=640)
  times 08-batch --stage 40 $pictures --shape n=8,h=2160,w=3840,r=3,s=3 --shape n=8,h=2160,w=3840,r=11,s=11
  times 09-layers $(sizes h=960,w=960)
  times 10-small-chains --chain 4 $(images h=960,w=960) $(images h=2160,w=3840) $(sizes h=448,w=448)
  times 11-large-layer-fp32 --stage 36 $(sizes h=4096,w=4096)
}
# shellcheck disable=SC2046,SC2086
large() {
  times 12-layers $(sizes h=1080,w=1920)
  times 13-large $pictures $(images h=4000,w=6000)
  times 14-chains --chain 4 $(images h=4000,w=6000) $(sizes h=960,w=960 h=1080,w=1920 h=224,w=224)
  times 15-large-layer-fp16 --stage 33 $(sizes h=4096,w=4096)
}
# Each by itself and last, since choosing among all that cuDNN offers takes long.
# shellcheck disable=SC2046
beside_cudnn() {
  times 16-cudnn-fp16 --cudnn --stage 33 $(sizes h=960,w=960)
  times 17-cudnn-fp32 --cudnn --stage 36 $(sizes h=960,w=960)
  times 18-cudnn-fp16 --cudnn --stage 33 $(sizes h=1080,w=1920)
  times 19-cudnn-fp32 --cudnn --stage 36 $(sizes h=1080,w=1920)
}
all_bits() {
  for n in "${counts[@]}"; do
    for padding in zero replicate reflect; do bits "$n" "$padding" "--stage 40 $pictures"; done
    step "$n" "bits of layers" --samples 3 --shape n=2,c=40,k=24,h=17,w=30,r=3,s=3 --shape c=64,k=64,h=6,w=30,r=3,s=3 \
      --shape n=2,c=64,k=64,h=57,w=56,r=3,s=3 --shape c=64,k=64,h=3,w=20,r=3,s=3
    step "$n" "bits of chains" --chain 4 --samples 3 --shape c=64,k=64,h=57,w=56,r=3,s=3 \
      --shape c=16,k=16,h=9,w=20,r=3,s=3 --shape h=61,w=40,r=5,s=5 --shape h=101,w=37,r=11,s=3
    step "$n" "bits of chains of 3" --chain 3 --samples 3 --shape c=64,k=64,h=58,w=56,r=3,s=3 --shape h=5,w=40,r=3,s=3
  done
}
weak_and_small
all_bits >"$work/bits.txt" 2>&1
grep "^==" "$work/bits.txt"
cat "$work/bits.txt" >>"$OUT/padding.txt"
# Which way messages go.
if [ ${#counts[@]} -gt 0 ]; then
  NCCL_DEBUG=INFO NCCL_DEBUG_FILE="$work/nccl.%p" step "${counts[0]}" "NCCL's ways" --stage 41 --samples 3 \
    --shape h=1080,w=1920,r=3,s=3
  cat "$work"/nccl.* 2>/dev/null | grep -o "via .*" | sort | uniq -c | head -8
fi
large
beside_cudnn

python3 - "$OUT" "$work" "${counts[@]}" <<'PY'
import json, pathlib, sys
out, work, counts = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
for count in counts:
    for ending in "", "-exchange":
        parts = [path for path in sorted(work.glob(f"{count}-*.json")) if path.stem.endswith("-exchange") == bool(ending)]
        tables = [json.loads(path.read_text()) for path in parts]
        if not tables:
            print(f"nothing for several-{count}{ending}.json")
            continue
        merged = tables[0]
        if not ending:  # exchanges are the same in all parts; a row that two parts have is of the first
            rows = {row["name"]: row for table in reversed(tables) for row in reversed(table["rows"])}
            merged["rows"] = list(reversed(rows.values()))
        (out / f"several-{count}{ending}.json").write_text(json.dumps(merged, indent=1, ensure_ascii=False) + "\n")
        print(f"several-{count}{ending}.json: {len(merged['rows'])} rows")
PY
rm -r "$work"
echo "$SECONDS s in all"
