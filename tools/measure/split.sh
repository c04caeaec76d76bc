#!/usr/bin/env bash
# 36 on a GPU: its tests, one layer ten times with F(2,3) and tiles of 104 positions, whose ring of filters is the
# narrowest, and the layers of many channels with and without F(2,3) beside cuDNN. In a checkout's root, with
# build/bin/convladder, convladder-gpu and stage-tests-gpu. OUT is a folder. About two minutes.
#   tests.txt   stage-tests-gpu of 36
#   runs.jsonl  what run 36 printed, a line each: time, error, and whether the result is right
#   bench.json  bench: 36 and cuDNN's best
set -u
OUT=${OUT:?}
timeout 120 build/bin/stage-tests-gpu -tc='36*' >"$OUT/tests.txt" 2>&1
echo "tests: exit $?" | tee -a "$OUT/tests.txt"
wrong=0
run() { # SHAPE CONFIGURATION
  timeout 30 build/bin/convladder run 36 --backend gpu --json --shape "$1" --configuration "$2" | tr -d '\n' \
    >"$OUT/run.json" || wrong=$((wrong + 1))
  { printf '{"shape": "%s", "setting": "%s", "result": ' "$1" "$2"; cat "$OUT/run.json"; echo '}'; } >>"$OUT/runs.jsonl"
}
for _ in 1 2 3 4 5 6 7 8 9 10; do
  run n=32,c=256,k=256,h=56,w=56,r=3,s=3 transform=f23,positions=104
done
for layer in c=128,k=128,h=28,w=28 c=256,k=256,h=14,w=14 c=512,k=512,h=7,w=7; do
  for batch in 32 128; do
    for transform in none f23; do run "n=$batch,$layer,r=3,s=3" "transform=$transform"; done
  done
done
rm -f "$OUT/run.json"
echo "runs that were wrong or failed: $wrong"
timeout 150 build/bin/convladder bench --backend gpu --track hopper --stage 36 --workload image --workload conv2 \
  --workload conv3 --workload conv4 --workload conv5 --workload VGG --json "$OUT/bench.json"
