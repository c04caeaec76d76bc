#!/usr/bin/env python3
"""Fails if ptxas says of a kernel that it spills registers, has a stack frame, or has its wgmmas serialised.

A kernel that does is right, and slow: no test of its results sees it. ptxas tells in what nvcc prints with -Xptxas=-v,
which the build keeps beside the object file (cmake/cuda/keep-ptxas-report.sh).
"""

import pathlib
import re
import shutil
import subprocess
import sys

COMPILING = re.compile(r"^ptxas info *: Compiling entry function '([^']+)' for '(\w+)'")
PROPERTIES = re.compile(r"^ptxas info *: Function properties for (\S+)")
MEMORY = re.compile(r"^ *(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
# Of wgmmas that are serialised, and why; of waits that ptxas put among them. The message names the kernel.
LOSS = re.compile(r"^ptxas \w+ *: (.*(?:\(C75\d\d\)|Potential Performance Loss|wgmma.*serialized|spilled).*)")


def demangled(text):
    if not shutil.which("c++filt"):
        return text
    return subprocess.run(["c++filt"], input=text, check=True, capture_output=True, text=True).stdout


def problems(report):
    """What a report says is wrong: a line for each kernel, architecture and fault, or that it tells of no kernel."""
    found, architecture, function, kernels, told = [], "?", "?", 0, 0
    for line in report.splitlines():
        if match := COMPILING.match(line):
            function, architecture = match.groups()
            kernels += 1
        elif match := PROPERTIES.match(line):
            function = match[1]
        elif match := MEMORY.match(line):
            told += 1
            if any(int(size) for size in match.groups()):
                found.append(f"{function} for {architecture}: {line.strip()}")
        elif match := LOSS.match(line):
            found.append(match[1])
    if told < kernels:
        found.append(f"tells of the memory of {told} kernels out of {kernels}")
    return found if told else [*found, "tells of no kernel's registers: was it compiled with -Xptxas=-v?"]


def main():
    paths = [pathlib.Path(argument) for argument in sys.argv[1:]]
    if not paths:
        sys.exit("name the reports of ptxas to read")
    failed = False
    for path in paths:
        found = problems(path.read_text()) if path.exists() else ["no such report: build the stage's kernel first"]
        for problem in found:
            print(f"{path.name}: {demangled(problem).strip()}")
        failed = failed or bool(found)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
