"""What plot.py draws of stages beside each other: dots in lines, a roofline, and the names at the ends of curves.

All sizes are inches, and the room for texts is what DejaVu Sans needs, matplotlib's own font.
"""
import math

from matplotlib import pyplot, ticker

from text_width import text_width

INK, SOFT, GRID = "#1f2328", "#59636e", "#d1d9e0"
# Colours that the colour-blind can tell apart; a number or letter in each dot tells, too.
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#7b5cc4", "#999999", "#8c6d31", "#b2182b")
# Of those that are too bright for letters on white, a shade for these; of those too dark on black, one for the dark theme.
LETTERS = {"#e69f00": "#a06a00", "#56b4e9": "#2478a8", "#009e73": "#007a59", "#cc79a7": "#a84f83", "#999999": "#6b6b6b"}
BRIGHTER = {"#0072b2": "#3b8fd0", "#7b5cc4": "#9d7fe0", "#8c6d31": "#b08d45", "#b2182b": "#dd4455"}
ON_LIGHT, ON_DARK = "#000000", "#fefefe"  # letters in a dot, in either theme
WIDTH = 9  # of a figure
SIZE, SMALL = 9, 8  # points
DOT = 0.19  # across
LINE = 0.23  # from a line of text to the next
SIDE = 0.15  # to the figure's edge
LOG_RATIO = 8  # of the largest value to the smallest, from which on an axis is logarithmic


def inches(text, size=SIZE):
    return text_width(text, size) / 72


def on(colour):
    """The colour of letters on it."""
    red, green, blue = (int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5))
    return ON_LIGHT if 0.3 * red + 0.6 * green + 0.1 * blue > 0.52 else ON_DARK


ABOVE = ("Above a roof: fewer operations than are counted, data found in L2, or more than the roof's own measurement "
         "reached.")


class Sheet:
    """A figure that is filled from its top."""

    def __init__(self, title):
        self.parts, self.height = [], 0.45
        self.title = title

    def room(self, height):
        """Where the next part of this height begins, from the top."""
        self.height += height
        return self.height - height

    def add(self, draw):
        """@param draw what is drawn once the height is known: a function of the figure"""
        self.parts.append(draw)

    def text(self, x, y, words, **look):
        """At the baseline."""
        self.add(lambda figure: figure.text(x / WIDTH, 1 - y / self.height, words, **{"fontsize": SIZE, **look}))

    def axes(self, figure, left, top, width, height):
        return figure.add_axes((left / WIDTH, 1 - (top + height) / self.height, width / WIDTH, height / self.height))

    def figure(self):
        figure = pyplot.figure(figsize=(WIDTH, self.height))
        figure.text(SIDE / WIDTH, 1 - 0.28 / self.height, self.title, fontsize=12)
        for draw in self.parts:
            draw(figure)
        return figure


def key_of(name, others):
    """What stands in the dot: a stage's number, or a letter for the rows that have none."""
    if name[:2].isdigit():
        return name[:2]
    return "abcdefghijklmnop"[[other for other in others if not other[:2].isdigit()].index(name)]


def looks_of(names):
    """Of each name in a panel its key and colour."""
    names = list(names)
    return {name: (key_of(name, names), PALETTE[i % len(PALETTE)]) for i, name in enumerate(names)}


def add_names(sheet, looks):
    """What the dots' keys mean, in as many lines as it needs."""
    x, y = SIDE, sheet.room(LINE)
    for name, (key, colour) in looks.items():
        words = name[3:] if name[:2].isdigit() else name
        width = DOT + 0.06 + inches(words, SMALL) + 0.2
        if x + width > WIDTH - SIDE and x > SIDE:
            x, y = SIDE, sheet.room(LINE)
        at = x + DOT / 2, y + LINE / 2

        def draw(figure, at=at, key=key, colour=colour):
            axes = sheet.axes(figure, at[0] - DOT / 2, at[1] - DOT / 2, DOT, DOT)
            axes.axis("off")
            axes.set(xlim=(-1, 1), ylim=(-1, 1))
            dot(axes, 0, 0, key, colour)

        sheet.add(draw)
        sheet.text(x + DOT + 0.06, at[1] + 0.04, words, fontsize=SMALL)
        x += width


