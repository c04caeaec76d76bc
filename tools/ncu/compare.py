#!/usr/bin/env python3
"""Holds the simulator against Nsight Compute.

    compare.py build/bin/ncu-cases docs/results/NAME.json
        fails if the simulator no longer counts what the file says that it counted
    compare.py build/bin/ncu-cases docs/results/NAME.json --measured FOLDER
        compares with what tools/measure/counters.sh has left in FOLDER, and writes the file

The file: {how, device, metrics, rows: [{name, simulator, gpu, note}]}. tools/tables.py writes the tables from it. The
programs' rows are checked by the programs' own tests (tests/sim), which run them anyway.
"""

import argparse
import csv
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Plain programs, whose kernels are added up.
PROGRAMS = [f"tests/sim/programs/{name}.cu" for name in (
    "vector_add", "matmul", "transpose_ladder", "reduction_ladder", "scan", "histogram", "stencil", "softmax", "sparse",
    "sgemm_ladder", "tensor_gemm", "attention")]
PROGRAMS += [f"examples/{name}.cu" for name in (
    "cp_async", "fp32_from_halves", "mbarrier_ring", "stmatrix_epilogue", "swizzle", "tma_tile", "warp_winograd", "wgmma")]
# Stage, shape and settings of what counters.sh asks for its bounds.
CONVNEXT = "n=32,c=96,k=96,groups=96,h=56,w=56,r=7,s=7"
MOBILENET = "n=32,c=144,k=144,groups=144,h=56,w=56,r=3,s=3"
BOUNDS = [("04", "w=16777216,s=11", ""), ("04", "w=16777216,s=63", ""),
          ("08", "h=2160,w=3840,r=11,s=11", ""), ("08", "h=2160,w=3840,r=31,s=31", ""),
          ("09", "h=2160,w=3840,r=3,s=3", ""), ("09", "h=2160,w=3840,r=11,s=11", ""),
          ("15", CONVNEXT, ""), ("15", MOBILENET, ""), ("38", CONVNEXT, ""), ("38", MOBILENET, ""),
          ("39", CONVNEXT, ""), ("39", MOBILENET, "")]
ELAPSED = "avg.pct_of_peak_sustained_elapsed"
BOUND_METRICS = [
    "gpu__time_duration.sum", "sm__cycles_elapsed.avg.per_second", "sm__cycles_elapsed.max", "sm__cycles_active.avg",
    f"smsp__issue_active.{ELAPSED}", f"sm__inst_issued.{ELAPSED}", "sm__inst_issued.avg.pct_of_peak_sustained_active",
    f"sm__pipe_fma_cycles_active.{ELAPSED}", f"sm__inst_executed_pipe_lsu.{ELAPSED}", f"sm__inst_executed_pipe_alu.{ELAPSED}",
    f"l1tex__data_pipe_lsu_wavefronts.{ELAPSED}", f"l1tex__data_pipe_lsu_wavefronts_mem_shared.{ELAPSED}",
    f"l1tex__throughput.{ELAPSED}", f"lts__throughput.{ELAPSED}", f"dram__throughput.{ELAPSED}",
    "l1tex__m_xbar2l1tex_read_bytes.sum", "lts__t_sectors_op_read.sum", "lts__t_sectors_op_write.sum",
    "dram__bytes_read.sum", "dram__bytes_write.sum", "sm__warps_active.avg.pct_of_peak_sustained_active",
    "smsp__warps_eligible.avg.per_cycle_active", "launch__grid_size", "launch__block_size",
    "launch__registers_per_thread", "launch__waves_per_multiprocessor", "launch__occupancy_limit_registers",
    "launch__occupancy_limit_shared_mem", "launch__occupancy_limit_warps",
    *(f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio" for reason in (
        "long_scoreboard", "short_scoreboard", "mio_throttle", "lg_throttle", "math_pipe_throttle", "barrier", "wait",
        "not_selected", "no_instruction", "branch_resolve", "dispatch_stall", "membar", "sleeping", "drain", "imc_miss"))]

