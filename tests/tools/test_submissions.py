#!/usr/bin/env python3
"""Tests of tools/checks/check_submissions.py and tools/recompute.py: a submission made up of what an H100 measured
passes, and each way to spoil it is refused by the file, the field, the value and what it should be.

    test_submissions.py              exits with 77, for skipped, without jsonschema
"""
import copy
import hashlib
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools/checks"), str(ROOT / "tools/lab")]
import check_results  # noqa: E402,F401  (which skips all of this where there is no jsonschema)
import check_submissions  # noqa: E402
import recompute  # noqa: E402
import submission  # noqa: E402

COMMIT = "0123456789abcdef0123456789abcdef01234567"
MEASURED = json.loads((ROOT / "docs/results/nvidia-h100-hopper-beside.json").read_text())
IMPLICIT, HOPPER, WINOGRAD = range(3)  # the rows of the stages 31 to 33 on the first workload


def good_results():
    """Two workloads of what was measured in one run, with the samples that files did not have then."""
    results = copy.deepcopy(MEASURED)
    results["rows"] = results["rows"][:14]
    for row in results["rows"]:
        time = row["time_us"]["median"]
        row["time_us"] = {"median": time, "min": 0.98 * time, "spread": 0.02,
                          "samples": [0.98 * time, time, 1.02 * time]}
    return results


def good_submission(results):
    return {"commit": COMMIT, "command": "./lab bench --workload all", "date": "2026-11-26",
            "device": {"name": results["device"]["name"], "compute_capability": 90, "driver": "580.65.06",
                       "power_limit_w": 700.0, "most_sm_mhz": 1980.0},
            "versions": results["toolchain"], "host": {"processor": "A processor", "system": "A system"}}


class Submissions(unittest.TestCase):
    def found(self, spoil=lambda results, submission: None, name="nvidia-h100-1", has_commit=lambda commit: True,
              digest=None, also=()):
        """What is told of a submission that `spoil` has changed, a line each."""
        results = good_results()
        own = good_submission(results)
        own["versions"] = copy.deepcopy(own["versions"])
        spoil(results, own)
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch) / name
            folder.mkdir()
            (folder / "results.json").write_text(json.dumps(results))
            own["sha256"] = {"results.json": digest or hashlib.sha256(
                (folder / "results.json").read_bytes()).hexdigest()}
            (folder / "submission.json").write_text(json.dumps(own))
            for other in also:
                (folder / other).write_text("")
            return [f"{file}: {text}" for file, text in check_submissions.found_in(folder, has_commit)]

    def assert_refused(self, beginning, *arguments, **keys):
        found = self.found(*arguments, **keys)
        self.assertTrue(any(line.startswith(beginning) for line in found), (beginning, found))
        self.assertIn("expected", found[0])

    def test_a_good_one_passes(self):
        self.assertEqual(self.found(), [])
        self.assertEqual(self.found(has_commit=lambda commit: None), [])  # a part of the history cannot tell

    def test_a_ratio_that_does_not_follow_from_the_times(self):
        def spoil(results, _):
            results["rows"][HOPPER]["speedup"]["cudnn_best"] *= 1.01
        found = self.found(spoil)
        right = MEASURED["rows"][HOPPER]["speedup"]["cudnn_best"]
        self.assertEqual(found, [f"results.json: rows/1/speedup/cudnn_best: {right * 1.01}, expected {right}"])

    def test_what_is_no_number(self):
        def spoil(results, _):
            results["rows"][HOPPER]["time_us"]["median"] = float("nan")
        self.assert_refused('results.json: the file: "NaN is no number"', spoil)

    def test_every_other_figure_that_follows_from_times(self):
        for path in ("speedup/previous", "speedup/first", "speedup/cudnn_winograd", "speedup/cudnn_gemm",
                     "effective_tflops", "roofline/floor_us", "roofline/share", "roofline/bytes", "roofline/flops",
                     "time_us/median", "time_us/min", "time_us/spread"):
            with self.subTest(path):
                def spoil(results, _, path=path):
                    group, _, key = path.partition("/")
                    row = results["rows"][HOPPER]
                    place, key = (row[group], key) if key else (row, group)
                    place[key] = round(1.1 * place[key]) if isinstance(place[key], int) else 1.1 * place[key]
                self.assert_refused(f"results.json: rows/1/{path}: ", spoil)

    def test_a_faster_time_in_one_place_alone(self):
        def spoil(results, _):
            time = results["rows"][HOPPER]["time_us"]
            time.update(median=time["median"] / 2, min=time["min"] / 2, samples=[t / 2 for t in time["samples"]])
        for path in ("effective_tflops", "roofline/share", "speedup/cudnn_best", "speedup/previous"):
            self.assert_refused(f"results.json: rows/1/{path}: ", spoil)

    def test_ceilings_that_make_the_floor_another(self):
        def spoil(results, _):
            results["ceilings"]["fp16_flops_per_s"] /= 2
        self.assert_refused("results.json: rows/0/roofline/floor_us: ", spoil)

    def test_a_trial_of_cudnn_that_was_left_out(self):
        def spoil(results, _):
            trials = results["rows"][IMPLICIT]["cudnn"]
            trials.remove(min((trial for trial in trials if trial["time_us"]), key=lambda trial: trial["time_us"]))
        self.assert_refused("results.json: rows/0/speedup/cudnn_best: ", spoil)

    def test_a_previous_stage_that_is_not_in_the_file(self):
        def spoil(results, _):
            row = results["rows"][HOPPER]
            del results["rows"][IMPLICIT]
            results["rows"][0]["cudnn"] = MEASURED["rows"][IMPLICIT]["cudnn"]
            for other in results["rows"][:2]:
                other["speedup"].update(first=None)
            row["speedup"]["over"]["time_us"] = row["speedup"]["previous"] * row["time_us"]["median"]
        self.assertEqual(self.found(spoil), [])

        def with_another_time(results, own):
            spoil(results, own)
            results["rows"][0]["speedup"]["over"]["time_us"] *= 2
        self.assert_refused("results.json: rows/0/speedup/previous: ", with_another_time)

    def test_results_that_are_not_those_of_the_checksum(self):
        self.assert_refused("submission.json: sha256: ", digest="0" * 64)

    def test_a_commit_that_is_not_known(self):
        self.assert_refused(f'submission.json: commit: "{COMMIT}", expected a commit', has_commit=lambda commit: False)

    def test_no_commit(self):
        def spoil(_, own):
            own["commit"] = "main"
        self.assert_refused("submission.json: commit: ", spoil)

    def test_versions_that_the_results_do_not_have(self):
        def spoil(_, own):
            own["versions"]["cudnn"] = "9.99.0"
        self.assert_refused("submission.json: versions: ", spoil)

    def test_another_gpu(self):
        def of_submission(_, own):
            own["device"]["name"] = "NVIDIA H200"

        def of_a_row(results, _):
            results["rows"][3]["device"] = "NVIDIA H200"
        self.assert_refused('submission.json: device/name: "NVIDIA H200", expected "NVIDIA H100', of_submission)
        self.assert_refused('results.json: rows/3/device: "NVIDIA H200", expected "NVIDIA H100', of_a_row)

    def test_a_row_that_failed(self):
        def spoil(results, _):
            results["rows"][WINOGRAD].update(status="wrong", reason="off by one", verified=False)
        self.assert_refused('results.json: rows/2/status: "wrong", expected "ok"', spoil)

    def test_an_error_beyond_its_bound(self):
        def spoil(results, _):
            results["rows"][WINOGRAD]["rel_l2_err"] = 1.0
        self.assert_refused("results.json: rows/2/rel_l2_err: 1.0, expected at most the tolerance", spoil)

    def test_a_stage_that_there_is_not(self):
        def spoil(results, _):
            results["rows"][HOPPER]["stage"] = "winograd-fastest"
        self.assert_refused("results.json: rows/1/number: 32, expected null", spoil)

    def test_a_row_twice(self):
        def spoil(results, _):
            results["rows"].insert(1, {**results["rows"][0], "cudnn": None})
        self.assert_refused('results.json: rows/1/stage: "implicit-gemm", expected one row of it', spoil)

    def test_two_problems_of_one_name(self):
        def spoil(results, _):
            results["rows"][HOPPER]["workload"]["n"] = 2
        self.assert_refused("results.json: rows/1/workload: ", spoil)

    def test_too_few_samples(self):
        def spoil(results, _):
            results["rows"][HOPPER]["time_us"]["samples"] = [results["rows"][HOPPER]["time_us"]["median"]]
        self.assert_refused("results.json: rows/1/time_us/samples: ", spoil)

    def test_a_part_of_a_bench(self):
        def spoil(results, _):
            results["shard"] = "1/2"
        self.assert_refused('results.json: shard: "1/2", expected a whole bench', spoil)

    def test_no_clocks(self):
        def spoil(results, _):
            results["device"]["clocks_after"] = None
        self.assert_refused("results.json: device/clocks_after/sm_mhz: null, expected a clock", spoil)

    def test_names_that_would_break_a_page(self):
        def spoil(results, own):
            results["device"]["name"] = own["device"]["name"] = "<script> | GPU"
            for row in results["rows"]:
                row["device"] = "<script> | GPU"
        self.assert_refused("results.json: device/name: ", spoil)

    def test_what_the_schema_refuses(self):
        def spoil(results, _):
            del results["rows"][0]["dtype"]
        self.assert_refused("results.json: rows/0: 'dtype' is a required property", spoil)

    def test_the_folder(self):
        self.assert_refused(": the folder's name: ", name="My GPU")
        self.assert_refused(": files: ", also=["notes.txt"])


