#!/usr/bin/env python3
"""Checks a folder of HTML pages: every link, picture, script and style sheet, and every #anchor, must be there, and
nothing may be loaded from the network. python3 tools/site/check_links.py FOLDER lists what is not so, and exits with 1.
"""

import html.parser
import pathlib
import re
import sys
import urllib.parse

STYLE_URL = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""")
# The side bar and the search are made by scripts, from lists of pages.
SCRIPT_LINK = re.compile(r"""["']((?:\.\./)?[\w.+-]+\.html(?:#[^"'\s]*)?)["']""")


class Page(html.parser.HTMLParser):
    """What a page offers (anchors) and what it asks for: links, and resources that a browser loads with it."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.resources = set(), set(), set()
        self.in_style = False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.in_style = tag == "style"
        for name, value in attributes:
            if not value:
                continue
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value)
            elif name == "src" or (name == "href" and tag in ("link", "image", "use")) or name in ("poster", "data"):
                self.resources.add(value)
            elif name == "srcset":
                self.resources.update(part.split()[0] for part in value.split(","))
            elif name in ("href", "xlink:href"):
                self.links.add(value)
            elif name == "style":
                self.resources.update(style_urls(value))

    def handle_data(self, data):
        if self.in_style:
            self.resources.update(style_urls(data))

    def handle_endtag(self, tag):
        self.in_style = False


def style_urls(text):
    return {first or second for first, second in STYLE_URL.findall(text)}


def broken_links(folder):
    """Sentences, one for each thing that is wrong."""
    folder = folder.resolve()
    pages = {path: Page(path.read_text()) for path in sorted(folder.rglob("*.html"))}
    if not pages:
        return [f"{folder} holds no HTML page"]
    wrong = []

    def check(source, target):
        parts = urllib.parse.urlsplit(target)
        path = (source.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else source
        name = source.relative_to(folder)
        if folder not in path.parents:
            wrong.append(f"{name}: {target} leads out of the site")
        elif not path.is_file():
            wrong.append(f"{name}: {target} is not there")
        elif path in pages and parts.fragment:
            if urllib.parse.unquote(parts.fragment) not in pages[path].anchors:
                wrong.append(f"{name}: {target}: the page has no such anchor")

    def resource(source, target):
        if target.startswith(("data:", "javascript:")):
            return
        if re.match(r"([a-z][a-z+.-]*:)?//", target, re.IGNORECASE):
            wrong.append(f"{source.relative_to(folder)}: {target} would be loaded from the network")
        else:
            check(source, target)

    for path, page in pages.items():
        for target in sorted(page.links):
            if not re.match(r"(https?|mailto|javascript):", target):  # the network is not looked at
                check(path, target)
        for target in sorted(page.resources):
            resource(path, target)
    for path in sorted([*folder.rglob("*.css"), *folder.rglob("*.svg")]):
        for target in sorted(style_urls(path.read_text())):
            if not target.startswith("#"):
                resource(path, target)
    for path in sorted([*folder.glob("*.js"), *folder.glob("search/*.js")]):
        for target in sorted(set(SCRIPT_LINK.findall(path.read_text()))):
            check(path, target)
    return wrong


def told(program, wrong):
    """Prints what a program found wrong; its exit status."""
    for sentence in wrong:
        print(f"{program}: {sentence}", file=sys.stderr)
    return 1 if wrong else 0


def report(folder):
    """Prints what is wrong; the exit status."""
    return told("check_links.py", broken_links(pathlib.Path(folder)))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: check_links.py FOLDER")
    sys.exit(report(sys.argv[1]))
