#!/usr/bin/env python3
"""Rewrites the tables and figures in README.md, docs/, chapters/*/README.md and solutions/*/README.md from docs/results.

A table stands between two markers, each at the start of a line, the first of which says what it holds:

    <!-- table:times h200 -->      times and ratios of every stage, from docs/results/h200.json
    <!-- table:times h200 3 -->    the same of stage 3 alone
    <!-- table:counters sim -->    what the simulator counted for every stage, per output
    <!-- table:counters sim 3 -->  the same of stage 3 alone
    <!-- table:ladder h200 -->     every stage with its idea, on the first workload that it ran; of one or more files;
                                   with track=signals at the end, that track's alone
    <!-- table:choosing h200 -->   the methods for images by the side of the filter
    <!-- table:machine h200 -->    the device, its software and its measured ceilings
    <!-- table:grid h200-reads --> a measurement of its own: {corner, columns, format, rows: [{name, values}]}
    <!-- table:grid h200-reads 3 -->   the same, those rows whose names begin with 03
    <!-- table:compared h100-counters global -->       the simulator against Nsight Compute (tools/ncu): global memory;
    <!-- table:compared h100-counters shared -->       shared memory, atomics and barriers;
    <!-- table:compared h100-counters differences -->  where the two differ, and the names of the causes;
    <!-- table:compared h100-counters causes -->       what these are;
    <!-- table:compared h100-counters count -->        no table: how many agree
    <!-- table:lowering h200 memory layer -->     the track lowering, workloads named "layer ...": bytes;
    <!-- table:lowering h200 times layer -->      times;
    <!-- table:lowering h200 product layer -->    times without the transform;
    <!-- table:lowering h200 ratios layer -->     stage 21 over all others, and the means;
    <!-- table:lowering h200 claims layer -->     what Lu's thesis claims, beside the same figures here
    <!-- table:cpu epyc gflops -->    the track cpu: GFLOP/s of each row on each workload;
    <!-- table:cpu epyc ratios -->    stage 22 over the others;
    <!-- table:cpu epyc ablation -->  each switch of stage 22 over the one before;
    <!-- table:cpu epyc memory -->    bytes besides the tensors;
    <!-- table:cpu epyc claims -->    what Lu's thesis claims, beside the same figures here
    <!-- table:beside h100 times -->     times of stages and of the rows beside them, with the tile that a library chose;
    <!-- table:beside h100 libraries --> what the rows stand on, and how they ended
    <!-- table:several h200-several strong ^4 -->  stages on 2 and 4 GPUs beside one, from h200-several-2.json and -4.json: the
                                                   rows whose names hold a pattern;
    <!-- table:several h200-several weak ^4 -->    the same where the work grows with the GPUs;
    <!-- table:several h200-several losses ^4 -->  what times are above an even share, beside an exchange alone;
    <!-- table:several h200-several model ^4 -->   from which time on dividing pays by the model, beside what was measured;
    <!-- table:several h200-several shares ^4 -->  of -parts.json: what launches are above an even share, by band and rest;
    <!-- table:several h200-several changes h=4 --> their changed launches, a column for each size of filter;
    <!-- table:several h200-several ends ^4 -->    when their parts are over
    <!-- table:gpus machines -->    every GPU of docs/results and docs/results/submitted: device, versions, ceilings;
    <!-- table:gpus gaps -->        how much of each track was measured on each;
    <!-- table:gpus summary -->     no table: which stages' figures carry over from the H200 to each other;
    <!-- table:gpus stages -->      their shares of the floor and ratios over cuDNN, stage by stage;
    <!-- table:gpus workloads -->   the same by workload
    <!-- table:winograd h200 times image -->          the track winograd: times, with cuDNN's Winograd and its best by type;
    <!-- table:winograd h200 over-previous image -->  each stage over the fastest of the one before it;
    <!-- table:winograd h200 over-winograd image -->  over cuDNN's Winograd;
    <!-- table:winograd h200 over-best image -->      over the best of all cuDNN;
    <!-- table:winograd h200 tflops image -->         the direct form's operations over the time;
    <!-- table:winograd h200 errors image -->         the largest errors of each stage, and where;
    <!-- table:winograd h200 ablation image 25 -->    a stage with its other settings;
    <!-- table:winograd h200 opencnn -->              stage 25 beside openCNN and cuDNN's best in fp32;
    <!-- table:winograd h200 claims -->               what Tong et al. and Wang and Zhen claim, beside the same figures here
    <!-- table:hopper stages -->                the track hopper: its stages, with their ideas;
    <!-- table:hopper h200 machine -->          as table:machine;
    <!-- table:hopper h200 goals -->            what each stage is to reach, and what it does;
    <!-- table:hopper h200 again -->            cuDNN's best before the stages and after them;
    <!-- table:hopper h100 layers -->         32 and 34 beside cuDNN's best; of a ResNet-50's layers the sums, too;
    <!-- table:hopper h200 speed image fp16 --> of the stages of a type: times, over cuDNN's best, errors;
    <!-- table:hopper h200 tiles tiles -->      stage 35 with each tile, beside cuDNN's best and its Winograd;
    <!-- table:hopper h200 drawing size -->     a drawing of plot.py's: size, batch, channels or errors
    <!-- /table -->

A lesson shows a few rows and columns of such a table. They are named behind bars, in the order of the page, each as the
table's first column or its headings write it, or as far as it begins like no other; the first column always stays:

    <!-- table:times h200 3 | rows: w=2^24 r=5; w=2^24 r=31 | columns: time; over previous; over cuDNN -->

Workloads of the track winograd are chosen by a word: image (one image of growing size), batch (conv2 to conv5 by
batch), channels (the same by channels), wide, headline (a few of image and batch) or all. Those of the track hopper by
image, batch, channels (56 x 56), tiles (a few of image and batch), others (neither image nor batch) or all. Where a
report of this track is missing, its tables say so.

    <!-- table:objectives signals -->      no table: each lesson of a track with its "What you will be able to do";
    <!-- table:objectives 00-the-machine -->   that of one lesson

Figures in prose stand between comments of their own: tools/figures.py tells them. It draws the ladder too:
docs/results/plots/ladder.svg (tools/ladder.py).

`tables.py` writes; `tables.py --check` writes nothing, and exits with 1 if a table, a figure or the ladder is not what
its results say.
"""

