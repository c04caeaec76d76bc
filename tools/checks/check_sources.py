#!/usr/bin/env python3
"""Fails if a work that is followed has no name: stages, lessons and pages against docs/references.md.

    python3 tools/checks/check_sources.py [ROOT]

An entry is a heading of the third level, its key. The key `source` of a stage.json reads "KEY: what of it; KEY: ...".
"""
import json
import pathlib
import re
import sys

REFERENCES = "docs/references.md"
ENTRY = re.compile(r"^### ([a-z0-9-]+)$", re.M)
LINK = re.compile(r"references\.md#([\w-]+)")
SECTION = "## Sources"
# What does not say whose it is. "The source" alone is a kernel's code: it has requests and lines, but claims nothing.
GAP = r"(?:\s|//+!?|#)+"  # words may stand on two lines, of a comment too
VERBS = ("says?|said|states?|names?|calls?|finds?|found|reports?|claims?|describes?|demands?|wants?|writes?|explains?|"
         "blames?|rejects?|counted|measured|leaves?")
ANONYMOUS = re.compile(rf"\b(?:(?:the|a|this|that|its){GAP}(?:paper|tutorial|article)s?\b|"
                       rf"(?:the|its){GAP}sources?(?:'s?{GAP}|{GAP}(?:{VERBS})\b|"
                       rf"{GAP}of{GAP}th(?:is|ese){GAP}stages?\b))", re.I)
TEXTS = ("*.md", "*.hpp", "*.cpp", "*.cu", "*.cuh", "*.in", "*.cmake", "*.py", "*.txt", "stage.json", "lab.json")
SKIPPED = ("build", ".git", ".venv", "docs/results", "tools/checks/check_sources.py", "tests/tools/test_checks.py")


def texts(root):
    for pattern in TEXTS:
        for file in sorted(root.rglob(pattern)):
            path = str(file.relative_to(root))
            if not path.startswith(SKIPPED):
                yield path, file.read_text()


def keys_of(source):
    return [part.partition(":")[0].strip() for part in source.split(";")]


def problems(root):
    entries = ENTRY.findall((root / REFERENCES).read_text())
    for key in sorted({key for key in entries if entries.count(key) > 1}):
        yield f"{REFERENCES}: has two entries {key}"
    used = set()

    def look_up(path, key):
        used.add(key)
        if key not in entries:
            yield f"{path}: {REFERENCES} has no entry {key}"

    for path, text in texts(root):
        for match in ANONYMOUS.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            yield f'{path}:{line}: says "{" ".join(match[0].split())}": name the work, as {REFERENCES} does'
        if path == REFERENCES:
            continue
        if path.endswith("stage.json"):
            for key in keys_of(json.loads(text).get("source", "")):
                yield from look_up(path, key)
        elif path.endswith(".md"):
            for key in LINK.findall(text):
                yield from look_up(path, key)
        if re.fullmatch(r"chapters/[^/]+/README\.md", path):
            heading, _, section = text.rpartition("\n## ")[2].partition("\n")
            if f"## {heading}" != SECTION or not LINK.search(section):
                yield f"{path}: its last section must be '{SECTION}', with links to {REFERENCES}"
    for key in entries:
        if key not in used:
            yield f"{REFERENCES}: nothing follows {key}"


if __name__ == "__main__":
    found = list(problems(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]))
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(1 if found else 0)
