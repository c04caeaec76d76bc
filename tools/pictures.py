#!/usr/bin/env python3
"""Makes the pictures of the lessons of the track images: chapters/NN-name/before.png, drawn here, and after.png, what a
filter makes of it by that stage.

    python3 tools/pictures.py [--program FILE]            writes them
    python3 tools/pictures.py [--program FILE] --check    compares them with what is there, by their pixels

Needs nothing beside Python and the program, which runs the filter in the simulator.
"""

import argparse
import math
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
WIDTH, HEIGHT = 256, 192
SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLOR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}  # of as many channels

# 5x7 letters, a row of bits on each line.
FONT = {
    "A": "01110 10001 10001 11111 10001 10001 10001",
    "C": "01110 10001 10000 10000 10000 10001 01110",
    "D": "11110 10001 10001 10001 10001 10001 11110",
    "E": "11111 10000 10000 11110 10000 10000 11111",
    "L": "10000 10000 10000 10000 10000 10000 11111",
    "N": "10001 11001 10101 10011 10001 10001 10001",
    "O": "01110 10001 10001 10001 10001 10001 01110",
    "R": "11110 10001 10001 11110 10100 10010 10001",
    "V": "10001 10001 10001 10001 10001 01010 00100",
}


# ---- PNG ------------------------------------------------------------------------------------------------------------

def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def encode(rows, channels):
    """A PNG of 8 bits. rows: one bytes object each, (width, channels)."""
    data, above = bytearray(), bytes(len(rows[0]))
    for row in rows:
        left = bytes(channels) + row[:-channels]
        candidates = [row, *(bytes(a - b & 255 for a, b in zip(row, other)) for other in (left, above))]
        cost = [sum(min(value, 256 - value) for value in candidate) for candidate in candidates]
        best = cost.index(min(cost))
        data += bytes([best]) + candidates[best]
        above = row
    header = struct.pack(">IIBBBBB", len(rows[0]) // channels, len(rows), 8, COLOR_TYPES[channels], 0, 0, 0)
    return SIGNATURE + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(data), 9)) + chunk(b"IEND", b"")


def paeth(a, b, c):
    distances = [abs(b - c), abs(a - c), abs(a + b - 2 * c)]
    return (a, b, c)[distances.index(min(distances))]


def decode(png):
    """(header, pixels) of a PNG of 8 bits without palette, not interlaced."""
    at, header, data = len(SIGNATURE), None, b""
    while at < len(png):
        length, name = struct.unpack(">I4s", png[at:at + 8])
        body = png[at + 8:at + 8 + length]
        header = body if name == b"IHDR" else header
        data += body if name == b"IDAT" else b""
        at += 12 + length
    width, height, _, color = struct.unpack(">IIBB", header[:10])
    channels = {color: count for count, color in COLOR_TYPES.items()}[color]
    data, pixels, above = zlib.decompress(data), bytearray(), bytes(width * channels)
    for y in range(height):
        begin = y * (width * channels + 1)
        kind, row = data[begin], bytearray(data[begin + 1:begin + 1 + width * channels])
        for i, value in enumerate(row):
            a, c = (row[i - channels], above[i - channels]) if i >= channels else (0, 0)
            b = above[i]
            row[i] = value + (0, a, b, (a + b) // 2, paeth(a, b, c))[kind] & 255
        pixels += row
        above = row
    return header, bytes(pixels)


# ---- Drawing: a picture is a function of x and y that gives grey or a colour, 0 to 1 --------------------------------

def text_at(x, y, text, left, top, scale):
    """Whether the point lies on a letter."""
    column, row = (x - left) // scale, (y - top) // scale
    if not (0 <= row < 7 and 0 <= column < 6 * len(text)) or column % 6 == 5:
        return False
    return FONT[text[column // 6]].split()[row][column % 6] == "1"


def ink(x, y):
    """Whether the point lies on a letter, a ring or a ray."""
    if text_at(x, y, "CONV", 14, 14, 6) or text_at(x, y, "LADDER", 14, 150, 4):
        return True
    distance = math.hypot(x - 202, y - 52)
    if distance < 44:
        return int(distance) // 4 % 3 == 0
    angle = math.degrees(math.atan2(134 - y, x - 20))
    return 64 < y < 135 and x < 150 and abs(angle % 15 - 7.5) < 0.6 + 20 / (1 + math.hypot(x - 20, y - 134))


def letters(x, y):
    """Dark ink on a grey that brightens downwards."""
    return 0.15 if ink(x, y) else 0.55 + 0.35 * y / HEIGHT


def soft_letters(x, y):
    """The same, out of focus."""
    return sum(letters(x + i, y + j) for i in (-1, 0, 1) for j in (-1, 0, 1)) / 9


def zone_plate(x, y):
    """Rings that become finer outwards: every spatial frequency, up to half a period a pixel in the corners."""
    squared = (x - WIDTH / 2 + 0.5) ** 2 + (y - HEIGHT / 2 + 0.5) ** 2
    return round((0.5 + 0.5 * math.cos(math.pi * squared / 320)) * 15) / 15


def colours(x, y):
    """Letters in colour on a gradient."""
    if ink(x, y):
        return (0.95, 0.85, 0.2) if x + y < 210 else (0.1, 0.15, 0.45)
    return 0.15 + 0.7 * x / WIDTH, 0.45, 0.9 - 0.7 * y / HEIGHT


def draw(picture):
    rows = []
    for y in range(HEIGHT):
        values = [picture(x, y) for x in range(WIDTH)]
        if isinstance(values[0], tuple):
            values = [value for pixel in values for value in pixel]
        rows.append(bytes(round(255 * value) for value in values))
    return encode(rows, len(rows[0]) // WIDTH)


# ---- The chapters ---------------------------------------------------------------------------------------------------

# number: what is drawn, and the arguments of `./lab image`
CHAPTERS = {
    5: (soft_letters, ["sharpen"]),
    6: (letters, ["emboss"]),
    7: (letters, ["sobel"]),
    8: (zone_plate, ["gaussian", "--sigma", "2"]),
    9: (colours, ["box", "--size", "15"]),
}


def make(number, program, folder):
    """Before and after, as the bytes of their files."""
    picture, filter_arguments = CHAPTERS[number]
    before, after = folder / "before.png", folder / "after.png"
    before.write_bytes(draw(picture))
    subprocess.run([program, "image", *filter_arguments, before, after, "--stage", str(number), "--backend", "sim"],
                   check=True, stdout=subprocess.DEVNULL)
    return {"before.png": before.read_bytes(), "after.png": after.read_bytes()}


def main():
    parser = argparse.ArgumentParser(description="The pictures of the lessons of the track images.")
    parser.add_argument("--program", default=ROOT / "build" / "bin" / "convladder", help="default: %(default)s")
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    options = parser.parse_args()
    wrong = []
    for number in CHAPTERS:
        (chapter,) = ROOT.glob(f"chapters/{number:02}-*")
        with tempfile.TemporaryDirectory() as folder:
            files = make(number, options.program, pathlib.Path(folder))
        for name, png in files.items():
            target = chapter / name
            if not options.check:
                target.write_bytes(png)
            elif not target.is_file() or decode(target.read_bytes()) != decode(png):
                wrong.append(str(target.relative_to(ROOT)))
    if wrong:
        sys.exit(f"{', '.join(wrong)}: not what tools/pictures.py makes; run it")


main()
