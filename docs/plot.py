#!/usr/bin/env python3
"""Draws what `./lab bench --json FILE` measured: python3 docs/plot.py FILE FOLDER writes SVG files into FOLDER.

A GPU's results: speedup.svg (over the first stage of the track, one group of bars for each workload) and roofline.svg
(share of the roofline). The simulator's: bytes.svg (bytes that lanes asked for, for each output).
"""

import argparse
import json
import pathlib
import sys

from tables import outputs, stage_cell

try:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot
except ImportError:
    sys.exit("plot.py needs matplotlib: apt-get install python3-matplotlib, or python3 -m pip install matplotlib")

# The same file from the same numbers.
matplotlib.rcParams["svg.hashsalt"] = "convladder"


def workload_label(row):
    if row.get("workload_name"):
        return row["workload_name"]
    problem = row["workload"]
    return f"{problem['n']}×{problem['c']}×{problem['h']}×{problem['w']}, {problem['r']}×{problem['s']}"


def speedup_over_first(row):
    return row["speedup"]["first"]


def speedup_text(row, value):
    previous = row["speedup"]["previous"]
    return f"{value:.2f}×" + (f"\n(prev. {previous:.2f}×)" if previous else "")


def roofline_share(row):
    return 100 * row["roofline"]["share"] if row["roofline"] and row["roofline"]["share"] is not None else None


def bytes_per_output(row):
    counters = row["counters"]
    if not counters:
        return None
    return (counters["global_load_bytes"] + counters["global_store_bytes"]) / outputs(row["workload"])


def draw(rows, title, axis, value_of, text_of, path):
    """One group of bars for each workload, one bar for each stage. Draws nothing where no row has the value."""
    rows = [row for row in rows if row["status"] == "ok" and value_of(row) is not None]
    if not rows:
        return False
    stages = list(dict.fromkeys(stage_cell(row) for row in rows))
    workloads = list(dict.fromkeys(workload_label(row) for row in rows))
    figure, axes = pyplot.subplots(figsize=(max(6.0, 1.1 * len(stages) * len(workloads)), 4.0), layout="constrained")
    width = 0.8 / len(stages)
    for i, stage in enumerate(stages):
        of_stage = {workload_label(row): row for row in rows if stage_cell(row) == stage}
        places = [j + (i - (len(stages) - 1) / 2) * width for j, name in enumerate(workloads) if name in of_stage]
        chosen = [of_stage[name] for name in workloads if name in of_stage]
        bars = axes.bar(places, [value_of(row) for row in chosen], width, label=stage)
        axes.bar_label(bars, [text_of(row, value_of(row)) for row in chosen], fontsize=7)
    axes.set_xticks(range(len(workloads)), workloads)
    axes.set_ylabel(axis)
    axes.set_title(title)
    axes.margins(y=0.15)
    axes.legend(fontsize=8)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=pathlib.Path, help="JSON of ./lab bench --json")
    parser.add_argument("folder", type=pathlib.Path, help="where the SVG files go")
    arguments = parser.parse_args()
    try:
        report = json.loads(arguments.results.read_text())
        rows = report["rows"]
        device = report["device"]["name"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"plot.py: {arguments.results} is no JSON of ./lab bench: {error}", file=sys.stderr)
        sys.exit(2)

    plots = [
        ("speedup.svg", "Speedup over the first stage", "times faster", speedup_over_first, speedup_text),
        ("roofline.svg", "Share of the roofline", "%", roofline_share, lambda row, value: f"{value:.0f}%"),
        ("bytes.svg", "Global memory traffic", "bytes for each output", bytes_per_output, lambda row, value: f"{value:.1f}"),
    ]
    try:
        arguments.folder.mkdir(parents=True, exist_ok=True)
        drawn = [
            arguments.folder / name
            for name, title, axis, value_of, text_of in plots
            if draw(rows, f"{title}, {device}", axis, value_of, text_of, arguments.folder / name)
        ]
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
