#!/usr/bin/env bash
# 32 and 34 on a GPU with other filters than 3 x 3, and stride 2: their tests, then both beside cuDNN on the layers of
# the track. In a checkout's root, with build/bin/convladder, convladder-gpu and
# stage-tests-gpu. OUT is a folder. About 7 minutes (BUDGET seconds); what time does not suffice for is left out. bench
# writes nothing when it is ended, so each takes a few workloads, and the files hold what was done.
#   tests.txt            stage-tests-gpu of 32 and 34
#   bench-*.json         as bench writes it: layers (1x1, 5x5, stride 2, UNet), resnet-1, resnet-32, others
#   resnet.json          the sums of all 53 convolutions of a ResNet-50, in us, beside the best of cuDNN
set -u
. tools/measure/empty-out.sh
export BUDGET=${BUDGET:-430}
python3 - "$OUT" <<'PY'
import json, os, pathlib, subprocess, sys, time
out, began, budget = pathlib.Path(sys.argv[1]), time.time(), float(os.environ["BUDGET"])
left = lambda: budget - (time.time() - began)


def call(command, seconds):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=max(1, min(seconds, left())))
        return done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        part = late.stdout or b""
        return "timeout", part.decode(errors="replace") if isinstance(part, bytes) else part, ""


code, text, errors = call(["build/bin/stage-tests-gpu", "-tc=32 implicit*,34 int8*", "-d"], 75)
(out / "tests.txt").write_text(f"exit {code}\n{text[-20000:]}\n{errors[-4000:]}")
print("tests:", code, text.strip().splitlines()[-3:], flush=True)

sys.path.insert(0, "tools")
from networks import RESNET_50 as LAYERS  # noqa: E402; the last number: how often

KNOWN = {(32, 64, 56, 64, 3, 1): "conv2", (32, 128, 56, 128, 3, 2): "conv3", (32, 128, 28, 128, 3, 1): "conv3",
         (32, 256, 14, 256, 3, 1): "conv4", (32, 1024, 14, 256, 1, 1): "conv4", (32, 512, 7, 512, 3, 1): "conv5"}


def name_of(n, c, size, k, side, stride):
    kind = KNOWN.get((n, c, size, k, side, stride), "ResNet-50")
    return f"{kind} ({n},{c},{size},{size})->{k} {side}x{side}" + (f" stride {stride}" if stride > 1 else "")


def bench(what, names, together=4):
    file, joined = out / f"bench-{what}.json", None
    for first in range(0, len(names), together):
        if left() < 20:
            print(f"{what}: left out:", *names[first:], sep="\n  ", flush=True)
            break
        part = out / "part.json"
        command = ["build/bin/convladder", "bench", "--track", "hopper", "--stage", "32,34", "--json", str(part)]
        for name in names[first:first + together]:
            command += ["--workload", name]
        code, text, errors = call(command, left())
        print(f"{what} {first}: {code}, {left():.0f} s left\n{text[-9000:]}\n{errors[-600:] if code else ''}", flush=True)
        if not part.exists():
            continue
        report = json.loads(part.read_text())
        part.unlink()
        if joined:
            joined["rows"] += report["rows"]
        else:
            joined = report
        file.write_text(json.dumps(joined, indent=1))


bench("resnet-32", [name_of(32, *layer[:5]) for layer in LAYERS])
bench("layers", ["conv3 (32,128,56,56)->128 3x3 stride 2", "conv4 (32,1024,14,14)->256 1x1", "Inception", "UNet"], 1)
bench("resnet-1", [name_of(1, *layer[:5]) for layer in LAYERS])

sums = {}
for n in (1, 32):
    file = out / f"bench-resnet-{n}.json"
    if not file.exists():
        continue
    rows = json.loads(file.read_text())["rows"]
    for stage in (32, 34):
        total, cudnn, missing = 0.0, 0.0, []
        for *layer, count in LAYERS:
            name = name_of(n, *layer)
            row = next((r for r in rows if r.get("number") == stage and r.get("workload_name") == name), None)
            if not row or row["status"] != "ok" or not row["speedup"]["cudnn_best"]:
                missing.append(name)
                continue
            total += count * row["time_us"]["median"]
            cudnn += count * row["time_us"]["median"] * row["speedup"]["cudnn_best"]
        sums[f"{stage}, n={n}"] = {"us": total, "cudnn_us": cudnn, "missing": missing}
(out / "resnet.json").write_text(json.dumps(sums, indent=1))
print(json.dumps(sums, indent=1), flush=True)
bench("others", ["super-resolution", "VAE"], 1)
PY
