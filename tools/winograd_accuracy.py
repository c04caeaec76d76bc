#!/usr/bin/env python3
"""Errors of Winograd convolution by tile, points and type, simulated with NumPy: docs/results/winograd-accuracy*.json.

Every operation is rounded as the stages round it: the input transform in fp32 or fp16 with fused multiply-adds, the
transformed filter in fp32 and rounded once, products summed in fp32, sums kept in fp32 or fp16, the output transform in
fp32. int8 quantises the transformed tiles and filters of numbers that came in fp16. The result is compared with the
exact sum of the numbers before any rounding; the figures are relative to the root mean square of the exact outputs.

Usage: winograd_accuracy.py    (a minute; the numbers are the same in every run)
"""

import math
import pathlib
from fractions import Fraction

import numpy as np

from report import text_of

RESULTS = pathlib.Path(__file__).resolve().parents[1] / "docs/results"
FORMS = {
    "F(2 x 2), points 1": [Fraction(1)],
    "F(4 x 4), points 1, 2": [Fraction(1), Fraction(2)],
    "F(4 x 4), points 3/4, 3/2": [Fraction(3, 4), Fraction(3, 2)],
    "F(6 x 6), points 1, 2, 1/2": [Fraction(1), Fraction(2), Fraction(1, 2)],
    "F(7 x 7), points 1/2, 1, 3/2, 3": [Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(3)],
}
WITHOUT_INFINITY = [FORMS["F(7 x 7), points 1/2, 1, 3/2, 3"]]
TILES, FILTERS = 256, 32  # the more, the steadier the largest error


def multiplied(polynomial, factor):
    """The product of two polynomials, lowest power first."""
    result = [Fraction(0)] * (len(polynomial) + len(factor) - 1)
    for i, a in enumerate(polynomial):
        for j, b in enumerate(factor):
            result[i + j] += a * b
    return result


def matrices(points):
    """B^T, G and A^T from the positive points; 0 and the negative points are there always, and infinity mostly."""
    finite = [Fraction(0)] + [sign * p for p in points for sign in (1, -1)]
    infinity = points not in WITHOUT_INFINITY
    size, outputs = len(finite) + infinity, len(finite) + infinity - 2
    transform, taps, back = [], [], [[Fraction(0)] * size for _ in range(outputs)]
    for column, p in enumerate(finite):
        polynomial, scale = [Fraction(1)], Fraction(1)
        for q in finite:
            if q != p:
                polynomial = multiplied(polynomial, [-q, Fraction(1)])
                scale *= p - q
        if p == 0 and scale < 0:
            polynomial, scale = [-a for a in polynomial], -scale
        transform.append(polynomial + [Fraction(0)] * infinity)
        taps.append([p**j / scale for j in range(3)])
        for j in range(outputs):
            back[j][column] = p**j
    if infinity:
        everything = [Fraction(1)]
        for q in finite:
            everything = multiplied(everything, [-q, Fraction(1)])
        transform.append(everything)
        taps.append([Fraction(0), Fraction(0), Fraction(1)])
        back[outputs - 1][size - 1] = Fraction(1)
    return [np.array(m, dtype=np.float64) for m in (transform, taps, back)]


def sum_of(terms, kind):
    """A sum of factor * x from the last term on, each multiply-add rounded once to the type."""
    result = None
    for factor, x in terms:
        if factor == 0:
            continue
        wide = x.astype(np.float64) * factor
        result = (wide if result is None else wide + result.astype(np.float64)).astype(kind)
    return result


def lines(matrix, tile, kind):
    """matrix times the first axis of the tile. Rows p and -p share their even and their odd part, as in the kernels."""
    rows, size = [None] * len(matrix), len(matrix)
    even, odd = slice(0, None, 2), slice(1, None, 2)
    rows[0] = sum_of(zip(matrix[0][even], tile[even]), kind)
    if size % 2 == 0:  # infinity
        rows[size - 1] = sum_of(zip(matrix[size - 1][odd], tile[odd]), kind)
    for i in range(1, size - 1, 2):
        e, o = sum_of(zip(matrix[i][even], tile[even]), kind), sum_of(zip(matrix[i][odd], tile[odd]), kind)
        rows[i], rows[i + 1] = (e + o).astype(kind), (e - o).astype(kind)
    return np.stack(rows)


