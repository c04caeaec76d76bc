#!/bin/bash
# Stages 40 to 43, layers by 33 and 36 in bands, chains of layers, and cuDNN on joined bands, on 2 and on 4 GPUs of one
# host. In a checkout's root; builds bin/several by itself, and takes the one in build/bin if it cannot. What has never
# been measured comes first, cuDNN last. OUT is a folder:
#   several-2.json, several-4.json                       times, for docs/results
#   several-2-exchange.json, several-4-exchange.json     exchanges alone
#   several-2-parts.json, several-4-parts.json           parts of 41 to 43: launches that are changed
#   padding.txt   whether all paddings and thin bands have the bits of one GPU
#   log.txt       everything else; what was left out, and why
# They are written anew after each step. CUDA_VISIBLE_DEVICES chooses the GPUs. All ends after $BUDGET seconds, the build
# included; a step that hangs is ended after $LIMIT seconds, and the others still run.
set -u
OUT=${OUT:-/tmp/multi-out}
BUDGET=${BUDGET:-400} LIMIT=${LIMIT:-90}
. tools/measure/empty-out.sh
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
  timeout $((BUDGET / 2)) cmake --build build --target several -j "$(nproc)" >>"$work/build.txt" 2>&1
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

# start SECONDS COUNT ARGUMENT...: a process for each GPU. Where one fails, the others are ended.
start() {
  local limit=$1 n=$2 rc=0 pids=() r ended
  shift 2
  rm -f "$work/id"
  for ((r = 0; r < n; ++r)); do
    RANK=$r LOCAL_RANK=$r WORLD_SIZE=$n OMP_NUM_THREADS=$(($(nproc) / n + 1)) timeout -k 2 "$limit" build/bin/several \
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

# step COUNT NAME ARGUMENT...: as start, with a line about how it ended. The last seconds are for what is written.
step() {
  local n=$1 name=$2 begin=$SECONDS rc left=$((BUDGET - SECONDS - 4))
  shift 2
  if [ $left -lt 8 ]; then echo "== $n GPUs, $name: left out, $SECONDS s have gone"; return 1; fi
  start $((left < LIMIT ? left : LIMIT)) "$n" "$@"
  rc=$?
  echo "== $n GPUs, $name: status $rc, $((SECONDS - begin)) s"
  return $rc
}

# Joins what the steps have written so far. A step that was ended has left the rows that it had.
cat >"$work/join.py" <<'PY'
import json, pathlib, sys

out, work, counts = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
for count in counts:
    for ending in "", "-exchange", "-parts":
        parts = [path for path in sorted(work.glob(f"{count}-*.json"))
                 if path.stem.endswith(ending or tuple("0123456789"))]
        tables = [json.loads(path.read_text()) for path in parts]
        if not tables:
            continue
        # Exchanges are the same in all steps: those of one that has all. A row that two steps have is of the first.
        merged = max(tables, key=lambda table: len(table["rows"])) if ending == "-exchange" else tables[0]
        if ending != "-exchange":
            rows = {}
            for row in (row for table in tables for row in table["rows"]):
                rows.setdefault(row["name"], row)
            merged["rows"] = list(rows.values())
        (out / f"several-{count}{ending}.json").write_text(json.dumps(merged, indent=1, ensure_ascii=False) + "\n")
PY
join() { python3 "$work/join.py" "$OUT" "$work" "${counts[@]}"; }

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

# on COUNT NAME ARGUMENT...: a step whose times are kept.
files=0
on() {
  local n=$1 name=$2
  shift 2
  files=$((files + 1))
  step "$n" "$name" --json "$work/$n-$(printf %03d $files).json" "$@"
  join
}
# times NAME ARGUMENT...: with each number of GPUs.
times() {
  local name=$1 n
  shift
  for n in "${counts[@]}"; do on "$n" "$name" "$@"; done
}
sizes() { for size in "$@"; do echo "--shape $layer,$size"; done; }

# shellcheck disable=SC2046,SC2086
never_measured() {
  times "parts" --parts $pictures $(images h=4000,w=6000) $(images h=2000,w=6000)
  # As high a band on two GPUs as on four with 6000 x 4000, with one neighbour instead of two.
  times "6000 x 2000" $pictures $(images h=2000,w=6000)
  # Weak scaling, and the share of one GPU.
  for n in "${counts[@]}"; do
    on "$n" "weak, pictures" $pictures $(images h=$((2160 * n)),w=3840)
    on "$n" "weak, layers" $(sizes h=$((960 * n)),w=960)
  done
  times "pictures of 3840 x 2160" $pictures $(images h=2160,w=3840)
  times "layers of 960 x 960" $(sizes h=960,w=960)
  times "batch" --stage 40 $pictures --shape n=8,h=2160,w=3840,r=3,s=3 --shape n=8,h=2160,w=3840,r=11,s=11
  times "small pictures" $pictures $(images h=1080,w=1920) $(images h=960,w=960) $(images h=480,w=640)
  times "small layers" --stage 33 $(sizes h=320,w=320 h=448,w=448 h=640,w=640 h=224,w=224)
  times "large layer, fp32" --stage 36 $(sizes h=4096,w=4096)
}
# shellcheck disable=SC2046,SC2086
measured_before() {
  times "large pictures" $pictures $(images h=4000,w=6000)
  times "layers" $(sizes h=1080,w=1920)
  times "small chains" --chain 4 $(images h=960,w=960) $(images h=2160,w=3840) $(sizes h=448,w=448)
  times "chains" --chain 4 $(images h=4000,w=6000) $(sizes h=960,w=960 h=1080,w=1920 h=224,w=224)
  times "large layer, fp16" --stage 33 $(sizes h=4096,w=4096)
}
# Each by itself and last, since choosing among all that cuDNN offers takes long.
# shellcheck disable=SC2046
beside_cudnn() {
  times "cuDNN, fp16" --cudnn --stage 33 $(sizes h=960,w=960)
  times "cuDNN, fp32" --cudnn --stage 36 $(sizes h=960,w=960)
  times "cuDNN, fp16" --cudnn --stage 33 $(sizes h=1080,w=1920)
  times "cuDNN, fp32" --cudnn --stage 36 $(sizes h=1080,w=1920)
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
never_measured
all_bits >"$work/bits.txt" 2>&1
grep "^==" "$work/bits.txt"
cat "$work/bits.txt" >>"$OUT/padding.txt"
measured_before
# Which way messages go.
if [ ${#counts[@]} -gt 0 ]; then
  NCCL_DEBUG=INFO NCCL_DEBUG_FILE="$work/nccl.%p" step "${counts[0]}" "NCCL's ways" --stage 41 --samples 3 \
    --shape h=1080,w=1920,r=3,s=3
  cat "$work"/nccl.* 2>/dev/null | grep -o "via .*" | sort | uniq -c | head -8
fi
beside_cudnn
rm -r "$work"
grep -c '"values"' "$OUT"/several-*.json
echo "$SECONDS s in all"
