#!/usr/bin/env python3
"""Fails if a text of a drawing (.svg) does not fit into the drawing, or is written on another text, naming each.

Widths are those of DejaVu Sans (tools/text_width.py). What is drawn as outlines has no texts.
"""
import math
import pathlib
import re
import sys
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from text_width import text_width  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"
RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
SIZE, ANCHOR, WEIGHT = "font-size", "text-anchor", "font-weight"
ABOVE, BELOW = 0.74, 0.2  # of the baseline, of the font's size
OVERLAP = 2  # pixels by which the boxes of two texts may meet: letters seldom fill theirs


def style_rules(text):
    """[(selector, {property: value})] of a style sheet; those that depend on the theme set no sizes."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    rules = []
    for selectors, body in RULE.findall(text):
        properties = dict(re.findall(r"([\w-]+)\s*:\s*([^;!]+)", body))
        rules += [(selector.strip(), properties) for selector in selectors.split(",")]
    return rules


def matches(selector, name, classes):
    tag, *wanted = selector.split(".")
    return tag in ("", "*", name) and set(wanted) <= classes


def shifted(transform, x, y):
    """A point and an angle, in degrees, after "translate(...) rotate(...)"."""
    angle = 0.0
    for name, numbers in reversed(re.findall(r"(\w+)\(([^)]*)\)", transform)):
        values = [float(number) for number in re.split(r"[\s,]+", numbers.strip())]
        if name == "translate":
            x, y = x + values[0], y + (values[1] if len(values) > 1 else 0)
        elif name == "rotate" and len(values) == 1:
            turn = math.radians(values[0])
            x, y = x * math.cos(turn) - y * math.sin(turn), x * math.sin(turn) + y * math.cos(turn)
            angle += values[0]
        else:
            raise ValueError(f"{name}({numbers})")
    return x, y, angle


def box(element, inherited, rules):
    """(left, top, right, bottom) of a text, and whether it stands straight."""
    style = style_of(element, inherited, rules)
    words = "".join(element.itertext()).strip()
    size = float(style.get(SIZE, "16").replace("px", ""))
    width = text_width(words, size, style.get(WEIGHT) in ("bold", "600", "700"))
    x, y, angle = shifted(element.get("transform", ""), float(element.get("x", 0)), float(element.get("y", 0)))
    begin = {"middle": -width / 2, "end": -width}.get(style.get(ANCHOR), 0)
    turn = math.radians(angle)
    corners = [(x + a * math.cos(turn) - b * math.sin(turn), y + a * math.sin(turn) + b * math.cos(turn))
               for a in (begin, begin + width) for b in (-ABOVE * size, BELOW * size)]
    xs, ys = zip(*corners)
    return words, (min(xs), min(ys), max(xs), max(ys)), angle == 0


def style_of(element, inherited, rules):
    name, classes = element.tag.replace(SVG, ""), set(element.get("class", "").split())
    style = {**inherited, **{key: element.get(key) for key in (SIZE, ANCHOR, WEIGHT) if element.get(key)}}
    for selector, properties in rules:
        if matches(selector, name, classes):
            style.update({key: value.strip() for key, value in properties.items() if key in (SIZE, ANCHOR, WEIGHT)})
    return style


def texts(element, inherited, rules):
    """Of each text its words and its box."""
    for child in element:
        if child.tag == f"{SVG}text":
            if "".join(child.itertext()).strip():
                yield box(child, inherited, rules)
        else:
            if child.get("transform"):
                raise ValueError("a group that is moved")
            yield from texts(child, style_of(child, inherited, rules), rules)


def problems(svg):
    """Sentences, one for each text that does not fit. @param svg the text of a file"""
    root = xml.etree.ElementTree.fromstring(svg)
    left, top, width, height = map(float, root.get("viewBox").split())
    rules = style_rules("".join(style.text or "" for style in root.iter(f"{SVG}style")))
    found = []
    for words, (x0, y0, x1, y1), straight in texts(root, style_of(root, {}, rules), rules):
        out = max(left - x0, x1 - left - width, top - y0, y1 - top - height)
        if out > 0:
            yield f"'{words}' reaches {out:.0f} pixels out of the drawing"
        if straight:
            for others, (u0, v0, u1, v1) in found:
                if min(x1, u1) - max(x0, u0) > OVERLAP and min(y1, v1) - max(y0, v0) > OVERLAP:
                    yield f"'{words}' is written on '{others}'"
            found.append((words, (x0, y0, x1, y1)))


def main():
    wrong = []
    folders = ("chapters", "docs", "solutions")
    for path in sorted(path for folder in folders for path in (ROOT / folder).rglob("*.svg")):
        svg = path.read_text()
        if "<text" in svg:
            wrong += [f"{path.relative_to(ROOT)}: {what}" for what in problems(svg)]
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
