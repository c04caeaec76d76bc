#!/usr/bin/env bash
# 31 to 33 in bf16 and in fp16, with cuDNN in both; and 31 in slices. In a checkout's root, with build/bin/convladder and
# convladder-gpu. OUT is a folder. Each row by itself, and what failed is named on standard error.
#   bf16.json, fp16.json  one image, a ResNet's and VGG's layers, of up to 512 channels, and a decoder's
#   slices.jsonl          31 with every tile and split, on layers with few outputs: a result a line
set -u
OUT=${OUT:?}
for dtype in bf16 fp16; do
  build/bin/convladder bench --backend gpu --stage 31,32,33 --dtype "$dtype" --workload image --workload conv2 \
    --workload conv3 --workload conv4 --workload conv5 --workload VGG --workload VAE --json "$OUT/$dtype.json" ||
    echo "bench in $dtype failed" >&2
done
for layer in n=32,c=512,h=7,w=7,k=512 n=64,c=512,h=7,w=7,k=512 n=32,c=256,h=14,w=14,k=256 c=512,h=7,w=7,k=512 \
  c=256,h=14,w=14,k=256 c=128,h=28,w=28,k=128; do
  for tile in 128x64 256x64 128x128 192x128; do
    for split in 1 2 4 8; do
      build/bin/convladder run 31 --backend gpu --shape "$layer,r=3,s=3" --configuration "tile=$tile,split=$split" --json |
        python3 -c 'import json, sys; print(json.dumps(json.load(sys.stdin)))'
    done
  done
  build/bin/convladder run 31 --backend gpu --shape "$layer,r=3,s=3" --json |
    python3 -c 'import json, sys; print(json.dumps(json.load(sys.stdin)))'
done >"$OUT/slices.jsonl"
