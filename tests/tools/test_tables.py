#!/usr/bin/env python3
"""Tests of tools/tables.py: the tables of the Winograd track, of a report with round numbers made up here."""

import pathlib
import sys
import unittest
import xml.etree.ElementTree
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import ladder  # noqa: E402
import migrate_results  # noqa: E402
import tables  # noqa: E402
import winograd_tables  # noqa: E402
from cells import TableError  # noqa: E402

STAGES = {23: "winograd", 24: "winograd-bgemm", 25: "winograd-fused", 26: "winograd-tensor-core",
          27: "winograd-sync-free", 28: "winograd-pkf-shmem", 29: "winograd-pkf-llc", 30: "winograd-int8"}
TYPES = {**dict.fromkeys((23, 24, 25), "fp32"), **dict.fromkeys((26, 27, 28, 29), "fp16"), 30: "int8"}


def trial(dtype, algorithm, time, family="GEMM", status="ok", layout="NCHW"):
    return {"dtype": dtype, "algorithm": algorithm, "time_us": time, "family": family, "status": status,
            "layout": layout}


# By the type of the rows that they were measured for.
CUDNN = {
    "fp32": [trial("fp32", "WINOGRAD", None, "WINOGRAD", "CUDNN_STATUS_NOT_SUPPORTED"),
             trial("fp32", "WINOGRAD_NONFUSED", 640, "WINOGRAD"), trial("fp32", "FFT", 160, "FFT"),
             trial("fp32", "FFT_TILING", 1, "FFT", "wrong result (rel. L2 error 0.3)"),
             trial("fp32", "two passes: GEMM + GEMM", 1, None), trial("fp32", "DIRECT", None),
             trial("fp32", "GEMM", 320)],
    "fp16": [trial("fp16", "WINOGRAD_NONFUSED", 800, "WINOGRAD"),
             trial("fp16", "WINOGRAD_NONFUSED (half sums)", 400, "WINOGRAD"), trial("fp16", "IMPLICIT_GEMM", 80),
             trial("fp16", "plan 3 (eng28{k2=4,k3=0})", 40, layout="NHWC")],
    "int8": [trial("int8", "IMPLICIT_GEMM (float output)", 20, layout="NHWC"),
             trial("fp16", "WINOGRAD_NONFUSED", 2, "WINOGRAD")],
}


def row(number, time, settings="", name="image", n=1, c=64, size=224, **changes):
    """@param time in µs, or None"""
    result = {
        "number": None if settings else number, "stage": f"{STAGES[number]} {settings}".rstrip(),
        "device": "NVIDIA H200", "backend": "gpu", "dtype": TYPES[number],
        "workload_name": f"{name} ({n},{c},{size},{size})->{c} 3x3",
        "workload": {"n": n, "c": c, "h": size, "w": size, "k": c}, "status": "ok", "reason": None,
        "time_us": None if time is None else {"median": time, "min": time, "spread": 0},
        "effective_tflops": time and 640 / time, "configuration": None, "workspace_bytes": None,
        "rel_l2_err": 1e-4, "max_abs_err": 1e-3, "tolerance": 2e-2, "cudnn": CUDNN[TYPES[number]], "tile": None,
        "speedup": {"previous": None, "over": None},
    }
    return {**result, **changes}


def failed(number, status, **of_row):
    return row(number, None, status=status, reason="so", rel_l2_err=None, max_abs_err=None, tolerance=None, cudnn=None,
               **of_row)


def compare(rows):
    """Sets the speedups over the previous stages, by workload."""
    for name in {each["workload_name"] for each in rows}:
        migrate_results.compare_with_fastest([each for each in rows if each["workload_name"] == name])


def made(rows, marker):
    """The lines of a table as lists of cells, without the line below the headings."""
    text = winograd_tables.winograd_table(rows, marker.split())
    lines = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines()]
    return [lines[0], *lines[2:]]


def column(rows, marker, heading):
    """Of a table: {first cell: cell below a heading}."""
    headings, *lines = made(rows, marker)
    return {line[0]: line[headings.index(heading)] for line in lines}


EVERY = {23: 1280, 24: 320, 25: 80, 26: 40, 27: 20, 28: 10, 29: 80, 30: 5}  # stages, and their times


