"""The tables of stages on several GPUs: from the files NAME-2.json and NAME-4.json that tools/measure/multi.sh writes.

A row of theirs is named by what ran and a shape: "41-halo-exchange h=4000,w=6000,r=3,s=3". Times are hot ones.
"""

import itertools
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
        if share not in alone:
            continue
        what, _, shape = share.rpartition(" ")
        line = [f"{what}: {shape_text(shape)} a GPU", cell(alone[share])]
        for count in COUNTS:
            line += [cell(times[count]), f"{alone[share] / times[count]:.0%}"] if count in times else ["–", "–"]
        lines.append(line)
    if not lines:
        raise TableError("has no rows")
    heads = [text for count in COUNTS for text in (f"{count} GPUs", f"efficiency on {count}")]
    return markdown(["µs", "one GPU", *heads], lines, 1)


def halo_bytes(name):
    """What a rank sends each neighbour of a stage's row: half of the rows of taps but one, of all images."""
    sizes = {key: int(value) for key, value in (part.split("=") for part in name.rpartition(" ")[2].split(","))}
    element = 2 if name.startswith("33") else 4
    return (sizes["r"] - 1) // 2 * sizes["w"] * sizes.get("c", 1) * sizes.get("n", 1) * element


def exchange_time(exchanges, length):
    """Of so many bytes: on the line between the two lengths around it that were measured."""
    points = [(int(row["name"]), row["values"][0]) for row in exchanges["rows"]]
    for (shorter, low), (longer, high) in itertools.pairwise(points):
        if length <= longer:
            return low + (high - low) * max(length - shorter, 0) / (longer - shorter)
    raise TableError(f"has no exchange of {length} bytes")


def losses(reports, exchanges, pattern):
    """What a time is above an even share of one GPU's, beside an exchange alone, and from which time on dividing pays."""
    tables = [times_of(report) for report in reports]
    lines = []
    for name in dict.fromkeys(name for table in tables for name in table):
        if not re.search(pattern, name):
            continue
        what, _, shape = name.rpartition(" ")
        line = [f"{what}: {shape_text(shape)}", cell(next(table[name][1] for table in tables if name in table))]
        for table, exchange, count in zip(tables, exchanges, COUNTS):
            alone = exchange_time(exchange, halo_bytes(name))
            time, one, _ = table.get(name, (None, None, None))
            line += [cell(time and time - one / count), cell(alone), cell(alone * count / (count - 1))]
        lines.append(line)
    if not lines:
        raise TableError("has no rows")
    heads = [text for count in COUNTS for text in (
        f"above a share on {count}", f"an exchange on {count}", f"pays from, on {count}")]
    return markdown(["µs", "one GPU", *heads], lines, 1)


def several_table(results, name, words):
    """@param results a file by its name  @param words strong, weak or losses, and a pattern that the names of rows hold"""
    if len(words) != 2 or words[0] not in ("strong", "weak", "losses"):
        raise TableError("is no table: write a file, strong, weak or losses, and a pattern of the rows' names")
    reports = [results(f"{name}-{count}") for count in COUNTS]
    if words[0] == "losses":
        return losses(reports, [results(f"{name}-{count}-exchange") for count in COUNTS], words[1])
    return {"strong": strong, "weak": weak}[words[0]](reports, words[1])