class Recomputed(unittest.TestCase):
    def test_what_one_run_wrote_is_what_is_computed_here(self):
        for name in ("nvidia-h200-lowering", "nvidia-h100-hopper-beside", "cpu-epyc", "simulator"):
            with self.subTest(name):
                report = json.loads((ROOT / f"docs/results/{name}.json").read_text())
                found = list(recompute.derived(report))
                self.assertGreater(len(found), 100)
                self.assertEqual([each for each in found if recompute.differs(*each[1:])], [])

    def test_quantiles_lie_between_samples(self):
        self.assertEqual(recompute.summary([4.0, 1.0, 2.0, 3.0]), {"median": 2.5, "min": 1.0, "spread": 0.6})


class Command(unittest.TestCase):
    def refusal(self, *words, folder="out"):
        with self.assertRaises(submission.Unusable) as refused:
            submission.require_usable(list(words), folder)
        return str(refused.exception)

    def test_what_would_leave_half_a_ladder(self):
        for option in ("--stage", "--shape", "--json=x", "--backend", "--plot"):
            self.assertIn(f"leave out {option.partition('=')[0]}", self.refusal(option))
        self.assertIn("what follows --", self.refusal("--workload", "all", "--", "--benchmark_filter=x"))

    def test_what_is_written_passes_the_check(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch) / "nvidia-h100-2"
            folder.mkdir()
            (folder / "results.json").write_text(json.dumps(good_results()))
            submission.write(folder, ["--workload", "all"])
            own = json.loads((folder / "submission.json").read_text())
            self.assertEqual(own["command"], "./lab bench --workload all")
            if own["commit"] is None:  # no git here
                return
            self.assertEqual(list(check_submissions.found_in(folder)), [])


if __name__ == "__main__":
    unittest.main()
