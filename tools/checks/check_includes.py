#!/usr/bin/env python3
"""Holds every #include of the tree to the map in common/README.md, and the map to the tree.

    python3 tools/checks/check_includes.py [ROOT]
"""
import json
import pathlib
import re
import sys

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.M)
ROW = re.compile(r"^\| `([^`]+)` \|[^|]*\|([^|]*)\|$", re.M)
SOURCES = ("*.cpp", "*.hpp", "*.cu", "*.cuh", "*.in")


def folder_of(path):
    """The row of the map that a file belongs to: a chapter's test is a test."""
    if path.name == "test.cpp":
        return "tests"
    if path.parts[:2] == ("common", "cuda"):
        return "cuda"
    return str(path.parent.relative_to("common")) if path.parts[0] == "common" else path.parts[0]


def problems(root):
    rows = dict(ROW.findall((root / "common/README.md").read_text()))
    named = {folder: re.findall(r"(\(?)`([^`]+)`", names) for folder, names in rows.items()}

    def passed_on(folder, seen=()):
        """What including a folder brings: itself, and what it may include and passes on."""
        below = [name for bracket, name in named.get(folder, []) if not bracket and name not in seen]
        return {folder}.union(*(passed_on(name, (*seen, folder)) for name in below))

    allowed = {folder: {folder}.union(*(passed_on(name) for _, name in names)) for folder, names in named.items()}
    used = set()
    for file in sorted(file for top in ("common", "chapters", "solutions", "python", "tests", "tools") for pattern in SOURCES
                       for file in (root / top).rglob(pattern)):
        path = file.relative_to(root)
        if path.parts[:2] == ("tests", "sim"):  # plain CUDA programs, which include as such do
            continue
        folder = folder_of(path)
        used.add(folder)
        if folder not in rows:
            yield f"{path}: common/README.md has no row for {folder}"
            continue
        for name in INCLUDE.findall(file.read_text()):
            target = pathlib.Path(name)
            if not (root / target).is_file():
                yield f'{path}: includes "{name}", which is not there: paths begin at the top of the tree'
            elif folder_of(target) not in allowed[folder]:
                yield f'{path}: includes "{name}", and the map in common/README.md does not let {folder} do that'
            elif folder == folder_of(target) == "chapters" and path.parts[1] != target.parts[1]:
                if target.parts[1] not in json.loads((file.parent / "stage.json").read_text()).get("includes", []):
                    yield f'{path}: includes "{name}": list {target.parts[1]} under "includes" in its stage.json'
    for folder in rows.keys() - used:
        yield f"common/README.md: no source is in {folder}"


if __name__ == "__main__":
    found = list(problems(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]))
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(1 if found else 0)
