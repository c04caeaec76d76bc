#!/usr/bin/env python3
"""Exports the labs for students: `./lab handout DIR`.

The copy has all that building, testing and grading need. It has no solutions, no instructor's notes, and no tests that
hold answers. Parts of pages between <!-- instructors --> and <!-- /instructors --> are left out too. In a git checkout
the files that git knows are copied, as they are now; elsewhere all files but what building makes.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEFT_OUT = ("solutions/", "tests/labs/", "tests/classroom/", "docs/instructors", "docs/classroom/",
            "docs/results/nvidia-h200-lab-", ".ci/", ".git")
MADE_BY_BUILDS = re.compile(r"(build[^/]*|\.venv-cuda|\.git|__pycache__)(/|$)|.*/__pycache__/")
NOTES = re.compile(r"[ \t]*<!-- instructors -->.*?<!-- /instructors -->[ \t]*\n?", re.S)


class Failure(Exception):
    pass


def project_files():
    names = []
    if (ROOT / ".git").exists() and shutil.which("git"):
        output = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, text=True).stdout
        names = [name for name in output.split("\0") if name and (ROOT / name).is_file()]
    if "lab" not in names:  # no checkout, or one that knows nothing yet
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file()]
    return sorted(name for name in names if not MADE_BY_BUILDS.match(name))


def is_text(data):
    return b"\0" not in data


def secrets():
    """Lines that only solutions have: of their code, and of their explanations."""
    sys.path.insert(0, str(ROOT / "solutions"))
    sys.dont_write_bytecode = True
    import generate  # solutions/generate.py

    kernels = {line.strip() for path in ROOT.glob("chapters/*/*.cu") if path.name != "exercise.cu"
               for line in path.read_text().splitlines()}
    lines = {}
    for folder in sorted(ROOT.glob("solutions/*/")):
        for path in sorted(folder.glob("*")):
            if path.name == "exercise.cu":
                candidates = generate.split(path.read_text())[1]
            elif path.suffix == ".md":
                candidates = path.read_text().splitlines()
            else:
                continue
            for line in candidates:
                text = line.strip()
                if len(text) >= (24 if path.suffix == ".cu" else 60) and text not in kernels:
                    lines[text] = path.relative_to(ROOT)
    return lines


def check(folder):
    known = secrets()
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or not is_text(path.read_bytes()):
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if line.strip() in known:
                raise Failure(f"{path.relative_to(folder)}:{number} holds a line of {known[line.strip()]}; take it out")


def export(target):
    if not (ROOT / "solutions").is_dir():
        raise Failure("this is a student's copy already: hand out from the full project")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise Failure(f"'{target}' exists and is not an empty folder: name a new one")
    if not target.parent.is_dir():
        raise Failure(f"there is no folder '{target.parent}'")
    if not os.access(target.parent, os.W_OK):
        raise Failure(f"cannot write '{target.parent}'")
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as name:
        part = pathlib.Path(name) / "handout"
        for file in project_files():
            if file.startswith(LEFT_OUT):
                continue
            copy = part / file
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / file, copy)
            if copy.suffix == ".md":
                copy.write_text(NOTES.sub("", copy.read_text()))
        shutil.copy2(ROOT / ".gitignore", part)
        check(part)
        if target.exists():
            target.rmdir()
        part.rename(target)


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        asked = sys.argv[1:] in (["--help"], ["-h"])
        print("usage: ./lab handout DIR\n\n" + __doc__.split("\n\n", 1)[1].strip() if asked else
              "./lab: handout: name the folder to make: ./lab handout DIR", file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    target = pathlib.Path(sys.argv[1]).absolute()
    try:
        export(target)
    except Failure as error:
        print(f"./lab: handout: {error}", file=sys.stderr)
        return 2
    print(f"{target}: a student begins with ./lab grade 1")
    return 0


if __name__ == "__main__":
    sys.exit(main())
