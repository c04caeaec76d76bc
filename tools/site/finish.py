"""What is left to do to the pages that Doxygen wrote.

- Each file beside a lesson gets line anchors of its own: Doxygen gives all files on a page the same.
- A table stands in a frame that scrolls, and names of algorithms in it may wrap.
- search-index.js holds what every section of every page says. A page loads it as a script when somebody searches: so it
  works from a folder, where browsers let pages fetch no files.
"""

import html.parser
import json
import re

TABLE = re.compile(r'<table class="markdownTable">.*?</table>', re.DOTALL)
# "1.29× (IMPLICIT_PRECOMP_GEMM)" or "120.6 (plan 29 (eng5{}))".
ALGORITHM = re.compile(r"(>\s*[\d.,]+×?) \(((?:[^()<]|\([^()<]*\))*)\)(?=\s*</td>)")
NUMBERED = re.compile(r"<th[^>]*>no\.\s")
# Code: neither searched nor read as text.
CODE = re.compile(r'<div class="fragment">.*?</div><!-- fragment -->|<table class="diff.*?</table>', re.DOTALL)
SILENT = {"script", "style", "nav", "button", "aside", "svg"}
SILENT_CLASSES = {"toc", "permalink", "memproto", "memberdecls", "summary", "mlabels", "ttc", "navpath"}
VOID = {"br", "img", "input", "hr", "wbr", "link", "meta", "col"}


def line_anchor(place, number):
    """The anchor of a line of the file at a place among those beside a lesson."""
    return (f"f{place}-" if place else "") + f"l{number:05}"


def with_own_anchors(text):
    """Of the files beside a lesson, each after the first."""
    before, aside, rest = text.partition('<aside class="beside"')
    parts = rest.split("<h2>")
    for place, part in enumerate(parts[2:], 1):
        parts[place + 1] = re.sub(r'(id|name)="l(\d{5})"',
                                  lambda match, place=place: f'{match[1]}="{line_anchor(place, int(match[2]))}"', part)
    return before + aside + "<h2>".join(parts)


def framed(match):
    table = ALGORITHM.sub(lambda cell: f'{cell[1]} <small>{cell[2].replace("_", "_<wbr/>")}</small>', match[0])
    kind = " numbered" if NUMBERED.search(table) else ""
    return f'<div class="table-frame{kind}" tabindex="0">{table}</div>'


class Sections(html.parser.HTMLParser):
    """A page's title, and its sections: [anchor, heading, text]."""

    def __init__(self, text):
        super().__init__()
        self.title, self.sections = "", [["", "", []]]
        self.inside, self.silent, self.heading, self.anchor = [], 0, False, ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        classes = set((attributes.get("class") or "").split())
        if tag == "a" and attributes.get("id"):
            self.anchor = attributes["id"]
            if self.heading:
                self.sections[-1][0] = self.anchor
        if tag in VOID:
            return
        silent = tag in SILENT or bool(classes & SILENT_CLASSES)
        kind = "title" if tag == "div" and "title" in classes else \
            "heading" if tag in ("h1", "h2", "h3") and self.contents() else \
            "contents" if "contents" in classes else ""
        self.inside.append((tag, silent, kind))
        self.silent += silent
        if kind == "heading" and not self.silent:
            self.sections.append([self.anchor if tag == "h2" and "memtitle" in classes else "", "", []])
            self.heading = True

    def contents(self):
        return any(kind == "contents" for _, _, kind in self.inside)

    def handle_endtag(self, tag):
        while self.inside and any(open_tag == tag for open_tag, _, _ in self.inside):
            open_tag, silent, kind = self.inside.pop()
            self.silent -= silent
            if kind == "heading":
                self.heading = False
            if open_tag == tag:
                break

    def handle_data(self, data):
        if self.silent:
            return
        if any(kind == "title" for _, _, kind in self.inside):
            self.title += data
        elif self.heading:
            self.sections[-1][1] += data
        elif self.contents():
            self.sections[-1][2].append(data)


def plain(text):
    return re.sub(r"\s+", " ", text).strip()


def is_api(name):
    """Whether a page is of a type, a namespace or a header."""
    return bool(re.match(r"(class|struct|namespace)convladder|\w+_8hpp$", name))


def kind_of(name):
    """By which results are sorted: lessons before labs and guides, those before the rest."""
    if re.match(r"chapters-[\w-]*-lab$|solutions-", name):
        return "Lab" if name.startswith("chapters") else "Solution"
    return "Lesson" if name.startswith("chapters-") else "Guide"


def finish(folder, labels):
    """@param folder of the pages  @param labels of those that are written from Markdown"""
    index = []
    for path in sorted(folder.glob("*.html")):
        text = path.read_text()
        changed = with_own_anchors(TABLE.sub(framed, text))
        if changed != text:
            path.write_text(changed)
        if path.stem not in labels and not is_api(path.stem) or path.stem.endswith("-members"):
            continue
        page = Sections(CODE.sub("", changed))
        sections = [[anchor, plain(heading), plain(" ".join(words))] for anchor, heading, words in page.sections]
        index.append([path.name, plain(page.title), "API" if is_api(path.stem) else kind_of(path.stem),
                      [section for section in sections if section[1] or section[2]]])
    (folder / "search-index.js").write_text(
        "searchIndex = " + json.dumps(index, ensure_ascii=False, separators=(",", ":")) + ";\n")