import argparse
import json
import os
import pathlib
import re
import sys

import ladder
from cells import (TableError, arithmetic_mean, geometric_mean, markdown, median, microseconds, percent,
                   previous_cell, ratio, stage_cell, time_cell, with_means)
from beside_tables import beside_table
from figures import rewrite
from gpu_tables import gpus_table
from hopper_tables import DRAWINGS, NOT_MEASURED, drawing, hopper_stages_table, hopper_table
from report import read_report
from several_tables import several_table
from winograd_tables import winograd_table

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results"
LADDER = ("nvidia-h200", "nvidia-h200-lowering", "nvidia-h200-winograd", "nvidia-h200-hopper")  # what its picture shows
BEGINS = re.compile(r"^<!-- table:", re.MULTILINE)
MARKED = re.compile(r"^(<!-- table:(.*?) -->\n)(.*?)^(<!-- /table -->)$", re.DOTALL | re.MULTILINE)


def outputs(problem):
    """Elements of the problem's output."""

    def extent(size, pad, dilation, taps, stride):
        return (size + 2 * pad - dilation * (taps - 1) - 1) // stride + 1

    height = extent(problem["h"], problem["pad_h"], problem["dilation_h"], problem["r"], problem["stride_h"])
    width = extent(problem["w"], problem["pad_w"], problem["dilation_w"], problem["s"], problem["stride_w"])
    return problem["n"] * problem["k"] * height * width


PRODUCT = "time_without_transform_us"  # the key of the time of a stage's product alone


def outcome(row):
    """"" for a verified row, else what happened in its place."""
    return "" if row["status"] == "ok" else f"{row['status']}: {row['reason']}"


def cudnn_best(row, two_passes=False):
    """cuDNN's fastest trial that counts, or None: a convolution by the filter as it is, or by its two factors.

    Beside int8 there are trials of fp16, which do not count.
    """
    return min((trial for trial in row["cudnn"] or []
                if trial["status"].startswith("ok") and trial["time_us"]
                and trial["dtype"] == row["dtype"]
                and trial["algorithm"].startswith("two passes") == two_passes),
               key=lambda trial: trial["time_us"], default=None)


def two_passes_cells(row):
    """How many times faster than cuDNN's two passes."""
    best = cudnn_best(row, two_passes=True)
    return [ratio(best["time_us"] / row["time_us"]["median"] if best and row["time_us"] else None)]


def product_cells(row):
    """The time without the transform."""
    return [time_cell(median(row, PRODUCT))]


def times_cells(row):
    if outcome(row):
        return [outcome(row)] + [""] * 7
    time, speedup, roofline = row["time_us"], row["speedup"], row["roofline"] or {}
    if time is None:
        raise TableError("holds no times: it is no result of a GPU")
    best, cold = cudnn_best(row), row["time_cold_us"]
    return [
        microseconds(time["median"]),
        microseconds(cold["median"]) if cold else "–",
        percent(time["spread"]),
        previous_cell(row),
        ratio(speedup["first"]),
        ratio(speedup["cudnn_best"]) + (f" ({best['algorithm']})" if best else ""),
        percent(roofline.get("share")),
        roofline.get("bound") or "–",
    ]


def counters_cells(row):
    if outcome(row):
        return [outcome(row)] + [""] * 7
    counters = row["counters"]
    if counters is None:
        raise TableError("holds no counters: it is no result of the simulator")
    count = outputs(row["workload"])

    def per_request(kind):
        requests = counters[f"global_{kind}_requests"]
        return f"{counters[f'global_{kind}_sectors'] / requests:.2f}" if requests else "–"

    return [
        f"{counters['global_load_bytes'] / count:.2f}",
        f"{counters['global_load_sectors'] / count:.3f}",
        per_request("load"),
        per_request("store"),
        str(counters["shared_load_requests"] + counters["shared_store_requests"]),
        str(counters["shared_load_conflicts"] + counters["shared_store_conflicts"]),
        str(counters["constant_load_requests"]),
        str(counters["barriers"]),
    ]


KINDS = {
    "times": (["time (µs)", "cold (µs)", "spread", "over previous", "over first", "over cuDNN's best",
               "share of the floor", "floor from"], times_cells),
    "counters": (["bytes loaded per output", "sectors loaded per output", "sectors per load", "sectors per store",
                  "shared requests", "bank conflicts", "constant requests", "barriers"], counters_cells),
}


