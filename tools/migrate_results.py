#!/usr/bin/env python3
"""Brings files that earlier programs wrote to the shape of docs/results/schema.json.

    python3 tools/migrate_results.py [FILE ...]        without files: all of docs/results

What was measured does not change. A bench's file gets the keys that its program did not know yet: null for what was not
noted; the element type of the stage, and of cuDNN's trials, which all were of fp32 then; the family that a trial's name
tells; a Winograd stage's tile. Where a row does not say what it is compared with, its speedup over the previous stage
becomes that over the fastest of that stage's rows on the workload, if the file has one. cuDNN's trials stay in the first row of each workload and element type alone. A table gets the format of each column,
and a device, null for none; the comparison with Nsight Compute the path that its script has now. All are laid out as
the program writes JSON.
"""
import functools
import json
import pathlib
import sys

from cells import median
from report import is_bench, repeated_trials, text_of

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs/results"
DEFINITIONS = json.loads((RESULTS / "schema.json").read_text())["definitions"]
OVER = DEFINITIONS["speedup"]["properties"]["over"]
FIXED_TILES = {25: "2x2", 26: "4x4", 27: "4x4", 28: "4x4", 29: "4x4", 30: "2x2", 33: "2x1"}  # by the stage's number
STUDY = "python3 tools/winograd_accuracy.py"  # whose tables did not say how they were made


def completed(value, definition):
    """An object with the keys of a definition, in their order; null for those that it lacks and that each file has."""
    return {key: value.get(key) for key in definition["properties"] if key in value or key in definition["required"]}


def family(algorithm):
    """That of a trial, as its name begins; of two passes none."""
    if algorithm.startswith("two passes"):
        return None
    return next((name for name in ("WINOGRAD", "FFT") if algorithm.startswith(name)), "GEMM")


def trial(old, dtype):
    return {**completed(old, DEFINITIONS["trial"]), "dtype": old.get("dtype", dtype),
            "family": old.get("family", family(old["algorithm"]))}


@functools.cache
def stages():
    """Every stage.json by the stage's name."""
    found = [json.loads(path.read_text()) for path in ROOT.glob("chapters/*/stage.json")]
    return {stage["name"]: stage for stage in found}


def stage_of(row):
    """That of the row, also where it is the stage with other settings; None for a library's."""
    return stages().get(row["stage"].partition(" ")[0])


def dtype_of(row):
    """Rows that are no stages were of fp32 before rows had a type."""
    return "fp32" if row["number"] is None else stage_of(row)["dtype"]


def tile(row):
    """Of a stage that transforms tiles, where it ran."""
    stage, knobs = stage_of(row), row["configuration"] or {}
    if row["status"] != "ok" or not stage:
        return None
    if stage["number"] in (23, 24):
        return f"{knobs['m']}x{knobs['m']}"
    return knobs["tile"] if stage["number"] == 35 else FIXED_TILES.get(stage["number"])


def compare_with_fastest(rows):
    """Sets the speedups over the previous stages in rows of one workload."""
    numbers = {name: stage["number"] for name, stage in stages().items()}
    for row in rows:
        previous = stage_of(row)["previous"] if row["number"] else None
        if not previous or not median(row):
            continue
        others = [other for other in rows if median(other)
                  and numbers.get(other["stage"].partition(" ")[0]) == previous]
        if others:
            best = min(others, key=median)
            row["speedup"].update(previous=median(best) / median(row),
                                  over={key: best[key] for key in OVER["required"]})


def result(old):
    row = completed(old, DEFINITIONS["result"])
    row["dtype"] = old.get("dtype") or dtype_of(old)
    row["tile"] = old["tile"] if "tile" in old else tile(row)
    row["speedup"] = completed(old["speedup"], DEFINITIONS["speedup"])
    row["cudnn"] = old["cudnn"] and [trial(one, row["dtype"]) for one in old["cudnn"]]
    return row


def bench(report):
    rows = [result(row) for row in report["rows"]]
    compared = {}  # the rows of each workload, where the program did not know what they are compared with
    for row, old in zip(rows, report["rows"]):
        if "over" not in old["speedup"]:
            compared.setdefault((row["workload_name"], json.dumps(row["workload"])), []).append(row)
    for of_workload in compared.values():
        compare_with_fastest(of_workload)
    for place in list(repeated_trials(rows)):
        rows[place]["cudnn"] = None
    ceilings = report["ceilings"] and completed(report["ceilings"], DEFINITIONS["ceilings"])
    return {**report, "ceilings": ceilings, "rows": rows}


def grid(table):
    old = table.get("format", f".{table.get('digits', 1)}f")
    return {"device": table.get("device"), "how": table.get("how", STUDY), "corner": table["corner"],
            "columns": table["columns"], "format": old if isinstance(old, list) else [old] * len(table["columns"]),
            "rows": table["rows"]}


def migrated(results):
    if is_bench(results):
        return bench(results)
    if "metrics" in results:
        return {"how": "tools/ncu/compare.py", **results}
    return grid(results) if "corner" in results else results


def main():
    every = sorted(path for path in RESULTS.glob("*.json") if path.name != "schema.json")
    paths = [pathlib.Path(name) for name in sys.argv[1:]] or every
    before = after = 0
    for path in paths:
        text = path.read_text()
        changed = text_of(migrated(json.loads(text))) + "\n"
        if changed != text:
            path.write_text(changed)
            print(f"{path.name}: {len(text)} characters, now {len(changed)}")
        before, after = before + len(text), after + len(changed)
    print(f"{before / 1e6:.1f} MB, now {after / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
