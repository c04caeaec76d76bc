#!/usr/bin/env python3
"""Holds every #include of the tree to the map in common/README.md, and the map to the tree.

What NVRTC compiles when a program runs includes no headers but the tree's and those that NVRTC finds: it has no
standard library. Such text begins in a source with R"(#include "chapters/...", or is a file of chapters that
cmake/cuda/CMakeLists.txt embeds.

    python3 tools/checks/check_includes.py [ROOT]
"""
import json
import pathlib
import re
import sys

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.M)
ROW = re.compile(r"^\| `([^`]+)` \|[^|]*\|([^|]*)\|$", re.M)
COMPILED_AT_RUN_TIME = re.compile(r'R"\(#include "(chapters/[^"]+)"')
EMBEDDED = re.compile(r"PROJECT_SOURCE_DIR\}/(chapters/\S+\.cu)$", re.M)
DIRECTIVE = re.compile(r'^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif|include)\b[ \t]*(.*)$', re.M)
TERM = re.compile(r"(!?)[ ]*defined\((\w+)\)")
NVRTC_DEFINES = {"__CUDACC__": True, "__CUDACC_RTC__": True, "SIMT_PLAIN_CUDA": False}
NVRTC_FINDS = {"cstdint", "cuda_fp16.h", "mma.h"}
SOURCES = ("*.cpp", "*.hpp", "*.cu", "*.cuh", "*.in")


def folder_of(path):
    """The row of the map that a file belongs to: a chapter's test is a test."""
    if path.name == "test.cpp":
        return "tests"
    if path.parts[:2] == ("common", "cuda"):
        return "cuda"
    return str(path.parent.relative_to("common")) if path.parts[0] == "common" else path.parts[0]


def holds(condition):
    """Whether a condition of #if holds for NVRTC; None: that is not known."""
    known = True
    for term in condition.split("//")[0].split("&&"):
        match = TERM.fullmatch(term.strip())
        value = NVRTC_DEFINES.get(match[2]) if match else None
        if value is None:
            known = None
        elif value == bool(match[1]):
            return False
    return known


def seen_by_nvrtc(text):
    """The arguments of the #includes that NVRTC may reach."""
    branches = []  # of each open #if: whether this branch is read, and whether a later one may be
    for kind, rest in DIRECTIVE.findall(text):
        if kind == "include":
            if all(read for read, _ in branches):
                yield rest
        elif kind == "endif":
            branches.pop()
        else:
            if kind in ("ifdef", "ifndef"):
                rest = ("!" if kind == "ifndef" else "") + f"defined({rest.split()[0]})"
            open_still = branches.pop()[1] if kind in ("elif", "else") else True
            value = True if kind == "else" else holds(rest)
            branches.append((open_still and value is not False, open_still and value is not True))


def not_for_nvrtc(root, starts):
    """Headers that NVRTC does not find. @param starts  the files that it compiles, from the root"""
    seen, waiting = set(), sorted(starts)
    while waiting:
        name = waiting.pop()
        if name in seen or not (root / name).is_file():
            continue
        seen.add(name)
        for included in seen_by_nvrtc((root / name).read_text()):
            header = re.match(r'["<]([^">]+)[">]', included)
            if not header:
                continue
            if included[0] == '"':
                waiting.append(header[1])
            elif header[1] not in NVRTC_FINDS:
                yield f"{name}: includes <{header[1]}>, which NVRTC does not find, and it compiles this file"


def problems(root):
    rows = dict(ROW.findall((root / "common/README.md").read_text()))
    named = {folder: re.findall(r"(\(?)`([^`]+)`", names) for folder, names in rows.items()}

    def passed_on(folder, seen=()):
        """What including a folder brings: itself, and what it may include and passes on."""
        below = [name for bracket, name in named.get(folder, []) if not bracket and name not in seen]
        return {folder}.union(*(passed_on(name, (*seen, folder)) for name in below))

    allowed = {folder: {folder}.union(*(passed_on(name) for _, name in names)) for folder, names in named.items()}
    used, starts = set(), set()
    embedding = root / "cmake/cuda/CMakeLists.txt"
    for pattern in EMBEDDED.findall(embedding.read_text()) if embedding.is_file() else ():
        starts.update(str(file.relative_to(root)) for file in root.glob(pattern))
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
        text = file.read_text()
        starts.update(COMPILED_AT_RUN_TIME.findall(text))
        for name in INCLUDE.findall(text):
            target = pathlib.Path(name)
            if not (root / target).is_file():
                yield f'{path}: includes "{name}", which is not there: paths begin at the top of the tree'
            elif folder_of(target) not in allowed[folder]:
                yield f'{path}: includes "{name}", and the map in common/README.md does not let {folder} do that'
            elif folder == folder_of(target) == "chapters" and path.parts[1] != target.parts[1]:
                if target.parts[1] not in json.loads((file.parent / "stage.json").read_text()).get("includes", []):
                    yield f'{path}: includes "{name}": list {target.parts[1]} under "includes" in its stage.json'
    yield from not_for_nvrtc(root, starts)
    for folder in rows.keys() - used:
        yield f"common/README.md: no source is in {folder}"


if __name__ == "__main__":
    found = list(problems(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]))
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(1 if found else 0)