def stages_table(kind, rows, stage):
    headings, cells = KINDS[kind]
    if stage:
        rows = [row for row in rows if row["number"] == stage]
    if kind == "times" and any(cudnn_best(row, two_passes=True) for row in rows):
        headings, cells = headings + ["over cuDNN's two passes"], lambda row: times_cells(row) + two_passes_cells(row)
    elif kind == "times" and any(median(row, PRODUCT) for row in rows):
        headings, cells = headings + ["product alone (µs)"], lambda row: times_cells(row) + product_cells(row)
    if stage:
        return markdown(["workload"] + headings, [[row["workload_name"] or ""] + cells(row) for row in rows], 1)
    return markdown(["stage", "workload"] + headings,
                    [[stage_cell(row), row["workload_name"] or ""] + cells(row) for row in rows], 2)


def stage_json(number):
    return json.loads(next(ROOT.glob(f"chapters/{number:02d}-*/stage.json")).read_text())


def ladder_table(rows, track, page):
    """@param track  the stages' track; None for all"""
    lines = {}
    for row in rows:
        folder = f"{row['number'] or 0:02d}-{row['stage']}"
        if row["number"] is None or folder in lines:
            continue
        chapter = ROOT / "chapters" / folder
        manifest = stage_json(row["number"])
        if track not in (None, manifest["track"]):
            continue
        link = os.path.relpath(chapter / "README.md", page.parent)
        time, _, _, previous, _, best, share, _ = times_cells(row)
        before = stage_json(manifest["previous"]) if row["speedup"]["previous"] else manifest
        if before["dtype"] != manifest["dtype"]:
            previous = previous_cell(row, f"{manifest['dtype']} over {before['dtype']}")
        lines[folder] = [f"{row['number']:02d}", f"[{row['stage']}]({link})", manifest["idea"],
                         row["workload_name"] or "", time, previous, best.partition(" ")[0], share]
    return markdown(["no.", "stage", "idea", "workload", "time (µs)", "over previous", "over cuDNN's best",
                     "share of the floor"], [lines[folder] for folder in sorted(lines)], 4)


CHOOSING_SIZE = (3840, 2160)  # width and height of the images that the methods are compared on
CHOOSING_STAGES = ("naive-2d", "tiled-2d", "separable", "register-2d", "cufft")
CUDNN_TWO_PASSES = "cuDNN, two passes"
RANK_ONE = ("08 separable", CUDNN_TWO_PASSES)  # the methods that take no other filter


def choosing_rows(rows):
    """By the side of the filter: the time of each method in µs, None where it did not run."""
    by_side = {}
    for row in rows:
        problem = row["workload"]
        if (problem["w"], problem["h"]) != CHOOSING_SIZE or problem["r"] != problem["s"]:
            continue
        times = by_side.setdefault(problem["r"], {})
        if row["stage"] in CHOOSING_STAGES:
            times[stage_cell(row)] = row["time_us"]["median"] if row["status"] == "ok" and row["time_us"] else None
        for heading, two_passes in (("cuDNN", False), (CUDNN_TWO_PASSES, True)):
            best = cudnn_best(row, two_passes)
            times[heading] = best["time_us"] if best else None
    return dict(sorted(by_side.items()))


def method_order(by_side):
    """The methods that were measured: those for any filter before those for filters of rank one, stages first."""
    methods = {method for times in by_side.values() for method in times}
    return sorted(methods, key=lambda method: (method in RANK_ONE, not method[0].isdigit(), method != "cufft", method))


def choosing_table(rows):
    """In each row the fastest of the methods for any filter is bold, and the fastest of those for rank one."""
    by_side = choosing_rows(rows)
    if not by_side:
        raise TableError("holds no image of this size")
    methods = method_order(by_side)

    def cells(times):
        for method in methods:
            peers = [times[peer] for peer in methods if (peer in RANK_ONE) == (method in RANK_ONE) and times.get(peer)]
            text = microseconds(times[method]) if times.get(method) else "–"
            yield f"**{text}**" if peers and times.get(method) == min(peers) else text

    return markdown(["filter", *methods], [[f"{side}×{side}", *cells(times)] for side, times in by_side.items()], 1)


TENSOR_CORES = (("fp16_flops_per_s", "fp16 products on Tensor Cores (WMMA), sums in fp32", "TFLOP/s"),
                ("int8_ops_per_s", "int8 products on Tensor Cores (WMMA), sums in int32", "TOP/s"))


def machine_table(report):
    device, tools, ceilings = report["device"], report["toolchain"], report["ceilings"]
    if ceilings is None:
        raise TableError("holds no ceilings: it is no result of a GPU")

    def clocks(when):
        values = device[when] or {}
        return " and ".join(f"{values[key]:.0f}" if values.get(key) else "unknown" for key in ("sm_mhz", "memory_mhz"))

    rows = [
        ["GPU", f"{device['name']}, sm_{device['compute_capability']}, {device['multiprocessors']} multiprocessors, "
                f"L2 {device['l2_bytes'] / 2**20:.0f} MiB"],
        ["clocks before (multiprocessors and memory, MHz)", clocks("clocks_before")],
        ["clocks after", clocks("clocks_after")],
        ["CUDA driver, cuDNN", f"{tools['cuda_driver'] or 'unknown'}, {tools['cudnn'] or 'none'}"],
        ["device copy, read + written, DRAM", f"{ceilings['dram_bytes_per_s'] * 1e-12:.2f} TB/s"],
        ["the same within L2", f"{ceilings['l2_bytes_per_s'] * 1e-12:.2f} TB/s"],
        ["fp32 multiply-adds", f"{ceilings['fp32_flops_per_s'] * 1e-12:.1f} TFLOP/s"],
        *([text, f"{ceilings[key] * 1e-12:.1f} {unit}"] for key, text, unit in TENSOR_CORES if ceilings.get(key)),
        ["an empty kernel in a CUDA graph", f"{ceilings['launch_us']:.2f} µs"],
    ]
    return markdown(["what", "measured"], rows, 2)


