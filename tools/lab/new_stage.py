"""`./lab new`: a new stage's skeleton."""
import re

import machine
from machine import ROOT, Unusable

DESCRIPTION = ("Makes a new stage's skeleton, chapters/NN-NAME: a naive kernel for every problem, its test and an "
               "empty lesson.")
TEMPLATES = ROOT / "cmake/new-stage"
LAST_NUMBER = 99
NAME = re.compile(r"(?:(?P<number>\d\d)-)?(?P<name>(?!\d+(?:-|$))[a-z0-9]+(?:-[a-z0-9]+)*)")


def add_arguments(parser):
    parser.add_argument("name", metavar="NAME", help="words of a-z and 0-9 joined by '-', as in winograd-6x6, with a "
                                                     "free number before it where you choose one: 60-winograd-6x6")
    parser.add_argument("--track", help="default: the last stage's")


def run(options):
    stages = sorted((machine.json_of(path) for path in ROOT.glob("chapters/*/stage.json")),
                    key=lambda stage: stage["number"])
    word = NAME.fullmatch(options.name)
    if not word or word["number"] == "00":
        raise Unusable(f"new: '{options.name}' is no stage name: words of a-z and 0-9 joined by '-', as in "
                       "winograd-6x6, or a number from 01 to 99 before them, as in 60-winograd-6x6")
    name = word["name"]
    if name.startswith("exercise"):
        raise Unusable("new: files named exercise... are the labs' own: choose another name")
    number = int(word["number"] or stages[-1]["number"] + 1)
    if number > LAST_NUMBER:
        raise Unusable(f"new: stage {LAST_NUMBER} is there already: choose a free number, as in 60-{name}")
    for stage in stages:
        if number == stage["number"]:
            raise Unusable(f"new: number {number:02} is taken by {number:02}-{stage['name']}: leave it out, and the "
                           "next free one is chosen")
        if name == stage["name"]:
            raise Unusable(f"new: the name {name} is taken by {stage['number']:02}-{name}: choose another")
    tracks = machine.tracks()
    track = options.track or stages[-1]["track"]
    if track not in tracks:
        raise Unusable(f"new: unknown track '{track}'; the tracks are {', '.join(tracks)}")
    if tracks[track]:
        raise Unusable(f"new: a stage of the track {track} is plain C++, and the skeleton is a kernel: copy "
                       "chapters/22-im2win-cpu")

    before = [stage["number"] for stage in stages if stage["track"] == track and stage["number"] < number]
    folder = f"{number:02}-{name}"
    values = {"NUMBER": number, "PADDED": f"{number:02}", "NAME": name, "FOLDER": folder, "TRACK": track,
              "PREVIOUS": before[-1] if before else "null"}
    try:
        (ROOT / "chapters" / folder).mkdir()
    except OSError:
        raise Unusable(f"new: cannot write {ROOT / 'chapters'}: work as its owner, or clone the project to a folder of "
                       "your own") from None
    for template in TEMPLATES.glob("*.in"):
        text = re.sub(r"@([A-Z]+)@", lambda match: str(values[match[1]]), template.read_text())
        file = template.stem.replace("kernel", name.replace("-", "_"))
        (ROOT / "chapters" / folder / file).write_text(text)
    print(f"chapters/{folder}")
    return 0
