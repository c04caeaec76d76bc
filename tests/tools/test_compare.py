#!/usr/bin/env python3
"""Two results compared: the test's statistics, what is paired, what is told, and exit statuses."""
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools/lab")]
import compare_results as compare  # noqa: E402

PROBLEM = {"n": 1, "c": 1, "h": 1, "w": 4096, "k": 1, "r": 1, "s": 5, "pad_h": 0, "pad_w": 2, "stride_h": 1, "stride_w": 1,
           "dilation_h": 1, "dilation_w": 1, "groups": 1, "padding": "zero"}
DEVICE = {"name": "NVIDIA H200", "backend": "gpu"}
TOOLS = {"compiler": "g++", "cuda_toolkit": "13.0", "cuda_driver": "13.0", "cudnn": "9.19.0"}


def row(median, stage="naive-1d", spread=0.002, seed=1, count=15, **others):
    """A row of a GPU whose samples scatter around a time."""
    noise = random.Random(f"{stage} {seed}")
    samples = [median * noise.gauss(1, spread) for _ in range(count)]
    result = {"stage": stage, "number": 1, "backend": "gpu", "device": "NVIDIA H200", "workload": dict(PROBLEM),
              "workload_name": "w=4096", "status": "ok", "configuration": None, "configuration_origin": None,
              "time_us": {"median": median, "min": min(samples), "spread": spread, "samples": samples},
              "gpu": {"sm_mhz": 1980.0, "samples_slowed": 0}}
    return {**result, **others}


def bench(*rows, device=(), toolchain=()):
    return {"device": {**DEVICE, **dict(device)}, "toolchain": {**TOOLS, **dict(toolchain)}, "ceilings": None,
            "rows": list(rows)}


class Statistics(unittest.TestCase):
    def test_ranks_are_those_of_the_tables_of_mann_and_whitney(self):
        # U is significant up to rank - 1: at 1% for two sides 0, 16, 51 and 105, at 5% 64.
        for n, tail, rank in ((4, .005, 0), (5, .005, 1), (10, .005, 17), (15, .005, 52), (20, .005, 106), (15, .025, 65)):
            self.assertEqual(compare.rank_of_bound(n, n, tail), rank)
        self.assertEqual(compare.rank_of_bound(3, 10, .025), 4)
        self.assertEqual(compare.rank_of_bound(10, 3, .025), 4)

    def test_many_samples_are_ranked_alike_by_the_normal_distribution(self):
        exact = compare.rank_of_bound(100, 100, .005)
        approximate = compare.rank_of_bound(100, 101, .005) / 101 * 100
        self.assertLess(abs(approximate / exact - 1), 0.01)

    def test_the_interval_holds_the_true_ratio_as_often_as_it_says(self):
        noise, held, runs = random.Random(1), 0, 400
        for _ in range(runs):
            old, new = ([scale * noise.lognormvariate(0, 0.02) for _ in range(9)] for scale in (1.1, 1))
            _, low, high = compare.ratio_of(old, new)
            held += low <= 1.1 <= high
        self.assertGreaterEqual(held / runs, 0.97)
        self.assertLess(held, runs)  # an interval that is never wrong says nothing

    def test_too_few_samples_bound_nothing(self):
        self.assertEqual(compare.ratio_of([2.0] * 4, [1.0] * 4), (2, 0, math.inf))
        self.assertEqual(compare.verdict_of(0, math.inf), "unclear")

    def test_verdicts(self):
        for low, high, verdict in ((1.04, 1.1, "faster"), (0.9, 0.96, "slower"), (0.98, 1.02, "same"),
                                   (1.02, 1.1, "unclear"), (0.9, 1.01, "unclear"), (0.96, 1.04, "unclear")):
            self.assertEqual(compare.verdict_of(low, high), verdict, (low, high))


