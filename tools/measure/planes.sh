#!/usr/bin/env bash
# 38 and 39 on a GPU of compute capability 9.0: their tests, their times beside 15 and cuDNN (fp32 and fp16) in one run, what
# the tuner finds, and compute-sanitizer. In a checkout's root, with build/bin/convladder, convladder-gpu and stage-tests-gpu.
# OUT is a folder. 5 minutes; with BUDGET=900 all steps come to their end; steps that time does not suffice for are left out, and log.txt says so.
#   log.txt           what ran, its exit status and seconds
#   tests.txt         stage-tests-gpu of the two stages, and of 15, whose source is written by another header now
#   planes.json       bench: 15, 38, 39 and cuDNN's best (fp32; fp16 in both layouts) on layers of networks, six of them
#   planes-more.json  the others
#   sanitizer.txt     memcheck, racecheck and synccheck on small shapes
#   tuned.json        the best plans of 38 and strips of 39 on some layers, each search's log as an object
#   registers.txt     run of each stage on two layers: its configuration, registers and spills
set -u
OUT=${OUT:?}
BUDGET=${BUDGET:-290}
BEGAN=$(date +%s)
LAB=build/bin/convladder
left() { echo $((BUDGET - $(date +%s) + BEGAN)); }
step() {  # step NAME SECONDS COMMAND...: within what is left of the budget
  local name=$1 most=$2 rest begin status
  shift 2
  rest=$(left)
  if ((rest < 5)); then
    echo "$name: left out, no time" >>"$OUT/log.txt"
    return 1
  fi
  begin=$(date +%s)
  timeout $((most < rest ? most : rest)) "$@"
  status=$?
  echo "$name: exit $status after $(($(date +%s) - begin)) s" >>"$OUT/log.txt"
  return $status
}

layer() {  # n c side taps stride
  echo "n=$1,c=$2,k=$2,groups=$2,h=$3,w=$3,r=$4,s=$4,pad_h=$(($4 / 2)),pad_w=$(($4 / 2)),stride_h=$5,stride_w=$5"
}
LAYERS=("$(layer 32 768 7 7 1)" "$(layer 32 384 14 7 1)" "$(layer 64 240 14 5 1)" "$(layer 32 240 28 5 1)"
  "$(layer 32 96 56 7 1)" "$(layer 32 144 56 3 1)" "$(layer 32 144 56 3 2)" "$(layer 64 96 112 3 2)"
  "$(layer 8 128 56 31 1)" "n=3,c=4,k=4,groups=4,h=16,w=32,r=7,s=7,pad_h=3,pad_w=3"
  "n=3,c=5,k=5,groups=5,h=61,w=67,r=5,s=5,pad_h=2,pad_w=2")

nvidia-smi -L >"$OUT/log.txt" 2>&1
bench() {  # SECONDS FILE LAYERS...
  local most=$1 file=$2 l shapes=()
  shift 2
  for l in "$@"; do shapes+=(--shape "$l"); done
  step "bench $file" "$most" "$LAB" bench --stage 15,38,39 "${shapes[@]}" --backend gpu --json "$OUT/$file" >>"$OUT/log.txt" 2>&1
}

bench 120 planes.json "${LAYERS[@]:0:6}"
# NVRTC compiles a kernel for each of some 150 problems, a third of a second each: both at the same time.
step "tests of 38" 100 build/bin/stage-tests-gpu --test-case='38*' >"$OUT/tests.txt" 2>&1 &
step "tests of 39" 100 build/bin/stage-tests-gpu --test-case='39*' >"$OUT/tests-39.txt" 2>&1 &
wait
cat "$OUT/tests-39.txt" >>"$OUT/tests.txt" && rm "$OUT/tests-39.txt"

for s in 38 39; do
  for l in "${LAYERS[0]}" "${LAYERS[4]}"; do
    step "run $s $l" 15 "$LAB" run $s --backend gpu --shape "$l" >>"$OUT/registers.txt" 2>&1
  done
done

# Groups that begin anywhere, the last one short; two buffers; strips across; odd channels.
SMALL=("c=3,k=3,groups=3,n=5,h=7,w=9,r=3,s=5" "c=5,k=5,groups=5,n=3,h=14,w=14,r=5,s=5" "c=6,k=6,groups=6,h=19,w=36,r=7,s=7")
if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck synccheck; do
    for l in "${SMALL[@]}"; do
      step "$tool 38 $l" 20 compute-sanitizer --tool $tool --error-exitcode 9 "$LAB" run 38 --backend gpu --shape "$l" \
        --configuration planes=1,rows=2,columns=4,groups=4,buffers=2 >>"$OUT/sanitizer.txt" 2>&1
      step "$tool 39 $l" 20 compute-sanitizer --tool $tool --error-exitcode 9 "$LAB" run 39 --backend gpu --shape "$l" \
        >>"$OUT/sanitizer.txt" 2>&1
    done
  done
fi

bench 90 planes-more.json "${LAYERS[@]:6}"

logs=()
for s in 38 39; do
  for i in 1 0 2 4 3 6; do
    log=$(mktemp)
    step "tune $s ${LAYERS[$i]}" 30 "$LAB" tune $s --backend gpu --shape "${LAYERS[$i]}" --search annealing --trials 30 --json \
      >"$log" 2>>"$OUT/log.txt" && logs+=("$log")
  done
done
((${#logs[@]})) && { printf '[\n'; for i in "${!logs[@]}"; do ((i)) && printf ',\n'; cat "${logs[$i]}"; done; printf ']\n'; } >"$OUT/tuned.json"
step "tests of 15" 60 build/bin/stage-tests-gpu --test-case='15*' >>"$OUT/tests.txt" 2>&1
cat "$OUT/log.txt"
