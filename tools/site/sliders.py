"""Figures with sliders, where a formula decides: the marker `<!-- slider NAME -->` of a lesson, for sliders.js.

The formulas stand here and in sliders.js; tests/tools/test_sliders.py compares them. Without JavaScript a page shows a
table of some values.
"""
import collections
import html
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs/results"
ERRORS = json.loads((RESULTS / "winograd-accuracy-channels.json").read_text())
CEILINGS = json.loads((RESULTS / "nvidia-h200-winograd.json").read_text())["ceilings"]

# What a reader sets: its values, or names for them, and the place of the first one shown.
Input = collections.namedtuple("Input", "key label values start")
# What follows from it; digits behind the point, or "e" for 1.2e-05; those with a bar are drawn beside each other.
Row = collections.namedtuple("Row", "label unit digits bar", defaults=(False,))
# `still` are settings for the table.
Slider = collections.namedtuple("Slider", "title inputs rows formula still")


def tile_1d(block, radius):
    """Lesson 03: bytes for each output, with and without a tile."""
    plain, tiled = 4 * (2 * radius + 1), 4 * (block + 2 * radius) / block
    return [plain, tiled, plain / tiled, 100 * 2 * radius / (block + 2 * radius), 4 * (block + 2 * radius)]


def tile_2d(tile, taps):
    """Lesson 07: pixels for each output, with and without a tile."""
    side = tile + taps - 1
    plain, tiled = taps * taps, side * side / (tile * tile)
    return [plain, tiled, plain / tiled, 100 * (1 - 1 / tiled), 4 * side * side / 1024]


def intensity(tiles, channels, filters, ceilings):
    """Lesson 24: of the product of one position."""
    flop = 2 * tiles * channels * filters
    moved = 4 * (tiles * channels + channels * filters + tiles * filters)
    return [flop / moved, channels * filters / (2 * (channels + filters)), ceilings["fp32"] / ceilings["dram"],
            1e6 * moved / ceilings["dram"], 1e6 * flop / ceilings["fp32"]]


def winograd_error(form, channels, errors):
    """Lessons 23 and 35: what a larger tile saves, and what it costs. Both settings are places in lists."""
    side = errors["sides"][form]
    products = (side + 2) ** 2 / side ** 2
    return [errors["fp32"][form][channels], errors["fp16"][form][channels], 9, products, 9 / products]


def error_table():
    """By type: of each form its errors by channels. With the forms' names and sides."""
    table = {"names": [], "sides": [], "fp32": [], "fp16": []}
    for row in ERRORS["rows"]:
        name, _, dtype = row["name"].rpartition(", ")
        if name not in table["names"]:
            table["names"].append(name)
            table["sides"].append(int(name[2:name.index(" ")]))
        table[dtype].append(row["values"])
    return table


TABLE = error_table()
CHANNELS = [int(column.removeprefix("C = ")) for column in ERRORS["columns"]]
DATA = {"intensity": {"dram": CEILINGS["dram_bytes_per_s"], "fp32": CEILINGS["fp32_flops_per_s"]},
        "winograd-error": TABLE}
POWERS = [2 ** i for i in range(17)]

SLIDERS = {
    "tile-1d": Slider(
        "Bytes from global memory, by tile and radius",
        [Input("block", "outputs of a block, B", POWERS[5:11], 3),
         Input("radius", "radius of the filter, r", [0, 1, 2, 3, 5, 8, 12, 16, 24, 31, 48, 64, 96, 127, 256, 512], 4)],
        [Row("for each output, without a tile", "bytes", 0, True), Row("for each output, with it", "bytes", 2, True),
         Row("times fewer", "×", 1), Row("of the tile is halo", "%", 0), Row("shared memory of a block", "bytes", 0)],
        tile_1d, [(256, 1), (256, 5), (256, 31), (256, 127), (1024, 127)]),
    "tile-2d": Slider(
        "Pixels from global memory, by tile and filter",
        [Input("tile", "rows and columns of outputs of a tile, T", [8, 16, 32, 64], 2),
         Input("taps", "rows and columns of the filter", [1, *range(3, 33, 2), 41, 51, 65], 5)],
        [Row("for each output, without a tile", "pixels", 0, True), Row("for each output, with it", "pixels", 2, True),
         Row("times fewer", "×", 1), Row("of the tile is halo", "%", 0), Row("shared memory of a block", "KB", 1)],
        tile_2d, [(32, 3), (32, 11), (32, 31), (16, 11), (64, 11)]),
    "intensity": Slider(
        "Intensity of the product of one position",
        [Input("tiles", "tiles, T", POWERS[5:17], 7), Input("channels", "channels, C", POWERS[3:11], 3),
         Input("filters", "filters, K", POWERS[3:11], 3)],
        [Row("intensity", "FLOP a byte", 2), Row("with many tiles", "FLOP a byte", 2),
         Row("where an H200 turns from memory to multiply-adds", "FLOP a byte", 1),
         Row("DRAM needs at least", "µs", 2, True), Row("the multiply-adds need at least", "µs", 2, True)],
        intensity, [(4096, 64, 64), (4096, 128, 128), (4096, 512, 512), (128, 512, 512), (64, 64, 64)]),
    "winograd-error": Slider(
        "What a larger tile saves, and what it costs",
        [Input("form", "tile", TABLE["names"], 0), Input("channels", "channels, C", CHANNELS, 1)],
        [Row("error of fp32", "", "e"), Row("error of fp16", "", "e"),
         Row("multiplications for an output and channel, directly", "", 0, True), Row("by this tile", "", 2, True),
         Row("times fewer", "×", 2)],
        winograd_error, [(form, 1) for form in range(len(TABLE["names"]))]),
}


def values(name, settings):
    """What follows. @param settings a value for each input; of winograd-error the values' places"""
    data = [DATA[name]] if name in DATA else []
    return SLIDERS[name].formula(*settings, *data)


def shown(value, row):
    number = f"{value:.1e}" if row.digits == "e" else f"{value:,.{row.digits}f}"
    return number + row.unit if row.unit in ("", "×", "%") else f"{number} {row.unit}"


def table(name):
    """Some values, as HTML."""
    slider = SLIDERS[name]
    head = "".join(f"<th>{html.escape(each.label)}</th>" for each in (*slider.inputs, *slider.rows))
    lines = []
    for settings in slider.still:
        chosen = [each.values[at] if name == "winograd-error" else at for each, at in zip(slider.inputs, settings)]
        cells = [*map(str, chosen), *(shown(*pair) for pair in zip(values(name, settings), slider.rows))]
        lines.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
    return f"<table><tr>{head}</tr>{''.join(lines)}</table>"


def figure(name, start=None):
    """The figure, as HTML. @param start the place of each input's first value, where not its own"""
    slider = SLIDERS[name]
    inputs = [each._replace(start=at) for each, at in zip(slider.inputs, start or [i.start for i in slider.inputs])]
    data = json.dumps({"name": name, "inputs": [each._asdict() for each in inputs],
                       "rows": [each._asdict() for each in slider.rows], "data": DATA.get(name)},
                      separators=(",", ":"), ensure_ascii=False).replace("</", "<\\/")
    return (f'<figure class="sliders"><script type="application/json">{data}</script>'
            f'<figcaption><b>{html.escape(slider.title)}</b></figcaption><noscript>{table(name)}</noscript></figure>')
