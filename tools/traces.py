#!/usr/bin/env python3
"""Writes docs/traces/NN.json: what a lesson's player shows, from `./lab trace`.

Usage: traces.py PROGRAM [--check], as in traces.py build/bin/convladder

With --check nothing is written, and the exit status is 1 where a file is not what the program says today. The list
below names the problem, the block and the events, each chosen so that the lesson's idea is seen happening.
"""
import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs/traces"

# Of each stage: what `trace` is asked; the kernel; of its events, from which to which; the one to begin with; and what
# to look for.
TRACES = {
    "01": (["--shape", "w=300,s=5", "--warp", "1"], "naive_1d", 0, 40, 2,
           "Step through the taps. All lanes read one weight: one sector. Their samples are 4 sectors where the first "
           "one begins a sector, and 5 where it does not."),
    "03": (["--shape", "w=300,s=11"], "tiled_1d", 0, 64, 0,
           "The warps load the tile in one round, and two of them a little more. After the barrier each tap is one read "
           "of 32 neighbouring words, in 32 different banks, wherever it begins."),
    "04": (["--shape", "w=3000,s=11", "--block", "1"], "halo_1d", 0, 105, 0,
           "A warp asks for eight parts of the body, of 4 sectors each, before it stores one. The halos come apart, by a "
           "few lanes."),
    "06": (["--shape", "h=40,w=40,r=5,s=5", "--warp", "0"], "cached_2d", 0, 50, 20,
           "At the tile's right edge the lanes part: most read shared memory, the last ones the image. One tap becomes "
           "two requests."),
    "07": (["--shape", "h=40,w=40,r=5,s=5", "--warp", "0"], "tiled_2d", 0, 100, 0,
           "The tile is loaded with its whole halo, so after the barrier no window leaves shared memory."),
    "09": (["--shape", "h=64,w=128,r=9,s=9", "--warp", "0"], "large_filter", 60, 130, 6,
           "A lane reads its window in pieces of 16 bytes. Eight lanes are served at a time, and their pieces lie in "
           "different banks: no extra pass."),
    "13": (["--shape", "n=1,c=2,h=20,w=40,k=2,groups=2,r=3,s=3", "--warp", "0"], "depthwise_thread_2d", 0, 40, 0,
           "A warp is two rows of 16 lanes: it reads a piece of each."),
    "18": (["--shape", "n=1,c=2,h=12,w=40,k=32,r=3,s=3", "--warp", "0"], "multiply", 0, 37, 0,
           "Neighbouring outputs read windows that begin three words apart. Count the sectors of such a request."),
    "19": (["--shape", "n=1,c=8,h=14,w=14,k=64,r=3,s=3", "--warp", "0"], "multiply", 0, 64, 33,
           "After the barrier a thread reads 8 taps and 8 pixels, 16 requests, for 64 multiply-adds."),
    "21": (["--shape", "n=1,c=8,h=14,w=14,k=64,r=3,s=3", "--warp", "0"], "multiply", 0, 150, 44,
           "After the barrier the copies of the next tile are started among the reads of this one. A copy by cp.async is "
           "a load and a store, and no register."),
    "26": (["--shape", "n=1,c=32,h=16,w=16,k=32,r=3,s=3", "--warp", "0"], "multiply", 0, 58, 0,
           "A warp copies its part of the tiles, waits at a barrier for the others', and loads fragments from shared "
           "memory."),
    "27": (["--shape", "n=1,c=32,h=16,w=16,k=32,r=3,s=3", "--warp", "0"], "multiply", 0, 60, 0,
           "The same product without a barrier: each warp loads its own fragments from global memory."),
    "31": (["--shape", "c=32,h=5,w=16,k=32,r=3,s=3", "--warp", "0"], "multiply", 0, 133, 40,
           "ldmatrix reads rows of 16 bytes, eight at a time. The swizzle has laid them into different banks: no extra "
           "pass."),
    "32": (["--shape", "c=16,h=8,w=56,k=16,r=3,s=3", "--block", "1"], "multiply_rows", 0, 120, 0,
           "Warp 8 fills the ring by bulk copies. The other warps wait at the mbarrier of a slot, multiply, and arrive at "
           "the one that hands the slot back."),
    "33": (["--shape", "c=16,h=8,w=56,k=16,r=3,s=3"], "convolve", 70, 330, 16,
           "Eight warps fill slots of the ring with sums of rows, and say so at mbarriers; the warps that multiply wait "
           "for them there."),
}


def compact(event, files):
    """As `trace` has it, but the file by its place in `files`, and lanes that are evenly apart by two numbers."""
    small = {key: event[key] for key in ("what", "warp", "lanes", "line", "space", "object", "origin", "bytes", "cost")
             if event[key] not in ("", 0) or key in ("warp", "line")}
    if event["file"] not in files:
        files.append(event["file"])
    small["file"] = files.index(event["file"])
    at = event["at"]
    steps = {b - a for a, b in zip(at, at[1:])}
    if len(at) and len(steps) <= 1:
        small["from"] = at[0]
        if steps - {0}:
            small["step"] = steps.pop()
    elif at:
        small["at"] = at
    return small


def trace_of(program, stage):
    arguments, kernel, begin, end, first, look = TRACES[stage]
    done = subprocess.run([program, "trace", stage, *arguments, "--events", "1000", "--json"], capture_output=True,
                          text=True)
    if done.returncode:
        sys.exit(f"traces.py: stage {stage}: {done.stderr.strip()}")
    whole = json.loads(done.stdout)
    launch, = (each for each in whole["launches"] if each["kernel"].split("<")[0] == kernel)
    files = []
    events = [compact(event, files) for event in launch["events"][begin:end]]
    return {"stage": whole["stage"], "shape": whole["shape"], "block": whole["block"], "kernel": kernel,
            "grid": launch["grid"], "threads": launch["block"], "look": look, "first": first, "files": files,
            "events": events}


def text_of(trace):
    head = {key: value for key, value in trace.items() if key != "events"}
    events = ",\n".join(json.dumps(event) for event in trace["events"])
    return json.dumps(head, indent=1)[:-2] + f',\n "events": [\n{events}\n]}}\n'


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("Usage: ")[1].split(",")[0])
    parser.add_argument("program")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    stale = []
    for stage in TRACES:
        path, text = FOLDER / f"{stage}.json", text_of(trace_of(arguments.program, stage))
        if path.is_file() and path.read_text() == text:
            continue
        stale.append(path.name)
        if not arguments.check:
            path.write_text(text)
    if arguments.check and stale:
        sys.exit(f"traces.py: {', '.join(stale)}: not what the program does; write them again by "
                 "tools/traces.py build/bin/convladder")


if __name__ == "__main__":
    main()
