#!/usr/bin/env bash
# 39 on a GPU: threads that walk down columns beside the other plans, layer by layer, with 15 and 38. In a checkout's root, with
# build/bin/convladder and convladder-gpu. OUT is a folder: columns.json has every run's JSON, an array; columns.txt a line
# for each: stage, layer, configuration, hot median and cold median in µs. About 60 runs, most valuable first; what does not
# fit in BUDGET seconds is left out.
set -u
. tools/measure/empty-out.sh
BUDGET=${BUDGET:-150}
BEGAN=$(date +%s)
LAB=build/bin/convladder
runs=()

layer() {  # n c side taps stride
  echo "n=$1,c=$2,k=$2,groups=$2,h=$3,w=$3,r=$4,s=$4,pad_h=$(($4 / 2)),pad_w=$(($4 / 2)),stride_h=$5,stride_w=$5"
}
run() {  # STAGE LAYER CONFIGURATION
  (($(date +%s) - BEGAN < BUDGET)) || return
  local file
  file=$(mktemp)
  if timeout 20 "$LAB" run "$1" --backend gpu --shape "$2" ${3:+--configuration "$3"} --json >"$file" 2>>"$OUT/errors.txt"; then
    runs+=("$file")
    python3 - "$file" "$1" "$2" "$3" >>"$OUT/columns.txt" <<'PY'
import json, sys
run = json.load(open(sys.argv[1]))
row = run["rows"][0] if "rows" in run else run
median = lambda name: (row.get(name) or {}).get("median")
print(*sys.argv[2:4], sys.argv[4] or "default", median("time_us"), median("time_cold_us"), row.get("verified"), sep="\t")
PY
  else
    printf '%s\t%s\t%s\tfailed\n' "$1" "$2" "$3" >>"$OUT/columns.txt"
  fi
}
planes() {  # LAYER
  run 15 "$1" ""
  run 38 "$1" ""
}
pairs() {  # LAYER: strips of 39
  run 39 "$1" ""
  local rows columns
  for columns in $2; do
    for rows in $3; do run 39 "$1" "rows=$rows,columns=$columns,staged=0,ahead=1"; done
  done
}

SMALL="n=3,c=5,k=5,groups=5,h=61,w=67,r=5,s=5,pad_h=2,pad_w=2"
planes "$(layer 32 96 56 7 1)"
pairs "$(layer 32 240 28 5 1)" "4 7" "8 16 32"
pairs "$(layer 32 144 56 3 2)" "4 7" "8 16"
planes "$(layer 32 240 28 5 1)"
pairs "$(layer 32 144 56 3 1)" "4 8" "16 32"
pairs "$SMALL" "1 2 4" "1 2 4"
for strip in rows=1,columns=1 rows=1,columns=2 rows=2,columns=2 rows=1,columns=4; do run 39 "$SMALL" "$strip,staged=0"; done
planes "$(layer 64 240 14 5 1)"
pairs "$(layer 32 96 56 7 1)" "4" "16 32"
run 39 "$(layer 32 96 56 7 1)" "rows=4,columns=7,staged=0"
planes "$(layer 32 144 56 3 1)"
planes "$(layer 32 144 56 3 2)"
pairs "$(layer 64 240 14 5 1)" "4 7" "8 16"
planes "$(layer 32 384 14 7 1)"
{
  printf '[\n'
  for ((i = 0; i < ${#runs[@]}; ++i)); do ((i > 0)) && printf ',\n'; cat "${runs[i]}"; done
  printf ']\n'
} >"$OUT/columns.json"
cat "$OUT/columns.txt"
