#!/usr/bin/env bash
# The whole ladder on a GPU, as much as fits into $BUDGET seconds (default 450), into one file of results that docs/gpus.md
# is made of. Where a host has several GPUs, each takes the next workload that is left. In a checkout's root, with
# build/bin/convladder and convladder-gpu; OUT is a folder.
#   ladder.json        all rows, merged, with those of cuDNN's trials that are right; goes to docs/results as
#                      NAME-ladder.json (then python3 tools/tables.py)
#   derived.txt        whether each ratio of the file follows from its times (tools/recompute.py)
#   left-out.txt, progress.txt   see tools/measure/jobs.sh
set -u
. tools/measure/empty-out.sh
BUDGET=${BUDGET:-450}
. tools/measure/jobs.sh
next_bench() { bench "$(printf %03d ${#jobs[@]})" "$@"; }
both() { next_bench --track winograd --track hopper "${@/#/--workload=}"; }
of() { local track=$1 && shift && next_bench --track "$track" "${@/#/--workload=}"; }

# The first three workloads of each track, on which the ladder's picture stands.
both 'image (1,64,224,224)->64 3x3' 'image (1,64,960,960)->64 3x3' 'conv3 (32,128,28,28)->128 3x3'
of images '3840x2160 3x3' '3840x2160 11x11' '3840x2160 31x31'
of depthwise 'small (3,4,16,32) 7x7' 'ConvNeXt (32,96,56,56) 7x7' 'MobileNet (32,144,56,56) 3x3'
of signals 'w=2^24 r=5' 'w=2^24 r=1' 'w=2^24 r=31'
next_bench --track lowering --workload='layer 9 (128,64,56,56)->64 3x3' --workload='layer 12 (128,512,7,7)->512 3x3'
# The others of the tracks whose workloads are soon done, then layers of a ResNet with 32 images and other kinds of layers.
of images '3840x2160 5x5' '3840x2160 7x7' '3840x2160 15x15'
of signals 'w=2^24 r=127' 'w=257 r=5'
of depthwise 'MobileNet (32,144,56,56) 3x3 stride 2' 'EfficientNet (32,240,28,28) 5x5' \
  'ConvNeXt (32,384,14,14) 7x7' 'ConvNeXt (32,768,7,7) 7x7' 'primes (3,5,61,67) 5x5'
of lowering 'layer 10 (128,128,28,28)->128 3x3' 'layer 11 (128,256,14,14)->256 3x3'
of lowering 'layer 5 (128,96,24,24)->256 5x5' 'layer 6 (128,256,12,12)->512 3x3'
both 'conv2 (32,64,56,56)->64 3x3' 'conv4 (32,256,14,14)->256 3x3' 'conv5 (32,512,7,7)->512 3x3'
of hopper 'conv3 (32,128,56,56)->128 3x3 stride 2' 'conv4 (32,1024,14,14)->256 1x1' 'Inception (32,48,35,35)->64 5x5'
# Larger images, larger batches, more channels.
both 'image (1,64,448,448)->64 3x3'
both 'conv2 (128,64,56,56)->64 3x3'
both 'conv3 (128,128,28,28)->128 3x3' 'conv4 (128,256,14,14)->256 3x3' 'conv5 (128,512,7,7)->512 3x3'
both 'image (1,64,320,320)->64 3x3' 'image (1,64,640,640)->64 3x3'
both 'conv2 (32,128,56,56)->128 3x3'
both 'image (1,64,768,768)->64 3x3'
both 'conv2 (64,64,56,56)->64 3x3' 'conv3 (64,128,28,28)->128 3x3'
both 'conv4 (64,256,14,14)->256 3x3' 'conv5 (64,512,7,7)->512 3x3'
of hopper 'VGG (32,512,28,28)->512 3x3'
of hopper 'VGG (32,256,56,56)->256 3x3'
of hopper 'VGG (32,128,112,112)->128 3x3'
of hopper 'VGG (32,64,224,224)->64 3x3'
of hopper 'conv2 (32,512,56,56)->512 3x3'

run_jobs
python3 tools/lab merge "$OUT/ladder.json" "$parts"/*.json || exit
python3 tools/measure/finish.py "$OUT/ladder.json" >"$OUT/derived.txt" || exit
cat "$OUT/derived.txt"
