#!/usr/bin/env python3
"""Draws what `./lab bench --json FILE` or `./lab tune` measured: python3 tools/plot.py FILE FOLDER writes SVG files.

A GPU's results: speedup.svg (over the first stage: a panel for each track, a line for each workload, a dot for each
stage), roofline.svg (a roofline for each track, with its stages), and choosing.svg (the methods for images by the side
of the filter, where three sides or more were measured). Of the track lowering also ablation.svg and ablation-resnet.svg
(effective TFLOP/s on the twelve layers and on those of a ResNet). The simulator's: bytes.svg (bytes that lanes asked
for, for each output).

Of the track winograd: winograd-size.svg, winograd-batch.svg and winograd-channels.svg (over cuDNN's best and over its
Winograd, a line for each stage, by the image's side, the batch and the channels).

Of the track hopper: hopper-size.svg, hopper-batch.svg and hopper-channels.svg (effective TFLOP/s by the same, with
those of cuDNN's best), and hopper-errors.svg (stages 35 to 37 and cuDNN in fp32, time over error; with the grid of
precisions that stands beside the report, where there is one: NAME-precisions.json beside NAME-hopper.json).

Of the track cpu: cpu.svg (GFLOP/s of stage 22 as its switches are turned on, and of what it is compared with).

Of a log of `./lab tune`: tuning.svg (the best configuration so far over the trials, a line for each search).
"""

import argparse
import json
import math
import pathlib
import sys

from cells import TableError, median, stage_cell
from comparisons import cudnn_best, cudnn_winograd, head_of, over_best, problem_of
from hopper_tables import (DRAWINGS, TYPES, error_of, heading as hopper_heading, hopper_workloads, names, numbers_of,
                           over_cudnn, tile_of, tiled_rows)
from report import read_report
from tables import (CHOOSING_SIZE, CPU_OTHERS, RANK_ONE, choosing_rows, cpu_device, cpu_steps, cpu_workloads, gflops,
                    lowering_workloads, method_order, outputs, stage_json)
from winograd_tables import heading, numbers, over_winograd, type_of, winograd_workloads

try:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot, ticker
except ImportError:
    sys.exit("plot.py needs matplotlib: apt-get install python3-matplotlib, or python3 -m pip install matplotlib")
from dot_plots import (BRIGHTER, GRID, INK, LETTERS, PALETTE, SIZE, SMALL, SOFT, WIDTH, Roofline, Sheet, add_dots,
                       label_ends)
from text_width import text_width

# The same file from the same numbers.
matplotlib.rcParams["svg.hashsalt"] = "convladder"

# The colours of text and lines, and of the ground. Where the reader's theme is dark, a style sheet changes both.
PAPER = "#ffffff"
for key in ("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color"):
    matplotlib.rcParams[key] = INK
for key in ("figure.facecolor", "axes.facecolor"):
    matplotlib.rcParams[key] = PAPER
IN_THE_DARK = "\n".join(
    [f' [style*="{what}: {colour}"] {{ {what}: {brighter} !important }}' for colour, brighter in BRIGHTER.items()
     for what in ("fill", "stroke")] +
    [f' [style*="fill: {shade}"] {{ fill: {colour} !important }}' for colour, shade in LETTERS.items()])
DARK = f"""@media (prefers-color-scheme: dark) {{
 [style*="fill: {INK}"] {{ fill: #e6edf3 !important }}
 [style*="stroke: {INK}"] {{ stroke: #e6edf3 !important }}
 [style*="fill: {SOFT}"] {{ fill: #9198a1 !important }}
 [style*="stroke: {SOFT}"] {{ stroke: #9198a1 !important }}
 [style*="stroke: {GRID}"] {{ stroke: #3d444d !important }}
{IN_THE_DARK}
 [style*="fill: {PAPER}"] {{ fill: none !important }}
}}</style>"""

TRACKS = {track["name"]: track["title"] for track in json.loads(
    (pathlib.Path(__file__).resolve().parent.parent / "common/harness/ladder/tracks.json").read_text())}
