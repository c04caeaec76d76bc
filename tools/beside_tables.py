"""The tables of what `./lab bench` compares the stages with, one workload a line; tables.py lists their kinds."""

from cells import TableError, markdown, median, stage_cell, time_cell
from comparisons import cudnn_best, row_cell


def workloads_of(rows):
    """{workload: {stage: row}}, both in the order of the report."""
    found = {}
    for row in rows:
        found.setdefault(row["workload_name"] or "", {})[row["stage"]] = row
    return found


def columns_of(rows):
    """{stage: its heading}."""
    return {row["stage"]: stage_cell(row) for row in rows}


def cell_of(row):
    """The time; of a library's kernel that was chosen among several, which."""
    text = row_cell(row)
    chosen = row and row["number"] is None and median(row) and row["configuration"]
    return f"{text} ({', '.join(str(value) for value in chosen.values())})" if chosen else text


def times(rows):
    """Hot times in microseconds, cuDNN's best last where it was measured."""
    def cudnn_cell(trial):
        return time_cell(trial and trial["time_us"])

    columns, lines = columns_of(rows), []
    types = sorted({row["dtype"] for row in rows})
    measured = [dtype for dtype in types if any(cudnn_best(stages, dtype) for stages in workloads_of(rows).values())]
    for name, stages in workloads_of(rows).items():
        lines.append([name, *(cell_of(stages.get(stage)) for stage in columns),
                      *(cudnn_cell(cudnn_best(stages, dtype)) for dtype in measured)])
    return markdown([f"time (µs), {rows[0]['device']}", *columns.values(),
                     *(f"cuDNN's best in {dtype}" for dtype in measured)], lines, 1)


def libraries(rows):
    """What each row that is no stage stands on, and on how many workloads it was right."""
    columns = {row["stage"]: [each for each in rows if each["stage"] == row["stage"]] for row in rows
               if row["number"] is None}
    if not columns:
        raise TableError("has no row that is no stage")

    def ended(own, status):
        return str(sum(row["status"] == status for row in own))

    return markdown(["row", "stands on", "right", "refused", "failed"],
                    [[stage, next((row["library"] for row in own if row.get("library")), "–"), ended(own, "ok"),
                      ended(own, "refused"),
                      str(sum(row["status"] not in ("ok", "refused") for row in own))] for stage, own in columns.items()],
                    2)


KINDS = {"times": times, "libraries": libraries}


def beside_table(rows, words):
    if len(words) != 1 or words[0] not in KINDS:
        raise TableError(f"is no table: write a file, and one of {', '.join(KINDS)}")
    if not rows:
        raise TableError("has no rows")
    return KINDS[words[0]](rows)
