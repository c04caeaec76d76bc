#!/usr/bin/env bash
# 32 and 34 with an epilogue on a GPU: the 3 x 3 and 1 x 1 layers of a ResNet-50 of 32 images, each with the epilogue that
# the network has there and without one, then with the others, beside cuDNN's plans of the same graph; then their tests
# and cuDNN's. In a checkout's root, with build/bin/convladder, convladder-gpu, stage-tests-gpu and gpu-tests. OUT is
# a folder. About 2 minutes (BUDGET seconds; all of it takes several times as long); what time does not suffice for is
# left out, and named.
#   tests.txt       stage-tests-gpu of the epilogues and their mutants; gpu-tests of cuDNN's
#   bench-*.json    as bench writes it, a file for each two layers
#   epilogue.json   of each layer, stage and epilogue: us, cuDNN's us and the name of its plan, or what it said instead
set -u
. tools/measure/empty-out.sh
export BUDGET=${BUDGET:-120}
python3 - "$OUT" <<'PY'
import json, os, pathlib, subprocess, sys, time
out, began, budget = pathlib.Path(sys.argv[1]), time.time(), float(os.environ["BUDGET"])
left = lambda: budget - (time.time() - began)
sys.path.insert(0, "tools")
from networks import RESNET_50  # noqa: E402


def call(command, seconds):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=max(1, min(seconds, left())))
        return done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        part = late.stdout or b""
        return "timeout", part.decode(errors="replace") if isinstance(part, bytes) else part, ""


# What follows a layer in the network: the last of a bottleneck has the residual.
LAYERS = [(c, size, k, side) for c, size, k, side, stride, _ in RESNET_50 if stride == 1 and c > 3]
last = lambda layer: layer[3] == 1 and layer[2] == 4 * layer[0]
shape = lambda layer, epilogue: ("n=32,c={0},h={1},w={1},k={2},r={3},s={3}".format(*layer)
                                 + (f",epilogue={epilogue}" if epilogue != "none" else ""))
end = [layer for layer in LAYERS if last(layer)]
middle = sorted((layer for layer in LAYERS if not last(layer)), key=lambda layer: -layer[3])
jobs = [("residual", ["bias_residual_relu", "none"], end), ("relu", ["bias_relu", "none"], middle),
        ("bias", ["bias"], end + middle), ("others-relu", ["bias_relu"], end), ("others-residual", ["bias_residual_relu"], middle)]
found, missing = [], []
for name, epilogues, layers in jobs:
    for first in range(0, len(layers), 2):  # a file for each two layers: what was measured stays when time is up
        shapes = [shape(layer, epilogue) for layer in layers[first:first + 2] for epilogue in epilogues]
        if left() < 20:
            missing += shapes
            continue
        file = out / f"bench-{name}-{first}.json"
        command = ["build/bin/convladder", "bench", "--track", "hopper", "--stage", "32,34", "--backend", "gpu", "--json", str(file)]
        for each in shapes:
            command += ["--shape", each]
        code, text, errors = call(command, left())
        if code != 0:
            print(name, code, errors[-400:], flush=True)
        if not file.exists():
            missing += shapes
            continue
        trials = None
        for row in json.loads(file.read_text())["rows"]:
            trials = None if row["cudnn_unavailable"] else row["cudnn"] or trials
            if row.get("number") not in (32, 34) or row["backend"] != "gpu":
                continue
            dtype = {32: "fp16", 34: "int8"}[row["number"]]
            tried = [t for t in trials or [] if t["dtype"] == dtype]
            right = [t for t in tried if t["status"].startswith("ok") and t["time_us"]]
            best = min(right, key=lambda t: t["time_us"], default=None)
            found.append({"stage": row["number"], "problem": row["workload"], "epilogue": row["workload"].get("epilogue", "none"), "status": row["status"],
                          "reason": row["reason"], "us": row["time_us"] and row["time_us"]["median"],
                          "cudnn_us": best and best["time_us"], "cudnn": best and best["algorithm"],
                          "cudnn_said": sorted({t["status"] for t in tried} - {"ok"})})
        (out / "epilogue.json").write_text(json.dumps({"rows": found, "left_out": missing}, indent=1))
        print(f"{name} {first}: {left():.0f} s left", flush=True)
(out / "epilogue.json").write_text(json.dumps({"rows": found, "left_out": missing}, indent=1))
for row in found:
    p = row["problem"]
    print(row["stage"], p["c"], p["h"], p["k"], p["r"], row["epilogue"], row["status"], row["us"], row["cudnn_us"], row["cudnn"])
print("left out:", missing)
tests = ""
for command in (["build/bin/stage-tests-gpu", "-tc=32 *epilogue*,34 *epilogue*,mutants: *epilogue*,mutants: *bias*,mutants: *ReLU*"],
                ["build/bin/gpu-tests", "-tc=cuDNN computes an epilogue*"]):
    code, text, errors = call(command, left())
    tests += f"{' '.join(command)}: exit {code}\n{text[-12000:]}\n{errors[-4000:]}\n"
    print(command[0], code, text.strip().splitlines()[-3:], flush=True)
(out / "tests.txt").write_text(tests)
PY
