#!/usr/bin/env bash
# The table for the comparison of tune's searches: every configuration of a part of stage 15's space, on three shapes, and
# then random, annealing and model on it (ten seeds each, best after 20, 40, 60 trials; no search knows the default). In a
# checkout's root, with build/bin/convladder and convladder-gpu. OUT is a folder; BUDGET seconds, 280 by default. A trial
# takes about a fifth of a second, nearly all of it to compile. Three shapes at the same time where there are three GPUs.
#   table-N.json    tune's log of shape N: every configuration with its time, in random order
#   replay-N.json   the comparison on it
#   cache-1.json    the first log in the format of Kernel Tuner's caches
#   reports.txt     what tune and the comparisons print
# The knobs that are set leave 258, 262 and about 660 configurations: whole parts of the space, so that annealing finds
# neighbours, and small enough to be measured whole. Where time ends before, the table is a random part of them.
set -u
. tools/measure/empty-out.sh
budget=${BUDGET:-280}
gpus=$(nvidia-smi -L | wc -l)
shapes=("n=3,c=4,k=4,groups=4,h=16,w=32,r=7,s=7" "n=32,c=384,k=384,groups=384,h=14,w=14,r=7,s=7"
        "n=32,c=96,k=96,groups=96,h=56,w=56,r=7,s=7")
knobs=("filter=shared,unroll=rows,input=shared,order=input-rows" "filter=shared,unroll=rows,input=shared,order=input-rows"
       "filter=shared,unroll=rows,input=shared,block_planes=1")
SECONDS=0
measure() { # NUMBER GPU
  local folder name=$(($1 + 1)) limit=$((budget - 10 - SECONDS)); folder=$(mktemp -d)
  [ "$limit" -lt 20 ] && { echo "shape $name: no time left" >"$OUT/report-$name.txt"; return; }
  CUDA_VISIBLE_DEVICES=$2 CONVLADDER_TUNED=$folder timeout -s INT "$limit" build/bin/convladder tune 15 --backend gpu \
    --shape "${shapes[$1]}" --search random --trials 0 --configuration "${knobs[$1]}" --seed 1 \
    --kernel-tuner "$folder/cache.json" >"$OUT/report-$name.txt" 2>&1
  cp "$folder"/*/15-*.json "$OUT/table-$name.json" || return
  [ "$1" = 0 ] && cp "$folder/cache.json" "$OUT/cache-1.json"
  build/bin/convladder tune --replay "$OUT/table-$name.json" --json >"$OUT/replay-$name.json" 2>>"$OUT/report-$name.txt"
  build/bin/convladder tune --replay "$OUT/table-$name.json" >>"$OUT/report-$name.txt" 2>&1
}
for number in 0 1 2; do
  if [ "$gpus" -ge 3 ]; then measure "$number" "$number" & else measure "$number" 0; fi
done
wait
cat "$OUT"/report-*.txt >"$OUT/reports.txt"; rm -f "$OUT"/report-*.txt
tail -60 "$OUT/reports.txt"
