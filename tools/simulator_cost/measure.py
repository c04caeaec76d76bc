#!/usr/bin/env python3
"""Writes docs/results/NAME.json: how long ./lab sim takes for common kernels and sizes, on one core of this machine.

python3 tools/simulator_cost/measure.py docs/results/cpu-epyc-sim.json 'AMD EPYC'
"""
import json
import pathlib
import resource
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CASES = (("an empty program", None), ("vector addition, 2^16 elements", "a 65536"), ("vector addition, 2^20", "a 1048576"),
         ("reduction, 2^20", "r 1048576"), ("histogram, 2^20", "h 1048576"), ("transpose, 1024 x 1024", "t 1024"),
         ("SGEMM, naive, 128", "g 128"), ("SGEMM, naive, 256", "g 256"), ("SGEMM, tiles in shared memory, 128", "G 128"),
         ("SGEMM, tiles in shared memory, 256", "G 256"))


def seconds(arguments):
    """The processor's, with compilation; and what was observed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    program = HERE / "cost.cu"
    if arguments is None:
        program = pathlib.Path("/dev/shm/empty.cu")
        program.write_text("int main() {}\n")
    done = subprocess.run([ROOT / "lab", "sim", "--json", program, "--", *(arguments or "").split()], check=True,
                          stdout=subprocess.PIPE, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    report = json.loads(done.stdout.splitlines()[-1])
    assert not report["host_faults"] and not any(kernel["faults"] for kernel in report["kernels"])
    accesses = sum(kernel["thread_accesses"] for kernel in report["kernels"])
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, accesses


def main():
    path, machine = sys.argv[1:]
    rows = []
    for name, arguments in CASES:
        least, accesses = min(seconds(arguments) for _ in range(3))
        rows.append({"name": name, "values": [round(accesses / 1e6, 1), round(least, 1)]})
        print(name, rows[-1]["values"])
    report = {"device": None,
              "corner": "program", "columns": ["accesses of threads (millions)", "time (s)"], "format": [".1f", ".1f"],
              "how": f"{pathlib.Path(__file__).relative_to(ROOT)}: ./lab sim on one core of an {machine}, compilation "
                     "and the start of Python with it; time is the processor's, the least of three runs", "rows": rows}
    pathlib.Path(path).write_text(json.dumps(report, indent=2) + "\n")


main()
