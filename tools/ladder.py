"""The ladder as a picture, docs/results/plots/ladder.svg, which tools/tables.py writes with the tables.

A dot for each stage, a panel for each track; as high as the stage is fast, beside cuDNN's best. An arrow for each step,
with its factor. The texts are as wide as the widest of the fonts that a reader may have, DejaVu Sans, draws them.
"""

import html
import math

from cells import tiles_text

GLYPH = 0.65  # of the size of a font: the width of a digit or letter of DejaVu Sans, seldom more
LOWEST, HIGHEST = 0.02, 8  # of the axis
DECADE = 92  # pixels
STEP = 54  # from a stage to the next
LEFT, TOP, NAMES, GAP = 56, 58, 140, 34  # beside the first panel, above it, below it for the names, between panels
LINES = (("signals", "images", "depthwise"), ("lowering", "winograd", "hopper"))
TITLES = {"signals": "Signals, 1D", "images": "Images, 3×3", "depthwise": "Depthwise, 7×7",
          "lowering": "Matrix product, fp32", "winograd": "Winograd", "hopper": "Hopper: TMA, wgmma"}
STYLE = """<style>
  text { font-family: "DejaVu Sans", Arial, sans-serif; font-size: 11px; fill: #1f2328 }
  .title { font-size: 13px; font-weight: bold }
  .soft { fill: #59636e }
  .grid { stroke: #d1d9e0; stroke-width: 1 }
  .even { stroke: #59636e; stroke-width: 1.5 }
  .up { stroke: #0969da } .up-head, text.up { fill: #0969da; stroke: none }
  .down { stroke: #bc4c00 } .down-head, text.down { fill: #bc4c00; stroke: none }
  .type { stroke: #59636e; stroke-dasharray: 4 3 } .type-head, text.type { fill: #59636e; stroke: none }
  path { fill: none; stroke-width: 2 }
  .dot { fill: #1f2328 }
  .below { fill: #ffffff; stroke: #1f2328; stroke-width: 1.5 }
  .factor { paint-order: stroke; stroke: #ffffff !important; stroke-width: 4px; stroke-dasharray: none }
  .number { fill: #ffffff; font-weight: bold; text-anchor: middle }
  .below-number { font-weight: bold; text-anchor: middle }
  .middle { text-anchor: middle } .end { text-anchor: end }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .soft { fill: #9198a1 }
    .grid { stroke: #3d444d }
    .even { stroke: #9198a1 }
    .up { stroke: #4493f8 } .up-head, text.up { fill: #4493f8 }
    .down { stroke: #f0883e } .down-head, text.down { fill: #f0883e }
    .type { stroke: #9198a1 } .type-head, text.type { fill: #9198a1 }
    .dot { fill: #e6edf3 }
    .below { fill: #0d1117; stroke: #e6edf3 }
    .factor { stroke: #0d1117 !important }
    .number { fill: #0d1117 }
  }
</style>"""


def height(speed):
    """Below the panel's upper end."""
    return DECADE * math.log10(HIGHEST / max(speed, LOWEST))


def text_width(text, size=11):
    return GLYPH * size * len(text)


def factor_text(value):
    return f"{value:.1f}×" if value >= 1.95 else f"{value:.2f}×"


def chosen(rows, stage_of):
    """Of each stage its first row, where that can be held against cuDNN: {number: row}."""
    found = {}
    for row in rows:
        if row["number"] is not None and stage_of(row["number"])["track"] in TITLES and row["speedup"]:
            found.setdefault(row["number"], row)
    return {number: row for number, row in sorted(found.items()) if row["speedup"]["cudnn_best"]}


def arrow(begin, end, bend, kind, text):
    """From one dot to another, past those between them by a bend, with a text at its middle."""
    (x0, y0), (x1, y1) = begin, end
    cx, cy = (x0 + x1) / 2, (y0 + y1) / 2 + 2 * bend  # of a quadratic curve, which goes half way to it

    def towards(x, y, distance):
        length = math.hypot(cx - x, cy - y)
        return x + (cx - x) / length * distance, y + (cy - y) / length * distance

    (sx, sy), (tx, ty), (hx, hy) = towards(x0, y0, 13), towards(x1, y1, 20), towards(x1, y1, 13)
    ux, uy = (hx - tx) / 7, (hy - ty) / 7
    head = f"{hx:.1f},{hy:.1f} {tx - 4 * uy:.1f},{ty + 4 * ux:.1f} {tx + 4 * uy:.1f},{ty - 4 * ux:.1f}"
    mx, my = (x0 + 2 * cx + x1) / 4, (y0 + 2 * cy + y1) / 4
    if bend:
        place, anchor = (mx, my - 5 if bend < 0 else my + 14), "middle"
    elif abs(y1 - y0) < 40:  # a flat arrow has its text above, or below where it leads down
        place, anchor = (mx, min(y0, y1) - 15 if y1 <= y0 else max(y0, y1) + 22), "middle"
    else:  # a steep one beside it
        place, anchor = (mx - 6, my - 2) if y1 < y0 else (mx - 4, my + 12), "end"
    return (f'<path class="{kind}" d="M{sx:.1f} {sy:.1f}Q{cx:.1f} {cy:.1f} {tx:.1f} {ty:.1f}"/>'
            f'<polygon class="{kind}-head" points="{head}"/>'
            f'<text class="factor {kind} {anchor}" x="{place[0]:.1f}" y="{place[1]:.1f}">{html.escape(text)}</text>')


