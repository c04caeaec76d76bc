"""What a report of `./lab bench` derives from its times, computed again: medians, operations a second, floors and
shares, ratios between stages and over cuDNN. docs/harness.md says how each is defined."""

import functools
import json
import pathlib

from report import counts, key_of

ROOT = pathlib.Path(__file__).resolve().parents[1]
ELEMENT_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "int8": 1}
RATES = {"fp32": "fp32_flops_per_s", "fp16": "fp16_flops_per_s", "bf16": "fp16_flops_per_s", "int8": "int8_ops_per_s"}
TIMES = ("time_us", "time_cold_us", "time_without_transform_us")
FAMILIES = {"cudnn_winograd": "WINOGRAD", "cudnn_gemm": "GEMM", "cudnn_fft": "FFT"}


# ---- What the tree says ----------------------------------------------------------------------------------------------

@functools.cache
def stages():
    """Every stage.json of the ladder by the stage's name."""
    found = [json.loads(path.read_text()) for path in ROOT.glob("chapters/*/stage.json")]
    return {stage["name"]: stage for stage in sorted(found, key=lambda stage: stage["number"])}


@functools.cache
def tracks():
    """Every track by its name."""
    return {track["name"]: track for track in json.loads((ROOT / "common/harness/ladder/tracks.json").read_text())}


def stage_of(row):
    """The stage of the row, also where it is a row of one with other settings; None for a library's. Of a row in another
    type ("implicit-gemm:bf16") the stage in that type."""
    name, _, dtype = row["stage"].partition(" ")[0].partition(":")
    stage = stages().get(name)
    if not stage or not dtype:
        return stage
    layout = stage["tensors"]["input"].split()[1]
    return {**stage, "dtype": dtype, "tensors": dict.fromkeys(stage["tensors"], f"{dtype} {layout}")}


def runs_on_host(row):
    return row["backend"] == "cpu"


# ---- Statistics ------------------------------------------------------------------------------------------------------

def quantile(values, fraction):
    """Linear between order statistics, as common/harness/device/time_series.cpp has it."""
    values = sorted(values)
    position = fraction * (len(values) - 1)
    below = int(position)
    above = min(below + 1, len(values) - 1)
    return values[below] + (position - below) * (values[above] - values[below])


def summary(samples):
    """Of a series of times: as the keys of `time_us` name it."""
    middle = quantile(samples, 0.5)
    spread = (quantile(samples, 0.75) - quantile(samples, 0.25)) / middle if middle > 0 else 0
    return {"median": middle, "min": min(samples), "spread": spread}


# ---- Problems --------------------------------------------------------------------------------------------------------

def extent(problem, size, taps, axis):
    return (problem[size] + 2 * problem[f"pad_{axis}"] - problem[f"dilation_{axis}"] * (problem[taps] - 1)
            - 1) // problem[f"stride_{axis}"] + 1


def tensor_sizes(problem):
    """Elements of input, filter and output."""
    output = problem["n"] * problem["k"] * extent(problem, "h", "r", "h") * extent(problem, "w", "s", "w")
    taps = problem["k"] * problem["c"] // problem["groups"] * problem["r"] * problem["s"]
    return problem["n"] * problem["c"] * problem["h"] * problem["w"], taps, output


