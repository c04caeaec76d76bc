"""`./lab docs`: the documentation as a site."""
import fcntl
import os
import shutil
import subprocess
import sys

from machine import BUILD, ROOT, Unusable

DESCRIPTION = "Makes the documentation as a site, in build/docs, and prints its first page's path."
THEME = "/usr/share/doxygen-awesome-css"
MATHJAX = "/usr/share/javascript/mathjax"


def present(path):
    return path if os.path.isdir(path) else ""


def ready():
    return bool(shutil.which("doxygen") and present(THEME) and present(MATHJAX))


def run(_):
    if not ready():
        raise Unusable(f"docs: the site needs doxygen, {THEME} and {MATHJAX}")
    try:
        BUILD.mkdir(exist_ok=True)
        lock = open(BUILD / "lab-lock", "w")
    except OSError:
        raise Unusable(f"docs: cannot write {BUILD}: work as its owner, or clone the project to a folder of your "
                       "own") from None
    with lock:  # as `lab` holds it while it builds
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = [sys.executable, ROOT / "tools/site/build.py", BUILD / "docs", THEME, MATHJAX]
        status = subprocess.run(command, stdout=sys.stderr).returncode
    if status == 0:
        print(BUILD / "docs/html/index.html")
    return status
