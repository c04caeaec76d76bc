#!/usr/bin/env python3
"""Fails if a function is defined both by an instrumented object file and by a plain one.

Kernel files are compiled with hooks. A template or inline function that plain code defines too is one symbol to the
linker, which keeps either copy: the kernel's accesses would then go unseen, silently.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile


def definitions(nm, objects):
    """Maps each function that others than its object file can see to the first of the files that defines it."""
    found = {}
    for path in objects:
        listing = subprocess.run([nm, "--defined-only", "-P", str(path)], check=True, capture_output=True, text=True)
        for line in listing.stdout.splitlines():
            name, kind = line.split()[:2]
            if kind in "TWi":  # global, weak, or chosen at load time; data carries no hooks
                found.setdefault(name, path)
    return found


def clashes(nm, instrumented, plain):
    """The functions that both groups of files define, each with a file of either group."""
    with_hooks, without = definitions(nm, instrumented), definitions(nm, plain)
    return [(name, with_hooks[name], without[name]) for name in sorted(with_hooks.keys() & without.keys())]


def self_test(nm, compiler):
    """Whether a function that two files share is found, and two files that share none are not."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        sources = {
            "kernel": "inline int shared(int* p) { return *p; } int kernel(int* p) { return shared(p); }",
            "plain": "inline int shared(int* p) { return *p; } int plain(int* p) { return shared(p); }",
            "apart": "static inline int shared(int* p) { return *p; } int apart(int* p) { return shared(p); }",
        }
        for name, text in sources.items():
            (folder / f"{name}.cpp").write_text(text)
            flags = ["-fsanitize=thread"] if name == "kernel" else []
            subprocess.run([compiler, *flags, "-c", f"{name}.cpp", "-o", f"{name}.o"], cwd=folder, check=True)
        kernel, plain, apart = ([folder / f"{name}.o"] for name in sources)
        return [name for name, _, _ in clashes(nm, kernel, plain)] == ["_Z6sharedPi"] and not clashes(
            nm, kernel, apart
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nm", default="nm")
    parser.add_argument("--instrumented", type=pathlib.Path, help="file that lists the instrumented object files")
    parser.add_argument("--plain", type=pathlib.Path, help="file that lists the others")
    parser.add_argument("--self-test", metavar="COMPILER", help="check this check instead")
    arguments = parser.parse_args()
    if arguments.self_test:
        if not self_test(arguments.nm, arguments.self_test):
            sys.exit("the check did not find the symbol that it was to find")
        return
    lists = [list(filter(None, path.read_text().split("\n"))) for path in (arguments.instrumented, arguments.plain)]
    # Programs that are not built are not checked; without the kernels there is nothing to check.
    instrumented, plain = ([name for name in group if pathlib.Path(name).exists()] for group in lists)
    if not instrumented or not plain:
        sys.exit("there are no object files to check: build the tests first")
    found = clashes(arguments.nm, instrumented, plain)
    for name, kernel, other in found:
        print(f"{name} is defined in {kernel} (with hooks) and in {other} (without): make it always inline or internal")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
