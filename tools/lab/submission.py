"""`./lab bench --submit DIR`: a bench whose results, with all else that a pull request of them needs, are put into DIR.

    submit [--check] [argument of bench ...]

--check: only whether it can be done, before anything is built.
"""
import datetime
import hashlib
import json
import pathlib
import shlex
import subprocess
import sys

from machine import BUILD, ROOT, Unusable, has_gpu_driver
from plotted_run import status_of, take

sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools/checks")]
from report import text_of  # noqa: E402

PROGRAM = BUILD / "bin/convladder"
GUIDE = "docs/measure-your-gpu.md"
# What would leave results that are not of the ladder's own stages and workloads.
OTHERS = ("--stage", "--shape", "--padding", "--json", "--plot", "--backend", "--shards", "--gpu")


MEASURED = ("chapters", "common", "cmake", "CMakeLists.txt")  # what the programs are made of


def git(*words):
    try:
        done = subprocess.run(["git", "-C", ROOT, *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def require_usable(words, folder):
    """Before anything is built or measured."""
    for word in words:
        option = word.partition("=")[0]
        if option == "--":
            raise Unusable("bench --submit takes nothing for Google Benchmark: leave out what follows --")
        if option in OTHERS:
            raise Unusable(f"bench --submit measures whole tracks on a GPU: leave out {option}")
    if git("rev-parse", "HEAD") is None:
        raise Unusable("bench --submit names the commit that was measured: it needs git, and a clone of the project")
    if git("status", "--porcelain", "--untracked-files=no"):
        raise Unusable("bench --submit measures what is committed: commit or undo your changes (git status lists them)")
    folder = pathlib.Path(folder)
    others = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if set(others) - {"results.json", "submission.json"}:
        raise Unusable(f"--submit: '{folder}' holds other files: name a folder of its own")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        raise Unusable(f"--submit: cannot make the folder '{folder}': name one that can be written") from None
    if not has_gpu_driver():
        raise Unusable("bench --submit measures a GPU, and there is no driver of one here")


def measured_commit():
    """The last one that changed what was measured: a later one of results alone may be squashed with others."""
    return git("log", "-1", "--format=%H", "--", *MEASURED)


def board(name):
    """What the driver tells of the GPU: its own version, the limit of the power, the highest clock. None where it does
    not."""
    facts = {"driver": None, "power_limit_w": None, "most_sm_mhz": None}
    try:
        lines = subprocess.run(["nvidia-smi", "--format=csv,noheader,nounits",
                                "--query-gpu=name,driver_version,power.limit,clocks.max.sm"],
                               text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.splitlines()
    except OSError:
        return facts
    for line in lines:
        own, *cells = [cell.strip() for cell in line.split(",")]
        if own == name and len(cells) == 3:
            watts, clock = (float(cell) if cell.replace(".", "", 1).isdigit() else None for cell in cells[1:])
            return {"driver": cells[0], "power_limit_w": watts, "most_sm_mhz": clock}
    return facts


def host():
    """The processor and the system; no name of the machine or of its user."""
    def line_of(path, key):
        try:
            lines = pathlib.Path(path).read_text().splitlines()
        except OSError:
            return None
        return next((line.partition(sign)[2].strip(' \t"') for line in lines for sign in ":="
                     if line.partition(sign)[0].strip() == key), None)

    return {"processor": line_of("/proc/cpuinfo", "model name"), "system": line_of("/etc/os-release", "PRETTY_NAME")}


def write(folder, words):
    """Writes submission.json beside results.json."""
    results = folder / "results.json"
    report = json.loads(results.read_text())
    device = {key: report["device"][key] for key in ("name", "compute_capability")}
    submission = {
        "commit": measured_commit(), "command": shlex.join(["./lab", "bench", *words]),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "device": device | board(device["name"]), "versions": report["toolchain"], "host": host(),
        "sha256": {"results.json": hashlib.sha256(results.read_bytes()).hexdigest()}}
    (folder / "submission.json").write_text(text_of(submission) + "\n")


def run(words):
    check = words[:1] == ["--check"]
    folder, words = take("--submit", words[check:], "a folder: --submit DIR")
    if check:
        require_usable(words, folder)
        return 0
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("results.json", "submission.json"):  # of an earlier run
        (folder / name).unlink(missing_ok=True)
    status = status_of(subprocess.run([PROGRAM, "bench", *words, "--backend", "gpu", "--json", folder / "results.json"]))
    if not (folder / "results.json").exists():
        return status or 2
    write(folder, words)
    checked = subprocess.run([sys.executable, ROOT / "tools/checks/check_submissions.py", folder], stdout=sys.stderr)
    if checked.returncode not in (0, 77):
        print(f"./lab: these results cannot be submitted as they are: see above, and {GUIDE}", file=sys.stderr)
        return status or 1
    print(f"./lab: {folder} has what a pull request of your results needs: {GUIDE} tells how", file=sys.stderr)
    return status
