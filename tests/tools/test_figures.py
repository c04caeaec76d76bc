#!/usr/bin/env python3
"""Tests of tools/figures.py and its check: figures in prose follow the results; a selector that cannot be served, and a
figure typed by hand, are found."""

import json
import pathlib
import re
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools" / "checks")]

import check_figures  # noqa: E402
import figures  # noqa: E402
import networks  # noqa: E402


def row(number, stage, time, side, cudnn=None, **changes):
    problem = {"n": 1, "c": 64, "h": side, "w": side, "k": 64, "r": 3, "s": 3}
    return {"number": number, "stage": stage, "dtype": "fp16", "workload_name": f"image (1,64,{side},{side})->64 3x3",
            "workload": problem, "status": "ok", "time_us": time and {"median": time, "min": time, "spread": 0.04},
            "time_cold_us": None, "cudnn": cudnn, "cudnn_unavailable": None, "workspace_bytes": 3 * 2**20,
            "rel_l2_err": 4.88e-4, "kernels": [{"registers": 40}, {"registers": 126}], **changes}


def trial(algorithm, time, family="GEMM", dtype="fp16"):
    return {"algorithm": algorithm, "time_us": time, "family": family, "dtype": dtype, "status": "ok", "layout": "NHWC"}


BENCH = {
    "toolchain": {}, "device": {"l2_bytes": 60 * 2**20},
    "ceilings": {"dram_bytes_per_s": 4.184e12, "l2_bytes_per_s": 6.25e12, "fp16_flops_per_s": None, "launch_us": 0.51},
    "rows": [
        row(24, "b", 30, 224, [trial("GEMM", 15), trial("NONFUSED", 60, "WINOGRAD"), trial("two passes: A", 1),
                               trial("GEMM", 1, dtype="fp32")]),
        row(25, "c", 20, 224), row(None, "b m=4", 10, 224), row(None, "beside", 4, 224),
        row(24, "b", 450, 960), row(25, "c", 200, 960),
        row(24, "b", 450, 97), row(25, "c", None, 97, status="refused"),
    ]}
GRID = {"corner": "kernel", "columns": ["time (µs)", "bytes (MB)"], "rows": [
    {"name": "26 with barriers", "values": [32.25, 512]}, {"name": "27", "values": [31, None]}]}


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.write("bench", BENCH)
        self.write("grid", GRID)
        patch = mock.patch.object(figures, "RESULTS", self.folder)
        patch.start()
        self.addCleanup(patch.stop)

    def write(self, name, results):
        (self.folder / f"{name}.json").write_text(json.dumps(results))

    def figure(self, selector):
        return figures.figure(selector, "bench")


class Values(InFolder):
    def test_of_one_row(self):
        for selector, text in [
            ("time(25) on image h=224 as .1 µs", "20.0 µs"),
            ("time(24 m=4) on image h=224 as .0 ns", "10,000 ns"),
            ("time(beside) on h=224 as .0", "4"),
            ("time(24 best) on h=224 as .0 µs", "10 µs"),
            ('time(25) on "image (1,64,224,224)->64 3x3" as .0 µs', "20 µs"),
            ("spread(25) on h=224 as .0 %", "4%"),
            ("error(25) on h=224 as .2e", "4.88e-4"),
            ("workspace(25) on h=224 as .0 MiB", "3 MiB"),
            ("registers(25) on h=224 as .0 registers", "126 registers"),
        ]:
            with self.subTest(selector):
                self.assertEqual(self.figure(selector), text)

    def test_of_cudnn(self):
        self.assertEqual(self.figure("time(cudnn fp16) / time(25) on h=224 as .2 times"), "0.75 times")
        self.assertEqual(self.figure("time(cudnn Winograd fp16) on h=224 as .0 µs"), "60 µs")
        self.assertEqual(self.figure("time(cudnn two passes fp16) on h=224 as .0 µs"), "1 µs")

    def test_of_the_report_and_of_tables(self):
        self.assertEqual(self.figure("ceiling(dram) as .2 TB/s"), "4.18 TB/s")
        self.assertEqual(self.figure("device(l2_bytes) as .0 MiB"), "60 MiB")
        self.assertEqual(self.figure("grid: cell(barriers :: time) as .1 µs"), "32.2 µs")
        self.assertEqual(self.figure("grid: cell(26 :: bytes) / 1000 as .2 GB/s"), "0.51 GB/s")
        self.assertEqual(self.figure("time(25) / cell(grid / 27 :: time) on h=224 as .2 times"), "0.65 times")

    def test_of_a_network(self):
        rows = [row(24, "b", 1, size) for *_, size in networks.RESNET_50]
        for place, (each, layer) in enumerate(zip(rows, networks.RESNET_50)):
            each["workload"] = dict(zip(networks.KEYS, layer))
            each["workload_name"] = f"layer {place}"
        rows[2]["time_us"] = {"median": 11}  # three times in the network
        self.write("bench", {**BENCH, "rows": rows})
        self.assertEqual(self.figure("network(24) as .0 µs"), "83 µs")  # 50 + 3 * 11
        rows[2]["status"] = "failed"
        self.write("net", {**BENCH, "rows": rows})
        for selector, text in (("net: network(24) as .0", "finds no network(24)"), ("net: network(25) as .0", "finds no")):
            with self.assertRaisesRegex(figures.FigureError, re.escape(text)):
                self.figure(selector)
        self.write("net", {**BENCH, "rows": rows[1:]})
        with self.assertRaisesRegex(figures.FigureError, "does not have the convolutions"):
            self.figure("net: network(24) as .0")

    def test_arithmetic(self):
        self.assertEqual(self.figure("(2 + 3) * 4 - 6 / 3 - 1 as .0"), "17")
        self.assertEqual(self.figure("time(25) / time(24) - 1 on h=224 as .0 %"), "-33%")

    def test_of_several_workloads(self):
        ratio = "time(24) / time(25) on image as .2 times"
        self.assertEqual(self.figure(f"range {ratio}"), "1.50 to 2.25 times")
        self.assertEqual(self.figure(f"least {ratio}"), "1.50 times")
        self.assertEqual(self.figure(f"most {ratio}"), "2.25 times")
        self.assertEqual(self.figure(f"mean {ratio}"), "1.84 times")
        self.assertEqual(self.figure("range time(24) on h=960,97 as .0 µs"), "450 µs")