APART = 0.18  # of two workloads' intensities, in decades, from which on a roofline has room for both
FAR_APART = 0.6  # the same where types stand between them
DULL = 10  # µs of the first stage, below which a workload tells of the launch, and not of the stage


def workload_label(row):
    if row.get("workload_name"):
        return row["workload_name"]
    problem = row["workload"]
    return f"{problem['n']}×{problem['c']}×{problem['h']}×{problem['w']}, {problem['r']}×{problem['s']}"


def speedup_over_first(row):
    return row["speedup"]["first"]


def bytes_per_output(row):
    counters = row["counters"]
    if not counters:
        return None
    return (counters["global_load_bytes"] + counters["global_store_bytes"]) / outputs(row["workload"])


def save(figure, path):
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    path.write_text(path.read_text().replace("</style>", DARK, 1))


def by_track(rows, value_of):
    """{track: {workload: {stage: value}}} of the stages that have a value; dull workloads left out."""
    found, dull = {}, {}
    for row in rows:
        if row["number"] is None or row["status"] != "ok" or value_of(row) is None:
            continue
        track, workload = stage_json(row["number"])["track"], workload_label(row)
        lines = found.setdefault(track, {})
        if workload not in lines and median(row) and median(row) < DULL:
            dull.setdefault(track, set()).add(workload)
        lines.setdefault(workload, {})[stage_cell(row)] = value_of(row)
    for track, lines in found.items():
        if dull.get(track, set()) < set(lines):  # and not all of them
            for workload in dull.get(track, ()):
                del lines[workload]
    return found


def draw_dots(panels, title, label, path, suffix="", mark=None):
    """A panel for each track. Draws nothing where there is none."""
    if not panels:
        return False
    sheet = Sheet(title)
    for track, lines in panels.items():
        add_dots(sheet, TRACKS.get(track, ""), lines, label, suffix, mark)
    save(sheet.figure(), path)
    return True


def draw(rows, title, label, value_of, path, suffix="", mark=None):
    """A panel for each track, a line for each workload, a dot for each stage."""
    return draw_dots(by_track(rows, value_of), title, label, path, suffix, mark)


def intensity_and_rate(row):
    """FLOP a byte of the problem, how many of these TFLOP/s the stage makes, and its type."""
    roofline, time = row["roofline"], median(row)
    if not roofline or not time:
        return None
    return roofline["flops"] / roofline["bytes"], roofline["flops"] / time * 1e-6, row["dtype"]


def columns_of(lines):
    """Of the workloads those that a roofline has room for: the first, and others of another intensity.

    Where a track has several types, each of them has a column of its own: {name: {stage: (intensity, rate)}}.
    """
    types = list(dict.fromkeys(dtype for line in lines.values() for *_, dtype in line.values()))
    kept, columns = [], {}
    for workload, line in lines.items():
        place = math.log10(next(iter(line.values()))[0])
        if any(abs(place - other) < (APART if len(types) == 1 else FAR_APART) for other in kept):
            continue
        kept.append(place)
        for dtype in types:
            points = {stage: (x, y) for stage, (x, y, other) in line.items() if other == dtype}
            if points:
                columns[f"{workload}, {dtype}" if len(types) > 1 else workload] = points
    return columns


def draw_roofline(rows, ceilings, device, path):
    """A panel for each track. Draws nothing where no row was timed."""
    panels = by_track(rows, intensity_and_rate)
    if not panels or not ceilings:
        return False
    sheet, drawn = Sheet(f"Stages on their way to the roof, {device}"), False
    slopes = {what: ceilings[f"{what.lower()}_bytes_per_s"] * 1e-12 for what in ("DRAM", "L2")}
    for track, lines in panels.items():
        types = {dtype for line in lines.values() for *_, dtype in line.values()}
        rates = {dtype: ceilings[f"{dtype}_{'ops' if dtype == 'int8' else 'flops'}_per_s"] for dtype in sorted(types)}
        if all(rates.values()):
            roofs = {dtype: rate * 1e-12 for dtype, rate in rates.items()}
            Roofline(sheet, TRACKS[track], columns_of(lines), roofs, slopes)
            drawn = True
    if drawn:
        save(sheet.figure(), path)
    return drawn


