"""`./lab compare OLD.json NEW.json`: which rows of two benches became faster or slower. The test is told in
docs/harness.md, "Two results"."""
import json
import math
import os
import statistics
import sys

from machine import ROOT, Unusable, results_of
from terminal import paint

sys.path.append(str(ROOT / "tools"))
import report  # noqa: E402

DESCRIPTION = "Which rows of two files that bench --json wrote are faster, slower or the same."
CONFIDENCE = 0.99  # of the interval of a ratio
# A ratio nearer to 1 than this is none: so far two GPUs of one kind differ, and two runs on one.
FLOOR = 0.03
EXACT = 10_000  # pairs of samples, beyond which the normal approximation of U serves

COLOURS = {"faster": "green", "slower": "red", "failed": "red", "unclear": "yellow"}
KEYS = {"stage", "number", "backend", "device", "workload", "workload_name", "status", "time_us", "configuration",
        "configuration_origin"}
FACTS = (("device", "name"), ("device", "backend"), ("toolchain", "cuda_driver"), ("toolchain", "cuda_toolkit"),
         ("toolchain", "compiler"), ("toolchain", "cudnn"))


# ---- The test -------------------------------------------------------------------------------------------------------

def rank_of_bound(n, m, tail):
    """The largest k for which Mann and Whitney's U of n and m samples of one distribution is below k with a probability
    of at most `tail`: 0 where there is none."""
    if n * m > EXACT:
        deviation = math.sqrt(n * m * (n + m + 1) / 12)
        return max(0, math.floor(n * m / 2 + statistics.NormalDist().inv_cdf(tail) * deviation))
    ways = [1] + [0] * (n * m)  # of each U: the product of (1 - x^(m+i)) / (1 - x^i) over i = 1 ... n
    for i in range(1, n + 1):
        for u in range(n * m, m + i - 1, -1):
            ways[u] -= ways[u - m - i]
        for u in range(i, n * m + 1):
            ways[u] += ways[u - i]
    limit, below = tail * math.comb(n + m, n), 0
    for k, count in enumerate(ways):
        below += count
        if below > limit:
            return k
    return 0


def ratio_of(old, new):
    """(ratio, low, high): how many times as fast the new samples are, after Hodges and Lehmann: the median of the ratios
    of all pairs, and their ranks that bound it with CONFIDENCE. The bounds are 0 and infinity for too few samples."""
    ratios = sorted(a / b for a in old for b in new)
    rank = rank_of_bound(len(old), len(new), (1 - CONFIDENCE) / 2)
    low, high = (ratios[rank - 1], ratios[-rank]) if rank else (0, math.inf)
    return statistics.median(ratios), low, high


def verdict_of(low, high):
    """Where the interval lies: beyond the floor, within it, or neither."""
    if low > 1 + FLOOR:
        return "faster"
    if high < 1 / (1 + FLOOR):
        return "slower"
    return "same" if 1 / (1 + FLOOR) < low and high < 1 + FLOOR else "unclear"


# ---- The files ------------------------------------------------------------------------------------------------------

def read(path):
    """{"rows": [...], "device": {...}, "toolchain": {...}}: the last two empty for what `run` and `compare` print."""
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except OSError as error:
        raise Unusable(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise Unusable(f"{path} is not JSON: {error}") from error
    if isinstance(content, dict) and "toolchain" not in content:
        content = [content]
    if isinstance(content, list):
        content = {"rows": content, "device": {}, "toolchain": {}}
    rows = content.get("rows") if isinstance(content, dict) else None
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) and KEYS <= row.keys() for row in rows):
        raise Unusable(f"{path} holds no results: bench --json FILE writes some, and run --json prints one")
    times = [row["time_us"] for row in rows if row["time_us"]]
    if not times:
        raise Unusable(f"{path} holds no times: the simulator takes none")
    if not all(time.get("samples") for time in times):
        raise Unusable(f"{path} holds no samples of its times, which earlier versions did not write: measure again")
    return content


def keyed(rows):
    """{what tells rows apart: row}. Of two that nothing tells apart the second has a number."""
    result = {}
    for row in rows:
        key = [row["workload_name"] or "", report.problem_text(row["workload"]), row["workload"]["padding"],
               row["backend"], row["stage"], json.dumps(row["configuration"])]
        number = 0
        while (*key, number) in result:
            number += 1
        result[*key, number] = row
    return result


def setting_of(row):
    """What its configuration is, where somebody chose it."""
    if not row["configuration"] or row["configuration_origin"] == "default":
        return ""
    return " " + ",".join(f"{knob}={value}" for knob, value in row["configuration"].items())


