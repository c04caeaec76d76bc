#!/usr/bin/env python3
"""Fails if a kernel's code is not laid out in the order of its source.

The simulator reconverges a warp by letting the lane with the lowest program counter go first. A block that the compiler
moves behind the function's end, and that jumps back from there, makes its lanes wait for all others: warp requests
would then be counted apart that a GPU issues together.
"""

import argparse
import pathlib
import re
import subprocess
import sys

FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\s+(\S+)\s*(.*)$")
JUMP = re.compile(r"^(j\w+|b|b\.\w+|cbn?z|tbn?z)$")  # x86-64 and 64-bit Arm


def moved_blocks(disassembly):
    """(function, address) of each jump from behind a function's return to before it."""
    found, function, returned = [], None, None
    for line in disassembly.splitlines():
        if match := FUNCTION.match(line):
            function, returned = match[1], None
        elif match := INSTRUCTION.match(line):
            address, operation, operands = int(match[1], 16), match[2], match[3]
            if operation.startswith("ret"):
                returned = address
            elif returned is not None and JUMP.match(operation):
                target = re.search(r"\b([0-9a-f]+) <", operands)
                if target and int(target[1], 16) < returned:
                    found.append((function, f"{address:#x}"))
    return found


SELF_TEST = """\
0000000000000000 <in_order>:
   0:\tje     8 <in_order+0x8>
   8:\tjmp    0 <in_order>
   a:\tret
0000000000000010 <moved>:
  10:\tje     20 <moved+0x10>
  18:\tret
  20:\tjmp    10 <moved>
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--objdump", default="objdump")
    parser.add_argument("--instrumented", type=pathlib.Path, required=True, help="file that lists the object files")
    arguments = parser.parse_args()
    if moved_blocks(SELF_TEST) != [("moved", "0x20")]:
        sys.exit("this check does not find a block that was moved")
    objects = arguments.instrumented.read_text().split()
    if not objects:
        sys.exit(f"{arguments.instrumented} lists no object files")
    failed = False
    for path in objects:
        command = [arguments.objdump, "-d", "-C", "--no-show-raw-insn", path]
        for function, address in moved_blocks(subprocess.run(command, check=True, capture_output=True, text=True).stdout):
            print(f"{path}: {function}: the block at {address} lies behind the function's end")
            failed = True
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