def grid_table(report, stage=0):
    """@param stage of the rows; 0 for all"""
    forms = report["format"]
    if any(len(row["values"]) != len(forms) for row in report["rows"]):
        raise TableError("has a row with more or fewer values than formats")
    rows = [[row["name"], *("–" if value is None else f"{value:{form}}" for value, form in zip(row["values"], forms))]
            for row in report["rows"] if not stage or row["name"].startswith(f"{stage:02d} ")]
    if not rows:
        raise TableError("has no rows")
    return markdown([report["corner"], *report["columns"]], rows, 1)


def compared_cell(row, count):
    """A figure of the simulator; with the GPU's after it where that differs."""
    simulator, gpu = count(row["simulator"]), count(row["gpu"])
    return simulator if simulator == gpu else f"**{simulator}** / **{gpu}**"


def compared_column(counter):
    return lambda counters: f"{counters[counter]:,}"


def sectors_column(kind):
    def per_request(counters):
        requests = counters[f"global_{kind}_requests"]
        return f"{counters[f'global_{kind}_sectors'] / requests:.2f}" if requests else "–"

    return per_request


COMPARED = {
    "global": {heading: column for kind in ("load", "store") for heading, column in (
        (f"{kind} requests", compared_column(f"global_{kind}_requests")),
        (f"{kind} sectors", compared_column(f"global_{kind}_sectors")),
        (f"sectors per {kind}", sectors_column(kind)),
        (f"{kind} bytes", compared_column(f"global_{kind}_bytes")))},
    "shared": {heading: compared_column(counter) for heading, counter in (
        ("load requests", "shared_load_requests"), ("load conflicts", "shared_load_conflicts"),
        ("store requests", "shared_store_requests"), ("store conflicts", "shared_store_conflicts"),
        ("atomics", "atomic_requests"), ("barriers", "barriers"))},
}


def compared_table(report, part):
    rows = report["rows"]
    if part == "differences":
        return markdown(["kernels", "counter: simulator, GPU", "why"], [
            [row["name"], "; ".join(f"`{counter}`: {value:,}, {row['gpu'][counter]:,}"
                                    for counter, value in row["simulator"].items() if row["gpu"][counter] != value),
             "; ".join(row["causes"])] for row in rows if row["causes"]], 3)
    if part == "causes":
        cases = {cause: sum(cause in row["causes"] for row in rows) for cause in report["causes"]}
        return markdown(["cause", "what happens", "cases"],
                        [[f"**{cause}**", text, str(cases[cause])] for cause, text in report["causes"].items()], 2)
    if part == "count":
        return f"{len(rows)} cases, of which {sum(not row['causes'] for row in rows)} agree in all counters.\n"
    columns = COMPARED[part]
    lines = [[row["name"], *(compared_cell(row, column) for column in columns.values())] for row in rows]
    return markdown(["kernel", *columns], [line for line in lines if set(line[1:]) - {"0", "–"}], 1)


LOWERING_STAGES = range(16, 22)
CUBLAS = "im2col-cublas"
CUDNN_FAMILIES = {"GEMM": "cuDNN's GEMM family", "FFT": "its FFT", "WINOGRAD": "its Winograd"}
FLOAT = 4  # bytes


def lowering_workloads(rows, prefix):
    """The workloads whose names begin so, by batch and by the number in the name: {name: {stage: row}}."""
    found = {}
    for row in rows:
        name = row["workload_name"] or ""
        if name.startswith(prefix) and (row["number"] in LOWERING_STAGES or row["stage"] == CUBLAS):
            found.setdefault(name, {})[row["number"] or CUBLAS] = row
    if not found:
        raise TableError(f"has no workload whose name begins with {prefix}")

    def place(name):
        problem = next(iter(found[name].values()))["workload"]
        return problem["n"], [int(number) for number in re.findall(r"\d+", name)]

    return {name: found[name] for name in sorted(found, key=place)}


def tensors(problem):
    """Bytes of the input, the filters, the output, im2col's matrix and im2win's tensor."""
    n, c, k, r, s = (problem[key] for key in ("n", "c", "k", "r", "s"))
    out_height = (problem["h"] + 2 * problem["pad_h"] - problem["dilation_h"] * (r - 1) - 1) // problem["stride_h"] + 1
    sizes = {"input": n * c * problem["h"] * problem["w"], "filters": k * c * r * s, "output": outputs(problem),
             "im2col": c * r * s * outputs(problem) // k,
             "im2win": n * c * out_height * r * (problem["w"] + 2 * problem["pad_w"])}
    return {name: FLOAT * size for name, size in sizes.items()}


