"""The tables of the Winograd track, stages 23 to 30, from a report of `./lab bench`; tables.py lists their kinds.

A stage is compared with cuDNN in its own element type, also where the table has several. cuDNN has no Winograd of int8:
there its Winograd is that of fp16. Where a stage did not run, or a workload did not fit, a cell has "–" or what
happened; a stage of which nothing is there has no column.
"""

import functools
import json
import pathlib

from cells import TableError, geometric_mean, markdown, median, percent, previous_cell, ratio, time_cell, with_means
from comparisons import (WINOGRAD_TYPE, cudnn_best, cudnn_family, cudnn_winograd, cudnn_winograd_as_exact, faster,
                         fastest, head_of, key_of, over_best, over_row, over_trial, problem_of, require_times, row_cell,
                         scientific, short_name, stages_of, trial_cell, trials)

LAYERS = {"conv2": 64, "conv3": 128, "conv4": 256, "conv5": 512}  # of a ResNet, and their channels
SWEEP_BATCH = 32  # of the sweep over the channels

# By name: which workloads it has, given what stands before the sizes in the name, and the problem.
GROUPS = {
    "image": lambda head, problem: head == "image",
    "batch": lambda head, problem: LAYERS.get(head) == problem["c"],
    "channels": lambda head, problem: head in LAYERS and problem["n"] == SWEEP_BATCH,
    "wide": lambda head, problem: head == "wide",
    "headline": lambda head, problem: head == "image" and problem["h"] in (224, 960)
    or LAYERS.get(head) == problem["c"] and problem["n"] in (32, 128),
    "all": lambda head, problem: True,
}

# openCNN's fused F(2x2, 3x3) in fp32, by layer and batch: of another program, so in a file of its own.
OPENCNN = pathlib.Path(__file__).resolve().parent.parent / "docs" / "results" / "nvidia-h200-opencnn.json"


# ---- What a report holds ---------------------------------------------------------------------------------------------

def manifests():
    """The stages of the track: {number: stage.json}."""
    return stages_of("winograd")


def winograd_workloads(rows, group="all"):
    """The workloads of a group: {name: {key: row}}. Images come first, then layers by name, channels and batch."""
    found = {}
    for row in rows:
        name, key = row["workload_name"] or "", key_of(row, "winograd")
        if key and GROUPS[group](head_of(name), row["workload"]):
            found.setdefault(name, {})[key] = row
    if not found:
        raise TableError(f"has no workload {group} of the track winograd")

    def place(name):
        problem = problem_of(found[name])
        return head_of(name) != "image", head_of(name), problem["c"], problem["n"], problem["h"]

    return {name: found[name] for name in sorted(found, key=place)}


def numbers(workloads):
    """Of the stages that have a row."""
    return sorted({key for stages in workloads.values() for key in stages if isinstance(key, int)})


def heading(number):
    return f"{number} {manifests()[number]['name'].removeprefix('winograd-')}"


def type_of(number):
    return manifests()[number]["dtype"]


def types(workloads):
    """The element types of the stages that have a row, and the numbers of each: {"fp32": [23, 24], ...}."""
    return {dtype: [number for number in numbers(workloads) if type_of(number) == dtype] for dtype in WINOGRAD_TYPE
            if dtype in map(type_of, numbers(workloads))}


# ---- Comparisons -----------------------------------------------------------------------------------------------------

def over_winograd(stages, number):
    """How many times as fast as cuDNN's Winograd for the stage's type."""
    return over_trial(stages, number, cudnn_winograd(stages, type_of(number)))


# ---- Tables of a group of workloads ----------------------------------------------------------------------------------

def times_table(workloads):
    """In µs; cuDNN's beside the stages of its type."""
    require_times(workloads)
    headings, lines = ["workload (µs)"], [[short_name(name)] for name in workloads]
    for dtype, of_type in types(workloads).items():
        its_winograd = [dtype] if WINOGRAD_TYPE[dtype] == dtype else []
        headings += [*map(heading, of_type), *(f"cuDNN's Winograd, {dtype}" for _ in its_winograd),
                     f"cuDNN's best, {dtype}"]
        for line, stages in zip(lines, workloads.values()):
            line += [row_cell(stages.get(number)) for number in of_type]
            line += [time_cell((cudnn_winograd(stages, dtype) or {}).get("time_us")) for _ in its_winograd]
            line.append(trial_cell(cudnn_best(stages, dtype)))
    return markdown(headings, lines, 1)