def products(u, v, kind):
    """At each position, [filters, channels] x [channels, tiles]."""
    return np.matmul(u.astype(kind), v.astype(kind))


def transformed_back(matrix, sums):
    """A^T M A in fp32."""
    half = np.einsum("pu,uvkt->pvkt", matrix.astype(np.float32), sums.astype(np.float32))
    return np.einsum("qv,pvkt->pqkt", matrix.astype(np.float32), half)


def quantised(x, axes):
    """To 8 bits and back, with one scale for all that the axes run over."""
    step = np.abs(x).max(axis=axes, keepdims=True) / 127
    step[step == 0] = 1
    return np.rint(x / step) * step


def study(points, kind, channels, seed=1):
    """Root mean square and largest error over the root mean square of the outputs."""
    transform, taps, back = matrices(points)
    size, outputs = len(transform), len(back)
    random = np.random.default_rng(seed)
    image = random.standard_normal((size, size, channels, TILES)).astype(np.float32)
    filters = (random.standard_normal((3, 3, FILTERS, channels)) / math.sqrt(9 * channels)).astype(np.float32)
    exact = np.zeros((outputs, outputs, FILTERS, TILES))
    for r in range(3):
        for s in range(3):
            window = image[r : r + outputs, s : s + outputs].astype(np.float64)
            exact += np.matmul(filters[r, s].astype(np.float64), window)
    stored = np.float32 if kind == "fp32" else np.float16
    tile = image.astype(stored)
    v = lines(transform, tile, stored)
    v = lines(transform, v.swapaxes(0, 1), stored).swapaxes(0, 1)
    half = np.einsum("ur,rskc->uskc", taps.astype(np.float32), filters)
    u = np.einsum("vs,uskc->uvkc", taps.astype(np.float32), half)
    if kind == "fp32":
        y = transformed_back(back, products(u, v, np.float32))
    elif kind == "fp16":
        sums = products(u.astype(np.float16), v, np.float32).astype(np.float16)
        y = transformed_back(back, sums).astype(np.float16)
    else:
        axes = {"tensor": ((0, 1, 2, 3), (0, 1, 2, 3)), "position": ((2, 3), (2, 3)), "filter": ((2, 3), (3,))}
        of_v, of_u = axes[kind]
        v, u = quantised(v.astype(np.float64), of_v), quantised(u.astype(np.float64), of_u)
        y = transformed_back(back, products(u, v, np.float64).astype(np.float16)).astype(np.float16)
    error, scale = y - exact, np.sqrt(np.mean(exact**2))
    return float(np.sqrt(np.mean(error**2)) / scale), float(np.abs(error).max() / scale)


def write(name, corner, columns, rows):
    """A table for tools/tables.py, its numbers to two digits: rows of a name and its values."""
    table = {"device": None, "how": "python3 tools/winograd_accuracy.py", "corner": corner, "columns": columns,
             "format": [".1e"] * len(columns),
             "rows": [{"name": row, "values": [float(f"{value:.1e}") for value in values]} for row, values in rows]}
    (RESULTS / f"{name}.json").write_text(text_of(table) + "\n")


def main():
    """Writes the three tables."""
    kinds = ["fp32", "fp16", "tensor", "position", "filter"]
    of_64 = {name: [study(points, kind, 64) for kind in kinds] for name, points in FORMS.items()}
    write("winograd-accuracy", "root mean square error",
          ["fp32", "fp16", "int8, a scale per tensor", "int8, per position", "int8, per position and output channel"],
          [(name, [rms for rms, _ in errors]) for name, errors in of_64.items()])
    write("winograd-accuracy-largest", "largest error", ["fp32", "fp16"],
          [(name, [largest for _, largest in errors[:2]]) for name, errors in of_64.items()])
    channels = (16, 64, 256, 512)
    write("winograd-accuracy-channels", "root mean square error", [f"C = {c}" for c in channels],
          [(f"{name}, {kind}", [study(points, kind, c)[0] for c in channels])
           for name, points in FORMS.items() for kind in kinds[:2]])


if __name__ == "__main__":
    main()
