#!/usr/bin/env python3
"""Tests of the site's programs: the checkers find what is broken, and pages are rewritten right."""

import json
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "site"))

import build  # noqa: E402
import changes  # noqa: E402
import check_links  # noqa: E402
import finish  # noqa: E402


class InFolder(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name).resolve()

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class CheckLinks(InFolder):
    GOOD = """<html><head><link rel="stylesheet" href="a.css"></head><body>
        <h1 id="top">A</h1><a name="old"></a> <a href="#top">.</a> <a href="#old">.</a> <a href="b/c.html#there">.</a>
        <a href="https://example.org/">.</a> <img src="data:image/png;base64,AA"> <img src="p%20q.png"></body></html>"""

    def setUp(self):
        super().setUp()
        self.write("index.html", self.GOOD)
        self.write("b/c.html", '<p id="there"><a href="../index.html">.</a></p>')
        self.write("a.css", "body { background: url(p%20q.png) }")
        self.write("list.js", 'var pages = ["b/c.html", "index.html#top"];')
        self.write("p q.png", "")

    def test_a_whole_site_passes(self):
        self.assertEqual(check_links.broken_links(self.folder), [])

    def test_a_folder_without_pages_fails(self):
        empty = self.folder / "empty"
        empty.mkdir()
        self.assertEqual(len(check_links.broken_links(empty)), 1)

    def test_each_broken_thing_is_found_and_named(self):
        for text, says in [
            ('<a href="none.html">.</a>', "none.html is not there"),
            ('<a href="b/c.html#none">.</a>', "no such anchor"),
            ('<a href="#none">.</a>', "no such anchor"),
            ('<a href="../../etc/passwd">.</a>', "leads out of the site"),
            ('<img src="none.png">', "none.png is not there"),
            ('<img srcset="none.png 2x">', "none.png is not there"),
            ('<script src="none.js"></script>', "none.js is not there"),
            ('<script src="https://example.org/x.js"></script>', "from the network"),
            ('<link rel="stylesheet" href="//example.org/x.css">', "from the network"),
            ('<style>@import "http://example.org/x.css";</style>', "from the network"),
            ('<p style="background: url(http://example.org/x.png)">', "from the network"),
        ]:
            with self.subTest(text):
                self.write("more.html", text)
                wrong = check_links.broken_links(self.folder)
                self.assertEqual(len(wrong), 1, wrong)
                self.assertIn("more.html: ", wrong[0])
                self.assertIn(says, wrong[0])

    def test_style_sheets_and_lists_of_pages_are_read(self):
        self.write("font.css", "@font-face { src: url('https://example.org/font.woff') }")
        self.write("list.js", 'var pages = ["index.html#none"];')
        wrong = check_links.broken_links(self.folder)
        self.assertEqual(len(wrong), 2, wrong)


