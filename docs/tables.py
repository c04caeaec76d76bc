#!/usr/bin/env python3
"""Rewrites the tables in README.md, docs/*.md and chapters/*/README.md from docs/results/*.json.

A table stands between two markers, the first of which says what it holds:

    <!-- table:times h200 -->      times and ratios of every stage, from docs/results/h200.json
    <!-- table:times h200 3 -->    the same of stage 3 alone
    <!-- table:counters sim -->    what the simulator counted for every stage, per output
    <!-- table:counters sim 3 -->  the same of stage 3 alone
    <!-- /table -->

`tables.py` writes; `tables.py --check` writes nothing, and exits with 1 if a table is not what its results say.
"""

import argparse
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MARKED = re.compile(r"(<!-- table:([^>]*?) -->\n)(.*?)(<!-- /table -->)", re.DOTALL)


class TableError(Exception):
    """A marker that cannot be served."""


def outputs(problem):
    """Elements of the problem's output."""

    def extent(size, pad, dilation, taps, stride):
        return (size + 2 * pad - dilation * (taps - 1) - 1) // stride + 1

    height = extent(problem["h"], problem["pad_h"], problem["dilation_h"], problem["r"], problem["stride_h"])
    width = extent(problem["w"], problem["pad_w"], problem["dilation_w"], problem["s"], problem["stride_w"])
    return problem["n"] * problem["k"] * height * width


def ratio(value):
    return "–" if value is None else f"{value:.2f}×"


def percent(value):
    return "–" if value is None else f"{100 * value:.1f}%"


def stage_cell(row):
    return f"{row['number']:02d} {row['stage']}"


def outcome(row):
    """"" for a verified row, else what happened in its place."""
    return "" if row["status"] == "ok" else f"{row['status']}: {row['reason']}"


def times_cells(row):
    if outcome(row):
        return [outcome(row)] + [""] * 6
    time, speedup, roofline = row["time_us"], row["speedup"], row["roofline"] or {}
    if time is None:
        raise TableError("holds no times: it is no result of a GPU")
    best = [trial for trial in row["cudnn"] or [] if trial["status"] == "ok" and trial["time_us"] is not None]
    winner = min(best, key=lambda trial: trial["time_us"])["algorithm"] if best else ""
    return [
        f"{time['median']:.2f}",
        percent(time["spread"]),
        ratio(speedup["previous"]),
        ratio(speedup["first"]),
        ratio(speedup["cudnn_best"]) + (f" ({winner})" if winner else ""),
        percent(roofline.get("share")),
        roofline.get("bound") or "–",
    ]


def counters_cells(row):
    if outcome(row):
        return [outcome(row)] + [""] * 5
    counters = row["counters"]
    if counters is None:
        raise TableError("holds no counters: it is no result of the simulator")
    count = outputs(row["workload"])

    def per_request(kind):
        requests = counters[f"global_{kind}_requests"]
        return f"{counters[f'global_{kind}_sectors'] / requests:.2f}" if requests else "–"

    return [
        f"{counters['global_load_bytes'] / count:.2f}",
        f"{counters['global_store_bytes'] / count:.2f}",
        per_request("load"),
        str(counters["shared_load_conflicts"] + counters["shared_store_conflicts"]),
        str(counters["constant_load_requests"]),
        str(counters["barriers"]),
    ]


KINDS = {
    "times": (["time (µs)", "spread", "over previous", "over first", "over cuDNN's best", "share of the floor", "bound by"],
              times_cells),
    "counters": (["bytes loaded per output", "bytes stored per output", "sectors per load request", "bank conflicts",
                  "constant requests", "barriers"], counters_cells),
}


def table(name):
    """The Markdown of one table."""
    words = name.split()
    if len(words) not in (2, 3) or words[0] not in KINDS or not all(word.isdigit() for word in words[2:]):
        raise TableError(f"is no table: write one of {', '.join(KINDS)}, a file of docs/results, and a stage's number or none")
    headings, cells = KINDS[words[0]]
    path = ROOT / "docs" / "results" / f"{words[1]}.json"
    try:
        rows = json.loads(path.read_text())["rows"]
    except OSError as error:
        raise TableError(f"needs docs/results/{words[1]}.json: {error.strerror}") from error
    if len(words) == 3:
        rows = [row for row in rows if row["number"] == int(words[2])]
    if not rows:
        raise TableError("has no rows")
    lines = [["stage", "workload"] + headings, ["---"] * 2 + ["---:"] * len(headings)]
    lines += [[stage_cell(row), row["workload_name"] or ""] + cells(row) for row in rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if something would change")
    arguments = parser.parse_args()
    failed = False
    pages = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("chapters/*/README.md"))]
    for page in filter(pathlib.Path.exists, pages):
        text, name = page.read_text(), page.relative_to(ROOT)
        if text.count("<!-- table:") != len(MARKED.findall(text)):
            print(f"tables.py: {name}: a table has no <!-- /table -->", file=sys.stderr)
            failed = True
            continue

        def fill(match):
            try:
                return match[1] + table(match[2]) + match[4]
            except TableError as error:
                nonlocal failed
                failed = True
                print(f"tables.py: {name}: table:{match[2]} {error}", file=sys.stderr)
                return match[0]

        filled = MARKED.sub(fill, text)
        if filled == text:
            continue
        if arguments.check:
            print(f"tables.py: {name} is out of date: run python3 docs/tables.py", file=sys.stderr)
            failed = True
        else:
            page.write_text(filled)
            print(name)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
