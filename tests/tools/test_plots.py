#!/usr/bin/env python3
"""Tests of tools/plot.py: plots of the tracks winograd and hopper. Exits with 77, for skipped, without matplotlib."""

import importlib.util
import pathlib
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import test_hopper
from test_tables import EVERY, failed, row

if not importlib.util.find_spec("matplotlib"):
    if __name__ != "__main__":
        raise unittest.SkipTest("no matplotlib")
    print("skipped: no matplotlib")
    sys.exit(77)

import dot_plots  # noqa: E402
import hopper_tables  # noqa: E402
import plot  # noqa: E402
import winograd_tables  # noqa: E402
from cells import median  # noqa: E402


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

    def test_dots_lie_on_no_other(self):
        levels = dot_plots.levels_of({"a": 1.0, "b": 1.05, "c": 1.1, "d": 1.25, "e": 3})
        self.assertEqual(levels, {"a": 0, "b": 1, "c": 2, "d": 0, "e": 0})
        self.assertEqual(dot_plots.looks_of(["01 x", "y", "z"])["z"][0], "b")

    def test_names_at_the_ends_of_curves(self):
        figure, axes = plot.pyplot.subplots(figsize=(4, 3))
        axes.set_ylim(0, 1)
        dot_plots.label_ends(axes, [(1, y, str(y), "#000000") for y in (0.98, 0.99, 0.5, 1)])
        places = sorted(text.get_window_extent().y0 for text in axes.texts)
        self.assertTrue(all(b - a > 0.9 * dot_plots.SMALL * figure.dpi / 72 for a, b in zip(places, places[1:])), places)
        self.assertLess(places[-1], axes.bbox.y1)
        plot.pyplot.close(figure)

    def test_workloads_that_say_something(self):
        rows = [row(25, time, size=size) for size, time in ((224, 80), (7, 4))]
        self.assertEqual([list(lines) for lines in plot.by_track(rows, median).values()],
                         [["image (1,64,224,224)->64 3x3"]])
        self.assertEqual(len(plot.by_track(rows[1:], median)["winograd"]), 1, "there is nothing else")

    def test_columns_of_a_roofline(self):
        lines = {"a": {"01 x": (1, 5, "fp32"), "02 y": (1, 9, "fp32")}, "near": {"01 x": (1.1, 5, "fp32")},
                 "far": {"01 x": (9, 5, "fp32")}}
        self.assertEqual(list(plot.columns_of(lines)), ["a", "far"])
        lines["a"]["03 z"] = (2, 7, "int8")
        self.assertEqual(plot.columns_of(lines)["a, int8"], {"03 z": (2, 7)})

    def test_points_of_plots(self):
        rows = [row(25, 80), row(25, 40, size=960), failed(25, "refused", size=448), row(30, 5)]
        panels = plot.winograd_panels(winograd_tables.winograd_workloads(rows, "image"), "h")
        best, winograd = plot.COMPARED_WITH
        self.assertEqual(panels, {(best, "image"): {25: {224: 2, 960: 4}, 30: {224: 4}},
                                  (winograd, "image"): {25: {224: 8, 960: 16}, 30: {224: 0.4}}})

    def drawn(self, draw, rows, *words):
        """What was drawn, or None."""
        with tempfile.TemporaryDirectory() as name:
            path = pathlib.Path(name) / "a.svg"
            self.assertEqual(draw(rows, *words, "A", path), path.exists())
            if not path.exists():
                return None
            xml.etree.ElementTree.parse(path)
            return path.read_text()

    def test_plots_of_the_hopper_track(self):
        rows = [test_hopper.row(*stage, size=size) for stage in test_hopper.EVERY.items() for size in (224, 960)]
        rows += [test_hopper.refused(33, size=448), test_hopper.row(32, 5, size=448)]
        text = self.drawn(plot.draw_hopper, rows, "size")
        for words in ("32 implicit-gemm-hopper", "448", "fp32", "cuDNN's best"):
            self.assertIn(words, text)
        for kind in ("batch", "channels"):
            self.assertIsNone(self.drawn(plot.draw_hopper, rows, kind))
        layers = [test_hopper.row(31, 8, name=name, n=32, c=c, size=size) for name, c, size in (
            ("conv2", 64, 56), ("conv5", 512, 7))]
        self.assertIn("conv5, fp16", self.drawn(plot.draw_hopper, layers, "batch"))
        self.assertIn("channels", self.drawn(plot.draw_hopper, layers, "channels"))
        self.assertIsNone(self.drawn(plot.draw_hopper_errors, rows))
        text = self.drawn(plot.draw_hopper_errors, test_hopper.TILES)
        for words in ("7x7", "cuDNN's Winograd", "image (1,64,224,224)", "35 winograd-fp32"):
            self.assertIn(words, text)

    def test_points_of_the_hopper_tracks_plots(self):
        rows = [test_hopper.row(31, 8), test_hopper.row(35, 16), test_hopper.refused(33, size=960),
                test_hopper.row(32, 2, size=960)]
        panels = plot.hopper_panels(hopper_tables.hopper_workloads(rows, "image"), "h")
        flops = {size: 2e-6 * 64 * 64 * size * size * 9 for size in (224, 960)}  # over µs: TFLOP/s
        self.assertEqual(panels, {
            ("fp16", ""): {31: {224: flops[224] / 8}, 32: {960: flops[960] / 2},
                           plot.CUDNN: {224: flops[224] / 40, 960: flops[960] / 40}},
            ("fp32", ""): {35: {224: flops[224] / 16}, plot.CUDNN: {224: flops[224] / 160}}})

    def test_points_of_time_over_error(self):
        rows = [*test_hopper.TILES, test_hopper.row(36, 30, rel_l2_err=1e-7), test_hopper.row(37, 25, rel_l2_err=2e-6)]
        workloads = hopper_tables.hopper_workloads(rows, "tiles")
        usual = {(35, "4x4"): (1e-6, 80), (35, "7x4"): (3e-6, 40), (35, "7x7"): (9e-6, 20), (36, "3"): (1e-7, 30),
                 (37, "37"): (2e-6, 25), (plot.CUDNN, plot.CUDNN): (3e-7, 160),
                 (plot.CUDNN, "cuDNN's Winograd"): (2e-6, 640)}
        self.assertEqual(plot.hopper_errors(workloads), {"image (1,64,224,224)": usual})
        grid = {"columns": ["conv2 (µs)", "image 224 (µs)", "error, image 224"], "rows": [
            {"name": "halves, 3 products", "values": [1, 31, 2e-7]}, {"name": "TF32, 1 product", "values": [1, 40, 3e-4]},
            {"name": "37, tiles of 4 × 4", "values": [1, None, None]},
            {"name": "cuDNN by PyTorch, TF32 allowed", "values": [1, 23, 3e-4]}]}
        points = plot.hopper_errors(workloads, grid)["image (1,64,224,224)"]
        self.assertEqual(points, usual | {(36, "3"): (2e-7, 31), (36, "TF32"): (3e-4, 40),
                                          (plot.CUDNN, "cuDNN, TF32"): (3e-4, 23)})


if __name__ == "__main__":
    unittest.main()
