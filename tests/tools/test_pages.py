#!/usr/bin/env python3
"""Tests of tools/site/check_pages.py, in Chromium: what is wrong with a page is found, and nothing else. Ends with 77,
which ctest counts as skipped, where there is no Chromium."""

import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "site"))

import check_pages  # noqa: E402

EVENT = {"what": "load", "warp": 0, "lanes": 1, "file": 0, "line": 1, "object": "x", "space": "global", "from": 0,
         "bytes": 4, "cost": 1}
TRACE = json.dumps({"kernel": "k", "files": [{"name": "a.cu", "lines": {"1": "a", "2": "b"}}],
                    "events": [{**EVENT, "line": line} for line in (1, 2)]})
PLAYER = f'<figure class="trace"><script type="application/json">{TRACE}</script><figcaption>c</figcaption></figure>'
STYLE = "<style>.table-frame { overflow-x: auto } .markdownTable td:first-child { position: sticky; left: 0 }</style>"
DARK = """<script>class DoxygenAwesomeDarkModeToggle {
    static enableDarkMode(dark) { document.documentElement.classList.toggle("dark-mode", dark); } }</script>"""


def table(cells, width=90, frame='class="table-frame scrolls"'):
    row = f'<tr>{f"<td><div style=width:{width}px>a</div></td>" * cells}</tr>'
    return f'{STYLE}<div {frame}><table class="markdownTable">{row}</table></div>'


class Checks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.driver = check_pages.browser()
        cls.addClassCleanup(cls.driver.quit)
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name).resolve()

    def page(self, text):
        path = self.folder / "page.html"
        path.write_text(f'<!DOCTYPE html><html><head><meta charset="utf-8"><link rel="icon" href="data:,"></head>'
                        f'<body><div class="contents">{text}</div></body></html>')
        return path

    def wrong(self, text):
        return check_pages.wrong_with(self.driver, self.page(text))

    def player(self, source):
        (self.folder / "player.js").write_text(source)
        return self.wrong(PLAYER + '<script src="player.js"></script>')

    def test_a_good_page(self):
        self.assertEqual(self.wrong('<p>2 * 3 <code>a**b</code></p><div style="overflow: auto; width: 90px">'
                                    '<div style="width: 900px; text-align: right">far</div></div>' +
                                    table(2, frame='class="table-frame"')), [])

    def test_what_is_wrong_is_found(self):
        faint = '<style>.dark-mode p { color: #222 } .dark-mode { background: black }</style>'
        for text, says in [
            ("<p>so **<code>a</code> b**</p>", "shows ** as"),
            ("<p>| a | 1 |</p>", "shows a row of a table"),
            ("<p>|---|</p>", "shows a row of a table"),
            ("<p>a |:---</p>", "shows a rule of a table"),
            ("<p>[x](y.md)</p>", "shows a link"),
            ("<p>&lt;!-- note --&gt;</p>", "shows a comment"),
            ("<details><summary>s</summary><p>**a**</p></details>", "shows ** as"),
            ('<p style="overflow: hidden; width: 50px; white-space: nowrap">much too long</p>', "cuts off 'much"),
            ('<p style="overflow: hidden; height: 5px">a line</p>', "cuts off 'a line'"),
            ('<p style="width: 600px; text-align: right">a</p>', "wider than its window, on a phone"),
            ('<div class="fragment" style="overflow: hidden; width: 9px"><div class="line">code</div></div>',
             "cuts off the code"),
            (table(1, frame='class="other"'), "has no frame"),
            (table(20), "px wider than its frame"),
            (table(6, frame='class="table-frame"'), "does not say that it scrolls, on a phone"),
            (table(6).replace("sticky", "static"), "scrolls its first column out of sight, on a phone"),
            (table(6).replace("overflow-x: auto", "overflow-x: hidden"), "does not scroll, on a phone"),
            ('<div class="table-frame"><table class="markdownTable"><tr><th>a</th></tr><tr><td>b</td><td>c</td></tr>'
             '</table></div>', "differ in length"),
            ('<p style="color: #999">faint</p>', "has a contrast of 2.8"),
            ('<p style="background: #0008">faint</p><p style="color: rgb(0 0 0 / 40%)">faint</p>', "has a contrast of"),
            (f'{DARK}{faint}<p>faint</p>', "in the dark theme, 'faint' (p) has a contrast of 1.3"),
            ('<input placeholder="find" style="background: #aaa">', "'find' has a contrast of"),
            ('<img src="none.png">', "does not show"),
            ('<script>throw new Error("gone")</script>', "console:"),
            ('<script src="none.js"></script>', "console:"),
        ]:
            with self.subTest(text):
                wrong = self.wrong(text)
                self.assertTrue(any(says in sentence for sentence in wrong), wrong)

    def test_the_player(self):
        source = (ROOT / "tools" / "site" / "player.js").read_text()
        self.assertEqual(self.player(source), [])
        self.assertIn("page.html: its player does not load", self.player(""))
        stuck = source.replace("show(at + by)", "show(at)")
        self.assertNotEqual(stuck, source)
        self.assertIn("page.html: its player does not step on from event 1", self.player(stuck))

    def test_sliders(self):
        def wrong(act):
            return self.wrong('<figure class="sliders"><input type="range" max="9"><table><tr><td>0</td></tr></table>'
                              '<script>document.querySelector("input").addEventListener("input", (event) => {'
                              f'{act} }});</script></figure>')

        self.assertEqual(wrong('document.querySelector("td").textContent = event.target.value;'), [])
        self.assertEqual(wrong(""), ["page.html: one of its sliders changes nothing"])
        self.assertEqual(self.wrong('<figure class="sliders"></figure>'), ["page.html: its sliders do not load"])

    def test_drawings(self):
        def wrong(text):
            (self.folder / "a-light.svg").write_text(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 90 40">'
                                                     f'<rect width="90" height="40" fill="#fff"/>{text}</svg>')
            return check_pages.wrong_drawings(self.driver, self.folder)

        self.assertEqual(wrong('<text x="2" y="20">short</text>'), [])
        self.assertRegex(wrong('<text x="2" y="20">much longer than it is wide</text>')[0], "svg cuts off 'much")
        self.assertRegex(wrong('<rect width="90" height="40" fill="#333"/><text x="2" y="20">a</text>')[0],
                         "'a' has a contrast of 1.66")

    def test_the_search(self):
        for lesson, found in (("Lesson", []), ("Guide", ["'halo' finds no lesson first", "'TMA' finds"])):
            (self.folder / "search-index.js").write_text(
                f'searchIndex = [["a.html", "A", "{lesson}", [["", "bank conflict", "swizzle TMA halo wgmma"]]]];')
            script = (ROOT / "tools" / "site" / "search.js").read_text()
            self.page(f'<input id="MSearchField"><script>{script}</script>').rename(self.folder / "index.html")
            wrong = check_pages.wrong_searches(self.driver, self.folder)
            self.assertEqual(bool(wrong), bool(found), wrong)
            for says in found:
                self.assertTrue(any(says in sentence for sentence in wrong), wrong)


if __name__ == "__main__":
    if not check_pages.available():
        sys.exit(check_pages.SKIPPED)
    unittest.main()
