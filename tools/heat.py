#!/usr/bin/env python3
"""Draws how often each sector of a stage's input is loaded: chapters/NN-name/heat.svg, from `./lab trace --loads`.

Usage: heat.py PROGRAM [--check] [STAGE...], as in heat.py build/bin/convladder 3 7

Without stages, all that run on a GPU. With --check nothing is written, and the exit status is 1 where a drawing is not
what the program does today. The stages of a track have one problem and one scale.
"""
import argparse
import collections
import html
import json
import pathlib
import re
import subprocess
import sys

from text_width import text_width

ROOT = pathlib.Path(__file__).resolve().parent.parent
SECTOR = 32
# Of each track: the problem; how many times the most loaded sector of any stage may be loaded; pixels of the drawing
# for a number of the input, across and down. A signal is drawn in lines of so many samples.
Map = collections.namedtuple("Map", "shape most across down line", defaults=(None,))
TRACKS = {
    "signals": Map("w=2048,s=11", 16, 1.5, 18, 256),
    "images": Map("h=64,w=128,r=5,s=5", 64, 3, 3),
    "depthwise": Map("n=1,c=2,h=32,w=64,k=2,groups=2,r=7,s=7", 512, 5, 5),
    "lowering": Map("n=1,c=8,h=28,w=28,k=64,r=3,s=3", 1024, 9, 9),
    "winograd": Map("n=1,c=32,h=28,w=28,k=64,r=3,s=3", 32, 9, 9),
    "hopper": Map("n=1,c=32,h=28,w=28,k=64,r=3,s=3", 4, 9, 9),
}
BYTES = {"fp32": 4, "fp16": 2, "int8": 1}
# Viridis, from dark to bright: even steps for the eye, and told apart by the colour-blind.
COLOURS = ("482878", "3e4989", "31688e", "26828e", "1f9e89", "35b779", "6ece58", "b5de2b", "fde725")
STYLE = """  <style>
    svg { color: #6e7781; }
    @media (prefers-color-scheme: light) { svg { color: #1f2328; } }
    @media (prefers-color-scheme: dark) { svg { color: #e6edf3; } }
    text { fill: currentColor; }
    .frame { fill: none; stroke: currentColor; stroke-opacity: .5; }
    .never { fill: currentColor; fill-opacity: .12; }
    .end { text-anchor: end; }
  </style>"""
CAPTION = ("A request of a warp, or a bulk copy, counts once for each sector that it touches.",
           "Caches, which the simulator does not have, answer many of them on a GPU.")
LEFT, TOP, KEY = 20, 66, 170  # pixels: beside and above the map, and for the scale at its right


class HeatError(Exception):
    """What the user of this program must mend."""


def bins(most):
    """The scale: (least, most) of each colour: 1, 2, 3 to 4, 5 to 8, ..."""
    found, top = [(1, 1)], 1
    while top < most:
        found.append((top + 1, 2 * top))
        top *= 2
    return found


def colour(place, count):
    """Of a place on a scale of so many."""
    at = place * (len(COLOURS) - 1) / max(count - 1, 1)
    low = min(int(at), len(COLOURS) - 2)
    pairs = zip(*(bytes.fromhex(COLOURS[i]) for i in (low, low + 1)))
    return "#" + bytes(round(a + (b - a) * (at - low)) for a, b in pairs).hex()


def place_of(loads, scale):
    """On the scale; None for what is never loaded."""
    return next((place for place, (low, high) in enumerate(scale) if low <= loads <= high), None)