class Times(unittest.TestCase):
    def test_each_type_of_cudnn_stands_beside_its_stages(self):
        self.assertEqual(made([row(*stage) for stage in EVERY.items()], "times image"), [
            ["workload (µs)", "23 winograd", "24 bgemm", "25 fused", "cuDNN's Winograd, fp32", "cuDNN's best, fp32",
             "26 tensor-core", "27 sync-free", "28 pkf-shmem", "29 pkf-llc", "cuDNN's Winograd, fp16",
             "cuDNN's best, fp16", "30 int8", "cuDNN's best, int8"],
            ["image (1,64,224,224)", "1280.0", "320.0", "80.0", "640.0", "160.0 (FFT, NCHW)", "40.0", "20.0", "10.0",
             "80.0", "400.0", "40.0 (plan 3 eng28, NHWC)", "5.00", "20.0 (IMPLICIT_GEMM (float output), NHWC)"]])

    def test_what_did_not_run_is_told(self):
        rows = [row(23, 8), failed(24, "refused"), row(25, 4, cudnn=None, size=960),
                row(24, 2, status="wrong", size=960), row(23, None, size=960)]
        self.assertEqual(made(rows, "times image"), [
            ["workload (µs)", "23 winograd", "24 bgemm", "25 fused", "cuDNN's Winograd, fp32", "cuDNN's best, fp32"],
            ["image (1,64,224,224)", "8.00", "refused", "–", "640.0", "160.0 (FFT, NCHW)"],
            ["image (1,64,960,960)", "–", "wrong", "4.00", "640.0", "160.0 (FFT, NCHW)"]])

    def test_a_report_without_times_is_refused(self):
        for marker in ("times image", "over-best image", "over-previous image", "over-winograd image", "tflops image",
                       "ablation image 25", "claims"):
            with self.subTest(marker), self.assertRaisesRegex(TableError, "holds no times"):
                made([row(25, None), row(25, None, "buffers=1")], marker)

    def test_other_tracks_do_not_count(self):
        other = {**row(23, 1), "stage": "winograd-hopper", "number": 33}
        with self.assertRaisesRegex(TableError, "no workload image"):
            made([other], "times image")
        self.assertEqual(made([other, row(23, 8)], "times image")[1][1], "8.00")

    def test_effective_rate(self):
        rows = [row(23, 64), row(25, 8), row(23, 64, size=960), failed(25, "error", size=960)]
        self.assertEqual(column(rows, "tflops headline", "25 fused"),
                         {"image (1,64,224,224)": "80.0", "image (1,64,960,960)": "error"})


class Groups(unittest.TestCase):
    ROWS = [row(23, 1, name=name, n=n, c=c, size=size) for name, n, c, size in (
        ("wide", 8, 256, 56), ("image", 1, 64, 960), ("image", 1, 64, 320), ("image", 1, 64, 224),
        ("conv3", 96, 128, 28), ("conv3", 32, 128, 28), ("conv2", 128, 64, 56), ("conv3", 32, 64, 28),
        ("conv3", 64, 64, 28))]

    def test_groups_and_their_order(self):
        for group, expected in (
            ("image", ["image (1,64,224,224)", "image (1,64,320,320)", "image (1,64,960,960)"]),
            ("batch", ["conv2 (128,64,56,56)", "conv3 (32,128,28,28)", "conv3 (96,128,28,28)"]),
            ("channels", ["conv3 (32,64,28,28)", "conv3 (32,128,28,28)"]),
            ("wide", ["wide (8,256,56,56)"]),
            ("all", ["image (1,64,224,224)", "image (1,64,320,320)", "image (1,64,960,960)", "conv2 (128,64,56,56)",
                     "conv3 (32,64,28,28)", "conv3 (64,64,28,28)", "conv3 (32,128,28,28)", "conv3 (96,128,28,28)",
                     "wide (8,256,56,56)"]),
            ("headline", ["image (1,64,224,224)", "image (1,64,960,960)", "conv2 (128,64,56,56)",
                          "conv3 (32,128,28,28)"]),
        ):
            with self.subTest(group):
                self.assertEqual([line[0] for line in made(self.ROWS, f"times {group}")[1:]], expected)

    def test_words_that_are_no_table(self):
        for words in ("", "times", "times images", "claims image", "ablation image", "ablation image 22",
                      "over-best image 25"):
            with self.subTest(words), self.assertRaisesRegex(TableError, "is no table"):
                made(self.ROWS, words)


