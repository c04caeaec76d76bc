#!/usr/bin/env python3
"""What a call of the Python package costs the host beside a plain launch, on tensors so small that a GPU has nothing to
do: docs/results/*-python-overhead.json. Wants the package with its GPU side, torch and a GPU.

    tools/python_overhead.py FILE.json"""
import json
import statistics
import sys
import time

import torch

import convladder
import convladder.torch
from convladder import _sim

CALLS, SAMPLES, WARM = 100, 30, 20
STAGES = (16, 25, 33, 35, 36)


def host_us(call):
    """The median of samples: microseconds of a call, the GPU's work left to run behind it."""
    for _ in range(WARM):
        call()
    samples = []
    for _ in range(SAMPLES):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        samples.append((time.perf_counter() - start) / CALLS * 1e6)
    return statistics.median(samples)


def calls(stage):
    """Of a layer with 64 channels of 8 x 8: a name and a call of each way."""
    element, layout = _sim.tensors_of(str(stage)).split()
    form = torch.channels_last if layout == "NHWC" else torch.contiguous_format
    dtype = torch.float16 if element == "fp16" else torch.float32
    layer = torch.nn.Conv2d(64, 64, 3, padding=1, bias=False).cuda()
    x = torch.randn(1, 64, 8, 8, device="cuda", dtype=dtype).to(memory_format=form)
    w = layer.weight.detach()
    same = w.to(dtype=dtype, memory_format=form)
    conv = convladder.Conv(stage, w)
    y = conv(x)
    prepared = next(iter(conv._prepared.values()))
    stream = torch.cuda.current_stream().cuda_stream
    module = convladder.torch.Conv2d(stage, layer).requires_grad_(False)
    compiled = torch.compile(module, fullgraph=True)
    return {
        "torch: `zero_`, one kernel": y.zero_,
        "torch: `conv2d`": lambda: torch.nn.functional.conv2d(x, same, padding=1),
        "the stage's launch alone": lambda: prepared.launch(x.data_ptr(), y.data_ptr(), stream, 0),
        "a prepared `Conv`": lambda: conv(x),
        "the function `conv`": lambda: convladder.conv(x, w, stage=stage),
        "the module `Conv2d`": lambda: module(x),
        "the module `Conv2d`, compiled": lambda: compiled(x),
    }


def main():
    rows = {}
    with torch.no_grad():
        for stage in STAGES:
            for name, call in calls(stage).items():
                rows.setdefault(name, []).append(host_us(call))
    major, minor = torch.cuda.get_device_capability()
    grid = {
        "device": {"name": torch.cuda.get_device_name(), "compute_capability": 10 * major + minor},
        "how": f"tools/python_overhead.py: the host's time for a call, median of {SAMPLES} samples of {CALLS} calls, "
               f"n=1,c=64,h=8,w=8,k=64,r=3,s=3, torch {torch.__version__}",
        "corner": "host's time of a call (µs)",
        "columns": [f"stage {stage}" for stage in STAGES],
        "format": [".1f"] * len(STAGES),
        "rows": [{"name": name, "values": values} for name, values in rows.items()],
    }
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(grid, file, indent=2, ensure_ascii=False)
        file.write("\n")


if __name__ == "__main__":
    main()
