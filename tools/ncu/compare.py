#!/usr/bin/env python3
"""Holds the simulator against Nsight Compute.

    compare.py build/bin/ncu-cases docs/results/NAME.json
        fails if the simulator no longer counts what the file says that it counted
    compare.py build/bin/ncu-cases docs/results/NAME.json --gpu build/bin/ncu-cases-gpu
        runs the same kernels on this machine's GPU, under ncu, and writes the file

The file: {how, device, metrics, rows: [{name, simulator, gpu, note}]}. tools/tables.py writes the tables from it.
"""

import argparse
import csv
import json
import re
import subprocess
import sys
import tempfile

# The simulator's counters, and ncu's metrics whose sum is the same.
METRICS = {
    "global_load_requests": ["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"],
    "global_load_sectors": ["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"],
    "global_store_requests": ["l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"],
    "global_store_sectors": ["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"],
    "shared_load_requests": ["smsp__inst_executed_op_shared_ld.sum"],
    "shared_load_conflicts": ["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"],
    "shared_store_requests": ["smsp__inst_executed_op_shared_st.sum"],
    "shared_store_conflicts": ["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"],
    "atomic_requests": ["l1tex__t_requests_pipe_lsu_mem_global_op_red.sum",
                        "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum",
                        "smsp__inst_executed_op_shared_atom.sum"],
}
# Those that come from ncu's table of executed instructions instead: lanes of each load or store times its size, and
# barrier instructions over the warps of a block.
WARPS = "sass__inst_executed_per_opcode"
LANES = "sass__thread_inst_executed_true_per_opcode_with_modifier_all"
FROM_OPCODES = {"global_load_bytes": LANES, "global_store_bytes": LANES, "barriers": WARPS}
BLOCK_SIZE = "launch__block_size"

# Why a row differs. A row that differs without a note, or has a note and does not differ, is an error.
NOTES = {
    "memory_copy": "nvcc knows no alignment behind `memcpy` and copies byte by byte; the simulator copies by words",
    "shared_column, pitch 32": "nvcc joins four neighbouring loads of a lane into one of 16 bytes",
    "shared_float4": "nvcc splits the load of 16 bytes, of which two words are used, into two of 4 bytes, 16 bytes "
                     "apart from lane to lane",
    "warp_scan_shared": "nvcc keeps the last sum in a register and does not load it again",
    "04-halo-1d, w=65536,s=11": "nvcc narrows the last load of each window, of which two words are used, from 16 bytes "
                                "to 8, and the lanes stay 16 bytes apart: 4 passes, where 2 were enough without "
                                "conflicts",
    "04-halo-1d, w=65521,s=63": "as above",
}


class CompareError(Exception):
    """What a person must mend."""


def run(command):
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except OSError as error:
        raise CompareError(f"cannot run {command[0]}: {error.strerror}") from error
    except subprocess.CalledProcessError as error:
        said = (error.stderr or error.stdout).strip()
        raise CompareError(f"{command[0]} failed: {said or f'status {error.returncode}'}") from error


def number(text):
    """ncu writes "1,024", or "64 (0: 64)" for a metric with instances."""
    return int(float(text.split()[0].replace(",", "")))


def opcodes(text):
    """{"LDG.E.128": 4} of "4 (LDG.E.128: 4; ...)"."""
    return {name: number(count) for name, count in re.findall(r"([A-Z][\w.]*): ([\d,]+)", text)}


def access_bytes(opcode):
    """Bytes a lane moves by "LDG.E.128.CONSTANT": 16."""
    size = re.search(r"\.(?:[US]?(8|16)|(64|128))(?=\.|$)", opcode)
    return int(size[1] or size[2]) // 8 if size else 4


def lane_bytes(row, opcode):
    lanes = {name: count for name, count in opcodes(row[LANES]).items() if name.split(".")[0] == opcode}
    return sum(count * access_bytes(name) for name, count in lanes.items())


def counters_of(row):
    """The simulator's counters, from one kernel's row of ncu."""
    counters = {name: sum(number(row[metric]) for metric in metrics) for name, metrics in METRICS.items()}
    counters["global_load_bytes"] = lane_bytes(row, "LDG")
    counters["global_store_bytes"] = lane_bytes(row, "STG")
    counters["barriers"] = opcodes(row[WARPS]).get("BAR", 0) // -(-number(row[BLOCK_SIZE]) // 32)
    return counters


