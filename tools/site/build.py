#!/usr/bin/env python3
"""Builds the site of the documentation: `./lab docs` runs it, and it writes build/docs/html.

Doxygen makes the pages. What it does not know of GitHub's Markdown is rewritten before, in a copy of each page:

- relative links, to pages, folders and files of the repository. A file without a page of its own gets one;
- anchors of headings, named as GitHub names them;
- formulas: $...$ and ```math;
- drawings: one copy for each theme, so that they follow the site's switch;
- links between the chapters, in the order of their numbers, the kernel beside its lesson, links from the numbered steps
  to its lines, and what it changes in the stage before;
- the contents of long pages.

finish.py then sees to the pages that Doxygen wrote: their tables, and the index of the search.
"""

import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import changes  # noqa: E402
import check_links  # noqa: E402
import finish  # noqa: E402
import sliders  # noqa: E402
import trace_figure  # noqa: E402
from handout import LEFT_OUT  # noqa: E402  of the students' copy: a link to it is plain text there

SITE = ROOT / "tools" / "site"
# What formulas need of MathJax: TeX in, SVG out.
MATHJAX_PARTS = ["MathJax.js", "extensions/tex2jax.js", "extensions/TeX", "extensions/MathEvents.js",
                 "extensions/AssistiveMML.js", "extensions/toMathML.js", "jax/element/mml", "jax/input/TeX",
                 "jax/output/SVG/jax.js", "jax/output/SVG/config.js", "jax/output/SVG/autoload",
                 "jax/output/SVG/fonts/TeX"]
# The simulator's insides, between its own parts, and what it has by the names of common/kernel, which documents them: no
# pages of the API.
INTERNAL = [pathlib.Path("common/simt") / name
            for name in ("async.hpp", "machine.hpp", "fiber.hpp", "warp.hpp", "hopper.hpp", "mma.hpp")]
RESULTS = pathlib.Path("docs/results/README.md")
FIRST_PAGE = pathlib.Path("tools/site/first-page.md")
README = pathlib.Path("README.md")
TITLES = {README: "The whole ladder, and how to run it"}  # of pages that have another where they stand alone
# Three ways in, by what a reader wants; a page that is not in this copy is not offered.
WAYS = [
    ("Learn one technique", "Choose one idea. Its lesson has a drawing, the kernel, and what it brought and why.",
     ["docs/techniques.md", "chapters/03-tiled-1d/README.md", "chapters/09-register-2d/README.md",
      "chapters/26-winograd-tensor-core/README.md", "chapters/32-implicit-gemm-hopper/README.md", "docs/glossary.md"]),
    ("Run the whole ladder", "Count every kernel in the simulator, or time it on your GPU beside cuDNN.",
     ["README.md", "chapters/00-the-machine/README.md", "chapters/01-naive-1d/README.md", "docs/students.md",
      "docs/cuda-without-a-gpu.md", "docs/sim.md", "docs/gallery.md", "docs/simulator.md", "docs/results/README.md",
      "docs/gpus.md", "docs/measure-your-gpu.md"]),
    ("Teach a course", "Hand out labs, have them graded, and write your own.",
     ["docs/classroom/syllabus.md", "docs/instructors.md", "docs/classroom/textbooks.md", "docs/instructors-labs.md"]),
]

