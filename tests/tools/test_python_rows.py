#!/usr/bin/env python3
"""Tests of common/harness/baselines/python/rows.py where PyTorch is missing, or is one that was made up here."""

import array
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROWS = ROOT / "common/harness/baselines/python/rows.py"
PROBLEM = {"n": 1, "c": 1, "h": 2, "w": 3, "k": 1, "r": 1, "s": 1, "pad_h": 0, "pad_w": 0, "stride_h": 1,
           "stride_w": 1, "dilation_h": 1, "dilation_w": 1, "groups": 1}
# What rows.py asks of PyTorch before the first convolution.
BLIND = """
print("a greeting that is no answer")
__version__ = "1.0"
class cuda:
    is_available = staticmethod(lambda: False)
"""


class Rows(unittest.TestCase):
    def answers(self, torch, *requests):
        """Of a Python whose `import torch` reads this text."""
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "torch.py").write_text(torch)
            values = pathlib.Path(folder, "values")
            values.write_bytes(array.array("f", range(6)).tobytes())
            lines = [json.dumps({"input": str(values), "filter": str(values), **request}) for request in requests]
            done = subprocess.run([sys.executable, ROWS], input="\n".join(lines) + "\n", capture_output=True, text=True,
                                  timeout=60, check=True, env={**os.environ, "PYTHONPATH": folder})
        self.assertEqual(done.stdout.count("\n"), len(requests), done.stdout)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def place(self, row="torch", device="cpu"):
        return {"do": "place", "row": row, "problem": PROBLEM, "dtype": "fp32", "device": device}

    def test_without_pytorch(self):
        answers = self.answers("raise ImportError('none here')", self.place(), {"do": "clear"}, self.place())
        for answer in answers[::2]:  # a row has one process for all its workloads
            self.assertRegex(answer["refused"], r"^PyTorch is missing in \S+: none here$")

    def test_without_a_gpu(self):
        [answer] = self.answers(BLIND, self.place(device="cuda"))
        self.assertRegex(answer["refused"], r"^PyTorch 1.0 of \S+ sees no GPU$")

    def test_what_fails_is_answered_in_one_line_and_the_next_request_is_heard(self):
        first, second, third = self.answers(BLIND, self.place(), {"do": "fly"}, self.place(device="cuda"))
        self.assertRegex(first["error"], r"^AttributeError: .*torch.*backends")
        self.assertEqual(second["error"], "KeyError: 'fly'")
        self.assertIn("sees no GPU", third["refused"])


if __name__ == "__main__":
    unittest.main()
