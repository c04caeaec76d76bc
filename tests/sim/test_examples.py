"""The programs in examples/: right in the simulator, broken and named there, compiled by nvcc where there is one."""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from test_sim import ROOT, compare, compared_with_a_gpu, report_of, sim

NVCC = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.cu"))
# What is left out; the kind of fault, and what stands in a line that it names.
LEFT_OUT = {
    "cp_async": ("__pipeline_wait_prior(1);", "missing_wait", "of_row ="),
    "fp32_from_halves": ("__syncwarp();", "race", "load_matrix_sync(high_a"),
    "mbarrier_ring": ("if (entry > 0) mbarrier_wait(&empty[buffer], (entry - 1) % 2);", "invalid_barrier",
                      "mbarrier_expect("),
    "stmatrix_epilogue": ("__syncwarp();", "race", "reinterpret_cast<uint4*>(d"),
    "swizzle": ("mbarrier_wait(&come, 0);", "missing_wait", "as_it_lies[row"),
    "tma_tile": ("mbarrier_wait(&come, 0);", "missing_wait", "sum += box["),
    "warp_winograd": ("__syncwarp();", "race", "load_matrix_sync(of_u"),
    "wgmma": ("wgmma_wait<0>();", "wgmma_in_flight", "= sums[n]"),
}
# What is replaced, and by what: no fault, but the host must see that results are wrong.
WRONG = {
    "cp_async": ("of_row.y * of_vector.y", "of_row.y * of_vector.z"),
    "fp32_from_halves": ("kScale = 2048", "kScale = 1"),
    "mbarrier_ring": ("float sum = 0;\n    for", "float sum = 1;\n    for"),
    "stmatrix_epilogue": ("stmatrix(tile", "stmatrix_transposed(tile"),
    "swizzle": ("c ^ lane % 8", "c ^ lane % 4"),
    "tma_tile": ("* kTileX - kHalo", "* kTileX"),
    "warp_winograd": ("x[d] = b - c - e", "x[d] = b - c + e"),
    "wgmma": ("= sums[n]", "= sums[n ^ 1]"),
}


def source(name):
    return (ROOT / "examples" / f"{name}.cu").read_text()


def elsewhere(text):
    """The program in another folder."""
    return text.replace('"../common/', f'"{ROOT}/common/')


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Of each program the right one, the one with something left out, and the wrong one."""
    folder = tmp_path_factory.mktemp("examples")
    paths = [ROOT / "examples" / f"{name}.cu" for name in EXAMPLES]
    for kind, changes in (("left_out", LEFT_OUT), ("wrong", WRONG)):
        for name, (old, *new) in changes.items():
            text = source(name)
            assert old in text, f"{name} has no more {old}"
            paths.append(folder / f"{name}_{kind}.cu")
            paths[-1].write_text(elsewhere(text.replace(old, new[0] if kind == "wrong" else "", 1)))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip((path.stem for path in paths), pool.map(lambda path: sim("--json", path), paths)))


def faults_of(report):
    assert not report["host_faults"]
    return [fault for kernel in report["kernels"] for fault in kernel["faults"]]


def test_every_program_is_broken_once():
    assert EXAMPLES == sorted(LEFT_OUT) == sorted(WRONG)


@pytest.mark.parametrize("name, counters", compared_with_a_gpu("examples").items())
def test_counts_as_compared_with_ncu(runs, name, counters):
    assert compare.program_counters(report_of(runs[name])[1]) == counters


@pytest.mark.parametrize("name", EXAMPLES)
def test_right_in_the_simulator(runs, name):
    done = runs[name]
    output, report = report_of(done)
    assert done.returncode == 0, output + done.stderr
    assert output.endswith("\nright\n")
    assert not faults_of(report) and not report["notes"]


@pytest.mark.parametrize("name", LEFT_OUT)
def test_the_simulator_names_what_is_left_out(runs, name):
    done = runs[f"{name}_left_out"]
    left_out, kind, line = LEFT_OUT[name]
    lines = source(name).replace(left_out, "", 1).splitlines()
    assert done.returncode == 4, done.stdout + done.stderr
    assert [fault for fault in faults_of(report_of(done)[1])
            if fault["kind"] == kind and line in lines[fault["line"] - 1]], done.stdout


@pytest.mark.parametrize("name", WRONG)
def test_the_host_sees_wrong_results(runs, name):
    done = runs[f"{name}_wrong"]
    output, report = report_of(done)
    assert (done.returncode, faults_of(report)) == (1, []), output + done.stderr
    assert re.search(r"^wrong: .*\n\Z", output, re.M)


def test_a_tensor_map_that_is_refused_says_why(tmp_path):
    text = source("tma_tile").replace("kBoxX = kTileX + 2 * kHalo", "kBoxX = kTileX + 2 * kHalo + 1")
    (tmp_path / "refused.cu").write_text(elsewhere(text))
    done = sim(tmp_path / "refused.cu")
    assert done.returncode == 1
    assert done.stdout.startswith("wrong: the driver refuses the tensor map\n")
    assert done.stderr == "tensor map: a row of the box must be a multiple of 16 bytes; got 164\n"


def test_the_list_names_every_program():
    assert sorted(re.findall(r"^\| \[(\w+)\.cu\]\(\1\.cu\) \|", (ROOT / "examples/README.md").read_text(), re.M)) == EXAMPLES


# Each with its one header, if it has one, in a folder that has nothing else.
@pytest.mark.skipif(not NVCC, reason="no nvcc")
def test_nvcc_alone_compiles_them(tmp_path):
    def failure_of(name):
        folder = tmp_path / name / "examples"
        folder.mkdir(parents=True)
        shutil.copy(ROOT / "examples" / f"{name}.cu", folder)
        headers = re.findall(r'#include "\.\./(.*)"', source(name))
        assert len(headers) <= 1
        for header in headers:
            (tmp_path / name / header).parent.mkdir(parents=True)
            shutil.copy(ROOT / header, tmp_path / name / header)
        command = re.search(r"^//     nvcc (.*) && \./(\w+)$", source(name), re.M)
        assert command[2] == name
        done = subprocess.run([NVCC, *command[1].split(), "-Werror=all-warnings", "-Xcompiler=-Wall,-Wextra"], cwd=folder,
                              capture_output=True, text=True)
        if done.returncode == 0 and os.path.exists("/dev/nvidia0"):
            done = subprocess.run(folder / name, capture_output=True, text=True)
        return f"{name}: {done.stdout}{done.stderr}" if done.returncode else ""

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        assert "".join(pool.map(failure_of, EXAMPLES)) == ""


def test_a_copy_of_the_header_has_the_words_of_the_project():
    """hopper.hpp says by itself, where it is alone, what common/stage/tensor_map.hpp says."""
    copied = re.search(r"#else\n/// @cond\n[^\n]*\nnamespace convladder \{\n\n(.*?)\n\}  // namespace convladder",
                       (ROOT / "common/kernel/hopper.hpp").read_text(), re.S)[1]
    assert copied in (ROOT / "common/stage/tensor_map.hpp").read_text()
    assert copied.count("\nenum class ") == 2 and copied.count("\nstruct ") == 2
