"""`./lab test`: every test that this machine can run, and what it leaves out. `lab` has built them."""
import os
import re
import subprocess
import sys
import xml.etree.ElementTree

import fuse
import machine
from terminal import has_colours, paint

DESCRIPTION = "Builds everything, runs every test that this machine can run, and says what it leaves out."
# What ctest says of tests that pass.
QUIET = re.compile(r" *(Start +\d+:|\d+/\d+ .* Passed |Internal ctest|Test project|$)")
ESCAPE = re.compile(r"\033\[[\d;]*m")


def add_arguments(parser):
    parser.add_argument("--fast", action="store_true",
                        help="only the tests with the label fast, a few minutes; those with the labels slow and gpu "
                             "are left out")
    parser.usage = "./lab test [-h] [--fast] [argument of ctest ...]"
    parser.epilog = ("Other arguments go to ctest, as in: ./lab test -R labs. Its whole output is kept in "
                     "build/test.log, and its results in build/test.xml.")


def run_ctest(arguments):
    """Shows what is worth reading of its output."""
    environment = dict(os.environ, CLICOLOR_FORCE="1") if has_colours() else None
    command = ["ctest", "--test-dir", str(machine.BUILD), "--output-on-failure", "--parallel", str(os.cpu_count() or 1),
               "--output-junit", str(machine.BUILD / "test.xml"), *arguments]
    with open(machine.BUILD / "test.log", "w", buffering=1) as log:
        ctest = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, text=True,
                                 errors="replace")
        for line in ctest.stdout:
            plain = ESCAPE.sub("", line)
            log.write(plain)
            if not QUIET.match(plain):
                print(line, end="", flush=True)
        ctest.wait()


def count(path):
    """Of ctest's results in JUnit's form: how many passed, failed, were skipped."""
    try:
        cases = xml.etree.ElementTree.parse(path).getroot().findall("testcase")
    except (OSError, xml.etree.ElementTree.ParseError):
        return 0, 0, 0
    skipped = sum(case.find("skipped") is not None or case.get("status") == "disabled" for case in cases)
    passed = sum(case.get("status") == "run" for case in cases)
    return passed, len(cases) - passed - skipped, skipped


def left_out(fast):
    if fast:
        yield "Not run: the tests with the labels slow and gpu (--fast)"
    if not machine.NVCC:
        yield "Not built: the tests of the GPU side (no nvcc)"
    if machine.left_out("RapidCheck"):
        yield "Not built: the tests of the harness (no RapidCheck)"
    if machine.left_out("pytest"):
        yield "Not built: the tests of the command line and the labs (no pytest)"
    if not fuse.ready():
        yield "Not run: the tests of ./lab fuse (no libclang for Python: install python3-clang)"
    if not machine.has_gpu_driver():
        yield "Not run: the tests of the GPU side (no GPU)"
    elif not machine.cuda_tool("compute-sanitizer"):
        yield "Not run: memcheck and racecheck of the stages (no compute-sanitizer)"


def run(options):
    (machine.BUILD / "test.xml").unlink(missing_ok=True)
    run_ctest([*(["-L", "^fast$"] if options.fast else []), *options.others])
    passed, failed, skipped = count(machine.BUILD / "test.xml")
    for line in left_out(options.fast):
        print(line)
    if passed == 0:
        failed = max(failed, 1)  # where nothing has run, nothing is right
    print(paint(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""),
                "red" if failed else "green"))
    sys.stdout.flush()
    return 1 if failed else 0