def ratios(corner, workloads, columns):
    """Columns of ratios, {heading: value of a workload's stages}, and their geometric means."""
    require_times(workloads)
    values = [[value(stages) for value in columns.values()] for stages in workloads.values()]
    lines = [[short_name(name), *map(ratio, line)] for name, line in zip(workloads, values)]
    return markdown([corner, *columns], with_means(lines, zip(*values), ratio), 1)


def over_previous_table(workloads):
    """Over the fastest configuration of each previous stage, with the tiles where they differ."""
    require_times(workloads)
    headings, columns = [], []
    for number in numbers(workloads):
        previous = manifests()[number]["previous"]
        if not previous:
            continue
        change = "" if type_of(number) == type_of(previous) else f" ({type_of(number)} over {type_of(previous)})"
        headings.append(f"{number} over {previous}{change}")
        columns.append([stages.get(number) for stages in workloads.values()])
    lines = [[short_name(name), *(previous_cell(row) if row else "–" for row in line)]
             for name, line in zip(workloads, zip(*columns))]
    values = [[row and row["speedup"]["previous"] for row in column] for column in columns]
    return markdown(["over the previous stage", *headings], with_means(lines, values, ratio), 1)


def over_winograd_table(workloads):
    columns = {f"{heading(number)} ({WINOGRAD_TYPE[type_of(number)]})": functools.partial(over_winograd, number=number)
               for number in numbers(workloads)}
    return ratios("over cuDNN's Winograd (its type)", workloads, columns)


def over_best_table(workloads):
    """A stage of int8 also over the best of fp16, which is the type of its input and output."""
    columns = {}
    for number in numbers(workloads):
        if type_of(number) == "int8":
            columns[f"{heading(number)} (fp16)"] = lambda stages, number=number: over_trial(
                stages, number, cudnn_best(stages, "fp16"))
        columns[f"{heading(number)} ({type_of(number)})"] = functools.partial(over_best, key=number)
    return ratios("over cuDNN's best (its type)", workloads, columns)


def worst(rows, key):
    """The workload whose row has the largest such error, or None. Refused rows have none."""
    with_error = [name for name, row in rows.items() if row[key] is not None]
    return max(with_error, key=lambda name: rows[name][key], default=None)


def errors_table(workloads):
    """The largest of each stage, and where; also of other tiles, which make another error."""
    keys = {key if isinstance(key, tuple) else (key, "") for stages in workloads.values() for key in stages}
    lines = []
    for number, settings in sorted(keys):
        if settings and not settings.startswith("m="):
            continue
        key = (number, settings) if settings else number
        rows = {name: stages[key] for name, stages in workloads.items() if key in stages}
        relative, absolute = worst(rows, "rel_l2_err"), worst(rows, "max_abs_err")
        cells = ["–"] * 5
        if relative:
            cells[:3] = [*(scientific(rows[relative][each]) for each in ("rel_l2_err", "tolerance")),
                         short_name(relative)]
        if absolute:
            cells[3:] = [scientific(rows[absolute]["max_abs_err"]), short_name(absolute)]
        lines.append([f"{heading(number)} {settings}".rstrip(), type_of(number), *cells])
    return markdown(["stage", "type", "largest relative L2 error", "its bound", "on", "largest absolute error", "on"],
                    lines, 2)


def tflops_table(workloads):
    """The operations of the direct form over the time, in 10¹² a second."""
    require_times(workloads)

    def effective(row):
        return row["effective_tflops"] if median(row) else None

    def text(value):
        return "–" if value is None else f"{value:.1f}"

    columns = numbers(workloads)
    return markdown(["effective TFLOP/s", *map(heading, columns)],
                    [[short_name(name), *(row_cell(stages.get(number), effective, text) for number in columns)]
                     for name, stages in workloads.items()], 1)


def ablation_table(workloads, number):
    """A stage by default, and each of its other settings: time, and how many times as fast as by default."""
    require_times(workloads)
    rows = [stages[number] for stages in workloads.values() if number in stages]
    configurations = [row["configuration"] for row in rows if row["configuration"]]
    default = {knob: value for knob, value in (configurations or [{}])[0].items()
               if all(other.get(knob) == value for other in configurations)}  # not what the problem decides
    keys = list(dict.fromkeys(key for stages in workloads.values() for key in stages
                              if isinstance(key, tuple) and key[0] == number))
    if not keys:
        raise TableError(f"has no row of stage {number} with other settings")
    gains, lines = [], []
    for name, stages in workloads.items():
        gains.append([over_row(stages, key, number) for key in keys])
        cells = [row_cell(stages.get(key)) + (f" ({ratio(gain)})" if gain else "")
                 for key, gain in zip(keys, gains[-1])]
        lines.append([short_name(name), row_cell(stages.get(number)), *cells])
    usual = " ".join(f"{knob}={value}" for knob, value in default.items())
    return markdown([f"workload (µs), {heading(number)}", usual or "by default", *(settings for _, settings in keys)],
                    with_means(lines, [[None], *zip(*gains)], ratio), 1)


