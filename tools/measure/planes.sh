#!/usr/bin/env bash
# 38 and 39 on a GPU of compute capability 9.0: their times beside 15 and cuDNN (fp32 and fp16) in one run, their tests, and
# what the tuner finds. In a checkout's root, with build/bin/convladder, convladder-gpu and stage-tests-gpu.
# OUT is a folder. 200 seconds, most valuable first; steps that time does not suffice for are left out, and log.txt says so.
#   log.txt           what ran, its exit status and seconds
#   planes.json       bench: 15, 38, 39 and cuDNN's best (fp32; fp16 in both layouts) on the workloads of the track depthwise:
#                     a file for docs/results
#   tests.txt         stage-tests-gpu of the two stages
#   plans.json        run of 38 and 39 with plans side by side, as an array: each default first
#   tuned.json        the best plans on some layers, each search's log as an object: 39 first
#   planes-more.json  bench on layers that are no workloads
set -u
. tools/measure/empty-out.sh
BUDGET=${BUDGET:-195}
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
  timeout -s INT $((most < rest ? most : rest)) "$@"
  status=$?
  echo "$name: exit $status after $(($(date +%s) - begin)) s" >>"$OUT/log.txt"
  return $status
}

layer() {  # n c side taps stride
  echo "n=$1,c=$2,k=$2,groups=$2,h=$3,w=$3,r=$4,s=$4,pad_h=$(($4 / 2)),pad_w=$(($4 / 2)),stride_h=$5,stride_w=$5"
}
LAYERS=("$(layer 32 96 56 7 1)" "$(layer 32 144 56 3 1)" "$(layer 64 96 112 3 2)" "$(layer 32 240 28 5 1)"
  "$(layer 32 384 14 7 1)" "$(layer 32 144 56 3 2)" "$(layer 32 768 7 7 1)" "$(layer 64 240 14 5 1)" "$(layer 8 128 56 31 1)")

nvidia-smi -L >"$OUT/log.txt" 2>&1
array() {  # FILE JSON...: objects as an array
  local file=$1 i
  shift
  { printf '[\n'; for ((i = 1; i <= $#; ++i)); do ((i > 1)) && printf ',\n'; cat "${!i}"; done; printf ']\n'; } >"$file"
}

step "bench planes.json" 90 "$LAB" bench --stage 15,38,39 --track depthwise --workload all --backend gpu \
  --json "$OUT/planes.json" >>"$OUT/log.txt" 2>&1
# NVRTC compiles a kernel for each of some 150 problems, a third of a second each: both at the same time.
step "tests of 38" 60 build/bin/stage-tests-gpu --test-case='38*' >"$OUT/tests.txt" 2>&1 &
step "tests of 39" 60 build/bin/stage-tests-gpu --test-case='39*' >"$OUT/tests-39.txt" 2>&1 &
wait
cat "$OUT/tests-39.txt" >>"$OUT/tests.txt" && rm "$OUT/tests-39.txt"

runs=()
plan() {  # STAGE LAYER CONFIGURATION
  local file
  file=$(mktemp)
  step "run $1 $2 $3" 15 "$LAB" run "$1" --backend gpu --shape "$2" ${3:+--configuration "$3"} --json >"$file" \
    2>>"$OUT/log.txt" && runs+=("$file")
}
plan 39 "${LAYERS[2]}" ""
plan 39 "${LAYERS[2]}" rows=2,columns=7,staged=16,ahead=0
plan 39 "${LAYERS[2]}" rows=4,columns=7,staged=0,ahead=0
plan 39 "${LAYERS[0]}" ""
plan 39 "${LAYERS[0]}" rows=2,columns=7,staged=16,ahead=0
plan 39 "${LAYERS[0]}" rows=4,columns=7,staged=0,ahead=0
plan 39 "${LAYERS[8]}" ""
plan 38 "${LAYERS[4]}" ""
plan 38 "${LAYERS[4]}" planes=4,rows=1,columns=16,groups=2
plan 38 "${LAYERS[6]}" ""
plan 38 "${LAYERS[6]}" planes=8,rows=2,columns=8
plan 38 "${LAYERS[8]}" ""
plan 38 "${LAYERS[8]}" planes=4,rows=2,columns=28
((${#runs[@]})) && array "$OUT/plans.json" "${runs[@]}"

logs=()
tune() {  # STAGE LAYER SECONDS KNOBS
  local log
  log=$(mktemp)
  step "tune $1 $2 $4" "$3" "$LAB" tune "$1" --backend gpu --shape "$2" --search annealing --trials 30 \
    ${4:+--configuration "$4"} --json >"$log" 2>>"$OUT/log.txt"
  [[ -s $log ]] && logs+=("$log")  # also of a search that was ended: its log has what was tried so far
  ((${#logs[@]})) && array "$OUT/tuned.json" "${logs[@]}"
}
for i in 0 1 2 3 4 5; do tune 39 "${LAYERS[$i]}" 20 ""; done

bench=()
for i in 2 7 8; do bench+=(--shape "${LAYERS[$i]}"); done
step "bench planes-more.json" 40 "$LAB" bench --stage 15,38,39 "${bench[@]}" --backend gpu --json "$OUT/planes-more.json" \
  >>"$OUT/log.txt" 2>&1
for i in 6 4 1; do tune 38 "${LAYERS[$i]}" 15 ""; done
cat "$OUT/log.txt"