class Ratios(unittest.TestCase):
    def test_over_the_previous_stage(self):
        rows = [row(*stage) for stage in EVERY.items()] + [row(23, 16, size=960), row(24, 1, size=960),
                                                              row(25, 1, size=960, status="wrong")]
        compare(rows)
        self.assertEqual(made(rows, "over-previous image"), [
            ["over the previous stage", "24 over 23", "25 over 24", "26 over 24 (fp16 over fp32)", "27 over 26",
             "28 over 27", "29 over 27", "30 over 28 (int8 over fp16)"],
            ["image (1,64,224,224)", "4.00×", "4.00×", "8.00×", "2.00×", "2.00×", "0.25×", "2.00×"],
            ["image (1,64,960,960)", "16.00×"] + 6 * ["–"],
            ["**geometric mean**", "8.00×", "4.00×", "8.00×", "2.00×", "2.00×", "0.25×", "2.00×"]])

    def test_over_the_fastest_configuration_and_its_tile(self):
        rows = [row(24, 8, tile="2x2"), row(24, 4, "m=4", tile="4x4"), row(24, 2, "m=6", status="wrong", tile="6x6"),
                row(25, 2, tile="2x2"), row(26, 1, tile="4x4")]
        compare(rows)
        self.assertEqual(rows[3]["speedup"]["over"], {"stage": "winograd-bgemm m=4", "configuration": None,
                                                      "tile": "4x4"})
        self.assertEqual(made(rows, "over-previous image")[1], ["image (1,64,224,224)", "–", "2.00× (2×2 over 4×4)",
                                                                "4.00×"])

    def test_over_cudnn_in_the_stages_type(self):
        rows = [row(*stage) for stage in EVERY.items()]
        winograd, best = made(rows, "over-winograd image"), made(rows, "over-best image")
        self.assertEqual(dict(zip(winograd[0][1:], winograd[1][1:])), {
            "23 winograd (fp32)": "0.50×", "24 bgemm (fp32)": "2.00×", "25 fused (fp32)": "8.00×",
            "26 tensor-core (fp16)": "10.00×", "27 sync-free (fp16)": "20.00×", "28 pkf-shmem (fp16)": "40.00×",
            "29 pkf-llc (fp16)": "5.00×", "30 int8 (fp16)": "80.00×"})
        self.assertEqual(dict(zip(best[0][1:], best[1][1:])), {
            "23 winograd (fp32)": "0.12×", "24 bgemm (fp32)": "0.50×", "25 fused (fp32)": "2.00×",
            "26 tensor-core (fp16)": "1.00×", "27 sync-free (fp16)": "2.00×", "28 pkf-shmem (fp16)": "4.00×",
            "29 pkf-llc (fp16)": "0.50×", "30 int8 (fp16)": "8.00×", "30 int8 (int8)": "4.00×"})

    def test_int8_alone_has_the_winograd_that_was_measured_beside_it(self):
        self.assertEqual(column([row(30, 4)], "over-winograd image", "30 int8 (fp16)")["image (1,64,224,224)"], "0.50×")
        self.assertEqual(column([row(30, 4)], "over-best image", "30 int8 (fp16)")["image (1,64,224,224)"], "–")

    def test_settings_beside_their_stage(self):
        usual = {"m": 2}
        rows = [row(23, 8, configuration=usual), row(23, 4, "m=4"), row(23, 2, "m=6"), row(24, 1, "m=4"),
                row(23, 8, size=960), row(23, 1, "m=4", size=960), failed(23, "refused", settings="m=6", size=960)]
        self.assertEqual(made(rows, "ablation image 23"), [
            ["workload (µs), 23 winograd", "m=2", "m=4", "m=6"],
            ["image (1,64,224,224)", "8.00", "4.00 (2.00×)", "2.00 (4.00×)"],
            ["image (1,64,960,960)", "8.00", "1.00 (8.00×)", "refused"],
            ["**geometric mean**", "–", "4.00×", "4.00×"]])
        with self.assertRaisesRegex(TableError, "no row of stage 25"):
            made(rows, "ablation image 25")

    def test_opencnn(self):
        rows = [row(25, time, name=name, n=n, c=c, size=size) for time, name, n, c, size in (
            (72.5, "conv2", 32, 64, 56), (611 / 8, "conv5", 128, 512, 7), (1, "conv2", 64, 64, 56),
            (1, "conv2", 32, 128, 56))]
        headings, *lines = made(rows, "opencnn")
        self.assertEqual(headings[1:4], ["25 fused", "openCNN", "cuDNN's best, fp32"])
        self.assertEqual(lines, [
            ["conv2 (32,64,56,56)", "72.5", "145", "160.0 (FFT, NCHW)", "2.00×", "2.21×"],
            ["conv5 (128,512,7,7)", "76.4", "611", "160.0 (FFT, NCHW)", "8.00×", "2.09×"],
            ["**geometric mean**", "–", "–", "–", "4.00×", "2.15×"]])
        with self.assertRaisesRegex(TableError, "these are of another"):
            made([{**each, "device": "another"} for each in rows], "opencnn")


