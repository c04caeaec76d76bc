"""The tables of the Hopper track, stages 31 to 37, from a report of `./lab bench`; tables.py lists their kinds.

Where the report is missing, or has nothing of what a table is about, the table says that it was not measured. Where a
stage did not run, a cell has "–" or what happened.
"""

import functools
import math

from cells import TableError, geometric_mean, markdown, median, ratio, time_cell, with_means
from comparisons import (cudnn_best, cudnn_winograd, faster, head_of, key_of, over_best, problem_of, require_times,
                         row_cell, scientific, stages_of, trial_cell)
from networks import in_resnet_50

NOT_MEASURED = "Not measured on a GPU yet.\n"
TRACK = "hopper"
TYPES = ("fp16", "bf16", "int8", "fp32")
TILED = 35  # the stage whose tile follows from a bound of the error
SWEEP_BATCH, SWEEP_SIDE = 32, 56  # of the sweep over the channels

LAYERS = {"conv2": (64, 56), "conv3": (128, 28), "conv4": (256, 14), "conv5": (512, 7)}  # channels and side


def is_square(problem):
    """3 x 3, stride 1, as many filters as channels."""
    return problem["r"] == problem["s"] == 3 and problem["stride_h"] == 1 and problem["c"] == problem["k"]


def is_image(head, problem):
    return head == "image"


def is_layer(head, problem):
    """Of a ResNet, with its own channels."""
    return is_square(problem) and LAYERS.get(head) == (problem["c"], problem["h"])


# By name: which workloads it has, given what stands before the sizes in the name, and the problem.
GROUPS = {
    "image": is_image,
    "batch": is_layer,
    "channels": lambda head, problem: is_square(problem)
    and (problem["n"], problem["h"]) == (SWEEP_BATCH, SWEEP_SIDE),
    "others": lambda head, problem: not is_image(head, problem) and not is_layer(head, problem),
    "tiles": lambda head, problem: is_image(head, problem) and problem["h"] in (224, 960)
    or is_layer(head, problem) and problem["n"] == 128,
    "all": lambda head, problem: True,
}


# ---- What a report holds ---------------------------------------------------------------------------------------------

def hopper_workloads(rows, group="all"):
    """The workloads of a group: {name: {key: row}}. Images come first, then layers by name, channels and batch."""
    found = {}
    for row in rows:
        name, key = row["workload_name"] or "", key_of(row, TRACK)
        if key and GROUPS[group](head_of(name), row["workload"]):
            if key in found.setdefault(name, {}):
                raise TableError(f"two rows of {key} on {name}")
            found[name][key] = row

    def place(name):
        problem = problem_of(found[name])
        return not is_image(head_of(name), problem), head_of(name), problem["c"], problem["n"], problem["h"]

    return {name: found[name] for name in sorted(found, key=place)}


def short_name(name, problem):
    """Without what most have in common: "conv3 (32,128,28,28)"."""
    return name.removesuffix(f"->{problem['c']} 3x3")


def names(workloads):
    return [short_name(name, problem_of(stages)) for name, stages in workloads.items()]


def heading(number):
    return f"{number} {stages_of(TRACK)[number]['name']}"


def numbers_of(workloads, dtype):
    """Of the stages of a type that have a row."""
    found = {key for stages in workloads.values() for key in stages if isinstance(key, int)}
    return sorted(number for number in found if dtype in (stages_of(TRACK)[number][key] for key in ("dtype", "also")
                                                          if key in stages_of(TRACK)[number])
                  and any(stages[number]["dtype"] == dtype for stages in workloads.values() if number in stages))


def error_of(row_or_trial):
    return row_or_trial and row_or_trial["rel_l2_err"]


def tile_of(row):
    return (row["configuration"] or {}).get("tile")


def tiled_rows(stages):
    """Of stage 35: {"auto": the stage as it is, "4x4": the row with that tile, ...}."""
    rows = {"auto": stages[TILED]} if TILED in stages else {}
    for key, row in stages.items():
        if isinstance(key, tuple) and key[0] == TILED:
            rows[dict(setting.split("=") for setting in key[1].split(","))["tile"]] = row
    return rows


