#!/bin/bash
# Clusters: the programs of tests/sim and the mended twins of the gallery, built by nvcc for sm_90a and run on a GPU; what
# they print is held against what the simulator's tests expect. The two faulty twins of the gallery run alone and under
# compute-sanitizer, each with a time limit. Run in the root of a checkout; no build is needed. About 2 minutes.
set -u
PATH=$PATH:/usr/local/cuda/bin
OUT=${OUT:-/tmp/clusters-out}
. tools/measure/empty-out.sh
work=$(mktemp -d)
python3 - "$OUT/clusters.json" "$work" <<'PY'
import json, pathlib, subprocess, sys
out, work = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
log = open(out.parent / "nvcc.log", "w")
results = {"device": subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                                    capture_output=True, text=True).stdout.strip(), "programs": {}, "faulty": {}}


def build(source, target, *options):
    done = subprocess.run(["nvcc", "-std=c++17", "-gencode", "arch=compute_90a,code=sm_90a", "-Xptxas", "-v", *options,
                           str(source), "-o", str(target), "-lcuda"], stdout=log, stderr=log)
    return done.returncode == 0


def run(command, seconds=20):
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=seconds)
        return done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        return "timeout", "", ""
    except FileNotFoundError:
        return "not installed", "", ""


jobs = []
# The product whose arrivals at another block's barrier name no scope, as it is and with the cluster's.
text = pathlib.Path("tests/sim/programs/cluster_gemm.cu").read_text()
scoped = work / "cluster_gemm_scoped.cu"
scoped.write_text(text.replace("mbarrier.arrive.shared::cluster", "mbarrier.arrive.release.cluster.shared::cluster")
                  .replace("try_wait.parity.shared", "try_wait.parity.acquire.cluster.shared"))
for source in [scoped, *sorted(pathlib.Path("tests/sim/programs").glob("cluster_*.cu"))]:
    lines = source.read_text().splitlines()
    jobs.append((source, "".join(line[5:] + "\n" for line in lines if line.startswith("// > ")), ()))
gallery = {"cluster_exit": "last 127\n", "cluster_release": "last 510\n"}
for name, wanted in gallery.items():
    jobs.append((pathlib.Path(f"tests/gallery/{name}.cu"), wanted, ("-DMENDED",)))
for source, wanted, options in jobs:
    target = work / source.stem
    built = build(source, target, *options)
    entry = {"built": built}
    if built:
        status, stdout, stderr = run([target])
        entry.update(status=status, output=stdout, same=status == 0 and stdout == wanted)
        for tool in ("memcheck", "racecheck", "synccheck"):
            status, said, _ = run(["compute-sanitizer", "--tool", tool, target], 60)
            summary = (said.strip().splitlines() or [""])[-1]
            entry[tool] = {"status": status, "summary": summary}
            if not summary.endswith(" 0 errors") and " 0 hazards" not in summary:
                entry[tool]["said"] = said[:3000]
    results["programs"][source.stem] = entry
    print(source.stem, entry.get("same"), entry)
for name, wanted in gallery.items():
    target = work / f"{name}_faulty"
    entry = {"built": build(f"tests/gallery/{name}.cu", target)}
    if entry["built"]:
        entry["alone"] = [run([target])[:2] for _ in range(5)]
        entry["right"] = [got == (0, wanted) for got in entry["alone"]]
        for tool in ("memcheck", "racecheck", "synccheck"):
            status, said, _ = run(["compute-sanitizer", "--tool", tool, target], 60)
            entry[tool] = {"status": status, "said": said[-1500:]}
    results["faulty"][name] = entry
    print(name, "faulty", entry)
out.write_text(json.dumps(results, indent=1))
wrong = [name for name, entry in results["programs"].items() if not entry.get("same")]
print("all as the simulator says" if not wrong else f"DIFFERENT: {wrong}")
sys.exit(bool(wrong))
PY
status=$?
rm -rf "$work"
exit $status