def grid(stage, problem, loads, line):
    """The loads of each number of the first channel, in lines from top to bottom."""
    size = BYTES[stage["tensors"]["input"].split()[0]]  # 30 computes in bytes and reads halves
    numbers = range(problem["h"] * problem["w"])
    step = problem["c"] if stage.get("layout") == "NHWC" else 1
    values = [loads[number * step * size // SECTOR] for number in numbers]
    line = line or problem["w"]
    return [values[begin:begin + line] for begin in range(0, len(values), line)]


def areas(rows):
    """Rectangles of one value: {value: [(x, y, width, height)]}."""
    open_areas, found = {}, collections.defaultdict(list)
    for y, row in enumerate([*rows, []]):
        runs, x = {}, 0
        while x < len(row):
            end = x
            while end < len(row) and row[end] == row[x]:
                end += 1
            runs[(x, end, row[x])] = open_areas.get((x, end, row[x]), y)
            x = end
        for (begin, end, value), top in open_areas.items():
            if (begin, end, value) not in runs:
                found[value].append((begin, top, end - begin, y - top))
        open_areas = runs
    return found


def plain(kernel):
    """A kernel's name without the arguments of its template."""
    return re.sub(r"<.*", "", kernel)


def sentence(tensors):
    """Who reads the input, and what the kernels after it read."""
    readers = list(dict.fromkeys(plain(each["kernel"]) for each in tensors if each["tensor"] == "input"))
    others = [each for each in tensors
              if plain(each["kernel"]) not in readers and each["tensor"] not in ("input", "filter")]
    if not others:
        return ""
    names = [f"the {name.removeprefix('the ')}" for name in dict.fromkeys(each["tensor"] for each in others)]
    listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return f"{' and '.join(readers)} reads it; the kernels after it read {listed}."


def number(value):
    return f"{value:.1f}".rstrip("0").rstrip(".")


def drawing(stage, traced):
    """The SVG. @param stage its stage.json  @param traced what `trace --loads --json` printed"""
    track = TRACKS[stage["track"]]
    problem = dict(zip(*[iter(re.split("[,=]", traced["shape"]))] * 2))
    problem = {key: int(problem[key]) for key in ("n", "c", "h", "w")}
    of_input = [each["loads"] for each in traced["tensors"] if each["tensor"] == "input"]
    if not of_input:
        raise HeatError(f"stage {stage['number']} reads no tensor 'input'")
    loads = [sum(each) for each in zip(*of_input)]
    if max(loads) > track.most:
        raise HeatError(f"stage {stage['number']} loads a sector {max(loads)} times: more than its track's scale has, "
                        f"{track.most}")
    scale = bins(track.most)
    counts = collections.Counter(place_of(each, scale) for each in loads)
    rows = [[place_of(each, scale) for each in row] for row in grid(stage, problem, loads, track.line)]
    width, height = len(rows[0]) * track.across, len(rows) * track.down
    parts = []
    for place, found in sorted(areas(rows).items(), key=lambda item: -1 if item[0] is None else item[0]):
        path = "".join(f"M{number(LEFT + x * track.across)} {number(TOP + y * track.down)}h{number(w * track.across)}"
                       f"v{number(h * track.down)}h-{number(w * track.across)}z" for x, y, w, h in found)
        look = 'class="never"' if place is None else f'fill="{colour(place, len(scale))}"'
        parts.append(f'  <path {look} shape-rendering="crispEdges" d="{path}"/>')
    if track.line:  # lines of a signal stand apart
        gaps = "".join(f"M{LEFT} {number(TOP + y * track.down)}h{number(width)}" for y in range(1, len(rows)))
        parts.append(f'  <path class="frame" d="{gaps}"/>')
    parts.append(f'  <rect class="frame" x="{LEFT}" y="{TOP}" width="{number(width)}" height="{number(height)}"/>')
    key = LEFT + width + 24
    parts.append(f'  <text x="{number(key)}" y="{TOP + 10}">loads</text>'
                 f'<text class="end" x="{number(key + KEY - 20)}" y="{TOP + 10}">sectors</text>')
    y = TOP + 22
    for place, (low, high) in [(None, (0, 0)), *enumerate(scale)]:
        label = str(low) if low == high else f"{low} to {high}"
        share = f"{100 * counts[place] / len(loads):.0f}%" if counts[place] else "–"
        look = 'class="never"' if place is None else f'fill="{colour(place, len(scale))}"'
        parts.append(f'  <rect {look} x="{number(key)}" y="{y}" width="16" height="14"/>'
                     f'<text x="{number(key + 24)}" y="{y + 11}">{label}</text>'
                     f'<text class="end" x="{number(key + KEY - 20)}" y="{y + 11}">{share}</text>')
        y += 17
    what = "the input" if problem["c"] == 1 else f"the input, channel 1 of {problem['c']}"
    mean = sum(loads) / len(loads)
    first = f"How often {stage['number']:02} {stage['name']} loads each sector (32 bytes) of {what}"
    second = f"{track.shape.removeprefix('n=1,')}, {stage['dtype']}: on average {mean:.2f} times, at most {max(loads)}."
    lines = [*filter(None, [sentence(traced["tensors"])]), *CAPTION]
    foot = max(TOP + height, y - 4) + 20
    total = max(key + KEY, *(LEFT + text_width(line, 12) + 10 for line in (second, *lines)),
                LEFT + text_width(first, 13) + 10)
    size = f"{round(total)} {round(foot + 16 * len(lines) - 6)}"
    texts = [f'  <text x="{LEFT}" y="24">{html.escape(first)}</text>',
             f'  <text x="{LEFT}" y="46" font-size="12">{html.escape(second)}</text>',
             *(f'  <text x="{LEFT}" y="{round(foot + 16 * i)}" font-size="12">{html.escape(line)}</text>'
               for i, line in enumerate(lines))]
    across, down = size.split()
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{across}" height="{down}" viewBox="0 0 {size}"\n'
            f'     role="img" aria-labelledby="title desc" font-family="sans-serif" font-size="13">\n'
            f'  <title id="title">{html.escape(first)}</title>\n'
            f'  <desc id="desc">{html.escape(" ".join((second, *lines)))}</desc>\n{STYLE}\n'
            + "\n".join([*texts, *parts]) + "\n</svg>\n")


def traced(program, stage):
    done = subprocess.run([program, "trace", str(stage["number"]), "--shape", TRACKS[stage["track"]].shape, "--loads",
                           "--json"], capture_output=True, text=True)
    if done.returncode:
        raise HeatError(f"stage {stage['number']}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("Usage: ")[1].split(",")[0])
    parser.add_argument("program")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("stages", type=int, nargs="*")
    arguments = parser.parse_intermixed_args()
    stale = []
    try:
        for path in sorted(ROOT.glob("chapters/*/stage.json")):
            stage = json.loads(path.read_text())
            if stage["track"] not in TRACKS or arguments.stages and stage["number"] not in arguments.stages:
                continue
            target, text = path.parent / "heat.svg", drawing(stage, traced(arguments.program, stage))
            if target.is_file() and target.read_text() == text:
                continue
            stale.append(str(target.relative_to(ROOT)))
            if not arguments.check:
                target.write_text(text)
    except HeatError as error:
        sys.exit(f"heat.py: {error}")
    if arguments.check and stale:
        sys.exit(f"heat.py: {', '.join(stale)}: not what the program does; draw them again by "
                 "tools/heat.py build/bin/convladder")


if __name__ == "__main__":
    main()
