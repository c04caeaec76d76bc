#!/usr/bin/env python3
"""Fails where prose has a figure with a unit that was typed by hand.

    python3 tools/checks/check_figures.py [ROOT]

Looked at are README.md, docs/*.md and chapters/*/README.md, without their code and formulas, and without what
tools/tables.py writes: tables between markers, and figures in <!--= ... -->...<!--/-->. Of the rest a number with one
of these units is a figure: ns, µs, ms; B/s, FLOP/s, OP/s with a prefix; %; × and times; KB to GB, KiB to GiB; registers; and
an error such as 4.9e-4. It may stand there

  - as the result of arithmetic that is shown: right behind = or ≈;
  - as a size that is part of arithmetic: 49 · 4 KB, 72 KB / 2;
  - as a constant of the hardware, one of CONSTANTS;
  - in <!--derived-->...<!--/-->, where the paragraph shows how it follows from what is known;
  - in <!--quoted KEY-->...<!--/-->, where it is from the source of that name in docs/references.md.

Such a comment may stand around a table or several paragraphs: then each on a line of its own. A `times` that counts
("read 3 times", "4 times as many bytes") is no figure, one with a fraction or of speed ("2.7 times", "6 times as fast") is.
Numbers without a unit, seconds and minutes, counts of bytes and sectors, and numbers in words are not looked at.
"""

import pathlib
import re
import sys

NUMBER = r"(?<![\w.,^])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
POWER = r"(?<![\w.])\d+(?:\.\d+)?e-?\d+\b"
SIZE = r"[KMG]i?B(?!/s|\w)|registers\b"
SPEED = r"as\s+fast|faster|slower|as\s+long|longer|as\s+slow|the\s+(?:speed|time)|of\s+(?:its|cuDNN|that)\S*\s+speed"
UNIT = rf"(?:ns|µs|ms)\b|[KMGT]?(?:B|FLOP|OP)/s|%|(?<=\d)×(?!\s*[\d(]|\w)|{SIZE}"
# The number before `to` has the unit of the one behind it.
RANGE = rf"(?:{NUMBER}\s+(?:to|and|or)\s+)?"
FIGURE = re.compile(rf"{RANGE}(?P<number>{NUMBER})\s?(?P<unit>{UNIT})"
                    rf"|{RANGE}{NUMBER}\s+times\s+(?:{SPEED})"
                    rf"|{RANGE}(?<![\w.,^])\d+\.\d+\s+times\b"
                    rf"|{POWER}")
CONSTANTS = {
    "48 KB", "227 KB", "228 KB",  # of shared memory: static, of a block, of a multiprocessor of sm_90
    "64 KB",  # of constant memory, and of shared memory in many a GPU
    "256 KB",  # of registers in a multiprocessor, and of L1 with shared memory in one of sm_90
    "65,536 registers", "255 registers",  # of a multiprocessor; of a thread, at most
    "60 MB", "60 MiB",  # of L2 in an H200
    "100%",
}

# What is no prose, or is written by tools/tables.py or declared. In its place stay as many line breaks.
NO_PROSE = [
    re.compile(r"^ *<!-- table:.*?^<!-- /table -->", re.DOTALL | re.MULTILINE),
    re.compile(r"^( *)(`{3,}|~{3,}).*?^ *\2", re.DOTALL | re.MULTILINE),
    re.compile(r"<!--(?:=.*?|derived|quoted [\w-]+)-->.*?<!--/-->", re.DOTALL),
    re.compile(r"<!--.*?-->", re.DOTALL),
    re.compile(r"(`+)[^`].*?\1", re.DOTALL),
    re.compile(r"\$\$.*?\$\$|(?<![\w$\\])\$[^\s$](?:[^$\n]*[^\s$])?\$(?!\w)", re.DOTALL),
    re.compile(r"(?<=\])\([^)\s]+\)"),
]
# Of a column or row whose numbers are figures.
HEADING = re.compile(r"(?:^|[\s(])(?:[nµm]s|[KMGT]?(?:B|FLOP|OP)/s|%|[KMG]i?B)(?=$|[\s),:])")
QUOTED = re.compile(r"<!--quoted ([^>]*?)-->")
RESULT = re.compile(r"[=≈]\s*$")
OPERAND = re.compile(r"[·/+−*×-]\s*$|[(]$"), re.compile(r"\s*[·/+−*]\s*[\d(]|\s*[·/+−*=≈] ")


def prose(text):
    for pattern in NO_PROSE:
        # A word stays: what stands before and behind does not join.
        text = pattern.sub(lambda match: "¤" + "\n" * match[0].count("\n"), text)
    return text


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def of_tables(text):
    """(line, what) of each row of a table that has numbers below, or beside, a heading with a unit."""
    headings = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.lstrip().startswith("|"):
            headings = None
        elif headings is None:
            headings = cells(line)
        elif not re.fullmatch(r"[\s|:-]*", line):
            row = cells(line)
            for heading, cell in zip(headings, row):
                where = next((text for text in (heading, row[0], headings[0]) if HEADING.search(text)), None)
                if where and cell is not row[0] and re.match(r"\**\d[\d.,]*\**(?!\w)", cell):
                    yield number, f"{cell} under {where}"
                    break


def is_shown(text, match):
    """Whether a figure is the result of arithmetic, or a size that is part of it."""
    before, behind = text[max(0, match.start() - 8):match.start()], text[match.end():match.end() + 8]
    if RESULT.search(before):
        return True
    size = match["unit"] and re.fullmatch(SIZE, match["unit"])
    return bool(size and (OPERAND[0].search(before) and before.strip() != "(" or OPERAND[1].match(behind)))


def figures(text):
    """(line, figure) of each that was typed by hand."""
    text = prose(text)
    for match in FIGURE.finditer(text):
        words = " ".join(match[0].split())
        if re.sub(r" ?%", "%", words) in CONSTANTS or is_shown(text, match):
            continue
        yield text.count("\n", 0, match.start()) + 1, words
    yield from of_tables(text)


def keys(root):
    """The names of the entries of docs/references.md."""
    page = root / "docs" / "references.md"
    return set(re.findall(r"^#+ ([\w-]+)$", page.read_text(), re.MULTILINE)) if page.exists() else set()


def problems(root):
    known = keys(root)
    pages = [root / "README.md", *sorted(root.glob("docs/*.md")), *sorted(root.glob("chapters/*/README.md"))]
    for page in filter(pathlib.Path.exists, pages):
        text, name = page.read_text(), page.relative_to(root)
        for line, words in figures(text) if page.name != "references.md" else ():
            yield f"{name}:{line}: {words}"
        for match in QUOTED.finditer(text):
            if match[1] not in known:
                yield (f"{name}:{text.count(chr(10), 0, match.start()) + 1}: quotes {match[1]}, which is no entry of "
                       "docs/references.md")


if __name__ == "__main__":
    found = list(problems(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]))
    print(*found, sep="\n", end="\n" if found else "")
    if found:
        print("figures by hand: write each from a results file (tools/figures.py), or show its arithmetic: "
              'CONTRIBUTING.md, "Numbers in the docs"')
    sys.exit(1 if found else 0)
