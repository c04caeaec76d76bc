"""`./lab bench --plot DIR` and `./lab tune --plot DIR`: the program's run, and drawings of what it has measured.

    plot [--check] COMMAND [argument ...]

--check: only whether the drawings can be made, before the work that gives something to draw.
"""
import importlib.util
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

from machine import BUILD, ROOT, Unusable

PROGRAM = BUILD / "bin/convladder"


def take(option, words, what):
    """The value of the option's last occurrence, or None, and the words without it."""
    value, rest, left = None, [], iter(words)
    for word in left:
        if word == option:
            value = next(left, None)
            if value is None:
                raise Unusable(f"{option} needs {what}")
        elif word.startswith(option + "="):
            value = word.partition("=")[2]
        else:
            rest.append(word)
    return value, rest


def require_folder(folder):
    if not importlib.util.find_spec("matplotlib"):
        raise Unusable("--plot needs matplotlib: apt-get install python3-matplotlib, or python3 -m pip install "
                       "matplotlib")
    try:
        pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError:
        raise Unusable(f"--plot: cannot make the folder '{folder}': name one that can be written") from None


def draw(status, results, folder):
    drawn = subprocess.run([sys.executable, ROOT / "tools/plot.py", results, folder]).returncode
    return status or (2 if drawn else 0)


def status_of(done):
    return done.returncode if done.returncode >= 0 else 128 - done.returncode


def identity(path):
    """Which file lies there, to see whether it was replaced: None where there is none."""
    try:
        file = os.stat(path)
    except OSError:
        return None
    return file.st_dev, file.st_ino, file.st_mtime_ns


def bench(words, benchmark_words, folder, scratch):
    """Draws from the JSON of this run."""
    json, words = take("--json", words, "a file: --json FILE")
    json = json if json is not None else scratch
    before = identity(json)  # of an earlier run, which must not be drawn
    status = status_of(subprocess.run([PROGRAM, "bench", *words, "--json", json, *benchmark_words]))
    after = identity(json)
    return draw(status, json, folder) if after not in (None, before) and os.path.getsize(json) else status


def tune(words, _, folder, scratch):
    """Draws from the log, which the report names in its last line or, with --json, is."""
    with open(scratch, "w") as report:
        status = status_of(subprocess.run([PROGRAM, "tune", *words], stdout=report))
    text = pathlib.Path(scratch).read_text()
    print(text, end="", flush=True)
    if text.startswith("{"):
        return draw(status, scratch, folder)
    last = text.splitlines()[-1:]
    return draw(status, last[0][5:], folder) if last and last[0].startswith("log: ") else status


def run(words):
    check = words[:1] == ["--check"]
    command, *words = words[check:]
    end = words.index("--") if "--" in words else len(words)
    folder, own = take("--plot", words[:end], "a folder: --plot DIR")
    if check:
        require_folder(folder)
        return 0
    signal.signal(signal.SIGINT, lambda *_: None)  # the program ends at Ctrl-C by itself, and keeps what it has found
    with tempfile.TemporaryDirectory() as scratch:
        return {"bench": bench, "tune": tune}[command](own, words[end:], folder, os.path.join(scratch, "results"))
