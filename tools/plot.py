#!/usr/bin/env python3
"""Draws what `./lab bench --json FILE` or `./lab tune` measured: python3 tools/plot.py FILE FOLDER writes SVG files.

A GPU's results: speedup.svg (over the first stage of the track, one panel for each workload) and roofline.svg
(share of the roofline), and choosing.svg (the methods for images by the side of the filter, where three sides or more
were measured). Of the track lowering also ablation.svg and ablation-resnet.svg (effective TFLOP/s on the twelve layers
and on those of a ResNet). The simulator's: bytes.svg (bytes that lanes asked for, for each output).

Of the track winograd: winograd-size.svg, winograd-batch.svg and winograd-channels.svg (over cuDNN's best and over its
Winograd, a line for each stage, by the image's side, the batch and the channels).

Of the track hopper: hopper-size.svg, hopper-batch.svg and hopper-channels.svg (effective TFLOP/s by the same, with those
of cuDNN's best), and hopper-errors.svg (stage 35's tiles, speed over error).

Of the track cpu: cpu.svg (GFLOP/s of stage 22 as its switches are turned on, and of what it is compared with).

Of a log of `./lab tune`: tuning.svg (the best configuration so far over the trials, a line for each search).
"""

import argparse
import math
import pathlib
import sys

from cells import TableError, median, stage_cell
from comparisons import cudnn_best, cudnn_winograd, head_of, over_best, problem_of
from hopper_tables import (DRAWINGS, TYPES, error_of, heading as hopper_heading, hopper_workloads, names, numbers_of,
                           over_cudnn, tile_of, tiled_rows)
from report import read_report
from tables import (CHOOSING_SIZE, CPU_OTHERS, PRODUCT, RANK_ONE, choosing_rows, cpu_device, cpu_steps, cpu_workloads,
                    gflops, lowering_workloads, method_order, outputs)
from winograd_tables import heading, numbers, over_winograd, type_of, winograd_workloads

try:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot, ticker
except ImportError:
    sys.exit("plot.py needs matplotlib: apt-get install python3-matplotlib, or python3 -m pip install matplotlib")

# The same file from the same numbers.
matplotlib.rcParams["svg.hashsalt"] = "convladder"

# The colours of text and lines, and of the ground. Where the reader's theme is dark, a style sheet changes both.
INK, PAPER = "#1f2328", "#ffffff"
for key in ("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color"):
    matplotlib.rcParams[key] = INK
for key in ("figure.facecolor", "axes.facecolor"):
    matplotlib.rcParams[key] = PAPER
DARK = f"""@media (prefers-color-scheme: dark) {{
 [style*="fill: {INK}"] {{ fill: #e6edf3 !important }}
 [style*="stroke: {INK}"] {{ stroke: #e6edf3 !important }}
 [style*="fill: {PAPER}"] {{ fill: none !important }}
}}</style>"""

WIDTH = 12  # of a figure, in inches
LOG_RATIO = 20  # of the largest value to the smallest, beyond which a panel's axis is logarithmic
SHARED_RATIO = 3  # of the panels' largest values, up to which they share one axis


def workload_label(row):
    if row.get("workload_name"):
        return row["workload_name"]
    problem = row["workload"]
    return f"{problem['n']}×{problem['c']}×{problem['h']}×{problem['w']}, {problem['r']}×{problem['s']}"


def speedup_over_first(row):
    return row["speedup"]["first"]


def ratio_text(value):
    return f"{value:,.0f}×" if value >= 100 else f"{value:.2f}×"


def speedup_text(row, value):
    previous = row["speedup"]["previous"]
    return ratio_text(value) + (f" (prev. {ratio_text(previous)})" if previous else "")


def roofline_share(row):
    return 100 * row["roofline"]["share"] if row["roofline"] and row["roofline"]["share"] is not None else None


def percent_text(row, value):
    return f"{value:.0f}%" if value >= 10 else f"{value:#.2g}%"


def bytes_per_output(row):
    counters = row["counters"]
    if not counters:
        return None
    return (counters["global_load_bytes"] + counters["global_store_bytes"]) / outputs(row["workload"])


