"""The figures that prose quotes, written from docs/results/*.json; tools/tables.py rewrites them as it does tables.

A figure stands between two comments, which no page shows. The first says where it comes from and how it is written:

    26 takes <!--= time(26) on image h=224 as .1 µs-->28.5 µs<!--/-->, 24 <!--= time(24) / time(26) on image h=224 as
    .2 times-->2.77 times<!--/--> as long.

Neither comment may begin a line: Markdown would end the paragraph there. A comment may be broken between two words.

The file is the one that a comment of the page's own names, on a line by itself: `<!--figures nvidia-h200-winograd-->`.
Another file's name stands first, with a colon: `<!--= cpu-epyc: ...-->`. Then come a word for several workloads, if there
are several, what is quoted, on which workloads, and how it is written:

    [FILE:] [least | most | mean | range | sum] QUANTITY [on WORKLOADS] as FORM

A quantity is arithmetic (+ - * / and brackets) of numbers and of

    time(ROW) cold(ROW) spread(ROW)   medians in µs with buffers as they are, and with cold ones; the spread, a share
    product(ROW)                      the median in µs without the transform
    again(ROW)                        cuDNN's time when it was measured once more after the stages
    error(ROW) largest(ROW)           relative L2 error, largest absolute error
    tflops(ROW) share(ROW)            the direct form's operations in 10¹² a second; how much of the floor is reached
    workspace(ROW) registers(ROW)     bytes; registers a thread of its largest kernel
    ceiling(NAME)                     of the file: dram, l2, fp32, fp16, int8 in 10¹² a second, launch in µs
    device(KEY)                       a number of the device that was measured: l2_bytes, multiprocessors, ...
    cell(ROW :: COLUMN)               of a file with a table of its own, by words of the names that no other has; of a
                                      table with one column, cell(ROW). cell(FILE / ROW :: COLUMN) is of another file
                                      than the rest of the quantity
    network(ROW)                      the time in µs of all 53 convolutions of a ResNet-50, of a file that has its 23
                                      distinct ones: each time as often as the network has the layer
    tuned(SEARCH)                     of a tuner's log: the fastest time in µs of random, annealing, model or exhaustive,
                                      or that of the default

A ROW is a stage's number, with its settings where they are not the default ones: 25, 24 m=4; `24 best` is the fastest
of its settings on the workload; a row beside the stages goes by its name: im2col-cublas, onednn, cufft. `cudnn fp16` is
the fastest of what cuDNN did in that type, `cudnn Winograd fp16`, `cudnn GEMM fp32` and `cudnn FFT fp32` those of a
family, `cudnn two passes fp32` a filter by its two factors, `cudnn IMPLICIT_GEMM fp32` an algorithm.

Workloads are told by the words that their names begin with, and by numbers of the problem: `image`, `conv3 n=32`,
`layer 9`, `3840x2160 11x11`; `h=224,960` is either, and so is `conv3,conv4`.
`headline` and `batch` are the groups of tools/winograd_tables.py. A
name in quotes is that workload alone: "w=2^24 r=5". least, most, mean (geometric) and sum make one figure of several
workloads, range makes two: 1.02 to 1.58 times. Workloads on which a row of the quantity did not run are left out.

A form is the number of digits behind the point, with `e` for powers of ten, and a unit: `.1 µs`, `.2 times`, `.1e`.
The units ns, µs and ms take µs; KB and KiB (1024), MB, GB, TB, MiB take bytes; % takes a share. A unit that is not one
of these is written as it stands. A function may have a workload of its own: time(05 on 3840x2160 3x3).
"""

import functools
import operator
import pathlib
import re

from cells import geometric_mean
from comparisons import head_of
from networks import in_resnet_50
from report import is_bench, read_report
from winograd_tables import GROUPS

RESULTS = pathlib.Path(__file__).resolve().parent.parent / "docs" / "results"
FILE = re.compile(r"^<!--figures ([\w-]+)-->$", re.MULTILINE)
MARKED = re.compile(r"(<!--=\s+((?:(?!-->).)*?)\s*-->)((?:(?!<!--).)*)(<!--/-->)", re.DOTALL)
BEGINS = re.compile(r"<!--=")
CODE = re.compile(r"^( *)(?:`{3,}|~{3,}).*?^ *(?:`{3,}|~{3,})|`[^`\n]*`", re.DOTALL | re.MULTILINE)
# At the beginning of a line, unless a comment around paragraphs or a table is alone there.
BREAKING = re.compile(r"^ *(?!<!--(?:derived|quoted [\w-]+|/)--> *$)<!--(?:=|derived|quoted |/)", re.MULTILINE)
SELECTOR = re.compile(r"(?:(?P<file>[\w-]+): )?(?:(?P<summary>least|most|mean|range|sum) )?(?P<quantity>.+?)"
                      r"(?: on (?P<workloads>[^()]+?|\"[^\"]+\"))? as (?P<form>\S+(?: \S+)?)")
TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d+)?(?:e-?\d+)?)|(\w+)\(([^()]*(?:\([^()]*\)[^()]*)*)\)|([-+*/()]))")
OTHER = re.compile(r"([\w-]+) / (.*)")
FORM = re.compile(r"\.(?P<digits>\d+)(?P<power>e?)(?: (?P<unit>\S+))?")
UNITS = {"ns": 1e3, "µs": 1, "ms": 1e-3, "%": 100, "KB": 1 / 1024, "KiB": 1 / 1024, "MiB": 1 / 2**20, "MB": 1e-6,
         "GB": 1e-9, "TB": 1e-12}
CLOSE = ("%", "×")  # units that no space parts from their number
SUMMARIES = {"least": min, "most": max, "mean": geometric_mean, "sum": sum}
OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
FAMILIES = {"GEMM", "FFT", "WINOGRAD"}
CEILINGS = {"dram": ("dram_bytes_per_s", 1e-12), "l2": ("l2_bytes_per_s", 1e-12), "fp32": ("fp32_flops_per_s", 1e-12),
            "fp16": ("fp16_flops_per_s", 1e-12), "int8": ("int8_ops_per_s", 1e-12), "launch": ("launch_us", 1)}


class FigureError(Exception):
    """A selector that cannot be served."""


class Missing(Exception):
    """What a row does not have."""


@functools.cache
def report_of(path, modified):
    """A results file, read once. @param modified its time, so that one that changed is read again"""
    return read_report(path)


# ---- Rows ------------------------------------------------------------------------------------------------------------

def of_time(key):
    def take(row):
        # A trial of cuDNN has a number where a row has an object.
        time = row.get(key)
        return time["median"] if isinstance(time, dict) else time

    return take


QUANTITIES = {
    "time": of_time("time_us"), "cold": of_time("time_cold_us"), "product": of_time("time_without_transform_us"),
    "again": of_time("time_again_us"),
    "spread": lambda row: row["time_us"] and row["time_us"]["spread"],
    "error": lambda row: row.get("rel_l2_err"), "largest": lambda row: row.get("max_abs_err"),
    "tflops": lambda row: row.get("effective_tflops"), "workspace": lambda row: row.get("workspace_bytes"),
    "share": lambda row: (row.get("roofline") or {}).get("share"),
    "registers": lambda row: max((kernel["registers"] for kernel in row.get("kernels") or []), default=None),
}


def cudnn_trial(rows, words):
    """cuDNN's fastest that counts, of the type that is the last word, and of a family, an algorithm or two passes."""
    *which, dtype = words
    which = " ".join(which)

    def counts(trial):
        two_passes = trial["algorithm"].startswith("two passes")
        if which.upper() in FAMILIES:
            return trial["family"] == which.upper() and not two_passes
        return two_passes if which == "two passes" else not two_passes and which in ("", trial["algorithm"])

    trials = [trial for row in rows if row["dtype"] == dtype for trial in row["cudnn"] or []]
    return min((trial for trial in trials if trial["dtype"] == dtype and trial["status"].startswith("ok")
                and trial["time_us"] and counts(trial)), key=lambda trial: trial["time_us"], default=None)


def stage_of(row, names):
    """The stage's number as a text, and its settings; of a row beside the stages its name."""
    name, _, settings = row["stage"].partition(" ")
    return (names[name] if name in names else name), settings


def row_of(rows, words, names):
    """The row of one workload that `words` tell, or None."""
    if words[:1] == ["cudnn"]:
        return cudnn_trial(rows, words[1:])
    settings = " ".join(words[1:])
    found = [row for row in rows if stage_of(row, names)[0] == words[0]
             and settings in ("best", stage_of(row, names)[1]) and row["status"] == "ok"]
    if settings == "best":
        return min((row for row in found if row["time_us"]), key=lambda row: row["time_us"]["median"], default=None)
    if len(found) > 1:
        raise FigureError(f"finds {len(found)} rows of {' '.join(words)} on one workload")
    return found[0] if found else None


# ---- Workloads -------------------------------------------------------------------------------------------------------