def cudnn_trials(stages):
    """What cuDNN was tried with on a workload: each of its rows holds the same list."""
    return next((row["cudnn"] for row in stages.values() if row["cudnn"]), [])


def family_best(trials, family):
    """cuDNN's fastest trial of a family that counts, or None."""
    return min((trial for trial in trials
                if trial["status"].startswith("ok") and trial["time_us"] and trial["family"] == family),
               key=lambda trial: trial["time_us"], default=None)


def explicit_gemm(trials):
    """cuDNN's own im2col, if it ran."""
    return next((trial for trial in trials if (trial["algorithm"], trial["layout"]) == ("GEMM", "NCHW")
                 and trial["status"].startswith("ok")), None)


def megabytes(value):
    return "–" if value is None else f"{value * 1e-6:,.0f}" if value >= 10e6 else f"{value * 1e-6:.1f}"


def share_of_im2col(problem):
    """Bytes of im2win's tensor over those of im2col's matrix: alone, and each with input, filters and output."""
    sizes = tensors(problem)
    rest = sizes["input"] + sizes["filters"] + sizes["output"]
    return sizes["im2win"] / sizes["im2col"], (rest + sizes["im2win"]) / (rest + sizes["im2col"])


def short_names(workloads):
    """What stands before the sizes in each name; with the batch, where that alone is not unique."""
    heads = [name.partition(" (")[0] for name in workloads]
    return [f"{head}, n = {problem['n']}" if heads.count(head) > 1 else head
            for head, problem in zip(heads, lowering_problems(workloads))]


def lowering_problems(workloads):
    return [next(iter(stages.values()))["workload"] for stages in workloads.values()]


def lowering_memory(workloads):
    """In MB. Last a line with the arithmetic means of the two shares."""
    lines, shares = [], []
    for name, stages, problem in zip(short_names(workloads), workloads.values(), lowering_problems(workloads)):
        sizes, trials = tensors(problem), cudnn_trials(stages)
        explicit = explicit_gemm(trials)
        best = [family_best(trials, family) for family in CUDNN_FAMILIES]
        shares.append(share_of_im2col(problem))
        lines.append([name, *(megabytes(sizes[key]) for key in ("input", "output", "im2col", "im2win")),
                      *map(percent, shares[-1]), megabytes(stages[21]["workspace_bytes"] if 21 in stages else None),
                      *(megabytes(trial and trial["workspace_bytes"]) for trial in (explicit, *best))])
    means = [percent(arithmetic_mean(column)) for column in zip(*shares)]
    lines.append(["arithmetic mean"] + [""] * 4 + means + [""] * 5)
    return markdown(["workload (MB)", "input", "output", "im2col's matrix", "im2win's tensor", "im2win of im2col",
                     "with all tensors", "workspace of 21", "of cuDNN's `GEMM`",
                     *(f"of {text}" for text in CUDNN_FAMILIES.values())], lines, 1)


def lowering_stages(workloads):
    """The numbers of the stages, and the cuBLAS row, as they were measured."""
    measured = {stage for stages in workloads.values() for stage in stages}
    return sorted(measured - {CUBLAS}) + [CUBLAS] * (CUBLAS in measured)


def lowering_headings(workloads, columns):
    rows = {stage: row for stages in workloads.values() for stage, row in stages.items()}
    return [stage_cell(rows[column]) for column in columns]


def lowering_times(workloads):
    """In µs, the transform included; cuDNN's best of each family."""
    columns = lowering_stages(workloads)
    lines = []
    for name, stages in workloads.items():
        best = [family_best(cudnn_trials(stages), family) for family in CUDNN_FAMILIES]
        lines.append([name, *(time_cell(median(stages.get(column))) for column in columns),
                      *(time_cell(trial and trial["time_us"]) for trial in best)])
    return markdown(["workload (µs)", *lowering_headings(workloads, columns), *CUDNN_FAMILIES.values()], lines, 1)


def lowering_product(workloads):
    """In µs, without the transform; last its share of stage 21's time."""
    columns = [stage for stage in lowering_stages(workloads)
               if any(median(stages.get(stage), PRODUCT) for stages in workloads.values())]
    lines = []
    for name, stages in zip(short_names(workloads), workloads.values()):
        whole, product = median(stages.get(21)), median(stages.get(21), PRODUCT)
        lines.append([name, *(time_cell(median(stages.get(column), PRODUCT)) for column in columns),
                      percent(1 - product / whole if whole and product else None)])
    return markdown(["product alone (µs)", *lowering_headings(workloads, columns), "the transform's share of 21"],
                    lines, 1)


def lowering_ratios(stages):
    """Of one workload: how many times faster stage 21 is than each other, None where one of both has no time."""
    time, trials = median(stages.get(21)), cudnn_trials(stages)
    alone = [median(stages.get(stage), PRODUCT) for stage in (CUBLAS, 21)]
    others = {f"{stage:02d}": median(stages.get(stage)) for stage in LOWERING_STAGES if stage < 21}
    others[CUBLAS] = median(stages.get(CUBLAS))
    ratios = {name: other / time if other and time else None for name, other in others.items()}
    ratios[f"{CUBLAS}, both without the transform"] = alone[0] / alone[1] if all(alone) else None
    for family, text in CUDNN_FAMILIES.items():
        best = family_best(trials, family)
        ratios[text] = best["time_us"] / time if best and time else None
    ratios["best of all cuDNN"] = min((ratios[text] for text in CUDNN_FAMILIES.values() if ratios[text]), default=None)
    return ratios


