#!/usr/bin/env python3
"""Compares the machine code of kernels in two builds: which are the same, and by how many instructions others differ.

    python3 tools/sass.py BUILD_BEFORE BUILD_AFTER [--only TEXT]

Reads every object of a stage's GPU kernel by cuobjdump. A kernel is named by its stage and its own name, without the
file or the anonymous namespace it stands in, so that a kernel that moves to another file is still found. Exit status 1 if
a kernel differs, or is in one build alone.
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys

ADDRESS = re.compile(r"/\*[0-9a-f]{4,}\*/")
ENCODING = re.compile(r"/\* 0x[0-9a-f]{16} \*/")
# What a name has of the file and namespace that it stands in.
HOME = re.compile(r"\(anonymous namespace\)::|_GLOBAL__N__\w+?::|\b\w*_cuh?_[0-9a-f]{8}(_\d+)?\b")


def demangled(names):
    text = subprocess.run(["cu++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout
    return text.splitlines()


def kernels(build):
    """{stage, kernel's name and architecture: the instructions of each kernel of that name, in order}."""
    found = collections.defaultdict(list)
    for path in sorted(pathlib.Path(build).glob("cmake/cuda/CMakeFiles/*-gpu-kernel.dir/**/*.o")):
        stage = next(part for part in path.parts if part.endswith("-gpu-kernel.dir")).removesuffix("-gpu-kernel.dir")
        text = subprocess.run(["cuobjdump", "-sass", str(path)], capture_output=True, text=True, check=True).stdout
        architecture, name, body = "", "", []
        codes = []
        for line in text.splitlines() + ["\tcode for end"]:
            if match := re.match(r"\s*(?:code for (\S+)|Function : (\S+))$", line):
                if name:
                    codes.append((architecture, name, body))
                architecture, name, body = match[1] or architecture, match[2] or "", []
            elif name and ADDRESS.search(line):
                body.append(ENCODING.sub("", ADDRESS.sub("", line)).strip())
        names = demangled([name for _, name, _ in codes])
        for (architecture, _, body), name in zip(codes, names):
            found[f"{stage} {HOME.sub('', name)} {architecture}"].append("\n".join(body))
    return {name: sorted(bodies) for name, bodies in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--only", default="", help="kernels whose stage and name hold this")
    arguments = parser.parse_args()
    before, after = (kernels(build) for build in (arguments.before, arguments.after))
    same, differing = 0, 0
    for name in sorted(before.keys() | after.keys()):
        if arguments.only not in name:
            continue
        if before.get(name) == after.get(name):
            same += 1
            continue
        differing += 1
        counts = [f"{sum(len(body.splitlines()) for body in side[name])} instructions" if name in side else "absent"
                  for side in (before, after)]
        print(f"{name}: {counts[0]} before, {counts[1]} after")
    print(f"{same} kernels are the same, {differing} differ")
    if same + differing == 0:
        sys.exit("no kernel found: name two build folders in which the GPU side is built")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
