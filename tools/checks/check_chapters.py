#!/usr/bin/env python3
"""Fails if a chapter lacks a part that every chapter has (CONTRIBUTING.md, "A complete chapter"), or a step of a chapter
its tests, naming each."""
import json
import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRACKS = {track["name"]: track for track in json.loads((ROOT / "common/harness/ladder/tracks.json").read_text())}
FILES = ["stage.json", "test.cpp", "README.md", "lab.json", "LAB.md", "exercise.cu"]
OF_SOLUTION = ["exercise.cu", "README.md", "wrong_answers.json"]
TESTED_BY = ["check_suite", "check_prediction", "check_refusal"]
COUNTED_BY = "check_prediction"  # needs the simulator's counters
ON_HOST = {"exercise.cu": "exercise.cpp"}


def text_of(path):
    return path.read_text() if path.exists() else ""


def missing(root):
    for chapter in sorted(path.parent for path in root.glob("chapters/*/stage.json")):
        solution = root / "solutions" / chapter.name
        track = TRACKS.get(json.loads(text_of(chapter / "stage.json")).get("track"), {})
        on_host = track.get("runs_on") == "host"  # timed, and not counted
        renamed = ON_HOST if on_host else {}
        for folder, names in ((chapter, FILES), (solution, OF_SOLUTION)):
            for name in (renamed.get(name, name) for name in names):
                if not (folder / name).exists():
                    yield f"{(folder / name).relative_to(root)}"
        if not any(path.name != "heat.svg" for path in chapter.glob("*.svg")):
            yield f"a drawing (.svg) in {chapter.relative_to(root)}"
        if track.get("pictures") and not (chapter / "after.png").exists():
            yield f"{(chapter / 'before.png').relative_to(root)} and after.png (tools/pictures.py)"
        lesson, tests = text_of(chapter / "README.md"), text_of(chapter / "test.cpp")
        if "(LAB.md)" not in lesson:
            yield f"a link to LAB.md in {(chapter / 'README.md').relative_to(root)}"
        if (guide := text_of(root / "docs/instructors.md")) and (chapter / "lab.json").exists():  # students have no guide
            lab = json.loads((chapter / "lab.json").read_text())
            title = re.escape(f"{chapter.name[:2]} {lab.get('title')}").replace("x", "[x×]")
            if not re.search(rf"^\| {title} \| .* \| {lab.get('minutes')} \|$", guide, re.M):
                yield f"a row of lab {chapter.name[:2]}, with its title and minutes, in docs/instructors.md"
        for call in TESTED_BY:
            of_track = call.replace("check_", r"check_(\w+_)?")  # check_prediction, or check_winograd_prediction
            if not re.search(of_track, tests) and not (on_host and call == COUNTED_BY):
                yield f"{call}() in {(chapter / 'test.cpp').relative_to(root)}"
        for step in sorted(path.parent for path in chapter.glob("*/stage.json")):
            for call in (call for call in TESTED_BY if call not in text_of(step / "test.cpp")):
                yield f"{call}() in {(step / 'test.cpp').relative_to(root)}"


def sees_what_is_missing():
    with tempfile.TemporaryDirectory() as name:
        chapter = pathlib.Path(name) / "chapters/01-x"
        for folder in (chapter, chapter / "01a-y"):
            folder.mkdir(parents=True)
            (folder / "stage.json").write_text("{}")
        found = [len(list(missing(pathlib.Path(name))))]
        (chapter / "lab.json").write_text('{"title": "T", "minutes": 45}')
        (pathlib.Path(name) / "docs").mkdir()
        for row in ("| 01 T | what | 45 |", "| 01 T | what | 50 |"):
            (pathlib.Path(name) / "docs/instructors.md").write_text(row + "\n")
            found.append(len(list(missing(pathlib.Path(name)))))
    without = len(FILES) - 1 + len(OF_SOLUTION) + 1 + 1 + 2 * len(TESTED_BY)
    return found == [without, without - 1, without]


def main():
    if not sees_what_is_missing():
        sys.exit("this check does not see what is missing")
    lacking = list(missing(ROOT))
    if lacking:
        sys.exit("missing:\n  " + "\n  ".join(lacking))


if __name__ == "__main__":
    main()
