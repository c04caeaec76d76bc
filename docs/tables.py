#!/usr/bin/env python3
"""Rewrites the tables in README.md, docs/, chapters/*/README.md and solutions/*/README.md from docs/results/*.json.

A table stands between two markers, each at the start of a line, the first of which says what it holds:

    <!-- table:times h200 -->      times and ratios of every stage, from docs/results/h200.json
    <!-- table:times h200 3 -->    the same of stage 3 alone
    <!-- table:counters sim -->    what the simulator counted for every stage, per output
    <!-- table:counters sim 3 -->  the same of stage 3 alone
    <!-- table:ladder h200 -->     every stage with its idea, on the first workload that it ran
    <!-- table:choosing h200 -->   the methods for images by the side of the filter
    <!-- table:machine h200 -->    the device, its software and its measured ceilings
    <!-- table:grid h200-reads --> a measurement of its own: {corner, columns, rows: [{name, values}]}
    <!-- table:compared h200-ncu global -->       the simulator against Nsight Compute (docs/ncu): global memory;
    <!-- table:compared h200-ncu shared -->       shared memory, atomics and barriers;
    <!-- table:compared h200-ncu differences -->  where the two differ, and why
    <!-- /table -->

`tables.py` writes; `tables.py --check` writes nothing, and exits with 1 if a table is not what its results say.
"""

import argparse
import json
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGINS = re.compile(r"^<!-- table:", re.MULTILINE)
MARKED = re.compile(r"^(<!-- table:([^>]*?) -->\n)(.*?)^(<!-- /table -->)$", re.DOTALL | re.MULTILINE)


class TableError(Exception):
    """A marker that cannot be served."""


def outputs(problem):
    """Elements of the problem's output."""

    def extent(size, pad, dilation, taps, stride):
        return (size + 2 * pad - dilation * (taps - 1) - 1) // stride + 1

    height = extent(problem["h"], problem["pad_h"], problem["dilation_h"], problem["r"], problem["stride_h"])
    width = extent(problem["w"], problem["pad_w"], problem["dilation_w"], problem["s"], problem["stride_w"])
    return problem["n"] * problem["k"] * height * width


def ratio(value):
    return "–" if value is None else f"{value:,.0f}×" if value >= 100 else f"{value:.2f}×"


def percent(value):
    return "–" if value is None else f"{100 * value:.1f}%"


def microseconds(value):
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def stage_cell(row):
    """The stage with its number; a row that is no stage has none."""
    return row["stage"] if row["number"] is None else f"{row['number']:02d} {row['stage']}"


def outcome(row):
    """"" for a verified row, else what happened in its place."""
    return "" if row["status"] == "ok" else f"{row['status']}: {row['reason']}"


def cudnn_best(row, two_passes=False):
    """cuDNN's fastest trial that counts, or None: a convolution by the filter as it is, or by its two factors."""
    return min((trial for trial in row["cudnn"] or []
                if trial["status"].startswith("ok") and trial["time_us"]
                and trial["algorithm"].startswith("two passes") == two_passes),
               key=lambda trial: trial["time_us"], default=None)


def two_passes_cells(row):
    """How many times faster than cuDNN's two passes."""
    best = cudnn_best(row, two_passes=True)
    return [ratio(best["time_us"] / row["time_us"]["median"] if best and row["time_us"] else None)]


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
        ratio(speedup["previous"]),
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


def markdown(headings, rows, left):
    """A table whose first `left` columns are texts and whose others are figures."""
    lines = [headings, ["---"] * left + ["---:"] * (len(headings) - left), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def stages_table(kind, rows, stage):
    headings, cells = KINDS[kind]
    if stage:
        rows = [row for row in rows if row["number"] == stage]
    if kind == "times" and any(cudnn_best(row, two_passes=True) for row in rows):
        headings, cells = headings + ["over cuDNN's two passes"], lambda row: times_cells(row) + two_passes_cells(row)
    if stage:
        return markdown(["workload"] + headings, [[row["workload_name"] or ""] + cells(row) for row in rows], 1)
    return markdown(["stage", "workload"] + headings,
                    [[stage_cell(row), row["workload_name"] or ""] + cells(row) for row in rows], 2)


def ladder_table(rows, page):
    lines = {}
    for row in rows:
        folder = f"{row['number'] or 0:02d}-{row['stage']}"
        if row["number"] is None or folder in lines:
            continue
        chapter = ROOT / "chapters" / folder
        manifest = json.loads((chapter / "stage.json").read_text())
        link = os.path.relpath(chapter / "README.md", page.parent)
        time, _, _, previous, _, best, share, _ = times_cells(row)
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
        ["an empty kernel in a CUDA graph", f"{ceilings['launch_us']:.2f} µs"],
    ]
    return markdown(["what", "measured"], rows, 2)


def grid_table(report):
    digits = report.get("digits", 1)
    rows = [[row["name"], *(f"{value:.{digits}f}" for value in row["values"])] for row in report["rows"]]
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
        return markdown(["kernel", "counter: simulator, GPU", "why"], [
            [row["name"], "; ".join(f"`{counter}`: {value:,}, {row['gpu'][counter]:,}"
                                    for counter, value in row["simulator"].items() if row["gpu"][counter] != value),
             row["note"]] for row in rows if row["simulator"] != row["gpu"]], 3)
    columns = COMPARED[part]
    lines = [[row["name"], *(compared_cell(row, column) for column in columns.values())] for row in rows]
    return markdown(["kernel", *columns], [line for line in lines if set(line[1:]) - {"0", "–"}], 1)


def table(name, page):
    """The Markdown of one table, for a page."""
    words = name.split()
    kinds = [*KINDS, "ladder", "choosing", "machine", "grid", "compared"]
    stage = int(words[2]) if len(words) == 3 and words[2].isdigit() and words[0] in KINDS else 0
    part = words[2] if len(words) == 3 and words[0] == "compared" else None
    if words[:1] == [] or words[0] not in kinds or len(words) != (3 if stage or part else 2):
        raise TableError(f"is no table: write one of {', '.join(kinds)}, a file of docs/results, and after "
                         f"{' or '.join(KINDS)} a stage's number or none")
    if words[0] == "compared" and part not in [*COMPARED, "differences"]:
        raise TableError(f"is no table: write one of {', '.join(COMPARED)} and differences after the file")
    path = ROOT / "docs" / "results" / f"{words[1]}.json"
    try:
        report = json.loads(path.read_text())
    except OSError as error:
        raise TableError(f"needs docs/results/{words[1]}.json: {error.strerror}") from error
    if words[0] == "grid":
        return grid_table(report)
    if words[0] == "compared":
        return compared_table(report, part)
    rows = report["rows"]
    if not any(stage in (0, row["number"]) for row in rows):
        raise TableError("has no rows")
    if words[0] == "ladder":
        return ladder_table(rows, page)
    if words[0] == "choosing":
        return choosing_table(rows)
    if words[0] == "machine":
        return machine_table(report)
    return stages_table(words[0], rows, stage)


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

        filled = MARKED.sub(fill, text)
        if filled == text:
            continue
        if arguments.check:
            print(f"tables.py: {name} is out of date: run python3 docs/tables.py", file=sys.stderr)
            failed = True
        else:
            page.write_text(filled)
            print(name)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
