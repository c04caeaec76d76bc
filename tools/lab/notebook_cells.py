"""The code cells of the notebooks, by stage: plain Python on the package `convladder`, which runs as a script too."""
from string import Template
from typing import NamedTuple

INTRODUCTION = """\
The cells use the package `convladder`, which `pip install .` builds in a clone of the project. Where it is missing,
this cell installs it: some minutes, once. On Colab, or wherever this notebook lies in no clone, write the repository's
address into it first. Nothing here needs a GPU. Where there is one, and the package was built with `nvcc`, the cell
"Time it" takes it.\
"""
SETUP = '''\
import importlib.util
import pathlib
import subprocess
import sys

ADDRESS = ""  # of the repository, where there is no clone yet

here = pathlib.Path.cwd()
folders = [here, *here.parents, here / "convladder"]
clone = next((folder for folder in folders if (folder / "lab").is_file()), None)
if not importlib.util.find_spec("convladder"):
    if clone is None:
        if not ADDRESS:
            raise RuntimeError("the package convladder is missing: fill in ADDRESS and run this cell again")
        clone = here / "convladder"
        subprocess.run(["git", "clone", ADDRESS, clone], check=True)
    subprocess.run(["bash", clone / "lab", "doctor", "--install-packages"], check=True)  # what the build needs
    subprocess.run([sys.executable, "-m", "pip", "install", clone, "matplotlib"], check=True)
    importlib.invalidate_caches()

import convladder
import matplotlib.pyplot as plt
import numpy as np
'''

# What the cells below it show their results with.
HELPERS = '''\
def show(columns):
    """Counters side by side, by the name of each column. Those that nobody counts are left out."""
    width = max(14, *(len(name) + 2 for name in columns))
    print(" " * 28 + "".join(f"{name:>{width}}" for name in columns))
    for counter in next(iter(columns.values())):
        values = [counters.get(counter) for counters in columns.values()]
        if any(values):
            texts = ["–" if value is None else f"{value:,}" for value in values]
            print(f"{counter:28}" + "".join(f"{text:>{width}}" for text in texts))


REQUESTS = {
    "global": ["global_load_requests", "global_store_requests"],
    "constant": ["constant_load_requests"],
    "shared": ["shared_load_requests", "shared_store_requests"],
}


def code_of(line):
    """A line's text, where there is a clone of the project."""
    if clone is None:
        return ""
    text = (clone / line["file"]).read_text()
    return text.splitlines()[line["line"] - 1].strip()


def show_lines(lines):
    """Requests to each memory, by line: as a table and as bars."""
    requests = {}
    for kind, names in REQUESTS.items():
        requests[kind] = [sum(line["counters"][name] or 0 for name in names) for line in lines]
    labels = [f"{line['line']:4}  {code_of(line)}" for line in lines]
    width = min(70, max(map(len, labels)))
    print("".join(f"{kind:>10}" for kind in REQUESTS) + "  line")
    for label, *numbers in zip(labels, *requests.values()):
        print("".join(f"{number:>10,}" for number in numbers) + f"  {label}")
    figure, axes = plt.subplots(figsize=(10, 1 + 0.3 * len(lines)), layout="constrained")
    places, left = range(len(lines)), np.zeros(len(lines))
    for kind, numbers in requests.items():
        axes.barh(places, numbers, left=left, label=kind)
        left += numbers
    axes.set(xlabel="requests", yticks=places)
    axes.set_yticklabels([label[:70].ljust(width) for label in labels], family="monospace", fontsize=8)
    axes.invert_yaxis()
    axes.legend()
    plt.show()


def show_changes(columns):
    """What differs between the columns: as a table and as bars."""
    show(columns)
    first = next(iter(columns.values()))
    changing = [name for name in first if any(counters[name] != first[name] for counters in columns.values())][:6]
    size = (2.6 * max(1, len(changing)), 3)
    figure, axes = plt.subplots(1, max(1, len(changing)), figsize=size, squeeze=False, layout="constrained")
    for axis, counter in zip(axes[0], changing):
        axis.bar(list(columns), [counters[counter] or 0 for counters in columns.values()])
        axis.set_title(counter, fontsize=9)
        axis.tick_params(axis="x", labelrotation=45)
    plt.show()
'''

