"""What `./lab grade` says of marks: a fault is explained once, and first; lines that failed because of it are folded."""
import os
import pathlib
import re
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[1]
SHOWN = 2  # other faults that are named beside the one that is explained

# ---- Faults ----------------------------------------------------------------------------------------------------------

# Of each kind: what it is called, what it means, and where to look. docs/simulator.md defines them.
FAULTS = {
    "out_of_bounds": (
        "an access outside of what was allocated",
        "The launch ended here, so outputs that were still to come were never written.",
        "Work the index out by hand for this block and this thread. Is it the last one, or is a position outside the "
        "border?"),
    "uninitialized": (
        "a read of what nothing has written",
        "The value is whatever lay there before. On a GPU it may sometimes even be the right one.",
        "Which thread should have written this word, and has it done so before? A range may be too short, or a "
        "barrier may be missing in between."),
    "missing_wait": (
        "an asynchronous copy that nobody has waited for",
        "A copy goes on after the line that starts it. Until somebody has waited for its end, nobody may touch what "
        "it reads or writes.",
        "Who started the copy waits for it; then a barrier tells the others. At this line, which copies may still be "
        "under way?"),
    "misaligned": (
        "an address that the access cannot have",
        "An access of 4, 8 or 16 bytes begins at a multiple of its size, and a GPU refuses any other. The launch ended "
        "here.",
        "Is every term of the index a multiple of the vector's length, the row's length too?"),
    "missing_barrier": (
        "a barrier that not all threads of the block reach",
        "Some threads have ended while others still wait here. The launch ended here.",
        "Look for a return or a condition before the barrier that holds for some threads only. Let all threads come to "
        "the barrier, and test after it."),
    "divergent_barrier": (
        "threads of one block that wait at different barriers",
        "Each waits for the others, which never come: a GPU would hang or go on with wrong data.",
        "Does a barrier stand in a branch or a loop that not all threads run equally often?"),
    "divergent_collective": (
        "a function of the whole warp that not all of its lanes reach",
        "A shuffle, a vote or a matrix function takes part of its result from each lane.",
        "Keep it out of conditions and loops that depend on the lane: test before or after it."),
    "invalid_launch": ("a launch that CUDA refuses", "The kernel did not run at all.",
                       "Is the grid or the block empty or too large, or the shared memory more than there is?"),
    "shared_limit": ("more shared memory than a GPU has", "The launch ended here.", ""),
    "constant_limit": ("more constant memory than a GPU has", "The kernel did not run at all.", ""),
    "stack_overflow": ("local arrays larger than a thread's stack", "The launch ended here.", ""),
    "endless_loop": ("a loop that does not end", "It was stopped here.",
                     "Which condition ends the loop, and does each round bring it nearer?"),
    "crash": ("a machine trap", "The launch ended at this line or soon after.",
              "Most often it is an integer division by zero."),
    "stuck_barrier": (
        "threads that wait for a phase which never ends",
        "Nothing is under way that could complete the barrier.",
        "Count the arrivals that the barrier was initialised for, and the bytes that were announced. Who brings them, "
        "and which phase does each thread wait for?"),
    "invalid_barrier": ("a barrier used in a way that is not defined", "The launch ended here.",
                        "Is the barrier initialised, and do as many arrive in a phase as it was initialised for?"),
    "invalid_operand": ("an operand that the instruction refuses", "The launch ended here.", ""),
    "missing_proxy_fence": (
        "an asynchronous access that may not see what was stored before",
        "Ordinary stores and asynchronous accesses reach memory by two ways. Only a proxy fence orders them.",
        "Put fence_async_proxy() after the stores, and before the barrier by which others learn of them."),
    "missing_wgmma_fence": ("a wgmma without a wgmma_fence() before it",
                            "Its registers were touched since, and nothing orders that.", ""),
    "wgmma_in_flight": ("a touch of sums that a wgmma is still adding to",
                        "A wgmma goes on after the line that starts it.",
                        "Which wgmma_wait comes before this line, and how many groups does it leave open?"),
    "absent_block": ("an access to a block of the cluster that may not be there",
                     "A block's shared memory is there while the block runs.",
                     "Put a barrier of the cluster before the first access, and one after the last."),
    "deadlock": (
        "a send or a receive that no rank answers",
        "Each send waits for a receive on the other side, and the other way round. On GPUs all ranks would hang.",
        "Name the rank that should have answered. Does it make this call at all, and is what it waits for itself in the "
        "same group?"),
    "size_mismatch": ("a receive of another size than what is sent",
                      "Between two ranks the first send meets the first receive, the second the second.",
                      "Do both ranks go through the rows in the same order, and cut them into the same pieces?"),
    "not_captured": ("work that the graph would leave out",
                     "A graph holds what is on its first stream, and on streams that follow it.",
                     "Is everything on the stream that the rank was given?"),
    "host_access": ("host code that touches what it may not",
                    "Host code launches kernels and has local variables. The tensors are for kernels alone.", ""),
    "stored_twice": ("an output that two threads store", "One of the two is overwritten, and which is chance.",
                     "Do two tiles overlap, or does each thread run the whole loop?"),
    "shared_variable": ("a variable of all threads that one of them writes",
                        "The others may read it before or after.", "Declare it inside the parallel loop."),
    "null_pointer": ("a pointer that was not set", "The run ended here.", ""),
}
RACES = {
    "in a warp": (
        "a race within one warp",
        "Two lanes touch one word, at least one of them writes it, and nothing says which comes first. Lanes of a warp "
        "do not run in step.",
        "If one needs what the other has written, __syncwarp() between the two lines orders them. If not, should both "
        "touch this word at all? Then an index is wrong."),
    "in a block": (
        "a race within one block",
        "Two threads touch one word, at least one of them writes it, and nothing says which comes first.",
        "Is there a barrier on every way from the one line to the other, in a loop also from one round to the next? If "
        "there is, should both threads touch this word at all? Then an index is wrong."),
    "between blocks": (
        "a race between two blocks",
        "Two blocks touch one word, and at least one of them writes it. Blocks run in any order, and no barrier orders "
        "two of them.",
        "Each block writes words of its own. Which of the two indices lacks the number of its block, or reaches past "
        "the block's part?"),
}