def draw_choosing(rows, device, path):
    """A line for each method, the time over the side of the filter; dashed: for filters of rank one alone.

    Draws nothing for less than three sides.
    """
    by_side = choosing_rows(rows)
    if len(by_side) < 3:
        return False
    figure, axes = pyplot.subplots(figsize=(WIDTH, WIDTH * 0.6), layout="constrained")
    ends = []
    for i, method in enumerate(method_order(by_side)):
        points = [(side, times[method]) for side, times in by_side.items() if times.get(method)]
        if points:
            axes.plot(*zip(*points), "--" if method in RANK_ONE else "-", color=PALETTE[i], marker="o", markersize=4)
            ends.append((*points[-1], method, PALETTE[i]))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(min(by_side) / 1.1, max(by_side) * 1.9)  # room for the names
    axes.set_xticks(list(by_side), [str(side) for side in by_side], fontsize=SMALL)
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 3)))
    axes.yaxis.set_minor_locator(ticker.NullLocator())
    axes.tick_params(axis="y", labelsize=SMALL)
    axes.set_xlabel("rows and columns of the filter", fontsize=SMALL)
    axes.set_ylabel("µs, log scale", fontsize=SMALL)
    axes.spines[["top", "right"]].set_visible(False)
    width, height = CHOOSING_SIZE
    figure.suptitle(f"One image of {width}×{height}, {device}; dashed: for filters of rank one alone", fontsize=11)
    label_ends(axes, ends)
    save(figure, path)
    return True


COLOURS = {"random": PALETTE[0], "annealing": PALETTE[3], "model": PALETTE[1], "exhaustive": PALETTE[2]}


def draw_tuning(log, path):
    """The best so far over the trials, a line for each search. Draws nothing where no trial was right."""
    measure = log["measure"]
    figure, axes = pyplot.subplots(figsize=(WIDTH, WIDTH * 0.5), layout="constrained")
    ends = []
    for session in log["sessions"]:
        best = [(number, trial["best_so_far"]) for number, trial in enumerate(session["trials"], 1)
                if trial["best_so_far"] is not None]
        if best:
            colour = COLOURS.get(session["search"], PALETTE[4])
            axes.step(*zip(*best), where="post", color=colour)
            ends.append((*best[-1], session["search"], colour))
    if not ends:
        pyplot.close(figure)
        return False
    default = log["default"][measure]
    if default is not None:
        last = max(x for x, *_ in ends)
        axes.plot([0, last], [default, default], color=INK, linewidth=0.8, linestyle="--")
        ends.append((last, default, "the default", INK))
    axes.set_ylim(bottom=0)
    axes.set_xlim(0, 1.18 * max(x for x, *_ in ends))  # room for the names
    axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.tick_params(labelsize=SMALL)
    axes.set_xlabel("trials", fontsize=SMALL)
    axes.set_ylabel("best so far, " + ("µs" if measure == "time_us" else "estimated cycles"), fontsize=SMALL)
    axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"{log['stage']}, {log['device']}\n{log['problem']}, padding {log['padding']}", fontsize=10)
    label_ends(axes, ends)
    save(figure, path)
    return True


def lowering_tflops(row):
    """The direct form's operations over the time, transform included."""
    return row["effective_tflops"] if median(row) else None


def draw_ablation(rows, prefix, device, path):
    """The stages of the track lowering and cuBLAS, a panel for each workload whose name begins so.

    Draws nothing where none was timed.
    """
    try:
        workloads = lowering_workloads(rows, prefix)
    except TableError:
        return False
    lines = {workload: {stage_cell(row): lowering_tflops(row) for row in stages.values() if lowering_tflops(row)}
             for workload, stages in workloads.items()}
    return draw_dots({"lowering": lines} if any(lines.values()) else {},
                     f"Direct convolution, im2col and im2win, {device}", "effective TFLOP/s", path)


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


