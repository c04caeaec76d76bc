#!/usr/bin/env python3
"""Holds the simulator against Nsight Compute.

    compare.py build/bin/ncu-cases docs/results/NAME.json
        fails if the simulator no longer counts what the file says that it counted
    compare.py build/bin/ncu-cases docs/results/NAME.json --measured FOLDER
        compares with what tools/measure/counters.sh has left in FOLDER, and writes the file; with --part FOLDER has some
        cases alone (ncu-cases-gpu STAGE SHAPE SETTINGS...), and the file keeps what the GPU counted of the others
    compare.py --bounds FOLDER docs/results/NAME.json
        writes what bounds the kernels of 04, 08, 09, 15, 38 and 39, from the same folder

The file: {how, device, metrics, causes, rows: [{name, simulator, gpu, causes}]}. tools/tables.py writes the tables from it. The
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
# Of these: {heading: (metric, format, factor)}.
GRID = {
    "µs": ("gpu__time_duration.sum", ".1f", 1e-3), "blocks": ("launch__grid_size", ".0f", 1),
    "threads": ("launch__block_size", ".0f", 1), "registers": ("launch__registers_per_thread", ".0f", 1),
    "waves": ("launch__waves_per_multiprocessor", ".2f", 1),
    "warps active": ("sm__warps_active.avg.pct_of_peak_sustained_active", ".0f", 1),
    "issue slots": (f"smsp__issue_active.{ELAPSED}", ".0f", 1),
    "FMA": (f"sm__pipe_fma_cycles_active.{ELAPSED}", ".0f", 1),
    "ALU": (f"sm__inst_executed_pipe_alu.{ELAPSED}", ".0f", 1),
    "L1 data": (f"l1tex__data_pipe_lsu_wavefronts.{ELAPSED}", ".0f", 1),
    "L2": (f"lts__throughput.{ELAPSED}", ".0f", 1), "DRAM": (f"dram__throughput.{ELAPSED}", ".0f", 1),
    "wait for loads": ("smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", ".1f", 1),
    "wait at barriers": ("smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", ".1f", 1),
    "could issue": ("smsp__warps_eligible.avg.per_cycle_active", ".1f", 1)}

LDGSTS = "sm__sass_l1tex_t_{}_pipe_lsu_mem_global_op_ldgsts_cache_{}.sum"
# The simulator's counters, and ncu's metrics whose sum is the same.
METRICS = {
    "global_load_requests": ["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "smsp__inst_executed_op_tma_ld.sum"],
    "global_load_sectors": ["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"],
    "global_store_requests": ["l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", "smsp__inst_executed_op_tma_st.sum"],
    "global_store_sectors": ["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"],
    "shared_load_requests": ["smsp__inst_executed_op_shared_ld.sum", "smsp__inst_executed_op_ldsm.sum"],
    "shared_load_conflicts": ["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"],
    "shared_store_requests": ["smsp__inst_executed_op_shared_st.sum", "smsp__inst_executed_op_ldgsts.sum"],
    "shared_store_conflicts": ["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"],
    "atomic_requests": ["l1tex__t_requests_pipe_lsu_mem_global_op_red.sum",
                        "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum",
                        "smsp__inst_executed_op_shared_atom.sum"],
}
# Those that come from ncu's table of executed instructions instead: lanes of each load or store times its size, and
# barrier instructions over the warps of a block.
TMA_BYTES = {"load": "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum",
             "store": "l1tex__m_l1tex2xbar_write_bytes_mem_global_op_tma_st.sum"}
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
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    "sass__inst_executed_per_opcode_with_modifier_all"]
COLLECTED = [metric for names in METRICS.values() for metric in names] + [
    WARPS, LANES, BLOCK_SIZE, *TMA_BYTES.values()] + BESIDE
SECTOR = 32  # bytes
# The case whose kernel has changed since: not in the file until counters.sh has run again.
UNMEASURED = ["32-implicit-gemm-hopper, n=2,c=72,h=14,w=19,k=100,r=5,s=5,stride_h=2,stride_w=2"]
MARK = "case_mark"  # the kernel that ncu-cases-gpu launches before each case
POISON = "fill_words"  # the kernel of the harness that poisons new memory; in the simulator it is none

# Why rows differ: {cause: (text, [(names as a regular expression, counters)])}. Each difference has a cause, and each line
# here explains one.
LOADS = ["global_load_sectors", "global_load_bytes"]
COPIES = "08-.*fused=yes|21-|24-|31-|39-|26-.*c=40"
CAUSES = {
    "bytes": ("nvcc knows no alignment behind `memcpy` and copies byte by byte; the simulator copies by words", [
        ("memory_copy", ["global_load_requests", "global_load_sectors", "global_store_requests", "global_store_sectors"])]),
    "joined": ("nvcc joins neighbouring loads or stores of a lane into one of 8 or 16 bytes", [
        ("shared_column, pitch 32", ["shared_load_requests", "shared_load_conflicts"]),
        ("15-|32-.*r=5|38-|36-.*n=2.*s=3$|.*(matmul|sgemm_ladder).cu", ["shared_load_requests"]),
        ("15-.*r=5", ["shared_load_conflicts"]),
        ("(34|36|37)-.*s=3$|34-.*r=5", ["global_load_requests"]), ("(36|37)-.*s=3$", ["global_load_sectors"]),
        ("(36|37)-.*prepare", ["global_store_requests", "global_store_sectors"])]),
    "narrowed": ("nvcc narrows or splits a load of 16 bytes of which only a part is used, and the lanes stay 16 bytes "
                 "apart: more passes than a load of 16 bytes needs beyond its four", [
        ("shared_float4", ["shared_load_requests", "shared_load_conflicts"]),
        ("04-|08-.*r=11|09-", ["shared_load_conflicts"])]),
    "kept": ("nvcc keeps a value in a register and does not load it again, or not at all where no lane uses it", [
        ("warp_scan_shared|.*tma_tile.cu", ["shared_load_requests"]),
        (".*fp32_from_halves.cu", ["global_load_requests", "global_load_sectors", "global_load_bytes"])]),
    "merged": ("nvcc makes one store of those in both branches of an `if`, and likewise one load", [
        (".*scan.cu", ["shared_load_requests", "shared_store_requests"])]),
    "lanes off": ("nvcc puts a condition on the instruction itself instead of a branch around it, and ncu counts the "
                  "instruction also where it is off in all lanes; it moves nothing then", [
        ("(07|08|15|18|19|20|21|31)-.*|30-.*prepare|.*reduction_ladder.cu", ["shared_store_requests"]),
        ("09-|30-.*prepare|31-|.*reduction_ladder.cu", ["shared_load_requests"])]),
    "empty loads": ("before asynchronous copies, again in each branch that has some, nvcc writes three "
                    "`@!PT LDS RZ, [RZ]`: loads that are off in all lanes, and counted", [
        ("08-.*fused=yes|(21|24|25|26|31|35|39)-|.*cp_async.cu", ["shared_load_requests"])]),
    "zeros": ("ncu tells how many lanes copied, not how many bytes: a lane whose copy is all or in part zeros counts here "
              "with all of its bytes on the GPU", [(COPIES, ["global_load_bytes"])]),
    "unrolled": ("nvcc unrolls a loop whose lanes leave it at different times, and they do not meet again in each round", [
        ("(18|19|20|21)-.*stride_w=2", ["global_store_requests", "global_store_sectors", "shared_load_requests"]),
        ("(34|36|37)-.*c=40.*prepare", ["global_load_requests"])]),
    "whole boxes": ("ncu's bytes of TMA's loads are of whole boxes, with what lies outside of the tensor, and in whole "
                    "sectors; the simulator counts what is read", [("(32|34)-|.*tma_tile.cu", LOADS)]),
    "bulk copies": ("ncu counts more sectors for TMA's copies without a tensor map where source or destination is no "
                    "multiple of 128 bytes; why so many is not known", [
        ("38-", LOADS), ("38-.*r=5", ["global_store_sectors", "global_store_bytes"])]),
    "copies past L1": ("ncu counts more sectors for asynchronous copies of 16 bytes than hold their data (24 for 16 in "
                       "26), in 31 fewer; not explained", [
        ("(26|35)-|31-.*c=40|.*cp_async.cu", ["global_load_sectors"])]),
    "copies' conflicts": ("ncu's bank conflicts of stores leave out asynchronous copies; the simulator counts theirs", [
        ("26-", ["shared_store_conflicts"])]),
    "named barriers": ("the GPU's figure holds barriers of a part of the block, too, which the simulator does not count", [
        ("(32|33|34|36)-", ["barriers"])]),
    "half warps": ("with few lanes on, the simulator serves a load of 8 bytes by halves of a warp, without conflicts; "
                   "the GPU counts one where a lane of each half reads the same bank", [
        (".*reduction_ladder.cu", ["shared_load_conflicts"])]),
    "other waits": ("no conflict of the layout: taken to be passes that waited for data from elsewhere, which ncu's "
                    "counter holds, too; not proved", [
        ("08-.*fused=yes|(06|09|18|19|21|26|27|28|29|30|32|33|34|36|38)-", ["shared_load_conflicts"]),
        ("(25|32|33|34|36)-|30-.*prepare", ["shared_store_conflicts"])]),
    "not found": ("not explained", [
        ("36-.*c=40", ["shared_load_requests"]), (".*sparse.cu", ["global_load_sectors"])]),
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


def lane_bytes(row, *wanted):
    lanes = {name: count for name, count in opcodes(row[LANES]).items() if name.split(".")[0] in wanted}
    return sum(count * access_bytes(name) for name, count in lanes.items())


def counters_of(row):
    """The simulator's counters, from one kernel's row of ncu."""
    counters = {name: sum(number(row[metric]) for metric in metrics) for name, metrics in METRICS.items()}
    warps = opcodes(row[WARPS])
    counters["global_load_bytes"] = lane_bytes(row, "LDG", "LDGSTS")
    counters["global_store_bytes"] = lane_bytes(row, "STG")
    for kind, metric in TMA_BYTES.items():  # in whole sectors
        counters[f"global_{kind}_sectors"] += number(row[metric]) // SECTOR
        counters[f"global_{kind}_bytes"] += number(row[metric])
    counters["shared_store_requests"] += warps.get("STSM", 0)
    counters["barriers"] = warps.get("BAR", 0) // -(-number(row[BLOCK_SIZE]) // 32)
    return counters


def rows_of(log):
    """ncu's rows, one for each kernel, in order."""
    lines = [line for line in log.read_text(encoding="utf-8").splitlines() if line.startswith('"')]
    rows = [row for row in csv.DictReader(lines) if row["ID"].isdigit()]  # without the line of units
    if not rows:
        raise CompareError(f"{log}: ncu profiled nothing")
    return rows


