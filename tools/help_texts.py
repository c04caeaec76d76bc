#!/usr/bin/env python3
"""Writes tools/help: what `./lab COMMAND --help` shows without building, which is what the program prints.

Usage: help_texts.py PROGRAM, as in help_texts.py build/bin/convladder
"""
import pathlib
import re
import subprocess
import sys

HELP = pathlib.Path(__file__).resolve().parent / "help"


def printed(program, *command):
    return subprocess.run([program, *command, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout


def texts(program):
    """Of each of the program's commands."""
    commands = re.findall(r"^  (\w+) ", re.split(r"(?i)\nsubcommands:\n", printed(program))[1], re.M)
    return {command: printed(program, command) for command in commands}


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__.strip())
    for command, text in texts(sys.argv[1]).items():
        (HELP / f"{command}.txt").write_text(text)


if __name__ == "__main__":
    main()