def prepare_curves(axes, sizes, label, title):
    """The axis of the sizes, with room for names at its right end."""
    axes.set_xscale("log")
    axes.set_xlim(sizes[0] / 1.1, sizes[-1] * (sizes[-1] / sizes[0]) ** 0.16 * 1.02)
    axes.set_xticks(sizes, [str(x) for x in sizes], fontsize=SMALL)
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.tick_params(axis="y", labelsize=SMALL, labelleft=True)
    axes.set_xlabel(label, fontsize=SMALL)
    axes.set_title(title, fontsize=SIZE)
    axes.spines[["top", "right"]].set_visible(False)


def name_curves(figure, drawn, ends):
    """A number at the end of each curve, and below the figure what the numbers mean.

    @param drawn {number: (name, colour)}  @param ends [(axes, {number: {x: y}}, {number: colour})]
    """
    foot = 0.32 / figure.get_figheight()
    figure.get_layout_engine().set(rect=(0, foot, 1, 1 - foot))
    x = 0.15
    for name, colour in [drawn[key] for key in sorted(drawn, key=str)]:
        figure.text(x / WIDTH, foot / 3, name, color=LETTERS.get(colour, colour), fontsize=SMALL, fontweight="bold")
        x += text_width(name, SMALL, bold=True) / 72 + 0.14
    for axes, curves, colours in ends:
        label_ends(axes, [(max(points), points[max(points)], str(key), colours[key]) for key, points in curves.items()])


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
    texts = [text for text in COMPARED_WITH if any(text == other for other, _ in panels)]
    figure, grid = pyplot.subplots(len(heads), len(texts), figsize=(WIDTH, 0.9 + 2.9 * len(heads)), squeeze=False,
                                   sharey="row", layout="constrained")
    drawn, ends = {}, []
    for head, line in zip(heads, grid):
        for text, axes in zip(texts, line):
            by_number = panels.get((text, head), {})
            sizes = sorted({x for points in by_number.values() for x in points})
            axes.set_visible(bool(sizes))
            for number, points in by_number.items():
                drawn[number] = heading(number), WINOGRAD_COLOURS[number]
                axes.plot(sizes, [points.get(x, math.nan) for x in sizes], STROKES[type_of(number)],
                          color=WINOGRAD_COLOURS[number], marker=WINOGRAD_MARKERS[number], markersize=4)
            if sizes:
                prepare_curves(axes, sizes, label, f"{head}, {text}" if len(heads) > 1 else text)
                axes.plot([sizes[0], sizes[-1]], [1, 1], color=INK, linewidth=0.8)
                axes.set_yscale("log")
                axes.yaxis.set_major_formatter("{x:g}×")
                axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
                axes.yaxis.set_minor_locator(ticker.NullLocator())
                ends.append((axes, by_number, WINOGRAD_COLOURS))
    name_curves(figure, drawn, ends)
    figure.suptitle(f"How many times as fast as cuDNN in the stage's type, {device}")
    save(figure, path)
    return True


WINOGRAD_PLOTS = (("winograd-size.svg", "image", "h", "rows and columns of the image, log scale"),
                  ("winograd-batch.svg", "batch", "n", "images, log scale"),
                  ("winograd-channels.svg", "channels", "c", "channels, log scale"))


