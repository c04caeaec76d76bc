#!/bin/bash
# Stages 40 to 42, and 33 in bands, on two GPUs of one host. In a checkout's root; builds bin/several by itself (NCCL from torch's wheel or
# the system). Writes into $OUT: several.json, several-exchange.json, padding.txt, log.txt. About 4 minutes, without what the build takes.
set -u
OUT=${OUT:-/tmp/out}; mkdir -p "$OUT"
exec > >(tee "$OUT/log.txt") 2>&1
# The wheel's folder, if python3's torch has brought it.
NCCL_ROOT=${NCCL_ROOT:-$(python3 -c "import importlib.util as u; print(next(iter(u.find_spec('nvidia.nccl').submodule_search_locations)))" 2>/dev/null)}
export NCCL_ROOT
cmake -S . -B build -DCMAKE_CUDA_ARCHITECTURES=90 ${NCCL_ROOT:+-DNCCL_ROOT=$NCCL_ROOT} > "$OUT/cmake.txt" 2>&1 || tail "$OUT/cmake.txt"
grep -i nccl "$OUT/cmake.txt"
timeout 400 cmake --build build --target several -j "$(nproc)" > "$OUT/build.txt" 2>&1 || { tail -20 "$OUT/build.txt"; exit 1; }
export LD_LIBRARY_PATH="${NCCL_ROOT:+$NCCL_ROOT/lib:}${LD_LIBRARY_PATH:-}"
GPUS=$(nvidia-smi -L | wc -l); nvidia-smi -L; nvidia-smi topo -m
# Starts a process for each GPU: torchrun if it is there, else plain shells with its variables.
start() {
  local n=$1; shift
  rm -f "$OUT/id"
  if command -v torchrun > /dev/null; then
    timeout 240 torchrun --standalone --no-python --nproc-per-node "$n" build/bin/several --id-file "$OUT/id" "$@"
  else
    local pids=() rc=0
    for ((r = 0; r < n; ++r)); do
      RANK=$r LOCAL_RANK=$r WORLD_SIZE=$n timeout 240 build/bin/several --id-file "$OUT/id" "$@" & pids+=($!)
    done
    for p in "${pids[@]}"; do wait "$p" || rc=$?; done
    return $rc
  fi
}
echo "== one GPU: refused or alone"
build/bin/several --id-file "$OUT/id1" --stage 41 --shape h=67,w=128,r=3,s=3 --samples 3; echo "exit $?"
echo "== bits, all paddings, thin bands"
for padding in zero replicate reflect; do
  start "$GPUS" --padding $padding --samples 3 --shape n=5,h=67,w=128,r=3,s=3 --shape n=2,h=13,w=40,r=11,s=5 \
    --shape h=40,w=33,r=31,s=5 --shape h=12,w=11,r=3,s=3,pad_h=9,pad_w=2 --shape n=2,c=40,k=24,h=17,w=30,r=3,s=3 > "$OUT/padding-$padding.txt" 2>&1
  echo "$padding: exit $?"
done
cat "$OUT"/padding-*.txt > "$OUT/padding.txt"; rm -f "$OUT"/padding-*.txt
echo "== times"
start "$GPUS" --json "$OUT/several.json"; echo "exit $?"
rm -f "$OUT/id" "$OUT/id1"
