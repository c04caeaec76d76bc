"""`./lab merge OUT.json IN.json ...`: the parts of a bench or of a search, as one file. docs/harness.md, "Shards", has
the rules."""
import json
import os
import pathlib
import sys

from machine import ROOT, Unusable, results_of

sys.path.append(str(ROOT / "tools"))
import recompute  # noqa: E402
import report  # noqa: E402

DESCRIPTION = "The parts that bench or tune --shards has made, or benches of different workloads, as one file."
CEILINGS = ("dram_bytes_per_s", "l2_bytes_per_s", "fp32_flops_per_s", "fp16_flops_per_s", "int8_ops_per_s")


def add_arguments(parser):
    parser.add_argument("out", metavar="OUT.json", help="the file to write")
    parser.add_argument("parts", metavar="IN.json", nargs="+", help="what bench --json, or tune --json, wrote of a part")


def read(path):
    try:
        part = json.loads(pathlib.Path(path).read_text())
    except OSError as error:
        raise Unusable(f"merge: cannot read '{path}': {error.strerror}") from None
    except ValueError:
        raise Unusable(f"merge: '{path}' is no JSON") from None
    return part if isinstance(part, dict) else {}


def require_same(paths, parts, *places):
    """@param places paths of keys whose values must be the same in all"""
    for place in places:
        values = []
        for path, part in zip(paths, parts):
            for key in place:
                if key not in part:
                    raise Unusable(f"merge: '{path}' has no {'/'.join(place)}: measure it with this version")
                part = part[key]
            values.append(part)
        for path, value in zip(paths, values):
            if value != values[0]:
                raise Unusable(f"merge: {'/'.join(place)} differs: {json.dumps(values[0])} in '{paths[0]}', "
                               f"{json.dumps(value)} in '{path}'")


def in_order(paths, parts):
    """The parts by their numbers, where they are of one whole; as they come, where none is a part.

    @throws Unusable  where one is missing or there twice
    """
    shards = [part.get("shard") for part in parts]
    if not any(shards):
        return parts
    if not all(shards):
        raise Unusable(f"merge: '{paths[shards.index(None)]}' is no part of a whole, and others are")
    numbers, wholes = zip(*(map(int, shard.split("/")) for shard in shards))
    if len(set(wholes)) > 1:
        raise Unusable(f"merge: the files are parts of {wholes[0]} and of {next(of for of in wholes if of != wholes[0])}")
    for number in range(1, wholes[0] + 1):
        if numbers.count(number) != 1:
            raise Unusable(f"merge: part {number}/{wholes[0]} is {'missing' if number not in numbers else 'there twice'}")
    return [parts[numbers.index(number)] for number in range(1, wholes[0] + 1)]


# ---- A bench ---------------------------------------------------------------------------------------------------------

def blocks_of(rows):
    """The rows of a workload in a track, stages first and then what stands beside them: [(track, workload, rows)]."""
    found = []
    for row in rows:
        stage, workload = recompute.stage_of(row), recompute.workload_of(row)
        track = stage["track"] if stage else found[-1][0] if found else ""
        if not found or found[-1][:2] != (track, workload):
            found.append((track, workload, []))
        found[-1][2].append(row)
    return found


def merged_rows(parts):
    """In the order of tracks, and in each of the workloads as they were dealt."""
    order, blocks = list(recompute.tracks()), []
    for number, part in enumerate(parts):
        places = {}
        for track, workload, rows in blocks_of(part["rows"]):
            place = places.setdefault(workload, len(places))
            blocks.append(((order.index(track) if track in order else len(order), place, number), rows))
    rows = [row for _, own in sorted(blocks, key=lambda block: block[0]) for row in own]
    seen = set()
    for row in rows:
        key = row["stage"], recompute.workload_of(row)
        if key in seen:
            raise Unusable(f"merge: {row['stage']} on {row['workload_name']} is in two files")
        seen.add(key)
    return rows


