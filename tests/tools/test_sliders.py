#!/usr/bin/env python3
"""The site's sliders show what their formulas in Python say. Exits with 77, for skipped, without Chromium."""
import html.parser
import itertools
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/site"))
import sliders  # noqa: E402

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if __name__ == "__main__" and not CHROMIUM:
    print("skipped: no Chromium")
    sys.exit(77)


class Figures(html.parser.HTMLParser):
    """Of each figure the numbers and texts of its results, and the labels of its sliders."""

    def __init__(self, text):
        super().__init__()
        self.figures, self.inside = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "figure":
            self.figures.append({"values": [], "texts": [], "ranges": [], "labels": []})
        elif tag == "td" and attributes.get("class") == "value":
            self.figures[-1]["values"].append(float(attributes["data-value"]))
            self.inside = "texts"
        elif tag == "input":
            self.figures[-1]["ranges"].append((attributes["type"], attributes["id"], attributes["aria-valuetext"]))
        elif tag == "label":
            self.figures[-1]["labels"].append(attributes["for"])

    def handle_data(self, data):
        if self.inside:
            self.figures[-1][self.inside].append(data)
            self.inside = ""


class Sliders(unittest.TestCase):
    @unittest.skipUnless(CHROMIUM, "no Chromium")
    def test_the_page_computes_what_python_does(self):
        starts = [(name, start) for name, slider in sliders.SLIDERS.items()
                  for start in itertools.product(*([0, i.start, len(i.values) - 1] for i in slider.inputs))]
        page = "".join(sliders.figure(*each) for each in starts)
        with tempfile.TemporaryDirectory() as name:
            path = pathlib.Path(name) / "page.html"
            path.write_text(f"<!doctype html><meta charset=utf-8><script>{(ROOT / 'tools/site/sliders.js').read_text()}"
                            f"</script><body>{page}")
            done = subprocess.run([CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
                                   f"--user-data-dir={name}/user", f"file://{path}"], capture_output=True, text=True,
                                  timeout=60)
        figures = Figures(done.stdout).figures
        self.assertEqual(len(figures), len(starts), done.stderr)
        for (name, start), figure in zip(starts, figures):
            slider = sliders.SLIDERS[name]
            settings = start if name == "winograd-error" else [i.values[at] for i, at in zip(slider.inputs, start)]
            wanted = sliders.values(name, settings)
            self.assertEqual(len(figure["values"]), len(wanted), name)
            for value, other in zip(figure["values"], wanted):
                self.assertAlmostEqual(value, other, delta=1e-12 * abs(other), msg=f"{name} {settings}")
            self.assertEqual(figure["labels"], [each[1] for each in figure["ranges"]], name)
            self.assertTrue(all(each[0] == "range" and each[2] for each in figure["ranges"]), name)
        first = figures[0]["texts"]
        self.assertEqual(first, [sliders.shown(*pair) for pair in zip(
            sliders.values("tile-1d", [32, 0]), sliders.SLIDERS["tile-1d"].rows)])

    def test_what_lessons_say(self):
        self.assertEqual(sliders.values("tile-1d", [256, 5])[:2], [44, 4 * 266 / 256])
        self.assertAlmostEqual(sliders.values("tile-2d", [32, 11])[1], 1.72, places=2)
        self.assertAlmostEqual(sliders.values("tile-2d", [64, 11])[1], 1.34, places=2)
        self.assertAlmostEqual(sliders.values("intensity", [12544, 64, 64])[0], 15.96, places=2)
        self.assertEqual(sliders.values("winograd-error", [0, 1]), [2.3e-07, 0.00074, 9, 4, 2.25])

    def test_a_page_without_javascript_has_a_table(self):
        for name, slider in sliders.SLIDERS.items():
            text = sliders.figure(name)
            self.assertIn("<noscript><table>", text)
            self.assertEqual(text.count("<tr>"), len(slider.still) + 1)


if __name__ == "__main__":
    unittest.main()
