"""The tables of stages on several GPUs: from the files NAME-2.json and NAME-4.json that tools/measure/multi.sh writes.

A row of theirs is named by what ran and a shape: "41-halo-exchange h=4000,w=6000,r=3,s=3". Times are hot ones.
"""

import re

from cells import TableError, markdown

ONE, ALL, FLOOR = "one GPU, hot", "all GPUs, hot", "floor"
COUNTS = (2, 4)


def times_of(report):
    """By a row's name: its time on all GPUs, on one, and the floor, or None."""
    places = [report["columns"].index(name) if name in report["columns"] else None for name in (ALL, ONE, FLOOR)]
    return {row["name"]: tuple(None if place is None else row["values"][place] for place in places)
            for row in report["rows"]}


def shape_text(shape):
    """"n=8,h=2160,w=3840,r=3,s=3" as "8 × 3840 × 2160, 3 × 3"."""
    sizes = dict(part.split("=") for part in shape.split(","))
    text = " × ".join([*([sizes["n"]] if sizes.get("n", "1") != "1" else []), sizes["w"], sizes["h"]])
    return f"{text}, {sizes['r']} × {sizes['s']}" if "c" not in sizes else f"{text}, {sizes['c']} channels"


def cell(value, form=".1f"):
    return "–" if value is None else f"{value:{form}}"


def strong(reports, pattern):
    """The same problem on one GPU, on two and on four."""
    tables = [times_of(report) for report in reports]
    with_floor = any(floor is not None for table in tables for _, _, floor in table.values())
    lines = []
    for name in dict.fromkeys(name for table in tables for name in table):
        if not re.search(pattern, name):
            continue
        what, _, shape = name.rpartition(" ")
        found = [table.get(name, (None, None, None)) for table in tables]
        one = next(time for _, time, _ in found if time is not None)
        line = [f"{what}: {shape_text(shape)}", cell(one)]
        for (time, _, floor), count in zip(found, COUNTS):
            line += [cell(time), cell(time and one / time, ".2f"), f"{one / time / count:.0%}" if time else "–"]
            line += [cell(floor)] if with_floor else []
        lines.append(line)
    if not lines:
        raise TableError("has no rows")
    heads = [text for count in COUNTS for text in (
        f"{count} GPUs", f"times as fast on {count}", f"efficiency on {count}",
        *([f"floor on {count}"] if with_floor else []))]
    return markdown(["µs", "one GPU", *heads], lines, 1)


def weak(reports, pattern):
    """As much work for each GPU as one has: the height grows with their number."""
    tables = [times_of(report) for report in reports]
    shares = {}
    for table, count in zip(tables, COUNTS):
        for name, (time, _, _) in table.items():
            height = re.search(r"h=(\d+)", name)
            if re.search(pattern, name) and height and int(height[1]) % count == 0:
                share = name.replace(height[0], f"h={int(height[1]) // count}")
                shares.setdefault(share, {})[count] = time
    alone = {name: one for table in reversed(tables) for name, (_, one, _) in table.items()}
    lines = []
    for share, times in shares.items():
        if share not in alone or set(times) != set(COUNTS):
            continue
        what, _, shape = share.rpartition(" ")
        line = [f"{what}: {shape_text(shape)} a GPU", cell(alone[share])]
        for count in COUNTS:
            line += [cell(times[count]), f"{alone[share] / times[count]:.0%}"]
        lines.append(line)
    if not lines:
        raise TableError("has no rows")
    heads = [text for count in COUNTS for text in (f"{count} GPUs", f"efficiency on {count}")]
    return markdown(["µs", "one GPU", *heads], lines, 1)


def several_table(reports, words):
    """@param reports of COUNTS  @param words strong or weak, and a pattern that the names of rows hold"""
    if len(words) != 2 or words[0] not in ("strong", "weak"):
        raise TableError("is no table: write a file, strong or weak, and a pattern of the rows' names")
    return {"strong": strong, "weak": weak}[words[0]](reports, words[1])