def added(rows):
    """The counters of several kernels."""
    total = dict.fromkeys([*METRICS, *FROM_OPCODES], 0)
    for row in rows:
        for name, value in counters_of(row).items():
            total[name] += value
    return total


def nsight_version(about):
    return re.search(r"Version (\S+)", about["nsight_compute"])[1]


def measured(folder, part):
    """(device, {name: counters}) of what counters.sh has left. @param part without the programs"""
    report = json.loads((folder / "cases.json").read_text(encoding="utf-8"))
    kernels = []
    for row in rows_of(folder / "cases.csv"):
        if MARK in row["Kernel Name"]:
            kernels.append([])
        elif POISON not in row["Kernel Name"]:
            kernels[-1].append(row)
    if len(kernels) != len(report["cases"]):
        raise CompareError(f"{len(report['cases'])} cases ran, and ncu saw {len(kernels)}")
    counters = {case["name"]: added(rows) for case, rows in zip(report["cases"], kernels)}
    programs = {program: [] for program in PROGRAMS if not part}
    for row in rows_of(folder / "programs.csv") if programs else []:
        program, = (path for path in PROGRAMS if pathlib.Path(path).stem == row["Process Name"])
        programs[program].append(row)
    counters |= {program: added(rows) for program, rows in programs.items()}
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    return {**report["device"], "nsight_compute": nsight_version(about)}, counters


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


