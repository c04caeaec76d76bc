"""The checks of the tree's form find what they are for, and nothing in a tree that is as it should be."""
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/checks"))
import check_drawings  # noqa: E402
import check_includes  # noqa: E402
import check_lessons  # noqa: E402
import check_paths  # noqa: E402
import check_sources  # noqa: E402

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

    def test_a_standard_header_in_what_nvrtc_compiles(self):
        self.write("common/kernel/kernel.hpp", "#include <cstdint>\n#include <type_traits>\n")
        self.assertEqual(list(check_includes.problems(self.root)), [])
        self.write("chapters/02-b/b.cu", 'source.add(R"(#include "chapters/01-a/a.cuh"\n)");\n')
        self.assert_found("common/kernel/kernel.hpp: includes <type_traits>, which NVRTC does not find")

    def test_a_standard_header_in_a_file_that_is_embedded(self):
        self.write("cmake/cuda/CMakeLists.txt", "    ${PROJECT_SOURCE_DIR}/chapters/0[2]-*/b.cu\n")
        self.write("chapters/01-a/a.cuh", "#include <vector>\n")
        self.assert_found("chapters/01-a/a.cuh: includes <vector>")

    def test_branches_that_nvrtc_does_not_read(self):
        self.write("chapters/02-b/b.cu", 'source.add(R"(#include "chapters/01-a/a.cuh"\n)");\n')
        for text, found in (("#if !defined(__CUDACC_RTC__)\n#include <vector>\n#endif\n", False),
                            ("#ifdef __CUDACC__\n#if A > 1\n#endif\n#else\n#include <vector>\n#endif\n", False),
                            ("#if defined(__CUDACC__) && !defined(SIMT_PLAIN_CUDA)\n#else\n#include <vector>\n#endif\n",
                             False),
                            ("#ifndef __CUDACC_RTC__\n#else\n#include <vector>\n#endif\n", True),
                            ("#if A > 1\n#elif defined(__CUDACC__)\n#else\n#include <vector>\n#endif\n", False),
                            ("#if A > 1 && defined(__CUDACC__)\n#include <vector>\n#endif\n", True),
                            ("#if A > 1\n#else\n#include <vector>\n#endif\n", True)):
            self.write("common/kernel/kernel.hpp", text)
            self.assertEqual(len(list(check_includes.problems(self.root))), int(found), text)


class Paths(Tree):
    def test_paths_that_are_there_or_are_patterns(self):
        self.write("README.md", "[a](chapters/01-a/a.cuh), `common/stage`, chapters/NN-name/NAME.cu, tests/*.cpp\n")
        self.assertEqual(list(check_paths.problems(self.root)), [])

    def test_a_path_that_is_gone(self):
        self.write("docs/page.md", "see [the stage](../common/stage.hpp)\n")
        self.assertEqual(list(check_paths.problems(self.root)),
                         ["docs/page.md:1: names common/stage.hpp, which is not there"])

    def test_lines_that_a_page_quotes(self):
        self.write("chapters/01-a/b.cu", "//   1. All.\nfloat sum =\n    0;\n")
        quote = "`float sum = {};` in\n[b.cu](../chapters/01-a/b.cu), step {}\n"
        for value, step, expected in ((0, 1, []), (1, 1, ["docs/page.md: quotes `float sum = 1;`, which "
                                                          "../chapters/01-a/b.cu does not have"]),
                                      (0, 2, ["docs/page.md: names step 2 of ../chapters/01-a/b.cu, "
                                              "which numbers none so"])):
            self.write("docs/page.md", quote.format(value, step))
            self.assertEqual(list(check_paths.problems(self.root)), expected)


class Sources(Tree):
    """A stage that follows one work, and a lesson that leans on another."""

    LESSON = "# 01 a\n\n## Sources\n\n- [One](../../docs/references.md#one-2001): all.\n"

    def setUp(self):
        super().setUp()
        self.write("docs/references.md", "# References\n\n## Works\n\n### one-2001\n\nOne.\n\n### two-2002\n\nTwo.\n")
        self.write("chapters/01-a/stage.json", '{"source": "two-2002: section 3"}')
        self.write("chapters/01-a/README.md", self.LESSON)
        self.write("chapters/02-b/stage.json", '{"source": "one-2001: a table; two-2002: another"}')

    def assert_found(self, *parts):
        found = list(check_sources.problems(self.root))
        self.assertEqual(len(found), len(parts), found)
        for part, problem in zip(parts, found):
            self.assertIn(part, problem)

    def test_works_with_names(self):
        self.assert_found()

    def test_a_stage_whose_source_has_no_entry(self):
        self.write("chapters/02-b/stage.json", '{"source": "one-2001: a table; 003, background"}')
        self.assert_found("02-b/stage.json: docs/references.md has no entry 003, background")

    def test_a_stage_without_a_source(self):
        self.write("chapters/02-b/stage.json", "{}")
        self.assert_found("02-b/stage.json: docs/references.md has no entry")

    def test_a_lesson_without_sources(self):
        for lesson in ("# 01 a\n", self.LESSON + "\n## Questions\n", self.LESSON.replace("## Sources", "## Source"),
                       self.LESSON.partition("- ")[0] + "None. [One](../../docs/references.md)\n"):
            self.write("chapters/01-a/README.md", "[one](../../docs/references.md#one-2001)\n\n" + lesson)
            self.assert_found("01-a/README.md: its last section must be")

    def test_a_link_without_an_entry(self):
        self.write("docs/page.md", "[Three](references.md#three-2003)\n")
        self.assert_found("docs/page.md: docs/references.md has no entry three-2003")

    def test_entries_that_nothing_follows_or_that_are_there_twice(self):
        with open(self.root / "docs/references.md", "a") as references:
            references.write("\n### four\n\n### one-2001\n")
        self.assert_found("has two entries one-2001", "nothing follows four")

    def test_works_without_a_name(self):
        for text in ("The source says so.", "a limit that the sources' rules leave", "// as the\n// source demands",
                     "see the paper", "/// The\n  /// tutorial fuses them", "The source of these stages is a thesis.",
                     "a paper's limit"):
            self.write("common/stage/stage.hpp", "\n" + text + "\n")
            self.assert_found("common/stage/stage.hpp:2: says")

    def test_what_is_said_of_code(self):
        self.write("common/stage/stage.hpp", "// Requests are those of the source, which is read later. The TVM post\n"
                                             "// says so, and the partial-fusion paper. A source's language.\n")
        self.assert_found()