class ErrorsAndClaims(unittest.TestCase):
    def test_the_largest_errors_and_where(self):
        rows = [row(23, 1, rel_l2_err=3e-7, max_abs_err=1e-6, tolerance=2e-6),
                row(23, 1, size=960, rel_l2_err=1e-7, max_abs_err=5e-6, tolerance=4e-6),
                failed(23, "refused", size=320), row(23, 1, "m=4", rel_l2_err=2e-6), row(25, 1, "buffers=1"),
                failed(26, "refused")]
        self.assertEqual(made(rows, "errors all")[1:], [
            ["23 winograd", "fp32", "3.0e-07", "2.0e-06", "image (1,64,224,224)", "5.0e-06", "image (1,64,960,960)"],
            ["23 winograd m=4", "fp32", "2.0e-06", "2.0e-02", "image (1,64,224,224)", "1.0e-03",
             "image (1,64,224,224)"],
            ["26 tensor-core", "fp16", "–", "–", "–", "–", "–"]])

    def test_claims(self):
        rows = [row(*stage) for stage in EVERY.items()]
        rows += [row(28, 40, "tbm=32"), row(29, 5, "tbm=32"), row(30, 10, "fusion=llc"), row(30, 40, "tbm=32"),
                 row(27, 32, size=960), row(28, 8, size=960, workspace_bytes=1), row(29, 16, size=960)]
        rows += [row(25, time, name="conv3", n=32, c=c, size=28, max_abs_err=error)
                 for time, c, error in ((320, 64, 1), (80, 128, 1.5e-6))]
        here = column(rows, "claims", "here")
        for claim, figures in {
            "28 over 27: fusion through shared memory": "2.00× at 224, 4.00× at 960",
            "29 over 27: fusion through L2": "0.25× at 224, 2.00× at 960",
            "29 with TBM = 32 over 27": "4.00× at 224",
            "28 over 29: shared memory over L2": "2.00× to 8.00×, 4.00× on average",
            "28: TBM = 16 over 32": "4.00× to 4.00×, 4.00× on average",
            "29: TBM = 16 over 32": "0.06× at 224",
            "28 over cuDNN's Winograd, fp16": "40.00× to 50.00×, 44.72× on average",
            "the same, where its sums are in fp32, too": "80.00× to 100×, 89.44× on average",
            "28 over cuDNN's best, fp16": "4.00× to 5.00×, 4.47× on average",
            "30, 3 of the 4 settings, over cuDNN's Winograd": "10.00× to 80.00×, 31.75× on average",
            "30 over cuDNN's best, int8": "4.00× to 4.00×, 4.00× on average",
            "30 through L2 over 29: int8 over fp16": "8.00× to 8.00×, 8.00× on average",
            "workspace, 28 of 27": "–",
            "25 over cuDNN's fused Winograd": "–",
            "25 over its non-fused Winograd": "8.00× to 8.00×, 8.00× on average",
            "25 over its GEMM family": "4.00× to 4.00×, 4.00× on average",
            "25 over its FFT": "2.00× to 2.00×, 2.00× on average",
            "25 over cuDNN's Winograd by channels, N = 32": "2.00× with 64, 8.00× with 128",
            "largest absolute error of 25": "1.50e-06, normal inputs",
        }.items():
            with self.subTest(claim):
                self.assertEqual(here[claim], figures)

    def test_claims_of_a_part_of_the_track(self):
        here = column([row(28, 10)], "claims", "here")
        self.assertEqual(here["28 over cuDNN's Winograd, fp16"], "40.00× to 40.00×, 40.00× on average")
        self.assertEqual(set(here.values()) - {"", "–"}, {"40.00× to 40.00×, 40.00× on average",
                                                          "80.00× to 80.00×, 80.00× on average",
                                                          "4.00× to 4.00×, 4.00× on average"})

    def test_workspaces(self):
        rows = [row(28, 1, workspace_bytes=1), row(27, 1, workspace_bytes=4), row(28, 1, size=960, workspace_bytes=1),
                row(27, 1, size=960, workspace_bytes=2)]
        self.assertEqual(column(rows, "claims", "here")["workspace, 28 of 27"], "25.0% to 50.0%")


