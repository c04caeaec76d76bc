"""The checks of the tree's form find what they are for, and nothing in a tree that is as it should be."""
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/checks"))
import check_includes  # noqa: E402
import check_paths  # noqa: E402

MAP = """
| folder | holds | may include |
| --- | --- | --- |
| `stage` | x | |
| `simt` | x | `stage` |
| `kernel` | x | `stage`, (`simt`) |
| `harness/device` | x | `kernel` |
| `chapters` | x | `kernel` |
"""


class Tree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("common/README.md", MAP)
        self.write("common/stage/stage.hpp", "")
        self.write("common/simt/simt.hpp", '#include "common/stage/stage.hpp"\n')
        self.write("common/kernel/kernel.hpp", '#include "common/simt/simt.hpp"\n#include "common/stage/stage.hpp"\n')
        self.write("common/harness/device/device.hpp",
                   '#include "common/kernel/kernel.hpp"\n#include "common/stage/stage.hpp"\n')
        self.write("chapters/01-a/a.cuh", '#include "common/kernel/kernel.hpp"\n')
        self.write("chapters/01-a/stage.json", "{}")
        self.write("chapters/02-b/b.cu", '#include "chapters/01-a/a.cuh"\n')
        self.write("chapters/02-b/stage.json", '{"includes": ["01-a"]}')

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class Includes(Tree):
    def assert_found(self, part):
        found = list(check_includes.problems(self.root))
        self.assertEqual(len(found), 1, found)
        self.assertIn(part, found[0])

    def test_a_tree_as_its_map_says(self):
        self.assertEqual(list(check_includes.problems(self.root)), [])

    def test_an_edge_that_the_map_does_not_allow(self):
        self.write("common/stage/problem.hpp", '#include "common/kernel/kernel.hpp"\n')
        self.assert_found("does not let stage")

    def test_what_is_in_brackets_is_not_passed_on(self):
        self.write("common/harness/device/host.cpp", ' # include "common/simt/simt.hpp"\n')
        self.assert_found("does not let harness/device")

    def test_a_folder_without_a_row(self):
        self.write("common/harness/files/npy.cpp", "")
        self.assert_found("no row for harness/files")

    def test_a_row_without_a_folder(self):
        self.write("common/README.md", MAP + "| `labs` | x | |\n")
        self.assert_found("no source is in labs")

    def test_a_file_that_is_not_there(self):
        self.write("common/simt/warp.hpp", '#include "simt.hpp"\n')
        self.assert_found("is not there")

    def test_another_chapter_that_is_not_listed(self):
        self.write("chapters/02-b/stage.json", "{}")
        self.assert_found("list 01-a")


class Paths(Tree):
    def test_paths_that_are_there_or_are_patterns(self):
        self.write("README.md", "[a](chapters/01-a/a.cuh), `common/stage`, chapters/NN-name/NAME.cu, tests/*.cpp\n")
        self.assertEqual(list(check_paths.problems(self.root)), [])

    def test_a_path_that_is_gone(self):
        self.write("docs/page.md", "see [the stage](../common/stage.hpp)\n")
        self.assertEqual(list(check_paths.problems(self.root)),
                         ["docs/page.md:1: names common/stage.hpp, which is not there"])


if __name__ == "__main__":
    unittest.main()