def over_cudnn(stages, row):
    """How many times as fast as cuDNN's best in the row's type, or None."""
    best = cudnn_best(stages, row["dtype"])
    return faster(median(row), best and best["time_us"])


# ---- Goals -----------------------------------------------------------------------------------------------------------

def fastest_of(*candidates):
    """The larger ratio over cuDNN's best, and the stage that has it, where there is a choice."""

    def measure(stages):
        found = [(over_best(stages, key), str(key) if len(candidates) > 1 else "") for key in candidates
                 if over_best(stages, key)]
        return max(found, default=None)

    return measure


def fastest_tile(times_error=None):
    """The same of stage 35's tiles; of those with at most so many times the error of cuDNN's Winograd."""

    def measure(stages):
        winograd = cudnn_winograd(stages, "fp32")
        if times_error and not error_of(winograd):
            return None
        found = [(over_cudnn(stages, row), tile_of(row) or tile) for tile, row in tiled_rows(stages).items()
                 if over_cudnn(stages, row)
                 and (not times_error or error_of(row) <= times_error * error_of(winograd))]
        return max(found, default=None)

    return measure


def on_side(side):
    return lambda head, problem: is_image(head, problem) and problem["h"] == side


def on_conv2(head, problem):
    return is_layer(head, problem) and head == "conv2"


def on_conv3_to_5(head, problem):
    return is_layer(head, problem) and head != "conv2"


def on_batch_128(head, problem):
    return is_layer(head, problem) and problem["n"] == 128


# What, the workloads and their rule, in which type, how it is measured, and at least how many times as fast.
GOALS = [
    ("31", "all", GROUPS["all"], "fp16", fastest_of(31), 0.8),
    *(("the faster of 32 and 33", f"image, {side} × {side}", on_side(side), "fp16", fastest_of(32, 33), goal)
      for side, goal in ((224, 1.7), (448, 1.9), (960, 1.6))),
    ("the faster of 32 and 33", "conv2", on_conv2, "fp16", fastest_of(32, 33), 1),
    ("the faster of 32 and 33", "conv3 to conv5", on_conv3_to_5, "fp16", fastest_of(32, 33), 0.9),
    ("34", "images", is_image, "int8", fastest_of(34), 1.5),
    ("34", "conv2", on_conv2, "int8", fastest_of(34), 1.5),
    ("35, at most twice the error of cuDNN's Winograd", "conv2 to conv5, N = 128", on_batch_128, "fp32",
     fastest_tile(2), 1.4),
    ("35, any tile", "conv2 to conv5, N = 128", on_batch_128, "fp32", fastest_tile(), 1.5),
    *(("35, any tile", f"image, {side} × {side}", on_side(side), "fp32", fastest_tile(), goal)
      for side, goal in ((224, 2.7), (960, 2.5))),
]


def goals_table(workloads):
    """Each goal, the workload that is furthest from it, and on how many it is reached."""
    require_times(workloads)
    lines = []
    for what, where, rule, dtype, measure, goal in GOALS:
        measured = {}
        for name, stages in workloads.items():
            if rule(head_of(name), problem_of(stages)) and (value := measure(stages)):
                measured[short_name(name, problem_of(stages))] = value
        cells = ["–"] * 4
        if measured:
            least = min(measured, key=lambda name: measured[name][0])
            values = [value for value, _ in measured.values()]
            reached = sum(value >= goal for value in values)
            value, which = measured[least]
            if value < goal:
                value = math.floor(100 * value) / 100  # what falls short is not rounded up to the goal
            cells = [ratio(value) + (f" ({which})" if which else ""), least, ratio(geometric_mean(values)),
                     f"{reached} of {len(values)}"]
        lines.append([what, where, dtype, ratio(goal), *cells])
    return markdown(["stage", "workloads", "cuDNN's best in", "goal", "least", "on", "geometric mean", "reached"],
                    lines, 3)