def panel(track, numbers, rows, stage_of, left, top):
    """A track's dots and arrows."""
    bottom, right = top + height(LOWEST), left + STEP * len(numbers)
    parts = [f'<text class="title" x="{left}" y="{top - 12}">{TITLES[track]}</text>']
    for speed in (0.1, 1):
        y = top + height(speed)
        parts.append(f'<line class="{"even" if speed == 1 else "grid"}" x1="{left}" x2="{right}" y1="{y:.1f}" '
                     f'y2="{y:.1f}"/>')
    dots = {number: (left + STEP * (place + 0.5), top + height(rows[number]["speedup"]["cudnn_best"]))
            for place, number in enumerate(numbers)}
    for number, dot in dots.items():
        stage, previous = stage_of(number), rows[number]["speedup"]["previous"]
        if previous and stage["previous"] in dots:
            before = stage_of(stage["previous"])
            kind, text = "up" if previous >= 1 else "down", factor_text(previous)
            if before["dtype"] != stage["dtype"]:  # and so another time of cuDNN's
                kind, text = "type", f"{text} ({stage['dtype']})"
            elif tiles_text(rows[number]):
                kind = "type"
            begin = dots[stage["previous"]]
            between = [dots[other][1] for other in dots if stage["previous"] < other < number]
            middle = (begin[1] + dot[1]) / 2
            bend = 0
            if between and abs(between[0] - middle) < 40:
                bend = 28 if between[0] < middle else -28
            parts.append(arrow(begin, dot, bend, kind, text))
    for number, (x, y) in dots.items():
        speed = rows[number]["speedup"]["cudnn_best"]
        below = speed < LOWEST
        parts.append(f'<circle class="{"below" if below else "dot"}" cx="{x:.1f}" cy="{y:.1f}" r="11"/>'
                     f'<text class="{"below-number" if below else "number"}" x="{x:.1f}" y="{y + 4:.1f}">'
                     f'{number:02}</text>')
        if below:
            parts.append(f'<text class="soft middle" x="{x:.1f}" y="{y + 25:.1f}">{speed:.1g}×</text>')
        name = stage_of(number)["name"]
        parts.append(f'<text class="soft end" transform="translate({x + 4:.1f} {bottom + 42:.1f}) rotate(-38)">'
                     f'{html.escape(name)}</text>')
    return "\n".join(parts)


def picture(rows, stage_of):
    """The SVG. @param rows of reports  @param stage_of gives the stage.json of a number"""
    stages = chosen(rows, stage_of)
    tracks = {}
    for number in stages:
        tracks.setdefault(stage_of(number)["track"], []).append(number)
    parts, width, y = [], 0, TOP
    tall = height(LOWEST)
    for line in LINES:
        x = LEFT
        for speed in (5, 1, 0.1, 0.02):
            parts.append(f'<text class="soft end" x="{x - 6}" y="{y + height(speed) + 4:.1f}">{speed:g}×</text>')
        for track in filter(tracks.get, line):
            numbers = tracks[track]
            parts.append(panel(track, numbers, stages, stage_of, x, y))
            x += max(STEP * len(numbers), text_width(TITLES[track], 13 * 1.1)) + GAP
        width, y = max(width, x), y + tall + NAMES + 30
    width, y = round(width), round(y) - 28
    legend = ['<text class="title" x="10" y="20">How many times as fast as cuDNN’s best, stage by stage '
              '(log scale; the line at 1× is cuDNN)</text>']
    x = LEFT
    for kind, text in (("up", "a step, times as fast"), ("down", "a step back"),
                       ("type", "a step to another type, or over the stage before with its fastest tiles")):
        legend.append(f'<path class="{kind}" d="M{x} {y + 2}h24"/>'
                      f'<text class="{kind}" x="{x + 30}" y="{y + 6}">{text}</text>')
        x += round(60 + text_width(text))
    legend.append(f'<circle class="below" cx="{x + 8}" cy="{y + 2}" r="7"/><text class="soft" x="{x + 22}" y="{y + 6}">'
                  'lower than the axis</text>')
    size = f'viewBox="0 0 {width} {y + 20}" width="{width}" height="{y + 20}"'
    return (f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n' + STYLE + "\n" + "\n".join([*legend, *parts]) +
            "\n</svg>\n")