def direct_flops(problem):
    """Of the direct form."""
    _, taps, output = tensor_sizes(problem)
    return 2 * output * (taps // problem["k"])


def bytes_of(row):
    """Each tensor once."""
    stage = stage_of(row)
    element = stage["tensors"]["input"].split()[0] if stage else row["dtype"]
    source, taps, output = tensor_sizes(row["workload"])
    activation = ELEMENT_BYTES[element]
    return activation * (source + output) + (1 if row["dtype"] == "int8" else activation) * taps


def flops_of(row):
    """Those of the direct form, or of Winograd's algorithm where the stage uses it and states fewer."""
    direct, stage = direct_flops(row["workload"]), stage_of(row)
    claimed = (row["prediction"] or {}).get("flops")
    uses_winograd = stage and tracks()[stage["track"]].get("uses_winograd")
    return min(claimed, direct) if uses_winograd and claimed else direct


def roofline_of(row, report):
    """The row's floor and share by the report's ceilings; null as the program writes them, where there is no rate."""
    stage, ceilings = stage_of(row), report["ceilings"]
    half_products = (stage or {}).get("half_products", 0)
    roofline = {"bytes": bytes_of(row), "flops": flops_of(row), "floor_us": None, "share": None, "bound": None}
    kind = "fp16" if half_products else row["dtype"]
    rate = ceilings and not runs_on_host(row) and ceilings[RATES[kind]]
    if not rate:
        return roofline
    in_l2 = roofline["bytes"] <= (report["device"]["l2_bytes"] or 0)
    memory = 1e6 * roofline["bytes"] / ceilings["l2_bytes_per_s" if in_l2 else "dram_bytes_per_s"]
    arithmetic = 1e6 * max(half_products, 1) * roofline["flops"] / rate
    roofline.update(floor_us=max(memory, arithmetic),
                    bound=kind if arithmetic > memory else "L2" if in_l2 else "DRAM")
    if row["time_us"]:
        roofline["share"] = roofline["floor_us"] / row["time_us"]["median"]
    return roofline


# ---- Ratios ----------------------------------------------------------------------------------------------------------

def is_right(row):
    return row["status"] == "ok" and bool(row["time_us"])


def trials_of(rows):
    """For each row cuDNN's trials on its workload in its type: they stand nearest above it."""
    latest = {}
    for row in rows:
        latest[key_of(row)] = row["cudnn"] or latest.get(key_of(row))
        yield [] if row["cudnn_unavailable"] or runs_on_host(row) else latest[key_of(row)] or []


def fastest(times):
    return min((time for time in times if time), default=None)


def cudnn_times(trials, dtype):
    """What a stage of this type is held against: {key of speedup: cuDNN's time, None where there is none}."""
    right = [trial for trial in trials if trial["status"].startswith("ok") and trial["time_us"]]
    best = {key: fastest(trial["time_us"] for trial in right if trial["family"] == family)
            for key, family in FAMILIES.items()}
    return best | {"cudnn_best": fastest(trial["time_us"] for trial in right if counts(trial, dtype))}


def workload_of(row):
    return row["workload_name"], json.dumps(row["workload"], sort_keys=True), runs_on_host(row)


def rows_of_previous(row, rows):
    """The right rows of the stage before, on the row's workload, with its other settings too."""
    number = row["number"] and stage_of(row)["previous"]
    return [other for other in rows if number and is_right(other) and workload_of(other) == workload_of(row)
            and (stage_of(other) or {}).get("number") == number]


def speedups_of(row, rows, trials):
    """The ratios that follow from the other rows and from cuDNN's trials; `previous` where the report has the row that
    it is over, or says how long that took."""
    if not is_right(row):
        return dict.fromkeys(("previous", "first", "cudnn_best", *FAMILIES))
    own = row["time_us"]["median"]
    other = {"first": None, **cudnn_times(trials, row["dtype"])}
    if row["number"] is not None:
        first = tracks()[stage_of(row)["track"]]["first"]
        other["first"] = fastest(each["time_us"]["median"] for each in rows if each["number"] == first
                                 and is_right(each) and workload_of(each) == workload_of(row))
    before = rows_of_previous(row, rows)
    over = row["speedup"]["over"] or {}
    other["previous"] = fastest(each["time_us"]["median"] for each in before) if before else over.get("time_us")
    return {key: time / own if time else None for key, time in other.items()}


# ---- All of a report -------------------------------------------------------------------------------------------------

def derived(report):
    """(path, value, expected) of every figure of the report that follows from its times."""
    rows = report["rows"]
    for place, (row, trials) in enumerate(zip(rows, trials_of(rows))):
        path = f"rows/{place}"
        for key in TIMES:
            if row[key] and row[key].get("samples"):
                for name, expected in summary(row[key]["samples"]).items():
                    yield f"{path}/{key}/{name}", row[key][name], expected
        tflops = direct_flops(row["workload"]) / row["time_us"]["median"] * 1e-6 if row["time_us"] else None
        yield f"{path}/effective_tflops", row["effective_tflops"], tflops
        for key, expected in roofline_of(row, report).items() if row["roofline"] else ():
            yield f"{path}/roofline/{key}", row["roofline"][key], expected
        for key, expected in speedups_of(row, rows, trials).items():
            yield f"{path}/speedup/{key}", row["speedup"][key], expected


def differs(value, expected):
    """Whether a figure is not what it should be, but for the last digits of floating point."""
    if isinstance(value, str) or isinstance(expected, str) or value is None or expected is None:
        return value != expected
    return abs(value - expected) > 1e-9 + 1e-6 * abs(expected)