FENCE = re.compile(r"^( *)(`{3,}|~{3,})\s*([\w+-]*)\s*$")
HEADING = re.compile(r"^(#{1,6}) +(.*?) *$")
TRACE = re.compile(r"<!-- trace(?: (\d\d[a-z]?))? -->")  # a player: the lesson's own, or that of 03, of step 32c
SLIDER = re.compile(r"<!-- slider ([\w-]+) -->")  # likewise: a figure of sliders.py
COMMENT = re.compile(r"^ *<!--.*--> *$")
# What tools/figures.py and its check put around figures in prose. Doxygen would drop the space behind such a comment.
OF_FIGURES = re.compile(r"<!--(?:=.*?|derived|quoted [\w-]+|/)-->", re.DOTALL)
DRAWING = re.compile(r"^( *)!\[([^\]]*)\]\(([^)\s]+\.svg)\) *$")
DETAILS = re.compile(r"^( *)(<details>.*|</details>|<summary>.*</summary>) *$")
# Bold text that begins or ends with code, which Doxygen would show with its asterisks.
BOLD_CODE = re.compile(r"\*\*(`[^`]+`[^*]*|[^*`\s][^*]*`[^`]+`[^\w\s*]?)\*\*")
WAYS_IN = "<!-- ways in -->"
# "step 3" of this lesson's kernel: neither "20, step 3" nor "step 3 of 20".
PROSE_STEP = re.compile(r"(?<!each )(?<!\d, )(?<!['’]s )\b([Ss]tep )([1-9]\d?)\b(?!\.\d| of (?:lesson )?\[?\d)")
STEP = re.compile(r"^([1-9]\d?)\. (?=\S)")
LIST_OF_STEPS = "The change"  # the section whose numbered lists are those of the kernel's comments
SHORT_DIFF = 80  # lines, up to which it stands open
CONTENTS = 4  # headings, from which on a page has a list of them
# What is rewritten in running text. A code span is found to be passed over.
SPAN = re.compile(r"""
    \$`(?P<quoted>[^`]+)`\$
    | (?P<code>(?P<ticks>`+).*?(?P=ticks))
    | (?<![\w$\\])\$(?P<math>[^\s$](?:[^$]*[^\s$])?)\$(?!\w)
    | (?<=\])\((?P<target>[^)\s]+)\)
    | (?P<command>[@\\])(?=\w)
    """, re.DOTALL | re.VERBOSE)
HIGHLIGHTED = {"cpp": ".cpp", "c++": ".cpp", "cuda": ".cpp", "python": ".py"}
# A field of a struct may stand without a comment where its name and type say all. Every other warning is an error.
PLAIN_FIELD = re.compile(r"\(variable\) of (struct|class) \S+ is not documented\.$")


class SiteError(Exception):
    """Something that the writer of a page must mend."""


def slug(text):
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def anchor(heading):
    """The anchor that GitHub gives a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def block(text, indent=""):
    """HTML that Doxygen passes on, as a paragraph of its own."""
    return f"\n{indent}\\htmlonly[block]\n{indent}{text}\n{indent}\\endhtmlonly\n"


class TextLine(NamedTuple):
    text: str
    fenced: bool  # in a block of code


def unfenced(text):
    """The lines of a page that was converted, and which of them are code, or HTML that Doxygen passes on."""
    end = None
    for line in text.split("\n"):
        fence = re.match(r" *(`{3,}|~{3,})", line)
        begins = fence and fence[1] or ("\\endhtmlonly" if line.strip() == "\\htmlonly[block]" else
                                        "\\f]" if line.strip() == "\\f[" else None)
        yield TextLine(line, bool(end or begins))
        if end:
            if line.strip() == end or end[0] in "`~" and line.strip().startswith(end):
                end = None
        else:
            end = begins


def diff_of(groups, unfolded):
    """Groups of changes in HTML, with a switch between two views. site.js picks one; without it, it is inline. Rows are
    on lines of their own: Doxygen reads no line of half a megabyte."""
    lines = "\n".join
    views = [("inline", "Inline", changes.inline), ("side-by-side", "Side by side", changes.side_by_side)]
    switch = "".join(f'<label><input type="radio" name="diff" value="{kind}"{" checked" if kind == "inline" else ""}>'
                     f'{title}</label>' for kind, title, _ in views)
    tables = "".join(f'<div class="table-frame {kind}" tabindex="0"><table class="diff {kind}">{lines(rows(groups))}'
                     '</table></div>' for kind, _, rows in views)
    return (f'<details class="changes"{" open" if unfolded else ""}><summary>The diff</summary>'
            f'<fieldset class="switch"><legend>Show it</legend>{switch}</fieldset>{tables}</details>')


class Chapter:
    def __init__(self, folder):
        self.folder = folder.relative_to(ROOT)
        number, _, name = folder.name.partition("-")
        manifest = folder / "stage.json"
        stage = json.loads(manifest.read_text()) if manifest.is_file() else {"number": int(number), "name": name}
        self.number, self.name, self.idea = stage["number"], stage["name"], stage.get("idea", "")
        self.lesson = self.folder / "README.md"
        self.lab = self.folder / "LAB.md"
        self.solution = pathlib.Path("solutions") / self.folder.name / "README.md"
        self.previous = stage.get("previous")
        self.kernels = [path.relative_to(ROOT) for path in changes.kernels_in(ROOT / self.folder)]
        self.exercises = [path.relative_to(ROOT) for path in changes.sources_in(ROOT / self.folder)
                          if path.relative_to(ROOT) not in self.kernels]
        self.solved = [path.relative_to(ROOT) for path in changes.sources_in(ROOT / self.solution.parent)]

    def lines_of_step(self, number):
        """Where comments of the kernel have a step's number: [(file, line)] in order. A list of steps is none."""
        step = re.compile(rf"//(?: |-)*(?:\S.*[.,:] )?{number}\.(?=[\s,]|$)")
        return [(path, line) for path in self.kernels
                for line, text in enumerate((ROOT / path).read_text().splitlines(), 1)
                if step.search(text) and not re.match(r"//   ", text)]

    def pages(self):
        return [path for path in (self.lesson, self.lab, self.solution) if (ROOT / path).is_file()]


