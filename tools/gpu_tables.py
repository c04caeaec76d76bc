"""The tables of docs/gpus.md: GPUs beside each other, in shares of the floor and in ratios to cuDNN, from whatever results
there are; tables.py lists their kinds.

A machine is a kind of GPU, by the files of docs/results, or one folder of docs/results/submitted. What two machines
have both measured is compared; what is missing is counted and named.
"""

import json
import re

from cells import (TableError, geometric_mean, markdown, median, percent, ratio, time_cell)
from comparisons import stages_of
from recompute import direct_flops, stages, tracks
from report import is_bench

REFERENCE = "NVIDIA H200"  # which the others stand beside
ALIKE = 1.1  # shares whose quotient is below that, and above its inverse, count as alike
GRID_STAGE, GRID_CUDNN = re.compile(r"(\d\d) ([a-z0-9-]+)"), re.compile(r"cuDNN's best in (\w+)")
ALONE = "No second GPU has been measured yet.\n"


class Machine:
    """What was measured on a kind of GPU, or by one person."""

    def __init__(self, name):
        self.name = name
        self.reports = []  # the benches; of the first are device, versions and ceilings
        self.cells = {}  # {(stage's number, workload): {"time", "share", "cudnn", "problem"}}

    @property
    def short(self):
        """As a heading names it: "H100"."""
        own, _, rest = self.name.partition(" (")
        words = own.removeprefix("NVIDIA ").removeprefix("GeForce ").split()
        kept = [word for word in words if not re.fullmatch(r"\d+GB|HBM\w*|PCIe|SXM\w*", word)]
        return " ".join(kept) + (f" ({rest}" if rest else "")

    def add_bench(self, report):
        self.reports.append(report)
        for row in report["rows"]:
            own_type = ":" not in row["stage"]  # "implicit-gemm:bf16" is 31, too, but not to be compared with it
            if row["number"] and own_type and row["backend"] == "gpu" and median(row):
                roofline, speedup = row["roofline"] or {}, row["speedup"]
                self.cells.setdefault((row["number"], row["workload_name"]), {
                    "time": median(row), "share": roofline.get("share"), "cudnn": speedup["cudnn_best"],
                    "problem": row["workload"]})

    def add_grid(self, table):
        """Of times of stages with cuDNN's best beside them, where a run left no more."""
        last = GRID_CUDNN.fullmatch(table["columns"][-1])
        for row in table["rows"]:
            for heading, time in zip(table["columns"], row["values"]):
                stage = GRID_STAGE.fullmatch(heading)
                if stage and time:
                    best = row["values"][-1] if stages()[stage[2]]["dtype"] == last[1] else None
                    self.cells.setdefault((int(stage[1]), row["name"]), {
                        "time": time, "share": None, "cudnn": best / time if best else None, "problem": None})


def is_times_grid(results):
    """Whether a file is a table of times, whose last column is cuDNN's best, of stages by their workloads' names."""
    return (results.get("corner") == "time (µs)" and results.get("device")
            and GRID_CUDNN.fullmatch(results["columns"][-1]) is not None)


def machines(folder):
    """Every machine by its name, the reference first, then those with most results. @param folder  docs/results"""
    found = {}
    files = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json")) if path.name != "schema.json"}
    benches = [(name, results) for name, results in files.items()
               if is_bench(results) and results["device"]["backend"] == "gpu"]
    # Where several have a cell it is of the run of the whole ladder, made alike on each GPU; else of the largest bench,
    # and a bench's rather than a table's.
    benches.sort(key=lambda bench: (not bench[0].endswith("-ladder"), -len(bench[1]["rows"])))
    for _, results in benches:
        name = results["device"]["name"]
        found.setdefault(name, Machine(name)).add_bench(results)
    for table in filter(is_times_grid, files.values()):
        name = table["device"]["name"]
        found.setdefault(name, Machine(name)).add_grid(table)
    for path in sorted(folder.glob("submitted/*/results.json")):
        results = json.loads(path.read_text())
        name = f"{results['device']['name']} ({path.parent.name})"
        found.setdefault(name, Machine(name)).add_bench(results)
    return sorted(found.values(), key=lambda machine: (machine.name != REFERENCE, -len(machine.cells), machine.name))