class Refusals(InFolder):
    def test_each_says_why(self):
        for selector, says in [
            ("time(25) on image as .1 µs", "is of 3 workloads|finds no time"),
            ("time(24) on image as .1 µs", "is of 3 workloads"),
            ("time(25) on h=97 as .1 µs", r"finds no time\(25\)"),
            ("time(26) on h=224 as .1 µs", r"finds no time\(26\)"),
            ("time(25) on conv3 as .1 µs", "finds no workload conv3"),
            ("time(25) as .1 µs", "needs workloads"),
            ("weight(25) on h=224 as .1 µs", r"has weight\(\.\.\.\): write one of time"),
            ("time(25) on h=224 as 1 µs", "write digits"),
            ("time(25) on h=224", "is no figure"),
            ("time(25) + on h=224 as .1 µs", "lacks a number"),
            ("(time(25) on h=224 as .1 µs", "lacks a closing bracket"),
            ("time(25) ? 2 on h=224 as .1 µs", "is not understood"),
            ("2 3 as .0", "behind its end"),
            ("ceiling(fp64) as .0 TFLOP/s", "names no ceiling"),
            ("ceiling(fp16) as .0 TFLOP/s", "finds no ceiling"),
            ("none: ceiling(dram) as .0 TB/s", "needs docs/results/none.json"),
            ("grid: cell(2 :: time) as .1 µs", "finds 2 rows"),
            ("grid: cell(27 :: length) as .1 µs", "finds 0 columns"),
            ("cell(27) as .1 µs", "its file is no table"),
            ("cell(none / 27) as .1 µs", "its file is no table"),
            ("cell(grid / 2 :: time) as .1 µs", "finds 2 rows"),
        ]:
            with self.subTest(selector), self.assertRaisesRegex(figures.FigureError, says):
                self.figure(selector)

    def test_a_page_without_a_file(self):
        with self.assertRaisesRegex(figures.FigureError, "names no file"):
            figures.figure("ceiling(dram) as .2 TB/s")


class Pages(InFolder):
    PAGE = ("<!--figures bench-->\n\nIt takes <!--= time(25) on\nimage h=224 as .1 µs-->9.9 µs<!--/-->, at "
            "**<!--= ceiling(dram) as .2 TB/s-->4.18\nTB/s<!--/-->**.\n")

    def test_a_page_is_rewritten_where_it_differs(self):
        text, problems = figures.rewrite(self.PAGE)
        self.assertEqual(problems, [])
        self.assertEqual(text, self.PAGE.replace("9.9 µs", "20.0 µs"))

    def test_a_result_changed_by_hand_changes_the_prose(self):
        before, _ = figures.rewrite(self.PAGE)
        self.write("bench", json.loads(json.dumps(BENCH).replace('"median": 20', '"median": 23.45')))
        after, problems = figures.rewrite(before)
        self.assertEqual(problems, [])
        self.assertEqual(after, before.replace("20.0 µs", "23.4 µs"))

    def test_code_is_left_alone(self):
        page = "Write `<!--= 1 as .0-->2<!--/-->`:\n\n```\n<!--= 1 as .0-->2<!--/-->\n```\n"
        self.assertEqual(figures.rewrite(page), (page, []))

    def test_what_is_wrong_with_a_page(self):
        for page, says in [
            ("a <!--= 1 as .0-->1 b\n", "without <!--/-->"),
            ("a\n<!--= 1 as .0-->1<!--/--> b\n", "line 2 begins with a figure's comment"),
            ("a <!--= 1 as .0-->1\n<!--/--> b\n", "line 2 begins with a figure's comment"),
            ("a <!--= 1 in .0-->1<!--/--> b\n", "`1 in .0` is no figure"),
            ("<!--figures a-->\n<!--figures b-->\n", "has two"),
        ]:
            with self.subTest(page):
                text, problems = figures.rewrite(page)
                self.assertEqual(text, page)
                self.assertRegex(" ".join(problems), says)

    def test_the_documents_hold_figures_of_real_results(self):
        """As above, on a copy of the results and a lesson: what one sees when a file changes."""
        lesson = next((ROOT / "chapters").glob("05-*/README.md")).read_text()
        name = "nvidia-h200"
        results = (ROOT / "docs" / "results" / f"{name}.json").read_text()
        time = next(row["time_us"]["median"] for row in json.loads(results)["rows"] if row["number"] == 5)
        with mock.patch.object(figures, "RESULTS", ROOT / "docs" / "results"):
            self.assertEqual(figures.rewrite(lesson), (lesson, []))
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(figures, "RESULTS", pathlib.Path(folder)):
            for path in (ROOT / "docs" / "results").glob("*.json"):
                (pathlib.Path(folder) / path.name).symlink_to(path)
            changed = pathlib.Path(folder) / f"{name}.json"
            changed.unlink()
            changed.write_text(results.replace(f'"median": {time}', '"median": 1234.5'))
            text, problems = figures.rewrite(lesson)
            self.assertEqual(problems, [])
            self.assertTrue(text != lesson)  # a difference would be printed with both pages