def profile(ncu, program):
    """What ncu counts for each kernel that the program launches, in order."""
    metrics = [metric for names in METRICS.values() for metric in names] + [WARPS, LANES, BLOCK_SIZE]
    with tempfile.NamedTemporaryFile(mode="r", suffix=".csv") as log:
        run([ncu, "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base",
             "--print-metric-instances", "details", "--metrics", ",".join(metrics), "--log-file", log.name, program])
        lines = log.read().splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("==")))[1:]  # without the line of units
    if not rows:
        raise CompareError("ncu profiled nothing: " + " ".join(lines))
    missing = [metric for metric in metrics if not rows[0].get(metric)]
    if missing:
        raise CompareError(f"this ncu or GPU has no metric {', '.join(missing)}")
    return rows


def bare(kernel):
    """tiled_1d, of "void convladder::<unnamed>::tiled_1d<(int)3>(const float *)"."""
    return re.search(r"(\w+)(?:<[^(]*(?:\([^)]*\)[^(]*)*>)?\(", kernel.replace("<unnamed>", ""))[1]


def measure(ncu, program):
    """(device, {case: counters}) of the GPU."""
    report = json.loads(run([program]))
    rows = iter(profile(ncu, program))
    cases = {}
    for case in report["cases"]:
        total = {}
        for kernel in case["kernels"]:
            row = next(rows, None)
            if row is None or bare(row["Kernel Name"]) != re.sub("<.*", "", kernel):
                raise CompareError(f"{case['name']}: launches {kernel}, but ncu saw "
                                   f"{row['Kernel Name'] if row else 'nothing'}")
            for name, value in counters_of(row).items():
                total[name] = total.get(name, 0) + value
        cases[case["name"]] = total
    if next(rows, None):
        raise CompareError("ncu saw more kernels than the cases launch")
    version = re.search(r"Version (\S+)", run([ncu, "--version"]))
    return {**report["device"], "nsight_compute": version[1] if version else None}, cases


def simulate(program):
    """{case: counters} of the simulator, without those that ncu cannot tell."""
    compared = [*METRICS, *FROM_OPCODES]
    return {case["name"]: {name: case["counters"][name] for name in compared}
            for case in json.loads(run([program]))["cases"]}


def differences(row):
    return [name for name, value in row["simulator"].items() if row["gpu"][name] != value]


def check_notes(rows):
    for row in rows:
        found = differences(row)
        if found and not row["note"]:
            raise CompareError(f"{row['name']}: {', '.join(found)} differ, and NOTES does not say why")
        if row["note"] and not found:
            raise CompareError(f"{row['name']}: NOTES explains a difference that is not there")


def check(committed, simulated):
    rows = {row["name"]: row for row in committed["rows"]}
    if list(rows) != list(simulated):
        raise CompareError("the cases are not those of the file")
    for name, counters in simulated.items():
        for counter, value in counters.items():
            if rows[name]["simulator"][counter] != value:
                raise CompareError(f"{name}: {counter} is {value}, and was {rows[name]['simulator'][counter]} when "
                                   f"compared with a GPU; if {value} is right, compare anew (see docs/profiling.md)")
        if rows[name]["note"] != NOTES.get(name):
            raise CompareError(f"{name}: the note is not that of NOTES")
    check_notes(committed["rows"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("simulator", help="the program ncu-cases")
    parser.add_argument("file", help="the comparison, as JSON")
    parser.add_argument("--gpu", metavar="PROGRAM", help="the program ncu-cases-gpu: measure, and write the file")
    parser.add_argument("--ncu", default="ncu", help="where it is not on PATH")
    arguments = parser.parse_args()
    try:
        simulated = simulate(arguments.simulator)
        if not arguments.gpu:
            with open(arguments.file, encoding="utf-8") as file:
                check(json.load(file), simulated)
            print(f"{len(simulated)} cases: the simulator counts what was compared")
            return
        device, measured = measure(arguments.ncu, arguments.gpu)
        rows = [{"name": name, "simulator": counters, "gpu": {key: measured[name][key] for key in counters},
                 "note": NOTES.get(name)} for name, counters in simulated.items()]
        with open(arguments.file, "w", encoding="utf-8") as file:
            json.dump({"how": "tools/ncu/compare.py", "device": device, "metrics": {**METRICS, **FROM_OPCODES},
                       "rows": rows}, file, indent=1, ensure_ascii=False)
            file.write("\n")
        differing = [row["name"] for row in rows if differences(row)]
        print(f"{len(rows)} cases, {len(differing)} differ: {'; '.join(differing) or 'none'}")
        check_notes(rows)
    except OSError as error:
        sys.exit(f"compare.py: {error.filename}: {error.strerror}")
    except CompareError as error:
        sys.exit(f"compare.py: {error}")


if __name__ == "__main__":
    main()
