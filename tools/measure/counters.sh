#!/usr/bin/env bash
# What Nsight Compute counts of all stages, of the simulator's test kernels and of twenty plain programs, and what bounds
# 04, 08, 09, 15, 38 and 39. In a checkout's root, with build/bin/ncu-cases-gpu; nvcc for the programs. OUT is a folder.
# About 3 minutes; what BUDGET seconds do not suffice for is left out.
#   about.json        the device, versions, the metrics that this ncu lacks
#   cases.json, .csv  what ncu-cases-gpu ran, and ncu's rows
#   programs.csv      ncu's rows of the programs
#   bounds.json, .csv the same of the six tracks' workloads, with other metrics
# Then, anywhere, tools/ncu/compare.py makes the results files of them.
set -u
. tools/measure/empty-out.sh
export BUDGET=${BUDGET:-500}
python3 - "$OUT" <<'PY'
import concurrent.futures, json, os, pathlib, re, shutil, subprocess, sys, time
out, began, budget = pathlib.Path(sys.argv[1]), time.time(), float(os.environ["BUDGET"])
left = lambda: budget - (time.time() - began)
sys.path.insert(0, "tools/ncu")
from compare import BOUNDS, BOUND_METRICS, COLLECTED, PROGRAMS  # noqa: E402

CASES = "build/bin/ncu-cases-gpu"
folder = pathlib.Path("/tmp/ncu-programs")
folder.mkdir(exist_ok=True)


def call(command, seconds):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=max(1, min(seconds, left())))
        return done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        return "timeout", "", ""
    except OSError as error:
        return "missing", "", str(error)


def tool(name, *elsewhere):
    found = [shutil.which(name), *elsewhere]
    return next((path for path in found if path and os.path.exists(path)), name)


nvcc = tool("nvcc", "/usr/local/cuda/bin/nvcc")
ncu = tool("ncu", "/usr/local/cuda/bin/ncu", *map(str, sorted(pathlib.Path("/opt/nvidia").glob("nsight-compute/*/ncu"))))


def build(source):
    program = folder / pathlib.Path(source).stem
    done = call([nvcc, "-std=c++17", "-O3", "-arch=sm_90a", "-lineinfo", source, "-o", str(program)], 120)
    return "" if done[0] == 0 else f"{source}: {done[2][-500:]}"


builders = concurrent.futures.ThreadPoolExecutor(os.cpu_count())
builds = [builders.submit(build, source) for source in PROGRAMS]

listed = call([ncu, "--query-metrics", "--chips", "gh100"], 60)[1]
known = {line.split()[0] for line in listed.splitlines() if line.strip()}


def has(metric):
    base = metric.split(".")[0]
    return len(known) < 100 or base in known or not re.match(r"(smsp|sm|l1tex|lts|dram|gpu)__", base) or "_issue_stalled_" in base


def profile(name, metrics, command, seconds, *options):
    """Metrics that ncu refuses by name are left out."""
    log, wanted = out / f"{name}.csv", [metric for metric in metrics if has(metric)]
    while wanted:
        begin = time.time()
        code, text, errors = call([ncu, "--clock-control", "none", "--target-processes", "all", "--csv", "--page", "raw",
                                   "--print-units", "base", "--print-metric-instances", "details", "--metrics",
                                   ",".join(wanted), "--log-file", str(log), *options, *command], seconds)
        said = (log.read_text() if log.exists() else "") + text + errors
        complaints = [line for line in said.splitlines() if "==ERROR==" in line]
        print(f"{name}: {code}, {time.time() - begin:.0f} s", *complaints[:8], errors[-500:], flush=True)
        refused = [metric for metric in wanted if any(metric.split(".")[0] in line for line in complaints)]
        if not refused or left() < 30:
            return text
        missing.extend(refused)
        wanted = [metric for metric in wanted if metric not in refused]
    return ""


missing = [metric for metric in [*COLLECTED, *BOUND_METRICS] if not has(metric)]
alone = ["--profile-from-start", "off"]
(out / "cases.json").write_text(profile("cases", COLLECTED, [CASES], 300, *alone))
failed = [text for text in (each.result() for each in builds) if text]
print("not built:", failed, flush=True)
script = "".join(f"timeout 40 {folder / pathlib.Path(source).stem} >/dev/null; " for source in PROGRAMS)
profile("programs", COLLECTED, ["bash", "-c", script], 200)
triples = [text for row in BOUNDS for text in row]
(out / "bounds.json").write_text(profile("bounds", BOUND_METRICS, [CASES, *triples], 120, *alone, "--cache-control", "none"))
(out / "about.json").write_text(json.dumps({
    "nsight_compute": call([ncu, "--version"], 20)[1], "gpu": call(["nvidia-smi", "-L"], 20)[1], "not built": failed,
    "missing": missing,
    "tma, ldgsts, ldsm": sorted(name for name in known if re.search("tma|ldgsts|ldsm|gmma|bank_conflicts", name))}, indent=1))

print(f"{time.time() - began:.0f} s in all")
PY
