"""How the tables of docs/ write the values of a report of `./lab bench`; for tables.py and the modules beside it."""

import math


class TableError(Exception):
    """A marker that cannot be served."""


def ratio(value):
    return "–" if value is None else f"{value:,.0f}×" if value >= 100 else f"{value:.2f}×"


def percent(value):
    return "–" if value is None else f"{100 * value:.1f}%"


def microseconds(value):
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def time_cell(time):
    return "–" if time is None else microseconds(time)


def median(row, key="time_us"):
    """A time of a row that may be missing, may have failed or may have no such time; else None."""
    return row[key]["median"] if row and row["status"] == "ok" and row.get(key) else None


def tiles_text(row):
    """Winograd's tiles of the row and of what it is compared with, where they differ: "2×2 over 4×4"; else ""."""
    its, others = row["tile"], (row["speedup"]["over"] or {}).get("tile")
    return f"{its} over {others}".replace("x", "×") if its and others and its != others else ""


def previous_cell(row, change=""):
    """The speedup over the previous stage. @param change  what else differs between the two, as in fp16 over fp32"""
    changes = ", ".join(filter(None, (change, tiles_text(row))))
    return ratio(row["speedup"]["previous"]) + (f" ({changes})" if changes else "")


def stage_cell(row):
    """The stage with its number; a row that is no stage has none."""
    return row["stage"] if row["number"] is None else f"{row['number']:02d} {row['stage']}"


def arithmetic_mean(values):
    return sum(values) / len(values)


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def markdown(headings, rows, left):
    """A table whose first `left` columns are texts and whose others are figures."""
    lines = [headings, ["---"] * left + ["---:"] * (len(headings) - left), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def with_means(lines, columns, cell):
    """The lines, and one of geometric means; `columns` hold the values, None where there is none."""
    present = [[value for value in column if value] for column in columns]
    means = [cell(geometric_mean(column) if column else None) for column in present]
    return [*lines, ["**geometric mean**", *means]]
