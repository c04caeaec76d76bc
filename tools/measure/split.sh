#!/usr/bin/env bash
# 36 on a GPU: its tests, each layer of many channels with and without F(2,3), by which the stage's choice is judged, one layer
# several times with F(2,3) and tiles of 104 positions, whose ring of filters is the narrowest, and what the stage takes of
# itself beside cuDNN. In a checkout's root, with build/bin/convladder, convladder-gpu and stage-tests-gpu. OUT is a folder.
# At most $BUDGET seconds (default 150); log.txt names what they did not suffice for.
#   tests.txt        stage-tests-gpu of 36
#   runs.jsonl       what run 36 printed, a line each: time, error, and whether the result is right
#   transforms.json  the layers' times and errors without F(2,3) and with it; for docs/results/nvidia-*-split-transforms.json
#   bench.json       bench: 36 and cuDNN's best, to join its rows in docs/results/nvidia-*-hopper.json
#   log.txt          what was left out, ended or was wrong
set -u
. tools/measure/empty-out.sh
BUDGET=${BUDGET:-150}
LAB=build/bin/convladder
SECONDS=0
parts=$(mktemp -d)
: >"$OUT/log.txt"
: >"$OUT/runs.jsonl"
within() { # within SECONDS COMMAND...
  local most=$1 rest=$((BUDGET - SECONDS))
  shift
  if ((rest < 3)); then echo "left out: ${*: -3}" >>"$OUT/log.txt" && return 1; fi
  timeout $((most < rest ? most : rest)) "$@" || { echo "status $?: ${*: -3}" >>"$OUT/log.txt" && return 1; }
}
run() { # run SHAPE CONFIGURATION
  local result
  result=$(within 30 "$LAB" run 36 --backend gpu --json --shape "$1" --configuration "$2" | tr -d '\n')
  if [ -n "$result" ]; then
    printf '{"shape": "%s", "setting": "%s", "result": %s}\n' "$1" "$2" "$result" >>"$OUT/runs.jsonl"
  fi
}

within 60 build/bin/stage-tests-gpu -tc='36*' >"$OUT/tests.txt" 2>&1
# First the layers whose choice no earlier run had both times for.
for shape in n=64,c=128,k=128,h=28,w=28 n=64,c=512,k=512,h=7,w=7 n=32,c=128,k=128,h=56,w=56 n=32,c=256,k=256,h=56,w=56 \
  n=32,c=512,k=512,h=28,w=28 n=128,c=128,k=128,h=28,w=28 n=128,c=256,k=256,h=14,w=14 n=128,c=512,k=512,h=7,w=7 \
  n=32,c=128,k=128,h=28,w=28 n=32,c=256,k=256,h=14,w=14 n=32,c=512,k=512,h=7,w=7 n=64,c=256,k=256,h=14,w=14 \
  n=32,c=128,k=128,h=112,w=112; do
  for transform in none f23; do run "$shape,r=3,s=3" "transform=$transform"; done
done
for _ in 1 2 3; do run n=32,c=256,k=256,h=56,w=56,r=3,s=3 transform=f23,positions=104; done

status=0
python3 - "$OUT" <<'PY' || status=1
import json, pathlib, sys
out = pathlib.Path(sys.argv[1])
runs = [json.loads(line) for line in (out / "runs.jsonl").read_text().splitlines()]
NAMES = {(128, 28): "conv3", (256, 14): "conv4", (512, 7): "conv5", (128, 56): "conv2 128", (512, 28): "VGG 512", (256, 56): "VGG 256",
         (128, 112): "VGG 128"}
layers = {}
for run in runs:
    layers.setdefault(run["shape"], {})[run["setting"]] = run["result"]
rows = []
us = lambda result: result["time_us"]["median"]
for results in layers.values():
    if not {"transform=none", "transform=f23"} <= results.keys():
        continue
    none, f23 = results["transform=none"], results["transform=f23"]
    if none["status"] != "ok" or f23["status"] != "ok":
        continue
    problem = none["workload"]
    name = f"{NAMES[problem['c'], problem['h']]} N{problem['n']}"
    rows.append({"name": name, "values": [us(none), us(f23), int(f23["configuration"]["positions"]), us(none) / us(f23),
                                          none["rel_l2_err"], f23["rel_l2_err"]]})
if rows:
    json.dump({"device": {"name": none["device"], "compute_capability": 90},
               "how": "tools/measure/split.sh: ./lab run 36 --backend gpu --shape SHAPE --configuration transform=none or f23 --json, "
                      "each verified before and after timing, in one run on one GPU, CUDA 13.0, random normal data, hot medians; "
                      "positions that the stage takes with F(2,3)",
               "corner": "layer", "columns": ["directly (µs)", "with F(2,3) (µs)", "positions", "times as fast", "error",
                                              "error with F(2,3)"],
               "format": [".1f", ".1f", ".0f", ".2f", ".1e", ".1e"], "rows": rows},
              open(out / "transforms.json", "w"), indent=2, ensure_ascii=False)
wrong = sum(run["result"]["status"] != "ok" for run in runs)
print("runs:", len(runs), "wrong:", wrong)
for row in rows:
    print(row["name"], *(f"{value:.4g}" for value in row["values"]))
PY

# The bench, a workload at a time, since a bench that is ended has written nothing.
part=0
for workload in 'conv3 (128,128,28,28)->128 3x3' 'conv4 (128,256,14,14)->256 3x3' 'conv5 (128,512,7,7)->512 3x3' \
  'conv3 (32,128,28,28)->128 3x3' 'conv4 (32,256,14,14)->256 3x3' 'conv5 (32,512,7,7)->512 3x3' \
  'VGG (32,256,56,56)->256 3x3' 'VGG (32,512,28,28)->512 3x3' 'conv2 (32,128,56,56)->128 3x3'; do
  part=$((part + 1))
  within 30 "$LAB" bench --backend gpu --track hopper --stage 36 --json "$parts/$part.json" --workload "$workload" >/dev/null
done
python3 tools/lab merge "$OUT/bench.json" "$parts"/*.json || status=1
cat "$OUT/log.txt"
exit $status
