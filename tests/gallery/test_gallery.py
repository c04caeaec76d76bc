"""The gallery of faults: each program is reported at its line, and its mended twin (-D MENDED) is not.

The line of the fault is marked by a comment, // FAULT kind. OUTPUTS is what the mended twins print; so they do on a GPU.
"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]

OUTPUTS = {
    "cluster_exit": "last 127\n",
    "cluster_release": "last 510\n",
    "divergent_barrier": "last 0\n",
    "lookback_fence": "before the last block 21\n",
    "shuffle_in_branch": "sum 20\n",
    "store_buffer_reused": "last 1022\n",
    "store_proxy_fence": "last 254\n",
    "tile_overwritten": "last 1022\n",
    "tile_reuse": "sum 64\n",
    "wait_group": "sum 192\n",
    "warp_synchronous": "sum 2016\n",
    "wgmma_accumulators": "last 32\n",
    "wgmma_fence": "last 159\n",
    "wgmma_operand": "last 32\n",
    "wmma_store": "element 32\n",
    "wrong_expect": "last 1022\n",
    "wrong_parity": "last 510\n",
}


def sim(job):
    name, mended = job
    return subprocess.run([sys.executable, ROOT / "tools/lab", "sim", "--json", *(["-D", "MENDED"] if mended else []),
                           HERE / f"{name}.cu"], capture_output=True, text=True, timeout=120,
                          env=dict(os.environ, LAB_NVCC="", LAB_PACKAGES=""))


@pytest.fixture(scope="module")
def runs():
    """Every program and its twin, run once, as many at a time as there are cores."""
    jobs = [(name, mended) for name in OUTPUTS for mended in (False, True)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(jobs, pool.map(sim, jobs)))


def faults_of(done):
    report = json.loads(done.stdout.splitlines()[-1])
    return report["host_faults"] + [fault for kernel in report["kernels"] for fault in kernel["faults"]]


def test_every_program_is_here():
    assert {path.stem for path in HERE.glob("*.cu")} == set(OUTPUTS)


@pytest.mark.parametrize("name", OUTPUTS)
def test_fault_is_named_at_its_line(runs, name):
    done = runs[name, False]
    wanted = {(number, line.split("// FAULT ")[1])
              for number, line in enumerate((HERE / f"{name}.cu").read_text().splitlines(), 1) if "// FAULT " in line}
    assert wanted and done.returncode == 4, done.stdout + done.stderr
    faults = faults_of(done)
    found = {(fault["line"], fault["kind"].replace("_", " ")) for fault in faults}
    others = {(fault.get("other") or {}).get("line") for fault in faults}
    assert found >= wanted
    assert {line for line, _ in found} <= {line for line, _ in wanted} | others


@pytest.mark.parametrize("name", OUTPUTS)
def test_mended_twin_is_silent(runs, name):
    done = runs[name, True]
    assert done.returncode == 0, done.stdout + done.stderr
    assert not faults_of(done)
    assert "\n".join(done.stdout.splitlines()[:-1]) + "\n" == OUTPUTS[name]