def chosen(name, problem, words):
    """Whether a workload is one of those that the words tell."""
    for place, word in enumerate(words):
        key, equals, values = word.partition("=")
        if equals:
            if key not in problem or str(problem[key]) not in values.split(","):
                return False
        elif place == 0 and word in ("headline", "batch"):
            if not GROUPS[word](head_of(name), problem):
                return False
        elif place >= len(name.split()) or name.split()[place] not in (word, *word.split(",")):
            return False
    return True


def workloads_of(report, text):
    """The workloads of a bench's report that the text tells: {name: rows}."""
    found = {}
    quoted = re.fullmatch(r'"(.+)"', text or "")
    for row in report["rows"]:
        name = row["workload_name"] or ""
        if name == quoted[1] if quoted else chosen(name, row["workload"], text.split()):
            found.setdefault(name, []).append(row)
    if not found:
        raise FigureError(f"finds no workload {text}")
    return {text: found[text]} if text in found else found


# ---- Quantities ------------------------------------------------------------------------------------------------------

def cell_of(report, text):
    """A value of a table of its own, which may be another file's."""
    other = OTHER.fullmatch(text)
    if other and (path := RESULTS / f"{other[1]}.json").exists():
        report, text = report_of(path, path.stat().st_mtime_ns), other[2]
    row_words, _, column_words = (part.strip() for part in text.partition("::"))

    def the_one(words, candidates, kind):
        exact = [place for place, name in enumerate(candidates) if name == words]
        found = exact or [place for place, name in enumerate(candidates) if words in name]
        if len(found) != 1:
            raise FigureError(f"finds {len(found)} {kind}s with {words or 'no words'}")
        return found[0]

    if "corner" not in report:
        raise FigureError("has cell(...), and its file is no table")
    row = report["rows"][the_one(row_words, [row["name"] for row in report["rows"]], "row")]
    return row["values"][the_one(column_words, report["columns"], "column")]


def tuned_of(report, argument):
    """The fastest time of a search in a tuner's log, or that of the default."""
    if "sessions" not in report:
        raise FigureError("has tuned(...), and its file is no tuner's log")
    if argument == "default":
        return report["default"]["time_us"]
    return min((trial["time_us"] for session in report["sessions"] if session["search"] == argument
                for trial in session["trials"] if trial["time_us"]), default=None)


def network_of(report, words, names):
    """The time of a ResNet-50's convolutions by the row that the words tell, or None where one is missing."""
    workloads = list(workloads_of(report, "").values()) if is_bench(report) else []
    counts = in_resnet_50([rows[0]["workload"] for rows in workloads])
    if not counts:
        raise FigureError("has network(...), and its file does not have the convolutions of a ResNet-50")
    times = [row and QUANTITIES["time"](row) for row in (row_of(rows, words, names) for rows in workloads)]
    return sum(count * time for count, time in zip(counts, times)) if all(times) else None


def value_of(report, rows, names, function, argument):
    """What one function gives on one workload. @throws Missing where a row has no such value"""
    argument = " ".join(argument.split())
    if function == "cell":
        value = cell_of(report, argument)
    elif function == "tuned":
        value = tuned_of(report, argument)
    elif function == "network":
        value = network_of(report, argument.split(), names)
    elif function == "device":
        value = report["device"].get(argument)
    elif function == "ceiling":
        if argument not in CEILINGS:
            raise FigureError(f"names no ceiling: write one of {', '.join(CEILINGS)}")
        key, scale = CEILINGS[argument]
        value = report["ceilings"] and report["ceilings"].get(key) and report["ceilings"][key] * scale
    elif function in QUANTITIES:
        argument, _, its_own = argument.partition(" on ")
        if its_own:
            found = workloads_of(report, its_own)
            if len(found) > 1:
                raise FigureError(f"finds {len(found)} workloads {its_own}, where {function}(... on ...) takes one")
            rows = next(iter(found.values()))
        if rows is None:
            raise FigureError(f"has {function}(...), which needs workloads: write `on ...` before `as`")
        row = row_of(rows, argument.split(), names)
        value = QUANTITIES[function](row) if row else None
    else:
        others = "ceiling, device, cell, network, tuned"
        raise FigureError(f"has {function}(...): write one of {', '.join(QUANTITIES)}, {others}")
    if value is None:
        raise Missing(f"{function}({argument})")
    return value


