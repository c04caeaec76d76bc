"""The ladder as a picture, docs/results/plots/ladder.svg, which tools/tables.py writes with the tables.

A dot for each stage, a panel for each track; as high as the stage is fast, beside cuDNN's best. An arrow for each step,
with its factor. Below each dot a bar: the share of the floor. The texts have room for DejaVu Sans (text_width.py).
"""

import html
import math

from cells import tiles_text
from text_width import text_width

LOWEST, HIGHEST = 0.02, 8  # of the axis
DECADE = 92  # pixels
STEP = 46  # from a stage to the next
LEFT, TOP, GAP = 52, 58, 26  # beside the first panel, above it, between panels
SHARES, NAMES = 76, 116  # pixels below a panel: the bars, the names
BAR = 40  # of a share of 100%
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
  .share { fill: #8c959f } .rest { fill: #d1d9e0; fill-opacity: .5 } .percent { font-size: 10px; text-anchor: middle }
  .below { fill: #ffffff; stroke: #1f2328; stroke-width: 1.5 }
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
    .share { fill: #6e7681 } .rest { fill: #3d444d }
    .below { fill: #0d1117; stroke: #e6edf3 }
    .number { fill: #0d1117 }
  }
</style>"""


def height(speed):
    """Below the panel's upper end."""
    return DECADE * math.log10(HIGHEST / max(speed, LOWEST))


def factor_text(value):
    return f"{value:.1f}×" if value >= 1.95 else f"{value:.2f}×"


def chosen(rows, stage_of):
    """Of each stage its first row, where that can be held against cuDNN: {number: row}."""
    found = {}
    for row in rows:
        if row["number"] is not None and stage_of(row["number"])["track"] in TITLES and row["speedup"]:
            found.setdefault(row["number"], row)
    return {number: row for number, row in sorted(found.items()) if row["speedup"]["cudnn_best"]}


def percent_text(share):
    """Of the floor."""
    return f"{100 * share:.0f}%" if share >= 0.01 else "<1%"


class Panel:
    """A track's dots and arrows, and where its texts may still stand."""

    def __init__(self, track, numbers, rows, stage_of, left, top):
        self.rows, self.stage_of, self.left, self.top = rows, stage_of, left, top
        self.right, self.bottom = left + STEP * len(numbers), top + height(LOWEST)
        self.dots = {number: (left + STEP * (place + 0.5), top + height(rows[number]["speedup"]["cudnn_best"]))
                     for place, number in enumerate(numbers)}
        self.taken = [(x - 13, y - 13, x + 13, y + 13) for x, y in self.dots.values()]
        self.labels = []
        parts = [f'<text class="title" x="{left}" y="{top - 12}">{TITLES[track]}</text>']
        for speed in (0.1, 1):
            y = top + height(speed)
            parts.append(f'<line class="{"even" if speed == 1 else "grid"}" x1="{left}" x2="{self.right}" y1="{y:.1f}" '
                         f'y2="{y:.1f}"/>')
        parts += [self.arrow_to(number) for number in numbers]
        parts += [self.label(*label) for label in self.labels]
        parts += [self.dot(number) for number in numbers]
        self.svg = "\n".join(filter(None, parts))

    def arrow_to(self, number):
        """From the stage before, with the step's factor; "" where there is none."""
        stage, previous = self.stage_of(number), self.rows[number]["speedup"]["previous"]
        if not previous or stage["previous"] not in self.dots:
            return ""
        kind, text = "up" if previous >= 1 else "down", factor_text(previous)
        if self.stage_of(stage["previous"])["dtype"] != stage["dtype"]:  # and so another time of cuDNN's
            kind, text = "type", f"{text} ({stage['dtype']})"
        elif tiles_text(self.rows[number]):
            kind = "type"
        (x0, y0), (x1, y1) = self.dots[stage["previous"]], self.dots[number]
        between = [self.dots[other][1] for other in self.dots if stage["previous"] < other < number]
        bend = 0
        if between and abs(between[0] - (y0 + y1) / 2) < 40:  # past the dot between them
            bend = 28 if between[0] < (y0 + y1) / 2 else -28
        cx, cy = (x0 + x1) / 2, (y0 + y1) / 2 + 2 * bend  # of a quadratic curve, which goes half way to it

        def towards(x, y, distance):
            length = math.hypot(cx - x, cy - y)
            return x + (cx - x) / length * distance, y + (cy - y) / length * distance

        (sx, sy), (tx, ty), (hx, hy) = towards(x0, y0, 13), towards(x1, y1, 20), towards(x1, y1, 13)
        curve = [((1 - t) ** 2 * sx + 2 * t * (1 - t) * cx + t * t * tx,
                  (1 - t) ** 2 * sy + 2 * t * (1 - t) * cy + t * t * ty) for t in (i / 16 for i in range(17))]
        self.taken += [(x - 4, y - 4, x + 4, y + 4) for x, y in (*curve, (hx, hy))]
        self.labels.append((kind, text, curve[8]))
        ux, uy = (hx - tx) / 7, (hy - ty) / 7
        head = f"{hx:.1f},{hy:.1f} {tx - 4 * uy:.1f},{ty + 4 * ux:.1f} {tx + 4 * uy:.1f},{ty - 4 * ux:.1f}"
        return (f'<path class="{kind}" d="M{sx:.1f} {sy:.1f}Q{cx:.1f} {cy:.1f} {tx:.1f} {ty:.1f}"/>'
                f'<polygon class="{kind}-head" points="{head}"/>')

    def label(self, kind, text, middle):
        """A text as near to the middle of its arrow as nothing else is."""
        width, lines = text_width(text, 11), [self.top + height(speed) for speed in (0.1, 1)]
        taken = [*self.taken, *((self.left, y - 1, self.right, y + 1) for y in lines)]

        def box(x, y):
            return x - width / 2 - 2, y - 5, x + width / 2 + 2, y + 5

        def cost(x, y):
            x0, y0, x1, y1 = box(x, y)
            covered = sum(max(0, min(x1, u1) - max(x0, u0)) * max(0, min(y1, v1) - max(y0, v0))
                          for u0, v0, u1, v1 in taken)
            outside = max(0, self.left - 10 - x0) + max(0, x1 - self.right - GAP / 2)
            return 10 * covered + 100 * outside + math.hypot(x - middle[0], 1.5 * (y - middle[1]))

        x, y = min(((middle[0] + dx, middle[1] + dy) for dx in range(-60, 61, 3) for dy in range(-48, 49, 3)),
                   key=lambda place: cost(*place))
        self.taken.append(box(x, y))
        return f'<text class="{kind} middle" x="{x:.1f}" y="{y + 4:.1f}">{html.escape(text)}</text>'

    def dot(self, number):
        """With what stands below it: the share of the floor, and the stage's name."""
        x, y = self.dots[number]
        speed, share = self.rows[number]["speedup"]["cudnn_best"], self.rows[number]["roofline"]["share"]
        below = speed < LOWEST
        part = (f'<circle class="{"below" if below else "dot"}" cx="{x:.1f}" cy="{y:.1f}" r="11"/>'
                f'<text class="{"below-number" if below else "number"}" x="{x:.1f}" y="{y + 4:.1f}">{number:02}</text>')
        if below:
            part += f'<text class="soft middle" x="{x:.1f}" y="{y + 25:.1f}">{speed:.1g}×</text>'
        foot, full = self.bottom + SHARES + 12, min(share, 1) * BAR
        return (f'{part}<rect class="rest" x="{x - 9:.1f}" y="{foot - BAR:.1f}" width="18" height="{BAR}"/>'
                f'<rect class="share" x="{x - 9:.1f}" y="{foot - full:.1f}" width="18" height="{full:.1f}"/>'
                f'<text class="percent" x="{x:.1f}" y="{foot - BAR - 4:.1f}">{html.escape(percent_text(share))}</text>'
                f'<text class="soft end" transform="translate({x + 4:.1f} {foot + 14:.1f}) rotate(-38)">'
                f'{html.escape(self.stage_of(number)["name"])}</text>')


LEGEND = ((("up", "a step, and how many times as fast"), ("down", "a step back"), ("below", "lower than the axis")),
          (("type", "a step to another type, or over the stage before with its fastest tiles"),
           ("share", "share of the floor: the least time that bytes and FLOP allow")))


def sign(kind, x, y):
    """As it is in the panels."""
    if kind == "below":
        return f'<circle class="below" cx="{x + 12}" cy="{y - 4}" r="7"/>'
    if kind == "share":
        return (f'<rect class="rest" x="{x + 8}" y="{y - 12}" width="12" height="16"/>'
                f'<rect class="share" x="{x + 8}" y="{y - 4}" width="12" height="8"/>')
    return f'<path class="{kind}" d="M{x} {y - 4}h24"/>'


def legend(y):
    """What the signs mean, in two lines."""
    parts = []
    for line in LEGEND:
        x = LEFT
        for kind, text in line:
            look = "soft" if kind in ("below", "share") else kind
            parts.append(f'{sign(kind, x, y)}<text class="{look}" x="{x + 30}" y="{y}">{text}</text>')
            x += round(text_width(text, 11)) + 54
        y += 24
    return parts


def picture(rows, stage_of):
    """The SVG. @param rows of reports  @param stage_of gives the stage.json of a number"""
    stages = chosen(rows, stage_of)
    tracks = {}
    for number in stages:
        tracks.setdefault(stage_of(number)["track"], []).append(number)
    parts, width, y = [], 0, TOP
    for line in LINES:
        x = LEFT
        for speed in (5, 1, 0.1, 0.02):
            parts.append(f'<text class="soft end" x="{x - 6}" y="{y + height(speed) + 4:.1f}">{speed:g}×</text>')
        for track in filter(tracks.get, line):
            parts.append(Panel(track, tracks[track], stages, stage_of, x, y).svg)
            x += round(max(STEP * len(tracks[track]), text_width(TITLES[track], 13, bold=True))) + GAP
        width, y = max(width, x), y + round(height(LOWEST)) + SHARES + NAMES + 24
    parts += legend(y - 10)
    y += 24
    title = ('<text class="title" x="10" y="20">How many times as fast as cuDNN’s best, stage by stage '
             '(log scale; the line at 1× is cuDNN)</text>')
    size = f'viewBox="0 0 {width} {y}" width="{width}" height="{y}"'
    return (f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n' + STYLE + "\n" + "\n".join([title, *parts]) +
            "\n</svg>\n")
