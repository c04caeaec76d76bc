#!/usr/bin/env bash
# 09's small kernel on a GPU: 40 runs, a line each with its configuration and the hot time that `run` prints. In a
# checkout's root, with build/bin/convladder. OUT is a folder; times.txt there has the lines.
set -u
OUT=${OUT:?}
while read -r shape configuration; do
  text=$(build/bin/convladder run 09 --backend gpu --shape "$shape" --configuration "$configuration" 2>&1)
  time=$(grep -m1 '^time (hot' <<<"$text") || time="no time: $(tail -n 1 <<<"$text")"
  verdict=$(grep -m1 -oE '^(verified|wrong|fault)' <<<"$text")
  kernel=$(grep -m1 'small_filter' <<<"$text" | tr -s ' ')  # registers, spilled bytes, shared bytes, occupancy
  echo "$shape $configuration | $time | $verdict | $kernel"
done >"$OUT/times.txt" <<'LIST'
h=2160,w=3840,r=5,s=5 code=usual
h=2160,w=3840,r=5,s=5 code=lean
h=2160,w=3840,r=5,s=5 code=lean,warps=2
h=2160,w=3840,r=5,s=5 code=lean,warps=1
h=2160,w=3840,r=5,s=5 code=lean,registers=56
h=2160,w=3840,r=5,s=5 code=lean,registers=64
h=2160,w=3840,r=5,s=5 code=lean,registers=64,warps=1
h=2160,w=3840,r=5,s=5 code=lean,rows=5,warps=2
h=2160,w=3840,r=5,s=5 code=lean,rows=6,registers=64
h=2160,w=3840,r=5,s=5 code=lean,rows=2,registers=40
h=2160,w=3840,r=5,s=5 code=lean,resident=8
h=2160,w=3840,r=5,s=5 code=lean,resident=6
h=2160,w=3840,r=5,s=5 code=lean,ahead=16
h=2160,w=3840,r=5,s=5 code=lean,ahead=24
h=2160,w=3840,r=5,s=5 code=lean,ahead=32
h=2160,w=3840,r=5,s=5 code=lean,ahead=41
h=2160,w=3840,r=5,s=5 code=lean,ahead=64
h=2160,w=3840,r=5,s=5 code=lean,ahead=24,prefetch=bulk
h=2160,w=3840,r=5,s=5 code=lean,ahead=41,prefetch=bulk
h=2160,w=3840,r=5,s=5 code=lean,ahead=32,registers=56
h=2160,w=3840,r=5,s=5 code=lean,ahead=64,warps=2
h=2160,w=3840,r=5,s=5 code=usual
h=4320,w=3840,r=5,s=5 code=usual
h=4320,w=3840,r=5,s=5 code=lean
h=4320,w=3840,r=5,s=5 code=lean,ahead=32
h=2160,w=3840,r=3,s=3 code=usual
h=2160,w=3840,r=3,s=3 code=lean
h=2160,w=3840,r=3,s=3 code=lean,ahead=32
h=2160,w=3840,r=7,s=7 code=usual
h=2160,w=3840,r=7,s=7 code=lean
h=2160,w=3840,r=7,s=7 code=lean,registers=64
h=2160,w=3840,r=7,s=7 code=lean,registers=64,warps=1
h=2160,w=3840,r=7,s=7 code=lean,registers=64,ahead=24
h=2160,w=3840,r=7,s=7 code=lean,rows=5,registers=64
h=1080,w=1920,r=7,s=7 code=usual
h=1080,w=1920,r=7,s=7 code=lean
h=1080,w=1920,r=7,s=7 code=lean,warps=2
h=1080,w=1920,r=7,s=7 code=lean,registers=64
h=1080,w=1920,r=7,s=7 code=lean,rows=5
h=1080,w=1920,r=7,s=7 code=usual
LIST
cat "$OUT/times.txt"