class Site:
    def __init__(self, output, awesome, mathjax):
        self.output, self.awesome, self.mathjax = output, awesome, mathjax
        self.html = output / "html"
        self.work = output / "work"
        self.pages = self.work / "pages"
        self.chapters = sorted((Chapter(path.parent) for path in ROOT.glob("chapters/[0-9][0-9]-*/README.md")),
                               key=lambda chapter: chapter.number)
        self.headers = {path.relative_to(ROOT) for path in ROOT.glob("common/**/*.hpp")} - set(INTERNAL)
        of_chapters = [page for chapter in self.chapters for page in chapter.pages()]
        guides = [path.relative_to(ROOT) for path in [ROOT / README, ROOT / "examples/README.md",
                                                      *sorted(ROOT.glob("docs/**/*.md")),
                                                      ROOT / "CONTRIBUTING.md"]]
        self.guides = [path for path in guides if path != RESULTS and (ROOT / path).is_file()]
        self.markdown = [FIRST_PAGE, RESULTS, *self.guides, *of_chapters]
        self.files = []  # files and folders that get a page because one links to them
        self.labels = {}
        self.headings = {}  # of each page: [(level, text, anchor)]

    # ---- Names of pages ---------------------------------------------------------------------------------------------

    def label(self, path):
        """The name of the page of a file or folder."""
        if path == FIRST_PAGE:
            return "index"
        if path in self.markdown:
            name = slug(str(path.parent if path.name == "README.md" and path != README else path.with_suffix("")))
        else:
            name = "file-" + slug(str(path))
        if self.labels.setdefault(name, path) != path:
            raise SiteError(f"{path} and {self.labels[name]} would have one page: rename one of them")
        return name

    def link(self, page, target):
        """What a link of a page becomes: a target on the site, or None for plain text."""
        if re.match(r"[a-z]+:", target):
            return target
        name, _, fragment = target.partition("#")
        if not name:
            return f"{self.label(page)}.html#{self.label(page)}--{fragment}"
        path = pathlib.Path(os.path.normpath(page.parent / name))
        if (ROOT / path).is_dir() and path / "README.md" in self.markdown:
            path = path / "README.md"
        if path in self.markdown:
            return f"{self.label(path)}.html" + (f"#{self.label(path)}--{fragment}" if fragment else "")
        if not (ROOT / path).exists() or path.parts[0] == "..":
            if f"{path}/".startswith(LEFT_OUT):
                return None
            raise SiteError(f"{page}: the link to {target} leads nowhere")
        if path in self.headers:
            return self.doxygen_page(path)
        line = re.fullmatch(r"L(\d+)(?:-L\d+)?", fragment)
        beside = next((files for chapter in self.chapters if path in (files := self.sources(chapter, page))), None)
        if beside:
            place = finish.line_anchor(beside.index(path), int(line[1])) if line else "kernel"
            return f"{self.label(page)}.html#{place}"
        if path.suffix in (".svg", ".png"):
            return self.copy(path)
        if path not in self.files:
            self.files.append(path)
        return f"{self.label(path)}.html" + (f"#l{int(line[1]):05}" if line else "")

    def doxygen_page(self, header):
        """Doxygen's name for a header's page: headers of one name are told apart by what their paths do not share."""
        of_one_name = [path for path in self.headers if path.name == header.name]
        shared = os.path.commonpath([path.parent for path in of_one_name])
        name = str(header.relative_to(shared)) if len(of_one_name) > 1 else header.name
        return name.replace("_", "__").replace(".", "_8").replace("/", "_2") + ".html"

    def copy(self, path):
        """The name of a picture's copy on the site."""
        name = slug(str(path.with_suffix(""))) + path.suffix
        shutil.copy(ROOT / path, self.html / name)
        return name

    # ---- Markdown ---------------------------------------------------------------------------------------------------

    def text(self, page, text):
        """Running text: links, formulas, and what Doxygen would take for a command."""
        def span(match):
            if match["code"]:  # in a table Doxygen would keep the backslash; and a quote would end the code
                code = html.escape(match["code"].strip("`"), quote=False).replace("\\|", "&#124;")
                return f"<code>{code}</code>" if re.search(r"\\\||'", match["code"]) else match["code"]
            if match["quoted"] or match["math"]:
                return rf"\f${match['quoted'] or match['math']}\f$"
            if match["command"]:
                return "\\" + match["command"]
            target = self.link(page, match["target"])
            return "(" + (target or "#left-out") + ")"

        text = SPAN.sub(span, BOLD_CODE.sub(r"<b>\1</b>", text))
        return re.sub(r"\[([^\]]*)\]\(#left-out\)", r"\1", text)

    def drawing(self, page, indent, alt, name):
        """A picture in a copy for each theme: its questions after the theme are answered."""
        path = pathlib.Path(os.path.normpath(page.parent / name))
        if not (ROOT / path).is_file():
            raise SiteError(f"{page}: there is no picture {name}")
        source = (ROOT / path).read_text()
        lines = []
        for theme in ("light", "dark"):
            answered = re.sub(r"\(prefers-color-scheme: *(light|dark)\)",
                              lambda match, theme=theme: "all" if match[1] == theme else "not all", source)
            copy = f"{slug(str(path.with_suffix('')))}-{theme}.svg"
            (self.html / copy).write_text(answered)
            lines.append(f'<img class="drawing {theme}-only" src="{copy}" alt="{html.escape(alt)}">')
        return block(f'<div class="drawing-frame">{"".join(lines)}</div>', indent)

    def convert(self, page):
        """A page's title and its text for Doxygen."""
        title, lines, paragraph, fence, anchors = None, [], [], None, {}
        self.headings[page] = []

        def flush():
            if paragraph:
                lines.append(self.text(page, "\n".join(paragraph)))
                paragraph.clear()

        for line in OF_FIGURES.sub("", (ROOT / page).read_text()).splitlines():
            mark = FENCE.match(line)
            if fence:
                if mark and mark[2].startswith(fence[2]) and not mark[3]:
                    lines.append(f"{fence[1]}\\f]" if fence[3] == "math" else line)
                    fence = None
                else:
                    lines.append(line)
            elif mark:
                flush()
                fence = mark
                language = HIGHLIGHTED.get(mark[3], ".unparsed")
                lines.append(f"{mark[1]}\\f[" if mark[3] == "math" else f"{mark[1]}{mark[2]}{{{language}}}")
            elif trace := TRACE.fullmatch(line):
                flush()
                lines.append(block(trace_figure.figure(trace[1] or page.parent.name[:2])))
            elif line == WAYS_IN:
                flush()
                lines.append(self.ways_in())
            elif slider := SLIDER.fullmatch(line):
                flush()
                if slider[1] not in sliders.SLIDERS:
                    raise SiteError(f"{page}: there is no slider {slider[1]}")
                lines.append(block(sliders.figure(slider[1])))
            elif COMMENT.match(line):
                continue
            elif heading := HEADING.match(line):
                flush()
                if heading[1] == "#" and title is None:
                    title = heading[2]
                    continue
                name = anchor(heading[2])
                anchors[name] = anchors.get(name, -1) + 1
                name += f"-{anchors[name]}" if anchors[name] else ""
                lines.append(f"{heading[1][1:]} {self.text(page, heading[2])} {{#{self.label(page)}--{name}}}")
                self.headings[page].append((len(heading[1]), re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[2]),
                                            f"{self.label(page)}--{name}"))
            elif drawing := DRAWING.match(line):
                flush()
                lines.append(self.drawing(page, *drawing.groups()))
            elif details := DETAILS.match(line):
                flush()
                lines.append(block(details[2], details[1]))
            else:
                paragraph.append(line)
        if fence:
            raise SiteError(f"{page}: a block of code has no end")
        flush()
        if title is None:
            raise SiteError(f"{page}: it needs a title, a line that begins with '# '")
        return TITLES.get(page, title), "\n".join(lines) + "\n"

    # ---- Pages ------------------------------------------------------------------------------------------------------

    def write(self, label, title, text):
        head = f"@mainpage {title}\n" if label == "index" else f"# {title} {{#{label}}}\n"
        (self.pages / f"{label}.md").write_text(head + "\n" + text)

    def title(self, path):
        lines = (ROOT / path).read_text().splitlines()
        return TITLES.get(path) or next((line[2:] for line in lines if line.startswith("# ")), str(path))

    def steps(self, place, page):
        """Links to the chapter before and after, and between the pages of this one."""
        chapter = self.chapters[place]
        kinds = [("Lesson", chapter.lesson), ("Lab", chapter.lab)]
        if page == chapter.solution:
            kinds.append(("Solution", chapter.solution))
        here = [f"<b>{kind}</b>" if path == page else f'<a href="{self.label(path)}.html">{kind}</a>'
                for kind, path in kinds if path in chapter.pages()]
        if self.sources(chapter, page):
            name = "Kernel" if page == chapter.lesson else "Code"
            here.append(f'<a href="{self.label(page)}.html#kernel">{name}</a>')
        if page == chapter.lesson and any(name.endswith("--changes") for _, _, name in self.headings.get(page, [])):
            here.append(f'<a href="{self.label(page)}.html#{self.label(page)}--changes">Changes</a>')

        def other(step, rel, text):
            if not 0 <= place + step < len(self.chapters):
                return "<span></span>"
            target = self.chapters[place + step]
            path = target.lab if page == chapter.lab and target.lab in target.pages() else target.lesson
            name = f"{target.number:02} {html.escape(target.name)}"
            return f'<a rel="{rel}" href="{self.label(path)}.html">{text.format(name)}</a>'

        return block(f'<nav class="steps" aria-label="Chapters">{other(-1, "prev", "← {}")}'
                     f'<span>{" · ".join(here)}</span>{other(1, "next", "{} →")}</nav>')

    def sources(self, chapter, page):
        """The source files that belong beside a page."""
        return {chapter.lesson: chapter.kernels, chapter.lab: chapter.exercises,
                chapter.solution: chapter.solved}.get(page, [])

    def beside(self, files):
        """Source files for the panel beside a lesson."""
        if not files:
            return ""
        parts = [block('<aside class="beside" id="kernel">')]
        button = '<button type="button">Close</button>'
        for path in files:
            parts += [block(f"<h2>{html.escape(path.name)}{button}</h2>"), f"\\includelineno {path}\n"]
            button = ""
        return "".join([*parts, block("</aside>")])

    def contents(self, page):
        """The headings of a long page, twice: beside it, and to unfold where there is no room for that (site.css)."""
        found = [heading for heading in self.headings[page] if heading[0] in (2, 3)]
        if len([level for level, _, _ in found if level == 2]) < CONTENTS:
            return ""
        items = "".join(f'<li class="level{level}"><a href="#{name}">{html.escape(text.replace("`", ""))}</a></li>'
                        for level, text, name in found)
        return block(f'<nav class="toc" aria-label="On this page"><b>On this page</b><ul>{items}</ul></nav>'
                     f'<details class="toc"><summary>On this page</summary><ul>{items}</ul></details>')

    def with_steps(self, chapter, text):
        """A lesson with links to the kernel's lines: from the numbered steps of "The change" to those that have their
        numbers, and from "step 3" anywhere in its prose.

        Where the section has several lists, a number's first line is the first list's, and so on.
        """
        def link(found, words, attributes=""):
            path, number = found
            return (f'\\htmlonly <a{attributes} href="#{finish.line_anchor(chapter.kernels.index(path), number)}" '
                    f'title="{path.name}, line {number}">{words}</a>\\endhtmlonly')

        def in_prose(match):
            found = chapter.lines_of_step(match[2])
            return link(found[0], match[1] + match[2], ' class="step-named"') if found else match[0]

        section, lists, lines = "", 0, []
        for line in unfenced(text):
            if heading := re.match(r"# (.*?) *\{#", line.text):
                section = heading[1]
            if line.fenced or line.text.startswith(("#", "\\", "<")):
                lines.append(line.text)
                continue
            step = STEP.match(line.text) if section == LIST_OF_STEPS else None
            if step:
                lists += step[1] == "1"
                found = chapter.lines_of_step(step[1])
                if len(found) >= lists > 0:
                    number = found[lists - 1][1]
                    lines.append(step[0] + link(found[lists - 1], f"line {number}", ' class="step"') + " " +
                                 PROSE_STEP.sub(in_prose, line.text[step.end():]))
                    continue
            lines.append(PROSE_STEP.sub(in_prose, line.text))
        return "\n".join(lines)

    def with_changes(self, chapter, text):
        """A lesson with all that its kernel changes in that of the stage before, at the end of the section that tells
        of it."""
        previous = next((other for other in self.chapters if other.number == chapter.previous), None)
        if not previous:
            return text
        old, new = (changes.lines_of(ROOT / other.folder) for other in (previous, chapter))
        groups = list(changes.hunks(old, new))
        came, went = changes.counts(old, new)
        name = f"{previous.number:02} {previous.name}"
        label = f"{self.label(chapter.lesson)}--changes"
        place = next((index + 1 for index, heading in enumerate(self.headings[chapter.lesson])
                      if heading[0] == 2 and heading[1] == LIST_OF_STEPS), 0)
        after = next((name for level, _, name in self.headings[chapter.lesson][place:] if place and level == 2), None)
        section = (f"## All that changed since {name} {{#{label}}}\n\n"
                   f"Lines of [{name}]({self.label(previous.lesson)}.html) that go: {went}; lines that come: {came}. "
                   "Indentation does not count, nor the stage's own name, nor the comment at the head of a file. "
                   f"`./lab diff {previous.number} {chapter.number}` prints the same.\n" +
                   block(diff_of(groups, unfolded=came + went <= SHORT_DIFF)) + "\n")
        entry = (3, f"All that changed since {name}", label)
        if not after:
            self.headings[chapter.lesson].append(entry)
            return f"{text}\n{section}"
        names = [name for _, _, name in self.headings[chapter.lesson]]
        self.headings[chapter.lesson].insert(names.index(after), entry)
        lines = text.split("\n")
        index = next(index for index, line in enumerate(lines) if line.endswith(f"{{#{after}}}"))
        return "\n".join([*lines[:index], section, *lines[index:]])

    def solution_link(self, chapter):
        """At the end of the lab, folded."""
        if chapter.solution not in chapter.pages():
            return ""
        return block('<details class="solution"><summary>Done, or stuck for long?</summary><p>'
                     f'<a href="{self.label(chapter.solution)}.html">The worked solution</a> explains itself. '
                     "You learn more from your own first.</p></details>")

    def write_chapters(self):
        for place, chapter in enumerate(self.chapters):
            for page in chapter.pages():
                title, text = self.convert(page)
                if page == chapter.lesson:
                    text = self.with_changes(chapter, self.with_steps(chapter, text))
                if page == chapter.lab:
                    text += self.solution_link(chapter)
                steps = self.steps(place, page)
                text = block('<div class="lesson">') + steps + self.contents(page) + text + steps
                follows = chapter.pages()[chapter.pages().index(page) + 1:][:1]
                if follows and page == chapter.lesson:
                    text += f"Next in this chapter: \\subpage {self.label(follows[0])}\n"
                self.write(self.label(page), title, text + block("</div>") + self.beside(self.sources(chapter, page)))

    def ways_in(self):
        """The cards of the first page."""
        cards = []
        for way, what, paths in WAYS:
            links = "".join(f'<li><a href="{self.label(path)}.html">{html.escape(self.title(path))}</a></li>'
                            for path in map(pathlib.Path, paths) if path in self.markdown)
            if links:
                cards.append(f"<div><h2>{way}</h2><p>{what}</p><ul>{links}</ul></div>")
        return block(f'<nav class="ways" aria-label="Ways in">{"".join(cards)}</nav>')

    def source_page(self, path):
        if (ROOT / path).is_dir():
            entries = [entry.relative_to(ROOT) for entry in sorted((ROOT / path).iterdir())
                       if not entry.name.startswith((".", "__"))]
            lines = []
            for entry in entries:
                name = f"`{entry.name}`" if (ROOT / entry).is_file() else f"`{entry.name}/`"
                target = self.link(path / "listing", entry.name)
                lines.append(f"- [{name}]({target})\n")
            return "".join(lines)
        return f"\\includelineno {path}\n"

    def write_pages(self):
        for folder in (self.work, self.html):
            shutil.rmtree(folder, ignore_errors=True)
        self.pages.mkdir(parents=True)
        self.html.mkdir()
        self.write_chapters()
        for path in [*self.guides, RESULTS]:
            title, text = self.convert(path)
            self.write(self.label(path), title, self.contents(path) + text)
        title, text = self.convert(FIRST_PAGE)
        for path in self.files:  # grows while folders are written
            self.write(self.label(path), str(path), self.source_page(path))

        def listing(label, title, paths):
            self.write(label, title, "".join(f"- \\subpage {self.label(path)}\n" for path in paths))

        self.write("lessons", "Lessons", "".join(
            f"- \\subpage {self.label(chapter.lesson)}\n\n  {chapter.idea}\n\n" for chapter in self.chapters))
        listing("guides", "Guides", self.guides)
        listing("repository", "Other files", sorted(self.files))
        text += ("\n# All of this site {#index--on-this-site}\n\n- \\subpage lessons\n- \\subpage guides\n"
                 f"- \\subpage {self.label(pathlib.Path('docs/results/README.md'))}\n- \\subpage repository\n")
        self.write("index", title, text)

    def navigation(self):
        """The side bar, which on a phone is the menu: Doxygen's layout of it."""
        def escape(title):  # of the entities Doxygen knows few
            return html.escape(title, quote=False).replace('"', "&quot;")

        def tab(title, path):
            return f'<tab type="user" title="{escape(title)}" url="{self.label(path)}.html"/>'

        def group(title, url, tabs):
            return f'<tab type="usergroup" title="{escape(title)}" url="{url}.html">{"".join(tabs)}</tab>'

        lessons = []
        for chapter in self.chapters:
            name = f"{chapter.number:02} {chapter.name}"
            more = [tab("Lab", chapter.lab)] if chapter.lab in chapter.pages() else []
            lessons.append(group(name, self.label(chapter.lesson), more) if more else tab(name, chapter.lesson))
        return "".join([
            '<navindex><tab type="mainpage" title="ConvLadder"/><tab type="pages" visible="no"/>',
            group("Lessons", "lessons", lessons),
            group("Guides", "guides", [tab(self.title(path), path) for path in self.guides]),
            tab("Results", RESULTS),
            '<tab type="usergroup" title="API"><tab type="filelist" title="Headers"/>'
            '<tab type="classlist" title="Types"/></tab></navindex>',
        ])

    # ---- Doxygen ----------------------------------------------------------------------------------------------------

    def run_doxygen(self):
        version = subprocess.run(["doxygen", "--version"], capture_output=True, text=True, check=True).stdout.split()[0]
        header, layout, doxyfile = (self.work / name for name in ("header.html", "layout.xml", "Doxyfile"))
        subprocess.run(["doxygen", "-w", "html", header.name, "footer.html", "style.css"], cwd=self.work, check=True,
                       capture_output=True)
        header.write_text(header.read_text()
                          .replace("</head>", (SITE / "head.html").read_text() + "</head>")
                          .replace(" </tr>", (SITE / "search.html").read_text() + " </tr>", 1))
        subprocess.run(["doxygen", "-l", layout], check=True, capture_output=True)
        layout.write_text(re.sub(r" *<navindex>.*</navindex>\n", lambda _: self.navigation(),
                                 layout.read_text(), flags=re.DOTALL))
        settings = {
            "OUTPUT_DIRECTORY": [self.output],
            "HTML_OUTPUT": [self.html.name],
            "INPUT": [self.pages, ROOT / "common"],
            "EXCLUDE": [ROOT / path for path in INTERNAL],
            "STRIP_FROM_PATH": [self.pages, ROOT],
            "EXAMPLE_PATH": [ROOT],
            "HTML_HEADER": [header],
            "HTML_FOOTER": [SITE / "footer.html"],
            "LAYOUT_FILE": [layout],
            "MATHJAX_CODEFILE": [SITE / "mathjax.js"],
            "HTML_EXTRA_STYLESHEET": [
                *(self.awesome / f"doxygen-awesome{part}.css"
                  for part in ("", "-sidebar-only", "-sidebar-only-darkmode-toggle")),
                SITE / "site.css", SITE / "player.css", SITE / "sliders.css"],
            "HTML_EXTRA_FILES": [
                *(self.awesome / f"doxygen-awesome-{part}.js" for part in ("darkmode-toggle", "fragment-copy-button")),
                SITE / "site.js", SITE / "search.js", SITE / "player.js", SITE / "sliders.js"],
        }
        if tuple(map(int, version.split("."))) >= (1, 9, 5):
            settings["HTML_COLORSTYLE"] = ["LIGHT"]  # the dark theme is doxygen-awesome's
        lines = [f"{key} = " + " ".join(f'"{value}"' for value in values) for key, values in settings.items()]
        doxyfile.write_text((SITE / "Doxyfile").read_text() + "\n".join(lines) + "\n")
        done = subprocess.run(["doxygen", doxyfile], cwd=ROOT, capture_output=True, text=True)
        warnings = [line for line in done.stderr.splitlines() if line.strip() and not PLAIN_FIELD.search(line)]
        if done.returncode:
            warnings.append("Doxygen failed")
        return warnings

    def copy_mathjax(self):
        """Where there are formulas only: Doxygen asks every page to load it."""
        script = re.compile(r'<script type="text/x-mathjax-config">.*?MathJax\.js"></script>\n', re.DOTALL)
        for page in self.html.rglob("*.html"):
            text = page.read_text()
            if 'class="formula' not in text and "\\(" not in text:  # displayed, or within a line
                page.write_text(script.sub("", text))
        for part in MATHJAX_PARTS:
            target = self.html / "mathjax" / part
            target.parent.mkdir(parents=True, exist_ok=True)
            if (self.mathjax / part).is_dir():
                shutil.copytree(self.mathjax / part, target)
            else:
                shutil.copy(self.mathjax / part, target)


def main():
    if len(sys.argv) != 4:
        sys.exit("usage: build.py FOLDER AWESOME MATHJAX: writes the site into FOLDER/html, with doxygen-awesome-css "
                 "and MathJax 2 from the folders that hold them; ./lab docs knows where")
    output, awesome, mathjax = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    for tool, found in [("doxygen", shutil.which("doxygen")),
                        ("doxygen-awesome-css", (awesome / "doxygen-awesome.css").is_file()),
                        ("libjs-mathjax (MathJax 2)", (mathjax / "MathJax.js").is_file())]:
        if not found:
            print(f"build.py: {tool} is missing: install the package of that name", file=sys.stderr)
            sys.exit(2)
    site = Site(output, awesome, mathjax)
    try:
        site.write_pages()
        warnings = site.run_doxygen()
        site.copy_mathjax()
        finish.finish(site.html, {site.label(page) for page in site.markdown})
    except SiteError as error:
        sys.exit(f"build.py: {error}")
    for warning in warnings:
        print(f"build.py: {warning}", file=sys.stderr)
    broken = check_links.report(site.html)
    sys.exit(1 if warnings or broken else 0)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
