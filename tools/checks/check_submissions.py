#!/usr/bin/env python3
"""Holds the results that others have measured against themselves: every median, share and ratio is computed again.

    python3 tools/checks/check_submissions.py [FOLDER ...]

Each folder has what `./lab bench --submit FOLDER` wrote: results.json and submission.json. Without folders: all of
docs/results/submitted. Each line names the file, the field, its value and what it should be. Exits with 1 where
something does not hold together, and with 77, for skipped, where there is no jsonschema (Debian's python3-jsonschema).
"""
import hashlib
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools/checks")]
from recompute import derived, differs, stage_of  # noqa: E402
from report import repeated_trials  # noqa: E402

SUBMITTED = ROOT / "docs/results/submitted"
FILES = {"results.json": "bench", "submission.json": "submission"}  # and their definitions in schema.json
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
PRINTABLE = re.compile(r"[\w .,:;()/+=@^>-]{1,120}")  # what tables show as it is
MOST = 8  # findings of one folder that are told
LEAST_SAMPLES = 3


def finding(field, value, expected):
    return f"{field}: {json.dumps(value)[:120]}, expected {expected}"


def same(field, value, expected):
    """A finding, or nothing."""
    if value != expected:
        yield finding(field, value, json.dumps(expected))


def repository_has(commit):
    """Whether the checkout has the commit; None where that cannot be told: no git, or a part of the history alone."""
    def git(*words):
        return subprocess.run(["git", "-C", ROOT, *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    try:
        if git("rev-parse", "--is-shallow-repository").stdout.strip() != "false":
            return None
        return git("merge-base", "--is-ancestor", commit, "HEAD").returncode == 0
    except OSError:
        return None


# ---- One file --------------------------------------------------------------------------------------------------------

def of_row(path, row, device):
    """What is wrong with a row by itself."""
    for field in ("stage", "workload_name"):
        if not PRINTABLE.fullmatch(row[field] or ""):
            yield finding(f"{path}/{field}", row[field], "a name of letters, figures and common signs")
    if row["status"] not in ("ok", "refused"):
        yield finding(f"{path}/status", row["status"], '"ok" or "refused": a stage that fails is an issue to open')
    if row["number"] is not None:
        known = stage_of(row)
        yield from same(f"{path}/number", row["number"], known and known["number"])
    if stage_of(row):
        yield from same(f"{path}/dtype", row["dtype"], stage_of(row)["dtype"])
    if row["backend"] not in ("gpu", "cpu"):
        yield finding(f"{path}/backend", row["backend"], '"gpu", or "cpu" of a stage that runs there')
    if row["backend"] == "gpu":
        yield from same(f"{path}/device", row["device"], device)
    if row["status"] != "ok":
        return
    if not row["time_us"]:
        yield finding(f"{path}/time_us", None, "a time")
        return
    samples = row["time_us"].get("samples") or []
    if len(samples) < LEAST_SAMPLES and row["backend"] == "gpu":
        yield finding(f"{path}/time_us/samples", samples, f"at least {LEAST_SAMPLES}")
    for key in ("time_us", "time_cold_us", "time_without_transform_us"):
        if row[key] and min(row[key].get("samples") or [row[key]["min"]]) <= 0:
            yield finding(f"{path}/{key}/min", row[key]["min"], "above 0")
    if row["rel_l2_err"] is None or row["tolerance"] is None or row["rel_l2_err"] > row["tolerance"]:
        yield finding(f"{path}/rel_l2_err", row["rel_l2_err"], f"at most the tolerance, {row['tolerance']}")


def of_results(results):
    """What is wrong with a bench that fits the schema."""
    device, rows = results["device"], results["rows"]
    yield from same("device/backend", device["backend"], "gpu")
    if "shard" in results:
        yield finding("shard", results["shard"], "a whole bench")
    if not PRINTABLE.fullmatch(device["name"]):
        yield finding("device/name", device["name"], "a name of letters, figures and common signs")
    for when in ("clocks_before", "clocks_after"):
        if not (device[when] or {}).get("sm_mhz"):
            yield finding(f"device/{when}/sm_mhz", None, "a clock in MHz")
    if not results["ceilings"]:
        yield finding("ceilings", None, "what the GPU's ceilings were measured as")
        return
    for place in repeated_trials(rows):
        yield finding(f"rows/{place}/cudnn", "trials", "null: they are those of a row above")
    seen, problems = set(), {}
    for place, row in enumerate(rows):
        yield from of_row(f"rows/{place}", row, device["name"])
        problem = json.dumps(row["workload"], sort_keys=True)
        key = row["stage"], row["workload_name"], row["backend"]
        if key in seen:
            yield finding(f"rows/{place}/stage", row["stage"], f"one row of it on {row['workload_name']}")
        seen.add(key)
        host = row["backend"] == "cpu"  # whose workloads have other batches
        if problems.setdefault((row["workload_name"], host), problem) != problem and not host:
            yield finding(f"rows/{place}/workload", row["workload"], "that of the first row of the name")
    if any(row["number"] is not None and not stage_of(row) for row in rows):
        return  # nothing follows for a stage that is not known
    for field, value, expected in derived(results):
        if differs(value, expected):
            yield finding(field, value, expected)


# ---- A folder --------------------------------------------------------------------------------------------------------

def no_number(name):
    """NaN and infinities, which Python reads, and which no comparison would find."""
    raise ValueError(f"{name} is no number")


def schema_findings(content, kind):
    from check_results import problems  # which ends the program where there is no jsonschema
    yield from problems(content, kind)


def found_in(folder, has_commit=repository_has):
    """(file, what is wrong) of all that is wrong with a submission. @param has_commit  as repository_has()"""
    if not NAME.fullmatch(folder.name):
        yield "", finding("the folder's name", folder.name, "lower case, figures and hyphens, as in rtx-4090-1")
    present = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if present != set(FILES):
        yield "", finding("files", sorted(present), " and ".join(FILES))
    contents = {}
    for name in FILES:
        if name not in present:
            return
        try:
            contents[name] = json.loads((folder / name).read_text(), parse_constant=no_number)
        except ValueError as error:
            yield name, finding("the file", str(error), "JSON")
            return
    broken = False
    for name, kind in FILES.items():
        for text in schema_findings(contents[name], kind):
            broken = True
            yield name, f"{text}, expected what docs/results/schema.json says"
    if broken:
        return
    results, submission = contents.values()
    own = "submission.json"
    digest = hashlib.sha256((folder / "results.json").read_bytes()).hexdigest()
    for text in same("sha256", submission["sha256"], {"results.json": digest}):
        yield own, text
    if has_commit(submission["commit"]) is False:
        yield own, finding("commit", submission["commit"], "a commit that this branch descends from")
    for text in same("versions", submission["versions"], results["toolchain"]):
        yield own, text
    for key in ("name", "compute_capability"):
        for text in same(f"device/{key}", submission["device"][key], results["device"][key]):
            yield own, text
    for text in of_results(results):
        yield "results.json", text


def main():
    folders = [pathlib.Path(name) for name in sys.argv[1:]] or sorted(
        path for path in SUBMITTED.glob("*") if path.name != "README.md")
    failed = False
    for folder in folders:
        found = [f"{folder / name if name else folder}: {text}" for name, text in found_in(folder.resolve())]
        failed = failed or bool(found)
        for line in found[:MOST]:
            print(line)
        if found[MOST:]:
            print(f"{folder}: and {len(found) - MOST} more")
    print(f"{len(folders)} submissions" + ("" if failed else ", each of which holds together"))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