def causes_of(row, explained):
    """Of each difference of a row. @param explained gains (cause, line) of CAUSES that had one"""
    found = []
    for counter in differences(row):
        before = len(found)
        for cause, (_, lines) in CAUSES.items():
            for i, (names, counters) in enumerate(lines):
                if counter in counters and re.match(names, row["name"]):
                    found.append(cause)
                    explained.add((cause, i))
        if len(found) == before:
            raise CompareError(f"{row['name']}: {counter} is {row['simulator'][counter]} and {row['gpu'][counter]}, and "
                               f"CAUSES does not say why")
    return list(dict.fromkeys(found))


def check_causes(rows):
    explained = set()
    for row in rows:
        if row["causes"] != causes_of(row, explained):
            raise CompareError(f"{row['name']}: the causes are not those of CAUSES")
    for cause, (_, lines) in CAUSES.items():
        for i, (names, _) in enumerate(lines):
            if (cause, i) not in explained:
                raise CompareError(f"CAUSES: {cause} explains nothing of {names}")


def check(committed, simulated):
    rows = {row["name"]: row for row in committed["rows"] if row["name"] not in PROGRAMS}
    simulated = {name: counters for name, counters in simulated.items() if name not in UNMEASURED}
    if list(rows) != list(simulated):
        raise CompareError("the cases are not those of the file; if they were compared anew, UNMEASURED must say so")
    for name, counters in simulated.items():
        for counter, value in counters.items():
            if rows[name]["simulator"][counter] != value:
                raise CompareError(f"{name}: {counter} is {value}, and was {rows[name]['simulator'][counter]} when "
                                   f"compared with a GPU; if {value} is right, compare anew (see docs/profiling.md)")
    if committed["causes"] != {cause: text for cause, (text, _) in CAUSES.items()}:
        raise CompareError("the causes are not those of CAUSES")
    check_causes(committed["rows"])


