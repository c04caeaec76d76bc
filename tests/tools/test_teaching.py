"""What the teaching pages say of counters is what the program counts; each question of the question bank has an answer.

    python3 tests/tools/test_teaching.py PROGRAM

A claim is a counter in code, = and a number, or a number for each stage that `./lab compare` names. It belongs to the
last `./lab run` or `./lab compare` with --backend sim before it; "with `--configuration ...`" adds to that command.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BANK = ROOT / "docs/classroom"
NUMBER = r"\d{1,3}(?:,\d{3})+|\d+"
CLAIM = re.compile(r"`\./lab (?P<command>(?:run|compare) [^`]*--backend sim[^`]*)`"
                   r"|with `(?P<more>--configuration [^`]+)`"
                   rf"|`(?P<counter>[a-z]+_[a-z_]+|barriers|flops)` = "
                   rf"(?P<numbers>(?:{NUMBER})(?:(?:, (?:{NUMBER}))* and (?:{NUMBER}))?)")
KINDS = {"Reckon", "Predict", "Explain", "Find the fault"}
program = None


def words(text):
    return " ".join(text.split())


def claims_of(text):
    """(command, counter, numbers) of each claim."""
    command = more = ""
    for match in CLAIM.finditer(words(text)):
        if match["command"]:
            command, more = match["command"], ""
        elif match["more"]:
            more = " " + match["more"]
        elif command:
            numbers = [int(number.replace(",", "")) for number in re.findall(NUMBER, match["numbers"])]
            yield command + more, match["counter"], numbers


def counted(command):
    done = subprocess.run([program, *command.split(), "--json"], capture_output=True, text=True, cwd=ROOT)
    try:
        results = json.loads(done.stdout)
    except ValueError:
        return done.stderr or done.stdout
    return [result["counters"] or result["reason"] for result in (results if isinstance(results, list) else [results])]


def mismatches(text):
    claims = list(claims_of(text))
    commands = sorted({command for command, _, _ in claims})
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = dict(zip(commands, pool.map(counted, commands)))
    for command, counter, numbers in claims:
        found = results[command]
        if isinstance(found, str) or any(isinstance(counters, str) for counters in found):
            yield f"./lab {command}: {found}"
            continue
        measured = [counters.get(counter) for counters in found]
        if measured != numbers:
            yield f"./lab {command}: {counter} is {measured}, the page has {numbers}"


def items_of(text):
    """{heading: [numbered items, whole]} of the lessons on a page."""
    lessons = {}
    for section in re.split(r"^## ", text, flags=re.M)[1:]:
        heading, _, body = section.partition("\n")
        lessons[heading] = [words(item) for item in re.split(r"^\d+\. ", body, flags=re.M)[1:]]
    return {heading: items for heading, items in lessons.items() if items}


class Counters(unittest.TestCase):
    def test_pages(self):
        pages = [ROOT / "docs/techniques.md", *sorted(BANK.glob("*.md"))]
        text = "\n".join(page.read_text() for page in pages)
        self.assertGreater(len(list(claims_of(text))), 50)
        self.assertEqual(list(mismatches(text)), [])

    def test_a_wrong_number_is_found(self):
        page = "`./lab run 3\n--backend sim --shape w=256,s=11`: `barriers` = 1, and `shared_store_requests` = 9."
        self.assertEqual(list(mismatches(page)), [])
        self.assertEqual(list(mismatches(page.replace("= 9", "= 8"))), [
            "./lab run 3 --backend sim --shape w=256,s=11: shared_store_requests is [9], the page has [8]"])
        self.assertRegex(next(mismatches(page.replace("s=11", "s=12"))), "odd")
        page = "`./lab compare 2 3 --backend sim --shape w=256,s=11`: `barriers` = 0 and 1"
        self.assertEqual(list(mismatches(page)), [])
        self.assertEqual(len(list(mismatches(page.replace("0 and 1", "1 and 1")))), 1)


class Questions(unittest.TestCase):
    def setUp(self):
        self.questions = items_of((BANK / "questions.md").read_text())

    def test_three_of_several_kinds_for_each_lesson(self):
        lessons = sorted(path.parent.name.replace("-", " ", 1) for path in ROOT.glob("chapters/[0-9][0-9]-*/README.md"))
        self.assertEqual(sorted(self.questions), lessons)
        for heading, items in self.questions.items():
            kinds = [re.match(r"\*([\w ]+)\.\*", item)[1] for item in items]
            self.assertGreaterEqual(len(items), 3, heading)
            self.assertGreaterEqual(len(set(kinds)), 2, heading)
            self.assertLessEqual(set(kinds), KINDS, heading)

    @unittest.skipUnless((BANK / "answers.md").exists(), "a student's copy")
    def test_an_answer_for_each(self):
        answers = items_of((BANK / "answers.md").read_text())
        self.assertEqual({heading: len(items) for heading, items in self.questions.items()},
                         {heading: len(items) for heading, items in answers.items()})


if __name__ == "__main__":
    program = sys.argv.pop(1)
    unittest.main()