def evaluate(text, function_value):
    """The value of arithmetic with the usual order of operations."""
    tokens, place = [], 0
    text = text.strip()
    while place < len(text):
        match = TOKEN.match(text, place)
        if not match:
            raise FigureError(f"is not understood from `{text[place:]}` on")
        tokens.append(match)
        place = match.end()

    def take(symbols):
        return tokens.pop(0)[4] if tokens and tokens[0][4] and tokens[0][4] in symbols else None

    def operand():
        if take("("):
            value = addition()
            if not take(")"):
                raise FigureError("lacks a closing bracket")
            return value
        if take("-"):
            return -operand()
        if not tokens or tokens[0][4]:
            raise FigureError("lacks a number where one is needed")
        number, function, argument, _ = tokens.pop(0).groups()
        return float(number) if number else function_value(function, argument)

    def chain(symbols, part):
        value = part()
        while symbol := take(symbols):
            value = OPERATIONS[symbol](value, part())
        return value

    def addition():
        return chain("+-", lambda: chain("*/", operand))

    value = addition()
    if tokens:
        raise FigureError("has something behind its end")
    return value


# ---- Forms -----------------------------------------------------------------------------------------------------------

def written(values, form):
    """Several values are a range."""
    match = FORM.fullmatch(form)
    if not match:
        raise FigureError(f"ends with `as {form}`: write digits as in .1, and a unit")
    unit = match["unit"] or ""
    scale = UNITS.get(unit, 1)

    def number(value):
        text = f"{value * scale:,.{match['digits']}{'e' if match['power'] else 'f'}}"
        if match["power"]:
            return re.sub(r"e([-+])0?", lambda sign: "e" + sign[1].replace("+", ""), text)
        return text.replace(",", "") if abs(value * scale) < 10000 else text

    numbers = [number(value) for value in values]
    if len(set(numbers)) == 1:
        numbers = numbers[:1]
    return " to ".join(numbers) + (unit if unit in CLOSE else f" {unit}" if unit else "")


# ---- Pages -----------------------------------------------------------------------------------------------------------

def named_stages(rows):
    """The number of each stage by its name, as texts of two digits."""
    return {row["stage"]: f"{row['number']:02d}" for row in rows if row["number"]}


def figure(selector, default=None):
    """The text of a selector. @param default the name of the page's file, or None"""
    match = SELECTOR.fullmatch(" ".join(selector.split()))
    if not match:
        raise FigureError("is no figure: write `quantity as form` or `quantity on workloads as form`")
    name = match["file"] or default
    constant = not re.search(r"\w\(", match["quantity"])
    if constant:
        return written([evaluate(match["quantity"], None)], match["form"])
    if not name:
        raise FigureError("names no file, and its page has no <!--figures FILE-->")
    path = RESULTS / f"{name}.json"
    try:
        report = report_of(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise FigureError(f"needs docs/results/{name}.json: {error.strerror}") from error
    names = named_stages(report["rows"]) if is_bench(report) else {}
    groups = workloads_of(report, match["workloads"]) if match["workloads"] else {None: None}
    values, missing = [], None
    for rows in groups.values():
        try:
            values.append(evaluate(match["quantity"], lambda function, argument, rows=rows: value_of(
                report, rows, names, function, argument)))
        except Missing as error:
            missing = error
    if not values or missing and not match["summary"]:
        raise FigureError(f"finds no {missing}")
    if match["summary"] == "range":
        return written([min(values), max(values)], match["form"])
    if match["summary"]:
        return written([SUMMARIES[match["summary"]](values)], match["form"])
    if len(values) > 1:
        raise FigureError(f"is of {len(values)} workloads: begin it with least, most, mean, range or sum, or name one")
    return written(values, match["form"])


def rewrite(text):
    """A page with its figures as the results have them, and what is wrong with those that cannot be written."""
    problems = []
    without_code = CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)  # with everything in its place
    default = FILE.findall(without_code)
    if len(default) > 1:
        problems.append("has two <!--figures FILE-->")
    if len(BEGINS.findall(without_code)) != len(MARKED.findall(without_code)):
        problems.append("has a figure without <!--/-->")
    for match in BREAKING.finditer(without_code):
        problems.append(f"line {text.count(chr(10), 0, match.start()) + 1} begins with a figure's comment, which would "
                        "end the paragraph: move a word")
    parts, place = [], 0
    for match in MARKED.finditer(without_code):
        try:
            new = figure(match[2], default[0] if default else None)
        except FigureError as error:
            problems.append(f"`{match[2]}` {error}")
            continue
        if match[3].split() != new.split():
            parts += [text[place:match.start(3)], new]
            place = match.end(3)
    return "".join(parts) + text[place:], problems