def draw_panel(axes, title, values, texts, colours):
    """Horizontal bars, one for each stage, with their texts in a column on the right."""
    places = range(len(values))
    axes.barh(places, list(values.values()), color=[colours[stage] for stage in values])
    axes.set_yticks(places, list(values), fontsize=8)
    axes.invert_yaxis()
    column = axes.secondary_yaxis("right")
    column.set_yticks(places, texts, fontsize=8)
    for side in (axes, column):
        side.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    column.spines["right"].set_visible(False)
    axes.set_title(title, fontsize=9)


def scale_panel(axes, values, label, may_be_log):
    """The axis of a panel for these values: logarithmic, if it may be, where linear bars would vanish beside others."""
    smallest, largest = min(values), max(values)
    if may_be_log and smallest > 0 and largest > LOG_RATIO * smallest:
        axes.set_xscale("log")
        axes.set_xlim(smallest / 2, largest * 1.2)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 3)))
        axes.xaxis.set_minor_locator(ticker.NullLocator())
        label += ", log scale"
    elif largest > 0:
        axes.set_xlim(0, largest * 1.05)
        axes.locator_params(axis="x", nbins=6)
    axes.set_xlabel(label, fontsize=8)


def bytes_text(row, value):
    return f"{value:.1f}"


def save(figure, path):
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    path.write_text(path.read_text().replace("</style>", DARK, 1))


def draw(rows, title, label, value_of, text_of, path, may_be_log=True):
    """One panel for each workload, one bar for each stage. Draws nothing where no row has the value.

    The panels share one scale where their largest values are much alike.
    """
    panels = {}
    for row in rows:
        if row["status"] == "ok" and value_of(row) is not None:
            panels.setdefault(workload_label(row), {})[stage_cell(row)] = row
    if not panels:
        return False
    stages = sorted({stage for panel in panels.values() for stage in panel})
    colours = {stage: f"C{i % 10}" for i, stage in enumerate(stages)}
    values = {name: {stage: value_of(row) for stage, row in panel.items()} for name, panel in panels.items()}
    peaks = [max(panel.values()) for panel in values.values()]
    shared = max(peaks) <= SHARED_RATIO * min(peaks)
    every_value = [value for panel in values.values() for value in panel.values()]

    columns = len(panels) if len(panels) <= 3 else 2 if len(panels) == 4 else 3
    lines = -(-len(panels) // columns)
    tallest = max(len(panel) for panel in panels.values())
    figure, grid = pyplot.subplots(
        lines,
        columns,
        figsize=(WIDTH if columns > 1 else WIDTH / 2, 0.5 + lines * (0.8 + 0.24 * tallest)),
        layout="constrained",
        squeeze=False,
    )
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.08)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for axes, (name, panel) in zip(grid.flat, panels.items()):
        texts = [text_of(row, value_of(row)) for row in panel.values()]
        draw_panel(axes, name, values[name], texts, colours)
        scale_panel(axes, every_value if shared else values[name].values(), label, may_be_log)
    figure.suptitle(title)
    save(figure, path)
    return True


def draw_choosing(rows, device, path):
    """A line for each method, the time over the side of the filter; dashed: for filters of rank one alone.

    Draws nothing for less than three sides.
    """
    by_side = choosing_rows(rows)
    if len(by_side) < 3:
        return False
    figure, axes = pyplot.subplots(figsize=(WIDTH * 0.7, WIDTH * 0.45), layout="constrained")
    for i, method in enumerate(method_order(by_side)):
        points = [(side, times[method]) for side, times in by_side.items() if times.get(method)]
        style = "--" if method in RANK_ONE else "-"
        if points:
            axes.plot(*zip(*points), style, color=f"C{i}", marker="o", markersize=3, label=method)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(list(by_side), [str(side) for side in by_side], fontsize=8)
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 3)))
    axes.yaxis.set_minor_locator(ticker.NullLocator())
    axes.tick_params(axis="y", labelsize=8)
    axes.set_xlabel("rows and columns of the filter", fontsize=8)
    axes.set_ylabel("µs, log scale", fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, frameon=False)
    width, height = CHOOSING_SIZE
    figure.suptitle(f"One image of {width}×{height}, {device}")
    save(figure, path)
    return True


