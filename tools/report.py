"""Reads and writes the files of docs/results, those of `./lab bench --json` above all."""

import json


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
    return report