def write(path, report):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(report, file, indent=1, ensure_ascii=False)
        file.write("\n")


def bounds(folder):
    """A grid (docs/results/README.md) of what bounds the kernels."""
    report = json.loads((folder / "bounds.json").read_text(encoding="utf-8"))
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    kernels = [row for row in rows_of(folder / "bounds.csv") if MARK not in row["Kernel Name"]]
    if len(kernels) != len(report["cases"]):
        raise CompareError(f"{len(report['cases'])} cases of one kernel each ran, and ncu saw {len(kernels)}")
    rows = [{"name": re.sub(r"^(\d+)-[\w-]+, ", r"\1 ", case["name"]),
             "values": [float(row[metric].split()[0].replace(",", "")) * scale for metric, _, scale in GRID.values()]}
            for case, row in zip(report["cases"], kernels)]
    return {"device": {key: report["device"][key] for key in ("name", "compute_capability")},
            "how": f"tools/measure/counters.sh, CUDA {report['device']['cuda_toolkit']}, Nsight Compute "
                   f"{nsight_version(about)}: the second launch in a process, clocks and caches as they are",
            "corner": "stage, shape", "columns": list(GRID), "format": [form for _, form, _ in GRID.values()], "rows": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("simulator", nargs="?", help="the program ncu-cases")
    parser.add_argument("file", help="the comparison, as JSON")
    parser.add_argument("--measured", metavar="FOLDER", type=pathlib.Path,
                        help="what tools/measure/counters.sh has left: compare, and write the file")
    parser.add_argument("--part", action="store_true", help="FOLDER has some cases alone: the file keeps the others")
    parser.add_argument("--bounds", metavar="FOLDER", type=pathlib.Path, help="the same: write what bounds six stages")
    arguments = parser.parse_args()
    if bool(arguments.simulator) == bool(arguments.bounds):
        parser.error("give the program ncu-cases, or --bounds FOLDER")
    try:
        if arguments.bounds:
            write(arguments.file, bounds(arguments.bounds))
            return
        simulated = simulate(arguments.simulator)
        if not arguments.measured:
            with open(arguments.file, encoding="utf-8") as file:
                check(json.load(file), simulated)
            print(f"{len(simulated)} cases: the simulator counts what was compared")
            return
        device, counted = measured(arguments.measured, arguments.part)
        how = "tools/measure/counters.sh"
        if arguments.part:
            with open(arguments.file, encoding="utf-8") as file:
                committed = json.load(file)
            how = f"{committed['how']}; on an {device['name']}, later: {'; '.join(counted)}"
            device = committed["device"]
            counted = {row["name"]: row["gpu"] for row in committed["rows"]} | counted
            simulated |= {row["name"]: row["simulator"] for row in committed["rows"] if row["name"] in PROGRAMS}
        else:
            simulated |= {program: simulate_program(program) for program in PROGRAMS}
        rows = [{"name": name, "simulator": counters, "gpu": counted[name]} for name, counters in simulated.items()]
        for row in rows:
            row["causes"] = causes_of(row, set())
        check_causes(rows)
        write(arguments.file, {
            "how": how, "device": device, "metrics": {**METRICS, **FROM_OPCODES},
            "causes": {cause: text for cause, (text, _) in CAUSES.items()}, "rows": rows})
        print(f"{len(rows)} cases, {sum(bool(row['causes']) for row in rows)} differ")
    except OSError as error:
        sys.exit(f"compare.py: {error.filename}: {error.strerror}")
    except CompareError as error:
        sys.exit(f"compare.py: {error}")


if __name__ == "__main__":
    main()