COLOURS = {"random": "C0", "annealing": "C1", "exhaustive": "C2"}


def draw_tuning(log, path):
    """The best so far over the trials, a line for each search. Draws nothing where no trial was right."""
    measure = log["measure"]
    figure, axes = pyplot.subplots(figsize=(WIDTH * 0.7, WIDTH * 0.4), layout="constrained")
    drawn = False
    for session in log["sessions"]:
        best = [(number, trial["best_so_far"]) for number, trial in enumerate(session["trials"], 1)
                if trial["best_so_far"] is not None]
        if best:
            axes.step(*zip(*best), where="post", color=COLOURS.get(session["search"], "C3"), label=session["search"])
            drawn = True
    if not drawn:
        pyplot.close(figure)
        return False
    default = log["default"][measure]
    if default is not None:
        axes.axhline(default, color=INK, linewidth=0.8, linestyle="--", label="the default")
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.tick_params(labelsize=8)
    axes.set_xlabel("trials", fontsize=8)
    axes.set_ylabel("best so far, " + ("µs" if measure == "time_us" else "estimated cycles"), fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, frameon=False)
    figure.suptitle(f"{log['stage']}, {log['device']}\n{log['problem']}, padding {log['padding']}", fontsize=10)
    save(figure, path)
    return True


def lowering_tflops(row):
    """The direct form's operations over the time, transform included."""
    return row["effective_tflops"] if median(row) else None


def lowering_text(row, value):
    """With the same of the product alone, where it was measured."""
    product = median(row, PRODUCT)
    return f"{value:.1f}" + (f" (product {value * median(row) / product:.1f})" if product else "")


def draw_ablation(rows, prefix, device, path):
    """The stages of the track lowering and cuBLAS, a panel for each workload whose name begins so.

    Draws nothing where none was timed.
    """
    try:
        workloads = lowering_workloads(rows, prefix)
    except TableError:
        return False
    chosen = [row for stages in workloads.values() for row in stages.values()]
    return draw(chosen, f"Direct convolution, im2col and im2win, {device}", "effective TFLOP/s", lowering_tflops,
                lowering_text, path, may_be_log=False)


# By the number of the stage. Colours that the colour-blind can tell apart; markers and strokes tell, too.
WINOGRAD_COLOURS = dict(zip(range(23, 31), ("#999999", "#56b4e9", "#0072b2", "#e69f00", "#d55e00", "#cc79a7", "#7b5cc4",
                                            "#009e73")))
WINOGRAD_MARKERS = dict(zip(range(23, 31), "osD^v<>P"))
STROKES = {"fp32": "--", "fp16": "-", "int8": "-."}
COMPARED_WITH = {"over cuDNN's best": over_best, "over cuDNN's Winograd (30: of fp16)": over_winograd}


def winograd_panels(workloads, size):
    """By what is compared with, and by what stands before the sizes in a workload's name: {number: {size: ratio}}."""
    panels = {}
    for text, compare in COMPARED_WITH.items():
        for name, stages in workloads.items():
            for number in numbers({name: stages}):
                if value := compare(stages, number):
                    lines = panels.setdefault((text, head_of(name)), {})
                    lines.setdefault(number, {})[problem_of(stages)[size]] = value
    return panels