# ---- Tables of a group of workloads ----------------------------------------------------------------------------------

def speed_table(workloads, dtype):
    """Of the stages of a type: time, hot and cold; over cuDNN's best of that type; and the error beside cuDNN's."""
    columns = numbers_of(workloads, dtype)
    if not columns:
        return NOT_MEASURED
    require_times(workloads)

    def time(row):
        cold = median(row, "time_cold_us")
        return row_cell(row) + (f" / {time_cell(cold)}" if cold else "")

    def cudnn(trial):
        hot, cold = trial_cell(trial), trial and trial.get("time_cold_us")
        return hot.replace(" (", f" / {time_cell(cold)} (", 1) if cold else hot

    headings, lines, values = [f"workload (µs), {dtype}", "cuDNN's best", "its error"], [], []
    for number in columns:
        headings += [heading(number), "over cuDNN", "error"]
    for name, stages in zip(names(workloads), workloads.values()):
        best, line, ratios = cudnn_best(stages, dtype), [name], [None, None]
        line += [cudnn(best), scientific(error_of(best))]
        for number in columns:
            row, over = stages.get(number), over_best(stages, number)
            line += [time(row), ratio(over), scientific(error_of(row))]
            ratios += [None, over, None]
        lines.append(line)
        values.append(ratios)
    return markdown(headings, with_means(lines, zip(*values), ratio), 1)


def again_table(workloads):
    """cuDNN's best of each type before the stages and after them: the second time over the first."""
    lines = []
    for dtype in TYPES:
        bests = [(name, cudnn_best(stages, dtype)) for name, stages in zip(names(workloads), workloads.values())]
        found = [(best["time_again_us"] / best["time_us"], name) for name, best in bests
                 if best and best.get("time_again_us")]
        if found:
            least, most = min(found), max(found)
            lines.append([dtype, str(len(found)), ratio(geometric_mean([change for change, _ in found])),
                          f"{ratio(least[0])} ({least[1]})", f"{ratio(most[0])} ({most[1]})"])
    return markdown(["type", "workloads", "after over before", "least", "most"], lines, 1) if lines else NOT_MEASURED


def tiles_table(workloads):
    """Stage 35 with each tile, and what it takes by itself: time, over cuDNN's best, error; cuDNN's beside them."""
    tiles = list(dict.fromkeys(tile for stages in workloads.values() for tile in tiled_rows(stages)))
    if not tiles:
        return NOT_MEASURED
    require_times(workloads)

    def of_trial(trial, best):
        return f"{trial_cell(trial)}, {scientific(error_of(trial))}" + (
            f", {ratio(best['time_us'] / trial['time_us'])}" if best and trial and trial is not best else "")

    def of_row(stages, row):
        if not row or row["status"] != "ok" or not median(row):
            return row_cell(row)
        taken = f", {tile_of(row)}" if row is stages.get(TILED) and tile_of(row) else ""
        return f"{time_cell(median(row))} ({ratio(over_cudnn(stages, row))}), {scientific(error_of(row))}{taken}"

    lines = []
    for name, stages in zip(names(workloads), workloads.values()):
        best, winograd, rows = cudnn_best(stages, "fp32"), cudnn_winograd(stages, "fp32"), tiled_rows(stages)
        lines.append([name, of_trial(best, best), of_trial(winograd, best),
                      *(of_row(stages, rows.get(tile)) for tile in tiles)])
    usual = next((row["configuration"] for stages in workloads.values() for key, row in stages.items()
                  if key == TILED and row["configuration"]), {})
    headings = [f"bound={usual.get('bound', '?')}" if tile == "auto" else tile for tile in tiles]
    return markdown(["workload (µs)", "cuDNN's best", "cuDNN's Winograd", *headings], lines, 1)