class Others(unittest.TestCase):
    DEVICE = {"name": "A", "compute_capability": 90, "multiprocessors": 1, "l2_bytes": 2**20, "clocks_before": None,
              "clocks_after": None}
    RATES = {"dram_bytes_per_s": 1e12, "l2_bytes_per_s": 2e12, "fp32_flops_per_s": 3e12, "launch_us": 1}

    def machine(self, **rates):
        return tables.machine_table({"device": self.DEVICE, "toolchain": {"cuda_driver": None, "cudnn": None},
                                     "ceilings": {**self.RATES, **rates}})

    def test_rates_of_tensor_cores_where_there_are_some(self):
        self.assertNotIn("Tensor Cores", self.machine())
        text = self.machine(fp16_flops_per_s=4e12, int8_ops_per_s=None)
        self.assertIn("sums in fp32 | 4.0 TFLOP/s |", text)
        self.assertNotIn("int8", text)
        self.assertIn("sums in int32 | 5.0 TOP/s |", self.machine(int8_ops_per_s=5e12))

    def ladder_row(self, number, **changes):
        return {**row(number, 8), "time_cold_us": None, "roofline": None,
                "speedup": {"previous": 2, "first": 4, "cudnn_best": 2.5, "over": None}, **changes}

    def test_the_ladder_says_where_the_type_changes(self):
        text = tables.ladder_table([self.ladder_row(25), self.ladder_row(26), self.ladder_row(30)], None,
                                   ROOT / "README.md")
        self.assertIn("| 8.00 | 2.00× | 2.50× |", text)
        self.assertIn("| 2.00× (fp16 over fp32) |", text)
        self.assertIn("| 2.00× (int8 over fp16) |", text)

    def test_the_ladder_says_where_the_tile_changes(self):
        of_bgemm = {"stage": "winograd-bgemm m=4", "configuration": {"m": 4}, "tile": "4x4"}
        speedup = {"previous": 2, "first": 4, "cudnn_best": 2.5, "over": of_bgemm}
        rows = [self.ladder_row(25, tile="2x2", speedup=speedup),
                self.ladder_row(26, tile="2x2", speedup=speedup), self.ladder_row(27, tile="4x4", speedup=speedup)]
        text = tables.ladder_table(rows, None, ROOT / "README.md")
        self.assertIn("| 2.00× (2×2 over 4×4) |", text)
        self.assertIn("| 2.00× (fp16 over fp32, 2×2 over 4×4) |", text)
        self.assertIn("| 2.00× | 2.50× |", text)

    def test_the_ladder_of_one_track(self):
        rows = [self.ladder_row(25), self.ladder_row(30)]
        self.assertIn("| 25 |", tables.ladder_table(rows, "winograd", ROOT / "README.md"))
        self.assertNotIn("| 25 |", tables.ladder_table(rows, "hopper", ROOT / "README.md"))

    def test_cudnns_best_for_int8_is_of_int8(self):
        self.assertIn("2.50× (IMPLICIT_GEMM (float output))", tables.stages_table("times", [self.ladder_row(30)], 30))


