#!/usr/bin/env python3
"""Tests of tools/checks/ptxas_report.py on reports of CUDA 13.0's ptxas."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools/checks/ptxas_report.py"
sys.path.insert(0, str(SCRIPT.parent))

import ptxas_report  # noqa: E402

CLEAN = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_ZN1a4packEPKf' for 'sm_80'
ptxas info    : Function properties for _ZN1a4packEPKf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 16 registers, used 0 barriers, 408 bytes cmem[0]
ptxas info    : Compile time = 23.154 ms
"""
SPILLS = """\
ptxas info    : Compiling entry function '_Z1fPf' for 'sm_90a'
ptxas info    : Function properties for _Z1fPf
    736 bytes stack frame, 1576 bytes spill stores, 1632 bytes spill loads
ptxas info    : Used 32 registers, used 0 barriers, 736 bytes cumulative stack size
"""
WAITS = ("ptxas info    : (C7517) warpgroup.wait is injected in around line 26082 by compiler to allow use of "
         "registers defined by GMMA in function '_Z1gPf'\n")
SERIALISED = ("ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
              "insufficient register resources for the wgmma pipeline in the function '_Z1gPf'\n")


def of_memory(sizes):
    return CLEAN.replace("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads",
                         "{} bytes stack frame, {} bytes spill stores, {} bytes spill loads".format(*sizes))


class Problems(unittest.TestCase):
    def test_a_clean_report_has_none(self):
        self.assertEqual(ptxas_report.problems(CLEAN), [])

    def test_a_stack_frame_or_a_spill_is_one(self):
        for sizes in ((16, 0, 0), (0, 16, 0), (0, 0, 16)):
            self.assertEqual(len(ptxas_report.problems(CLEAN + of_memory(sizes))), 1, sizes)

    def test_the_kernel_and_its_architecture_are_named(self):
        self.assertEqual(ptxas_report.problems(CLEAN + SPILLS + CLEAN), [
            "_Z1fPf for sm_90a: 736 bytes stack frame, 1576 bytes spill stores, 1632 bytes spill loads"])

    def test_serialised_products_are_one_under_every_number(self):
        for number in (7510, 7512, 7514, 7518, 7519, 7520):
            found = ptxas_report.problems(SERIALISED.replace("7511", str(number)) + CLEAN)
            self.assertEqual(len(found), 1)
            self.assertIn("serialized", found[0])
        self.assertEqual(len(ptxas_report.problems(SERIALISED.replace("(C7511) ", "") + CLEAN)), 1)
        self.assertEqual(len(ptxas_report.problems(WAITS + SERIALISED + CLEAN)), 2)

    def test_a_kernel_of_which_nothing_is_told_is_one(self):
        silent = "".join(SPILLS.splitlines(True)[:1])
        self.assertEqual(len(ptxas_report.problems(CLEAN + silent)), 1)
        warning = "ptxas warning : Registers are spilled to local memory in function '_Z1fPf', 16 bytes spill stores\n"
        self.assertEqual(len(ptxas_report.problems(CLEAN + warning)), 1)

    def test_a_report_without_kernels_is_one(self):
        for report in ("", "ptxas info    : 0 bytes gmem\n", "x.cu(3): warning: never used\n"):
            self.assertEqual(len(ptxas_report.problems(report)), 1, report)


class Script(unittest.TestCase):
    def run_on(self, *reports, missing=()):
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder) / f"{number}.ptxas" for number in range(len(reports))]
            for path, report in zip(paths, reports):
                path.write_text(report)
            return subprocess.run([sys.executable, SCRIPT, *paths, *missing], capture_output=True, text=True)

    def test_passes_clean_reports(self):
        self.assertEqual(self.run_on(CLEAN, CLEAN).returncode, 0)

    def test_fails_where_one_of_the_reports_does(self):
        for report in (SPILLS, SERIALISED + CLEAN, ""):
            ran = self.run_on(CLEAN, report, CLEAN)
            self.assertEqual(ran.returncode, 1)
            self.assertRegex(ran.stdout, r"^1\.ptxas: .+\n$")

    def test_fails_where_it_has_nothing_to_read(self):
        self.assertEqual(self.run_on().returncode, 1)
        self.assertEqual(self.run_on(CLEAN, missing=["/nowhere/33.ptxas"]).returncode, 1)


if __name__ == "__main__":
    unittest.main()
