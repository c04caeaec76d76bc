#!/usr/bin/env python3
"""Tests of tools/hopper_tables.py: the tables of the Hopper track, of a report with round numbers made up here."""

import json
import pathlib
import tempfile
import unittest
from unittest import mock

from test_tables import trial  # finds tools/, too

import hopper_tables
import networks
import tables
from cells import TableError

STAGES = {31: "implicit-gemm", 32: "implicit-gemm-hopper", 33: "winograd-hopper", 34: "int8-hopper",
          35: "winograd-fp32", 36: "split-fp32", 37: "winograd-split"}
TYPES = {**dict.fromkeys((31, 32, 33), "fp16"), 34: "int8", **dict.fromkeys((35, 36, 37), "fp32")}
EVERY = {31: 80, 32: 20, 33: 10, 34: 5, 35: 40}  # stages, and their times

CUDNN = {
    "fp16": [{**trial("fp16", "IMPLICIT_GEMM", 40, layout="NHWC"), "rel_l2_err": 2e-4},
             {**trial("fp16", "WINOGRAD_NONFUSED", 400, "WINOGRAD"), "rel_l2_err": 3e-4},
             {**trial("fp16", "GEMM", 1, status="wrong result"), "rel_l2_err": 1}],
    "int8": [{**trial("int8", "IMPLICIT_PRECOMP_GEMM", 15, layout="NHWC"), "rel_l2_err": 2e-2}],
    "fp32": [{**trial("fp32", "FFT", 160, "FFT"), "rel_l2_err": 3e-7},
             {**trial("fp32", "WINOGRAD_NONFUSED", 640, "WINOGRAD"), "rel_l2_err": 2e-6}],
}


