#!/usr/bin/env python3
"""Tests of tools/beside_tables.py: what stages are compared with, of a report made up here."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from beside_tables import beside_table  # noqa: E402
from cells import TableError  # noqa: E402


def row(stage, workload, time, number=None, library=None, configuration=None, status="ok", cudnn=None):
    return {"stage": stage, "number": number, "workload_name": workload, "dtype": "fp16", "device": "NVIDIA X",
            "status": status, "time_us": {"median": time} if time else None, "library": library,
            "configuration": configuration, "cudnn": cudnn}


TRIALS = [{"dtype": "fp16", "algorithm": "IMPLICIT_GEMM", "time_us": 8, "family": "GEMM", "status": "ok",
           "layout": "NHWC"}]
ROWS = [row("implicit-gemm", "image", 20, 31, cudnn=TRIALS, configuration={"tile": "128x64"}),
        row("cutlass-sm80", "image", 12.25, library="CUTLASS 4.2.0", configuration={"tile": "64x64x64x5"}),
        row("triton", "image", None, library=None, status="refused"),
        row("implicit-gemm", "conv", 9, 31), row("cutlass-sm80", "conv", None, status="wrong")]


class Beside(unittest.TestCase):
    def test_times_with_the_tile_that_a_library_chose(self):
        self.assertEqual(beside_table(ROWS, ["times"]).splitlines(), [
            "| time (µs), NVIDIA X | 31 implicit-gemm | cutlass-sm80 | triton | cuDNN's best in fp16 |",
            "| --- | ---: | ---: | ---: | ---: |",
            "| image | 20.0 | 12.2 (64x64x64x5) | refused | 8.00 |",
            "| conv | 9.00 | wrong | – | – |"])

    def test_libraries_and_how_their_rows_ended(self):
        self.assertEqual(beside_table(ROWS, ["libraries"]).splitlines()[2:],
                         ["| cutlass-sm80 | CUTLASS 4.2.0 | 1 | 0 | 1 |", "| triton | – | 0 | 1 | 0 |"])
        with self.assertRaisesRegex(TableError, "no row that is no stage"):
            beside_table([ROWS[0]], ["libraries"])

    def test_others_are_refused(self):
        for rows, words in ((ROWS, []), (ROWS, ["other"]), ([], ["times"])):
            with self.subTest(words), self.assertRaises(TableError):
                beside_table(rows, words)


if __name__ == "__main__":
    unittest.main()
