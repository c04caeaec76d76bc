#!/usr/bin/env python3
"""Finds the paths that pages, build files and comments name and the tree does not hold, and lines that pages quote of a
file that has them no more.

    python3 tools/checks/check_paths.py [ROOT]

A path is a word that begins with one of the top folders and has a slash. Patterns and names to be filled in (NN-name,
*, a folder that building makes) are left alone. A line is quoted as `code` in [name](file); with ", step 3" behind it
the file must number a step so.
"""
import pathlib
import re
import sys

TOP = "chapters|solutions|common|tests|docs|tools|cmake"
# What stands before a path may be part of a longer one, of the build's folder or of a machine's.
PATH = re.compile(rf"(?<![\w.*$}}>/-])(?:\.\./)*((?:{TOP})/[\w./-]*[\w/])(?![\w*<{{$-])")
QUOTED = re.compile(r"`([^`]+)` in \[[^\]]*\]\(([^)\s]+\.(?:cuh?|[ch]pp))\)(?:, step (\d+))?")
PLACEHOLDER = re.compile(r"\bNN\b|\bNAME\b|/(?:name|NN-name)\b")
TEXTS = ("*.md", "CMakeLists.txt", "*.cmake", "*.sh", "*.hpp", "*.cpp", "*.cu", "*.cuh")
SKIPPED = ("build", ".git", "docs/results", ".venv")


def words(text):
    return " ".join(text.split())


def misquoted(page):
    """What the page quotes, each time with the file that does not have it."""
    for code, name, step in QUOTED.findall(words(page.read_text())):
        file = page.parent / name
        text = words(file.read_text()) if file.exists() else ""
        if code not in text:
            yield f"quotes `{code}`, which {name} does not have"
        elif step and not re.search(rf"// {step}\.(?: |$)", text):
            yield f"names step {step} of {name}, which numbers none so"


def problems(root):
    for pattern in TEXTS:
        for page in sorted(root.rglob(pattern)):
            path = page.relative_to(root)
            if str(path).startswith(SKIPPED):
                continue
            if page.suffix == ".md":
                yield from (f"{path}: {problem}" for problem in misquoted(page))
            for number, line in enumerate(page.read_text().splitlines(), 1):
                for name in PATH.findall(line):
                    if not PLACEHOLDER.search(name) and not (root / name).exists():
                        yield f"{path}:{number}: names {name}, which is not there"


if __name__ == "__main__":
    found = list(problems(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]))
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(1 if found else 0)
