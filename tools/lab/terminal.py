"""Colours, on a terminal alone and not where NO_COLOR is set (no-color.org)."""
import os
import sys

CODES = {"red": 31, "green": 32, "yellow": 33}


def has_colours(stream=None):
    stream = stream or sys.stdout
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text, colour):
    return f"\033[{CODES[colour]}m{text}\033[0m" if has_colours() else text
