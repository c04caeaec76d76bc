#!/usr/bin/env python3
"""Puts a stage's rows of a later run in place of those in a file of results, where `./lab merge` cannot: the run has
another version of cuDNN, or the file is joined from several already. Both are of one kind of GPU.

    tools/join_rows.py docs/results/nvidia-h200-hopper.json NEW.json 36

Each right row of NEW, with the configuration that the stage takes by itself, replaces that of its workload. What NEW
lacks stays, and is named. NEW's trials of cuDNN in the stage's type are added where the file has none of the same
algorithm and layout that is as fast. Then floors and ratios of the new rows are computed again, and what other rows of
the type say of them or of cuDNN (tools/recompute.py).

Of files of the kind `grid` the third word is a pattern that the names of rows hold, and a fourth, where it is given, is
added to the key `how`, to tell which rows are of which run:

    tools/join_rows.py docs/results/nvidia-h200-several-4.json several-4.json '^43-' 'rows of 43 are of a later run'

Rows that the file lacks come at its end."""
import json
import pathlib
import re
import sys

import recompute
import report as reports


def fast_trials(trials, later):
    """Those of `later` that are right, and faster than each of `trials` of the same algorithm and layout."""
    for trial in later:
        known = [other["time_us"] for other in trials if other["time_us"]
                 and all(other[key] == trial[key] for key in ("algorithm", "layout", "dtype"))]
        if trial["status"].startswith("ok") and trial["time_us"] and trial["time_us"] < min(known, default=float("inf")):
            yield trial


def compare_again(rows, place, trials, report):
    """The row's floor and ratios, of what the file holds now."""
    row = rows[place]
    before = recompute.rows_of_previous(row, rows)
    if before:
        best = min(before, key=lambda other: other["time_us"]["median"])
        row["speedup"]["over"] = {"stage": best["stage"], "configuration": best["configuration"], "tile": best["tile"],
                                  "time_us": best["time_us"]["median"]}
    row["speedup"].update({key: ratio for key, ratio in recompute.speedups_of(row, rows, trials).items() if key != "first"})
    if row["roofline"]:
        row["roofline"] = recompute.roofline_of(row, report)


def join(report, later, number):
    """Changes the report. @return the names of the workloads whose rows are new, and of those whose are as they were"""
    rows = report["rows"]
    trials = {reports.key_of(row): list(found) for row, found in zip(later["rows"], recompute.trials_of(later["rows"]))}
    found = {recompute.workload_of(row): row for row in later["rows"] if row["number"] == number
             and recompute.is_right(row) and row["configuration_origin"] == "default"}
    new, old, keys = [], [], set()
    for place, row in enumerate(rows):
        if row["number"] != number:
            continue
        other = found.get(recompute.workload_of(row))
        (new if other else old).append(row["workload_name"])
        if other:
            holder = next(each for each in rows if reports.key_of(each) == reports.key_of(row) and each["cudnn"])
            holder["cudnn"].extend(list(fast_trials(holder["cudnn"], trials[reports.key_of(other)])))
            rows[place] = {**other, "cudnn": holder["cudnn"] if holder is row else None}
            keys.add(reports.key_of(row))
    for place, of_row in enumerate(list(recompute.trials_of(rows))):
        if reports.key_of(rows[place]) in keys and recompute.is_right(rows[place]):
            compare_again(rows, place, of_row, report)
    return new, old


def join_grid(report, later, pattern, how=None):
    """Changes a report of the kind grid. @return the names of the rows that are new, and of those that stay as they were"""
    if report["columns"] != later["columns"]:
        raise ValueError(f"has the columns {', '.join(later['columns'])}")
    found = {row["name"]: row for row in later["rows"] if re.search(pattern, row["name"])}
    if not found:
        raise ValueError(f"has no row whose name holds '{pattern}'")
    old = [row["name"] for row in report["rows"] if row["name"] not in found]
    new = list(found)
    rows = [found.pop(row["name"], row) for row in report["rows"]]
    report["rows"] = rows + list(found.values())
    if how:
        report["how"] += f"; {how}"
    return new, old


def main():
    path, later_path, which, *how = sys.argv[1:]
    report, later = (json.loads(pathlib.Path(each).read_text()) for each in (path, later_path))
    if report["device"]["name"] != later["device"]["name"]:
        sys.exit(f"join_rows.py: '{later_path}' is of {later['device']['name']}, '{path}' of {report['device']['name']}")
    if "corner" in report:
        try:
            new, old = join_grid(report, later, which, *how)
        except ValueError as error:
            sys.exit(f"join_rows.py: '{later_path}' {error}")
    else:
        new, old = join(report, later, int(which))
    pathlib.Path(path).write_text(reports.text_of(report) + "\n")
    print(f"{path}: {len(new)} rows of {later_path}; as they were: {', '.join(old) or 'none'}")


if __name__ == "__main__":
    main()