def dot(axes, x, y, key, colour):
    axes.plot([x], [y], marker="o", markersize=DOT * 72, color=colour, markeredgewidth=0, clip_on=False, zorder=3)
    axes.annotate(key, (x, y), fontsize=7, fontweight="bold", color=on(colour), zorder=4, annotation_clip=False,
                  horizontalalignment="center", verticalalignment="center_baseline")


def levels_of(places):
    """For dots at these places, in inches: how many dots up each must go to lie on no other."""
    taken, levels = [], {}
    for name, place in sorted(places.items(), key=lambda item: item[1]):
        level = next(level for level in range(len(places)) if all(
            other != level or place - at >= DOT for at, other in taken))
        taken.append((place, level))
        levels[name] = level
    return levels


def scale_of(values):
    """Whether it is logarithmic, and its ends."""
    low, high = min(values), max(values)
    if low > 0 and high > LOG_RATIO * low:
        return True, low / 1.3, high * 1.3
    return False, 0, high * 1.05


def prepare_axis(axis, log, ends, suffix=""):
    if log:
        decades = math.log10(ends[1] / ends[0])
        axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if decades < 1.7 else (1, 3) if decades < 3 else (1,)))
        axis.set_minor_locator(ticker.NullLocator())
    else:
        axis.set_major_locator(ticker.MaxNLocator(6))
    axis.set_major_formatter(lambda value, _: f"{value:,.10g}{suffix}")


def add_dots(sheet, title, lines, label, suffix="", mark=None):
    """A panel: a line for each workload, with a dot for each stage. @param lines {workload: {stage: value}}
    @param mark a value that has a line of its own
    """
    names = dict.fromkeys(name for line in lines.values() for name in line)
    looks = looks_of(sorted(names, key=lambda name: name if name[:2].isdigit() else "~"))  # stages first
    if title:
        sheet.text(SIDE, sheet.room(0.35) + 0.25, title, fontweight="bold")
    add_names(sheet, looks)
    left = SIDE + max(inches(workload) for workload in lines) + 0.2
    width = WIDTH - left - 0.45
    log, low, high = scale_of([value for line in lines.values() for value in line.values()])

    def place(value):
        part = math.log(value / low) / math.log(high / low) if log else (value - low) / (high - low)
        return part * width

    rows, y = [], 0.18
    for workload, line in lines.items():
        levels = levels_of({name: place(value) for name, value in line.items()})
        y += DOT * max(levels.values())
        rows.append((workload, line, levels, y))
        y += DOT + 0.1
    height = y
    top = sheet.room(height + 0.62) + 0.08

    def draw(figure):
        axes = sheet.axes(figure, left, top, width, height)
        axes.set(xlim=(low, high), ylim=(height, 0))
        if log:
            axes.set_xscale("log")
        prepare_axis(axes.xaxis, log, (low, high), suffix)
        axes.tick_params(axis="x", labelsize=SMALL, length=3)
        axes.grid(axis="x", color=GRID, linewidth=0.6)
        axes.set_axisbelow(True)
        axes.set_yticks([at for *_, at in rows], [workload for workload, *_ in rows], fontsize=SIZE)
        axes.tick_params(axis="y", length=0)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.set_xlabel(label + (", log scale" if log else ""), fontsize=SMALL)
        if mark is not None and low < mark < high:
            axes.axvline(mark, color=INK, linewidth=0.8)
        for workload, line, levels, at in rows:
            axes.axhline(at, color=GRID, linewidth=0.6, zorder=1)
            for name, value in line.items():
                dot(axes, value, at - DOT * levels[name], *looks[name])

    sheet.add(draw)