# ---- Tables of the whole report --------------------------------------------------------------------------------------

def opencnn_table(rows):
    """Stage 25 beside openCNN, and beside the best of cuDNN in fp32."""
    workloads = winograd_workloads(rows, "batch")
    require_times(workloads)
    opencnn = json.loads(OPENCNN.read_text())
    device = opencnn["device"]["name"]
    times = {(row["name"], column): time for row in opencnn["rows"]
             for column, time in zip(opencnn["columns"], row["values"])}
    devices = {row["device"] for stages in workloads.values() for row in stages.values()}
    if devices != {device}:
        raise TableError(f"compares with times of an {device}; these are of {' and '.join(sorted(devices))}")
    lines, gains = [], []
    for name, stages in workloads.items():
        its = times.get((head_of(name), f"N = {problem_of(stages)['n']} (µs)"))
        if its is None:
            continue
        best = cudnn_best(stages, "fp32")
        gains.append([faster(median(stages.get(25)), its), over_best(stages, 25)])
        lines.append([short_name(name), row_cell(stages.get(25)), str(its), trial_cell(best), *map(ratio, gains[-1])])
    if not lines:
        raise TableError("has no layer that openCNN was measured on")
    none = [[None]] * 3
    return markdown(["workload (µs)", heading(25), "openCNN", "cuDNN's best, fp32", "25 over openCNN",
                     "25 over cuDNN's best"], with_means(lines, [*none, *zip(*gains)], ratio), 1)


def summary(values):
    """The least, the most and the geometric mean of the ratios that there are."""
    there = [value for value in values if value]
    return f"{ratio(min(there))} to {ratio(max(there))}, {ratio(geometric_mean(there))} on average" if there else "–"