class Pages(InFolder):
    def setUp(self):
        super().setUp()
        self.addCleanup(setattr, build, "ROOT", build.ROOT)
        build.ROOT = self.folder
        self.write("README.md", "# Top\n")
        self.write("docs/results/README.md", "# Results\n")
        self.write("docs/guide.md", "# Guide\n\n## One `part`\n")
        self.write("common/kernel/border.hpp", "")
        for number, name in [(2, "two"), (10, "ten"), (3, "three")]:
            folder = f"chapters/{number:02}-{name}"
            self.write(f"{folder}/stage.json", json.dumps({"number": number, "name": name, "title": "", "idea": ""}))
            self.write(f"{folder}/README.md", f"# {number}\n")
            self.write(f"{folder}/{name}.cu", "")
        self.write("chapters/03-three/LAB.md", "# Lab\n")
        self.write("chapters/03-three/exercise.cu", "")
        self.site = build.Site(self.folder / "out", None, None)
        self.site.html.mkdir(parents=True)

    def converted(self, text, page="chapters/03-three/README.md"):
        self.write(page, "# Title\n\n" + text)
        title, body = self.site.convert(pathlib.Path(page))
        self.assertEqual(title, "Title")
        return body.strip()

    def test_links(self):
        for target, becomes in [
            ("../../docs/guide.md", "docs-guide.html"),
            ("../../docs/guide.md#one-part", "docs-guide.html#docs-guide--one-part"),
            ("../02-two/README.md", "chapters-02-two.html"),
            ("../02-two", "chapters-02-two.html"),
            ("../../docs/results/", "docs-results.html"),
            ("../../README.md", "readme.html"),
            ("../../tools/site/first-page.md", "index.html"),
            ("#here", "chapters-03-three.html#chapters-03-three--here"),
            ("three.cu", "chapters-03-three.html#kernel"),
            ("three.cu#L7", "chapters-03-three.html#l00007"),
            ("exercise.cu#L7-L9", "file-chapters-03-three-exercise-cu.html#l00007"),
            ("stage.json", "file-chapters-03-three-stage-json.html"),
            ("../../common/kernel/border.hpp", "border_8hpp.html"),
            ("https://example.org/a_b", "https://example.org/a_b"),
        ]:
            with self.subTest(target):
                self.assertEqual(self.converted(f"[x]({target})"), f"[x]({becomes})")

    def test_a_folder_lists_its_files(self):
        self.write("solutions/03-three/exercise.cu", "")
        site = build.Site(self.folder / "out", None, None)
        self.assertEqual(site.source_page(pathlib.Path("solutions/03-three")),
                         "- [`exercise.cu`](file-solutions-03-three-exercise-cu.html)\n")

    def test_a_link_to_nothing_is_an_error(self):
        with self.assertRaisesRegex(build.SiteError, "none.md leads nowhere"):
            self.converted("[x](none.md)")

    def test_a_link_to_what_students_do_not_get_is_text(self):
        self.assertEqual(self.converted("[the `x`](../../solutions/03-three/README.md)."), "the `x`.")

    def test_formulas(self):
        self.assertEqual(self.converted("so $2r + 1$, $`a`$"), r"so \f$2r + 1\f$, \f$a\f$")
        self.assertEqual(self.converted("```math\na_i\n```"), "\\f[\na_i\n\\f]")

    def test_the_comments_of_figures_are_left_out(self):
        text = ("takes <!--= time(25) on\nh=224 as .1 µs-->3.1 µs<!--/-->, "
                "<!--derived-->4 KB<!--/--> or <!--quoted a-b-->5%<!--/-->.")
        self.assertEqual(self.converted(text), "takes 3.1 µs, 4 KB or 5%.")

    def test_what_is_no_formula_stays(self):
        fence = "```{.unparsed}\n$a$ [x](none.md) @b\n```"
        for text in ["`$a$ [x](none.md) @b`", "5 $ and 6 $", "costs $5 and $6", fence]:
            with self.subTest(text):
                self.assertEqual(self.converted(text.replace("{.unparsed}", "")), text)

    def test_a_bar_in_a_cell(self):
        self.assertEqual(self.converted(r"| `a \| <b>` |"), "| <code>a &#124; &lt;b&gt;</code> |")

    def test_a_quote_in_code(self):
        self.assertEqual(self.converted("`there is no '7'`"), "<code>there is no '7'</code>")

    def test_headings_have_the_anchors_of_github(self):
        body = self.converted("## What `a` is, *now*?\n\n### Twice\n\n### Twice\n")
        for name in ("what-a-is-now", "twice", "twice-1"):
            self.assertIn(f"{{#chapters-03-three--{name}}}", body)

    def test_a_drawing_gets_a_copy_for_each_theme(self):
        questions = "@media (prefers-color-scheme: dark) {} @media (prefers-color-scheme:light) {}"
        self.write("chapters/03-three/a.svg", questions)
        self.assertIn('alt="It &amp; more"', self.converted("![It & more](a.svg)"))
        copies = [(self.site.html / f"chapters-03-three-a-{theme}.svg").read_text() for theme in ("light", "dark")]
        self.assertEqual(copies, ["@media not all {} @media all {}", "@media all {} @media not all {}"])

    def test_a_slider_stands_at_its_marker(self):
        self.assertIn('<figure class="sliders">', self.converted("a\n\n<!-- slider tile-1d -->\n\nb"))
        with self.assertRaises(build.SiteError):
            self.converted("<!-- slider tile-9d -->")

    def test_a_page_without_title_and_an_open_block_are_errors(self):
        for text in ("no title\n", "# Title\n\n```\nno end\n"):
            with self.subTest(text), self.assertRaises(build.SiteError):
                self.write("docs/guide.md", text)
                self.site.convert(pathlib.Path("docs/guide.md"))

    def test_chapters_follow_each_other_by_number(self):
        self.assertEqual([chapter.number for chapter in self.site.chapters], [2, 3, 10])
        steps = self.site.steps(1, pathlib.Path("chapters/03-three/README.md"))
        self.assertIn('rel="prev" href="chapters-02-two.html"', steps)
        self.assertIn('rel="next" href="chapters-10-ten.html"', steps)
        self.assertIn('href="chapters-03-three-lab.html">Lab', steps)
        self.assertNotIn("prev", self.site.steps(0, pathlib.Path("chapters/02-two/README.md")))
        self.assertNotIn("next", self.site.steps(2, pathlib.Path("chapters/10-ten/README.md")))

    def test_the_solution_is_a_click_away_from_the_lab_alone(self):
        self.write("solutions/03-three/README.md", "# Solution\n")
        site = build.Site(self.folder / "out", None, None)
        chapter = site.chapters[1]
        solution = "solutions-03-three.html"
        self.assertNotIn(solution, site.steps(1, chapter.lesson) + site.steps(1, chapter.lab) + site.navigation())
        self.assertRegex(site.solution_link(chapter), f"(?s)<details.*{solution}")
        self.assertIn("<b>Solution</b>", site.steps(1, chapter.solution))
        self.assertEqual(self.site.solution_link(site.chapters[0]), "")

    def test_bold_code(self):
        self.assertEqual(self.converted("so **`a` and b.** c, **not `a`**"), "so <b>`a` and b.</b> c, <b>not `a`</b>")
        self.assertEqual(self.converted("`a**b` and `c**d`"), "`a**b` and `c**d`")

    def test_contents_of_long_pages(self):
        page = pathlib.Path("docs/guide.md")
        self.converted("## A\n\n## B `b`\n\n### Of [b](#a)\n\n## C\n", str(page))
        self.assertEqual(self.site.contents(page), "")
        self.converted("## A\n\n## B `b`\n\n### Of [b](#a)\n\n## C\n\n## D\n", str(page))
        contents = self.site.contents(page)
        self.assertIn('<li class="level2"><a href="#docs-guide--b-b">B b</a></li>', contents)
        self.assertIn('<li class="level3"><a href="#docs-guide--of-b">Of b</a></li>', contents)

    def test_steps_lead_to_the_lines_with_their_numbers(self):
        self.write("chapters/03-three/three.cu", "//   1. A list.\n// 1.\na();\n// Done. 2., as said\n"
                   "b();  // of 12.\n// 1. Again\n")
        self.write("chapters/03-three/more.cuh", "// ---- 4. There ----\n")
        site = build.Site(self.folder / "out", None, None)
        self.write("chapters/03-three/README.md", "# T\n\n## Other\n\n1. x\n\n## The change\n\n1. x\n2. x\n3. x\n4. x\n"
                   "\nso\n\n1. y\n2. y\n\n## End\n\n1. x\n")
        chapter = site.chapters[1]
        text = site.with_steps(chapter, site.convert(chapter.lesson)[1])
        self.assertEqual(re.findall(r'^(.*?) .*href="#([^"]*)"', text, re.M),
                         [("1.", "f1-l00002"), ("2.", "f1-l00004"), ("4.", "l00001"), ("1.", "f1-l00006")])
        self.assertEqual(site.link(chapter.lesson, "three.cu#L3"), "chapters-03-three.html#f1-l00003")

    def test_steps_in_the_prose_lead_to_the_lines(self):
        self.write("chapters/03-three/three.cu", "// 1.\na();\n// 2.\n")
        site = build.Site(self.folder / "out", None, None)
        self.write("chapters/03-three/README.md", "# T\n\n## The change\n\n1. as\n   step 2 does\n\n## End\n\n"
                   "In step 2, not (in 20, step 2), each step 2 or step 2.5, and step 9.\n\n"
                   "```c++\nstep 2\n```\n\nStep 1.\n")
        text = site.with_steps(site.chapters[1], site.convert(site.chapters[1].lesson)[1])
        self.assertEqual(re.findall(r'href="#([^"]*)"[^>]*>([^<]*)<', text),
                         [("l00001", "line 1"), ("l00003", "step 2"), ("l00003", "step 2"), ("l00001", "Step 1")])

    def test_the_first_page(self):
        self.write("docs/techniques.md", "# Techniques\n")
        self.write("README.md", "# Top\n")
        self.write("docs/traces/03.json", json.dumps({"files": [], "events": [], "block": [0, 0, 0], "shape": "w=1",
                                                      "kernel": "k", "look": "Look."}))
        site = build.Site(self.folder / "out", None, None)
        self.addCleanup(setattr, build.trace_figure, "ROOT", build.trace_figure.ROOT)
        build.trace_figure.ROOT = self.folder
        self.write("tools/site/first-page.md", "# First\n\n<!-- ways in -->\n\n<!-- trace 03 -->\n")
        text = site.convert(build.FIRST_PAGE)[1]
        self.assertIn('<li><a href="docs-techniques.html">Techniques</a></li>', text)
        self.assertIn('<li><a href="readme.html">The whole ladder, and how to run it</a></li>', text)
        self.assertNotIn("Teach a course", text)  # of whose pages there is none here
        self.assertIn('<figure class="trace">', text)

    def test_what_changed_since_the_stage_before(self):
        for name in ("two", "three"):
            folder = next(self.folder.glob(f"chapters/*-{name}"))
            (folder / f"{name}.cu").write_text(f"// {name}\nvoid {name}();\nuse<{name}>(1, 2, {len(name)});\n")
        manifest = self.folder / "chapters/03-three/stage.json"
        manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "previous": 2}))
        self.write("chapters/03-three/README.md", "# T\n\n## The change\n\nk\n\n### More\n\nm\n\n## After\n\na\n")
        site = build.Site(self.folder / "out", None, None)
        two, three = site.chapters[:2]
        text = site.with_changes(three, site.convert(three.lesson)[1])
        places = [text.index(words) for words in ("More", "## All that changed since 02 two", "# After")]
        self.assertEqual(places, sorted(places))
        self.assertIn("that go: 1; lines that come: 1.", text)  # the last
        self.assertEqual(site.with_changes(two, "x"), "x")
        self.assertEqual([text for _, text, _ in site.headings[three.lesson]],
                         ["The change", "More", "All that changed since 02 two", "After"])
        self.assertRegex(text, '<details class="changes" open>(?s:.)*value="inline" checked(?s:.)*"side-by-side">')
        self.assertIn('<details class="changes">', build.diff_of([], unfolded=False))


