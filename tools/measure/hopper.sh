#!/usr/bin/env bash
# What docs/hopper.md compares with cuDNN, on a GPU, as much as fits into $BUDGET seconds (default 560). Where a host has
# several GPUs, each takes the next job. Which workloads: those of the files of docs/results/nvidia-h200-NAME.json. In a
# checkout's root, with build/bin/convladder and convladder-gpu; OUT is a folder. Arguments: which of these; default: all.
#   hopper.json        the track's workloads, all its stages, with cuDNN in fp16, int8 and fp32
#   resnet.json, resnet-one.json, resnet-many.json   32 and 34 on the convolutions of a ResNet-50 of 32 images, 1 and 256
#   layers.json, vae.json   32 to 34 on layers of a UNet and of super-resolution, and of image models' decoders
#   derived.txt        whether each ratio of the files follows from its times (tools/recompute.py)
#   left-out.txt, progress.txt   see tools/measure/jobs.sh
# Each goes to docs/results as GPU-NAME.json, then python3 tools/tables.py. Epilogues and bf16 have scripts of their own.
set -u
. tools/measure/empty-out.sh
BUDGET=${BUDGET:-560}
. tools/measure/jobs.sh
wanted=${*:-hopper resnet layers vae resnet-one resnet-many}
# names FILE: the workloads of a file of results, a line each.
names() {
  python3 -c 'import json, sys
for name in dict.fromkeys(row["workload_name"] for row in json.load(open(sys.argv[1]))["rows"]): print(name)' \
    "docs/results/nvidia-h200-$1.json"
}
# of FILE WORKLOADS-AT-A-TIME [STAGES] <names
of() {
  local some
  if [[ " $wanted " != *" $1 "* ]]; then cat >/dev/null && return; fi
  while mapfile -t -n "$2" some && ((${#some[@]})); do
    bench "$1-$(printf %03d ${#jobs[@]})" --track hopper ${3:+--stage "$3"} "${some[@]/#/--workload=}"
  done
}

of hopper 1 < <(names hopper)
of resnet 3 32,34 < <(names resnet)
of layers 1 32,33,34 < <(names layers)
of vae 1 32,33,34 < <(names vae)
of resnet-one 4 32,34 < <(names resnet-one)
of resnet-many 2 32,34 < <(names resnet-one | sed 's/(1,/(256,/')
run_jobs
status=0
: >"$OUT/derived.txt"
for name in $wanted; do
  python3 tools/lab merge "$OUT/$name.json" "$parts/$name"-[0-9]*.json &&
    python3 tools/measure/finish.py "$OUT/$name.json" >>"$OUT/derived.txt" || status=1
done
cat "$OUT/derived.txt"
exit $status
