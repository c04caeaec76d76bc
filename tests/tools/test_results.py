#!/usr/bin/env python3
"""The results of docs/results and those that the program writes fit docs/results/schema.json; broken ones do not.

    test_results.py [PROGRAM]        exits with 77, for skipped, without jsonschema
"""
import copy
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools/checks")]
import check_results  # noqa: E402
import migrate_results  # noqa: E402
import report  # noqa: E402

PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 else None
DEVICE = {"name": "A GPU", "compute_capability": 90}
GRID = {"device": DEVICE, "how": "so", "corner": "stage", "columns": ["µs", "%"], "format": [".1f", ".0f"],
        "rows": [{"name": "04 halo-1d", "values": [1.5, None]}]}
TRIAL = {"algorithm": "GEMM", "layout": "NCHW", "status": "ok", "time_us": 2.5, "workspace_bytes": 0}

NUMBER = re.compile(r"-?\d[\d.e+-]*")  # which one language may write with a digit more than the other


def simulated():
    return json.loads((check_results.RESULTS / "simulator.json").read_text())


def timed(*trials):
    """A bench with a row of one workload for each list of cuDNN's trials."""
    bench = simulated()
    whole = [rows and [migrate_results.trial(one, "fp32") for one in rows] for rows in trials]
    bench["rows"] = [{**copy.deepcopy(bench["rows"][0]), "cudnn": cudnn} for cudnn in whole]
    return bench


class Results(unittest.TestCase):
    def assert_found(self, part, results, kind=None):
        found = list(check_results.problems(results, kind))
        self.assertTrue(any(part in line for line in found), found)

    def assert_fits(self, results, kind=None):
        self.assertEqual(list(check_results.problems(results, kind)), [])


class Committed(Results):
    def test_every_file(self):
        self.assertGreater(len(check_results.committed()), 10)
        for path in check_results.committed():
            with self.subTest(path.name):
                self.assert_fits(json.loads(path.read_text()))

    def test_migrated_already(self):
        for path in check_results.committed():
            with self.subTest(path.name):
                results = json.loads(path.read_text())
                self.assertEqual(migrate_results.migrated(results), results)


class Broken(Results):
    def test_a_row_without_a_key(self):
        bench = simulated()
        del bench["rows"][3]["dtype"]
        self.assert_found("rows/3: 'dtype' is a required property", bench)

    def test_a_key_that_is_not_known(self):
        bench = simulated()
        bench["rows"][0]["speed"] = 1
        self.assert_found("rows/0: Additional properties are not allowed ('speed' was unexpected)", bench)

    def test_a_value_of_another_type(self):
        bench = simulated()
        bench["rows"][0]["counters"]["barriers"] = "many"
        self.assert_found("rows/0/counters/barriers: 'many' is not of type", bench)

    def test_a_failure_without_a_reason(self):
        bench = simulated()
        bench["rows"][0].update(status="wrong", verified=False)
        self.assert_found("rows/0/reason: None is not of type 'string'", bench)

    def test_no_rows(self):
        self.assert_found("rows: ", {**simulated(), "rows": []})

    def test_trials_that_are_written_twice(self):
        self.assert_fits(timed([TRIAL], None, [{**TRIAL, "time_us": 2.4}]))
        self.assert_found("rows/2: cuDNN's trials are those of a row above", timed([TRIAL], None, [TRIAL]))

    def test_a_table(self):
        self.assert_fits(GRID)
        self.assert_found("'how' is a required property", {key: GRID[key] for key in GRID if key != "how"})
        self.assert_found("format: 1 values for 2 columns", {**GRID, "format": [".1f"]})
        self.assert_found("04: 1 values for 2 columns", {**GRID, "rows": [{"name": "04", "values": [1]}]})
        self.assert_found("'1' does not match", {**GRID, "format": ["1", ".0f"]})

    def test_a_log_of_the_tuner(self):
        log = json.loads((check_results.RESULTS / "nvidia-h200-tune-small.json").read_text())
        log["sessions"][0]["trials"][0]["status"] = "fine"
        self.assert_found("sessions/0/trials/0/status: 'fine' is not one of", log)

    def test_the_command_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "broken.json"
            for text, status in ((json.dumps(GRID), 0), (json.dumps({**GRID, "format": []}), 1), ("{", 1)):
                path.write_text(text)
                command = [sys.executable, ROOT / "tools/checks/check_results.py", path]
                self.assertEqual(subprocess.run(command, capture_output=True).returncode, status, text)


class Readers(unittest.TestCase):
    """What tables and plots see of trials that stand once."""

    def read(self, bench):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "bench.json"
            path.write_text(report.text_of(bench))
            return report.read_report(path)

    def test_each_row_has_the_trials_above_it(self):
        bench = timed([TRIAL], None, [{**TRIAL, "time_us": 2.4}], None, None, None)
        bench["rows"][3]["cudnn_unavailable"] = "there is no cuDNN"
        bench["rows"][4]["dtype"] = "fp16"
        bench["rows"][5]["workload"]["w"] += 1
        self.assertEqual([row["cudnn"] and row["cudnn"][0]["time_us"] for row in self.read(bench)["rows"]],
                         [2.5, 2.5, 2.4, None, None, None])

    def test_other_files_are_read_as_they_are(self):
        self.assertEqual(self.read(GRID), GRID)


