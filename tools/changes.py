"""What a stage changes in the code of another: `./lab diff` prints it, and the site shows it on the lesson's page.

A stage's code is the text of its files one after the other, headers first: a kernel that moves to a header of its own
is still held against itself. Neither indentation counts as a change, nor the stage's own name.
"""

import difflib
import html
import itertools
import re
from typing import NamedTuple

CONTEXT = 3  # lines that are shown around a change
# What stands everywhere is no place where two texts meet.
MEETS_ANYTHING = re.compile(r"\W*(else|return;|UNROLL|public:|private:)?\W*")
WORD = re.compile(r"\w+|\s+|.")
ALIKE = 0.5  # how much two lines share whose words are held against each other


class Line(NamedTuple):
    file: str
    number: int
    text: str
    key: str  # what counts of the text


def sources_in(folder):
    """A chapter's code, headers first; its tests are none."""
    return [path for kind in ("*.cuh", "*.cu", "*.cpp", "*.hpp") for path in sorted(folder.glob(kind))
            if path.name != "test.cpp"]


def kernels_in(folder):
    """The stage's own code: without the lab's."""
    return [path for path in sources_in(folder) if not path.name.startswith("exercise")]


def lines_of(folder):
    """The stage's code without the comments that its files begin with, which tell of it as a whole."""
    words = folder.name.split("-")[1:]
    own_name = re.compile("_".join(words) + "|" + "".join(map(str.capitalize, words)))
    lines = []
    for path in kernels_in(folder):
        numbered = itertools.dropwhile(lambda line: line[1].startswith("//") or not line[1],
                                       enumerate(path.read_text().splitlines(), 1))
        lines += [Line(path.name, number, text, own_name.sub("STAGE", text.strip())) for number, text in numbered]
    return lines


def matcher(before, after):
    return difflib.SequenceMatcher(MEETS_ANYTHING.fullmatch, [line.key for line in before],
                                   [line.key for line in after], autojunk=False)


def counts(before, after):
    """How many lines came and went."""
    kept = sum(size for _, _, size in matcher(before, after).get_matching_blocks())
    return len(after) - kept, len(before) - kept


def hunks(before, after):
    """Groups of changes with lines around them: lists of (kind, lines before, lines after)."""
    for group in matcher(before, after).get_grouped_opcodes(CONTEXT):
        yield [(kind, before[a:b], after[c:d]) for kind, a, b, c, d in group]


def place(lines):
    """"a.cu:3" of the first of some lines."""
    return f"{lines[0].file}:{lines[0].number}" if lines else ""


def heading(group):
    """Where a group of changes begins in both texts."""
    first = [place([line for part in group for line in part[side]]) for side in (1, 2)]
    return " → ".join(filter(None, first))


# ---- For a page -----------------------------------------------------------------------------------------------------


def marked_pair(old, new):
    """Two lines in HTML, the words marked in which they differ, where they have enough in common."""
    words = [WORD.findall(old), WORD.findall(new)]
    found = difflib.SequenceMatcher(None, *words, autojunk=False)
    if found.ratio() < ALIKE:
        return html.escape(old), html.escape(new)
    sides = ["", ""]
    for kind, *spans in found.get_opcodes():
        for side, tag in ((0, "del"), (1, "ins")):
            text = html.escape("".join(words[side][spans[2 * side]:spans[2 * side + 1]]))
            sides[side] += text if kind == "equal" or not text else f"<{tag}>{text}</{tag}>"
    return tuple(sides)


def marked(kind, old, new):
    """The lines of a part of a change in HTML: two lists."""
    pairs = [marked_pair(a.text, b.text) for a, b in zip(old, new)] if kind == "replace" else []
    rest = [[html.escape(line.text) for line in lines[len(pairs):]] for lines in (old, new)]
    return [pair[0] for pair in pairs] + rest[0], [pair[1] for pair in pairs] + rest[1]


def cells(line, text, kind):
    """A line's number and text; nothing beside a line that has no like."""
    number, sign = (line.number, {"old": "−", "new": "+"}.get(kind, " ")) if line else ("", " ")
    return f'<td class="number">{number}</td><td class="{kind if line else "none"}">{sign}{text or ""}</td>'


def side_by_side(groups):
    """Rows of a table in HTML: the line before on the left, the line after on the right."""
    for group in groups:
        yield f'<tr><th colspan="4">{html.escape(heading(group))}</th></tr>'
        for kind, old, new in group:
            kinds = ("same", "same") if kind == "equal" else ("old", "new")
            texts = marked(kind, old, new)
            for a, b, x, y in itertools.zip_longest(old, new, *texts):
                yield f"<tr>{cells(a, x, kinds[0])}{cells(b, y, kinds[1])}</tr>"


def inline(groups):
    """The same, one column: what goes, then what comes."""
    for group in groups:
        yield f'<tr><th colspan="2">{html.escape(heading(group))}</th></tr>'
        for kind, old, new in group:
            texts = marked(kind, old, new)
            if kind == "equal":
                yield from (f"<tr>{cells(line, text, 'same')}</tr>" for line, text in zip(new, texts[1]))
            else:
                yield from (f"<tr>{cells(line, text, 'old')}</tr>" for line, text in zip(old, texts[0]))
                yield from (f"<tr>{cells(line, text, 'new')}</tr>" for line, text in zip(new, texts[1]))