class ByHand(unittest.TestCase):
    def found(self, text):
        return [words for _, words in check_figures.figures(text)]

    def test_figures_with_a_unit(self):
        for text, words in [
            ("takes 3.1 µs and", ["3.1 µs"]), ("0.51 ms", ["0.51 ms"]), ("1,234 ns", ["1,234 ns"]),
            ("at 4.28 TB/s,", ["4.28 TB/s"]), ("661 TFLOP/s", ["661 TFLOP/s"]), ("907 TOP/s", ["907 TOP/s"]),
            ("about 80% of", ["80%"]), ("12 and 20% longer", ["12 and 20%"]),
            ("7 to 13 times as fast", ["7 to 13 times as fast"]),
            ("1.58× over", ["1.58×"]),
            ("it is 2.25 times the", ["2.25 times"]), ("6 times\nas long", ["6 times as long"]),
            ("12 KB of", ["12 KB"]), ("19 MB", ["19 MB"]),
            ("3 GB", ["3 GB"]), ("118 registers a thread", ["118 registers"]),
            ("an error of 4.88e-4", ["4.88e-4"]), ("**28.5 µs**", ["28.5 µs"]), ("(1.02×)", ["1.02×"]),
        ]:
            with self.subTest(text):
                self.assertEqual(self.found(text), words)

    def test_what_may_stand(self):
        for text in [
            "a tile of 3×3 or 3 × 3", "read 3 times", "4 times as many bytes",
            "2.25 elements", "48 KB at most", "stage 24",
            "`12.5 µs` and `4.88e-4`", "```\n12.5 µs\n```", "$3 \\text{ µs}$", "49 · 4 = 196 KB", "2 · 72 KB + 4 KB",
            "is ≈ 12 µs", "a <!--= time(25) as .1 µs-->3.1 µs<!--/--> b", "a <!--derived-->3\nµs<!--/--> b",
            "<!--quoted a-b-->\n| a (µs) |\n| --- |\n| 3 |\n<!--/-->", "[a](b-3%20c.md)", "the 100% line",
            "<!-- table:times x -->\n| 3.1 µs |\n<!-- /table -->", "| a | b |\n| --- | --- |\n| 3 | 4 |",
        ]:
            with self.subTest(text):
                self.assertEqual(self.found(text), [])

    def test_tables_below_a_unit(self):
        self.assertEqual(list(check_figures.figures("| a | time (µs) |\n| --- | ---: |\n| b | **3.1** |\n| c | – |\n")),
                         [(3, "**3.1** under time (µs)")])
        self.assertEqual(self.found("| | a |\n| --- | ---: |\n| at 4.18 TB/s (µs) | <!--derived-->4.18<!--/--> |"),
                         ["4.18 TB/s"])
        self.assertEqual(self.found("| | a |\n| --- | ---: |\n| moved (MB) | 12 |"), ["12 under moved (MB)"])

    def test_a_result_is_no_operand(self):
        self.assertEqual(self.found("26 MB / 4.18 TB/s = 6.2 µs"), ["4.18 TB/s"])
        self.assertEqual(self.found("3.1 µs = 2 · 1.55"), ["3.1 µs"])

    def test_what_is_quoted_has_a_source(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "docs").mkdir()
            (root / "docs" / "references.md").write_text("### known\n\nSomebody\n")
            (root / "README.md").write_text("a <!--quoted known-->3 µs<!--/-->\nb <!--quoted other-->4 µs<!--/-->\n")
            self.assertEqual(list(check_figures.problems(root)),
                             ["README.md:2: quotes other, which is no entry of docs/references.md"])


if __name__ == "__main__":
    unittest.main()
