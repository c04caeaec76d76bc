#!/usr/bin/env bash
# 08 and 09 on a GPU in the forms that their settings choose, on the images of their goals, beside copies of the same images.
# `tools/measure/images.sh build` compiles what it runs to build/bin/measure-images; this needs nvcc and no GPU. Then, in a
# checkout's root, OUT=FOLDER tools/measure/images.sh, which builds nothing. Less than 60 seconds (SECONDS_MEASURED of them).
#   images.json  each setting: hot and cold medians in µs, the copy's, the error; when the segments of 08 begin and end
#   images.txt   the same as a table
#   stages.txt   a few settings as the stages run them, with other paddings and widths; left out where build/bin has no stages
#   clocks.txt   the GPU's clocks and power meanwhile
set -u
if [ "${1:-}" = build ]; then
  mkdir -p build/bin
  exec "${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}" -std=c++17 -O3 -arch=sm_90 -I. --extended-lambda \
    --expt-relaxed-constexpr -o build/bin/measure-images tools/measure/images.cu
fi
OUT=${OUT:?}
if command -v nvidia-smi >/dev/null; then
  nvidia-smi --query-gpu=name,clocks.sm,clocks.mem,power.draw --format=csv -lms 250 >"$OUT/clocks.txt" 2>&1 &
  clocks=$!
fi
timeout 45 build/bin/measure-images "${SECONDS_MEASURED:-15}" >"$OUT/images.json" 2>"$OUT/images.txt"
status=$?
[ -n "${clocks:-}" ] && kill "$clocks"
cat "$OUT/images.txt"
echo "status $status"
run() {  # PROGRAM SHAPE PADDING SETTINGS
  [ -x "build/bin/$1" ] || return
  echo "$*" >>"$OUT/stages.txt"
  timeout 8 "build/bin/$1" --backend gpu --shape "$2" --padding "$3" --configuration "$4" >>"$OUT/stages.txt" 2>&1 ||
    echo "failed: $*" | tee -a "$OUT/stages.txt"
}
if [ "$SECONDS" -lt 45 ]; then
  run 08-separable-gpu h=517,w=390,r=31,s=31 replicate fused=yes,stacked=yes
  run 08-separable-gpu n=2,h=431,w=257,r=17,s=17 reflect fused=yes,stacked=yes,stores=streaming
  run 09-register-2d-gpu h=517,w=388,r=5,s=5 reflect warps=8,stores=streaming
  grep -h verified "$OUT/stages.txt" 2>/dev/null
fi
exit "$status"