def ratio_columns(workloads):
    """By the name of the other: (the ratios of all workloads, those of them that there are)."""
    every = [lowering_ratios(stages) for stages in workloads.values()]
    return {name: [ratios[name] for ratios in every if ratios[name]] for name in every[0]}


def lowering_ratios_table(workloads):
    columns = ratio_columns(workloads)
    lines = [[name, *map(ratio, lowering_ratios(stages).values())]
             for name, stages in zip(short_names(workloads), workloads.values())]
    for text, summary in (("**geometric mean**", geometric_mean), ("best", max), ("worst", min)):
        lines.append([text, *(ratio(summary(values) if values else None) for values in columns.values())])
    return markdown(["21 over", *columns], lines, 1)


def lowering_claims(workloads):
    """The headlines of Lu's thesis for GPUs, beside the same figures here."""
    columns = ratio_columns(workloads)
    alone, with_all = zip(*map(share_of_im2col, lowering_problems(workloads)))

    def figures(name, *summaries):
        return " ".join(ratio(summary(columns[name]) if columns[name] else None) for summary in summaries)

    def less(shares):
        return f"{percent(1 - arithmetic_mean(shares))} (geometric mean: {percent(1 - geometric_mean(shares))})"

    def beside(pick):
        """The workspaces of 21 and of a trial of cuDNN's on each workload that has both."""
        found = [(stages[21]["workspace_bytes"], pick(cudnn_trials(stages))) for stages in workloads.values()
                 if 21 in stages]
        return [(ours, trial["workspace_bytes"]) for ours, trial in found if trial and ours is not None]

    def smaller_on(family):
        pairs = beside(lambda trials: family_best(trials, family))
        return f"on {sum(ours < theirs for ours, theirs in pairs)} of {len(pairs)} layers" if pairs else "–"

    unfolded = [(ours, theirs) for ours, theirs in beside(explicit_gemm) if theirs]
    over_unfolded = f"{percent(1 - arithmetic_mean([a / b for a, b in unfolded]))}, on {len(unfolded)} layers" \
        if unfolded else "–"
    gemm, every = CUDNN_FAMILIES["GEMM"], "best of all cuDNN"
    return markdown(["claim", "Lu's thesis", "here"], [
        ["faster than im2col and a matrix product (here cuBLAS's), on average", "3.5×", figures(CUBLAS, geometric_mean)],
        ["faster than cuDNN's GEMM family, on average", "1.1×", figures(gemm, geometric_mean)],
        ["the same, at best", "1.8×", figures(gemm, max)],
        ["faster than all that cuDNN offers, on average", "–", figures(every, geometric_mean)],
        ["less memory than im2col, the tensor against the matrix", "23.1% (GPU), 41.6% (CPU)", less(alone)],
        ["less memory than im2col, with input, filters and output", "the same figures", less(with_all)],
        ["less workspace than cuDNN's `GEMM`, where that unfolds", "23.1%", over_unfolded],
        *([f"less workspace than the fastest of {text}", "23.1%", smaller_on(family)]
          for family, text in CUDNN_FAMILIES.items()),
    ], 3)


LOWERING = {"memory": lowering_memory, "times": lowering_times, "product": lowering_product,
            "ratios": lowering_ratios_table, "claims": lowering_claims}


CPU_STAGE, CPU_OTHERS = "im2win-cpu", ("direct-cpu", "im2col-openblas", "onednn")


def cpu_workloads(rows):
    """What the track cpu ran, by the number in the workload's name and by the batch: {name: {stage: row}}."""
    found = {}
    for row in rows:
        if row["backend"] == "cpu":
            found.setdefault(row["workload_name"] or "", {})[row["stage"]] = row
    if not found:
        raise TableError("holds no row of the track cpu")

    def place(name):
        number = re.search(r"\d+", name)
        return int(number[0]) if number else 0, next(iter(found[name].values()))["workload"]["n"]

    return {name: found[name] for name in sorted(found, key=place)}


def cpu_steps(workloads):
    """The ablation, from the plain form to the stage with all switches on."""
    stages = dict.fromkeys(stage for rows in workloads.values() for stage in rows)
    return [stage for stage in stages if stage.startswith(f"{CPU_STAGE} ")] + [CPU_STAGE]


def step_text(step):
    return "all on" if step == CPU_STAGE else step.removeprefix(f"{CPU_STAGE} ")


def gflops(row):
    """The direct form's operations in 1e-9 / s, or None."""
    time = median(row)
    return 1e3 * row["effective_tflops"] if time else None


def cpu_device(workloads):
    return next(row["device"] for rows in workloads.values() for row in rows.values())


def cpu_gflops(workloads):
    names = ["direct-cpu", "im2col-openblas", *cpu_steps(workloads), "onednn"]
    headings = [step_text(name) if name.startswith(CPU_STAGE) else name for name in names]
    values = [[gflops(rows.get(name)) for name in names] for rows in workloads.values()]

    def cell(value):
        return "–" if value is None else f"{value:.1f}"

    lines = [[name, *map(cell, line)] for name, line in zip(workloads, values)]
    return markdown([f"GFLOP/s, {cpu_device(workloads)}", *headings], with_means(lines, zip(*values), cell), 1)


