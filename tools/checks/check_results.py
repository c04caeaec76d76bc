#!/usr/bin/env python3
"""Holds results against docs/results/schema.json, and against what a schema cannot say.

    python3 tools/checks/check_results.py [FILE ...]

Without files: all of docs/results. Exits with 77, for skipped, where there is no jsonschema (Debian's
python3-jsonschema).
"""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from report import is_bench, repeated_trials  # noqa: E402

try:
    import jsonschema
except ImportError:
    print("skipped: no jsonschema (the Debian package python3-jsonschema)")
    sys.exit(77)

RESULTS = pathlib.Path(__file__).resolve().parents[2] / "docs/results"
SCHEMA = json.loads((RESULTS / "schema.json").read_text())
MOST = 5  # problems of one file that are told


def problems(results, kind=None):
    """What is wrong with a file's JSON. @param kind one of the schema's definitions; None: as the file's keys tell"""
    schema = {**SCHEMA, **({"$ref": f"#/definitions/{kind}"} if kind else {})}
    found = False
    for error in jsonschema.Draft7Validator(schema).iter_errors(results):
        found = True
        cause = jsonschema.exceptions.best_match([error])
        yield f"{'/'.join(map(str, cause.absolute_path)) or 'the file'}: {cause.message}"
    if not found:
        yield from beyond_schema(results)


def beyond_schema(results):
    """What is wrong with a file that fits the schema."""
    if "corner" in results:
        for name, values in [("format", results["format"]), *((row["name"], row["values"]) for row in results["rows"])]:
            if len(values) != len(results["columns"]):
                yield f"{name}: {len(values)} values for {len(results['columns'])} columns"
    if is_bench(results):
        for place in repeated_trials(results["rows"]):
            yield f"rows/{place}: cuDNN's trials are those of a row above it; they stand once for a workload and type"


def committed():
    """The results of docs/results."""
    return sorted(path for path in RESULTS.glob("*.json") if path.name != "schema.json")


def main():
    files = [pathlib.Path(name) for name in sys.argv[1:]] or committed()
    failed = False
    for path in files:
        try:
            found = list(problems(json.loads(path.read_text())))
        except (OSError, ValueError) as error:
            found = [str(error)]
        failed = failed or bool(found)
        for line in found[:MOST]:
            print(f"{path.name}: {line[:300]}")
        if found[MOST:]:
            print(f"{path.name}: and {len(found) - MOST} more")
    print(f"{len(files)} files of results" + ("" if failed else ", each as docs/results/schema.json says"))
    sys.exit(failed)


if __name__ == "__main__":
    main()
