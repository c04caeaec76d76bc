"""Parts of a bench and of a search, by two processes at once, and merged: they are the whole. In the simulator, whose
counts are the same each time.

python3 -m pytest tests/cli -k shards
"""
import copy
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from test_cli import ENVIRONMENT, PROGRAM, ROOT, folder_of_its_own, refuses  # noqa: F401

LAB = [sys.executable, ROOT / "tools/lab"]
BENCH = ["--backend", "sim", "--stage", "1,3,23"]
SEARCH = ["tune", "31", "--backend", "sim", "--shape", "c=16,h=8,w=8,k=16,r=3,s=3", "--search", "exhaustive",
          "--trials", "0", "--json"]


def start(*arguments, **environment):
    return subprocess.Popen([PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=dict(ENVIRONMENT, OMP_NUM_THREADS="1", **environment))


def outputs(processes):
    done = [process.communicate(timeout=120) for process in processes]
    for process, (_, errors) in zip(processes, done):
        assert process.returncode == 0, errors
    return [out for out, _ in done]


def merge(*arguments):
    return subprocess.run([*LAB, "merge", *arguments], capture_output=True, text=True, timeout=60)


def load(path):
    return json.loads(pathlib.Path(path).read_text())


def without_times(rows):
    return [{**row, "prepare_us": None} for row in rows]


def test_the_parts_of_a_bench_are_the_bench():
    outputs([start("bench", *BENCH, "--json", "whole.json"),
             *(start("bench", *BENCH, "--shards", f"{i}/2", "--json", f"{i}.json") for i in (1, 2))])
    parts = [load(f"{i}.json") for i in (1, 2)]
    assert [part["shard"] for part in parts] == ["1/2", "2/2"] and "shard" not in load("whole.json")
    names = [{row["workload_name"] for row in part["rows"]} for part in parts]
    assert names[0] and names[1] and not names[0] & names[1]
    done = merge("merged.json", "2.json", "1.json")  # in whatever order
    assert done.returncode == 0, done.stderr
    merged, whole = load("merged.json"), load("whole.json")
    assert "shard" not in merged and f"2 files, {len(whole['rows'])} rows" in done.stdout
    assert without_times(merged["rows"]) == without_times(whole["rows"])
    assert (merged["device"], merged["toolchain"]) == (whole["device"], whole["toolchain"])


def test_the_parts_of_a_search_are_the_search():
    texts = outputs([start(*SEARCH, CONVLADDER_TUNED="all"),
                     *(start(*SEARCH, "--shards", f"{i}/2", CONVLADDER_TUNED=f"part-{i}") for i in (1, 2))])
    for name, text in zip(("whole", "1", "2"), texts):
        pathlib.Path(f"{name}.json").write_text(text)
    done = merge("merged.json", "1.json", "2.json")
    assert done.returncode == 0, done.stderr
    merged, whole = load("merged.json"), load("whole.json")

    def costs(log):
        return sorted((json.dumps(trial["configuration"]), trial["estimated_cycles"])
                      for session in log["sessions"] for trial in session["trials"])

    assert len(costs(merged)) == whole["space"]["valid"] > 2 and costs(merged) == costs(whole)
    assert merged["space"] == whole["space"] and "shard" not in merged
    best = [log["best"] and log["best"]["estimated_cycles"] for log in (merged, whole)]
    assert best[0] == best[1]
    session = merged["sessions"][0]
    assert session["budget"] == len(session["trials"])
    assert session["trials"][-1]["best_so_far"] == min(cost for _, cost in costs(whole))


def test_what_shards_are_refused():
    for text in ("3/2", "0/2", "2", "a/b"):
        refuses(["bench", "--backend", "sim", "--shards", text], "--shards takes I/N", text)
    refuses(["bench", "--backend", "sim", "--stage", "1", "--shards", "4/4"], "--shards 4/4: there are only 3 workloads")
    refuses([*SEARCH, "--shards", "90/90"], "--shards 90/90: there are only", "valid configurations")


# ---- What merge refuses ---------------------------------------------------------------------------------------------

def part(number, of=2, name="NVIDIA X"):
    """Of a bench on a GPU, with a row that it has for itself."""
    bench = copy.deepcopy(load(ROOT / "docs/results/nvidia-h100-hopper-beside.json"))
    bench["rows"] = bench["rows"][7 * (number - 1):7 * number]
    bench["device"]["name"] = name
    return {**bench, "shard": f"{number}/{of}"}


def put(**files):
    for name, content in files.items():
        pathlib.Path(f"{name}.json").write_text(content if isinstance(content, str) else json.dumps(content))


@pytest.mark.parametrize("files, words", [
    ({"a": part(1), "b": part(2, of=3)}, "parts of 2 and of 3"),
    ({"a": part(1), "b": part(1)}, "part 1/2 is there twice"),
    ({"a": part(2)}, "part 1/2 is missing"),
    ({"a": part(1), "b": part(2, name="NVIDIA Y")}, 'device/name differs: "NVIDIA X" in \'a.json\', "NVIDIA Y" in'),
    ({"a": part(1), "b": {key: value for key, value in part(2).items() if key != "shard"}}, "'b.json' is no part"),
    ({"a": {key: value for key, value in part(1).items() if key != "shard"},
      "b": {key: value for key, value in part(1).items() if key != "shard"}}, "is in two files"),
    ({"a": part(1), "b": {"sessions": []}}, "'b.json' is not"),
    ({"a": {"corner": 1}}, "'a.json' is neither"),
    ({"a": "7"}, "'a.json' is neither"),
    ({"a": {"sessions": []}}, "'a.json' has no device"),
    ({"a": "{"}, "'a.json' is no JSON"),
    ({"a": {**part(1, of=1), "rows": [{}]}}, "a.json is not as this version writes its results (KeyError: 'stage')"),
])
def test_what_merge_refuses(files, words):
    put(**files)
    done = merge("out.json", *(f"{name}.json" for name in files))
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1, done
    assert words in done.stderr and not os.path.exists("out.json")


def test_merge_overwrites_no_part_and_no_device():
    put(a=part(1), b=part(2))
    os.mkfifo("pipe")
    for out, words in (("./b.json", "'b.json' is one of the parts"), ("pipe", "it is no ordinary file"), (".", "ordinary")):
        done = merge(out, "a.json", "b.json")
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and words in done.stderr, done
    assert load("b.json") == part(2) and pathlib.Path("pipe").is_fifo()


def test_ceilings_are_the_best_and_shares_follow():
    parts = part(1), part(2)
    parts[1]["ceilings"]["fp16_flops_per_s"] *= 2
    parts[1]["ceilings"]["launch_us"] /= 2
    put(a=parts[0], b=parts[1])
    assert merge("out.json", "a.json", "b.json").returncode == 0
    out = load("out.json")
    assert out["ceilings"]["fp16_flops_per_s"] == parts[1]["ceilings"]["fp16_flops_per_s"]
    assert out["ceilings"]["launch_us"] == parts[1]["ceilings"]["launch_us"]
    before, after = parts[0]["rows"][0]["roofline"], out["rows"][0]["roofline"]
    assert before["bound"] == "fp16" and abs(after["share"] / before["share"] - 0.5) < 1e-9
    sys.path[:0] = [str(ROOT / "tools")]
    import recompute
    assert not [each for each in recompute.derived(out) if recompute.differs(*each[1:])]


# ---- The page on fleets ---------------------------------------------------------------------------------------------

def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / "docs/fleets.md").read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture
def project():
    """A folder whose ./lab is the program, and merge."""
    pathlib.Path("lab").write_text(f'#!/bin/bash\nif [ "$1" = merge ]; then exec {sys.executable} {ROOT}/tools/lab "$@"; '
                                   f'fi\nexec {PROGRAM} "$@"\n')
    pathlib.Path("lab").chmod(0o755)


