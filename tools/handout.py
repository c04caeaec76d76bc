#!/usr/bin/env python3
"""Exports the labs for students: `./lab handout DIR`.

The copy has all that building, testing and grading need. It has no solutions, no answers to the question bank, no
instructor's notes, and no tests that hold answers. Parts of pages between <!-- instructors --> and <!-- /instructors -->
are left out too. In a git checkout the files that git knows are copied, as they are now; elsewhere all files but what
building makes.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Of a folder that is no git checkout, what belongs to the project.
TOP = {"chapters", "cmake", "common", "docs", "examples", "python", "tests", "tools", "lab", "CMakeLists.txt",
       "CMakePresets.json", "CONTRIBUTING.md", "Dockerfile", "LICENSE", "README.md", "pyproject.toml", ".clang-format",
       ".clang-tidy", ".devcontainer", ".dockerignore"}
LEFT_OUT = ("solutions/", "tools/generate.py", "tests/labs/", "tests/classroom/", "docs/instructors",
            "docs/classroom/answers.md", "docs/classroom/syllabus.md", "docs/classroom/Dockerfile",
            "docs/classroom/github-classroom.yml", "docs/classroom/gradescope/",
            "docs/results/nvidia-h200-lab-", ".ci/", ".git")
MADE_BY_BUILDS = re.compile(r"(build[^/]*|\.venv-cuda|\.venv-baselines|\.git|__pycache__)(/|$)|.*/__pycache__/")
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
        names = [name for name in names if name.split("/")[0] in TOP]
    return sorted(name for name in names if not MADE_BY_BUILDS.match(name))


def unknown_to_git():
    """Files that a checkout has and git neither knows nor ignores: they are not handed out."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        return []
    command = ["git", "-C", ROOT, "ls-files", "-z", "--others", "--exclude-standard"]
    names = subprocess.run(command, capture_output=True, text=True).stdout.split("\0")
    return [name for name in names if name and not name.startswith(LEFT_OUT)]


def is_text(data):
    return b"\0" not in data


def kernels():
    """Of each chapter, and of its steps, the files that they are built from."""
    for manifest in ROOT.glob("chapters/**/stage.json"):
        yield from manifest.parent.glob(manifest.parent.name.split("-", 1)[1].replace("-", "_") + ".c*")
        yield from manifest.parent.glob("*.cuh")
        yield from manifest.parent.glob("*.hpp")


def words(text):
    return " ".join(text.split())


def solution_lines():
    """Lines that only solutions and the question bank's answers have, of code and of explanations, and where they
    stand."""
    sys.path.insert(0, str(ROOT / "tools"))
    sys.dont_write_bytecode = True
    import generate  # tools/generate.py

    folders = sorted(ROOT.glob("solutions/*/"))
    # What the lessons show anyway, and what the exercises give.
    given = [generate.split(path.read_text())[0] for folder in folders for path in folder.glob("exercise.c*")]
    public = words(" ".join([path.read_text() for path in kernels()] + given))
    lines = {}
    explained = [path for folder in folders for path in (*folder.glob("exercise.c*"), folder / "README.md")]
    for path in (*explained, ROOT / "docs/classroom/answers.md"):
        code = path.suffix != ".md"
        for line in generate.split(path.read_text())[1] if code else path.read_text().splitlines():
            text = words(line)
            if len(text) >= (24 if code else 60) and text not in public:
                lines[text] = path.relative_to(ROOT)
    return lines


def check(folder):
    known = solution_lines()
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or not is_text(path.read_bytes()):
            continue
        text = words(path.read_text(errors="replace"))
        for line, origin in known.items():
            if line in text:
                raise Failure(f"{path.relative_to(folder)} holds a line of {origin}; take it out: {line}")


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
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that nothing stays behind
    try:
        export(target)
    except KeyboardInterrupt:
        print("./lab: stopped", file=sys.stderr)
        return 130
    except Failure as error:
        print(f"./lab: handout: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"./lab: handout: cannot make '{target}': {error.strerror or error}; choose another folder", file=sys.stderr)
        return 2
    unknown = unknown_to_git()
    if unknown:
        print(f"./lab: handout: left out, since git does not know them: {', '.join(unknown[:5])}"
              f"{' and more' if len(unknown) > 5 else ''}", file=sys.stderr)
    print(f"{target}: a student begins with ./lab grade 1")
    return 0


if __name__ == "__main__":
    sys.exit(main())
