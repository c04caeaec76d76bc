#!/usr/bin/env python3
"""Checks a folder of HTML pages for what a reader would stumble over: Markdown that was not understood, in running text
(`**`, or a row of a table), and tables without a frame or with rows of different lengths.
The pages of the API, which Doxygen makes from comments, are left out.
python3 tools/site/check_pages.py FOLDER lists what is wrong, and exits with 1.
"""

import html.parser
import pathlib
import re
import sys

import check_links
from finish import CODE, is_api

LITERAL = {"**": re.compile(r"\*\*"), "a row of a table": re.compile(r"^\s*\|.*\|", re.MULTILINE),
           "a link": re.compile(r"\]\(\S+\)")}
FORMULA = re.compile(r"\\\(.*?\\\)|\\\[.*?\\\]", re.DOTALL)
VERBATIM = {"code", "pre", "script", "style", "title"}


class Page(html.parser.HTMLParser):
    """Where Markdown stands in a page's text, and its tables."""

    def __init__(self, text):
        super().__init__()
        self.wrong, self.verbatim, self.frames, self.lengths = [], 0, [], None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        classes = (dict(attributes).get("class") or "").split()
        if tag == "div":
            self.frames.append("table-frame" in classes)
        self.verbatim += tag in VERBATIM
        if tag == "table" and "markdownTable" in classes:
            self.lengths = []
            if not (self.frames and self.frames[-1]):
                self.wrong.append("a table without a frame")
        elif tag == "tr" and self.lengths is not None:
            self.lengths.append(0)
        elif tag in ("td", "th") and self.lengths:
            self.lengths[-1] += int(dict(attributes).get("colspan") or 1)

    def handle_endtag(self, tag):
        if tag == "div" and self.frames:
            self.frames.pop()
        elif tag in VERBATIM:
            self.verbatim -= 1
        elif tag == "table" and self.lengths is not None:
            if len(set(self.lengths)) > 1:
                self.wrong.append("a table whose rows differ in length")
            self.lengths = None

    def handle_data(self, data):
        if self.verbatim == 0:
            self.wrong += [f"shows {name} as it was written: {' '.join(data.split())[:60]}"
                           for name, pattern in LITERAL.items() if pattern.search(FORMULA.sub("", data))]


def wrong_pages(folder):
    """Sentences, one for each thing that is wrong."""
    pages = [path for path in sorted(pathlib.Path(folder).glob("*.html"))
             if not is_api(re.sub("-members$", "", path.stem)) and not path.stem.endswith("_source")]
    return [f"{path.name}: {what}" for path in pages for what in Page(CODE.sub("", path.read_text())).wrong]


def report(folder):
    """Prints what is wrong; the exit status."""
    return check_links.told("check_pages.py", wrong_pages(folder))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: check_pages.py FOLDER")
    sys.exit(report(sys.argv[1]))