def test_the_array_of_jobs(project):
    pathlib.Path("bench.slurm").write_text(blocks("sh")[0])
    jobs = [subprocess.Popen(["bash", "bench.slurm"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             env=dict(ENVIRONMENT, SLURM_ARRAY_TASK_COUNT="2", SLURM_ARRAY_TASK_ID=str(i),
                                      BENCH="--backend sim --stage 1,2")) for i in (1, 2)]
    assert [job.wait(timeout=100) for job in jobs] == [0, 0]
    assert merge("whole.json", "part-1.json", "part-2.json").returncode == 0
    assert len(load("whole.json")["rows"]) == 6


def measure(script, out, *arguments):
    """As where there is a GPU and no time."""
    return subprocess.run(["bash", f"tools/measure/{script}", *arguments], cwd=ROOT, capture_output=True, text=True,
                          timeout=60, env=dict(ENVIRONMENT, OUT=str(out), BUDGET="0"))


@pytest.mark.parametrize("script", sorted(path.name for path in (ROOT / "tools/measure").glob("*.sh")
                                          if path.name not in ("empty-out.sh", "jobs.sh")))
def test_measuring_leaves_no_earlier_results_as_new(script):
    old = pathlib.Path("old.json").resolve()
    old.touch()
    done = measure(script, old.parent)
    assert (done.returncode, done.stdout) == (2, "") and f"{script}: {old.parent} is not empty" in done.stderr, done
    assert os.listdir(".") == ["old.json"]


@pytest.mark.parametrize("script", ["bf16.sh", "hopper.sh", "ladder.sh", "split.sh"])
def test_measuring_fails_where_there_is_nothing_to_merge(script):
    done = measure(script, pathlib.Path("new").resolve())
    assert done.returncode != 0 and "./lab: merge: cannot read" in done.stderr, done
    assert not list(pathlib.Path("new").glob("*.json"))


def test_measuring_some_files_of_the_hopper_page():
    done = measure("hopper.sh", pathlib.Path("new").resolve(), "layers", "resnet-one")
    assert "Traceback" not in done.stderr and "Broken pipe" not in done.stderr, done
    jobs = pathlib.Path("new/left-out.txt").read_text().splitlines()
    files = [job.partition(".json")[0].rpartition("/")[2].rpartition("-")[0] for job in jobs]
    assert sorted(set(files)) == ["layers", "resnet-one"], jobs


def test_counters_of_a_profiler_that_counted_some_launches(monkeypatch):
    """The first job's launch; of the second it says why not; for the others the time does not suffice."""
    tools = pathlib.Path("tools").resolve()
    tools.mkdir()
    cells = {"ID": "0", "CC": "9.0", "device__attribute_display_name": "a GPU", **{name: "" for name in "abcdef"},
             "gpu__time_duration.sum": "12,500", "sm__cycles_elapsed.avg.per_second": "1,800,000,000",
             **{f"{name}.avg.pct_of_peak_sustained_elapsed": "50" for name in (
                 "smsp__issue_active", "sm__pipe_tensor_cycles_active", "sm__pipe_fma_cycles_active",
                 "l1tex__data_pipe_lsu_wavefronts_mem_shared")},
             "l1tex__m_xbar2l1tex_read_bytes.sum": "3000000", "lts__t_sectors_srcunit_tex_op_write.sum": "1000000",
             "dram__bytes_read.sum": "1", "dram__bytes_write.sum": "2000000"}
    text = "".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in (cells, [""] * len(cells), cells.values()))
    (tools / "csv").write_text(text)
    (tools / "ncu").write_text(f'#!/bin/bash\n[ -e "$OUT/counted" ] && head -n 1 "{tools}/csv" && echo "==ERROR== no" && '
                               f'sleep 1 && exit 1\ntouch "$OUT/counted"\ncat "{tools}/csv"\n')
    (tools / "nvidia-smi").write_text("#!/bin/bash\necho 0\n")
    for name in ("ncu", "nvidia-smi"):
        (tools / name).chmod(0o755)
    monkeypatch.setitem(ENVIRONMENT, "PATH", f"{tools}:{os.environ['PATH']}")
    out = pathlib.Path("new").resolve()
    done = subprocess.run(["bash", "tools/measure/hopper-counters.sh"], cwd=ROOT, capture_output=True, text=True,
                          timeout=60, env=dict(ENVIRONMENT, OUT=str(out), BUDGET="16"))
    assert done.returncode == 0, done
    counted = json.loads((out / "counters.json").read_text())
    assert counted["device"] == {"name": "a GPU", "compute_capability": 90}
    assert [row["name"] for row in counted["rows"]] == ["32 conv3 (128,128,28,28)"]
    assert counted["rows"][0]["values"] == pytest.approx([12.5, 1.8, 50, 50, None, 50, 3, 32, 1e-6, 2])
    left_out = (out / "left-out.txt").read_text().replace("\\", "")
    assert len(left_out.splitlines()) == 32
    for job in ("32 --backend gpu --shape n=32,c=2048,h=7,w=7,k=512,r=1,s=1",
                "34 --backend gpu --shape n=32,c=256,h=14,w=14,k=256,r=3,s=3"):
        assert f"run {job} " in left_out


def test_ray(project):
    pytest.importorskip("ray")
    pathlib.Path("bench.py").write_text(blocks("python")[0])
    done = subprocess.run([sys.executable, "bench.py", "2"], capture_output=True, text=True, timeout=110,
                          env=dict(ENVIRONMENT, GPUS="0", BENCH="--backend sim --stage 1,2"))
    assert done.returncode == 0, done.stderr
    assert len(load("whole.json")["rows"]) == 6
