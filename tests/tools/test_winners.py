#!/usr/bin/env python3
"""Tests of tools/cudnn_winners.py, and of the committed winners."""

import json
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import comparisons  # noqa: E402
import cudnn_winners  # noqa: E402
import report  # noqa: E402

PROBLEM = {"n": 1, "c": 64, "h": 224, "w": 224, "k": 64, "r": 3, "s": 3, "pad_h": 1, "pad_w": 1, "stride_h": 1,
           "stride_w": 1, "dilation_h": 1, "dilation_w": 1, "groups": 1, "padding": "zero"}


def trial(time, status="ok", engine=4, algorithm="plan (eng4{k24=28})", **other):
    return {"algorithm": algorithm, "layout": "NHWC", "status": status, "time_us": time, "dtype": "int8",
            "version": "9.19.0", "family": "GEMM", "rel_l2_err": 0.02, "engine": engine, "knobs": {"24": 28}, "output": "int8", **other}


def bench(problem, *trials):
    return {"device": {"name": "A GPU"}, "rows": [{"workload": problem, "cudnn": list(trials)},
                                                  {"workload": problem, "cudnn": None}]}


class Winners(unittest.TestCase):
    def test_committed(self):
        winners = json.loads(cudnn_winners.WINNERS.read_text())
        self.assertEqual(cudnn_winners.WINNERS.read_text(), cudnn_winners.text_of(cudnn_winners.merged(winners, [])))

    def test_problem(self):
        self.assertEqual(cudnn_winners.problem_text(PROBLEM), "n=1,c=64,h=224,w=224,k=64,r=3,s=3")
        odd = {**PROBLEM, "pad_h": 0, "stride_w": 2, "groups": 64}
        self.assertEqual(cudnn_winners.problem_text(odd),
                         "n=1,c=64,h=224,w=224,k=64,r=3,s=3,pad_h=0,stride_w=2,groups=64")

    def test_only_plans_that_were_right(self):
        found = list(cudnn_winners.plans(bench(PROBLEM, trial(9), trial(1, "wrong result (rel. L2 error 0.3)"),
                                               trial(2, engine=None, algorithm="GEMM"), trial(None))))
        self.assertEqual([plan["time_us"] for plan in found], [9])
        self.assertEqual((found[0]["gpu"], found[0]["cudnn"], found[0]["engine"], found[0]["knobs"]),
                         ("A GPU", "9.19.0", 4, {"24": 28}))

    def test_a_signal_along_h(self):
        signal = {**PROBLEM, "h": 1, "r": 1, "pad_h": 0, "s": 5, "pad_w": 2}
        along_w, along_h = cudnn_winners.plans(bench(signal, trial(1), trial(2, algorithm="plan (eng4{}) as h x 1")))
        self.assertEqual(along_w["problem"], "n=1,c=64,h=1,w=224,k=64,r=1,s=5")
        self.assertEqual(along_h["problem"], "n=1,c=64,h=224,w=1,k=64,r=5,s=1")

    def test_the_fastest_of_each_key_stays(self):
        fast, slow = cudnn_winners.plans(bench(PROBLEM, trial(7.9), trial(12.3)))
        self.assertEqual(cudnn_winners.merged([slow], [fast]), [fast])
        self.assertEqual(cudnn_winners.merged([fast], [slow]), [fast])
        other = {**slow, "cudnn": "9.14.0"}
        self.assertEqual(cudnn_winners.merged([fast], [other]), [other, fast])

    def test_a_row_is_compared_with_a_clearly_faster_winner(self):
        def row(median):
            return {"device": "A GPU", "workload": PROBLEM, "dtype": "int8", "cudnn": [trial(10, algorithm="GEMM")],
                    "time_us": {"median": median}, "speedup": {"cudnn_best": 10 / median}}

        winner = next(cudnn_winners.plans(bench(PROBLEM, trial(8))))
        for winners, best in (([winner], 8), ([{**winner, "time_us": 9.8}], 10), ([{**winner, "gpu": "B"}], 10),
                              ([{**winner, "time_us": 9}, winner], 8),
                              ([{**winner, "gpu": "B"}, {**winner, "time_us": 9.8}], 10), ([], 10)):
            rows = {"rows": [row(4)]}
            report.with_known_winners(rows, winners)
            self.assertEqual(rows["rows"][0]["speedup"]["cudnn_best"], best / 4)
            self.assertEqual(min(one["time_us"] for one in rows["rows"][0]["cudnn"]), best)
        self.assertEqual(rows["rows"][0]["cudnn"], [trial(10, algorithm="GEMM")])
        report.with_known_winners(rows, [winner])
        self.assertEqual(rows["rows"][0]["cudnn"][1]["algorithm"], "plan (eng4{k24=28}), cuDNN 9.19.0")

    def test_a_table_names_engine_knobs_and_version(self):
        self.assertEqual(comparisons.trial_cell(trial(7.9)), "7.90 (engine 4, k24=28, 9.19, NHWC)")


if __name__ == "__main__":
    unittest.main()
