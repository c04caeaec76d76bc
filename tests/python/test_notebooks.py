"""The notebooks of the lessons run as they are made, all in one kernel, against the package that is installed."""
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/lab"))

jupytext = pytest.importorskip("jupytext")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("matplotlib")

import lesson_notebook  # noqa: E402
import notebook_cells  # noqa: E402
from machine import tracks  # noqa: E402

STAGES = {path.parent: json.loads(path.read_text()) for path in sorted(ROOT.glob("chapters/*/stage.json"))}


def notebook_of(chapter, folder):
    return jupytext.reads(lesson_notebook.percent(lesson_notebook.parts(chapter, folder)), fmt="py:percent")


def outputs(notebook, kind):
    """What the cells printed, or drew."""
    found = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    if kind == "text":
        return "".join(output.get("text", "") for output in found)
    return [output["data"]["image/png"] for output in found if "image/png" in output.get("data", {})]


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kernel")
    from jupyter_client.manager import KernelManager
    manager = KernelManager(kernel_name="python3")
    environment = dict(os.environ, MPLCONFIGDIR=str(folder), CONVLADDER_TUNED=str(folder))
    environment.pop("MPLBACKEND", None)  # with another than the notebook's, no picture comes back
    manager.start_kernel(cwd=str(ROOT), env=environment)
    yield manager
    manager.shutdown_kernel(now=True)


def execute(notebook, kernel):
    """An error in a cell is an exception here. Each notebook begins with no names of the one before."""
    reset = jupytext.reads("# %%\nget_ipython().run_line_magic('reset', '-f')\n", fmt="py:percent")
    for each in (reset, notebook):
        nbclient.NotebookClient(each, km=kernel, timeout=120).execute(reset_kc=False, cleanup_kc=False)


@pytest.mark.parametrize("chapter", STAGES, ids=lambda chapter: chapter.name)
def test_notebook_runs(chapter, kernel):
    stage = STAGES[chapter]
    notebook = notebook_of(chapter, ROOT / "build/notebooks")
    execute(notebook, kernel)
    text, pictures = outputs(notebook, "text"), outputs(notebook, "pictures")
    assert f"{notebook_cells.label(stage)} " in text
    if tracks()[stage["track"]]:
        assert len(pictures) == 1 and " µs, with the copies" in text
        return
    assert len(pictures) == 3  # the result, the lines, what changes
    counted = re.search(rf"^ +predicted .*{notebook_cells.label(stage)}.*\n(?:.*\n)*?flops +(\S+) +(\S+)", text, re.M)
    assert counted and counted[1] == counted[2] != "0"
    lines = re.findall(r"^ +[\d,]+ +[\d,]+ +[\d,]+ +(\d+)  (.*)$", text, re.M)
    assert lines and all(code for _, code in lines)
    if stage["number"] in notebook_cells.KNOBS:
        knob, values, _ = notebook_cells.KNOBS[stage["number"]]
        assert all(f"{knob}={value} " in text or f"{knob}={value}\n" in text for value in values)


def test_setup_installs_what_is_missing(tmp_path, monkeypatch):
    import matplotlib.pyplot  # noqa: F401  before anything is replaced
    found, calls = importlib.util.find_spec, []
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "convladder" else found(name))
    monkeypatch.setattr(subprocess, "run", lambda words, check: calls.append([str(word) for word in words]))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RuntimeError, match="fill in ADDRESS"):
        exec(notebook_cells.SETUP, {})
    clone = str(tmp_path / "convladder")
    install = [["bash", f"{clone}/lab", "doctor", "--install-packages"],
               [sys.executable, "-m", "pip", "install", clone, "matplotlib"]]
    exec(notebook_cells.SETUP.replace('ADDRESS = ""', 'ADDRESS = "there"'), {})
    assert calls == [["git", "clone", "there", clone], *install]
    pathlib.Path(clone).mkdir()
    pathlib.Path(clone, "lab").touch()
    exec(notebook_cells.SETUP, {})
    assert calls[3:] == install


def test_error_in_a_cell_fails(kernel):
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="the cell's own"):
        execute(jupytext.reads("# %%\nraise ValueError(\"the cell's own\")\n", fmt="py:percent"), kernel)