class Migration(Results):
    def test_a_bench_of_an_earlier_program(self):
        bench = simulated()
        bench["ceilings"] = {"dram_bytes_per_s": 1e12, "l2_bytes_per_s": 1e12, "fp32_flops_per_s": 1e12, "launch_us": 1}
        old = {**bench["rows"][0], "speedup": {"previous": 2.0}, "cudnn": [TRIAL, {**TRIAL, "algorithm": "FFT"}]}
        del old["dtype"], old["time_without_transform_us"]
        bench["rows"] = [old, {**old, "number": None, "stage": "cufft"}]
        new = migrate_results.migrated(copy.deepcopy(bench))
        self.assert_fits(new)
        self.assertEqual([row["dtype"] for row in new["rows"]], ["fp32", "fp32"])
        self.assertEqual([trial["family"] for trial in new["rows"][0]["cudnn"]], ["GEMM", "FFT"])
        self.assertIsNone(new["rows"][1]["cudnn"])
        self.assertEqual(new["rows"][0]["speedup"]["previous"], 2.0)
        self.assertIsNone(new["rows"][0]["speedup"]["over"])  # not in the file

    def test_a_speedup_is_over_the_fastest_configuration(self):
        def old(number, stage, time, **configuration):
            row = {**copy.deepcopy(simulated()["rows"][0]), "number": number, "stage": stage,
                   "configuration": configuration or None, "time_us": {"median": time, "min": time, "spread": 0}}
            del row["tile"], row["speedup"]["over"]
            return row

        bench = {**simulated(), "rows": [old(24, "winograd-bgemm", 4, m=2), old(25, "winograd-fused", 1),
                                         old(None, "winograd-bgemm m=4", 2, m=4), old(None, "cufft", 1)]}
        new = migrate_results.migrated(bench)
        self.assert_fits(new)
        self.assertEqual([row["tile"] for row in new["rows"]], ["2x2", "2x2", "4x4", None])
        self.assertEqual([row["speedup"]["previous"] for row in new["rows"]], [None, 2, None, None])
        self.assertEqual(new["rows"][1]["speedup"]["over"],
                         {"stage": "winograd-bgemm m=4", "configuration": {"m": 4}, "tile": "4x4"})
        measured = {**new["rows"][1], "speedup": {**new["rows"][1]["speedup"], "previous": 7, "over": None}}
        self.assertEqual(migrate_results.migrated({**new, "rows": [new["rows"][0], measured]})["rows"][1], measured)

    def test_a_table_of_an_earlier_form(self):
        old = {key: GRID[key] for key in GRID if key != "format"}
        self.assertEqual(migrate_results.migrated({**old, "digits": 2})["format"], [".2f", ".2f"])
        self.assertEqual(migrate_results.migrated(old)["format"], [".1f", ".1f"])
        self.assertEqual(migrate_results.migrated(GRID), GRID)


@unittest.skipUnless(PROGRAM, "no program was named")
class Program(Results):
    def output(self, *arguments, status=0):
        result = subprocess.run([PROGRAM, *arguments, "--backend", "sim"], capture_output=True, text=True,
                                env=dict(os.environ, CONVLADDER_TUNED=os.devnull))
        self.assertEqual(result.returncode, status, result.stderr)
        return result.stdout

    def test_run_and_compare(self):
        run = ("run", "1", "--lines", "--json", "--shape")
        self.assert_fits(json.loads(self.output(*run, "w=64,s=3")), "result")
        self.assert_fits(json.loads(self.output(*run, "w=64,s=4", status=3)), "result")
        layer = "c=4,k=4,groups=4,h=8,w=8,r=3,s=3"
        for one in json.loads(self.output("compare", "14", "15", "--json", "--shape", layer)):
            self.assert_fits(one, "result")
        self.assert_fits(json.loads(self.output("run", "2", "--beside", "--json", "--shape", "w=64,s=3")), "result")

    def test_tiles_that_no_configuration_tells(self):
        for number, tile in migrate_results.FIXED_TILES.items():
            run = json.loads(self.output("run", str(number), "--json", "--shape", "c=4,h=6,w=6,k=4,r=3,s=3"))
            self.assertEqual(run["tile"], tile, number)

    def test_bench_as_it_writes_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "bench.json"
            self.output("bench", "--workload", "w=65536 r=1", "--json", path)
            text = path.read_text()
        self.assert_fits(json.loads(text))
        laid_out = [NUMBER.sub("0", of) for of in (text, report.text_of(json.loads(text)) + "\n")]
        self.assertEqual(*laid_out)


if __name__ == "__main__":
    unittest.main()