def kind_of(fault):
    """A race by where it is."""
    if fault["kind"] != "race" or not fault["second"]:
        return fault["kind"]
    if fault["block"] != fault["second"]["block"]:
        return "race between blocks"
    return "race in a warp" if fault["warp"] == fault["second"]["warp"] else "race in a block"


def reach(case):
    """How far the two threads of a race are from each other: the farther, the more it tells."""
    kinds = ("race in a warp", "race in a block", "race between blocks")
    kind = kind_of(case["fault"]) if case["fault"] else ""
    return kinds.index(kind) if kind in kinds else 0


def described(fault):
    """Its name, meaning and hint."""
    kind = kind_of(fault)
    if kind.startswith("race "):
        return RACES[kind[len("race "):]]
    return FAULTS.get(kind, (kind, "", ""))


def own_hints(check, fault):
    """What the lab has to say of this kind of fault. A race's hint may be for one within a block, or between two."""
    hints = check["hints"]
    if isinstance(hints, list):
        return hints
    kind = kind_of(fault)
    wider = {"race in a warp": "race in a block"}.get(kind, "race")
    return [hints[key] for key in (kind, wider, fault["kind"]) if key in hints][:1]


def quote(access, source):
    """Gives an access the text of its line, and its file the name by which the student knows it."""
    access["code"] = ""
    if not access["file"] or not access["line"]:
        return
    path = ROOT / access["file"]
    own = path in (source.absolute(), source.resolve())
    if not own and ROOT not in path.parents:
        return
    access["file"] = source.name if own else str(path.relative_to(ROOT))
    lines = path.read_text(errors="replace").splitlines()
    if access["line"] <= len(lines):
        access["code"] = lines[access["line"] - 1].strip()


def who(access):
    if access["whole_warp"]:
        return f"block {access['block']}, warp {access['warp']} as a whole (a matrix function)"
    return f"block {access['block']}, thread {access['thread']}"


def place_of(access):
    return f"{access['file']}:{access['line']}" if access["file"] and access["line"] else ""


def access_lines(access, what):
    """An access, and its line of code below."""
    head = [place_of(access), f"{who(access)}{what}" if access["block"] else what.lstrip(": ")]
    return indented("  ".join(filter(None, head)), 2) + ([f"      {access['code']}"] if access["code"] else [])


def fault_lines(fault):
    """Both accesses, or the one, in the order in which the simulator has met them."""
    if not fault["second"]:
        what = fault["other"] or ""
        if fault["kind"] == "uninitialized" and not what.startswith("reads"):
            what = f"reads {what}"
        join = " " if what.startswith(("reads ", "writes ")) else ": " if what else ""
        return access_lines(fault, join + what)
    waits = {"divergent_barrier": "waits"}.get(fault["kind"])
    first, second = fault["second"], fault
    if place_of(first) == place_of(second):
        first = {**first, "code": ""}
    lines = []
    for access in (first, second):
        word = waits or access["access"]
        lines += access_lines(access, f" {word} here" if word else "")
    return lines


