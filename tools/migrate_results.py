#!/usr/bin/env python3
"""Brings files that earlier programs wrote to the shape of docs/results/schema.json.

    python3 tools/migrate_results.py [FILE ...]        without files: all of docs/results

No value changes. A bench's file gets the keys that its program did not know yet: null for what was not noted; the
element type of the stage, and of cuDNN's trials, which all were of fp32 then; the family that a trial's name tells.
cuDNN's trials stay in the first row of each workload and element type alone. A table gets the format of each column,
and a device, null for none; the comparison with Nsight Compute the path that its script has now. All are laid out as
the program writes JSON.
"""
import json
import pathlib
import sys

from report import is_bench, repeated_trials, text_of

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs/results"
DEFINITIONS = json.loads((RESULTS / "schema.json").read_text())["definitions"]
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


def dtype_of(row):
    """Rows that are no stages were of fp32 before rows had a type."""
    if row["number"] is None:
        return "fp32"
    return json.loads(next(ROOT.glob(f"chapters/{row['number']:02d}-*/stage.json")).read_text())["dtype"]


def result(old):
    row = completed(old, DEFINITIONS["result"])
    row["dtype"] = old.get("dtype") or dtype_of(old)
    row["speedup"] = completed(old["speedup"], DEFINITIONS["speedup"])
    row["cudnn"] = old["cudnn"] and [trial(one, row["dtype"]) for one in old["cudnn"]]
    return row


def bench(report):
    rows = [result(row) for row in report["rows"]]
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
        return {**results, "how": "tools/ncu/compare.py"}
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
