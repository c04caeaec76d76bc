#!/usr/bin/env python3
"""Holds the lessons to their template (CONTRIBUTING.md, "A lesson"), naming the page and what it lacks.

What is looked at: the sections and their order; the idea that comes first; 1,200 to 2,500 words of prose, without code
and tables, or up to 3,500 where the chapter has steps; a drawing besides the heat map; links to the glossary; tables of
at most MOST_ROWS rows. And that quoted code is the tree's: a block of ```cpp is in the chapter's sources, its steps
included, or those that it builds on; a block of ```diff takes its `-` lines from the stage before or a step, its `+`
lines from this one. Lines of `...` leave something out. An illustration that is nowhere in the tree is a block of
```c++.
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECTIONS = ["What you will be able to do", "Known elsewhere as", "Before you start", "The idea", "The change",
            "What to count", "What happened, and why", "One rule to take away", "Try it", "Sources"]
IDEA = "**The idea in two sentences.** "
WORDS = range(1200, 2501)
WORDS_WITH_STEPS = range(1200, 3501)
MOST_ROWS = 6
AVOIDED = ["in place of"]
GLOSSARY_LINKS = 3
SOURCES = (".cu", ".cuh", ".hpp", ".cpp")

FENCE = re.compile(r"^ *```(\S*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
TABLE = re.compile(r"<!-- table:.*? -->\n(.*?)<!-- /table -->", re.DOTALL)


def prose(lesson):
    """The text without code, tables, comments and the targets of links; folded answers count."""
    for pattern in (FENCE, TABLE, re.compile(r"<!--.*?-->", re.DOTALL), re.compile(r"^\s*\|.*$", re.MULTILINE),
                    re.compile(r"(?<=\])\([^)]*\)"), re.compile(r"</?\w+>")):
        lesson = pattern.sub(" ", lesson)
    return lesson


def bare(line):
    """A line of code without its comment and without spaces."""
    return re.sub(r"\s+", "", line.split("//")[0])


def lines_of(files):
    """All lines, and for calls that a quotation may join, the whole text."""
    text = "\n".join(path.read_text() for path in files)
    return "".join(bare(line) for line in text.splitlines())


def sources(folder):
    return [path for path in sorted(folder.rglob("*")) if path.suffix in SOURCES and path.stem != "exercise"]


def quoted_wrongly(lesson, own, before, around):
    """The quoted lines that are nowhere. @param own, before, around  code of the chapter, the stage before, the rest"""
    for kind, block in FENCE.findall(lesson):
        for line in block.splitlines() if kind in ("cpp", "diff") else ():
            if line.strip() in ("", "...", "…"):
                continue
            sign, code = (line.strip()[:1], line.strip()[1:]) if kind == "diff" else (" ", line)
            text = bare(code)
            among = {"+": own, "-": before}.get(sign, own + before if kind == "diff" else own + before + around)
            if text not in among:
                yield f"quotes what is not in the sources: {line.strip()}"


def slug(heading):
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def faults(lesson, own, before, around, terms, words=WORDS):
    """@param own, before, around  as above  @param terms  the anchors of the glossary  @param words  how many it may have"""
    headings = re.findall(r"^## (.*)$", FENCE.sub("", lesson), re.MULTILINE)
    if headings != SECTIONS:
        wrong = next((pair for pair in zip(headings + ["nothing"], SECTIONS) if pair[0] != pair[1]), ("more", "the end"))
        yield f"has '## {wrong[0]}' where '## {wrong[1]}' comes"
    if not re.match(r"# .*\n\n(<!--.*-->\n\n)?" + re.escape(IDEA), lesson):
        yield f"does not begin with '{IDEA}'"
    count = len(re.findall(r"\w[\w'’.,-]*", prose(lesson)))
    if count not in words:
        yield f"has {count} words of prose, and is to have {words.start} to {words.stop - 1}"
    if not re.search(r"!\[[^\]]+\]\((?!heat\.svg)[^)]+\.svg\)", lesson):
        yield "has no drawing"
    linked = set(re.findall(r"glossary\.md#([^)]*)\)", lesson))
    yield from (f"links glossary.md#{term}, which is no entry" for term in sorted(linked - terms))
    if len(linked) < GLOSSARY_LINKS:
        yield f"links fewer than {GLOSSARY_LINKS} entries of docs/glossary.md"
    for body in TABLE.findall(lesson):
        rows = body.count("\n") - 2
        if rows > MOST_ROWS:
            yield f"has a table of {rows} rows ({body.splitlines()[0][:60]}...): choose at most {MOST_ROWS}"
    for phrase in AVOIDED:
        if re.search(rf"\b{phrase}\b", prose(lesson)):
            yield f"says '{phrase}'"
    yield from quoted_wrongly(lesson, own, before, around)


def chapter_faults(root, folder):
    stage = json.loads((folder / "stage.json").read_text())
    previous = [path.parent for path in root.glob(f"chapters/{stage.get('previous') or -1:02d}-*/stage.json")]
    included = [root / "chapters" / name for name in stage.get("includes", [])]
    own = lines_of(sources(folder) + [path for other in included for path in sources(other)])
    steps = [path.parent for path in folder.glob("*/stage.json")]
    before = lines_of([path for other in previous + steps for path in sources(other)])
    around = lines_of(sources(root / "common/kernel"))
    terms = {slug(entry) for entry in re.findall(r"^## (.*)$", (root / "docs/glossary.md").read_text(), re.MULTILINE)}
    return [f"{folder.relative_to(root)}/README.md {fault}"
            for fault in faults((folder / "README.md").read_text(), own, before, around, terms,
                                WORDS_WITH_STEPS if steps else WORDS)]


def main():
    found = []
    for stage in sorted(ROOT.glob("chapters/*/stage.json")):
        found += chapter_faults(ROOT, stage.parent)
    if found:
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