HOPPER_COLOURS = dict(zip(range(31, 38), ("#e69f00", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#7f5539")))
HOPPER_MARKERS = dict(zip(range(31, 38), "osDP^vX"))
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
    figure, grid = pyplot.subplots(len(heads), len(types), figsize=(WIDTH, 0.9 + 2.6 * len(heads)), squeeze=False,
                                   sharey="col", layout="constrained")
    drawn, ends = {}, []
    for head, line in zip(heads, grid):
        for dtype, axes in zip(types, line):
            by_key = panels.get((dtype, head), {})
            sizes = sorted({x for points in by_key.values() for x in points})
            axes.set_visible(bool(sizes))
            for key, points in by_key.items():
                colour, marker = (INK, "x") if key == CUDNN else (HOPPER_COLOURS[key], HOPPER_MARKERS[key])
                drawn[key] = CUDNN if key == CUDNN else hopper_heading(key), colour
                axes.plot(sizes, [points.get(x, math.nan) for x in sizes], "--" if key == CUDNN else "-", color=colour,
                          marker=marker, markersize=4)
            if sizes:
                prepare_curves(axes, sizes, label, f"{head}, {dtype}" if head else dtype)
                axes.set_ylabel("effective TFLOP/s" if dtype == types[0] else "", fontsize=SMALL)
                ends.append((axes, {"cu" if key == CUDNN else key: points for key, points in by_key.items()},
                             {**HOPPER_COLOURS, "cu": INK}))
    for axes in grid.flat:  # now that those with a shared axis have all their curves
        axes.set_ylim(bottom=0)
    if CUDNN in drawn:
        drawn[CUDNN] = f"cu {CUDNN}", INK
    name_curves(figure, drawn, ends)
    figure.suptitle(f"The Hopper track and cuDNN, {device}")
    save(figure, path)
    return True


# What a grid of precisions, beside the report, adds to that plot: by the names of its rows, whose it is and what stands at
# its point. A column is a layer's, as in "conv2 (µs)" and "error, conv2".
PRECISIONS = {"halves, 1 product": (36, "1"), "halves, 2 products": (36, "2"), "halves, 3 products": (36, "3"),
              "halves, 4 products": (36, "4"), "bf16, 1 product": (36, "bf16"), "bf16, 3 products": (36, "3 bf16"),
              "TF32, 1 product": (36, "TF32"), "TF32, 3 products": (36, "3 TF32"),
              **{f"37, tiles of {tile.replace('x', ' × ')}": (37, tile) for tile in ("4x4", "7x4", "7x7")},
              "cuDNN by PyTorch, TF32 allowed": (CUDNN, "cuDNN, TF32")}
TOO_SLOW = 5  # times as slow as cuDNN's best: not drawn


def hopper_errors(workloads, precisions=None):
    """By workload: {(a stage's number or CUDNN, the point's name): (relative error, time in µs)}.

    @param precisions a grid; what it has replaces the row of its stage
    """
    panels = {}
    for name, stages in zip(names(workloads), workloads.values()):
        best, winograd = cudnn_best(stages, "fp32"), cudnn_winograd(stages, "fp32")
        points = {(35, tile): (error_of(row), median(row)) for tile, row in tiled_rows(stages).items()
                  if tile not in ("auto", "6x6") and median(row)}  # 6x6 is where 7x4 is
        if not points or not best:
            continue
        for number, text in ((32, "32, fp16"), (36, "3"), (37, "37")):
            if median(stages.get(number)):
                points[number, text] = error_of(stages[number]), median(stages[number])
        points[CUDNN, CUDNN] = error_of(best), best["time_us"]
        if winograd and winograd is not best and winograd["time_us"] < TOO_SLOW * best["time_us"]:
            points[CUDNN, "cuDNN's Winograd"] = error_of(winograd), winograd["time_us"]
        head = head_of(name)
        layer = f"{head} {problem_of(stages)['h']}" if head == "image" else head
        columns = precisions["columns"] if precisions else []
        if f"{layer} (µs)" in columns:
            time, error = columns.index(f"{layer} (µs)"), columns.index(f"error, {layer}")
            of_grid = {PRECISIONS[row["name"]]: (row["values"][error], row["values"][time])
                       for row in precisions["rows"] if row["name"] in PRECISIONS and row["values"][time]}
            replaced = {number for number, _ in of_grid if number != CUDNN}
            points = {key: point for key, point in points.items() if key[0] not in replaced} | of_grid
        panels[name] = points
    return panels


def draw_hopper_errors(rows, device, path, precisions=None):
    """Time over error of fp32 in all ways, a panel for each workload; draws nothing where stage 35 has no tiles."""
    panels = hopper_errors(hopper_workloads(rows, DRAWINGS["errors"][0]), precisions)
    if not panels:
        return False
    columns = min(len(panels), 2)
    lines = -(-len(panels) // columns)
    figure, grid = pyplot.subplots(lines, columns, figsize=(WIDTH, 0.6 + 3.1 * lines), squeeze=False,
                                   layout="constrained")
    for axes in grid.flat[len(panels):]:
        axes.set_visible(False)
    for axes, (name, points) in zip(grid.flat, panels.items()):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(2e-8, 2e-2)
        times = [time for _, time in points.values()]
        axes.set_ylim(min(times) / 1.5, 1.5 * max(times))
        for (number, what), (error, time) in points.items():
            colour, marker = (INK, "x") if number == CUDNN else (HOPPER_COLOURS[number], HOPPER_MARKERS[number])
            axes.plot(error, time, color=colour, marker=marker, markersize=5)
            # Of 35 above its points and of 37 below them, since theirs are often in one place; of 36 on the free side.
            across, up, side = {35: (0, 5, "center"), 37: (0, -12, "center"), CUDNN: (6, 3, "left")}.get(
                number, (6, -3, "left"))
            if number == 36 and what in ("2", "3", "4", "3 TF32"):
                across, side = -6, "right"
            if what == CUDNN:
                across, up, side = 0, 6, "center"
            if what == "cuDNN, TF32" and time < points.get((36, "1"), (0, 0))[1]:
                up = -12
            axes.annotate(what, (error, time), xytext=(across, up), fontsize=SMALL, color=INK,
                          textcoords="offset points", horizontalalignment=side)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0e}".replace("e-0", "e-"))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_minor_locator(ticker.NullLocator())
        axes.tick_params(labelsize=SMALL)
        axes.set_xlabel("relative L2 error, log scale", fontsize=SMALL)
        axes.set_ylabel("µs, log scale", fontsize=SMALL)
        axes.set_title(name, fontsize=SIZE)
        axes.spines[["top", "right"]].set_visible(False)
    numbers = sorted({number for points in panels.values() for number, _ in points if number != CUDNN})
    name_curves(figure, {number: (hopper_heading(number), HOPPER_COLOURS[number]) for number in numbers}, [])
    figure.suptitle(f"fp32, and what is cheaper: time over error, {device}", fontsize=11)
    save(figure, path)
    return True


def draw_cpu(rows, path):
    """The rows of the track cpu, a panel for each workload: the ablation from top to bottom, then the others.

    Draws nothing where none was timed.
    """
    try:
        workloads = cpu_workloads(rows)
    except TableError:
        return False
    order = [*cpu_steps(workloads), *CPU_OTHERS]
    lines = {workload: {stage_cell(stages[name]): gflops(stages[name]) for name in order if gflops(stages.get(name))}
             for workload, stages in workloads.items()}
    return draw_dots({"cpu": lines} if any(lines.values()) else {},
                     f"Convolution on a CPU, {cpu_device(workloads)}", "GFLOP/s", path)


def draw_bench(report, folder, precisions=None):
    """The drawings of `./lab bench`'s JSON. @param precisions a grid, see hopper_errors()"""
    device = report["device"]["name"]
    rows = [row for row in report["rows"] if row["backend"] != "cpu"]  # those have a drawing of their own
    drawn = []
    if draw(rows, f"How many times as fast as the track's first stage, {device}", "times as fast", speedup_over_first,
            folder / "speedup.svg", "×", 1):
        drawn.append(folder / "speedup.svg")
    if draw_roofline(rows, report.get("ceilings"), device, folder / "roofline.svg"):
        drawn.append(folder / "roofline.svg")
    if draw(rows, f"Global memory traffic, {device}", "bytes for each output", bytes_per_output, folder / "bytes.svg"):
        drawn.append(folder / "bytes.svg")
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
    if draw_hopper_errors(rows, device, folder / "hopper-errors.svg", precisions):
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
            beside = arguments.results.with_name(arguments.results.name.replace("-hopper.json", "-precisions.json"))
            precisions = json.loads(beside.read_text()) if beside != arguments.results and beside.exists() else None
            drawn = draw_bench(report, arguments.folder, precisions)
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
