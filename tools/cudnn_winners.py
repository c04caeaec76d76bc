#!/usr/bin/env python3
"""Adds the fastest plans of cuDNN in bench's JSON to common/harness/baselines/cudnn_winners.json.

    tools/cudnn_winners.py FILE...

Of each GPU, version of cuDNN, problem, element type, layout and type of the output the file keeps the fastest plan.
"""

import json
import pathlib
import sys

from report import WINNERS, problem_text

KEY = ("gpu", "cudnn", "problem", "dtype", "layout", "output")
TURNED = " as h x 1"  # how the name of a signal's trial along h ends


def turned(problem):
    """A signal along h instead of w."""
    pairs = {"h": "w", "r": "s", "pad_h": "pad_w", "stride_h": "stride_w", "dilation_h": "dilation_w"}
    swapped = {a: problem[b] for a, b in pairs.items()} | {b: problem[a] for a, b in pairs.items()}
    return {**problem, **swapped}


def plans(bench):
    """Every plan of cuDNN in a bench's JSON that was right, as a winner."""
    for row in bench["rows"]:
        for trial in row["cudnn"] or []:
            if trial.get("engine") is None or not trial["status"].startswith("ok") or not trial["time_us"]:
                continue
            problem = turned(row["workload"]) if trial["algorithm"].endswith(TURNED) else row["workload"]
            yield {"gpu": bench["device"]["name"], "cudnn": trial["version"], "problem": problem_text(problem),
                   "dtype": trial["dtype"], "layout": trial["layout"], "output": trial["output"],
                   "engine": trial["engine"], "knobs": trial["knobs"], "family": trial["family"],
                   "rel_l2_err": trial["rel_l2_err"] and float(f"{trial['rel_l2_err']:.3g}"),
                   "time_us": round(trial["time_us"], 3)}


def merged(winners, found):
    """The fastest of each key, in the order of the keys."""
    best = {}
    for plan in [*winners, *found]:
        key = tuple(plan[name] for name in KEY)
        if key not in best or plan["time_us"] < best[key]["time_us"]:
            best[key] = plan
    return [best[key] for key in sorted(best)]


def text_of(winners):
    return "[\n" + ",\n".join(json.dumps(winner) for winner in winners) + "\n]\n"


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__.strip())
    before = json.loads(WINNERS.read_text())
    try:
        found = [plan for name in sys.argv[1:] for plan in plans(json.loads(pathlib.Path(name).read_text()))]
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"{sys.argv[0]}: no JSON of ./lab bench: {error}")
    after = merged(before, found)
    WINNERS.write_text(text_of(after))
    print(f"{len(found)} plans that were right; {len(after)} winners, {len([w for w in after if w not in before])} new")


if __name__ == "__main__":
    main()