# ---- The machines ----------------------------------------------------------------------------------------------------

def machine_lines(every):
    def of(report, text):
        return text(report) if report else "–"

    def rate(key, unit):
        return lambda report: f"{report['ceilings'][key] * 1e-12:.{unit[0]}f} {unit[1]}" if report["ceilings"].get(key) else "–"

    def balance(report):
        ceilings = report["ceilings"]
        return f"{ceilings['fp16_flops_per_s'] / ceilings['dram_bytes_per_s']:.0f}" if ceilings.get(
            "fp16_flops_per_s") else "–"

    texts = {
        "compute capability": lambda report: f"sm_{report['device']['compute_capability']}",
        "multiprocessors": lambda report: f"{report['device']['multiprocessors']}",
        "L2": lambda report: f"{report['device']['l2_bytes'] / 2**20:.0f} MiB",
        "clock before the run (MHz)": lambda report: f"{(report['device']['clocks_before'] or {}).get('sm_mhz') or 0:.0f}",
        "CUDA driver, cuDNN": lambda report: f"{report['toolchain']['cuda_driver']}, {report['toolchain']['cudnn'] or 'none'}",
        "device copy, read + written, DRAM": rate("dram_bytes_per_s", (2, "TB/s")),
        "the same within L2": rate("l2_bytes_per_s", (2, "TB/s")),
        "fp32 multiply-adds": rate("fp32_flops_per_s", (1, "TFLOP/s")),
        "fp16 products on Tensor Cores (WMMA)": rate("fp16_flops_per_s", (1, "TFLOP/s")),
        "int8 products on Tensor Cores (WMMA)": rate("int8_ops_per_s", (1, "TOP/s")),
        "operations of fp16 for a byte of DRAM": balance,
        "an empty kernel in a CUDA graph": lambda report: f"{report['ceilings']['launch_us']:.2f} µs",
    }
    # The newest kind of report has all ceilings; an older one lacks those of Tensor Cores.
    reports = [max(machine.reports, key=lambda report: bool(report["ceilings"].get("fp16_flops_per_s")), default=None)
               for machine in every]
    return [[what, *(of(report, text) for report in reports)] for what, text in texts.items()]


def machines_table(every):
    return markdown(["what", *(machine.short for machine in every)], machine_lines(every), 1)


# ---- What is missing -------------------------------------------------------------------------------------------------

def gaps_table(every):
    """By track: how many of the cells that any machine has this one has, and which stages it lacks."""
    union = sorted({key for machine in every for key in machine.cells})
    lines = []
    for name, track in tracks().items():
        numbers = list(stages_of(name))
        wanted = [key for key in union if key[0] in numbers]
        if track["runs_on"] != "device" or not wanted:
            continue
        cells = []
        for machine in every:
            have = [key for key in wanted if key in machine.cells]
            lacking = [f"{number:02d}" for number in numbers if number not in {key[0] for key in have}]
            text = f"{len(have)} of {len(wanted)}"
            cells.append(text + (f"; no stage of {', '.join(lacking)}" if lacking and have else ""))
        lines.append([name, *cells])
    return markdown(["track", *(f"times on {machine.short}" for machine in every)], lines, len(every) + 1)


# ---- Beside each other -----------------------------------------------------------------------------------------------

def mean(values):
    """Geometric, of those that there are; None of none."""
    values = [value for value in values if value]
    return geometric_mean(values) if values else None


def common(first, second):
    """{stage's number: [(workload, its cell, the other's)]} of what both have."""
    found = {}
    for (number, workload), cell in first.cells.items():
        other = second.cells.get((number, workload))
        if other:
            found.setdefault(number, []).append((workload, cell, other))
    return dict(sorted(found.items()))


def pair_means(pairs, key):
    """Means over those workloads of which both have the figure: (of the first, of the second), None for none."""
    both = [(cell[key], other[key]) for _, cell, other in pairs if cell[key] and other[key]]
    return tuple(mean(column) for column in zip(*both)) if both else (None, None)