class Drawings(unittest.TestCase):
    def found(self, texts):
        return list(check_drawings.problems(
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 50" font-size="10"><style>'
            f'.end {{ text-anchor: end; }} .big {{ font-size: 20px }} @media (x) {{ text {{ fill: red }} }}'
            f'</style>{texts}</svg>'))

    def test_texts_that_fit(self):
        self.assertEqual(self.found('<text x="2" y="10">twelve of it</text>'
                                    '<text class="end" x="98" y="30">at right</text>'
                                    '<g class="big"><text x="2" y="46">MMMM</text></g>'
                                    '<text transform="translate(96 40) rotate(-90)">up</text>'), [])

    def test_texts_that_do_not(self):
        for text in ('<text x="60" y="10">too long here</text>', '<text class="end" x="20" y="10">before</text>',
                     '<text x="2" y="5">above</text>', '<text class="big" x="2" y="46">MMMMMM</text>',
                     '<g font-size="20"><text x="2" y="46">in a group</text></g>',
                     '<text transform="translate(96 10) rotate(-90)">up</text>'):
            self.assertEqual(len(self.found(text)), 1, text)
            self.assertIn("out of the drawing", self.found(text)[0])

    def test_texts_on_each_other(self):
        texts = '<text x="2" y="20">one and</text><text x="{}" y="24">another</text>'
        self.assertEqual(self.found(texts.format(50)), [])
        self.assertEqual(self.found(texts.format(30)), ["'another' is written on 'one and'"])


class Lessons(unittest.TestCase):
    LESSON = "# 04 x: y\n\n" + check_lessons.IDEA + "One. Two.\n" + "".join(
        f"\n## {section}\n\n" + 130 * "word " + "\n" for section in check_lessons.SECTIONS) + """
![a drawing](a.svg) [one](docs/glossary.md#one) [two](docs/glossary.md#two) [three](docs/glossary.md#three)

```diff
-  old(1);
...
+  changed(  2);  // a comment
```

```cpp
called();
...
```

```c++
nowhere();
```

<!-- table:times x 4 -->
""" + 5 * "| a |\n" + "<!-- /table -->\n"

    def found(self, lesson):
        return list(check_lessons.faults(lesson, "changed(2);", "old(1);", "called();", {"one", "two", "three"}))

    def test_a_lesson_as_its_template(self):
        self.assertEqual(self.found(self.LESSON), [])

    def test_each_fault_is_found(self):
        for old, new, part in (
                ("## The idea", "## An idea", "has '## An idea' where '## The idea' comes"),
                ("\n## Sources\n", "\n", "has '## nothing' where '## Sources' comes"),
                (check_lessons.IDEA, "", "does not begin with"),
                (130 * "word ", "word ", "words of prose"),
                (130 * "word ", 300 * "word ", "words of prose"),
                ("a.svg", "a.png", "has no drawing"),
                ("a.svg", "heat.svg", "has no drawing"),
                ("glossary.md#three", "glossary.md#four", "links glossary.md#four, which is no entry"),
                ("(docs/glossary.md#three)", "(x)", "links fewer than 3"),
                ("| a |\n", "| a |\n| a |\n", "has a table of 8 rows"),
                ("word ", "in place of ", "says 'in place of'"),
                ("-  old", "-  changed", "quotes what is not in the sources: -  changed"),
                ("+  changed(  2)", "+  old(1)", "quotes what is not in the sources: +  old"),
                ("called", "nowhere", "quotes what is not in the sources: nowhere")):
            self.assertIn(part, "\n".join(self.found(self.LESSON.replace(old, new))), old)


class LessonOfSteps(Tree):
    """A chapter with a step, whose lesson is longer and quotes the step's code."""

    LESSON = Lessons.LESSON.replace(130 * "word ", 300 * "word ").replace("old(1)", "of_step()").replace(
        "called()", "of_step()")

    def setUp(self):
        super().setUp()
        self.write("docs/glossary.md", "## One\n\n## Two\n\n## Three\n")
        self.write("chapters/04-x/stage.json", "{}")
        self.write("chapters/04-x/x.cu", "changed(2);\n")
        self.write("chapters/04-x/README.md", self.LESSON)
        self.write("chapters/04-x/04a-y/y.cu", "of_step();\n")
        self.write("chapters/04-x/04a-y/stage.json", "{}")

    def found(self):
        return check_lessons.chapter_faults(self.root, self.root / "chapters/04-x")

    def test_a_lesson_with_steps(self):
        self.assertEqual(self.found(), [])

    def test_without_the_step(self):
        (self.root / "chapters/04-x/04a-y/stage.json").unlink()
        self.assertIn("words of prose", "\n".join(self.found()))
        (self.root / "chapters/04-x/04a-y/y.cu").unlink()
        self.assertIn("quotes what is not in the sources: of_step();", "\n".join(self.found()))


if __name__ == "__main__":
    unittest.main()