class Roofline:
    """A panel of rates over intensity, where the stages of a workload climb towards the roof."""
    LEFT, HEIGHT, LEAN = 0.75, 4.2, math.radians(35)  # the last of the workloads' names

    def __init__(self, sheet, title, columns, roofs, slopes):
        """@param columns {workload: {stage: (FLOP a byte, TFLOP/s)}}  @param roofs {what: TFLOP/s}
        @param slopes {what: TB/s}
        """
        self.sheet, self.columns, self.roofs, self.slopes = sheet, columns, roofs, slopes
        self.looks = looks_of(sorted({name for column in columns.values() for name in column}))
        points = [point for column in columns.values() for point in column.values()]
        self.low_x, self.high_x = min(x for x, _ in points) / 3.5, max(x for x, _ in points)
        self.high_x *= (self.high_x / self.low_x) ** 0.2  # room for the names of the roofs
        self.low_y, self.high_y = min(y for _, y in points) / 2, 2 * max(*(y for _, y in points), *roofs.values())
        sheet.text(SIDE, sheet.room(0.35) + 0.25, title, fontweight="bold")
        add_names(sheet, self.looks)
        if any(y > 1.02 * min(max(roofs.values()), x * slopes["DRAM"]) for x, y in points):
            sheet.text(SIDE, sheet.room(LINE) + 0.15, ABOVE, fontsize=SMALL)
        # So wide that no name leaves the figure.
        self.width = WIDTH - self.LEFT - 0.3
        for workload, column in columns.items():
            part = math.log(max(x for x, _ in column.values()) / self.low_x) / math.log(self.high_x / self.low_x)
            room = WIDTH - self.LEFT - SIDE - 0.2 - inches(workload, SMALL) * math.cos(self.LEAN)
            self.width = min(self.width, room / part)
        head = max(inches(workload, SMALL) for workload in columns) * math.sin(self.LEAN) + 0.15
        self.top = sheet.room(head + self.HEIGHT + 0.6) + head
        sheet.add(self.draw)

    def x_of(self, value):
        """In inches."""
        return math.log(value / self.low_x) / math.log(self.high_x / self.low_x) * self.width

    def y_of(self, value):
        return math.log(value / self.low_y) / math.log(self.high_y / self.low_y) * self.HEIGHT

    def at_x(self, place):
        """The value at so many inches."""
        return self.low_x * (self.high_x / self.low_x) ** (place / self.width)

    def draw(self, figure):
        axes = self.sheet.axes(figure, self.LEFT, self.top, self.width, self.HEIGHT)
        axes.set(xscale="log", yscale="log", xlim=(self.low_x, self.high_x), ylim=(self.low_y, self.high_y))
        prepare_axis(axes.xaxis, True, (self.low_x, self.high_x))
        prepare_axis(axes.yaxis, True, (self.low_y, self.high_y))
        axes.tick_params(labelsize=SMALL, length=3)
        axes.grid(color=GRID, linewidth=0.5)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlabel("FLOP of the problem for each byte that it must move, log scale", fontsize=SMALL)
        axes.set_ylabel("TFLOP/s of them, log scale", fontsize=SMALL)
        self.draw_roofs(axes)
        taken, beside = [], -1.0
        for workload, column in sorted(self.columns.items(), key=lambda item: min(item[1].values())):
            beside = self.draw_column(axes, workload, column, beside, taken)

    def draw_roofs(self, axes):
        for what, rate in self.slopes.items():
            begin, end = max(self.low_x, self.low_y / rate), min(self.high_x, max(self.roofs.values()) / rate)
            if end <= begin:
                continue
            axes.plot([begin, end], [begin * rate, end * rate], color=INK, linewidth=1.2,
                      linestyle="-" if what == "DRAM" else ":")
            turn = math.atan2(self.y_of(end * rate) - self.y_of(begin * rate), self.x_of(end) - self.x_of(begin))
            aside = -3 if what == "DRAM" else 3  # points
            for roof in sorted(self.roofs.values()):  # its name stands on no roof
                if what == "DRAM" and begin * rate < roof < 3 * begin * rate:
                    begin = 1.3 * roof / rate
            axes.annotate(f"{what}: {rate:.1f} TB/s", (begin, begin * rate), textcoords="offset points",
                          xytext=(8 * math.cos(turn) - aside * math.sin(turn),
                                  8 * math.sin(turn) + aside * math.cos(turn)),
                          rotation=math.degrees(turn), rotation_mode="anchor", fontsize=SMALL, color=INK,
                          verticalalignment="bottom" if aside > 0 else "top")
        for what, rate in self.roofs.items():
            begin = max(rate / self.slopes["DRAM"], self.low_x)
            axes.plot([begin, self.high_x], [rate, rate], color=INK, linewidth=1.2)
            axes.annotate(f"{what}: {rate:.0f} TFLOP/s", (self.high_x, rate), xytext=(-4, 4), fontsize=SMALL, color=INK,
                          textcoords="offset points", horizontalalignment="right")

    def draw_column(self, axes, workload, column, beside, taken):
        """A workload's dots, and its name above. @param beside where the last name stands
        @param taken where dots are; grows
        """
        xs, ys = zip(*column.values())
        middle = math.exp(sum(map(math.log, xs)) / len(xs))
        beside = max(beside + 0.24, self.x_of(middle))
        axes.annotate(workload, (self.at_x(beside), self.high_y), xytext=(0, 4), textcoords="offset points",
                      rotation=math.degrees(self.LEAN), rotation_mode="anchor", fontsize=SMALL, annotation_clip=False)
        axes.plot([middle, self.at_x(beside)], [max(ys), self.high_y], ":", color=SOFT, linewidth=0.5, zorder=1)
        axes.plot([middle, middle], [min(ys), max(ys)], color=SOFT, linewidth=0.7, zorder=2)
        for name in sorted(column):  # aside, where it would lie on another
            y = self.y_of(column[name][1])
            places = [self.x_of(middle) + side * shift * DOT for shift in range(20) for side in (1, -1)]
            x = next(x for x in places if all(math.hypot(x - u, y - v) >= DOT * 0.98 for u, v in taken))
            taken.append((x, y))
            dot(axes, self.at_x(x), column[name][1], *self.looks[name])
        return beside