def over(rows, name, other):
    """How many times faster the first is than the second, or None."""
    mine, its = median(rows.get(name)), median(rows.get(other))
    return its / mine if mine and its else None


def cpu_ratios(workloads):
    values = [[over(rows, CPU_STAGE, other) for other in CPU_OTHERS] for rows in workloads.values()]
    lines = [[name, *map(ratio, line)] for name, line in zip(workloads, values)]
    return markdown([f"22 over, {cpu_device(workloads)}", *CPU_OTHERS], with_means(lines, zip(*values), ratio), 1)


def cpu_ablation(workloads):
    steps = cpu_steps(workloads)
    values = [[over(rows, step, before) for before, step in zip(steps, steps[1:])] + [over(rows, CPU_STAGE, steps[0])]
              for rows in workloads.values()]
    lines = [[name, *map(ratio, line)] for name, line in zip(workloads, values)]
    headings = [*map(step_text, steps[1:-1]), "+ threads", "all over plain"]
    return markdown([f"over the one before, {cpu_device(workloads)}", *headings],
                    with_means(lines, zip(*values), ratio), 1)


def cpu_memory(workloads):
    """In MB: what each row takes besides input, filters and output."""
    plain = cpu_steps(workloads)[0]
    columns = {"im2col-openblas": "im2col-openblas", plain: "22, the whole tensor", CPU_STAGE: "22, with bands",
               "onednn": "onednn"}
    lines = []
    for name, rows in workloads.items():
        sizes = tensors(next(iter(rows.values()))["workload"])
        taken = [rows[key]["workspace_bytes"] if median(rows.get(key)) else None for key in columns]
        lines.append([name, *(megabytes(sizes[key]) for key in ("input", "im2col", "im2win")),
                      percent(sizes["im2win"] / sizes["im2col"]), *map(megabytes, taken)])
    return markdown(["workload (MB)", "input", "im2col's matrix", "im2win's tensor", "im2win of im2col",
                     *(f"taken by {text}" for text in columns.values())], lines, 1)


def cpu_claims(workloads):
    """The headlines of Lu's thesis for CPUs, beside the same figures here."""

    def figures(other):
        values = [value for rows in workloads.values() if (value := over(rows, CPU_STAGE, other))]
        return f"{ratio(min(values))} to {ratio(max(values))}, {ratio(geometric_mean(values))} on average" \
            if values else "–"

    shares = [sizes["im2win"] / sizes["im2col"] for rows in workloads.values()
              for sizes in [tensors(next(iter(rows.values()))["workload"])]]
    return markdown(["claim", "Lu's thesis", f"here, {cpu_device(workloads)}"], [
        ["faster than im2col and a library's product", "2.2× to 5.8×", figures("im2col-openblas")],
        ["faster than direct convolution", "3.8× to 7.1×", figures("direct-cpu")],
        ["faster than oneDNN", "–", figures("onednn")],
        ["less memory than im2col, the tensor against the matrix", "41.6%", percent(1 - arithmetic_mean(shares))],
    ], 3)


CPU = {"gflops": cpu_gflops, "ratios": cpu_ratios, "ablation": cpu_ablation, "memory": cpu_memory, "claims": cpu_claims}


def results(name):
    """What docs/results holds by this name: docs/results/schema.json."""
    try:
        return read_report(RESULTS / f"{name}.json")
    except OSError as error:
        raise TableError(f"needs docs/results/{name}.json: {error.strerror}") from error


def hopper(words):
    """A table of the track hopper, whose report may be missing. @param words of its marker, after the kind"""
    if words == ["stages"]:
        return hopper_stages_table()
    file, *rest = words or [""]
    report = results(file) if (RESULTS / f"{file}.json").exists() else None
    if rest == ["machine"]:
        return machine_table(report) if report else NOT_MEASURED
    rows = report and report["rows"]
    if rest[:1] == ["drawing"] and len(rest) == 2 and rest[1] in DRAWINGS:
        return drawing(rest[1], rows, file, RESULTS)
    return hopper_table(rows, rest)


def chosen(name, names):
    """The index of the one name that this is, or else begins like. @throws TableError where it is none or several"""
    found = [at for at, whole in enumerate(names) if whole == name] or [
        at for at, whole in enumerate(names) if whole.startswith(name)]
    if len(found) != 1:
        raise TableError(f"has {len(found)} of '{name}': it has {'; '.join(names)}")
    return found[0]


def excerpt(text, rows, columns):
    """The rows and columns of a Markdown table that are asked for; the first column, and all where none are named."""
    lines = [re.split(r" (?<!\\)\| ", line[2:-2]) for line in text.splitlines()]
    heads = [re.sub(r"[*`]", "", line[0]) for line in lines[2:]]
    kept = lines[:2] + [lines[2 + chosen(row, heads)] for row in rows] if rows else lines
    places = [0] + [chosen(column, lines[0]) for column in columns] if columns else range(len(lines[0]))
    return "".join("| " + " | ".join(line[place] for place in places) + " |\n" for line in kept)


OBJECTIVES = re.compile(r"^## What you will be able to do\n\n(.*?)\n## ", re.DOTALL | re.MULTILINE)


