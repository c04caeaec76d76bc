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


def sizes_of(name):
    """Of a row: {"h": 2160, ...}."""
    return {key: int(value) for key, value in re.findall(r"\b(\w+)=(\d+)", name)}


def names_of(tables, pattern):
    """Of the rows whose names hold the pattern: pictures before layers, small before large, then by taps and by stage.
    @throws TableError where there are none"""

    def place(name):
        sizes = sizes_of(name)
        return "c" in sizes, sizes.get("n", 1), sizes["h"] * sizes["w"], sizes["r"], name

    found = sorted({name for table in tables for name in table if re.search(pattern, name)}, key=place)
    if not found:
        raise TableError("has no rows")
    return found


def strong(reports, pattern):
    """The same problem on one GPU, on two and on four."""
    tables = [times_of(report) for report in reports]
    with_floor = any(floor is not None for table in tables for _, _, floor in table.values())
    lines = []
    for name in names_of(tables, pattern):
        what, _, shape = name.rpartition(" ")
        found = [table.get(name, (None, None, None)) for table in tables]
        one = next(time for _, time, _ in found if time is not None)
        line = [f"{what}: {shape_text(shape)}", cell(one)]
        for (time, _, floor), count in zip(found, COUNTS):
            line += [cell(time), cell(time and one / time, ".2f"), f"{one / time / count:.0%}" if time else "–"]
            line += [cell(floor)] if with_floor else []
        lines.append(line)
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
    for share in names_of([shares.keys() & alone.keys()], "."):
        times = shares[share]
        what, _, shape = share.rpartition(" ")
        line = [f"{what}: {shape_text(shape)} a GPU", cell(alone[share])]
        for count in COUNTS:
            line += [cell(times[count]), f"{alone[share] / times[count]:.0%}"] if count in times else ["–", "–"]
        lines.append(line)
    heads = [text for count in COUNTS for text in (f"{count} GPUs", f"efficiency on {count}")]
    return markdown(["µs", "one GPU", *heads], lines, 1)


def halo_bytes(name):
    """What a rank sends each neighbour of a stage's row: half of the rows of taps but one, of all images."""
    sizes = sizes_of(name)
    element = 2 if name.startswith("33") else 4
    return (sizes["r"] - 1) // 2 * sizes["w"] * sizes.get("c", 1) * sizes.get("n", 1) * element


def exchange_time(exchanges, length):
    """Of so many bytes: on the line between the two lengths around it that were measured."""
    points = [(int(row["name"]), row["values"][0]) for row in exchanges["rows"]]
    for (shorter, low), (longer, high) in itertools.pairwise(points):
        if length <= longer:
            return low + (high - low) * max(length - shorter, 0) / (longer - shorter)
    raise TableError(f"has no exchange of {length} bytes")


def beside_exchanges(reports, exchanges, pattern, cells_of):
    """Lines of stages' rows. `cells_of` makes those of one number of GPUs, of that, the time there and on one (None where it
    was not run) and the time of an exchange alone."""
    tables = [times_of(report) for report in reports]
    lines = []
    for name in names_of(tables, pattern):
        what, _, shape = name.rpartition(" ")
        line = [f"{what}: {shape_text(shape)}", cell(next(table[name][1] for table in tables if name in table))]
        for table, exchange, count in zip(tables, exchanges, COUNTS):
            time, one, _ = table.get(name, (None, None, None))
            line += cells_of(count, time, one, exchange_time(exchange, halo_bytes(name)))
        lines.append(line)
    return lines


def losses(reports, exchanges, pattern):
    """What a time is above an even share of one GPU's, beside an exchange alone."""
    lines = beside_exchanges(reports, exchanges, pattern, lambda count, time, one, alone: [
        cell(time and time - one / count), cell(alone)])
    heads = [text for count in COUNTS for text in (f"above a share on {count}", f"an exchange on {count}")]
    return markdown(["µs", "one GPU", *heads], lines, 1)


