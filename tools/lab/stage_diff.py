"""`./lab diff`: what one stage's code changes in another's."""
import difflib
import re
import sys

from machine import ROOT, Unusable
from terminal import paint

sys.path.insert(0, str(ROOT / "tools"))
import changes  # noqa: E402

DESCRIPTION = ("Prints what the code of stage AFTER changes in that of BEFORE, as a diff: lines that go begin "
               "with '-', lines that come with '+'. Neither indentation counts, nor a stage's own name, nor the "
               "comment that a file begins with.")
STAGE = "a number, name or folder, as in 3, tiled-1d or 03-tiled-1d; or a step of a chapter, as in 32a"


def add_arguments(parser):
    parser.add_argument("before", metavar="BEFORE", help=STAGE)
    parser.add_argument("after", metavar="AFTER", help=STAGE)


def find(designation, command="diff"):
    """The folder of a stage or a step. @param command that the error names"""
    known = {}
    for folder in sorted(path.parent for path in ROOT.glob("chapters/**/stage.json")):
        number, _, name = folder.name.partition("-")
        known |= {number: folder, number.lstrip("0"): folder, name: folder, folder.name: folder}
    if designation.startswith("chapters/") and (folder := ROOT / designation) in known.values():  # as a shell completes it
        return folder
    if designation not in known:
        if (match := re.fullmatch(r"(\d+)[A-Za-z]", designation)) and match[1] in known:
            steps = sorted(key for key in known if re.fullmatch(match[1] + "[a-z]", key))
            raise Unusable(f"{command}: unknown step '{designation}'; chapter {match[1]} has "
                           f"{'the steps ' if steps else 'no steps'}{', '.join(steps)}")
        near = [name for name in difflib.get_close_matches(designation, known) if not name.isdigit()]
        raise Unusable(f"{command}: unknown stage '{designation}'" + (f", did you mean '{near[0]}'?" if near else "") +
                       "; './lab list' shows the stages")
    return known[designation]


def run(options):
    folders = [find(options.before), find(options.after)]
    before, after = map(changes.lines_of, folders)
    came, went = changes.counts(before, after)
    print(f"{folders[0].name} → {folders[1].name}: lines that go: {went}, that come: {came}")
    for group in changes.hunks(before, after):
        print(paint(f"@@ {changes.heading(group)} @@", "yellow"))
        for kind, old, new in group:
            if kind == "equal":
                print(*(f" {line.text}" for line in new), sep="\n")
                continue
            for lines, sign, colour in ((old, "-", "red"), (new, "+", "green")):
                for line in lines:
                    print(paint(sign + line.text, colour))
    return 0
