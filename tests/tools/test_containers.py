"""The Dockerfile, what it copies, and the dev container, as far as they can be read without a container engine."""
import fnmatch
import json
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "Dockerfile"
DEV_CONTAINER = ROOT / ".devcontainer/devcontainer.json"
STAGE = re.compile(r"^FROM (\S+)(?: AS (\S+))?$", re.M)


class Containers(unittest.TestCase):
    def setUp(self):
        self.text = DOCKERFILE.read_text()
        self.stages = [name for _, name in STAGE.findall(self.text)]

    def test_stages_are_those_that_pages_name(self):
        self.assertEqual(self.stages, ["tools", "cpu", "cuda-tools", "cuda"])
        for page in (DOCKERFILE, ROOT / "docs/docker.md"):
            for target in re.findall(r"--target (\S+)", page.read_text()):
                self.assertIn(target, self.stages)

    def test_what_is_copied_is_there_and_not_ignored(self):
        ignored = (ROOT / ".dockerignore").read_text().split()
        sources = re.findall(r"^COPY (?!--from)(\S+) \S+$", self.text, re.M)
        self.assertIn("lab", sources)
        for name in [*sources, "pyproject.toml", "python", "chapters", "common", "cmake", "tools", "CMakeLists.txt"]:
            self.assertTrue((ROOT / name).exists(), name)
            self.assertFalse(any(fnmatch.fnmatch(name, pattern) for pattern in ignored), name)
        for name in re.findall(r"^COPY --from=(\S+)", self.text, re.M):
            self.assertIn(name, self.stages)

    def test_dev_container(self):
        described = json.loads(DEV_CONTAINER.read_text())
        build = described["build"]
        self.assertEqual((DEV_CONTAINER.parent / build["dockerfile"]).resolve(), DOCKERFILE)
        self.assertEqual((DEV_CONTAINER.parent / build["context"]).resolve(), ROOT)
        self.assertIn(build["target"], self.stages)
        self.assertIn("./lab list", described["postCreateCommand"])


if __name__ == "__main__":
    unittest.main()