LDGSTS = "sm__sass_l1tex_t_{}_pipe_lsu_mem_global_op_ldgsts_cache_{}.sum"
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
# Collected besides, to find causes.
BESIDE = [
    *(LDGSTS.format(what, way) for what in ("requests", "sectors") for way in ("access", "bypass")),
    *(f"sm__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_{op}.sum" for op in (
        "ld", "ldsm", "st", "ldgsts_cache_access", "ldgsts_cache_bypass")),
    *(f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum" for op in ("ld", "st", "ldgsts")),
    "smsp__inst_executed_op_ldgsts.sum", "smsp__inst_executed_op_ldsm.sum", "smsp__inst_executed_op_tma_ld.sum",
    "smsp__inst_executed_op_tma_st.sum", "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum",
    "l1tex__m_l1tex2xbar_write_bytes_mem_global_op_tma_st.sum", "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    "sass__inst_executed_per_opcode_with_modifier_all"]
COLLECTED = [metric for names in METRICS.values() for metric in names] + [WARPS, LANES, BLOCK_SIZE] + BESIDE
MARK = "case_mark"  # the kernel that ncu-cases-gpu launches before each case

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


def rows_of(log):
    """ncu's rows, one for each kernel, in order."""
    lines = [line for line in log.read_text(encoding="utf-8").splitlines() if line.startswith('"')]
    rows = [row for row in csv.DictReader(lines) if row["ID"].isdigit()]  # without the line of units
    if not rows:
        raise CompareError(f"{log}: ncu profiled nothing")
    return rows


def bare(kernel):
    """tiled_1d, of "void convladder::<unnamed>::tiled_1d<(int)3>(const float *)"."""
    return re.search(r"(\w+)(?:<[^(]*(?:\([^)]*\)[^(]*)*>)?\(", kernel.replace("<unnamed>", ""))[1]


def added(rows):
    """The counters of several kernels."""
    total = dict.fromkeys([*METRICS, *FROM_OPCODES], 0)
    for row in rows:
        for name, value in counters_of(row).items():
            total[name] += value
    return total


def measured(folder):
    """(device, {name: counters}) of what counters.sh has left."""
    report = json.loads((folder / "cases.json").read_text(encoding="utf-8"))
    kernels = []
    for row in rows_of(folder / "cases.csv"):
        if bare(row["Kernel Name"]) == MARK:
            kernels.append([])
        else:
            kernels[-1].append(row)
    if len(kernels) != len(report["cases"]):
        raise CompareError(f"{len(report['cases'])} cases ran, and ncu saw {len(kernels)}")
    counters = {case["name"]: added(rows) for case, rows in zip(report["cases"], kernels)}
    programs = {program: [] for program in PROGRAMS}
    for row in rows_of(folder / "programs.csv"):
        program, = (path for path in PROGRAMS if pathlib.Path(path).stem == row["Process Name"])
        programs[program].append(row)
    counters |= {program: added(rows) for program, rows in programs.items()}
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    return {**report["device"], "nsight_compute": re.search(r"Version (\S+)", about["nsight_compute"])[1]}, counters


def compared(counters):
    """Without those that ncu cannot tell."""
    return {name: counters[name] for name in [*METRICS, *FROM_OPCODES]}


def simulate(program):
    """{case: counters} of the simulator."""
    return {case["name"]: compared(case["counters"]) for case in json.loads(run([program]))["cases"]}


def simulate_program(source):
    """A plain program's counters, of all its kernels."""
    text = run([sys.executable, str(ROOT / "tools/lab"), "sim", "--json", str(ROOT / source)])
    return program_counters(json.loads(text.rstrip().rsplit("\n", 1)[-1]))


def program_counters(report):
    """@param report what `./lab sim --json` prints"""
    kernels = [kernel["counters"] for kernel in report["kernels"]]
    return {name: sum(kernel[name] for kernel in kernels) for name in [*METRICS, *FROM_OPCODES]}


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
    rows = {row["name"]: row for row in committed["rows"] if row["name"] not in PROGRAMS}
    if list(rows) != list(simulated):
        raise CompareError("the cases are not those of the file")
    for name, counters in simulated.items():
        for counter, value in counters.items():
            if rows[name]["simulator"][counter] != value:
                raise CompareError(f"{name}: {counter} is {value}, and was {rows[name]['simulator'][counter]} when "
                                   f"compared with a GPU; if {value} is right, compare anew (see docs/profiling.md)")
    for row in committed["rows"]:
        if row["note"] != NOTES.get(row["name"]):
            raise CompareError(f"{row['name']}: the note is not that of NOTES")
    check_notes(committed["rows"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("simulator", help="the program ncu-cases")
    parser.add_argument("file", help="the comparison, as JSON")
    parser.add_argument("--measured", metavar="FOLDER", type=pathlib.Path,
                        help="what tools/measure/counters.sh has left: compare, and write the file")
    arguments = parser.parse_args()
    try:
        simulated = simulate(arguments.simulator)
        if not arguments.measured:
            with open(arguments.file, encoding="utf-8") as file:
                check(json.load(file), simulated)
            print(f"{len(simulated)} cases: the simulator counts what was compared")
            return
        device, counted = measured(arguments.measured)
        simulated |= {program: simulate_program(program) for program in PROGRAMS}
        rows = [{"name": name, "simulator": counters, "gpu": counted[name], "note": NOTES.get(name)}
                for name, counters in simulated.items()]
        with open(arguments.file, "w", encoding="utf-8") as file:
            json.dump({"how": "tools/measure/counters.sh", "device": device, "metrics": {**METRICS, **FROM_OPCODES},
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
