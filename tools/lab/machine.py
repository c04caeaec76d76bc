"""Where the project lies, and what this machine has."""
import contextlib
import glob
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
TRACKS = ROOT / "common/harness/ladder/tracks.json"
CUDA_FOLDER = ROOT / ".venv-cuda"
CUDA_FROM_PYPI = ROOT / "cmake/cuda-from-pypi.sh"
BASELINES = ROOT / ".venv-baselines"
# What `lab` has found out: the compiler for GPUs, empty where there is none, and the packages that the project needs.
NVCC = os.environ.get("LAB_NVCC", "")
PACKAGES = os.environ.get("LAB_PACKAGES", "").split()


def tracks():
    """{name: whether its stages run on the host, and not on a device}, in the ladder's order."""
    return {track["name"]: track["runs_on"] == "host" for track in json_of(TRACKS)}


class Unusable(Exception):
    """The command cannot be done here, or not as it was called: one line for the person who called."""


@contextlib.contextmanager
def results_of(*paths):
    """Around what reads files of results, which may be another version's, or edited."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError, ZeroDivisionError) as error:
        raise Unusable(f"{' or '.join(paths)} is not as this version writes its results ({type(error).__name__}: {error}): "
                       "measure again") from None


def json_of(path):
    """What a file of the project holds, which somebody may be editing."""
    try:
        return json.loads(path.read_text())
    except ValueError as error:
        raise Unusable(f"{path.relative_to(ROOT)} is not JSON: {error}") from None


def first_line(*command):
    """Of what a program prints; empty where it cannot run."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace")
    except OSError:
        return ""
    return done.stdout.strip().split("\n")[0] if done.returncode == 0 else ""


def has_gpu_driver():
    return os.path.exists("/dev/nvidiactl") or first_line("nvidia-smi", "-L") != ""


def cuda_tool(name):
    """A tool of the CUDA toolkit, on PATH or beside nvcc; empty where there is none."""
    return shutil.which(name) or (NVCC and shutil.which(name, path=os.path.dirname(NVCC))) or ""


def find_file(name, *folders):
    """The first of that name in the folders or one level below, then in the system's folders of libraries."""
    for folder in [*folders, "/usr/lib", "/usr/local/lib"]:
        for place in (folder, os.path.join(folder, "*")):
            found = sorted(glob.glob(os.path.join(place, name)))
            if found:
                return found[0]
    return ""


def missing_packages():
    """None where this is no Debian or Ubuntu."""
    try:
        done = subprocess.run(["dpkg-query", "-W", "-f=${Package} ${Status}\n", *PACKAGES], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    except OSError:
        return None
    return [name for name in PACKAGES if f"{name} install ok installed" not in done.stdout.splitlines()]


def left_out(what):
    """Whether cmake has said that it does without it."""
    try:
        return f"-- no {what} (" in (BUILD / "configure.log").read_text()
    except OSError:
        return False


def driver_takes_cuda():
    """Whether the GPU's driver is new enough for the CUDA of PyPI; says what to do where it is not."""
    return subprocess.run([CUDA_FROM_PYPI, "--check-driver"]).returncode == 0


def baselines_python():
    """The Python of bench's rows of PyTorch and Triton, as the program looks for it."""
    own = BASELINES / "bin/python"
    return os.environ.get("CONVLADDER_PYTHON") or (str(own) if own.exists() else "python3")


def install_baselines():
    """What bench's rows beside the stages stand on, from PyPI into an environment of its own: for the CPU always, for
    a GPU where the GPU side can be built, and PyTorch, with Triton, where there is a GPU and no PyTorch yet."""
    steps = [["scipy-openblas32", "onednn-cpu-gomp", "onednn-devel-cpu-gomp"]]
    if NVCC:
        steps.append(["--no-deps", "nvidia-cutlass==4.*", "nvidia-npp==13.*"])  # headers and libraries alone
    if has_gpu_driver() and not first_line(baselines_python(), "-c", "import torch; print(torch.__version__)"):
        steps.append(["torch"])
    done = BASELINES / "installed"  # its time says to `lab` that cmake must look again
    if done.exists():
        done.unlink()
    python = BASELINES / "bin/python"
    commands = [["python3", "-m", "venv", "--system-site-packages", BASELINES]]
    commands += [[python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *step] for step in steps]
    for command in commands:
        if subprocess.run(command, stdout=sys.stderr).returncode != 0:
            raise Unusable("the baselines could not be taken from PyPI: look at the message above")
    done.touch()
    return [name for step in steps for name in step if not name.startswith("-")]


def install_cuda():
    if subprocess.run([CUDA_FROM_PYPI, CUDA_FOLDER]).returncode != 0:
        raise Unusable("CUDA could not be taken from PyPI: look at the message above")