# A problem of each track: small enough for the simulator, and the size of the lessons for a GPU.
SIGNAL = '''\
rng = np.random.default_rng(1)
x = np.sin(np.arange(4096, dtype=np.float32) / 60)
x += 0.4 * rng.standard_normal(4096, dtype=np.float32)  # a wave with noise
w = np.full(11, 1 / 11, dtype=np.float32)  # the mean of 11 samples
'''
IMAGE = '''\
rows, columns = np.mgrid[:96, :128]
x = (np.hypot(rows - 48, columns - 64) % 24 < 12).astype(np.float32)  # rings
w = np.outer([1, 2, 1], [-1, 0, 1]).astype(np.float32)  # Sobel's: where it brightens to the right
'''
CHANNELS = '''\
rows, columns = np.mgrid[:32, :64]
distance = np.hypot(rows - 16, columns - 32)
rings = [distance % width < width / 2 for width in (6, 10, 14, 18)]
x = np.stack(rings)[None].astype(np.float32)  # an image of 4 channels
bell = np.exp(-(np.arange(-3, 4) ** 2) / 8)
blur = np.outer(bell, bell) / bell.sum() ** 2
w = np.tile(blur, (4, 1, 1, 1)).astype(np.float32)  # a filter for each channel
'''
LAYER = '''\
rng = np.random.default_rng(1)
x = rng.standard_normal((1, $channels, 16, 16), dtype=np.float32)  # an image of $channels channels
w = rng.standard_normal((32, $channels, 3, 3), dtype=np.float32)
'''
RESULT = '''\
y = convladder.conv(x, w, stage=$stage$options)
print(x.shape, "→", y.shape)
'''
SIGNAL_PICTURE = RESULT + '''\
figure, axes = plt.subplots(figsize=(10, 3), layout="constrained")
axes.plot(x[:800], label="the signal", linewidth=0.7)
axes.plot(y.ravel()[:800], label="filtered")
axes.legend()
plt.show()
'''
IMAGE_PICTURE = RESULT + '''\
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for axis, picture, title in zip(axes, (x, y[0, 0]), ("the image", "filtered")):
    axis.imshow(picture, cmap="gray")
    axis.set_title(title)
plt.show()
'''
CHANNELS_PICTURE = RESULT + '''\
figure, axes = plt.subplots(2, 4, figsize=(10, 3), layout="constrained")
for channel in range(4):
    axes[0, channel].imshow(x[0, channel], cmap="gray")
    axes[1, channel].imshow(y[0, channel], cmap="gray")
    axes[0, channel].set_title(f"channel {channel}, before and after", fontsize=9)
plt.show()
'''
LAYER_PICTURE = RESULT + '''\
padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
exact = np.einsum("ncpqrs,kcrs->nkpq", windows, w.astype(np.float64))
error = np.abs(y - exact).mean(axis=(0, 1)) / np.abs(exact).mean()
print(f"mean error, relative: {error.mean():.1e}")
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for axis, picture, title in zip(axes, (y[0, 0], error), ("one channel of the output", "error by output, relative")):
    figure.colorbar(axis.imshow(picture), ax=axis)
    axis.set_title(title)
plt.show()
'''


class Track(NamedTuple):
    problem: str
    picture: str
    small: str  # the problem as `bench` takes it
    large: str
    varied: str  # code: {title: (x, w)}, problems to compare where the stage has no knobs
    options: str = ""


TAPS = '{f"{taps} taps": (x, np.full(taps, 1 / taps, dtype=np.float32)) for taps in (3, 11, 31)}'
SIDES = '{f"{side} x {side}": (x, np.ones((side, side), dtype=np.float32)) for side in (3, 5, 7)}'
WINDOWS = '{f"{side} x {side}": (x, w[:, :, :side, :side]) for side in (3, 5, 7)}'
CHANNEL_COUNTS = '{f"{count} channels": (x[:, :count], w[:, :count]) for count in $counts}'
BLOCK = "c=64,h=56,w=56,k=64,r=3,s=3"  # of a ResNet