def verdict(shares, ratios, names):
    """What carries over, in words."""
    parts = []
    if all(ratios):
        ahead = [name for name, value in zip(names, ratios) if value >= 1]
        parts.append("ahead of cuDNN on both" if len(ahead) == 2 else "behind cuDNN on both" if not ahead
                     else f"ahead of cuDNN on {ahead[0]} alone")
    if all(shares):
        quotient = shares[1] / shares[0]
        parts.append("the share carries over" if 1 / ALIKE < quotient < ALIKE
                     else f"{names[1]} is {'nearer to' if quotient > 1 else 'farther from'} its floor")
    return "; ".join(parts) or "no figure that both have"


def require_pair(every):
    """The reference with each other machine that has something in common with it."""
    return [(every[0], other, common(every[0], other)) for other in every[1:] if common(every[0], other)]


def name_of(number):
    return next(f"{number:02d} {name}" for name, stage in stages().items() if stage["number"] == number)


def stages_lines(first, second, pairs_of):
    for number, pairs in pairs_of.items():
        shares, ratios = pair_means(pairs, "share"), pair_means(pairs, "cudnn")
        sides = [(cell["cudnn"] >= 1) == (other["cudnn"] >= 1) for _, cell, other in pairs
                 if cell["cudnn"] and other["cudnn"]]
        yield [name_of(number), verdict(shares, ratios, (f"the {first.short}", f"the {second.short}")),
               str(len(pairs)), *map(percent, shares), *map(ratio, ratios), f"{sum(sides)} of {len(sides)}"]


def stages_table(every):
    """A table for each machine beside the reference."""
    texts = []
    for first, second, pairs_of in require_pair(every):
        texts.append(markdown(
            ["stage", "what carries over", "workloads in common", f"share, {first.short}", f"share, {second.short}",
             f"over cuDNN, {first.short}", f"over cuDNN, {second.short}", "on the same side of cuDNN"],
            list(stages_lines(first, second, pairs_of)), 2))
    return "\n".join(texts) or ALONE


def workloads_table(every):
    """Each stage on each workload that both have."""
    texts = []
    for first, second, pairs_of in require_pair(every):
        lines = []
        for number, pairs in pairs_of.items():
            for workload, cell, other in pairs:
                problem = cell["problem"] or other["problem"]
                rate = "–" if not problem else f"{direct_flops(problem) / other['time'] * 1e-6:.1f}"
                lines.append([name_of(number), workload, time_cell(cell["time"]), time_cell(other["time"]), rate,
                              percent(cell["share"]), percent(other["share"]), ratio(cell["cudnn"]),
                              ratio(other["cudnn"])])
        texts.append(markdown(
            ["stage", "workload", f"time (µs), {first.short}", f"time (µs), {second.short}",
             f"TFLOP/s, {second.short}", f"share, {first.short}", f"share, {second.short}",
             f"over cuDNN, {first.short}", f"over cuDNN, {second.short}"], lines, 2))
    return "\n".join(texts) or ALONE


def summary_text(every):
    """How many stages carry over, in sentences; one list for each machine beside the reference."""
    texts = []
    for first, second, pairs_of in require_pair(every):
        groups = {}
        for number, pairs in pairs_of.items():
            words = verdict(pair_means(pairs, "share"), pair_means(pairs, "cudnn"),
                            (f"the {first.short}", f"the {second.short}"))
            for part in words.split("; "):
                groups.setdefault(part, []).append(f"{number:02d}")
        measured = len({key[0] for key in first.cells})
        texts.append(f"The {second.short} beside the {first.short}: {len(pairs_of)} of {measured} stages have a workload "
                     "in common.\n\n" + "".join(f"- {part}: {', '.join(numbers)}\n" for part, numbers in groups.items()))
    return "\n" + ("\n".join(texts) or ALONE) + "\n"


KINDS = {"machines": machines_table, "gaps": gaps_table, "stages": stages_table, "workloads": workloads_table,
         "summary": summary_text}


def gpus_table(folder, words):
    """@param folder docs/results @param words of the marker, after the kind"""
    if len(words) != 1 or words[0] not in KINDS:
        raise TableError(f"is no table: write one of {', '.join(KINDS)}")
    every = machines(folder)
    if not every:
        raise TableError("finds no result of a GPU")
    return KINDS[words[0]](every)
