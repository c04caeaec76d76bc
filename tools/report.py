"""Reads and writes the files of docs/results, those of `./lab bench --json` above all."""

import json
import pathlib

WINNERS = pathlib.Path(__file__).resolve().parent.parent / "common/harness/baselines/cudnn_winners.json"
AHEAD = 0.97  # two GPUs of one kind differ by up to 3% (docs/hopper.md)


def text_of(value, line_break="\n"):
    """JSON as the program writes it: what holds no other object or list stands on one line."""
    items = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(value, (dict, list)) or not any(item and isinstance(item, (dict, list)) for item in items):
        return json.dumps(value, ensure_ascii=False)
    inner = line_break + "  "
    texts = [text_of(item, inner) for item in items]
    if isinstance(value, list):
        return "[" + ",".join(inner + text for text in texts) + line_break + "]"
    keys = [json.dumps(key, ensure_ascii=False) for key in value]
    return "{" + ",".join(f"{inner}{key}: {text}" for key, text in zip(keys, texts)) + line_break + "}"


def is_bench(results):
    """Whether a file's JSON is that of a bench."""
    return "toolchain" in results and "rows" in results


def key_of(row):
    """What the rows share that cuDNN's trials are measured for once."""
    return row["workload_name"], json.dumps(row["workload"]), row["dtype"]


def repeated_trials(rows):
    """The places of the rows whose trials of cuDNN are those of a row above them, and need not be written again."""
    latest = {}
    for place, row in enumerate(rows):
        if row["cudnn"] and row["cudnn"] == latest.get(key_of(row)):
            yield place
        latest[key_of(row)] = row["cudnn"] or latest.get(key_of(row))


def problem_text(problem):
    """As the program writes it: sizes, and what is not the default."""
    shown = {key: problem[key] for key in ("n", "c", "h", "w", "k", "r", "s")}
    defaults = {"pad_h": (problem["r"] - 1) // 2, "pad_w": (problem["s"] - 1) // 2, "stride_h": 1, "stride_w": 1,
                "dilation_h": 1, "dilation_w": 1, "groups": 1}
    shown |= {key: problem[key] for key, default in defaults.items() if problem[key] != default}
    return ",".join(f"{key}={value}" for key, value in shown.items())


def counts(trial, dtype):
    """Whether a trial is one of those that a row of this type is compared with."""
    return (trial["dtype"] == dtype and trial["status"].startswith("ok") and trial["time_us"]
            and not trial["algorithm"].startswith("two passes"))


def with_known_winners(report, winners):
    """Adds to each row the fastest plan that a search found on a GPU of this kind, with whatever version of cuDNN.

    It counts where it is clearly faster than all that ran beside the row; then the row's ratio is over it.
    """
    fastest = {}
    for winner in sorted(winners, key=lambda winner: -winner["time_us"]):
        fastest[winner["gpu"], winner["problem"], winner["dtype"]] = winner
    gpus = {winner["gpu"] for winner in winners}
    for row in (row for row in report["rows"] if row.get("device") in gpus):
        winner = fastest.get((row["device"], problem_text(row["workload"]), row["dtype"]))
        best = min((trial["time_us"] for trial in row["cudnn"] or [] if counts(trial, row["dtype"])), default=None)
        if not winner or not best or winner["time_us"] >= AHEAD * best:
            continue
        knobs = ",".join(f"k{knob}={value}" for knob, value in winner["knobs"].items())
        row["cudnn"] = [*row["cudnn"], {
            "algorithm": f"plan (eng{winner['engine']}{{{knobs}}}), cuDNN {winner['cudnn']}", "status": "ok",
            "layout": winner["layout"], "time_us": winner["time_us"], "family": winner["family"],
            "dtype": winner["dtype"], "version": winner["cudnn"], "engine": winner["engine"],
            "knobs": winner["knobs"], "output": winner["output"], "workspace_bytes": None, "rel_l2_err": winner["rel_l2_err"],
            "time_again_us": None, "time_cold_us": None, "found_by": "search"}]
        if row["speedup"] and row["speedup"]["cudnn_best"]:
            row["speedup"]["cudnn_best"] = winner["time_us"] / row["time_us"]["median"]


def read_report(path):
    """The JSON of a file. In a bench's, each row gets the trials of cuDNN that were measured for it.

    They stand in the first row of each workload and element type. Two tracks may share a workload, each with trials of
    its own: a row's are those nearest above it.
    """
    report = json.loads(path.read_text())
    latest = {}
    for row in report["rows"] if is_bench(report) else []:
        latest[key_of(row)] = row["cudnn"] or latest.get(key_of(row))
        row["cudnn"] = None if row["cudnn_unavailable"] else latest[key_of(row)]
    if is_bench(report):
        with_known_winners(report, json.loads(WINNERS.read_text()))
    return report
