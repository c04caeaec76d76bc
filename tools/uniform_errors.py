#!/usr/bin/env python3
"""The largest absolute errors of stage 25 with inputs and filters uniform in [0, 1), against the exact sums: the 16
cases for which Wang and Zhen, whom the stage follows, state their own.

Usage: uniform_errors.py PROGRAM RESULTS [BATCH...], as in
    uniform_errors.py build/bin/convladder nvidia-h200-uniform-errors              (32, 64, 96 and 128 images)
    uniform_errors.py build/bin/convladder simulator-uniform-errors 2              (two images, in the simulator)
It writes docs/results/RESULTS.json, for a table of the kind grid.
"""

import array
import json
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

from report import text_of

RESULTS = pathlib.Path(__file__).resolve().parents[1] / "docs/results"
LAYERS = {"conv2": (64, 56), "conv3": (128, 28), "conv4": (256, 14), "conv5": (512, 7)}
BATCHES = (32, 64, 96, 128)


def write_npy(path, shape, source):
    """Numbers uniform in [0, 1) as an array of float32."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        # 24 bits: what float32 holds without rounding up to 1.
        array.array("f", (source.getrandbits(24) * 2.0**-24 for _ in range(math.prod(shape)))).tofile(file)


def largest_of_npy(path):
    """Of an array of float32."""
    data = pathlib.Path(path).read_bytes()
    values = array.array("f")
    values.frombytes(data[10 + struct.unpack("<H", data[8:10])[0] :])
    return max(values)


def run(program, batch, channels, size, folder):
    """The device's name, and the largest error and output of one case."""
    files = {name: str(folder / f"{name}.npy") for name in ("input", "filter", "output")}
    source = random.Random(1)
    write_npy(files["input"], (batch, channels, size, size), source)
    write_npy(files["filter"], (channels, channels, 3, 3), source)
    words = [word for name, path in files.items() for word in (f"--{name}", path)]
    printed = subprocess.run([program, "run", "25", "--json", *words], stdout=subprocess.PIPE, text=True, check=True)
    result = json.loads(printed.stdout)
    if not result["verified"]:
        sys.exit(f"{result['reason']}: no results are written")
    return result["device"], result["max_abs_err"], largest_of_npy(files["output"])


def machine(name):
    """As docs/results/schema.json has it; none for the simulator."""
    if name == "SIMT simulator":
        return None
    found = subprocess.run(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], stdout=subprocess.PIPE,
                           text=True, check=True)
    return {"name": name, "compute_capability": int(found.stdout.split()[0].replace(".", ""))}


def main():
    """Measures and writes."""
    if len(sys.argv) < 3 or sys.argv[1].startswith("-") or not all(word.isdigit() for word in sys.argv[3:]):
        sys.exit(__doc__.split("\n\n", 1)[1].strip())
    program, name = sys.argv[1:3]
    batches = [int(word) for word in sys.argv[3:]] or BATCHES
    rows, device = [], None
    with tempfile.TemporaryDirectory() as folder:
        for layer, (channels, size) in LAYERS.items():
            errors, largest = [], 0
            for batch in batches:
                device, error, output = run(program, batch, channels, size, pathlib.Path(folder))
                print(f"{layer} N = {batch}: {error:.2e}", file=sys.stderr)
                errors.append(float(f"{error:.2e}"))
                largest = max(largest, output)
            rows.append({"name": f"{layer}, C = K = {channels}, {size} x {size}",
                         "values": [*errors, float(f"{largest:.4g}")]})
    how = " ".join(["python3 tools/uniform_errors.py PROGRAM", name, *map(str, batches if sys.argv[3:] else [])])
    table = {"device": machine(device), "how": how, "corner": "largest absolute error",
             "columns": [*(f"N = {batch}" for batch in batches), "largest output"],
             "format": [*[".2e"] * len(batches), ".0f"], "rows": rows}
    (RESULTS / f"{name}.json").write_text(text_of(table) + "\n")


if __name__ == "__main__":
    main()
