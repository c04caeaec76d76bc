"""Finishes a file of results that merge has written: leaves of cuDNN's trials those that are right, and prints whether
each ratio follows from its times (tools/recompute.py), and which rows are neither right nor refused.

    python3 tools/measure/finish.py FILE
"""
import collections
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import recompute  # noqa: E402
from report import text_of  # noqa: E402

path = pathlib.Path(sys.argv[1])
report = json.loads(path.read_text())
for row in report["rows"]:
    if row["cudnn"]:
        row["cudnn"] = [trial for trial in row["cudnn"] if trial["status"].startswith("ok")]
path.write_text(text_of(report) + "\n")
found = list(recompute.derived(report))
wrong = [each for each in found if recompute.differs(*each[1:])]
print(f"{path.name}: {len(found)} figures, {len(wrong)} of them do not follow from the times")
for each in wrong[:50]:
    print(*each)
for row in report["rows"]:
    if row["status"] not in ("ok", "refused"):
        print(row["stage"], row["workload_name"], row["status"], row["reason"])
print(dict(collections.Counter(row["status"] for row in report["rows"])))