class Command(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_lab(self, *contents, options=()):
        names = []
        for name, content in zip(("old.json", "new.json"), contents):
            names.append(str(self.folder / name))
            (self.folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
        return subprocess.run([str(ROOT / "lab"), "compare", *names, *options], capture_output=True, text=True)

    def compared(self, old, new, status=0):
        done = self.run_lab(old, new)
        self.assertEqual((done.stderr, done.returncode), ("", status))
        return done.stdout

    def refused(self, part, *contents, options=()):
        done = self.run_lab(*contents, options=options)
        self.assertEqual((done.stdout, done.returncode), ("", 2))
        self.assertRegex(done.stderr, r"\A\./lab: [^\n]*\n\Z")
        self.assertIn(part, done.stderr)

    def test_each_row_has_a_verdict(self):
        names = ["a", "b", "c", "d"]
        old = bench(*(row(100, name, seed=1, spread=0.08 if name == "d" else 0.002) for name in names))
        new = bench(*(row(time, name, seed=2, spread=0.08 if name == "d" else 0.002)
                      for name, time in zip(names, (80, 125, 100.5, 101))))
        text = self.compared(old, new)
        for name, verdict in zip(names, ("faster", "slower", "same", "unclear")):
            self.assertRegex(text, rf"(?m)^  01 {name} .* {verdict}$")
        self.assertRegex(text, r"(?m)^  01 a +100 us +80 us +1\.2\d\dx +1\.2\d\d to 1\.2\d\d  faster$")
        self.assertIn("\n1 faster, 1 slower, 1 same, 1 unclear\n", text)
        self.assertNotIn("not the same in both", text)

    def test_a_file_with_itself_is_the_same(self):
        self.assertTrue(self.compared(bench(row(5)), bench(row(5))).endswith("\n1 same\n"))

    def test_rows_are_paired_by_stage_problem_configuration_and_backend(self):
        tile = {"configuration": {"m": 4}, "configuration_origin": "given"}
        old = bench(row(100), row(50, **tile), row(70, workload={**PROBLEM, "padding": "reflect"}))
        new = bench(row(70, workload={**PROBLEM, "padding": "reflect"}, seed=2), row(50, seed=2, **tile), row(100, seed=2),
                    row(9, backend="cpu"), row(7, "other"))
        text = self.compared(old, new)
        self.assertIn("\n3 same\n2 rows are in new.json alone\n", text)
        self.assertRegex(text, r"(?m)^  01 naive-1d m=4 ")
        self.assertIn("padding reflect", text)

    def test_what_is_not_the_same_about_the_machines_comes_first(self):
        slow = {"sm_mhz": 1500.0, "samples_slowed": 2}
        old = bench(row(100))
        new = bench(row(100, gpu=slow), device={"name": "NVIDIA H100"}, toolchain={"cuda_driver": "12.4"})
        lines = self.compared(old, new).splitlines()
        self.assertEqual(lines[:3], ["not the same in both: name: NVIDIA H200, then NVIDIA H100",
                                     "not the same in both: cuda driver: 13.0, then 12.4",
                                     "not the same in both: clock of the multiprocessors (median of the rows): 1980 MHz, "
                                     "then 1500 MHz"])
        self.assertIn("same (new: the GPU was slowed)", lines[6])

    def test_a_row_that_went_wrong_is_a_failure(self):
        wrong = {"status": "wrong", "time_us": None}
        text = self.compared(bench(row(1), row(2, "b")), bench(row(1, **wrong), row(2, "b")), status=1)
        self.assertIn("ok, then wrong", text)
        self.assertIn("\n1 same, 1 failed\n", text)
        refused = {"status": "refused", "time_us": None}
        self.assertIn("1 no time", self.compared(bench(row(1), row(2, "b")), bench(row(1, **refused), row(2, "b"))))

    def test_what_run_and_compare_print_will_do_too(self):
        self.assertIn("1 same", self.compared(row(3), [row(3)]))
        self.assertIn("not the same in both: device: NVIDIA H200, then NVIDIA H100",
                      self.compared(row(3), row(3, device="NVIDIA H100")))

    def test_unusable_files_are_told_in_a_line(self):
        good = bench(row(1))
        self.refused("is not JSON", good, "{")
        self.refused("holds no results", good, {"rows": []})
        self.refused("holds no results", good, {"stage": 1})
        self.refused("holds no results", good, "[1]")
        self.refused("holds no results", good, "null")
        self.refused("the simulator takes none", good, bench(row(1, time_us=None)))
        self.refused("measure again", bench(row(1, time_us={"median": 1, "min": 1, "spread": 0})), good)
        self.refused("is not as this version writes its results (KeyError: 'n')", good, bench(row(1, workload={})))
        self.refused("no row in common", good, bench(row(1, "other")))
        self.refused("got 1 arguments", good)
        self.refused("--seed is of the comparison of stages", good, good, options=["--seed", "3"])
        self.refused("cannot read", good, options=["nothing.json"])


if __name__ == "__main__":
    unittest.main()