class Changes(unittest.TestCase):
    BEFORE, AFTER = ([changes.Line("a.cu", number, text, text) for number, text in enumerate(lines, 1)] for lines in (
        ["first", "use(a, b, c)", "gone & lost", "last"], ["first", "use(a, x, c)", "last", "new"]))

    def test_rows(self):
        groups = list(changes.hunks(self.BEFORE, self.AFTER))
        rows = "".join(changes.inline(groups))
        self.assertIn('<td class="old">−use(a, <del>b</del>, c)</td>', rows)
        self.assertIn('<td class="new">+use(a, <ins>x</ins>, c)</td>', rows)
        self.assertIn('<td class="old">−gone &amp; lost</td>', rows)
        self.assertIn('<td class="same"> last</td>', rows)
        sides = list(changes.side_by_side(groups))
        self.assertEqual(len(sides), 6)  # with the place
        self.assertIn('<td class="old">−gone &amp; lost</td><td class="number"></td>', sides[3])
        self.assertEqual(changes.counts(self.BEFORE, self.AFTER), (2, 2))


class Finish(InFolder):
    def test_tables(self):
        cell = '<table class="markdownTable"><tr><th>no. </th><td class="x">1.29× (IMPLICIT_GEMM)   </td></tr></table>'
        self.assertEqual(finish.TABLE.sub(finish.framed, cell),
                         '<div class="table-frame numbered" tabindex="0"><table class="markdownTable"><tr><th>no. </th>'
                         '<td class="x">1.29× <small>IMPLICIT_<wbr/>GEMM</small>   </td></tr></table></div>')
        self.assertEqual(finish.ALGORITHM.search(">7.3× (plan 5 (eng0{})) </td>")[2], "plan 5 (eng0{})")

    def test_each_file_beside_a_lesson_has_its_own_anchors(self):
        line = '<a id="l00001" name="l00001"></a>'
        text = finish.with_own_anchors(f'<aside class="beside" id="kernel"><h2>a</h2>{line}<h2>b</h2>{line}')
        self.assertEqual(re.findall(r'id="([^"]*l0[^"]*)"', text), ["l00001", "f1-l00001"])

    def test_the_index_of_the_search(self):
        self.write("chapters-03-three.html", '<div class="title">Three</div><div class="contents"><p>Begin &amp; go</p>'
                   '<nav>not this</nav><h1><a class="anchor" id="x--tile"></a>The <code>tile</code></h1>'
                   '<p>bank<br>conflict</p><div class="fragment">code</div><!-- fragment --></div><p>nor this</p>')
        self.write("file-a.html", '<div class="contents">no page of its own</div>')
        finish.finish(self.folder, {"chapters-03-three"})
        text = (self.folder / "search-index.js").read_text()
        self.assertEqual(json.loads(text.removeprefix("searchIndex = ").removesuffix(";\n")), [
            ["chapters-03-three.html", "Three", "Lesson",
             [["", "", "Begin & go"], ["x--tile", "The tile", "bank conflict"]]]])


if __name__ == "__main__":
    unittest.main()