def cause_of(case):
    """What makes two cases fail for the same reason; None where a case has neither fault nor crash."""
    fault = case["fault"]
    if fault:
        both = (fault, fault["second"] or {})
        return (fault["kind"], frozenset((access.get("file"), access.get("line")) for access in both))
    return case["stopped"] or None


def causes_of(marks):
    """Lists of cases that have the same fault: first the one that most have, and among equals the one met first."""
    groups = {}
    for case in marks["cases"]:
        cause = cause_of(case)
        if cause:
            groups.setdefault(cause, []).append(case)
    groups = [sorted(cases, key=reach, reverse=True) for cases in groups.values()]  # which keeps the order of equals
    return sorted(groups, key=lambda cases: (cases[0]["stopped"].startswith("not run"), -len(cases)))


def folded(check, marks):
    """Whether the line was lost by faults and crashes alone."""
    return (check["score"] < check["max_score"] and bool(check["lost_in"])
            and all(cause_of(marks["cases"][number]) for number in check["lost_in"]))


def comes_first(marks):
    """Whether the fault is to be corrected before all else: the first line that is lost was lost by it."""
    return next((folded(check, marks) for check in marks["checks"] if check["score"] < check["max_score"]), False)


def name_of_cause(case):
    """ "a race within one block at exercise.cu:40" """
    fault = case["fault"]
    if not fault:
        return case["stopped"]
    return described(fault)[0] + (f" at {place_of(fault)}" if place_of(fault) else "")


def explanation(marks, level):
    """The fault to correct first: what, where, what it means. Empty where there is none."""
    causes = causes_of(marks)
    if not causes:
        return [], False
    first, *others = causes
    case, fault, more = first[0], first[0]["fault"], False
    head = "Correct this first:" if comes_first(marks) else "There is a fault, too:"
    shapes = f"{len(first)} of {len(marks['cases'])} shapes, here in {case['name']}"
    if fault:
        name, meaning, hint = described(fault)
        kind = "" if fault["kind"] == "race" else f" ({fault['kind']})"
        lines = indented(f"{head} {name}{kind}, in {shapes}", 0)
        lines += fault_lines(fault) + indented(meaning, 2)
        of_lab = [text for check in marks["checks"] if isinstance(check["hints"], dict)
                  for text in own_hints(check, fault)]
        hints, more = hint_lines([text for text in (hint, *of_lab) if text], level, 2)
        lines += hints
    else:
        lines = indented(f"{head} {case['stopped']}, in {shapes}", 0)
    for cases in others[:SHOWN]:
        lines += indented(f"Then there is {name_of_cause(cases[0])}, in {len(cases)} of "
                          f"{len(marks['cases'])} shapes; it may go away with the first.", 2)
    if len(others) > SHOWN:
        lines += indented(f"And {len(others) - SHOWN} more.", 2)
    return lines, more


# ---- Hints -----------------------------------------------------------------------------------------------------------


def hint_lines(hints, level, indent):
    """The hints up to a level, and whether there are more."""
    lines = []
    for number, hint in enumerate(hints[:level], 1):
        label = f"Hint {number} of {len(hints)}" if len(hints) > 1 else "Hint"
        lines += indented(f"{label}: {hint}", indent)
    return lines, level > 0 and len(hints) > level


def hints_of(check):
    """Of a line that was not lost by a fault."""
    if check["waits"]:
        return []
    hints = check["hints"]
    return [hints[key] for key in ("unwritten",) if key in hints] if isinstance(hints, dict) else hints


# ---- Reports ---------------------------------------------------------------------------------------------------------


def indented(text, indent, width=100):
    return textwrap.wrap(text, width, initial_indent=" " * indent, subsequent_indent=" " * (indent + 2),
                         break_long_words=False, break_on_hyphens=False)


def named(check):
    """Its name, and how many shapes are right where that is some of them."""
    partly = 0 < check["score"] < check["max_score"]
    return check["name"] + (f" ({check['right']} of {check['shapes']} shapes right)" if partly else "")


def remarks(check):
    """What is to be said of a line, besides hints."""
    if check["score"] == check["max_score"]:
        return [check["measured"]] if check["measured"] else []
    return check["messages"]


