#!/usr/bin/env bash
# What only a GPU shows of 15, 32, 34, 38 and 39: tests whose course depends on the number of multiprocessors, and large layers
# whose blocks have many work items, several times over. In a checkout's root, with build/bin/convladder, convladder-gpu and
# stage-tests-gpu. OUT is a folder. About 4 minutes.
#   tests-NN.txt  stage-tests-gpu of the stages
#   runs.jsonl    run of each layer and configuration: exit status, status, error, median time
set -u
. tools/measure/empty-out.sh
for s in 15 32 34 38 39; do
  { timeout 130 build/bin/stage-tests-gpu --test-case="$s*" -d; echo "exit $?"; } >"$OUT/tests-$s.txt" 2>&1 &
done
wait
python3 - "$OUT/runs.jsonl" <<'PY'
import json, subprocess, sys, time
began = time.time()
out = open(sys.argv[1], "w")
LAYERS = [("n=32,c=256,k=1024,h=14,w=14", ("tiles=shared,split=1", "tiles=own,split=1", "tiles=shared,split=2")),
          ("n=32,c=1024,k=256,h=14,w=14", ("tiles=own,split=2", "tiles=shared,split=4")),
          ("n=9,c=136,k=200,h=57,w=55,r=3,s=3,stride_h=2,stride_w=2", ("tiles=own,split=1", "tiles=shared,split=1")),
          ("n=32,c=3,k=64,h=225,w=223,r=7,s=7,stride_h=2,stride_w=2,pad_h=3,pad_w=3", ("tiles=own,split=1",)),
          ("n=2,c=1280,k=1280,h=16,w=16,r=3,s=3", ("tiles=own,split=4", "tiles=shared,split=2"))]
wrong = 0
for repeat in range(3):
    for shape, settings in LAYERS:
        for stage in ("32", "34"):
            for setting in settings:
                if time.time() - began > 150:
                    break
                done = subprocess.run(["build/bin/convladder", "run", stage, "--backend", "gpu", "--json", "--shape", shape,
                                       "--configuration", f"positions=128,{setting}"], capture_output=True, text=True)
                row = json.loads(done.stdout) if done.returncode == 0 else {}
                wrong += done.returncode != 0
                print(json.dumps({"stage": stage, "shape": shape, "setting": setting, "exit": done.returncode,
                                  "status": row.get("status"), "error": row.get("rel_l2_err"),
                                  "us": (row.get("time_us") or {}).get("median"), "message": done.stderr[-200:] if done.returncode else ""}),
                      file=out, flush=True)
print("wrong, refused or failed:", wrong)
PY
tail -n 3 "$OUT"/tests-*.txt
