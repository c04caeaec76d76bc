"""`./lab next`: which labs are done, and which follows."""
import hashlib
import json

from machine import BUILD, ROOT, json_of

DESCRIPTION = ("Says which labs are done, which are begun, and which follows. It goes by the last ./lab grade of each "
               "chapter's own exercise in this build.")


def labs():
    """The folders of the chapters that have a lab, in the ladder's order."""
    return sorted(path.parent for path in ROOT.glob("chapters/*/lab.json"))


def exercise_of(folder):
    return next(path for path in (folder / "exercise.cpp", folder / "exercise.cu") if path.exists())


def graded():
    """{chapter: what ./lab grade has left of it}"""
    try:
        return json.loads((BUILD / "labs/marks.json").read_text())
    except (OSError, ValueError):
        return {}


def is_done(marks):
    return bool(marks) and marks["score"] == marks["max_score"]


def next_of(folders, marks):
    """The one that was graded last, if it lacks points; else the first after it that is not done."""
    known = [folder for folder in folders if folder.name in marks]
    last = max(known, key=lambda folder: marks[folder.name]["graded"], default=None)
    start = folders.index(last) if last else 0
    return next((folder for folder in folders[start:] + folders[:start] if not is_done(marks.get(folder.name))), None)


def run(_options):
    folders, marks = labs(), graded()
    numbers = [folder.name[:2] for folder in folders if is_done(marks.get(folder.name))]
    print(f"Done: {len(numbers)} of {len(folders)} labs" + (f" ({', '.join(numbers)})" if numbers else ""))
    for folder in folders:
        found = marks.get(folder.name)
        if not found or is_done(found):
            continue
        changed = hashlib.sha256(exercise_of(folder).read_bytes()).hexdigest() != found["sha256"]
        print(f"Begun: lab {folder.name[:2]}, {found['score']} of {found['max_score']} points"
              + (", and its file has changed since" if changed else ""))
    following = next_of(folders, marks)
    if following is None:
        print("All labs are done.")
        return 0
    lab, number = json_of(following / "lab.json"), int(following.name[:2])
    folder = following.relative_to(ROOT)
    print(f"Next: lab {number:02}, \"{lab['title']}\", about {lab['minutes']} minutes\n"
          f"  read   {folder}/README.md, then {folder}/LAB.md\n"
          f"  write  {exercise_of(following).relative_to(ROOT)}\n"
          f"  grade  ./lab grade {number} --watch")
    return 0
