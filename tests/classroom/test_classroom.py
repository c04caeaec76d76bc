#!/usr/bin/env python3
"""What docs/classroom adds around the grader, held to account with a grader that is a script of the test's own."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import textwrap
import unittest

CLASSROOM = pathlib.Path(__file__).resolve().parents[2] / "docs/classroom"
MARKS = {"score": 60, "output": "Lab 03", "visibility": "visible", "tests": []}


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.base = pathlib.Path(folder.name)
        self.base.chmod(0o755)  # as root, submissions are graded as nobody

    def write(self, name, text):
        path = self.base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class RunAutograder(Folder):
    def setUp(self):
        super().setUp()
        shutil.copy(CLASSROOM / "gradescope/run_autograder", self.base)
        self.write("source/lab-number", "3\n")
        self.write("submission/exercise.cu", "code")
        (self.base / "results").mkdir()
        self.grader(f"cat <<'END'\n{json.dumps(MARKS)}\nEND\nexit 1")

    def grader(self, script):
        self.write("source/convladder/lab", script)

    def results(self):
        done = subprocess.run([self.base / "run_autograder"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads((self.base / "results/results.json").read_text())

    def assert_no_points(self, why):
        results = self.results()
        self.assertEqual(results["score"], 0)
        self.assertIn(why, results["output"])

    def test_marks_arrive(self):
        self.assertEqual(self.results(), MARKS)
        self.grader(f"echo '{json.dumps({**MARKS, 'score': 100})}'")
        self.assertEqual(self.results()["score"], 100)

    def test_the_grader_gets_the_lab_and_the_file(self):
        self.grader('echo "[\\"$*\\", \\"$(cat exercise.cu)\\"]"')
        self.assertEqual(self.results(), ["grade 3 --file exercise.cu --json", "code"])

    def test_an_exercise_in_plain_cpp(self):
        self.write("source/convladder/chapters/03-tiled-1d/exercise.cpp", "unsolved")
        self.grader('echo "[\\"$*\\", \\"$(cat exercise.cpp)\\"]"')
        self.assert_no_points("There is no file exercise.cpp")
        self.write("submission/exercise.cpp", "plain")
        self.assertEqual(self.results(), ["grade 3 --file exercise.cpp --json", "plain"])

    def test_the_grader_is_not_root(self):
        self.grader('echo "[$(id -u)]"')
        self.assertNotEqual(self.results(), [0])

    def test_no_file(self):
        submitted = self.base / "submission/exercise.cu"
        submitted.unlink()
        self.assert_no_points("There is no file exercise.cu")
        submitted.symlink_to("/etc/passwd")
        self.assert_no_points("There is no file exercise.cu")
        submitted.unlink()
        submitted.mkdir()
        self.assert_no_points("There is no file exercise.cu")

    def test_the_grader_fails(self):
        self.grader("echo '\"here\" is what is wrong' >&2; exit 2")
        self.assert_no_points('"here" is what is wrong (status 2)')
        self.grader("echo '{\"score\": 100, '; echo 'Traceback' >&2; exit 1")
        self.assert_no_points("Traceback (status 1)")
        self.grader("echo '{\"score\": 100}'; kill -9 $$")
        self.assert_no_points("(status 137)")


class Workflow(Folder):
    """The script of the workflow's last step, which GitHub runs with bash -eo pipefail."""

    def setUp(self):
        super().setUp()
        text = (CLASSROOM / "github-classroom.yml").read_text()
        self.write("step.sh", textwrap.dedent(text.split("        run: |\n")[1]))
        for whose in ("student", "grader"):
            self.write(f"{whose}/chapters/03-tiled-1d/exercise.cu", "code")

    def run_step(self, grader):
        self.write("grader/lab", grader)
        summary = self.base / "summary"
        environment = {**os.environ, "LAB": "3", "GITHUB_STEP_SUMMARY": str(summary)}
        done = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "step.sh"], cwd=self.base,
                              env=environment, capture_output=True, text=True)
        return done.returncode, done.stdout, summary.read_text() if summary.exists() else ""

    def test_points_lost(self):
        status, output, summary = self.run_step("echo '::notice::Points 100/100'\necho \"$*\"\n"
                                                "echo '60 of 100 points'\nexit 1")
        self.assertEqual(status, 1)
        self.assertEqual(output, "::notice title=Autograding complete::Points 60/100\n"
                         '::notice title=Autograding report::{"totalPoints":60,"maxPoints":100}\n')
        self.assertIn("    --yes grade 3 --file student/chapters/03-tiled-1d/exercise.cu\n", summary)
        self.assertIn("    60 of 100 points\n", summary)

    def test_full_marks(self):
        status, output, _ = self.run_step("echo '100 of 100 points'")
        self.assertEqual(status, 0)
        self.assertIn("Points 100/100", output)

    def test_an_exercise_in_plain_cpp(self):
        (self.base / "grader/chapters/03-tiled-1d/exercise.cu").unlink()
        for whose in ("student", "grader"):
            self.write(f"{whose}/chapters/03-tiled-1d/exercise.cpp", "code")  # the student has kept an exercise.cu too
        _, _, summary = self.run_step("echo \"$*\"\necho '60 of 100 points'")
        self.assertIn("    --yes grade 3 --file student/chapters/03-tiled-1d/exercise.cpp\n", summary)

    def test_nothing_graded(self):
        self.assertEqual(self.run_step("exit 2"), (2, "", ""))


if __name__ == "__main__":
    unittest.main(buffer=True)
