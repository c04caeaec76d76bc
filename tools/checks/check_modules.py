#!/usr/bin/env python3
"""Fails if a module wants a function of the project that the program which loads it does not lend, or if the program
may take the place of one that the module has itself.

    check_modules.py --nm NM --readelf READELF PROGRAM MODULE...

The modules of cuBLAS, cuFFT, cuDNN and NVRTC are loaded while a program runs; a symbol that is missing then shows on a
machine with a GPU alone, where it reads as a library that is not installed. A module has a CUDA runtime of its own:
were its launches finished by the program's function, the program's runtime would be asked about a kernel that it does
not know.
"""

import argparse
import subprocess
import sys

OWN = "convladder"  # as it stands in a mangled name


def symbols(nm, path, which):
    listing = subprocess.run([nm, "--dynamic", which, "-P", path], check=True, capture_output=True, text=True)
    return {line.split()[0] for line in listing.stdout.splitlines()}


def missing(nm, program, modules):
    lent = symbols(nm, program, "--defined-only")
    return [(module, name) for module in modules
            for name in sorted(symbols(nm, module, "--undefined-only")) if OWN in name and name not in lent]


def replaceable(readelf, nm, modules):
    for module in modules:
        relocations = subprocess.run([readelf, "-Wr", module], check=True, capture_output=True, text=True).stdout
        called = {line.split()[4].split("@")[0] for line in relocations.splitlines() if "JUMP_SLO" in line}
        yield from ((module, name) for name in sorted(called & symbols(nm, module, "--defined-only")) if OWN in name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nm", required=True)
    parser.add_argument("--readelf", required=True)
    parser.add_argument("program")
    parser.add_argument("modules", nargs="+")
    arguments = parser.parse_args()
    found = missing(arguments.nm, arguments.program, arguments.modules)
    for module, name in found:
        print(f"{module} wants {name}, which {arguments.program} does not lend", file=sys.stderr)
    replaced = list(replaceable(arguments.readelf, arguments.nm, arguments.modules))
    for module, name in replaced:
        print(f"{module} has {name}, and calls the program's: link it with -Bsymbolic-functions", file=sys.stderr)
    sys.exit(1 if found or replaced else 0)


if __name__ == "__main__":
    main()
