#!/usr/bin/env python3
"""Tests of tools/several_tables.py, of reports with round numbers made up here."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from cells import TableError  # noqa: E402
from several_tables import several_table  # noqa: E402

COLUMNS = ["all GPUs, hot", "all GPUs, cold", "one GPU, hot", "one GPU, cold", "floor"]


def report(*rows):
    return {"columns": COLUMNS, "rows": [{"name": name, "values": values} for name, values in rows]}


TWO = report(("41-halo-exchange h=100,w=60,r=3,s=3", [50, 51, 80, 81, 40]),
             ("41-halo-exchange h=200,w=60,r=3,s=3", [100, 101, 160, 161, None]))
FOUR = report(("41-halo-exchange h=100,w=60,r=3,s=3", [25, 26, 79, 81, 20]),
              ("41-halo-exchange h=400,w=60,r=3,s=3", [160, 101, 320, 161, 70]),
              ("33-winograd-hopper c=64,k=64,r=3,s=3,h=8,w=9", [5, None, 1, None, 4]))


EXCHANGES = {"columns": ["exchange"], "rows": [{"name": "200", "values": [6]}, {"name": "280", "values": [14]},
                                               {"name": "10280", "values": [114]}]}
PARTS_COLUMNS = ["time", "with events", "exchange over", "second over", "first over"]


def parts(*rows):
    return {"columns": PARTS_COLUMNS, "rows": [{"name": name, "values": values} for name, values in rows]}


SHAPE = "h=100,w=60,r=3,s=3"
TWO_PARTS = parts((f"41-halo-exchange {SHAPE}", [52, 60, None, None, None]),
                  (f"41-halo-exchange {SHAPE}, no exchange", [43, 44, None, None, None]))
FOUR_PARTS = parts((f"41-halo-exchange {SHAPE}", [26, 30, None, None, None]),
                   (f"41-halo-exchange {SHAPE}, no exchange", [21, 22, None, None, None]),
                   ("42-halo-overlap h=100,w=60,r=5,s=5, one stream", [7, 8, 3, 4, 5]))
FILES = {"x-2": TWO, "x-4": FOUR, "x-2-exchange": EXCHANGES, "x-4-exchange": EXCHANGES,
         "x-2-parts": TWO_PARTS, "x-4-parts": FOUR_PARTS}


def table_of(*words, files=FILES):
    return several_table(files.__getitem__, "x", list(words))


class SeveralTables(unittest.TestCase):
    def test_strong(self):
        table = table_of("strong", "h=100|^33").splitlines()
        self.assertEqual(table[2], "| 41-halo-exchange: 60 × 100, 3 × 3 | 80.0 | 50.0 | 1.60 | 80% | 40.0 | 25.0 | 3.20 | "
                                   "80% | 20.0 |")
        self.assertEqual(table[3], "| 33-winograd-hopper: 9 × 8, 64 channels | 1.0 | – | – | – | – | 5.0 | 0.20 | 5% | 4.0 |")

    def test_no_column_of_floors_where_there_are_none(self):
        table = table_of("strong", ".", files=dict.fromkeys(("x-2", "x-4"), report(("40-x h=4,w=4,r=3,s=3", [1, 1, 2, 2, None]))))
        self.assertNotIn("floor", table)

    def test_weak(self):
        table = table_of("weak", "^41").splitlines()
        self.assertEqual(table[2:], ["| 41-halo-exchange: 60 × 100, 3 × 3 a GPU | 80.0 | 100.0 | 80% | 160.0 | 50% |"])

    def test_weak_on_two_alone(self):
        four = report(("41-halo-exchange h=100,w=60,r=3,s=3", [25, 26, 79, 81, 20]))
        table = table_of("weak", "^41", files={**FILES, "x-4": four}).splitlines()
        self.assertEqual(table[2:], ["| 41-halo-exchange: 60 × 100, 3 × 3 a GPU | 80.0 | 100.0 | 80% | – | – |"])

    def test_order(self):
        sizes = ("c=64,h=1,w=1,r=3", "n=2,h=1,w=1,r=3", "h=9,w=9,r=3", "h=2,w=2,r=11", "h=2,w=2,r=3")
        rows = report(*((f"{stage} {size},s=3", [1, 1, 2, 2, None]) for stage in ("43-x", "41-x") for size in sizes))
        lines = table_of("strong", ".", files=dict.fromkeys(("x-2", "x-4"), rows)).splitlines()[2:]
        self.assertEqual([line.split(" |")[0] for line in lines],
                         [f"| {stage}-x: {size}" for size in ("2 × 2, 3 × 3", "2 × 2, 11 × 3", "9 × 9, 3 × 3",
                                                              "2 × 1 × 1, 3 × 3", "1 × 1, 64 channels")
                          for stage in (41, 43)])

    def test_losses(self):
        # 60 pixels of 4 bytes are 240, midway between 200 and 280; 9 pixels of 64 channels in fp16 are 1152.
        lines = table_of("losses", "h=100|^33").splitlines()[2:]
        self.assertEqual(lines[0], "| 41-halo-exchange: 60 × 100, 3 × 3 | 80.0 | 10.0 | 10.0 | 5.2 | 10.0 |")
        self.assertEqual(lines[1], "| 33-winograd-hopper: 9 × 8, 64 channels | 1.0 | – | 22.7 | 4.8 | 22.7 |")

    def test_model(self):
        # An exchange takes 10 or 22.7 µs: it pays from twice that on, on four from 4/3 of it.
        lines = table_of("model", "h=100|^33").splitlines()[2:]
        self.assertEqual(lines[0], "| 41-halo-exchange: 60 × 100, 3 × 3 | 80.0 | 20.0 | 50.0 | 50.0 | 13.3 | 29.8 | 25.0 |")
        self.assertEqual(lines[1], "| 33-winograd-hopper: 9 × 8, 64 channels | 1.0 | 45.4 | – | – | 30.3 | 23.0 | 5.0 |")

    def test_shares(self):
        # On two a share of 80 µs is 40: of the 12 above it the band takes 3. On four one GPU took 79.
        lines = table_of("shares", "^41").splitlines()[2:]
        self.assertEqual(lines, ["| 41-halo-exchange: 60 × 100, 3 × 3 | 40.0 | 12.0 | 3.0 | 9.0 | 19.8 | 6.2 | 1.2 | 5.0 |"])

    def test_changes(self):
        lines = table_of("changes", ".").splitlines()
        self.assertEqual(lines[0], "| µs | 3 × 3 on 2 | 3 × 3 on 4 | 5 × 5 on 4 |")
        self.assertEqual(lines[2:], ["| 41-halo-exchange | 52.0 | 26.0 | – |", "| 41-halo-exchange, no exchange | 43.0 | "
                                     "21.0 | – |", "| 42-halo-overlap, one stream | – | – | 7.0 |"])

    def test_ends(self):
        both = {**FILES, "x-2-parts": FOUR_PARTS}
        lines = table_of("ends", ".", files=both).splitlines()
        self.assertIn("| exchange over on 2 |", lines[0])
        self.assertEqual(lines[2:], ["| 42-halo-overlap: 60 × 100, 5 × 5, one stream | 7.0 | 8.0 | 3.0 | 4.0 | 5.0 | 7.0 | "
                                     "8.0 | 3.0 | 4.0 | 5.0 |"])

    def test_no_exchange_as_long(self):
        long = report(("41-halo-exchange h=100,w=6000,r=3,s=3", [50, 51, 80, 81, 40]))
        with self.assertRaises(TableError):
            table_of("losses", ".", files={**FILES, "x-2": long})

    def test_nothing(self):
        for words in (["strong", "^42"], ["weak", "^33"], ["strong"], ["wide", "."], ["losses", "^42"],
                      ["model", "^42"], ["shares", "^43"], ["changes", "^43"], ["ends", "^41"]):
            with self.assertRaises(TableError):
                table_of(*words)


if __name__ == "__main__":
    unittest.main()
