#!/usr/bin/env bash
# How well 32 and 34 choose: every configuration on the distinct convolutions of a ResNet-50 with 32 images and with one, and on
# layers of a UNet. In a checkout's root, with build/bin/convladder and convladder-gpu. OUT is a folder. About 6 minutes (BUDGET
# seconds); layers that time does not suffice for are left out.
#   choices.json  of each layer and stage the tuner's log: the default, and each configuration with its time
set -u
. tools/measure/empty-out.sh
export BUDGET=${BUDGET:-360}
python3 - "$OUT" <<'PY'
import json, os, pathlib, subprocess, sys, tempfile, time
out, began, budget = pathlib.Path(sys.argv[1]), time.time(), float(os.environ["BUDGET"])
left = lambda: budget - (time.time() - began)
LAYERS = [(3, 224, 64, 7, 2), (64, 56, 64, 1, 1), (64, 56, 256, 1, 1), (256, 56, 64, 1, 1), (256, 56, 128, 1, 1),
          (128, 56, 128, 3, 2), (128, 28, 512, 1, 1), (256, 56, 512, 1, 2), (512, 28, 128, 1, 1), (128, 28, 128, 3, 1),
          (512, 28, 256, 1, 1), (256, 28, 256, 3, 2), (256, 14, 1024, 1, 1), (512, 28, 1024, 1, 2), (1024, 14, 256, 1, 1),
          (256, 14, 256, 3, 1), (1024, 14, 512, 1, 1), (512, 14, 512, 3, 2), (512, 7, 2048, 1, 1), (1024, 14, 2048, 1, 2),
          (2048, 7, 512, 1, 1), (512, 7, 512, 3, 1)]
UNET = [(2, 320, 64, 320, 3, 1), (2, 640, 32, 640, 3, 1), (2, 1280, 16, 1280, 3, 1), (32, 48, 35, 64, 5, 1)]
jobs = [(stage, (n, *layer)) for stage in ("32", "34") for n in (32, 1) for layer in LAYERS]
jobs[2 * len(LAYERS):2 * len(LAYERS)] = [(stage, layer) for layer in UNET for stage in ("32", "34")]
logs = []
for stage, (n, c, size, k, side, stride) in jobs:
    if left() < 10:
        print("left out:", stage, n, c, size, k, side, stride)
        continue
    shape = f"n={n},c={c},h={size},w={size},k={k},r={side},s={side},pad_h={side // 2},pad_w={side // 2},stride_h={stride},stride_w={stride}"
    command = ["build/bin/convladder", "tune", stage, "--backend", "gpu", "--shape", shape, "--search", "random", "--trials", "0",
               "--json"]
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=left(), env={**os.environ, "CONVLADDER_TUNED": folder})
            logs.append({"stage": stage, "shape": shape, "log": json.loads(done.stdout)})
        except (ValueError, subprocess.TimeoutExpired) as error:
            print(stage, shape, error, file=sys.stderr)
    (out / "choices.json").write_text(json.dumps(logs))
print(f"{len(logs)} of {len(jobs)} in {time.time() - began:.0f} s")
PY
