"""The commands of ./lab that are not the program's. `lab` starts this, and builds what they need before."""
import argparse
import contextlib
import difflib
import importlib
import os
import re
import subprocess
import sys

from machine import ROOT, Unusable

HELP = (ROOT / "tools/help/lab.txt").read_text()
MODULES = {"diff": "stage_diff", "docs": "site_builder", "doctor": "doctor", "fuse": "fuse", "merge": "merge_results",
           "new": "new_stage",
           "next": "next_lab", "notebook": "lesson_notebook", "sim": "sim", "single": "single_file", "test": "run_tests"}
COMMANDS = re.findall(r"^  ([a-z]+)  ", HELP, re.M)


class Parser(argparse.ArgumentParser):
    def error(self, message):
        command = self.prog.split()[-1]
        raise Unusable(f"{command}: {message}; see ./lab {command} --help")


def parser_of(command, module):
    parser = Parser(prog=f"./lab {command}", description=module.DESCRIPTION, allow_abbrev=False)
    if hasattr(module, "add_arguments"):
        module.add_arguments(parser)
    return parser


def version():
    """The project's, and the commit where this is a checkout."""
    number = re.search(r"^project\(.*\bVERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]
    commit = ""
    if (ROOT / ".git").exists():
        try:
            commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.strip()
        except OSError:
            pass  # no git
    return f"ConvLadder {number}" + (f" ({commit})" if commit else "")


def unknown(command):
    near = difflib.get_close_matches(command, COMMANDS, 1)
    return f"unknown command '{command}'" + (f": did you mean '{near[0]}'?" if near else ":") + " ./lab help lists them"


def run(command, words):
    if command in MODULES:
        module = importlib.import_module(MODULES[command])
        parser = parser_of(command, module)
        others = []
        if command == "sim" and "--" in words:  # the rest is the program's
            words, others = words[:words.index("--")], words[words.index("--") + 1:]
        options, unknown_words = parser.parse_known_args(words)
        others = unknown_words + others
        if command == "sim" and unknown_words:
            parser.error(f"unknown argument '{unknown_words[0]}'")
        if command in ("sim", "test"):
            options.others = others
        elif others:
            parser.error(f"unknown argument '{others[0]}'")
        return module.run(options)
    if command == "--version":
        print(version())
        return 0
    if command in ("help", "--help", "-h"):  # help on help
        print(HELP, end="")
        return 0
    if command == "compare":  # of two files; of stages the program does it
        return importlib.import_module("compare_results").run(words)
    # What `lab` alone calls.
    if command == "offer-cuda":
        return importlib.import_module("doctor").offer_cuda()
    if command == "site-ready":
        return 0 if words or importlib.import_module("site_builder").ready() else 1  # docs itself refuses arguments
    if command == "fuse-ready":
        return 0 if importlib.import_module("fuse").ready() else 1
    if command == "fuse-pruned":
        module = importlib.import_module("fuse")
        return module.prune(parser_of("fuse", module).parse_args(words))
    if command == "plot":
        return importlib.import_module("plotted_run").run(words)
    if command == "submit":
        return importlib.import_module("submission").run(words)
    raise Unusable(unknown(command))


def write_nothing_more():
    """What is still to be written at the end would fail once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(text):
    """One line on standard error, if that can be written."""
    with contextlib.suppress(AttributeError, OSError):  # it may be closed, or on a full disk
        os.write(sys.stderr.fileno(), f"./lab: {text}\n".encode(errors="surrogateescape"))


def main():
    try:
        status = run(sys.argv[1], sys.argv[2:])
        sys.stdout.flush()
        return status
    except Unusable as problem:
        complain(problem)
        return 2
    except BrokenPipeError:  # who reads has seen enough
        write_nothing_more()
        return 0
    except OSError as problem:
        complain(f"{problem.filename or 'cannot write'}: {problem.strerror or problem}")
        write_nothing_more()
        return 2
    except KeyboardInterrupt:
        return 130


sys.exit(main())
