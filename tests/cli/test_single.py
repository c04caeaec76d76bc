"""./lab single: every stage as one file that compiles by itself.

CONVLADDER_SUITE=1/3 compiles a third of the stages by nvcc, beginning with the second; run as a program, this file
prints how many that leaves out.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/lab"))
import single_file  # noqa: E402

STAGES = sorted(path.parent.name for path in ROOT.glob("chapters/*/stage.json")
                if json.loads(path.read_text())["track"] != "several")
NVCC = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
FIRST, STEP = map(int, os.environ.get("CONVLADDER_SUITE", "0/1").split("/"))


def lab(*words):
    return subprocess.run([ROOT / "lab", "single", *words], capture_output=True, text=True)


def text_of(stage):
    return single_file.single(ROOT / "chapters" / stage)


@pytest.mark.parametrize("words, sentence", [
    (["99"], "./lab: single: unknown stage '99'; './lab list' shows the stages\n"),
    (["winograd-pkf-shme"], "./lab: single: unknown stage 'winograd-pkf-shme', did you mean 'winograd-pkf-shmem'?; "
                            "'./lab list' shows the stages\n"),
    (["15b"], "./lab: single: 15b-compiled-constants compiles its kernel from the project's files when it runs: one "
              "file cannot hold it; take the chapter's stage\n"),
    (["41"], "./lab: single: 41-halo-exchange talks to other GPUs through the project's communicator: one file cannot "
             "hold it; take 09, whose kernel it launches\n")])
def test_what_is_refused_takes_one_line(words, sentence):
    done = lab(*words)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", sentence)


def test_the_command_prints_the_text():
    done = lab("3")
    assert (done.returncode, done.stdout, done.stderr) == (0, text_of("03-tiled-1d"), "")


def test_no_file_includes_the_projects_headers():
    steps = sorted(path.parent.relative_to(ROOT / "chapters") for path in ROOT.glob("chapters/*/*/stage.json"))
    for stage in [*STAGES, *(str(step) for step in steps if not step.name.startswith("15b"))]:
        text = text_of(stage)
        assert '#include "' not in text, stage
        assert text.count("int main()") == 1, stage
        assert text.startswith(f"// {stage.rpartition('/')[2]}: "), stage
        most = {"32-": 4000, "34-": 4000, "33-": 3600, "36-": 3600}.get(stage[:3], 2500)  # three kernels, and two
        assert len(text.splitlines()) < most, stage


@pytest.mark.slow
def test_the_stage_of_the_host_checks_itself(tmp_path):
    (tmp_path / "im2win_cpu.cpp").write_text(text_of("22-im2win-cpu"))
    command = re.search(r"^//     (g\+\+ .*)", text_of("22-im2win-cpu"), re.M)[1]
    subprocess.run(command.split(), cwd=tmp_path, check=True)
    done = subprocess.run(tmp_path / "im2win_cpu", capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert len(re.findall(r"^n=.*: right$", done.stdout, re.M)) == 3


# To PTX alone, without optimisation: two seconds of a core instead of ten. The first stage of each track also for the
# host, whose part of the file is the same in all: the linker sees that nothing is missing.
@pytest.mark.slow
@pytest.mark.skipif(not NVCC, reason="no nvcc")
def test_every_stage_compiles_with_nvcc_alone(tmp_path):
    tracks = {}
    for stage in STAGES:
        tracks.setdefault(json.loads((ROOT / "chapters" / stage / "stage.json").read_text())["track"], stage)

    def failure_of(stage):
        text = text_of(stage)
        command = re.search(r"^//     nvcc (.*)", text, re.M)
        if not command:
            return ""  # of the host
        (tmp_path / f"{stage}.cu").write_text(text)
        virtual = "compute_" + (re.search(r"compute_(\w+)", command[1]) or ["", "80"])[1]
        whole = ["-gencode", f"arch={virtual},code={virtual}"] if stage in tracks.values() else [f"-arch={virtual}", "-ptx"]
        done = subprocess.run([NVCC, "-std=c++20", *whole, "-Xcicc=-O0", f"{stage}.cu", "-o", stage], cwd=tmp_path,
                              capture_output=True, text=True)
        return f"{stage}: {done.stderr}" if done.returncode else ""

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        assert "".join(pool.map(failure_of, STAGES[FIRST::STEP])) == ""


if __name__ == "__main__":
    print(len(STAGES) - len(STAGES[FIRST::STEP]) if NVCC else 0)