def objectives(which, page):
    """What the lessons say that their readers will be able to do. @param which  a track, or a chapter's folder"""
    chapters = [path.parent for path in sorted((ROOT / "chapters").glob("*/README.md"))
                if path.parent.name == which or ((path.parent / "stage.json").exists()
                                                 and json.loads((path.parent / "stage.json").read_text())["track"] == which)]
    if not chapters:
        raise TableError("is neither a track nor a chapter")
    found = [(chapter, OBJECTIVES.search((chapter / "README.md").read_text())) for chapter in chapters]
    return "\n" + "\n".join(
        f"[{chapter.name.replace('-', ' ', 1)}]({os.path.relpath(chapter / 'README.md', page.parent)}):\n\n{own[1]}"
        for chapter, own in found if own) + "\n"


def table(name, page):
    """The Markdown of one table, for a page."""
    if name.startswith("objectives "):
        return objectives(name.partition(" ")[2], page)
    name, *selections = name.split(" | ")
    wanted = {"rows": [], "columns": []}
    for selection in selections:
        kind, _, names = selection.partition(": ")
        if kind not in wanted or not names:
            raise TableError(f"has '{selection}' behind a bar: write rows: or columns:, and names between semicolons")
        wanted[kind] = names.split("; ")
    text = whole_table(name, page)
    return excerpt(text, **wanted) if selections else text


def whole_table(name, page):
    words = name.split()
    if words[:1] == ["lowering"]:
        if len(words) != 4 or words[2] not in LOWERING:
            raise TableError(f"is no table: write a file, one of {', '.join(LOWERING)}, and how the names of the "
                             "workloads begin")
        return LOWERING[words[2]](lowering_workloads(results(words[1])["rows"], words[3]))
    if words[:1] == ["cpu"]:
        if len(words) != 3 or words[2] not in CPU:
            raise TableError(f"is no table: write a file, and one of {', '.join(CPU)}")
        return CPU[words[2]](cpu_workloads(results(words[1])["rows"]))
    if words[:1] == ["winograd"] and len(words) > 1:
        return winograd_table(results(words[1])["rows"], words[2:])
    if words[:1] == ["hopper"]:
        return hopper(words[1:])
    if words[:1] == ["beside"] and len(words) > 1:
        return beside_table(results(words[1])["rows"], words[2:])
    if words[:1] == ["several"] and len(words) > 1:
        return several_table(results, words[1], words[2:])
    if words[:1] == ["gpus"]:
        return gpus_table(RESULTS, words[1:])
    if words[:1] == ["ladder"] and len(words) > 1:
        track = words.pop().removeprefix("track=") if words[-1].startswith("track=") else None
        return ladder_table([row for file in words[1:] for row in results(file)["rows"]], track, page)
    kinds = [*KINDS, "ladder", "choosing", "machine", "grid", "compared", "lowering", "cpu", "winograd", "hopper", "beside"]
    stage = int(words[2]) if len(words) == 3 and words[2].isdigit() and words[0] in (*KINDS, "grid") else 0
    part = words[2] if len(words) == 3 and words[0] == "compared" else None
    if words[:1] == [] or words[0] not in kinds or len(words) != (3 if stage or part else 2):
        raise TableError(f"is no table: write one of {', '.join(kinds)}, a file of docs/results, and after "
                         f"{' or '.join(KINDS)} or grid a stage's number or none")
    if words[0] == "compared" and part not in [*COMPARED, "count", "causes", "differences"]:
        raise TableError(f"is no table: write one of {', '.join(COMPARED)}, count, causes and differences after the file")
    report = results(words[1])
    if words[0] == "grid":
        return grid_table(report, stage)
    if words[0] == "compared":
        return compared_table(report, part)
    rows = report["rows"]
    if not any(stage in (0, row["number"]) for row in rows):
        raise TableError("has no rows")
    if words[0] == "choosing":
        return choosing_table(rows)
    if words[0] == "machine":
        return machine_table(report)
    return stages_table(words[0], rows, stage)


def brought_up_to_date(path, text, check):
    """Whether a file holds the text; where it does not, writes it, unless told to check alone."""
    name = path.relative_to(ROOT)
    if path.exists() and path.read_text() == text:
        return True
    if check:
        print(f"tables.py: {name} is out of date: run python3 tools/tables.py", file=sys.stderr)
        return False
    path.write_text(text)
    print(name)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if something would change")
    arguments = parser.parse_args()
    failed = False
    pages = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("chapters/*/README.md")),
             *sorted(ROOT.glob("solutions/*/README.md"))]
    for page in filter(pathlib.Path.exists, pages):
        text, name = page.read_text(), page.relative_to(ROOT)
        if len(BEGINS.findall(text)) != len(MARKED.findall(text)):
            print(f"tables.py: {name}: a table has no <!-- /table -->", file=sys.stderr)
            failed = True
            continue

        def fill(match, page=page):
            try:
                return match[1] + table(match[2], page) + match[4]
            except TableError as error:
                nonlocal failed
                failed = True
                print(f"tables.py: {name}: table:{match[2]} {error}", file=sys.stderr)
                return match[0]

        filled, problems = rewrite(MARKED.sub(fill, text))
        for problem in problems:
            failed = True
            print(f"tables.py: {name}: {problem}", file=sys.stderr)
        failed |= not brought_up_to_date(page, filled, arguments.check)
    drawing = ladder.picture([row for file in LADDER for row in results(file)["rows"]], stage_json)
    failed |= not brought_up_to_date(RESULTS / "plots" / "ladder.svg", drawing, arguments.check)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