def model(reports, exchanges, pattern):
    """From which time on one GPU on dividing pays by the model, and what it says beside what was measured."""
    lines = beside_exchanges(reports, exchanges, pattern, lambda count, time, one, alone: [
        cell(alone * count / (count - 1)), cell(time and one / count + alone), cell(time)])
    heads = [text for count in COUNTS for text in (f"pays from, on {count}", f"the model on {count}", f"{count} GPUs")]
    return markdown(["µs", "one GPU", *heads], lines, 1)


WITHOUT = ", no exchange"  # of 41: the band alone


def parts_of(report):
    """By a launch's name: its values by column."""
    return {row["name"]: dict(zip(report["columns"], row["values"])) for row in report["rows"]}


def launch_text(name):
    head, comma, change = name.partition(", ")
    what, _, shape = head.rpartition(" ")
    return f"{what}: {shape_text(shape)}{comma}{change}"


def shares(reports, parts, pattern):
    """Of a stage's launch: what it is above an even share, and how much of that is the band's, without an exchange."""
    tables, launches = [times_of(report) for report in reports], [parts_of(report) for report in parts]
    lines = []
    for name in (name for name in names_of(launches, pattern) if ", " not in name):
        what, _, shape = name.rpartition(" ")
        line = [f"{what}: {shape_text(shape)}"]
        for table, launch, count in zip(tables, launches, COUNTS):
            if name not in table or name not in launch:
                line += ["–"] * 4
                continue
            time, share = launch[name]["time"], table[name][1] / count
            band = launch[f"41-halo-exchange {shape}{WITHOUT}"]["time"]
            line += [cell(share), cell(time - share), cell(band - share), cell(time - band)]
        lines.append(line)
    heads = [text for count in COUNTS for text in (
        f"a share on {count}", f"above it on {count}", f"by the band on {count}", f"by the rest on {count}")]
    return markdown(["µs", *heads], lines, 1)


def changes(parts, pattern):
    """Changed launches of one picture, a column for each size of filter and number of GPUs."""
    launches = [parts_of(report) for report in parts]
    lines, heads = {}, []
    for count, launch in zip(COUNTS, launches):
        for side in sorted({sizes_of(name)["r"] for name in launch if re.search(pattern, name)}):
            heads.append(f"{side} × {side} on {count}")
            for name in (name for name in launch if re.search(pattern, name) and sizes_of(name)["r"] == side):
                head, comma, change = name.partition(", ")
                lines.setdefault(f"{head.rpartition(' ')[0]}{comma}{change}", {})[heads[-1]] = cell(launch[name]["time"])
    if not lines:
        raise TableError("has no rows")
    return markdown(["µs", *heads], [[name, *(cells.get(head, "–") for head in heads)] for name, cells in lines.items()], 1)


def ends(parts, pattern):
    """Of launches with events: when their parts are over."""
    launches = [parts_of(report) for report in parts]
    names = dict.fromkeys(name for launch in launches for name in launch
                          if re.search(pattern, name) and launch[name]["second over"] is not None)
    none = dict.fromkeys(parts[0]["columns"])
    if not names:
        raise TableError("has no rows")
    lines = [[launch_text(name), *(cell(value) for launch in launches for value in launch.get(name, none).values())]
             for name in names]
    heads = [f"{column} on {count}" for report, count in zip(parts, COUNTS) for column in report["columns"]]
    return markdown(["µs", *heads], lines, 1)


# By a table's word: what makes it, and the endings of the files that it takes.
TABLES = {"strong": (strong, [""]), "weak": (weak, [""]), "losses": (losses, ["", "-exchange"]),
          "model": (model, ["", "-exchange"]), "shares": (shares, ["", "-parts"]), "changes": (changes, ["-parts"]),
          "ends": (ends, ["-parts"])}


def several_table(results, name, words):
    """@param results a file by its name  @param words one of TABLES, and a pattern that the names of rows hold"""
    if len(words) != 2 or words[0] not in TABLES:
        raise TableError(f"is no table: write a file, one of {', '.join(TABLES)}, and a pattern of the rows' names")
    make, endings = TABLES[words[0]]
    return make(*([results(f"{name}-{count}{ending}") for count in COUNTS] for ending in endings), words[1])