def together(checks, why):
    """Several lines of the marks as one."""
    if not checks:
        return []
    score, most = (sum(check[key] for check in checks) for key in ("score", "max_score"))
    return [f"{score:3}/{most:<3} {why}"] + [f"        {line}" for line in textwrap.wrap("; ".join(map(named, checks)), 92)]


def check_lines(check, level):
    lines = [f"{check['score']:3}/{check['max_score']:<3} {named(check)}"]
    lines += [part for text in remarks(check) for part in indented(text, 8)]
    if check["score"] == check["max_score"]:
        return lines, False
    hints, more = hint_lines(hints_of(check), level, 8)
    return lines + hints, more


def rejected_lines(marks):
    return [part for text in (*marks["rejected"].splitlines(), f"To do: {marks['remedy']}")
            for part in indented(text, 2)]


def as_text(marks, folder, source, level=1):
    lines = [f"Lab {folder.name[:2]}: {marks['title']}", f"{os.path.relpath(source)}, {marks['where']}"]
    lines += indented(marks["variant"], 0) if marks.get("variant") else []
    if "rejected" in marks:
        lines += ["", *rejected_lines(marks), ""]
        lines += [f"{check['score']:3}/{check['max_score']:<3} {check['name']}" for check in marks["checks"]]
    else:
        explained, more = explanation(marks, level)
        because = [check for check in marks["checks"] if folded(check, marks)]
        waiting = [check for check in marks["checks"] if check["waits"] and check not in because]
        count = f"{len(because)} lines" if len(because) > 1 else "1 line"
        of_fault = ["", *explained, "", *together(because, f"{count} failed because of this:")] if explained else []
        others = []
        for check in marks["checks"]:
            if check not in because and check not in waiting:
                shown, further = check_lines(check, level)
                others += shown
                more = more or further
        others += together(waiting, "graded once outputs are right:")
        lines += [*of_fault, *others] if of_fault and comes_first(marks) else ["", *others, *of_fault]
        if more:
            lines += ["", f"More exact hints: --hint {level + 1}"]
    if marks["score"] < marks["max_score"]:
        lines += [part for text in marks["warnings"] for part in indented(f"The compiler warns: {text}", 0)]
    lines += ["", f"{marks['score']} of {marks['max_score']} points"]
    return "\n".join(lines)


def as_gradescope(marks, folder, level=1):
    """Gradescope's results.json."""
    explained = [] if "rejected" in marks else explanation(marks, level)[0]
    tests = []
    for check in marks["checks"]:
        lost = check["score"] < check["max_score"]
        output = remarks(check)
        if "rejected" not in marks and folded(check, marks):
            output = [f"failed because of {name_of_cause(causes_of(marks)[0][0])}: see above"]
        elif lost and "rejected" not in marks:
            output = output + [line.strip() for line in hint_lines(hints_of(check), level, 0)[0]]
        if 0 < check["score"] < check["max_score"]:
            output = [f"{check['right']} of {check['shapes']} shapes right", *output]
        tests.append({"name": check["name"], "score": check["score"], "max_score": check["max_score"],
                      "status": "failed" if lost else "passed", "output": "\n".join(output), "visibility": "visible"})
    output = [f"Lab {folder.name[:2]}: {marks['title']}"] + ([marks["variant"]] if marks.get("variant") else [])
    if "rejected" in marks:
        output += [marks["rejected"], f"To do: {marks['remedy']}"]
    output += explained
    if marks["score"] < marks["max_score"]:
        output += [f"The compiler warns: {text}" for text in marks["warnings"]]
    return {"score": marks["score"], "output": "\n".join(output), "visibility": "visible", "tests": tests}


def shorten(marks, source):
    """Names the student's file as the student knows it, and quotes its lines."""
    names = sorted({str(source), str(source.resolve()), str(source).replace(f"{ROOT}/", "")}, key=len, reverse=True)
    pattern = re.compile(f"({'|'.join(map(re.escape, names))}):")

    def short(text):
        return re.sub(r"[^\S ]|[\x00-\x1f\x7f]", " ", pattern.sub(lambda match: f"{source.name}:", text))

    for case in marks["cases"]:
        for access in filter(None, (case["fault"], (case["fault"] or {}).get("second"))):
            quote(access, source)
    for check in marks["checks"]:
        check["messages"] = list(map(short, check["messages"]))
    marks["warnings"] = list(map(short, marks["warnings"]))
    if "rejected" in marks:
        marks["rejected"] = "\n".join(map(short, marks["rejected"].split("\n")))
    return marks
