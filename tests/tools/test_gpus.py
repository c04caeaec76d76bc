#!/usr/bin/env python3
"""Tests of tools/gpu_tables.py: GPUs beside each other, of results made up here, with what they lack."""

import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from cells import TableError  # noqa: E402
from gpu_tables import gpus_table  # noqa: E402

PROBLEM = {"n": 1, "c": 1, "h": 1, "w": 100, "k": 1, "r": 1, "s": 11, "pad_h": 0, "pad_w": 5, "stride_h": 1,
           "stride_w": 1, "dilation_h": 1, "dilation_w": 1, "groups": 1, "padding": "zero"}
NAMES = {1: "naive-1d", 3: "tiled-1d", 4: "halo-1d", 9: "register-2d"}


def row(number, workload, time, share=None, cudnn=None, status="ok"):
    return {"stage": NAMES[number], "number": number, "backend": "gpu", "workload_name": workload, "workload": PROBLEM,
            "status": status, "time_us": {"median": time} if time else None, "roofline": {"share": share},
            "speedup": {"cudnn_best": cudnn}}


def bench(name, rows):
    return {"device": {"name": name, "backend": "gpu", "compute_capability": 75, "multiprocessors": 40, "l2_bytes": 2**22,
                       "clocks_before": {"sm_mhz": 1500.0}},
            "toolchain": {"cuda_driver": "13.0", "cudnn": None},
            "ceilings": {"dram_bytes_per_s": 2.5e11, "l2_bytes_per_s": 1e12, "fp32_flops_per_s": 8e12, "launch_us": 1.25,
                         "fp16_flops_per_s": 5e13, "int8_ops_per_s": None}, "rows": rows}


GRID = {"device": {"name": "NVIDIA T9"}, "how": "so", "corner": "time (µs)",
        "columns": ["04 halo-1d", "npp", "cuDNN's best in fp32"], "format": [".1f"] * 3,
        "rows": [{"name": "a", "values": [99, 1, 1]}, {"name": "b", "values": [10, None, 30]},
                 {"name": "c", "values": [None, 1, 1]}]}
H200 = [row(1, "a", 10, 0.20, 0.5), row(3, "a", 8, 0.5, 1.5), row(3, "b", 8, 0.5, 1.5), row(4, "a", 4, 0.8, 2.0),
        row(4, "b", 4, 0.8, 2.0), row(9, "z", 4, 0.8, 2.0), row(1, "b", None, status="refused")]
OTHER = [row(1, "a", 20, 0.21, 0.6), row(3, "a", 16, 0.3, 0.5), row(4, "a", 8, 0.9, 2.5)]


class Gpus(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.put("nvidia-h200", bench("NVIDIA H200", H200))

    def put(self, name, results):
        path = self.folder / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(results))

    def lines(self, kind):
        return gpus_table(self.folder, [kind]).splitlines()

    def test_one_gpu_alone(self):
        for kind in ("stages", "workloads", "summary"):
            self.assertIn("No second GPU has been measured yet.", self.lines(kind))
        self.assertEqual(self.lines("gaps")[2:4], [
            "| signals | 5 of 5; no stage of 02 |", "| images | 1 of 1; no stage of 05, 06, 07, 08 |"])

    def test_what_carries_over_and_what_does_not(self):
        self.put("t9", bench("NVIDIA T9", OTHER))
        self.assertEqual(self.lines("stages"), [
            "| stage | what carries over | workloads in common | share, H200 | share, T9 | over cuDNN, H200 | "
            "over cuDNN, T9 | on the same side of cuDNN |",
            "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
            "| 01 naive-1d | behind cuDNN on both; the share carries over | 1 | 20.0% | 21.0% | 0.50× | 0.60× | 1 of 1 |",
            "| 03 tiled-1d | ahead of cuDNN on the H200 alone; the T9 is farther from its floor | 1 | 50.0% | 30.0% | "
            "1.50× | 0.50× | 0 of 1 |",
            "| 04 halo-1d | ahead of cuDNN on both; the T9 is nearer to its floor | 1 | 80.0% | 90.0% | 2.00× | 2.50× | "
            "1 of 1 |"])
        self.assertIn("The T9 beside the H200: 3 of 4 stages have a workload in common.", self.lines("summary"))
        self.assertIn("- ahead of cuDNN on the H200 alone: 03", self.lines("summary"))

    def test_gaps_are_counted(self):
        self.put("t9", bench("NVIDIA T9", OTHER))
        self.assertEqual(self.lines("gaps")[2:4], [
            "| signals | 5 of 5; no stage of 02 | 3 of 5; no stage of 02 |",
            "| images | 1 of 1; no stage of 05, 06, 07, 08 | 0 of 1 |"])

    def test_times_alone_have_a_ratio_and_no_share(self):
        self.put("t9", bench("NVIDIA T9", OTHER))
        self.put("t9-beside", GRID)
        line = next(line for line in self.lines("workloads") if line.startswith("| 04 halo-1d | b |"))
        self.assertEqual(line, "| 04 halo-1d | b | 4.00 | 10.0 | 0.0 | 80.0% | – | 2.00× | 3.00× |")
        bench_line = next(line for line in self.lines("workloads") if line.startswith("| 04 halo-1d | a |"))
        self.assertIn("| 8.00 |", bench_line)  # the bench's, which has a share, and not the table's

    def test_the_largest_bench_counts(self):
        self.put("t9-a-part", bench("NVIDIA T9", [row(4, "a", 7, 0.1, 1.5)]))
        self.put("t9", bench("NVIDIA T9", OTHER))
        self.assertIn("| 04 halo-1d | a | 4.00 | 8.00 |", "\n".join(self.lines("workloads")))

    def test_results_of_others_stand_apart(self):
        self.put("submitted/t9-1/results", bench("NVIDIA T9", OTHER))
        self.put("submitted/t9-2/results", bench("NVIDIA T9", OTHER[:1]))
        self.assertEqual(self.lines("machines")[0], "| what | H200 | T9 (t9-1) | T9 (t9-2) |")
        self.assertIn("| device copy, read + written, DRAM | 0.25 TB/s | 0.25 TB/s | 0.25 TB/s |", self.lines("machines"))
        self.assertIn("| CUDA driver, cuDNN | 13.0, none | 13.0, none | 13.0, none |", self.lines("machines"))

    def test_nothing_in_common(self):
        self.put("t9", bench("NVIDIA T9", [row(1, "other", 3, 0.5, 1)]))
        self.assertIn("No second GPU has been measured yet.", self.lines("stages"))

    def test_no_table(self):
        for words in ([], ["other"], ["stages", "more"]):
            with self.subTest(words), self.assertRaises(TableError):
                gpus_table(self.folder, words)
        with tempfile.TemporaryDirectory() as empty, self.assertRaisesRegex(TableError, "no result of a GPU"):
            gpus_table(pathlib.Path(empty), ["stages"])


if __name__ == "__main__":
    unittest.main()
