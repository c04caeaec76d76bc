#!/usr/bin/env python3
"""Makes each chapter's exercise.cu (of a stage on the host, exercise.cpp), which a student completes, from its
solution: solutions/NN-name/exercise.cu.

    tools/generate.py            writes the exercises
    tools/generate.py --check    changes nothing; fails if one is not what its solution gives

A solution marks what a student is to write:

    // SOLUTION
    the solution's lines
    // STARTER
    // | what the exercise has in their place, after the prefix "// | "
    // END
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
MARKER = re.compile(r"\s*// (SOLUTION|STARTER|END)\s*")
STARTER_LINE = re.compile(r"(\s*)// \|(?: (.*))?")


class Malformed(Exception):
    pass


def split(text):
    """The exercise's text, and the lines that only the solution has."""
    follows = {None: "SOLUTION", "SOLUTION": "STARTER", "STARTER": "END"}
    part, exercise, secret = None, [], []
    for number, line in enumerate(text.splitlines(), 1):
        marker = MARKER.fullmatch(line)
        if marker:
            if marker[1] != follows[part]:
                raise Malformed(f"line {number}: '// {marker[1]}' where '// {follows[part]}' should come")
            part = None if marker[1] == "END" else marker[1]
        elif part is None:
            exercise.append(line)
        elif part == "SOLUTION":
            secret.append(line)
        else:
            starter = STARTER_LINE.fullmatch(line)
            if not starter:
                raise Malformed(f"line {number}: a starter's line begins with '// | '")
            exercise.append((starter[1] + starter[2]).rstrip() if starter[2] else "")
    if part:
        raise Malformed(f"'// {follows[part]}' is missing at the end")
    if not secret:
        raise Malformed("no '// SOLUTION': mark what the student is to write")
    return "\n".join(exercise) + "\n", secret


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    stale = []
    for solution in sorted(ROOT.glob("solutions/*/exercise.c*")):
        target = ROOT / "chapters" / solution.parent.name / solution.name
        try:
            exercise, _ = split(solution.read_text())
        except Malformed as error:
            sys.exit(f"{solution.relative_to(ROOT)}: {error}")
        if target.exists() and target.read_text() == exercise:
            continue
        if check:
            stale.append(str(target.relative_to(ROOT)))
        else:
            target.write_text(exercise)
    if stale:
        sys.exit(f"not what its solution gives: {', '.join(stale)}; run tools/generate.py, and change solutions only")


if __name__ == "__main__":
    main()
