#!/usr/bin/env python3
"""Tests of tools/join_rows.py: a stage's rows of a later run, in a file of results."""

import copy
import json
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import join_rows  # noqa: E402
import recompute  # noqa: E402

CONV4 = "conv4 (128,256,14,14)->256 3x3"
FILE = json.loads((ROOT / "docs/results/nvidia-h200-hopper.json").read_text())


def of(report, number):
    return next(row for row in report["rows"] if row["number"] == number and row["workload_name"] == CONV4)


def later_run(time_us, trial_us, origin="default"):
    """Of 36 on conv4 alone, with one trial of cuDNN."""
    row = copy.deepcopy(of(FILE, 36)) | {"configuration_origin": origin}
    row["time_us"] = {"median": time_us, "min": time_us, "spread": 0.0, "samples": [time_us]}
    trial = next(trial for trial in of(FILE, 35)["cudnn"] if trial["family"] == "WINOGRAD" and trial["time_us"])
    row["cudnn"] = [trial | {"status": "ok", "time_us": trial_us}]
    return FILE | {"rows": [row]}


class JoinRows(unittest.TestCase):
    def setUp(self):
        self.report = copy.deepcopy(FILE)

    def test_a_row_is_replaced_and_ratios_follow(self):
        new, old = join_rows.join(self.report, later_run(50.0, 40.0), 36)
        self.assertEqual(new, [CONV4])
        self.assertEqual(len(old), sum(row["number"] == 36 for row in FILE["rows"]) - 1)
        row, before, after = (of(self.report, number) for number in (36, 35, 37))
        self.assertEqual((row["time_us"]["median"], row["cudnn"]), (50, None))
        self.assertAlmostEqual(row["speedup"]["cudnn_best"], 40 / 50)
        self.assertAlmostEqual(before["speedup"]["cudnn_best"], 40 / before["time_us"]["median"])
        self.assertAlmostEqual(after["speedup"]["previous"], 50 / after["time_us"]["median"])
        self.assertEqual(after["speedup"]["over"]["time_us"], 50)
        places = [f"rows/{place}/" for place, row in enumerate(self.report["rows"])
                  if row["workload_name"] == CONV4 and row["dtype"] == "fp32"]
        wrong = [path for path, value, expected in recompute.derived(self.report) if recompute.differs(value, expected)
                 and path.startswith(tuple(places)) and not path.endswith(("/first", "/effective_tflops"))]
        self.assertEqual(wrong, [])

    def test_other_types_and_workloads_stay(self):
        join_rows.join(self.report, later_run(50.0, 40.0), 36)
        for is_other in (lambda row: row["workload_name"] != CONV4, lambda row: row["dtype"] != "fp32"):
            self.assertEqual(*([row for row in report["rows"] if is_other(row)] for report in (self.report, FILE)))

    def test_a_slower_trial_is_not_added(self):
        join_rows.join(self.report, later_run(50.0, 1e6), 36)
        self.assertEqual(of(self.report, 35)["cudnn"], of(FILE, 35)["cudnn"])

    def test_what_the_stage_does_not_take_by_itself_stays_out(self):
        self.assertEqual(join_rows.join(self.report, later_run(50.0, 40.0, origin="given"), 36)[0], [])
        self.assertEqual(self.report, FILE)


def grid(**rows):
    return {"how": "once", "columns": ["time"], "rows": [{"name": name, "values": [value]} for name, value in rows.items()]}


class JoinGrid(unittest.TestCase):
    def test_rows_that_hold_the_pattern_are_replaced_or_added(self):
        report = grid(a41=1, a43=2, b43=3)
        new, old = join_rows.join_grid(report, grid(c43=7, a43=8, a41=9), "43", "43 later")
        self.assertEqual(report, {**grid(a41=1, a43=8, b43=3, c43=7), "how": "once; 43 later"})
        self.assertEqual((new, old), (["c43", "a43"], ["a41", "b43"]))

    def test_how_stays_where_nothing_is_said(self):
        report = grid(a=1)
        join_rows.join_grid(report, grid(a=2), ".")
        self.assertEqual(report, grid(a=2))

    def test_other_columns(self):
        with self.assertRaises(ValueError):
            join_rows.join_grid(grid(a=1), {**grid(a=2), "columns": ["bytes"]}, ".")

    def test_no_such_row(self):
        report = grid(a=1)
        with self.assertRaises(ValueError):
            join_rows.join_grid(report, grid(a=2), "43", "43 later")
        self.assertEqual(report, grid(a=1))


if __name__ == "__main__":
    unittest.main()