def layer(channels, large):
    of = Template(LAYER).substitute(channels=channels)
    return Track(of, LAYER_PICTURE, f"c={channels},h=16,w=16,k=32,r=3,s=3", large,
                 Template(CHANNEL_COUNTS).substitute(counts=(channels // 4, channels // 2, channels)))


TRACKS = {
    "signals": Track(SIGNAL, SIGNAL_PICTURE, "w=4096,s=11", "w=16777216,s=11", TAPS),
    "images": Track(IMAGE, IMAGE_PICTURE, "h=96,w=128,r=3,s=3", "h=2160,w=3840,r=3,s=3", SIDES),
    "depthwise": Track(CHANNELS, CHANNELS_PICTURE, "c=4,h=32,w=64,k=4,r=7,s=7,groups=4",
                       "n=3,c=4,h=16,w=32,k=4,r=7,s=7,groups=4", WINDOWS, ", groups=4"),
    "lowering": layer(8, BLOCK),
    "cpu": layer(16, BLOCK),
    "winograd": layer(16, BLOCK),
    "hopper": layer(32, "c=64,h=224,w=224,k=64,r=3,s=3"),
    "several": Track(IMAGE, IMAGE_PICTURE, "h=96,w=128,r=3,s=3", "n=8,h=2160,w=3840,r=3,s=3", SIDES),
}

# The knob that the notebook turns, its values, and what else is then set.
KNOBS = {
    4: ("tiles", ["1", "2", "4"], {}),
    8: ("rows", ["1", "2", "4"], {}),
    15: ("block_rows", ["4", "8", "16"], {}),
    22: ("simd", ["portable", "avx2", "avx512"], {}),
    23: ("m", ["2", "4", "6"], {}),
    24: ("m", ["2", "4", "6"], {}),
    25: ("buffers", ["1", "2", "3"], {}),
    26: ("row_offset", ["0", "8"], {}),
    27: ("sync", ["warp", "block"], {}),
    28: ("fused", ["input", "output"], {}),
    29: ("tbm", ["16", "32"], {}),
    30: ("fusion", ["shmem", "llc"], {}),
    31: ("tile", ["128x64", "256x64", "128x128"], {}),
    32: ("positions", ["56", "112", "240"], {}),
    33: ("strip", ["112", "120"], {}),
    34: ("positions", ["64", "128", "256"], {}),
    35: ("tile", ["2x2", "4x4", "6x6"], {"bound": "1e-4"}),
    36: ("products", ["3", "4"], {}),
    37: ("tile", ["2x2", "4x4", "6x6"], {"bound": "1e-4"}),
    40: ("devices", ["1", "2", "4"], {}),
    41: ("devices", ["1", "2", "4"], {}),
    42: ("devices", ["1", "2", "4"], {}),
}

COUNT = '''\
seen = convladder.simulate($stage, x, w$options)
columns = {"predicted": seen.result["prediction"], "$label": seen.counters}
${before}\
show(columns)
'''
BEFORE = 'columns["$label"] = convladder.simulate($stage, x, w$options).counters\n'
LINES = "show_lines(seen.lines)\n"
TURN = '''\
columns = {}
for value in $values:
    configuration = $configuration
    try:
        seen = convladder.simulate($stage, x, w$options, configuration=configuration)
    except convladder.Refused as reason:
        print(reason)
    else:
        columns[f"$knob={value}"] = seen.counters
show_changes(columns)
'''
VARY = '''\
columns = {}
for title, (x_varied, w_varied) in $varied.items():
    columns[title] = convladder.simulate($stage, x_varied, w_varied$options).counters
show_changes(columns)
'''
# A stage of the host is timed: nothing counts what it does.
TURN_ON_HOST = '''\
import time

for value in $values:
    run = convladder.Conv($stage, w, configuration=$configuration)
    try:
        run(x)  # prepares it
    except convladder.Refused as reason:
        print(reason)
        continue
    times = []
    for _ in range(20):
        begin = time.perf_counter()
        run(x)
        times.append(time.perf_counter() - begin)
    print(f"$knob={value}: {min(times) * 1e6:.0f} µs, with the copies of Python's call")
'''
TIME = '''\
try:  # a GPU, where there is one, at a size of the lesson
    results = convladder.bench($stages, shape="$large", backend="gpu")
except convladder.MachineError as reason:  # else the simulator, which counts, at the size above
    print(f"no GPU here: {reason}")
    results = convladder.bench($stages, shape="$small", backend="sim")
for result in results:
    if result["status"] != "ok":
        found = f"{result['status']}: {result['reason']}"
    elif result["time_us"]:
        found = f"{result['time_us']['median']:.1f} µs"
    else:
        found = f"{result['counters']['global_load_sectors']:,} sectors loaded"
    print(f"{result['number']:02} {result['stage']:24} on {result['device']}: {found}")
'''


def label(stage):
    return f"{stage['number']:02} {stage['name']}"


def cells(stage, before, on_host):
    """{place in the lesson: [(title, code)]} of a stage. The places are "begin" and titles of the lesson's sections.
    @param stage what its stage.json says
    @param before the same of the stage that it follows, or None where that is of another track"""
    track, number = TRACKS[stage["track"]], stage["number"]
    words = {"stage": number, "options": track.options, "label": label(stage), "small": track.small,
             "large": track.large, "varied": track.varied, "stages": [number, before["number"]] if before else [number],
             "before": ""}
    if before:
        words["before"] = Template(BEFORE).substitute(words, stage=before["number"], label=label(before))
    title = "Change the problem"
    if number in KNOBS:
        knob, values, others = KNOBS[number]
        given = "".join(f', "{name}": "{value}"' for name, value in others.items())
        words |= {"knob": knob, "values": values, "configuration": f'{{"{knob}": value{given}}}'}
        title = f"Turn a knob: `{knob}`"

    def code(template):
        return Template(template).substitute(words)

    begin = [(f"Set up\n\n{INTRODUCTION}", SETUP), ("", HELPERS), ("Run it", track.problem + code(track.picture))]
    timed = [("Time it", code(TIME))]
    if on_host:
        return {"begin": begin, "What to count": [], "What happened, and why": timed + [(title, code(TURN_ON_HOST))]}
    count = [("Count it", code(COUNT)), ("Line by line", code(LINES)),
             (title, code(TURN if number in KNOBS else VARY))]
    return {"begin": begin, "What to count": count, "What happened, and why": timed}