class Ladder(unittest.TestCase):
    """The picture of the stages."""

    def drawn(self, *rows):
        text = ladder.picture([{"number": number, "tile": "2x2" if number == 25 else None, "speedup": {
            "previous": previous, "cudnn_best": best, "over": {"tile": "4x4"}},
                               "roofline": {"share": (best or 1) / 10}} for number, previous, best in rows],
                              tables.stage_json)
        xml.etree.ElementTree.fromstring(text)
        return text

    def test_steps(self):
        text = self.drawn((1, None, 1), (2, 1.04, 2), (3, 12.34, 4), (3, 99, 99), (5, None, 0.5), (6, 0.6, 0.3))
        for words in (">1.04×<", ">12.3×<", 'class="down middle', ">10%<", ">3%<", ">tiled-1d<", ">Signals, 1D<",
                      ">Images, 3×3<"):
            self.assertIn(words, text)
        for words in (">99", "Winograd<", 'class="below" cx="6'):
            self.assertNotIn(words, text)

    def test_what_is_off_the_axis_or_not_to_be_compared(self):
        text = self.drawn((10, None, 0.0007), (11, 4, 0.1))
        self.assertTrue(">0.0007×<" in text and ">&lt;1%<" in text, text)
        self.assertIn(">2.8× (fp16)<", self.drawn((24, None, 1), (26, 2.8, 0.5)))
        self.assertIn('class="type middle', self.drawn((24, None, 1), (25, 1.02, 2)))
        self.assertNotIn("constant-1d", self.drawn((1, None, 1), (2, 1.04, None)))

    def test_a_faster_stage_is_higher(self):
        self.assertLess(ladder.height(2), ladder.height(1))
        self.assertEqual(ladder.height(0.001), ladder.height(ladder.LOWEST))


class Excerpts(unittest.TestCase):
    TABLE = ("| workload | time (µs) | times |\n| --- | ---: | ---: |\n| r=5 | 1 | 2 |\n"
             "| r=51 | 3 | 4 \\| 5 |\n| **mean** | 6 | 7 |\n")

    def test_rows_and_columns_in_the_order_asked_for(self):
        self.assertEqual(tables.excerpt(self.TABLE, ["mean", "r=5"], ["times", "time ("]),
                         "| workload | times | time (µs) |\n| --- | ---: | ---: |\n| **mean** | 7 | 6 |\n"
                         "| r=5 | 2 | 1 |\n")
        self.assertEqual(tables.excerpt(self.TABLE, ["r=51"], []),
                         "| workload | time (µs) | times |\n| --- | ---: | ---: |\n| r=51 | 3 | 4 \\| 5 |\n")

    def test_what_is_missing_or_not_the_only_one(self):
        for rows, columns in ((["r=6"], []), ([], ["tim"])):
            with self.assertRaises(tables.TableError):
                tables.excerpt(self.TABLE, rows, columns)

    def test_a_wrong_selection(self):
        with self.assertRaises(tables.TableError):
            tables.table("times nvidia-h200 3 | lines: r=5", ROOT / "README.md")


class Objectives(unittest.TestCase):
    def test_the_lists_of_a_track_or_of_one_lesson(self):
        page = ROOT / "docs/classroom/objectives.md"
        signals = tables.table("objectives signals", page)
        self.assertIn("\n[03 tiled-1d](../../chapters/03-tiled-1d/README.md):\n\n- Load a tile", signals)
        self.assertNotIn("##", signals)
        self.assertIn("00 the-machine", tables.table("objectives 00-the-machine", page))
        with self.assertRaises(tables.TableError):
            tables.table("objectives sounds", page)


class Grid(unittest.TestCase):
    """A measurement of its own."""
    REPORT = {"corner": "stage", "columns": ["µs", "%"], "format": [".2f", ".0f"],
              "rows": [{"name": "31 image", "values": [1.234, 50.4]}, {"name": "32 image", "values": [2, None]}]}

    def test_a_format_for_each_column(self):
        self.assertEqual(tables.grid_table(self.REPORT).splitlines()[2:],
                         ["| 31 image | 1.23 | 50 |", "| 32 image | 2.00 | – |"])

    def test_rows_of_a_stage(self):
        self.assertEqual(tables.grid_table(self.REPORT, 32).splitlines()[2:], ["| 32 image | 2.00 | – |"])
        with self.assertRaisesRegex(TableError, "has no rows"):
            tables.grid_table(self.REPORT, 3)
        with mock.patch.object(tables, "results", return_value=self.REPORT):
            self.assertEqual(tables.table("grid made-up 32", None), tables.grid_table(self.REPORT, 32))
            self.assertEqual(tables.table("grid made-up", None), tables.grid_table(self.REPORT))
            with self.assertRaisesRegex(TableError, "is no table"):
                tables.table("grid made-up image", None)

    def test_formats_that_are_too_few_are_refused(self):
        with self.assertRaisesRegex(TableError, "more or fewer values"):
            tables.grid_table({**self.REPORT, "format": [".2f"]})


if __name__ == "__main__":
    unittest.main()
