#!/usr/bin/env python3
"""Tests of docs/plot.py: the plots of the Winograd track. Exits with 77, for skipped, where there is no matplotlib."""

import importlib.util
import pathlib
import sys
import tempfile
import unittest
import xml.etree.ElementTree

from test_tables import EVERY, failed, row

if not importlib.util.find_spec("matplotlib"):
    print("skipped: no matplotlib")
    sys.exit(77)

import plot  # noqa: E402
import winograd_tables  # noqa: E402


class Plots(unittest.TestCase):
    def test_plots(self):
        rows = [row(*stage, size=size) for stage in EVERY.items() for size in (224, 960)]
        rows += [failed(25, "refused", size=448), row(30, 5, size=448)]
        with tempfile.TemporaryDirectory() as name:
            path = pathlib.Path(name) / "a.svg"
            self.assertTrue(plot.draw_winograd(rows, "image", "h", "side", "A", path))
            xml.etree.ElementTree.parse(path)
            for text in ("30 int8", "960", "over cuDNN's best"):
                self.assertIn(text, path.read_text())
            path.unlink()
            self.assertFalse(plot.draw_winograd(rows, "batch", "n", "images", "A", path))
            self.assertFalse(plot.draw_winograd([row(25, None)], "image", "h", "side", "A", path))
            self.assertFalse(path.exists())

    def test_points_of_plots(self):
        rows = [row(25, 80), row(25, 40, size=960), failed(25, "refused", size=448), row(30, 5)]
        panels = plot.winograd_panels(winograd_tables.winograd_workloads(rows, "image"), "h")
        best, winograd = plot.COMPARED_WITH
        self.assertEqual(panels, {(best, "image"): {25: {224: 2, 960: 4}, 30: {224: 4}},
                                  (winograd, "image"): {25: {224: 8, 960: 16}, 30: {224: 0.4}}})


if __name__ == "__main__":
    unittest.main()
