#!/usr/bin/env bash
# 31 to 33 in bf16 and in fp16, with cuDNN in both; and 31 in slices. In a checkout's root, with build/bin/convladder and
# convladder-gpu. OUT is a folder. As much as fits into $BUDGET seconds (default 420); where a host has several GPUs, each
# takes the next job.
#   bf16.json, fp16.json  one image, a ResNet's and VGG's layers, of up to 512 channels, and a decoder's; go to docs/results
#                         as NAME-bf16.json and NAME-fp16.json
#   slices.jsonl          31 with every tile and split, on layers with few outputs: the tuner's logs, one a line
#   left-out.txt, progress.txt   see tools/measure/jobs.sh
set -u
. tools/measure/empty-out.sh
BUDGET=${BUDGET:-420}
. tools/measure/jobs.sh
rows() {
  local dtype name=${#jobs[@]}
  for dtype in bf16 fp16; do
    bench "$dtype-$(printf %03d "$name")" --track hopper --stage 31,32,33 --dtype "$dtype" "${@/#/--workload=}"
  done
}
rows 'image (1,64,224,224)->64 3x3' 'image (1,64,960,960)->64 3x3'
rows 'conv2 (32,64,56,56)->64 3x3' 'conv3 (32,128,28,28)->128 3x3'
rows 'conv4 (32,256,14,14)->256 3x3' 'conv5 (32,512,7,7)->512 3x3'
for layer in n=32,c=512,h=7,w=7,k=512 n=64,c=512,h=7,w=7,k=512 n=32,c=256,h=14,w=14,k=256 c=512,h=7,w=7,k=512 \
  c=256,h=14,w=14,k=256 c=128,h=28,w=28,k=128; do
  job "slices-${#jobs[@]}" env CONVLADDER_TUNED="$parts/tuned-${#jobs[@]}" build/bin/convladder tune 31 --backend gpu \
    --shape "$layer,r=3,s=3" --search random --trials 0 --json
done
rows 'VAE (1,128,1024,1024)->128 3x3'
rows 'VAE (1,256,512,512)->256 3x3' 'VAE (1,512,128,128)->512 3x3'
rows 'conv2 (128,64,56,56)->64 3x3' 'conv3 (128,128,28,28)->128 3x3'
rows 'conv4 (128,256,14,14)->256 3x3' 'conv5 (128,512,7,7)->512 3x3'
rows 'image (1,64,448,448)->64 3x3' 'VGG (32,64,224,224)->64 3x3'
rows 'VGG (32,128,112,112)->128 3x3' 'VGG (32,256,56,56)->256 3x3'
rows 'VGG (32,512,28,28)->512 3x3'
run_jobs
status=0
for dtype in bf16 fp16; do python3 tools/lab merge "$OUT/$dtype.json" "$parts/$dtype"-*.json || status=1; done
for log in "$parts"/slices-*.txt; do python3 -c 'import json, sys; print(json.dumps(json.load(open(sys.argv[1]))))' "$log" || status=1; done \
  >"$OUT/slices.jsonl"
exit $status