def differences(old, new):
    """What is not the same about the machines and programs, a line each."""
    for place, key in FACTS:
        one, other = old[place].get(key), new[place].get(key)
        if one != other and one and other:
            yield f"{key.replace('_', ' ')}: {one}, then {other}"
    if not (old["device"] and new["device"]):
        names = [sorted({row["device"] for row in results["rows"]}) for results in (old, new)]
        if names[0] != names[1]:
            yield f"device: {', '.join(names[0])}, then {', '.join(names[1])}"
    clocks = [statistics.median(found) if (found := clocks_of(results)) else None for results in (old, new)]
    if all(clocks) and abs(clocks[1] / clocks[0] - 1) > 0.01:
        yield f"clock of the multiprocessors (median of the rows): {clocks[0]:.0f} MHz, then {clocks[1]:.0f} MHz"


def clocks_of(results):
    return [row["gpu"]["sm_mhz"] for row in results["rows"] if row.get("gpu") and row["gpu"]["sm_mhz"]]


# ---- The report -----------------------------------------------------------------------------------------------------

def time_text(microseconds):
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{microseconds / size:.4g} {unit}"
    return f"{microseconds:.4g} us"


def compared(old, new):
    """(cells of the table, verdict) of a row that both files have."""
    cells = [(f"{new['number']:02} " if new["number"] else "") + new["stage"] + setting_of(new)]
    if old["status"] == new["status"] == "ok":
        ratio, low, high = ratio_of(old["time_us"]["samples"], new["time_us"]["samples"])
        verdict = verdict_of(low, high)
        interval = f"{low:.3f} to {high:.3f}" if low else "too few samples"
        return cells + [time_text(old["time_us"]["median"]), time_text(new["time_us"]["median"]), f"{ratio:.3f}x",
                        interval, verdict + slowed_text(old, new)], verdict
    verdict = "failed" if new["status"] not in ("ok", "refused") else "no time"
    return cells + ["-", "-", "-", "-", f"{old['status']}, then {new['status']}"], verdict


def slowed_text(old, new):
    """A mark where a GPU was slowed while samples of the row were taken."""
    marks = [when for when, row in (("old", old), ("new", new)) if row.get("gpu") and row["gpu"]["samples_slowed"]]
    return f" ({' and '.join(marks)}: the GPU was slowed)" if marks else ""


def table(rows):
    headings = ["stage", "old", "new", "old/new", f"{CONFIDENCE:.0%} interval", "verdict"]
    widths = [max(len(row[i]) for row in [headings, *(cells for cells, _ in rows)]) for i in range(len(headings))]

    def line(cells):
        return "  ".join([cells[0].ljust(widths[0]), *(cells[i].rjust(widths[i]) for i in range(1, 5)), cells[5]]).rstrip()

    yield "  " + line(headings)
    for cells, verdict in rows:
        text = "  " + line(cells)
        yield paint(text, COLOURS[verdict]) if verdict in COLOURS else text


def run(words):
    for word in words:
        if word.startswith("-"):
            raise Unusable(f"compare: {word} is of the comparison of stages; two files are compared as they are")
    if len(words) != 2:
        raise Unusable(f"compare: two files are compared, OLD.json and NEW.json; got {len(words)} arguments")
    with results_of(*words):
        return compare(*words)


def compare(*words):
    old, new = (read(word) for word in words)
    old_rows, new_rows = keyed(old["rows"]), keyed(new["rows"])
    both = [key for key in new_rows if key in old_rows]
    if not both:
        raise Unusable(f"{words[0]} and {words[1]} have no row in common: no stage with the same problem, configuration and "
                       "backend")
    for what in differences(old, new):
        print(paint(f"not the same in both: {what}", "yellow"))

    counts, last, rows = {}, None, []
    for key in both:
        if key[:4] != last:
            print_table(last, rows)
            last, rows = key[:4], []
        rows.append(compared(old_rows[key], new_rows[key]))
        counts[rows[-1][1]] = counts.get(rows[-1][1], 0) + 1
    print_table(last, rows)
    order = ("faster", "slower", "same", "unclear", "failed", "no time")
    print("\n" + ", ".join(f"{counts[verdict]} {verdict}" for verdict in order if verdict in counts))
    for path, here, there in ((words[0], old_rows, new_rows), (words[1], new_rows, old_rows)):
        alone = sum(key not in there for key in here)
        if alone:
            print(f"{alone} {'row is' if alone == 1 else 'rows are'} in {os.path.basename(path)} alone")
    return 1 if counts.get("failed") else 0


def print_table(place, rows):
    """@param place the workload's name, its problem, its padding and the backend"""
    if not rows:
        return
    name, problem, padding, backend = place
    shape = f"{problem}, padding {padding}" if padding != "zero" else problem
    print(f"\n{name} ({shape}) on {backend}" if name and name != problem else f"\n{shape} on {backend}")
    for line in table(rows):
        print(line)