def layers_table(workloads):
    """Of 32 and 34, a line for each workload: the time, cuDNN's best in the type, and the ratio. If the workloads are a
    ResNet-50's: how often it has each, and last the sums over the network, and over all but the first layer."""
    require_times(workloads)
    stages = [(number, stages_of(TRACK)[number]["dtype"]) for number in (32, 34)]
    counts = in_resnet_50([problem_of(rows) for rows in workloads.values()])
    times = [[time for number, dtype in stages for time in
              (median(rows.get(number)), (cudnn_best(rows, dtype) or {}).get("time_us"))] for rows in workloads.values()]

    def line(name, count, values):
        cells = [cell for own, best in zip(values[::2], values[1::2])
                 for cell in (time_cell(own), time_cell(best), ratio(faster(own, best)))]
        return [name, *([count] if counts else []), *cells]

    def total(name, kept):
        picked = [(count, values) for (key, rows), count, values in zip(workloads.items(), counts, times)
                  if kept(problem_of(rows))]
        columns = zip(*([time and count * time for time in values] for count, values in picked))
        return line(f"**{name}**", str(sum(count for count, _ in picked)),
                    [sum(column) if all(column) else None for column in columns])

    lines = [line(name, str(count), values) for name, count, values in zip(workloads, counts or [""] * len(times), times)]
    if counts:
        lines += [total("how often · time, added up", lambda problem: True),
                  total("the same without the first layer", lambda problem: problem["c"] > 3)]
    headings = ["workload (µs)", *(["how often"] if counts else [])]
    for number, dtype in stages:
        headings += [f"{number}, {dtype}", f"cuDNN's best, {dtype}", f"{number} over cuDNN"]
    return markdown(headings, lines, 1)


# ---- Others ----------------------------------------------------------------------------------------------------------

def hopper_stages_table():
    """Of a page in docs/."""
    return markdown(["stage", "type", "the idea"], [
        [f"[{heading(number)}](../chapters/{number:02d}-{stage['name']}/README.md)", stage["dtype"], stage["idea"]]
        for number, stage in stages_of(TRACK).items()], 3)


# By name: the group of workloads that it is of, and what it shows.
DRAWINGS = {
    "size": ("image", "Effective TFLOP/s as the image grows, by type: the stages and cuDNN's best"),
    "batch": ("batch", "Effective TFLOP/s of a ResNet's layers as the batch grows: the stages and cuDNN's best"),
    "channels": ("channels", "Effective TFLOP/s at 56 × 56 as the channels grow: the stages and cuDNN's best"),
    "errors": ("tiles", "Time over error in fp32: stages 35 to 37, their tiles and formats, cuDNN, and stage 32 in fp16"),
}


def drawing(kind, rows, file, results):
    """The picture that plot.py has drawn of a report, for a page in docs/.

    @param rows None where there is no report  @param results the folder that holds it
    """
    group, text = DRAWINGS[kind]
    if not rows or not hopper_workloads(rows, group):
        return NOT_MEASURED
    folder = f"plots/{file}"
    if not (results / folder / f"hopper-{kind}.svg").exists():
        raise TableError(f"needs a drawing: run python3 tools/plot.py docs/results/{file}.json docs/results/{folder}")
    return f"![{text}](results/{folder}/hopper-{kind}.svg)\n"


def hopper_table(rows, words):
    """The Markdown of a table. @param rows None where there is no report  @param words of its marker, after the file"""
    kind, *rest = words or [""]
    if kind == "goals" and not rest:
        make = goals_table
    elif kind == "again" and not rest:
        make = again_table
    elif kind == "layers" and not rest:
        make = layers_table
    elif kind == "speed" and len(rest) == 2 and rest[0] in GROUPS and rest[1] in TYPES:
        make = functools.partial(speed_table, dtype=rest[1])
    elif kind == "tiles" and len(rest) == 1 and rest[0] in GROUPS:
        make = tiles_table
    else:
        raise TableError("is no table: write stages; or a file, and machine, goals, again or layers; or a file, speed, one of "
                         f"{', '.join(GROUPS)}, and a type; or a file, tiles, and one of the same groups; or a file, "
                         f"drawing, and one of {', '.join(DRAWINGS)}")
    workloads = hopper_workloads(rows or [], rest[0] if rest else "all")
    return make(workloads) if workloads else NOT_MEASURED
