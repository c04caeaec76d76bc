"""The package is the installed one: `pip install .` (see python_package in .ci/run). CONVLADDER_PROGRAM is the command
line's program of the same sources; without it what is compared with it is skipped."""
import json
import os
import subprocess

import numpy as np
import pytest


@pytest.fixture
def command_line(tmp_path):
    """Runs a stage on arrays by the command line: its JSON and its output."""
    program = os.environ.get("CONVLADDER_PROGRAM")
    if not program:
        pytest.skip("CONVLADDER_PROGRAM names no program")

    def run(stage, x, w, *arguments):
        np.save(tmp_path / "x.npy", x)
        np.save(tmp_path / "w.npy", w)
        words = [program, "run", str(stage), "--backend", "sim", "--lines", "--json", "--input", tmp_path / "x.npy",
                 "--filter", tmp_path / "w.npy", "--output", tmp_path / "y.npy", *arguments]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        output = np.load(tmp_path / "y.npy") if done.returncode == 0 else None
        return json.loads(done.stdout) if done.stdout else None, output, done.stderr.strip()

    return run