def merged_bench(paths, parts):
    """Ceilings are the best that any part has measured; floors and shares follow from these."""
    require_same(paths, parts, ("device", "name"), ("device", "backend"), ("device", "compute_capability"),
                 ("device", "l2_bytes"), ("toolchain", "compiler"), ("toolchain", "cuda_toolkit"),
                 ("toolchain", "cuda_driver"))
    versions = {part["toolchain"]["cudnn"] for part in parts} - {None}  # a part may have had nothing for it to do
    if len(versions) > 1:
        raise Unusable(f"merge: toolchain/cudnn differs: {' and '.join(sorted(versions))}")
    parts = in_order(paths, parts)
    whole = {key: dict(parts[0][key]) for key in ("device", "toolchain")}
    whole["device"]["clocks_after"] = parts[-1]["device"]["clocks_after"]
    whole["toolchain"]["cudnn"] = next(iter(versions), None)
    ceilings = [part["ceilings"] for part in parts if part["ceilings"]]
    whole["ceilings"] = None
    if ceilings:
        best = {key: max((each[key] for each in ceilings if each[key]), default=None) for key in CEILINGS}
        best["launch_us"] = min(each["launch_us"] for each in ceilings)
        whole["ceilings"] = {key: best[key] for key in ceilings[0]}
    whole["rows"] = merged_rows(parts)
    for row in whole["rows"]:
        if row["roofline"]:
            row["roofline"] = recompute.roofline_of(row, whole)
    return whole


# ---- A search --------------------------------------------------------------------------------------------------------

def merged_sessions(parts, measure):
    """One for each search, with the trials of all parts; a configuration once."""
    found = {}
    for part in parts:
        for session in part["sessions"]:
            own = found.setdefault(session["search"], {**session, "budget": 0, "interrupted": False, "trials": []})
            own["budget"] += session["budget"]
            own["interrupted"] = own["interrupted"] or session["interrupted"]
            tried = [trial["configuration"] for trial in own["trials"]]
            own["trials"] += [dict(trial) for trial in session["trials"] if trial["configuration"] not in tried]
    for session in found.values():
        best = None
        for trial in session["trials"]:
            cost = trial[measure]
            best = cost if best is None or (cost is not None and cost < best) else best
            trial["best_so_far"] = best
    return list(found.values())


def merged_log(paths, parts):
    """What is kept is the configuration that gains most over the default that its part has measured beside it."""
    require_same(paths, parts, ("device",), ("stage",), ("problem",), ("padding",), ("measure",), ("toolchain",), ("space",))
    parts = in_order(paths, parts)
    measure = parts[0]["measure"]
    bests = [part["best"] for part in parts if part["best"]]
    costs = [part["default"][measure] for part in parts if part["default"][measure] is not None]
    whole = {key: parts[0][key] for key in ("device", "stage", "problem", "padding", "measure", "toolchain", "space")}
    whole["default"] = {measure: min(costs, default=None)}
    whole["best"] = min(bests, key=lambda best: best[measure] / best[f"default_{measure}"], default=None)
    whole["sessions"] = merged_sessions(parts, measure)
    return whole


def summary(whole):
    if "sessions" in whole:
        trials = sum(len(session["trials"]) for session in whole["sessions"])
        best = whole["best"]
        kept = "nothing beat the default" if not best else "best: " + ",".join(
            f"{knob}={value}" for knob, value in best["configuration"].items())
        return f"{trials} trials; {kept}"
    rows = whole["rows"]
    return f"{len(rows)} rows, {sum(row['status'] == 'ok' for row in rows)} of them right"


def run(options):
    out = pathlib.Path(options.out)
    if out.exists() and not out.is_file():
        raise Unusable(f"merge: cannot write '{out}': it is no ordinary file; choose another path")
    if out.resolve() in [pathlib.Path(path).resolve() for path in options.parts]:
        raise Unusable(f"merge: '{out}' is one of the parts; give another path for the whole")
    with results_of(*options.parts):
        return merge(out, options.parts)


def merge(out, paths):
    parts = [read(path) for path in paths]
    kinds = ["log" if "sessions" in part else "bench" if report.is_bench(part) else "" for part in parts]
    for path, kind in zip(paths, kinds):
        if not kind:
            raise Unusable(f"merge: '{path}' is neither what bench --json nor what tune --json writes")
        if kind != kinds[0]:
            raise Unusable(f"merge: '{paths[0]}' is of {'tune' if kinds[0] == 'log' else 'bench'}, and '{path}' is not")
    whole = {"log": merged_log, "bench": merged_bench}[kinds[0]](paths, parts)
    aside = out.with_name(f"{out.name}.{os.getpid()}")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        aside.write_text(report.text_of(whole) + "\n")
        aside.replace(out)
    except OSError as error:
        if aside.is_file():
            aside.unlink()
        raise Unusable(f"merge: cannot write '{out}': {error.strerror}") from None
    print(f"{out}: {len(parts)} files, {summary(whole)}")
    return 0