def claims_table(rows):
    """What Tong et al. and Wang and Zhen report of their kernels, on another GPU, beside the same figures here."""
    def group(name):
        try:
            return winograd_workloads(rows, name)
        except TableError:
            return {}

    images, layers, sweep = group("image"), group("batch"), group("channels")
    require_times({**images, **layers, **sweep})

    def on_images(key, other):
        return summary(over_row(stages, key, other) for stages in images.values())

    def at_sides(key, other):
        """The same for each image by itself."""
        found = ((problem_of(stages)["h"], over_row(stages, key, other)) for stages in images.values())
        return ", ".join(f"{ratio(value)} at {side}" for side, value in found if value) or "–"

    def on_layers(trial_of):
        return summary(over_trial(stages, 25, trial_of(stages)) for stages in layers.values())

    def algorithm(name):
        return lambda stages: fastest(trial for trial in trials(stages, "fp32", "fp32") if trial["algorithm"] == name)

    def family(name):
        return lambda stages: cudnn_family(stages, "fp32", name)

    of_30 = {key for stages in images.values() for key in stages if key == 30 or isinstance(key, tuple) and key[0] == 30}
    of_int8 = [over_trial(stages, key, cudnn_winograd(stages, "int8")) for stages in images.values()
               for key in stages if key in of_30]
    by_channels = {}
    for stages in sweep.values():
        by_channels.setdefault(problem_of(stages)["c"], []).append(over_winograd(stages, 25))
    growth = [(channels, [value for value in values if value]) for channels, values in sorted(by_channels.items())]

    errors = [stages[25]["max_abs_err"] for stages in layers.values()
              if 25 in stages and stages[25]["max_abs_err"] is not None]

    def workspace(number, other):
        """The range of the share of one stage's workspace in the other's."""
        shares = [stages[number]["workspace_bytes"] / stages[other]["workspace_bytes"]
                  for stages in {**images, **layers}.values()
                  if all(key in stages and stages[key]["workspace_bytes"] for key in (number, other))]
        return f"{percent(min(shares))} to {percent(max(shares))}" if shares else "–"

    return markdown(["claim", "as reported, on an RTX 2080 Ti", "here"], [
        ["**one image, C = K = 64**", "**Tong et al., cuDNN 8.5**", ""],
        ["24 over 23: the sum over channels as a matrix product", "15.84 FLOP/B instead of 1/12", on_images(24, 23)],
        ["26 over 24: Tensor Cores, fp16 over fp32", "–", on_images(26, 24)],
        ["27 over 26: no barriers", "–", on_images(27, 26)],
        ["28 over 27: fusion through shared memory", "faster", at_sides(28, 27)],
        ["29 over 27: fusion through L2", "can be slower than its prototype without fusion", at_sides(29, 27)],
        ["29 with TBM = 32 over 27", "faster on large images", at_sides((29, "tbm=32"), 27)],
        ["28 over 29: shared memory over L2", "faster", on_images(28, 29)],
        ["28: TBM = 16 over 32", "faster", on_images(28, (28, "tbm=32"))],
        ["29: TBM = 16 over 32", "slower on large images", at_sides(29, (29, "tbm=32"))],
        ["28 over cuDNN's Winograd, fp16", "9.99× to 13.69×, more on larger images",
         summary(over_winograd(stages, 28) for stages in images.values())],
        ["the same, where its sums are in fp32, too", "–",
         summary(over_trial(stages, 28, cudnn_winograd_as_exact(stages)) for stages in images.values())],
        ["28 over cuDNN's best, fp16", "–", summary(over_best(stages, 28) for stages in images.values())],
        [f"30, {len(of_30)} of the 4 settings, over cuDNN's Winograd", "7.58× to 13.00×", summary(of_int8)],
        ["30 over it, where its sums are in fp32", "–",
         summary(over_trial(stages, 30, cudnn_winograd_as_exact(stages)) for stages in images.values())],
        ["30 over cuDNN's best, int8", "–", summary(over_best(stages, 30) for stages in images.values())],
        ["30 over 28: int8 over fp16, through shared memory", "little difference", on_images(30, 28)],
        ["30 through L2 over 29: int8 over fp16", "slightly better on average", on_images((30, "fusion=llc"), 29)],
        ["workspace, 28 of 27", "–", workspace(28, 27)],
        ["**conv2 to conv5, N = 32 to 128**", "**Wang and Zhen, cuDNN 8.3**", ""],
        ["25 over cuDNN's fused Winograd", "up to 2.46×, at conv5", on_layers(algorithm("WINOGRAD"))],
        ["25 over its non-fused Winograd", "0.60× to 1.29×, 0.90× on average",
         on_layers(algorithm("WINOGRAD_NONFUSED"))],
        ["25 over its GEMM family", "1.59× to 7.10×, 3.74× on average", on_layers(family("GEMM"))],
        ["25 over its FFT", "0.79× to 3.70×, 1.75× on average", on_layers(family("FFT"))],
        ["25 over all that cuDNN offers in fp32", "–", on_layers(lambda stages: cudnn_best(stages, "fp32"))],
        [f"25 over cuDNN's Winograd by channels, N = {SWEEP_BATCH}", "grows with the channels",
         ", ".join(f"{ratio(geometric_mean(values))} with {channels}" for channels, values in growth if values) or "–"],
        ["largest absolute error of 25", "4.88e-4, inputs in [0, 1)",
         f"{max(errors):.2e}, normal inputs" if errors else "–"],
        ["workspace, 25 of 24", "–", workspace(25, 24)],
    ], 3)


OF_GROUP = {"times": times_table, "over-previous": over_previous_table, "over-winograd": over_winograd_table,
            "over-best": over_best_table, "errors": errors_table, "tflops": tflops_table}
OF_REPORT = {"opencnn": opencnn_table, "claims": claims_table}


def winograd_table(rows, words):
    """The Markdown of a table. @param words of its marker, after the file"""
    kind, *rest = words or [""]
    if kind in OF_REPORT and not rest:
        return OF_REPORT[kind](rows)
    if kind in OF_GROUP and len(rest) == 1 and rest[0] in GROUPS:
        return OF_GROUP[kind](winograd_workloads(rows, rest[0]))
    if kind == "ablation" and len(rest) == 2 and rest[0] in GROUPS and rest[1] in map(str, manifests()):
        return ablation_table(winograd_workloads(rows, rest[0]), int(rest[1]))
    raise TableError(f"is no table: write a file and one of {', '.join(OF_REPORT)}; or a file, one of "
                     f"{', '.join(OF_GROUP)}, and one of {', '.join(GROUPS)}; or a file, ablation, one of these, and "
                     "a stage's number")