def draw_winograd(rows, group, size, label, device, path):
    """A line for each stage over a size, a panel for each kind of workload and what the stages are compared with.

    A line has a gap where there is no such ratio. Draws nothing where there is none at all.
    @param size a key of the problem  @param label what it is
    """
    try:
        workloads = winograd_workloads(rows, group)
    except TableError:
        return False
    panels = winograd_panels(workloads, size)
    if not panels:
        return False
    heads = sorted({head for _, head in panels})
    columns = len(heads) if len(heads) > 1 else len(panels)
    lines = -(-len(panels) // columns)
    figure, grid = pyplot.subplots(lines, columns, figsize=(WIDTH, 0.8 + 3.4 * lines), layout="constrained",
                                   squeeze=False, sharey="row" if len(heads) > 1 else False)
    for axes in grid.flat[len(panels):]:
        axes.set_visible(False)
    drawn = {}
    for axes, ((text, head), by_number) in zip(grid.flat, panels.items()):
        sizes = sorted({x for points in by_number.values() for x in points})
        for number, points in by_number.items():
            drawn[number], = axes.plot(sizes, [points.get(x, math.nan) for x in sizes], STROKES[type_of(number)],
                                       color=WINOGRAD_COLOURS[number], marker=WINOGRAD_MARKERS[number], markersize=5,
                                       label=heading(number))
        axes.axhline(1, color=INK, linewidth=0.8)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(sizes, [str(x) for x in sizes], fontsize=8)
        axes.xaxis.set_minor_locator(ticker.NullLocator())
        axes.yaxis.set_major_formatter("{x:g}×")
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_minor_locator(ticker.NullLocator())
        axes.tick_params(axis="y", labelsize=8)
        axes.set_xlabel(label, fontsize=8)
        axes.set_title(f"{head}, {text}" if len(heads) > 1 else text, fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    figure.get_layout_engine().set(rect=(0, 0.35 / figure.get_figheight(), 1, 1 - 0.35 / figure.get_figheight()))
    figure.legend(handles=[drawn[number] for number in sorted(drawn)], loc="lower center", ncols=8, fontsize=8,
                  frameon=False)  # in the room that the line before leaves it
    figure.suptitle(f"How many times as fast as cuDNN in the stage's type, {device}")
    save(figure, path)
    return True


WINOGRAD_PLOTS = (("winograd-size.svg", "image", "h", "rows and columns of the image, log scale"),
                  ("winograd-batch.svg", "batch", "n", "images, log scale"),
                  ("winograd-channels.svg", "channels", "c", "channels, log scale"))


HOPPER_COLOURS = dict(zip(range(31, 36), ("#e69f00", "#0072b2", "#d55e00", "#009e73", "#cc79a7")))
HOPPER_MARKERS = dict(zip(range(31, 36), "osDP^"))
HOPPER_SIZES = {"size": ("h", "rows and columns of the image, log scale"), "batch": ("n", "images, log scale"),
                "channels": ("c", "channels, log scale")}
CUDNN = "cuDNN's best"


def direct_flops(problem):
    """Of the direct form."""
    return 2 * outputs(problem) * problem["c"] // problem["groups"] * problem["r"] * problem["s"]


def hopper_panels(workloads, size):
    """By type, and for batches by layer: {stage's number or CUDNN: {size: TFLOP/s}}. @param size a key of the problem"""
    panels = {}
    for dtype in TYPES:
        for name, stages in workloads.items():
            problem, best = problem_of(stages), cudnn_best(stages, dtype)
            times = {number: median(stages.get(number)) for number in numbers_of(workloads, dtype)}
            if any(times.values()) and best:
                times[CUDNN] = best["time_us"]
            for key, time in times.items():
                if time:
                    lines = panels.setdefault((dtype, head_of(name) if size == "n" else ""), {})
                    lines.setdefault(key, {})[problem[size]] = direct_flops(problem) / time * 1e-6
    return panels


def draw_hopper(rows, kind, device, path):
    """Effective TFLOP/s over a size, a line for each stage and cuDNN's best; a panel for each type, and kind of layer.

    A line has a gap where there is no time. Draws nothing where there is none at all.
    """
    size, label = HOPPER_SIZES[kind]
    panels = hopper_panels(hopper_workloads(rows, DRAWINGS[kind][0]), size)
    if not panels:
        return False
    types = list(dict.fromkeys(dtype for dtype, _ in panels))
    heads = sorted({head for _, head in panels})
    lines, columns = (len(types), len(heads)) if len(heads) > 1 else (1, len(types))
    figure, grid = pyplot.subplots(lines, columns, figsize=(WIDTH, 0.8 + 3 * lines), layout="constrained", squeeze=False,
                                   sharey="row" if len(heads) > 1 else False)
    for axes in grid.flat:
        axes.set_visible(False)
    drawn = {}
    for (dtype, head), by_key in panels.items():
        line, column = types.index(dtype), heads.index(head)
        axes = grid[line, column] if len(heads) > 1 else grid[0, line]
        axes.set_visible(True)
        sizes = sorted({x for points in by_key.values() for x in points})
        for key, points in by_key.items():
            look = {"color": INK, "linestyle": "--", "marker": "x", "label": CUDNN} if key == CUDNN else {
                "color": HOPPER_COLOURS[key], "marker": HOPPER_MARKERS[key], "label": hopper_heading(key)}
            drawn[str(key)], = axes.plot(sizes, [points.get(x, math.nan) for x in sizes], markersize=5, **look)
        axes.set_xscale("log")
        axes.set_xticks(sizes, [str(x) for x in sizes], fontsize=8)
        axes.xaxis.set_minor_locator(ticker.NullLocator())
        axes.tick_params(axis="y", labelsize=8)
        axes.set_xlabel(label, fontsize=8)
        axes.set_ylabel("effective TFLOP/s" if column == 0 else "", fontsize=8)
        axes.set_title(f"{head}, {dtype}" if head else dtype, fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in grid.flat:  # now that those with a shared axis have all their lines
        axes.set_ylim(bottom=0)
    figure.get_layout_engine().set(rect=(0, 0.35 / figure.get_figheight(), 1, 1 - 0.35 / figure.get_figheight()))
    figure.legend(handles=[drawn[key] for key in sorted(drawn)], loc="lower center", ncols=8, fontsize=8, frameon=False)
    figure.suptitle(f"The Hopper track and cuDNN, {device}")
    save(figure, path)
    return True


def hopper_errors(workloads):
    """By workload: {what: (relative error, times as fast as cuDNN's best, whether the bound chose it)}."""
    panels = {}
    for name, stages in zip(names(workloads), workloads.values()):
        best, winograd, tiles = cudnn_best(stages, "fp32"), cudnn_winograd(stages, "fp32"), tiled_rows(stages)
        chosen = tile_of(tiles["auto"]) if "auto" in tiles else None
        points = {tile: (error_of(row), over_cudnn(stages, row), tile == chosen) for tile, row in tiles.items()
                  if tile != "auto" and over_cudnn(stages, row)}
        if not points:
            continue
        points[CUDNN] = (error_of(best), 1, False)
        if winograd and winograd is not best:
            points["cuDNN's Winograd"] = (error_of(winograd), best["time_us"] / winograd["time_us"], False)
        panels[name] = points
    return panels


def draw_hopper_errors(rows, device, path):
    """Stage 35's tiles and cuDNN, speed over error, a panel for each workload; draws nothing where none was timed."""
    panels = hopper_errors(hopper_workloads(rows, DRAWINGS["errors"][0]))
    if not panels:
        return False
    columns = min(len(panels), 3)
    lines = -(-len(panels) // columns)
    figure, grid = pyplot.subplots(lines, columns, figsize=(WIDTH, 0.6 + 3 * lines), layout="constrained", squeeze=False)
    for axes in grid.flat[len(panels):]:
        axes.set_visible(False)
    for axes, (name, points) in zip(grid.flat, panels.items()):
        for what, (error, speed, chosen) in points.items():
            colour, marker = (HOPPER_COLOURS[35], HOPPER_MARKERS[35]) if what[0].isdigit() else (INK, "x")
            axes.plot(error, speed, color=colour, marker=marker, markersize=6)
            if chosen:
                axes.plot(error, speed, color=INK, marker="o", markersize=12, fillstyle="none")
            left = what in ("4x4", "7x4")  # the errors of 7x4 and 6x6 are nearly the same
            below = speed < 1 if what[0].isdigit() else speed > 0.3  # not on each other
            axes.annotate(what, (error, speed), xytext=(-8 if left else 8, -11 if below else 3), fontsize=8, color=INK,
                          textcoords="offset points", horizontalalignment="right" if left else "left")
        axes.axhline(1, color=INK, linewidth=0.8)
        axes.set_xscale("log")
        axes.set_xlim(1e-7, 1e-4)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set_ylim(0, 1.15 * max(speed for _, speed, _ in points.values()))
        axes.yaxis.set_major_formatter("{x:g}×")
        axes.tick_params(labelsize=8)
        axes.set_xlabel("relative L2 error, log scale", fontsize=8)
        axes.set_title(name, fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"Stage 35 by tile: times as fast as cuDNN's best in fp32; ringed: what the default bound takes, "
                    f"{device}", fontsize=11)
    save(figure, path)
    return True


def gflops_text(row, value):
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def draw_cpu(rows, path):
    """The rows of the track cpu, a panel for each workload: the ablation from top to bottom, then the others.

    Draws nothing where none was timed.
    """
    try:
        workloads = cpu_workloads(rows)
    except TableError:
        return False
    order = [*cpu_steps(workloads), *CPU_OTHERS]
    chosen = [stages[name] for stages in workloads.values() for name in order if name in stages]
    return draw(chosen, f"Convolution on a CPU, {cpu_device(workloads)}", "GFLOP/s", gflops, gflops_text, path)


def draw_bench(report, folder):
    """The drawings of `./lab bench`'s JSON."""
    device = report["device"]["name"]
    rows = [row for row in report["rows"] if row["backend"] != "cpu"]  # those have a drawing of their own
    plots = [
        ("speedup.svg", "Speedup over the first stage", "times faster", speedup_over_first, speedup_text),
        ("roofline.svg", "Share of the roofline", "%", roofline_share, percent_text),
        ("bytes.svg", "Global memory traffic", "bytes for each output", bytes_per_output, bytes_text),
    ]
    drawn = [
        folder / name
        for name, title, axis, value_of, text_of in plots
        if draw(rows, f"{title}, {device}", axis, value_of, text_of, folder / name)
    ]
    choosing = folder / "choosing.svg"
    if draw_choosing(rows, device, choosing):
        drawn.append(choosing)
    for prefix, name in (("layer", "ablation.svg"), ("conv", "ablation-resnet.svg")):
        if draw_ablation(rows, prefix, device, folder / name):
            drawn.append(folder / name)
    for name, group, size, label in WINOGRAD_PLOTS:
        if draw_winograd(rows, group, size, label, device, folder / name):
            drawn.append(folder / name)
    for kind in HOPPER_SIZES:
        if draw_hopper(rows, kind, device, folder / f"hopper-{kind}.svg"):
            drawn.append(folder / f"hopper-{kind}.svg")
    if draw_hopper_errors(rows, device, folder / "hopper-errors.svg"):
        drawn.append(folder / "hopper-errors.svg")
    if draw_cpu(report["rows"], folder / "cpu.svg"):
        drawn.append(folder / "cpu.svg")
    return drawn


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=pathlib.Path, help="JSON of ./lab bench --json, or a log of ./lab tune")
    parser.add_argument("folder", type=pathlib.Path, help="where the SVG files go")
    arguments = parser.parse_args()
    try:
        report = read_report(arguments.results)
        is_tuning = "sessions" in report
        if is_tuning:
            report["padding"], report["device"], report["stage"], report["problem"], report["default"][report["measure"]]
        else:
            report["rows"], report["device"]["name"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"plot.py: {arguments.results} is no JSON of ./lab bench or ./lab tune: {error}", file=sys.stderr)
        sys.exit(2)

    try:
        arguments.folder.mkdir(parents=True, exist_ok=True)
        if is_tuning:
            tuning = arguments.folder / "tuning.svg"
            drawn = [tuning] if draw_tuning(report, tuning) else []
        else:
            drawn = draw_bench(report, arguments.folder)
    except OSError as error:
        print(f"plot.py: cannot write {error.filename}: {error.strerror}", file=sys.stderr)
        sys.exit(2)
    if not drawn:
        print(f"plot.py: {arguments.results} holds no result to draw", file=sys.stderr)
        sys.exit(2)
    for path in drawn:
        print(path, file=sys.stderr)


if __name__ == "__main__":
    main()
