"""What the tables of the tracks winograd and hopper take from the rows of one workload; cuDNN beside them.

A workload's rows are `stages`: {key: row}, of a report of `./lab bench`.
"""

import functools
import json
import pathlib
import re

from cells import TableError, median, time_cell

CHAPTERS = pathlib.Path(__file__).resolve().parent.parent / "chapters"
WINOGRAD_TYPE = {"fp32": "fp32", "fp16": "fp16", "int8": "fp16"}  # of cuDNN's Winograd, for a stage of this type


@functools.cache
def stages_of(track):
    """The stages of a track: {number: stage.json}."""
    found = [json.loads(path.read_text()) for path in CHAPTERS.glob("*/stage.json")]
    return {stage["number"]: stage for stage in sorted(found, key=lambda stage: stage["number"])
            if stage["track"] == track}


def key_of(row, track):
    """The stage's number, (number, "m=4") for a row of a stage with other settings, or None: not of this track. That of a
    stage in another type ("implicit-gemm:bf16") is its number, too."""
    name, _, settings = row["stage"].partition(" ")
    name = name.partition(":")[0]
    number = next((number for number, stage in stages_of(track).items() if stage["name"] == name), None)
    return (number, settings) if number and settings else number


def head_of(name):
    """What stands before the sizes in a workload's name."""
    return name.partition(" (")[0]


def problem_of(stages):
    return next(iter(stages.values()))["workload"]


def short_name(name):
    """Without what all have in common: "conv3 (32,128,28,28)"."""
    return name.partition("->")[0]


def require_times(workloads):
    if not any(median(row) for stages in workloads.values() for row in stages.values()):
        raise TableError("holds no times: it is no result of a GPU")


def trials(stages, dtype, listed_with):
    """cuDNN's trials in `dtype` that count, as they were measured for the rows of another type, or the same."""
    listed = next((row["cudnn"] for row in stages.values() if row["dtype"] == listed_with and row["cudnn"]), [])
    return [trial for trial in listed if trial["dtype"] == dtype and trial["status"].startswith("ok")
            and trial["time_us"] and trial["family"]]


def fastest(candidates):
    return min(candidates, key=lambda trial: trial["time_us"], default=None)


def cudnn_best(stages, dtype):
    return fastest(trials(stages, dtype, dtype))


def cudnn_family(stages, dtype, family):
    return fastest(trial for trial in trials(stages, dtype, dtype) if trial["family"] == family)


def cudnn_winograd(stages, dtype):
    """For a stage of this type. That of fp16 was also measured beside int8, where stages of int8 ran alone."""
    its = WINOGRAD_TYPE[dtype]
    return cudnn_family(stages, its, "WINOGRAD") or fastest(
        trial for trial in trials(stages, its, dtype) if trial["family"] == "WINOGRAD")


def cudnn_winograd_as_exact(stages):
    """That of fp16 with sums in fp32, which the stages of fp16 have too."""
    return fastest(trial for trial in trials(stages, "fp16", "fp16")
                   if trial["family"] == "WINOGRAD" and "half sums" not in trial["algorithm"])


def faster(time, other):
    """How many times as fast the first time is as the second, or None."""
    return other / time if time and other else None


def over_row(stages, key, other):
    return faster(median(stages.get(key)), median(stages.get(other)))


def over_trial(stages, key, trial):
    return faster(median(stages.get(key)), trial and trial["time_us"])


def over_best(stages, key):
    """How many times as fast as the best of all that cuDNN offers in the stage's type, or None."""
    row = stages.get(key)
    return row and over_trial(stages, key, cudnn_best(stages, row["dtype"]))


def row_cell(row, cell=median, text=time_cell):
    """A value of a row; where the row failed or was refused, that."""
    return row["status"] if row and row["status"] != "ok" else text(cell(row) if row else None)


def trial_cell(trial):
    """Its time and its name. Of a plan measured since results tell it: engine, knobs and cuDNN's version."""
    if not trial:
        return "–"
    if trial.get("engine") is not None:
        knobs = [f"k{knob}={value}" for knob, value in trial["knobs"].items()]
        version = ".".join(trial["version"].split(".")[:2])
        name = ", ".join([f"engine {trial['engine']}", *knobs, version, trial["layout"]])
        return f"{time_cell(trial['time_us'])} ({name})"
    name = re.sub(r" \((eng\d+)\{.*\}\)", r" \1", trial["algorithm"])
    return f"{time_cell(trial['time_us'])} ({name}, {trial['layout']})"


def scientific(value):
    return "–" if value is None else f"{value:.1e}"