def row(number, time, settings="", name="image", n=1, c=64, size=224, side=3, k=None, **changes):
    """@param time in µs, or None"""
    k = k or c
    result = {
        "number": None if settings else number, "stage": f"{STAGES[number]} {settings}".rstrip(), "backend": "gpu",
        "dtype": TYPES[number], "workload_name": f"{name} ({n},{c},{size},{size})->{k} {side}x{side}",
        "workload": {"n": n, "c": c, "h": size, "w": size, "k": k, "r": side, "s": side, "stride_h": 1, "stride_w": 1,
                     "pad_h": side // 2, "pad_w": side // 2, "dilation_h": 1, "dilation_w": 1, "groups": 1},
        "status": "ok", "reason": None, "time_us": time and {"median": time},
        "time_cold_us": time and {"median": 2 * time},
        "configuration": None, "rel_l2_err": 1e-4, "cudnn": CUDNN[TYPES[number]],
    }
    return {**result, **changes}


def refused(number, **of_row):
    return row(number, None, status="refused", reason="so", rel_l2_err=None, cudnn=None, **of_row)


def tile(outputs, time, error, **changes):
    return row(35, time, f"bound=1e-4,tile={outputs}", configuration={"bound": "1e-4", "tile": outputs},
               rel_l2_err=error, **changes)


TILES = [row(35, 41, configuration={"bound": "1e-5", "tile": "7x4"}, rel_l2_err=3e-6), tile("4x4", 80, 1e-6),
         tile("7x4", 40, 3e-6), tile("7x7", 20, 9e-6)]


def made(rows, marker):
    """The lines of a table as lists of cells, without the line below the headings."""
    lines = [[cell.strip() for cell in line.strip("|").split(" | ")]
             for line in hopper_tables.hopper_table(rows, marker.split()).splitlines()]
    return [lines[0], *lines[2:]]


class Speed(unittest.TestCase):
    def test_times_ratios_and_errors_beside_cudnns(self):
        rows = [row(*stage) for stage in EVERY.items()]
        self.assertEqual(made(rows, "speed image fp16"), [
            ["workload (µs), fp16", "cuDNN's best", "its error", "31 implicit-gemm", "over cuDNN", "error",
             "32 implicit-gemm-hopper", "over cuDNN", "error", "33 winograd-hopper", "over cuDNN", "error"],
            ["image (1,64,224,224)", "40.0 (IMPLICIT_GEMM, NHWC)", "2.0e-04", "80.0 / 160.0", "0.50×", "1.0e-04",
             "20.0 / 40.0", "2.00×", "1.0e-04", "10.0 / 20.0", "4.00×", "1.0e-04"],
            ["**geometric mean**", "–", "–", "–", "0.50×", "–", "–", "2.00×", "–", "–", "4.00×", "–"]])
        self.assertEqual(made(rows, "speed image fp32")[1], [
            "image (1,64,224,224)", "160.0 (FFT, NCHW)", "3.0e-07", "40.0 / 80.0", "4.00×", "1.0e-04"])
        self.assertEqual(made(rows, "speed image int8")[1], [
            "image (1,64,224,224)", "15.0 (IMPLICIT_PRECOMP_GEMM, NHWC)", "2.0e-02", "5.00 / 10.0", "3.00×", "1.0e-04"])

    def test_cudnns_cold_time_stands_beside_its_hot_one(self):
        best = {**CUDNN["int8"][0], "time_cold_us": 18, "time_again_us": 16}
        self.assertEqual(made([row(34, 5, cudnn=[best])], "speed image int8")[1][1],
                         "15.0 / 18.0 (IMPLICIT_PRECOMP_GEMM, NHWC)")

    def test_cudnn_after_the_stages(self):
        def of(size, again):
            return row(34, 5, size=size, cudnn=[{**CUDNN["int8"][0], "time_again_us": again}])

        self.assertEqual(made([of(224, 30), of(448, 7.5), of(960, None)], "again")[1:], [
            ["int8", "2", "1.00×", "0.50× (image (1,64,448,448))", "2.00× (image (1,64,224,224))"]])
        self.assertEqual(hopper_tables.hopper_table([row(34, 5)], ["again"]), hopper_tables.NOT_MEASURED)

    def test_what_did_not_run_is_told(self):
        rows = [row(32, 8), refused(33), row(33, 10, size=960, time_cold_us=None), row(31, 1, status="wrong", size=960)]
        self.assertEqual([line[3:] for line in made(rows, "speed image fp16")[1:]], [
            ["–", "–", "–", "8.00 / 16.0", "5.00×", "1.0e-04", "refused", "–", "–"],
            ["wrong", "–", "1.0e-04", "–", "–", "–", "10.0", "4.00×", "1.0e-04"],
            ["–", "–", "–", "–", "5.00×", "–", "–", "4.00×", "–"]])

    def test_a_report_without_times_is_refused(self):
        for marker in ("goals", "speed image fp32", "tiles image"):
            with self.subTest(marker), self.assertRaisesRegex(TableError, "holds no times"):
                made([row(35, None)], marker)


class Layers(unittest.TestCase):
    def test_both_stages_beside_cudnn(self):
        self.assertEqual(made([row(32, 20), row(34, 5)], "layers"), [
            ["workload (µs)", "32, fp16", "cuDNN's best, fp16", "32 over cuDNN", "34, int8", "cuDNN's best, int8",
             "34 over cuDNN"],
            ["image (1,64,224,224)->64 3x3", "20.0", "40.0", "2.00×", "5.00", "15.0", "3.00×"]])

    def rows_of_resnet(self, **first):
        rows = []
        for c, size, k, side, stride, _ in networks.RESNET_50:
            for number, time in ((32, 20), (34, 5)):
                rows.append(row(number, time, name="net", n=32, c=c, size=size, side=side, k=k))
                rows[-1]["workload"]["stride_h"] = stride
                rows[-1]["workload_name"] += f" stride {stride}"
        rows[0] |= first
        return rows

    def test_of_a_resnet_each_counts_as_often_as_the_network_has_it(self):
        *_, whole, rest = made(self.rows_of_resnet(time_us={"median": 100}), "layers")
        self.assertEqual(whole[1:], ["53", "1140.0", "2120.0", "1.86×", "265.0", "795.0", "3.00×"])  # 100 + 52 * 20
        self.assertEqual(rest[1:], ["52", "1040.0", "2080.0", "2.00×", "260.0", "780.0", "3.00×"])

    def test_no_sum_where_a_layer_is_missing(self):
        *_, whole, rest = made(self.rows_of_resnet(status="failed"), "layers")
        self.assertEqual((whole[2], whole[4], rest[2]), ("–", "–", "1040.0"))
        self.assertNotIn("how often", made(self.rows_of_resnet()[2:], "layers")[0])


class Groups(unittest.TestCase):
    ROWS = [row(31, 1, name=name, n=n, c=c, size=size, side=side, k=k) for name, n, c, size, side, k in (
        ("VGG", 32, 256, 56, 3, 256), ("Inception", 32, 48, 35, 5, 64), ("conv4", 32, 1024, 14, 1, 256),
        ("image", 1, 64, 960, 3, 64), ("image", 1, 64, 320, 3, 64), ("conv5", 64, 512, 7, 3, 512),
        ("conv3", 128, 128, 28, 3, 128), ("conv2", 32, 64, 56, 3, 64), ("conv2", 32, 512, 56, 3, 512))]
    ROWS.append({**row(31, 1, name="conv3", n=32, c=128, size=56),
                 "workload": {**row(31, 1, n=32, c=128, size=56)["workload"], "stride_h": 2, "stride_w": 2},
                 "workload_name": "conv3 (32,128,56,56)->128 3x3 stride 2"})

    def test_groups_and_their_order(self):
        for group, expected in (
            ("image", ["image (1,64,320,320)", "image (1,64,960,960)"]),
            ("batch", ["conv2 (32,64,56,56)", "conv3 (128,128,28,28)", "conv5 (64,512,7,7)"]),
            ("channels", ["VGG (32,256,56,56)", "conv2 (32,64,56,56)", "conv2 (32,512,56,56)"]),
            ("tiles", ["image (1,64,960,960)", "conv3 (128,128,28,28)"]),
            ("others", ["Inception (32,48,35,35)->64 5x5", "VGG (32,256,56,56)", "conv2 (32,512,56,56)",
                        "conv3 (32,128,56,56)->128 3x3 stride 2", "conv4 (32,1024,14,14)->256 1x1"]),
        ):
            with self.subTest(group):
                self.assertEqual([line[0] for line in made(self.ROWS, f"speed {group} fp16")[1:-1]], expected)

    def test_every_workload_is_in_a_table_of_the_page(self):
        count = {group: len(hopper_tables.hopper_workloads(self.ROWS, group)) for group in hopper_tables.GROUPS}
        self.assertEqual(count["image"] + count["batch"] + count["others"], count["all"])

    def test_words_that_are_no_table(self):
        for rows in (self.ROWS, None):
            for words in ("", "speed", "speed image", "speed images fp16", "speed image fp64", "goals image", "tiles",
                          "drawing", "drawing tiles"):
                with self.subTest(words), self.assertRaisesRegex(TableError, "is no table"):
                    made(rows, words)

    def test_other_tracks_do_not_count(self):
        other = {**row(35, 1), "stage": "winograd-fused", "number": 25}
        self.assertEqual(hopper_tables.hopper_table([other], ["goals"]), hopper_tables.NOT_MEASURED)


class Tiles(unittest.TestCase):
    def test_each_tile_and_the_one_that_the_bound_takes(self):
        self.assertEqual(made(TILES, "tiles tiles"), [
            ["workload (µs)", "cuDNN's best", "cuDNN's Winograd", "bound=1e-5", "4x4", "7x4", "7x7"],
            ["image (1,64,224,224)", "160.0 (FFT, NCHW), 3.0e-07", "640.0 (WINOGRAD_NONFUSED, NCHW), 2.0e-06, 0.25×",
             "41.0 (3.90×), 3.0e-06, 7x4", "80.0 (2.00×), 1.0e-06", "40.0 (4.00×), 3.0e-06", "20.0 (8.00×), 9.0e-06"]])

    def test_a_tile_that_was_refused(self):
        rows = [*TILES, row(35, 40, size=960), tile("4x4", None, None, size=960, status="refused")]
        self.assertEqual(made(rows, "tiles tiles")[2][3:],
                         ["40.0 (4.00×), 1.0e-04", "refused", "–", "–"])


class Goals(unittest.TestCase):
    def goals(self, rows):
        return {(line[0], line[1]): line[3:] for line in made(rows, "goals")[1:]}

    def test_the_least_and_how_often_it_is_reached(self):
        rows = [row(31, 50), row(31, 25, size=448), row(31, 100, size=960)]
        self.assertEqual(self.goals(rows)["31", "all"], ["0.80×", "0.40×", "image (1,64,960,960)", "0.80×", "2 of 3"])

    def test_the_faster_of_two_counts(self):
        rows = [row(32, 20), row(33, 10), row(32, 8, size=448), row(33, 10, size=448)]
        goals = self.goals(rows)
        both = "the faster of 32 and 33"
        self.assertEqual(goals[both, "image, 224 × 224"],
                         ["1.70×", "4.00× (33)", "image (1,64,224,224)", "4.00×", "1 of 1"])
        self.assertEqual(goals[both, "image, 448 × 448"][1], "5.00× (32)")
        self.assertEqual(goals[both, "image, 960 × 960"][1:], ["–"] * 4)

    def test_what_falls_short_is_not_rounded_up_to_the_goal(self):
        rows = [row(34, 10), row(34, 10.01, name="conv2", n=128, size=56)]
        goals = self.goals(rows)
        self.assertEqual(goals["34", "images"], ["1.50×", "1.50×", "image (1,64,224,224)", "1.50×", "1 of 1"])
        self.assertEqual(goals["34", "conv2"][1:], ["1.49×", "conv2 (128,64,56,56)", "1.50×", "0 of 1"])

    def test_two_rows_of_a_stage_on_a_workload_are_refused(self):
        with self.assertRaisesRegex(TableError, "two rows"):
            made([row(31, 50), row(31, 60)], "goals")

    def test_layers_of_a_resnet(self):
        rows = [row(32, time, name=name, n=n, c=c, size=size) for time, name, n, c, size in (
            (20, "conv2", 32, 64, 56), (80, "conv2", 128, 64, 56), (40, "conv4", 32, 256, 14), (1, "conv2", 32, 512, 56))]
        goals = self.goals([*rows, refused(33, name="conv4", n=32, c=256, size=14)])
        both = "the faster of 32 and 33"
        self.assertEqual(goals[both, "conv2"], ["1.00×", "0.50× (32)", "conv2 (128,64,56,56)", "1.00×", "1 of 2"])
        self.assertEqual(goals[both, "conv3 to conv5"][1:], ["1.00× (32)", "conv4 (32,256,14,14)", "1.00×", "1 of 1"])

    def test_tiles_within_twice_the_error_of_cudnns_winograd(self):
        layer = {"name": "conv2", "n": 128, "size": 56}
        rows = [row(35, 82, rel_l2_err=3e-6, configuration={"bound": "1e-5", "tile": "7x4"}, **layer),
                tile("4x4", 160, 1e-6, **layer), tile("7x4", 80, 3e-6, **layer), tile("7x7", 40, 9e-6, **layer),
                *TILES]
        goals = self.goals(rows)
        self.assertEqual(goals["35, at most twice the error of cuDNN's Winograd", "conv2 to conv5, N = 128"],
                         ["1.40×", "2.00× (7x4)", "conv2 (128,64,56,56)", "2.00×", "1 of 1"])
        self.assertEqual(goals["35, any tile", "conv2 to conv5, N = 128"][1], "4.00× (7x7)")
        self.assertEqual(goals["35, any tile", "image, 224 × 224"],
                         ["2.70×", "8.00× (7x7)", "image (1,64,224,224)", "8.00×", "1 of 1"])


class Reports(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        results = mock.patch.object(tables, "RESULTS", self.folder)
        results.start()
        self.addCleanup(results.stop)

    def table(self, marker):
        return tables.table(f"hopper {marker}", pathlib.Path("docs/hopper.md"))

    def test_without_a_report_tables_say_so(self):
        for marker in ("machine", "goals", "speed image int8", "tiles tiles", "drawing size"):
            with self.subTest(marker):
                self.assertEqual(self.table(f"h200 {marker}"), hopper_tables.NOT_MEASURED)
        self.assertIn("[32 implicit-gemm-hopper](../chapters/32-implicit-gemm-hopper/README.md)", self.table("stages"))
        for marker in ("", "h200", "h200 times image", "h200 drawing tiles"):
            with self.subTest(marker), self.assertRaisesRegex(TableError, "is no table"):
                self.table(marker)

    def test_with_a_report_it_is_read(self):
        (self.folder / "h200.json").write_text(json.dumps({"rows": [row(31, 50)]}))
        self.assertIn("| 0.80× | 0.80× |", self.table("h200 goals"))
        self.assertEqual(self.table("h200 speed image fp32"), hopper_tables.NOT_MEASURED)
        self.assertEqual(self.table("h200 drawing batch"), hopper_tables.NOT_MEASURED)
        with self.assertRaisesRegex(TableError, "needs a drawing"):
            self.table("h200 drawing size")
        (self.folder / "plots" / "h200").mkdir(parents=True)
        (self.folder / "plots" / "h200" / "hopper-size.svg").write_text("<svg/>")
        self.assertIn("](results/plots/h200/hopper-size.svg)", self.table("h200 drawing size"))


if __name__ == "__main__":
    unittest.main()