def label_ends(axes, ends, size=SMALL, gap=1.25):
    """Names at the right ends of curves, none on another; the axes need room for them there.

    @param ends [(x, y, words, colour)]
    """
    if not ends:
        return
    axes.figure.draw_without_rendering()
    scale = 72 / axes.figure.dpi
    placed = []
    for x, y, words, colour in sorted(ends, key=lambda end: axes.transData.transform(end[:2])[1]):
        at = axes.transData.transform((x, y))[1] * scale
        placed.append([at, at, x, y, words, colour])
    foot, top = (edge * scale for edge in (axes.bbox.y0, axes.bbox.y1))
    for _ in range(200):  # those that are too near part, each half of the way; none leaves the axes
        for low, high in zip(placed, placed[1:]):
            near = max(0, size * gap - (high[0] - low[0]))
            low[0] -= near / 2
            high[0] += near / 2
        placed[0][0] = max(placed[0][0], foot + size / 2)
        placed[-1][0] = min(placed[-1][0], top - size / 2)
    for at, exact, x, y, words, colour in placed:
        text = axes.annotate(words, (x, y), xytext=(9, at - exact), textcoords="offset points", fontsize=size,
                             color=LETTERS.get(colour, colour), verticalalignment="center_baseline", annotation_clip=False,
                             fontweight="bold" if len(words) < 3 else "normal")
        text.set_in_layout(False)
