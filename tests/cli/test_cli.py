"""Runs the program as a user would, mostly wrongly: exit status, messages, files.

python3 -m pytest tests/cli -k image runs the cases whose names hold "image". CONVLADDER_BUILD is the folder of the
build, by default build.
"""
import collections
import fcntl
import glob
import json
import math
import os
import pathlib
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = str(pathlib.Path(os.environ.get("CONVLADDER_BUILD", ROOT / "build")).resolve() / "bin/convladder")
# Without a GPU to be seen, and with a folder of each case's own for what it tunes, the outcome is the same on every
# machine.
ENVIRONMENT = dict(os.environ, CUDA_VISIBLE_DEVICES="-1", CONVLADDER_TUNED="tuned")

RESULT_KEYS = ("stage number backend device workload status reason verified max_abs_err rel_l2_err tolerance time_us "
               "effective_tflops prepare_us workspace_bytes kernels speedup cudnn roofline counters faults").split()
STAGE_KEYS = "number name title track idea previous dtype types layout source requires tensors".split()
COUNTERS = ("global_load_bytes global_load_requests global_load_sectors global_load_unique_bytes global_store_bytes "
            "global_store_requests global_store_sectors shared_load_requests shared_load_conflicts "
            "shared_store_requests shared_store_conflicts constant_load_requests barriers flops").split()


@pytest.fixture(autouse=True)
def folder_of_its_own(monkeypatch):
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.chdir(folder)
        yield


def lab(*arguments, environment=None):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=120,
                          env=dict(ENVIRONMENT, **(environment or {})))


def refuses(arguments, *parts, status=2, stdout=False):
    """The command ends with `status` and one line on standard error that holds each of `parts`."""
    result = lab(*arguments)
    assert result.returncode == status, f"exit status {result.returncode}, not {status}: {result.stderr}"
    assert result.stderr.count("\n") == 1 and result.stderr.endswith("\n"), f"not one line: {result.stderr!r}"
    for part in parts:
        assert part in result.stderr, f"no {part!r} in {result.stderr!r}"
    if not stdout:
        assert result.stdout == "", f"standard output is not empty: {result.stdout!r}"
    return result


def succeeds(*arguments, **options):
    result = lab(*arguments, **options)
    assert result.returncode == 0, f"exit status {result.returncode}: {result.stderr}"
    return result


# ---- .npy without numpy ---------------------------------------------------------------------------------------------

def write_npy(path, shape, values, descr="<f4", fortran=False, code="f"):
    header = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape!r}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack(f"<{len(values)}{code}", *values))
    return path


def read_npy(path):
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<H", data[8:10])[0]
    header = eval(data[10:10 + length])  # our own program wrote it
    body = data[10 + length:]
    return header["shape"], struct.unpack(f"<{len(body) // 4}f", body)


# ---- .png without libpng --------------------------------------------------------------------------------------------

def png_chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def write_png(path, width, height, color, depth, samples):
    """color: of PNG, as 0 for grey, 2 for RGB, 6 for RGB and alpha."""
    data = struct.pack(f">{len(samples)}{'H' if depth == 16 else 'B'}", *samples)
    row = len(data) // height
    data = b"".join(b"\0" + data[y * row:(y + 1) * row] for y in range(height))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n"
                   + png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0))
                   + png_chunk(b"IDAT", zlib.compress(data)) + png_chunk(b"IEND", b""))
    return path


def grey_png(path="in.png", width=40, height=30):
    return write_png(path, width, height, 0, 8, [(7 * i + i * i // 50) % 256 for i in range(width * height)])


def contents(path):
    with open(path, "rb") as file:
        return file.read()


def correlate(x, f):
    pad = (len(f) - 1) // 2
    return [sum(f[t] * x[i - pad + t] for t in range(len(f)) if 0 <= i - pad + t < len(x)) for i in range(len(x))]


# ---- .wav without libsndfile ----------------------------------------------------------------------------------------

WAV_TYPES = {"8 bits": (1, 1, "B"), "16 bits": (1, 2, "h"), "24 bits": (1, 3, ""), "32 bits": (1, 4, "i"),
             "floats of 32 bits": (3, 4, "f"), "floats of 64 bits": (3, 8, "d")}  # tag, bytes, struct's letter


def write_wav(path, samples, kind="16 bits", channels=1, rate=8000, tag=None, cut=0):
    """samples: of all channels in turn, as the file holds them."""
    of_kind, size, code = WAV_TYPES[kind]
    if code:
        data = struct.pack(f"<{len(samples)}{code}", *samples)
    else:
        data = b"".join(value.to_bytes(size, "little", signed=True) for value in samples)
    head = struct.pack("<HHIIHH", tag or of_kind, channels, rate, rate * channels * size, channels * size, 8 * size)
    body = b"WAVEfmt " + struct.pack("<I", len(head)) + head + b"data" + struct.pack("<I", len(data)) + data
    with open(path, "wb") as file:
        file.write((b"RIFF" + struct.pack("<I", len(body)) + body)[:len(body) + 8 - cut])
    return path


def read_wav(path, kind="16 bits"):
    """The samples, and what the file says of them."""
    data = contents(path)
    chunks, at = {}, 12
    while at < len(data):
        name, size = data[at:at + 4], struct.unpack("<I", data[at + 4:at + 8])[0]
        chunks[name] = data[at + 8:at + 8 + size]
        at += 8 + size + size % 2
    tag, channels, rate = struct.unpack("<HHI", chunks[b"fmt "][:8])
    _, size, code = WAV_TYPES[kind]
    pieces = [chunks[b"data"][i:i + size] for i in range(0, len(chunks[b"data"]), size)]
    values = [struct.unpack(f"<{code}", piece)[0] if code else int.from_bytes(piece, "little", signed=True)
              for piece in pieces]
    return values, (tag, channels, rate)


def needs_sounds():
    if "built without libsndfile" in lab("sound", "echo", "none.wav", "out.wav").stderr:
        pytest.skip("the program was built without libsndfile")


# ---- Cases ----------------------------------------------------------------------------------------------------------

def test_list_is_a_table():
    assert "naive-1d" in succeeds("list").stdout, "no naive-1d"


def test_list_json():
    stages = json.loads(succeeds("list", "--json").stdout)
    assert [s["number"] for s in stages if s["requires"] is None] == [22], "a stage without a GPU requires none"
    assert all(list(stage) == STAGE_KEYS for stage in stages), "keys"
    assert [stage["number"] for stage in stages] == sorted(stage["number"] for stage in stages), "order"
    assert stages[0]["previous"] is None, "the first stage has a previous one"


def test_steps_are_beside_the_ladder():
    labels = [line.split()[0] for line in succeeds("list").stdout.splitlines() if re.match(r"\d\d[a-z]? ", line)]
    assert "31a" in labels and labels == sorted(labels), labels
    result = json.loads(succeeds("run", "31a", "--backend", "sim", "--json").stdout)
    assert (result["stage"], result["number"], result["status"]) == ("ldmatrix-mma", None, "ok"), result
    out = succeeds("compare", "31", "31a", "--backend", "sim").stdout
    assert "31-implicit-gemm: verified" in out and "31a-ldmatrix-mma: verified" in out, out
    trace = json.loads(succeeds("trace", "31a", "--json").stdout)
    assert (trace["stage"], trace["number"], trace["status"]) == ("ldmatrix-mma", None, "ok"), trace["stage"]
    refuses(["bench", "--stage", "31a"], "31a-ldmatrix-mma is a step of a chapter", "./lab run 31a")
    refuses(["run", "32A"], "unknown step '32A'; chapter 32 has the steps 32a, 32b, 32c")
    refuses(["run", "32z"], "unknown step '32z'; chapter 32 has the steps 32a, 32b, 32c")


def test_stages_compute_in_other_types():
    shape = "c=16,h=8,w=9,k=16,r=3,s=3"
    for arguments in (["run", "31", "--dtype", "bf16"], ["run", "31:bf16"], ["run", "31-implicit-gemm:bf16"]):
        result = json.loads(succeeds(*arguments, "--backend", "sim", "--shape", shape, "--json").stdout)
        assert (result["stage"], result["number"], result["dtype"]) == ("implicit-gemm:bf16", 31, "bf16"), result
        assert result["status"] == "ok" and 1e-3 < result["rel_l2_err"] < 1e-2, result
    out = succeeds("compare", "31", "31:bf16", "--backend", "sim", "--shape", shape).stdout
    assert "31-implicit-gemm: verified" in out and "31-implicit-gemm:bf16: verified" in out, out
    out = succeeds("bench", "--dtype", "bf16", "--backend", "sim", "--shape", shape).stdout
    assert [name in out for name in ("31-", "32-", "33-", "34-")] == [True, True, True, False], out
    stage = json.loads(succeeds("list", "--json").stdout)[30]
    assert (stage["dtype"], stage["types"]) == ("fp16", ["fp16", "bf16"]), stage
    refuses(["run", "34", "--dtype", "bf16"], "34-int8-hopper computes in int8; got 'bf16'")
    refuses(["bench", "--dtype", "fp64"], "no stage computes in 'fp64'; use fp32, fp16, bf16 or int8")
    refuses(["best", "--shape", shape, "--dtype", "fp64"], "--dtype must be fp32, fp16, bf16 or int8; got 'fp64'")


def test_run_prints_a_verified_result():
    result = succeeds("run", "1", "--shape", "w=1000,s=5", "--backend", "sim")
    assert result.stdout.startswith("SIMT simulator\n01 naive-1d"), result.stdout
    assert "\nverified: " in result.stdout and "global_load_bytes" in result.stdout, result.stdout
    assert result.stderr == "", result.stderr


def test_run_json_is_one_object_with_every_key():
    result = json.loads(succeeds("run", "naive-1d", "--shape", "w=1000,s=5", "--backend", "sim", "--json").stdout)
    assert list(result)[:len(RESULT_KEYS)] == RESULT_KEYS, list(result)
    assert set(COUNTERS) <= set(result["counters"]), result["counters"]
    assert result["status"] == "ok" and result["verified"] is True and result["backend"] == "sim", result
    assert result["workload"]["w"] == 1000 and result["workload"]["pad_w"] == 2, result["workload"]
    assert result["time_us"] is None and result["cudnn"] is None and result["faults"] == [], result
    assert 0 < result["rel_l2_err"] < result["tolerance"] < 1e-5, result["tolerance"]


@pytest.mark.parametrize("name", ["3", "03", "tiled-1d", "03-tiled-1d", "chapters/03-tiled-1d/"])
def test_run_takes_number_name_and_folder(name):
    assert json.loads(succeeds("run", name, "--shape", "w=9", "--backend", "sim", "--json").stdout)["number"] == 3


def test_the_same_seed_gives_the_same_numbers():
    run = ("run", "2", "--shape", "w=777,s=9", "--backend", "sim", "--json", "--seed")
    assert succeeds(*run, "5").stdout == succeeds(*run, "5", environment={"OMP_NUM_THREADS": "1"}).stdout, "differs"
    assert succeeds(*run, "5").stdout != succeeds(*run, "6").stdout, "the seed has no effect"


def test_lines_add_up_to_the_total():
    result = json.loads(succeeds("run", "1", "--shape", "w=999,s=5", "--lines", "--json").stdout)
    assert (sum(line["counters"]["global_load_bytes"] for line in result["lines"])
            == result["counters"]["global_load_bytes"] > 0), result["lines"]
    assert "naive_1d.cu:" in succeeds("run", "1", "--shape", "w=999,s=5", "--lines").stdout, "no source line"


def test_compare_shows_ratios():
    out = succeeds("compare", "1", "3", "--shape", "w=4096,s=11", "--backend", "sim").stdout
    assert "03-tiled-1d against 01-naive-1d: global_load_bytes falls 21" in out, out
    both = json.loads(succeeds("compare", "1", "3", "--shape", "w=40,s=3", "--backend", "sim", "--json").stdout)
    assert [result["number"] for result in both] == [1, 3], both


def test_run_beside_shows_the_previous_stage():
    run = ("run", "3", "--backend", "sim", "--shape", "w=1000,s=5", "--beside")
    out = succeeds(*run).stdout
    assert "03-tiled-1d against 02-constant-1d: global_load_bytes falls 4.9" in out, out
    result = json.loads(succeeds(*run, "--json").stdout)
    [previous] = result["beside"]
    assert (result["number"], previous["number"], previous["status"]) == (3, 2, "ok"), result
    assert result["speedup"]["previous"] is None and result["speedup"]["over"] is None, result["speedup"]
    assert "01-naive-1d follows no stage" in succeeds("run", "1", *run[2:]).stdout
    # The problem is one of the stage's own track, and so is its first workload.
    assert json.loads(succeeds("run", "35", *run[2:4], "--beside", "--json").stdout)["beside"][0]["number"] == 25
    # What the previous stage refuses is its own affair; what the stage does is the command's.
    odd = ("--backend", "sim", "--shape", "c=8,h=9,w=9,k=8,r=5,s=5", "--beside")
    refuses(["run", "25", *odd], "refuses", status=3)
    refuses(["run", "1", "--beside", "--sass"], "--sass")


def test_bench_runs_every_stage_that_takes_a_layer():
    shape = "c=2,h=6,w=5,k=2,r=3,s=3"
    bench = ("bench", "--backend", "sim", "--track", "lowering", "--track", "winograd")
    result = succeeds(*bench, "--shape", shape, "--shape", f"n=2,{shape}", "--padding", "replicate", "--json", "b.json")
    with open("b.json") as file:
        rows = json.load(file)["rows"]
    assert {row["workload_name"] for row in rows} == {f"n={n},c=2,h=6,w=5,k=2,r=3,s=3" for n in (1, 2)}, result.stdout
    assert {row["workload"]["padding"] for row in rows} == {"replicate"}, result.stdout
    assert {16, 21, 23, 30, None} <= {row["number"] for row in rows}, result.stdout
    # With such padding 25 copies, and its buffers in registers are for the mask that zeros allow.
    buffered = {row["stage"] for row in rows if row["status"] == "refused"}
    assert all("registers=" in stage for stage in buffered) and len(buffered) == 4, result.stdout
    assert all(row["status"] == "ok" for row in rows if row["stage"] not in buffered), result.stdout
    assert result.stdout.count(", padding replicate\n") == 2 and "14 of 14" not in result.stderr, result
    result = succeeds(*bench, "--shape", "c=2,h=6,w=5,k=2,r=2,s=2")
    assert "16-direct" in result.stdout and "winograd" not in result.stdout, result.stdout
    assert "6 of 14 stages take it; './lab run STAGE --shape c=2,h=6,w=5,k=2,r=2,s=2'" in result.stderr, result.stderr
    out = succeeds("bench", "--backend", "sim", "--stage", "1,2,25", "--shape", "w=20,s=3").stdout
    assert "25-winograd-fused" in out and "refused [1]" in out and "(no stage)" not in out, out
    names = succeeds(*bench, "--shape", shape, "--", "--benchmark_list_tests").stdout.split()
    assert names[0].startswith("n=1,c=2,h=6,w=5,k=2,r=3,s=3/16-direct"), names


def test_bench_refuses_layers_that_nothing_can_run():
    bench = ("bench", "--backend", "sim")
    refuses([*bench, "--shape", "w=9", "--workload", "all"], "--shape", "--workload")
    refuses([*bench, "--padding", "zero"], "--padding", "--shape")
    refuses([*bench, "--shape", "w=9", "--shape", "wdith=9"], "wdith")
    refuses([*bench, "--shape", "w=9", "--padding", "circular"], "circular")
    refuses([*bench, "--shape", "w=1000000000000"], "not enough memory")
    refuses([*bench, "--shape", "w=5,s=11", "--padding", "reflect"], "pad_w < w", status=3)
    refuses([*bench, "--track", "images", "--shape", "c=8,h=3", "--json", "b.json"], "no stage takes", "05-naive-2d",
            status=3)
    assert os.listdir(".") == [], os.listdir(".")


def test_bench_verifies_the_ladder():
    result = succeeds("bench", "--backend", "sim", "--workload", "w=65536 r=1", "--json", "b.json", "--csv", "b.csv")
    assert "04-halo-1d" in result.stdout and " ok\n" in result.stdout, result.stdout
    with open("b.json") as file:
        report = json.load(file)
    assert list(report) == ["device", "toolchain", "ceilings", "rows"], list(report)
    assert all(row["status"] == "ok" and list(row)[:len(RESULT_KEYS)] == RESULT_KEYS for row in report["rows"]), "rows"
    with open("b.csv", newline="") as file:
        assert file.read().count("\r\n") == len(report["rows"]) + 1, "CSV lines"
    assert sorted(os.listdir(".")) == ["b.csv", "b.json"], os.listdir(".")


def test_bench_takes_stages_in_lists():
    out = succeeds("bench", "--backend", "sim", "--workload", "w=65536r=1", "--stage", "1,3", "--stage", "4").stdout
    assert [name in out for name in ("01-", "02-", "03-", "04-")] == [True, False, True, True], out


def test_bench_takes_workloads_whose_names_have_commas():
    for name in ("primes (3,5,61,67) 5x5", "primes(3,5,61,67)5x5"):
        out = succeeds("bench", "--backend", "sim", "--stage", "15", "--workload", name).stdout
        assert "depthwise: primes (3,5,61,67) 5x5" in out and "small" not in out, out


def test_google_benchmark_flags_pass():
    bench = ("bench", "--backend", "sim", "--workload", "w=65536 r=1", "--")
    names = succeeds(*bench, "--benchmark_list_tests").stdout.split()
    assert len(names) >= 4 and names[0].startswith("w=65536r=1/01-naive-1d"), names
    out = succeeds(*bench, "--benchmark_filter=tiled").stdout
    assert "03-tiled-1d" in out and "01-naive-1d" not in out, out
    report = json.loads(succeeds(*bench, "--benchmark_format=json", "--benchmark_filter=naive").stdout)
    assert len(report["benchmarks"]) == 1 and report["context"]["executable"] == "lab bench", report
    succeeds(*bench, "--benchmark_out=gb.json", "--benchmark_filter=naive")
    with open("gb.json") as file:
        [one] = json.load(file)["benchmarks"]
    assert one["global_load_requests"] > 0 and one["label"].startswith("verified: "), one
    result = succeeds(*bench[:-1], "--json", "b.json", "--", "--benchmark_repetitions=3", "--benchmark_filter=naive|tiled",
                      "--benchmark_report_aggregates_only=true", "--benchmark_out=gb.json")
    assert result.stderr.count("01-naive-1d ... ok\n") == 1 and result.stdout.count("01-naive-1d") == 1, result
    with open("b.json") as file:
        assert [row["number"] for row in json.load(file)["rows"]] == [1, 3], "a row for each benchmark"
    with open("gb.json") as file:
        names = [one["aggregate_name"] for one in json.load(file)["benchmarks"]]
    assert names == 2 * ["mean", "median", "stddev", "cv"], names
    refuses([*bench, "--benchmark_filter=no-such-stage"], "--benchmark_filter", "no-such-stage")
    refuses([*bench, "--benchmark_filter=*("], "--benchmark_filter")


@pytest.mark.parametrize("command", ["", "run", "bench", "compare", "list", "image", "sound"])
def test_help_is_no_error(command):
    assert "./lab" in succeeds(*command.split(), "--help").stdout


def test_the_search_of_cudnn_says_what_it_needs():
    bench = ["bench", "--backend", "sim"]
    refuses([*bench, "--cudnn", "exhaustive"], "--cudnn exhaustive runs cuDNN's plans on a GPU")
    refuses([*bench, "--cudnn-seconds", "3"], "add --cudnn exhaustive")
    refuses([*bench, "--cudnn", "exhaustive", "--cudnn-seconds", "0"], "--cudnn-seconds must be above 0")
    refuses([*bench, "--cudnn", "all"], "--cudnn")


def test_help_of_google_benchmark():
    assert "benchmark_filter" in succeeds("bench", "--", "--help").stdout, "Google Benchmark's help"


@pytest.mark.parametrize("stage", ["1", "2", "3", "4"])
def test_own_tensors_equal_the_reference(stage):
    x = [((37 * i) % 101 - 50) / 16 for i in range(1000)]
    f = [0.25, -1.0, 2.0, 0.5, -0.125]
    write_npy("x.npy", (1000,), x)
    write_npy("f.npy", (5,), f)
    succeeds("run", stage, "--input", "x.npy", "--filter", "f.npy", "--output", "y.npy", "--backend", "sim")
    shape, y = read_npy("y.npy")
    assert shape == (1, 1, 1, 1000), shape
    assert max(abs(a - b) for a, b in zip(y, correlate(x, f))) < 1e-4
    assert sorted(os.listdir(".")) == ["f.npy", "x.npy", "y.npy"], os.listdir(".")


def test_shape_may_add_padding_to_arrays():
    write_npy("x.npy", (2, 1, 1, 20), range(40))
    write_npy("f.npy", (1, 1, 1, 3), [1, 2, 3])
    run = ("run", "1", "--input", "x.npy", "--filter", "f.npy", "--backend", "sim")
    succeeds(*run, "--shape", "pad_w=0", "--output", "y.npy")
    shape, y = read_npy("y.npy")
    assert shape == (2, 1, 1, 18) and y[0] == 0 + 2 * 1 + 3 * 2, (shape, y[:2])
    refuses([*run, "--shape", "w=20"], "--shape gives w")
    refuses([*run, "--shape", "w=99"], "--shape gives w")


@pytest.mark.parametrize("shape, part", [
    ("w", "'w'"), ("w=", "w="), ("w=x", "w=x"), ("w=4,,s=3", "''"), ("", ""), ("q=3", "q"), ("w=4,w=5", "twice"),
    ("w=1.5", "w=1.5"), ("w=0", "w=0"), ("w=-4", "w=-4"), ("w=4,pad_w=-1", "pad_w=-1"), ("w=4,stride_w=0", "stride_w"),
    ("wdith=4", "wdith"), ("w=99999999999999999999", "64 bits"), ("w=4,groups=0", "groups"),
    ("w=4,c=3,k=3,groups=2", "groups"), ("w=4,s=99,pad_w=0", "s"), ("w = 4", "w ")])
def test_shapes_that_are_no_shapes(shape, part):
    for json_flag in ([], ["--json"]):
        refuses(["run", "1", "--backend", "sim", f"--shape={shape}", *json_flag], part)


def test_sizes_beyond_64_bits_or_memory():
    refuses(["run", "1", "--backend", "sim", "--shape", "w=4611686018427387904,n=8"], "overflow")
    refuses(["run", "1", "--backend", "sim", "--shape", "w=9223372036854775807"], "overflow")
    refuses(["run", "1", "--backend", "sim", "--shape", "w=1000000000000"], "not enough memory", "the simulator")
    refuses(["run", "1", "--backend", "sim", "--shape", "w=10,s=2,dilation_w=9223372036854775807"], "overflow")
    refuses(["compare", "1", "2", "--backend", "sim", "--shape", "w=1000000000000"], "memory")


def test_unknown_names():
    refuses(["run", "nave-1d"], "nave-1d", "did you mean naive-1d")
    refuses(["run", "77"], "unknown stage '77'")
    refuses(["compare", "1", "77"], "unknown stage '77'")
    refuses(["bench", "--stage", "77"], "unknown stage '77'")
    refuses(["bench", "--track", "signal"], "unknown track", "signals")
    refuses(["bench", "--backend", "sim", "--workload", "w=7"], "unknown workload", "'w=65536 r=5'")
    refuses(["run", "1", "--padding", "circular"], "circular", "reflect")
    refuses(["run", "1", "--backend", "tpu"], "tpu")
    refuses(["frobnicate"], "unknown command 'frobnicate'", "bench")


def test_wrong_arguments():
    refuses([], "subcommand")
    refuses(["run"], "STAGE")
    refuses(["run", "1", "2"], "2")
    refuses(["run", "1", "--frobnicate"], "unknown option '--frobnicate'; see ./lab run --help")
    refuses(["run", "--bakend=sim", "1"], "unknown option '--bakend', did you mean --backend?; see ./lab run --help")
    refuses(["compare", "1", "2", "--bakend", "sim"], "unknown option '--bakend', did you mean --backend?")
    refuses(["run", "1", "--seed", "-1"], "--seed")
    refuses(["run", "1", "--seed", "one"], "--seed")
    refuses(["run", "1", "--shape"], "--shape needs a value, KEY=N,...; see")
    refuses(["run", "1", "--shape", "w=5", "--shape", "w=6"], "--shape is given more than once; give it once")
    refuses(["run", "1", "-shape", "w=5"], "unknown option '-shape', did you mean --shape?")
    refuses(["compare", "1"], "2")
    refuses(["run", "1", "--lines", "--backend", "gpu"], "--lines")
    refuses(["run", "1", "--sass", "--json"], "--sass")
    refuses(["bench", "--backend", "sim", "--", "--frobnicate"], "--frobnicate")
    refuses(["bench", "--backend", "sim", "--", "--benchmark_format=xml"], "Google Benchmark")
    for times in ("-1", "0", "many", "1001", "5000000000"):
        refuses(["bench", "--backend", "sim", "--", "--benchmark_repetitions=2", f"--benchmark_repetitions={times}"],
                f"--benchmark_repetitions must be an integer from 1 to 1000; got '{times}'")
    for flag in ("min_time", "min_warmup_time"):
        for seconds in ("1e9", "nan", "long", ""):
            refuses(["bench", "--backend", "sim", "--", f"--benchmark_{flag}={seconds}"],
                    f"--benchmark_{flag} must be a number of seconds up to 3600; got '{seconds}'")


def test_integers_are_decimal():
    trace = json.loads(succeeds("trace", "3", "--shape", "w=300,s=3", "--events", "011", "--json").stdout)
    assert len(trace["launches"][0]["events"]) == 11, "read as octal"
    for option, least, most, words in (
            ("--events", 0, 2**63 - 1, ["trace", "3"]), ("--warp", 0, 31, ["trace", "3"]), ("--trials", 0, 2**63 - 1, TUNE),
            ("--size", 1, 65, ["image", "box", "in.png", "out.png"]), ("--seed", 0, 2**64 - 1, ["run", "1"])):
        for text in ("0x11", "+3", "1e1", str(most + 1)):
            refuses([*words, f"{option}={text}"], f"{option} must be an integer from {least} to {most}; got '{text}'")


@pytest.mark.parametrize("command", ["run 1", "bench", "compare 1 2", "run 1 --json"])
def test_no_gpu(command):
    refuses([*command.split(), "--backend", "gpu"], "no usable NVIDIA GPU", "--backend sim")


CPU_SHAPE = ("--shape", "n=2,c=3,h=9,w=8,k=4,r=3,s=3,stride_h=2")


def test_the_cpu_track_ignores_the_backend():
    for backend in ("auto", "gpu", "sim"):
        result = json.loads(succeeds("run", "22", *CPU_SHAPE, "--backend", backend, "--json").stdout)
        assert result["backend"] == "cpu" and " thread" in result["device"], result["device"]
        assert result["verified"] and result["time_us"]["median"] > 0 and result["prepare_us"] > 0, result
        assert result["counters"] is None and result["time_cold_us"] is None and result["faults"] == [], result
    out = succeeds("run", "22", *CPU_SHAPE, "--backend", "gpu").stdout
    assert "GFLOP/s" in out and "\nmemory: workspace " in out and "simulator" not in out, out
    out = succeeds("compare", "22", "1", "--shape", "w=100,s=3", "--backend", "sim").stdout
    assert " thread" in out.split("\n")[0] and out.split("\n")[1] == "SIMT simulator", out
    refuses(["compare", "22", "1", "--shape", "w=100,s=3", "--backend", "gpu"], "no usable NVIDIA GPU")


def test_the_cpu_track_has_no_simulator_and_no_machine_code():
    refuses(["run", "22", "--lines"], "runs on the CPU", "--lines")
    refuses(["run", "22", "--sass"], "runs on the CPU", "--sass")
    refuses(["tune", "22"], "runs on the CPU", "tune takes 15-depthwise-tuned")
    refuses(["image", "sharpen", grey_png(), "out.png", "--stage", "22"], "22-im2win-cpu is of the track cpu")
    refuses(["run", "22", "--shape", "n=4611686018427387904,w=8"], "overflow")
    refuses(["run", "22", "--shape", "c=2,k=2,groups=2,h=4,w=4"], "groups = 1", status=3)


def test_bench_times_the_cpu_track():
    workload = "layer 12 (2,512,7,7)->512 3x3"
    names = succeeds("bench", "--track", "cpu", "--backend", "gpu", "--", "--benchmark_list_tests").stdout
    assert "layer12(2,512,7,7)->5123x3/22-im2win-cpu/" in names and "/direct-cpu/" in names, names
    out = succeeds("bench", "--track", "cpu", "--backend", "gpu", "--workload", workload, "--json", "b.json", "--csv",
                   "b.csv", "--", "--benchmark_filter=22-im2win|onednn|openblas").stdout
    assert f"cpu: {workload}" in out and "im2win-cpu vs this" in out and "im2col's matrix 0.922 MB" in out, out
    with open("b.json") as file:
        report = json.load(file)
    assert report["device"]["backend"] == "cpu" and report["ceilings"] is None, report["device"]
    rows = report["rows"]
    assert [row["number"] for row in rows] == [22, None, None] and rows[0]["status"] == "ok", rows
    assert all(row["backend"] == "cpu" and row["status"] in ("ok", "refused") for row in rows), rows
    assert list(rows[0])[:len(RESULT_KEYS)] == RESULT_KEYS, list(rows[0])
    with open("b.csv", newline="") as file:
        assert "time_without_transform_us_median" in file.readline(), "CSV headings"
    # Only a stage that was asked for: no row beside it.
    out = succeeds("bench", "--stage", "22", "--workload", workload).stdout
    assert "(no stage)" not in out and "22-im2win-cpu" in out, out


@pytest.mark.slow
def test_bench_refuses_what_the_memory_does_not_hold_and_goes_on():
    limit = 700 << 20  # the first takes more
    two_threads = dict(ENVIRONMENT, OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="1")  # each takes memory for its stack

    def bench(*workloads):
        named = [word for workload in workloads for word in ("--workload", workload)]
        return subprocess.run([PROGRAM, "bench", "--stage", "22", *named], capture_output=True, text=True, timeout=120,
                              env=two_threads,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))

    result = bench("layer 8 (16,64,112,112)->128 3x3", "layer 12 (2,512,7,7)->512 3x3")
    assert result.returncode == 0, f"exit status {result.returncode}: {result.stderr}"
    assert "refused [1]\n  [1] this machine's memory does not hold it\n" in result.stdout, result.stdout
    assert result.stdout.count("  ok\n") == 1, result.stdout
    result = bench("layer 8 (16,64,112,112)->128 3x3")
    assert result.returncode == 2, f"exit status {result.returncode}: {result.stderr}"


def test_the_lowering_track_tells_of_memory():
    out = succeeds("bench", "--stage", "17", "--backend", "sim", "--workload", "layer 12 (2,48,7,7)->48 3x3").stdout
    assert "workspace" in out and "  memory: input 0.019 MB, im2col's matrix 0.086 MB" in out, out


def test_refusals_exit_3_with_the_rule():
    run = ["run", "1", "--backend", "sim", "--shape"]
    refuses([*run, "w=64,s=4"], "odd", status=3)
    refuses([*run, "w=5,s=11", "--padding", "reflect"], "pad_w < w", status=3)
    for shape, extra in (("w=64,s=4", []), ("w=5,s=11", ["--padding", "reflect"])):
        result = refuses([*run, shape, *extra, "--json"], status=3, stdout=True)
        refusal = json.loads(result.stdout)
        assert refusal["status"] == "refused" and refusal["reason"] in result.stderr, refusal
        assert list(refusal)[:len(RESULT_KEYS)] == RESULT_KEYS, list(refusal)
    assert lab("compare", "1", "2", "--backend", "sim", "--shape", "w=64,s=4").returncode == 3, "compare"


def test_bad_arrays():
    good = write_npy("good.npy", (20,), range(20))
    taps = write_npy("taps.npy", (3,), [1, 2, 3])
    write_npy("double.npy", (20,), range(20), descr="<f8", code="d")
    write_npy("int.npy", (20,), range(20), descr="<i4", code="i")
    write_npy("nan.npy", (3,), [1, float("nan"), 3])
    write_npy("short.npy", (20,), range(19))
    write_npy("long.npy", (20,), range(21))
    write_npy("empty.npy", (0,), [])
    write_npy("three.npy", (2, 2, 5), range(20))
    write_npy("channels.npy", (1, 2, 1, 10), range(20))
    write_npy("huge.npy", (1 << 40, 1 << 40), [])
    with open("text.npy", "w") as file:
        file.write("1 2 3\n")
    open("nothing.npy", "w").close()
    before = sorted(os.listdir("."))
    for name in ("missing", "double", "int", "short", "long", "empty", "text", "nothing", "huge"):
        arguments = ["--output", "y.npy", "--backend", "sim"]
        refuses(["run", "1", "--input", f"{name}.npy", "--filter", taps, *arguments], f"{name}.npy")
        refuses(["run", "1", "--input", good, "--filter", f"{name}.npy", *arguments], f"{name}.npy")
    refuses(["run", "1", "--input", good, "--filter", "nan.npy"], "value 1 is nan")
    refuses(["run", "1", "--input", "three.npy", "--filter", taps], "3 dimensions")
    refuses(["run", "1", "--input", "channels.npy", "--filter", taps], "groups")
    refuses(["run", "1", "--input", ".", "--filter", taps], ".")
    refuses(["run", "1", "--input", good], "--filter")
    refuses(["run", "1", "--filter", taps], "--input")
    refuses(["run", "1", "--input", good, "--filter", taps, "--shape", "s=3"], "--shape gives s")
    assert sorted(os.listdir(".")) == before, "a file appeared or went"


def test_outputs_that_cannot_be_written():
    os.mkdir("folder")
    for path in ("no/such/folder/y.npy", "folder", "/dev/null", "/proc/y.npy", "folder/"):
        refuses(["run", "1", "--backend", "sim", "--shape", "w=9", "--output", path], path)
        refuses(["bench", "--backend", "sim", "--json", path], path)
        refuses(["bench", "--backend", "sim", "--csv", path], path)
        refuses(["bench", "--backend", "sim", "--", f"--benchmark_out={path}"], path)
    assert os.listdir(".") == ["folder"] and os.listdir("folder") == [], "a file appeared"


def test_no_output_without_success():
    refuses(["run", "1", "--backend", "sim", "--shape", "w=64,s=4", "--output", "y.npy"], status=3)
    refuses(["run", "1", "--backend", "sim", "--shape", "w=0", "--output", "y.npy"])
    assert os.listdir(".") == [], os.listdir(".")
    with open("y.npy", "w") as file:
        file.write("mine")
    refuses(["run", "1", "--backend", "sim", "--shape", "w=64,s=4", "--output", "y.npy"], status=3)
    with open("y.npy") as file:
        assert file.read() == "mine", "the old file was lost"


def test_outputs_are_not_inputs_nor_each_other():
    write_npy("x.npy", (20,), range(20))
    write_npy("f.npy", (3,), [1, 2, 3])
    os.symlink("x.npy", "link.npy")
    with open("x.npy", "rb") as file:
        before = file.read()
    run = ["run", "1", "--backend", "sim", "--input", "x.npy", "--filter", "f.npy", "--output"]
    for path in ("x.npy", "./x.npy", os.path.abspath("x.npy"), "link.npy"):
        refuses([*run, path], "--output and --input are the same file", path)
    refuses([*run, "f.npy"], "--output and --filter are the same file", "f.npy")
    with open("x.npy", "rb") as file:
        assert file.read() == before, "the input was lost"
    bench = ["bench", "--backend", "sim", "--workload", "w=65536 r=1"]
    refuses([*bench, "--json", "same", "--csv", "./same"], "--json and --csv are the same file")
    assert sorted(os.listdir(".")) == ["f.npy", "link.npy", "x.npy"], os.listdir(".")


def test_links_stay_links():
    open("real.npy", "w").close()
    os.symlink("real.npy", "link.npy")
    os.symlink("nothing.npy", "dangling.npy")
    run = ["run", "1", "--backend", "sim", "--shape", "w=9", "--output"]
    succeeds(*run, "link.npy")
    assert os.path.islink("link.npy") and read_npy("real.npy")[0] == (1, 1, 1, 9), "the link was replaced"
    refuses([*run, "dangling.npy"], "'dangling.npy'", "link")
    for option in ("--json", "--csv"):
        refuses(["bench", "--backend", "sim", option, "dangling.npy"], "'dangling.npy'", "link")
    assert sorted(os.listdir(".")) == ["dangling.npy", "link.npy", "real.npy"], os.listdir(".")


def test_the_output_is_not_a_redirected_descriptor():
    with open("out.txt", "w") as out:
        result = subprocess.run([PROGRAM, "run", "1", "--backend", "sim", "--shape", "w=9", "--output",
                                 "/proc/self/fd/1"], stdout=out, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    assert result.returncode == 2 and "no ordinary file" in result.stderr, result
    assert os.path.getsize("out.txt") == 0, "something was written"


def test_empty_paths():
    write_npy("x.npy", (20,), range(20))
    run = ["run", "1", "--backend", "sim"]
    refuses([*run, "--input", "", "--filter", "x.npy"], "'': the path is empty")
    refuses([*run, "--input", "x.npy", "--filter", ""], "'': the path is empty")
    refuses([*run, "--shape", "w=9", "--output", ""], "'': the path is empty")
    refuses(["bench", "--backend", "sim", "--json", ""], "'': the path is empty")


def test_shapes_with_files_are_quoted_as_typed():
    write_npy("x.npy", (20,), range(20))
    run = ["run", "1", "--backend", "sim", "--input", "x.npy", "--filter", "x.npy"]
    for shape in ("s", "", "pad_w=1,"):
        result = refuses([*run, "--shape", shape], f"shape '{shape}' has the item ")
        assert "n=1" not in result.stderr, result.stderr


def test_values_at_the_ends_of_the_range():
    write_npy("f.npy", (5,), [4, -4, 4, -4, 4])
    run = ["run", "1", "--backend", "sim", "--input", "x.npy", "--filter", "f.npy"]
    write_npy("x.npy", (300,), [3e38] * 300)
    assert "300 of 300 outputs unchecked" in succeeds(*run).stdout, "no word of the unchecked outputs"
    write_npy("x.npy", (300,), [1e-39] * 300)
    assert "unchecked" not in succeeds(*run).stdout, "subnormal outputs are unchecked"
    write_npy("x.npy", (300,), [0x7fed7fed] + [0x3f800000] * 299, code="I")  # NaN with the payload of poison
    succeeds(*run)


def test_output_without_input():
    succeeds("run", "4", "--backend", "sim", "--shape", "n=2,w=300,s=5", "--output", "y.npy")
    assert read_npy("y.npy")[0] == (2, 1, 1, 300), "shape"


def test_a_full_disk_is_told():
    with open("/dev/full", "w") as full:
        for words in ("list", "--help"):
            result = subprocess.run([PROGRAM, words], stdout=full, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
            assert result.returncode == 2 and "standard output" in result.stderr, result
        bench = [PROGRAM, "bench", "--stage", "1", "--shape", "w=9", "--backend", "sim", "--json"]
        tune = [PROGRAM, *TUNE, "--trials", "2", "--json"]
        unheard = [subprocess.run(words, stdout=subprocess.PIPE, stderr=full, env=ENVIRONMENT)
                   for words in ([PROGRAM, "run", "99"], [*bench, "unheard.json"], tune)]
        unseen = subprocess.run([*bench, "unseen.json"], stdout=full, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    assert [done.returncode for done in unheard] == [2, 0, 0], "a standard error on a full disk"
    assert unseen.returncode == 2 and "cannot write to the standard output" in unseen.stderr, unseen
    reader, writer = os.pipe()
    os.close(reader)
    left = subprocess.run([*bench, "left.json"], stdout=writer, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    os.close(writer)
    assert left.returncode == 2 and "cannot write to the standard output" in left.stderr, left
    for file in "unheard.json", "unseen.json", "left.json":
        assert [row["status"] for row in json.loads(contents(file))["rows"]] == ["ok"], file


def test_closed_streams_are_not_mixed_up_with_files():
    run = f"'{PROGRAM}' run 1 --shape w=9 --backend sim --output"
    assert subprocess.run(["bash", "-c", f"{run} open.npy >text"], env=ENVIRONMENT).returncode == 0
    done = subprocess.run(["bash", "-c", f"{run} closed.npy <&- >&-"], capture_output=True, text=True, env=ENVIRONMENT)
    assert (done.returncode, done.stderr) == (2, "./lab: cannot write to the standard output\n"), done
    assert subprocess.run(["bash", "-c", f"{run} deaf.npy <&- >text 2>&-"], env=ENVIRONMENT).returncode == 0
    assert contents("open.npy") == contents("closed.npy") == contents("deaf.npy"), "what is printed went to a file"
    assert subprocess.run(["bash", "-c", f"'{PROGRAM}' run 99 2>&-"], env=ENVIRONMENT).returncode == 2


def test_files_that_are_not_named_as_what_they_are():
    grey_png()
    refuses(["image", "box", "in.png", "out.jpg"], "OUT must end in .png, the one kind that is written; got 'out.jpg'")
    refuses(["run", "1", "--shape", "w=9", "--output", "y.txt"], "--output must end in .npy", "'y.txt'")
    for name in ("OUT.PNG", "out"):
        succeeds("image", "box", "in.png", name, "--backend", "sim")


def test_protected_files_are_left():
    pathlib.Path("mine.npy").touch(mode=0o444)
    as_others = ["setpriv", "--bounding-set=-dac_override", "--"] if os.geteuid() == 0 else []  # root may write all
    done = subprocess.run([*as_others, PROGRAM, "run", "1", "--shape", "w=9", "--backend", "sim", "--output", "mine.npy"],
                          capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 2 and "Permission denied" in done.stderr, done
    assert pathlib.Path("mine.npy").stat().st_size == 0


def test_image_says_what_it_did():
    result = succeeds("image", "sharpen", grey_png(), "out.png", "--backend", "sim", "--stage", "5")
    assert (result.stdout == "in.png: 40x30, grey, 8 bits; sharpen, 3x3; padding replicate\n"
            "05-naive-2d on SIMT simulator, as floats: no time is measured; wrote out.png\n"), result.stdout
    assert result.stderr == "", result.stderr
    assert sorted(os.listdir(".")) == ["in.png", "out.png"], os.listdir(".")


def test_image_filters_and_leaves_alpha():
    # One white pixel on black, and alpha that differs: a box of 3 spreads 255 / 9 = 28.33 over nine pixels.
    samples = [v for i in range(25) for v in ([255, 255, 255] if i == 12 else [0, 0, 0]) + [10 * i]]
    write_png("in.png", 5, 5, 6, 8, samples)
    around = (6, 7, 8, 11, 12, 13, 16, 17, 18)
    write_png("wanted.png", 5, 5, 6, 8, [v for i in range(25) for v in [28 if i in around else 0] * 3 + [10 * i]])
    succeeds("image", "box", "in.png", "out.png", "--size", "3", "--backend", "sim")
    succeeds("image", "box", "wanted.png", "same.png", "--size", "1", "--backend", "sim")
    assert contents("out.png") == contents("same.png"), "not what a box does"


@pytest.mark.parametrize("name", ["gaussian", "sobel", "emboss", "box"])
def test_image_is_the_same_from_every_stage(name):
    stages = [stage for stage in json.loads(succeeds("list", "--json").stdout) if stage["track"] == "images"]
    write_png("in.png", 37, 23, 2, 16, [(977 * i * i + i) % 65536 for i in range(37 * 23 * 3)])
    files = set()
    for stage in stages:
        result = lab("image", name, "in.png", "out.png", "--stage", stage["name"], "--backend", "sim")
        if result.returncode == 3:
            assert "refuses" in result.stderr and not os.path.exists("out.png"), result.stderr
            continue
        assert result.returncode == 0, result.stderr
        files.add(contents("out.png"))
        os.remove("out.png")
    assert len(files) == 1, f"{len(files)} different files"


def test_image_takes_filters_from_files():
    grey_png()
    with open("filter.txt", "w") as file:
        file.write("# sharpen\n 0, -1, 0\n-1 5 -1\n0 -1 0\n")
    write_npy("filter.npy", (3, 3), [0, -1, 0, -1, 5, -1, 0, -1, 0])
    image = ["image", "custom", "in.png"]
    succeeds(*image, "text.png", "--filter", "filter.txt", "--backend", "sim")
    succeeds(*image, "array.png", "--filter", "filter.npy", "--backend", "sim")
    succeeds("image", "sharpen", "in.png", "named.png", "--backend", "sim")
    assert contents("text.png") == contents("array.png") == contents("named.png"), "the pictures differ"
    refuses([*image, "out.png"], "--filter FILE")
    refuses([*image, "out.png", "--filter", "none.txt"], "'none.txt': there is no such file")
    refuses([*image, "filter.txt", "--filter", "filter.txt"], "OUT and --filter are the same file")


def test_image_padding_shows_at_the_edge():
    write_png("in.png", 3, 3, 0, 8, [200, 100, 0] * 3)
    files = {}
    for padding in ("zero", "replicate", "reflect"):
        succeeds("image", "box", "in.png", "out.png", "--size", "3", "--padding", padding, "--backend", "sim")
        files[padding] = contents("out.png")
    succeeds("image", "box", "in.png", "out.png", "--size", "3", "--backend", "sim")
    assert len(set(files.values())) == 3 and contents("out.png") == files["replicate"], "padding"
    refuses(["image", "box", "in.png", "new.png", "--size", "7", "--padding", "reflect", "--backend", "sim"],
            "pad_h < h", status=3)


def test_image_with_wrong_arguments():
    image = ["image", "sharpen", grey_png(), "out.png"]
    refuses(["image"], "FILTER")
    refuses(["image", "sharpen", "in.png"], "OUT")
    refuses(["image", "sharpn", "in.png", "out.png"], "unknown filter 'sharpn'", "did you mean sharpen?")
    refuses([*image, "--stage", "3"], "03-tiled-1d is of the track signals", "05-naive-2d")
    refuses([*image, "--stage", "77"], "unknown stage '77'")
    refuses([*image, "--padding", "wrap"], "wrap", "replicate")
    refuses([*image, "--sigma", "1"], "--sigma does not belong to sharpen")
    refuses(["image", "box", "in.png", "out.png", "--size", "66"], "--size must be an integer from 1 to 65; got '66'")
    refuses(["image", "gaussian", "in.png", "out.png", "--sigma", "11"], "65x65")
    refuses(["image", "gaussian", "in.png", "out.png", "--sigma", "x"], "--sigma")
    refuses([*image, "--backend", "gpu"], "no usable NVIDIA GPU")
    refuses(["image", "sharpen", "in.png", "./in.png"], "OUT and IN are the same file")
    refuses(["image", "sharpen", "in.png", "no/folder/out.png"], "cannot write 'no/folder/out.png'")
    refuses(["image", "sharpen", "in.png", "/dev/null"], "no ordinary file")
    assert os.listdir(".") == ["in.png"], os.listdir(".")


def test_image_with_wrong_pictures():
    good = contents(grey_png("good.png"))
    os.mkdir("folder")
    files = {"empty.png": b"", "cut.png": good[:-30], "text.png": b"hello", "photo.jpg": b"\xff\xd8\xff\xe0\0\x10JFIF",
             "crc.png": good[:29] + bytes([good[29] ^ 1]) + good[30:]}
    huge = struct.pack(">IIBBBBB", 2**31 - 1, 2**31 - 1, 16, 6, 0, 0, 0)
    files["huge.png"] = good[:8] + png_chunk(b"IHDR", huge) + good[33:]
    for name, data in files.items():
        with open(name, "wb") as file:
            file.write(data)
    before = sorted(os.listdir("."))
    for name, part in (("empty.png", "is empty"), ("cut.png", "is cut off"), ("text.png", "not a PNG"),
                       ("photo.jpg", "JPEG"), ("crc.png", "damaged"), ("huge.png", "make the picture smaller"),
                       ("none.png", "no such file"), ("folder", "not a regular file"), ("", "empty")):
        refuses(["image", "sharpen", name, "out.png", "--backend", "sim"], f"'{name}': ", part)
    assert sorted(os.listdir(".")) == before, "a file appeared"


def test_image_warns_of_a_long_wait():
    grey_png("large.png", 600, 400)
    result = succeeds("image", "box", "large.png", "out.png", "--size", "17", "--stage", "9", "--backend", "sim")
    assert result.stderr.startswith("note: the simulator does 139 million operations"), result.stderr


def test_sound_says_what_it_did():
    needs_sounds()
    write_wav("in.wav", [100 * (i % 7) for i in range(800)], channels=2)
    result = succeeds("sound", "lowpass", "in.wav", "out.wav", "--cutoff", "1500", "--backend", "sim", "--stage", "3")
    lines = result.stdout.split("\n")
    assert lines[0] == "in.wav: 8000 Hz, 2 channels of 0.050 s, 16 bits; lowpass, cut-off 1500 Hz; 61 taps", lines[0]
    assert lines[1] == "03-tiled-1d on SIMT simulator: no time is measured", lines[1]
    assert lines[2].startswith("verified: relative L2 error "), lines[2]
    assert lines[3:] == ["no sample clipped; wrote out.wav", ""], lines
    assert result.stderr == "" and sorted(os.listdir(".")) == ["in.wav", "out.wav"], result.stderr
    assert read_wav("out.wav")[1] == (1, 2, 8000) and len(read_wav("out.wav")[0]) == 800


@pytest.mark.parametrize("stage", ["1", "2", "3", "4"])
def test_sound_echoes_each_channel_and_counts_what_it_clips(stage):
    needs_sounds()
    channels = [[(9973 * i * i) % 65536 - 32768 for i in range(300)], [4 * i for i in range(300)]]
    write_wav("in.wav", [value for frame in zip(*channels) for value in frame], channels=2)
    result = succeeds("sound", "echo", "in.wav", "out.wav", "--delay", "5", "--stage", stage, "--backend", "sim")
    delay, clipped, expected = 40, 0, []
    for i in range(300 + delay):
        for channel in channels:
            exact = (channel[i] if i < 300 else 0) + (channel[i - delay] / 2 if i >= delay else 0)
            expected.append(min(max(math.floor(exact + 0.5), -32768), 32767))
            clipped += expected[-1] != math.floor(exact + 0.5)
    assert read_wav("out.wav") == (expected, (1, 2, 8000))
    assert clipped > 10 and f"\n{clipped} samples clipped; wrote out.wav\n" in result.stdout, result.stdout


@pytest.mark.parametrize("kind", list(WAV_TYPES))
def test_sound_keeps_the_type_of_the_samples(kind):
    needs_sounds()
    samples = {"B": [128, 228, 0, 255], "h": [0, 1000, -32768, 32767], "": [0, 1 << 21, -1 << 23, 12345],
               "i": [0, 1 << 30, -1 << 31, 1 << 20], "f": [0, 0.5, -1, 3], "d": [0, 0.5, -1, 3]}[WAV_TYPES[kind][2]]
    write_wav("in.wav", samples, kind, rate=48000)
    result = succeeds("sound", "equalise", "in.wav", "out.wav", "--mid", "0", "--backend", "sim")
    assert f"s, {kind}; equalise" in result.stdout, result.stdout
    values, (tag, channels, rate) = read_wav("out.wav", kind)
    near = {"24 bits": 2, "32 bits": 300}.get(kind, 1e-6)  # the taps are an impulse to seven digits
    assert all(abs(a - b) <= near for a, b in zip(values, samples)) and len(values) == 4, values
    assert (tag, channels, rate) == (WAV_TYPES[kind][0], 1, 48000)
    data = contents("out.wav")
    succeeds("sound", "equalise", "in.wav", "out.wav", "--mid", "0", "--backend", "sim")
    assert contents("out.wav") == data, "another file from the same sound"


def test_sound_with_wrong_arguments():
    needs_sounds()
    sound = ["sound", "lowpass", write_wav("in.wav", [1, 2, 3]), "out.wav"]
    refuses(["sound"], "FILTER")
    refuses(["sound", "lowpass", "in.wav"], "OUT")
    refuses(["sound", "lowpas", "in.wav", "out.wav"], "unknown filter 'lowpas'", "did you mean lowpass?")
    refuses([*sound, "--stage", "5"], "05-naive-2d is of the track images; sound takes 01-naive-1d, 02")
    refuses([*sound, "--stage", "77"], "unknown stage '77'")
    refuses([*sound, "--delay", "10"], "--delay does not belong to lowpass")
    refuses([*sound, "--cutoff", "x"], "--cutoff")
    refuses([*sound, "--cutoff", "-1"], "--cutoff must be a finite number above 0")
    refuses([*sound, "--cutoff", "4000", "--backend", "sim"], "below half the sample rate, 4000 Hz here")
    refuses([*sound, "--cutoff", "1", "--backend", "sim"], "--cutoff 1 needs more than the 16383 taps")
    refuses(["sound", "echo", "in.wav", "out.wav", "--delay", "3000", "--backend", "sim"], "to 2047.74 ms")
    refuses(["sound", "echo", "in.wav", "out.wav", "--delay", "1e300", "--backend", "sim"], "is 8e+300 samples at 8000 Hz")
    refuses(["sound", "lowpass", "in.wav", "out.mp3"], "OUT must end in .wav, the one kind that is written; got 'out.mp3'")
    refuses(["sound", "equalise", "in.wav", "out.wav"], "give --bass, --mid or --treble")
    refuses(["sound", "equalise", "in.wav", "out.wav", "--mid", "30"], "--mid must be from -60 to 20 dB")
    refuses(["sound", "equalise", "in.wav", "out.wav", "--mid", "-30", "--bas", "3"], "unknown option '--bas'")
    refuses(["sound", "equalise", "in.wav", "out.wav", "--mid", "3", "--backend", "sim"], "a sample rate above 8000")
    refuses([*sound, "--backend", "gpu"], "no usable NVIDIA GPU")
    refuses(["sound", "lowpass", "in.wav", "./in.wav"], "OUT and IN are the same file")
    refuses(["sound", "lowpass", "in.wav", "no/folder/out.wav"], "cannot write 'no/folder/out.wav'")
    refuses(["sound", "lowpass", "in.wav", "/dev/null"], "no ordinary file")
    assert os.listdir(".") == ["in.wav"], os.listdir(".")


def test_sound_with_wrong_files():
    needs_sounds()
    os.mkdir("folder")
    write_wav("cut.wav", range(100), cut=20)
    write_wav("still.wav", [])
    write_wav("mulaw.wav", [1] * 10, "8 bits", tag=7)
    write_wav("nan.wav", [0, 0, 0, 0.5, 0, float("nan")], "floats of 32 bits", channels=2)
    write_wav("none-channel.wav", [1, 2], channels=0)
    write_wav("no-rate.wav", [1, 2], rate=0)
    for name, data in (("empty.wav", b""), ("text.wav", b"hello, this is a text"), ("short.wav", b"RIFF"),
                       ("sun.au", b".snd" + struct.pack(">5I", 24, 4, 3, 8000, 1) + b"\0\1\0\2")):
        with open(name, "wb") as file:
            file.write(data)
    before = sorted(os.listdir("."))
    for name, part in (("empty.wav", "is empty"), ("text.wav", "not a sound file"), ("short.wav", "sound"),
                       ("cut.wav", "is cut off"), ("still.wav", "there are no samples"),
                       ("mulaw.wav", "samples of the format U-Law"), ("sun.au", "AU"),
                       ("nan.wav", "sample 2 of channel 1 is nan"), ("none-channel.wav", "cannot be read"),
                       ("no-rate.wav", "cannot be read"), ("none.wav", "no such file"), ("folder", "not a regular file"),
                       ("", "empty")):
        refuses(["sound", "lowpass", name, "out.wav", "--backend", "sim"], f"'{name}': ", part)
    assert sorted(os.listdir(".")) == before, "a file appeared"


def written_from(page):
    """Writes the programs of a page, each with its name in a comment at the beginning. Returns the page."""
    text = (ROOT / page).read_text()
    for name, program in re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```$", text, re.S | re.M):
        with open(name, "w") as file:
            file.write(program)
    return text


def python(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True).stdout


def test_sound_does_what_its_page_says():
    needs_sounds()
    page = written_from("docs/sound.md")
    assert "\npython3 tone.py tone.wav 440 6000\n" in page and "\npython3 level.py out.wav 440 6000\n" in page
    python("tone.py", "tone.wav", "440", "6000")
    levels = "440 Hz: {}\n6000 Hz: {}\n"
    assert python("level.py", "tone.wav", "440", "6000") == levels.format("-12.0 dB", "-12.0 dB")
    rows = re.findall(r"^\| `(.*)` \| (.*) \| (.*) \| (\d+) \|$", page, re.M)
    assert len(rows) == 6, rows
    for command, low, high, clipped in rows:
        out = succeeds("sound", *command.split(), "--backend", "sim").stdout
        assert python("level.py", "out.wav", "440", "6000") == levels.format(low, high), command
        assert f"\n{'no' if clipped == '0' else clipped} sample" in out, (command, out)


def heat_steps(rod, alpha, steps, padding):
    """One after the other, with the cells outside as the lesson tells of each padding."""
    for _ in range(steps):
        first, last = {"zero": (0, 0), "replicate": (rod[0], rod[-1]), "reflect": (rod[1], rod[-2])}[padding]
        wide = [first, *rod, last]
        rod = [u + alpha * (wide[i] - 2 * u + wide[i + 2]) for i, u in enumerate(rod)]
    return rod


def heat_pass(rod, padding):
    write_npy("rod.npy", (len(rod),), rod)
    succeeds("run", "4", "--input", "rod.npy", "--filter", "heat.npy", "--output", "later.npy", "--padding", padding,
             "--backend", "sim")
    return read_npy("later.npy")[1]


@pytest.mark.parametrize("padding", ["zero", "replicate", "reflect"])
def test_heat_of_lesson_04(padding):
    lesson = written_from("chapters/04-halo-1d/README.md")
    assert "\npython3 heat.py 0.25 8\n./lab run 4 --input rod.npy --filter heat.npy --output later.npy --padding" in lesson
    rod = [(37 * i * i) % 101 for i in range(600)]
    inner_sums = {"replicate": sum, "reflect": lambda u: sum(u) - (u[0] + u[-1]) / 2}
    for steps in (1, 8):
        python("heat.py", "0.25", str(steps))
        later, expected = heat_pass(rod, padding), heat_steps(rod, 0.25, steps, padding)
        wrong = [i for i in range(600) if abs(later[i] - expected[i]) > 1e-4]
        ends = [] if steps == 1 or padding == "reflect" else [*range(steps - 1), *range(601 - steps, 600)]
        assert set(wrong) <= set(ends), wrong
        if ends:  # with weights down to 0.25 ** 8, not all of them show
            assert {0, 1, 2, 3, 596, 597, 598, 599} <= set(wrong), wrong
        elif padding in inner_sums:
            keeps = inner_sums[padding]
            assert abs(keeps(later) - keeps(rod)) < 0.05, "heat was lost"


def test_heat_of_lesson_04_is_unstable_beyond_a_half():
    written_from("chapters/04-halo-1d/README.md")
    for alpha, factor in (("0.5", 1), ("0.6", 1.4 ** 8)):
        python("heat.py", alpha, "8")
        later = heat_pass([(-1) ** i for i in range(100)], "reflect")
        assert all(abs(value - factor * (-1) ** i) < 1e-4 for i, value in enumerate(later)), alpha
    python("heat.py", "0.25", "8")
    succeeds("run", "4", "--input", "rod.npy", "--filter", "heat.npy", "--output", "later.npy", "--backend", "sim")


TUNED_SHAPE = "n=2,c=3,h=9,w=20,k=3,r=3,s=3,groups=3"
TUNE = ["tune", "--backend", "sim", "--shape", TUNED_SHAPE]


def tuned_files():
    return [os.path.join(place, name) for place, _, names in os.walk("tuned") for name in names]


def origin_of_run(shape=TUNED_SHAPE):
    """Which configuration stage 15 runs with, and what the program says on stderr."""
    result = succeeds("run", "15", "--shape", shape, "--backend", "sim", "--json")
    return json.loads(result.stdout)["configuration_origin"], result.stderr


def test_tune_keeps_what_the_next_run_uses():
    assert origin_of_run() == ("default", ""), origin_of_run()
    report = succeeds(*TUNE, "--trials", "20").stdout
    files = tuned_files()
    assert len(files) == 1 and report.endswith(f"log: {files[0]}\n"), f"{files} in {report}"
    for part in ("SIMT simulator\n15-depthwise-tuned on n=2", "annealing   20/20", "estimated cycles", "block_planes",
                 "kept: stage 15"):
        assert part in report, f"no {part!r} in {report}"
    log = json.loads(contents(files[0]))
    best = log["best"]
    assert best["estimated_cycles"] < best["default_estimated_cycles"] == log["default"]["estimated_cycles"], best
    trials = log["sessions"][0]["trials"]
    assert len(trials) == 20 and all(trial["status"] == "ok" for trial in trials), trials
    assert best["estimated_cycles"] == trials[-1]["best_so_far"], "the best of the trials is not the log's"
    assert origin_of_run() == ("tuned", ""), origin_of_run()
    result = json.loads(succeeds("run", "15", "--shape", TUNED_SHAPE, "--backend", "sim", "--json").stdout)
    assert result["configuration"] == best["configuration"], result["configuration"]
    assert origin_of_run("n=2,c=3,h=9,w=21,k=3,r=3,s=3,groups=3")[0] == "default", "used for another problem"


def test_tune_runs_searches_side_by_side():
    result = succeeds(*TUNE, "--trials", "7", "--search", "all", "--json", "--seed", "5")
    log = json.loads(result.stdout)
    assert json.loads(contents(tuned_files()[0])) == log, "the output is not the log"
    assert [session["search"] for session in log["sessions"]] == ["random", "annealing", "model", "exhaustive"], log["sessions"]
    assert all(session["seed"] == 5 and len(session["trials"]) == 7 for session in log["sessions"]), log["sessions"]
    assert "exhaustive [####################] 7/7" in result.stderr, result.stderr
    again = json.loads(succeeds(*TUNE, "--trials", "9", "--search", "random", "--json").stdout)
    lengths = {session["search"]: len(session["trials"]) for session in again["sessions"]}
    assert lengths == {"annealing": 7, "model": 7, "exhaustive": 7, "random": 9}, lengths
    assert again["best"]["estimated_cycles"] <= log["best"]["estimated_cycles"], "a worse one replaced the best"


def test_tune_leaves_alone_what_is_set_and_replays_what_it_tried():
    log = json.loads(succeeds(*TUNE, "--trials", "70", "--search", "random", "--configuration",
                              "filter=shared,unroll=rows", "--kernel-tuner", "cache.json", "--json").stdout)
    trials = log["sessions"][0]["trials"]
    assert {(trial["configuration"]["filter"], trial["configuration"]["unroll"]) for trial in trials} == {
        ("shared", "rows")}, trials
    cache = json.loads(contents("cache.json"))
    assert len(cache["cache"]) == 70 and cache["objective"] == "estimated_cycles", cache
    replay = json.loads(succeeds("tune", "--replay", tuned_files()[0], "--json").stdout)
    assert list(replay["best"]) == ["random", "annealing", "model"] and replay["trials"] == [20, 40, 60], replay
    assert all(len(seeds) == 10 and min(looks[2] for looks in seeds) == replay["least"]
               for seeds in replay["best"].values()), replay
    report = succeeds("tune", "--replay", tuned_files()[0]).stdout
    assert "70 configurations of SIMT simulator" in report and "60 trials" in report, report


def test_tune_zero_trials_are_all_points():
    shape = "n=1,c=1,h=1,w=2,k=1,r=1,s=1"
    result = succeeds("tune", "15", "--backend", "sim", "--shape", shape, "--trials", "0", "--search", "exhaustive",
                      "--json")
    log = json.loads(result.stdout)
    assert len(log["sessions"][0]["trials"]) == log["space"]["valid"] > 10, log["space"]


def test_tune_ends_at_ctrl_c_and_keeps_what_it_found():
    for number in (signal.SIGINT, signal.SIGTERM):
        process = subprocess.Popen([PROGRAM, *TUNE, "--trials", "0"], env=ENVIRONMENT, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stderr.readline()  # the default's cost: the search begins
        # (a log being written is another file, NAME.json.PID.part, renamed when it is whole)
        while not any(b'"annealing"' in contents(log) for log in glob.glob("tuned/*/*.json")):
            assert process.poll() is None, "the search ended by itself"
            time.sleep(0.01)
        process.send_signal(number)
        output, errors = process.communicate(timeout=60)
        assert process.returncode == 130, f"exit status {process.returncode}: {errors}"
        assert "interrupted" in output, output
        session, = json.loads(contents(tuned_files()[0]))["sessions"]
        assert session["interrupted"] and 0 < len(session["trials"]) < session["budget"], session["budget"]
        assert len(tuned_files()) == 1, tuned_files()
        assert origin_of_run() == ("tuned", ""), origin_of_run()


@pytest.mark.slow
def test_tune_interrupted_early_keeps_the_longer_search():
    succeeds(*TUNE, "--trials", "1500", "--seed", "3")
    before = json.loads(contents(tuned_files()[0]))["sessions"]
    process = subprocess.Popen([PROGRAM, *TUNE, "--trials", "0"], env=ENVIRONMENT, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    process.stderr.readline()  # the default's cost: the search begins
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, f"exit status {process.returncode}: {errors}"
    assert json.loads(contents(tuned_files()[0]))["sessions"] == before, "the longer search is gone"


def test_tune_runs_once_at_a_time():
    succeeds(*TUNE, "--trials", "5")
    place = os.path.dirname(tuned_files()[0])
    holder = os.open(place, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    refuses([*TUNE, "--trials", "5"], "another ./lab tune or ./lab best is running on this device", place)
    os.close(holder)
    succeeds(*TUNE, "--trials", "5")


def test_tune_passes_over_a_damaged_log():
    succeeds(*TUNE, "--trials", "5")
    path = tuned_files()[0]
    whole = contents(path)
    with open(path, "wb") as file:
        file.write(whole[:200])
    origin, note = origin_of_run()
    assert origin == "default" and note.count("\n") == 1 and path in note and "./lab tune" in note, note
    succeeds(*TUNE, "--trials", "5")
    assert contents(path).count(b'"search"') == 1 and origin_of_run() == ("tuned", ""), "not made anew"
    log = json.loads(whole)
    log["best"] = {**(log["best"] or {}), "configuration": {"block_rows": "NESTED"}}
    with open(path, "w") as file:
        file.write(json.dumps(log).replace('"NESTED"', "[" * 200000 + "]" * 200000))
    assert origin_of_run()[0] == "default", "nested values were taken"
    os.remove(path)
    os.mkdir(path)
    origin, note = origin_of_run()
    assert origin == "default" and "it is no file" in note, note


@pytest.mark.slow
def test_bench_says_that_a_stage_is_tuned():
    bench = ("bench", "--backend", "sim", "--stage", "15", "--workload", "primes (3,5,61,67) 5x5")
    assert "./lab tune" not in succeeds(*bench).stdout, "nothing is tuned yet"
    succeeds("tune", "--backend", "sim", "--workload", "primes (3,5,61,67) 5x5", "--trials", "30")
    assert "with the configuration that ./lab tune found here" in succeeds(*bench).stdout, "no footnote"


BEST = ["best", "--backend", "sim", "--shape", "c=16,h=6,w=6,k=16,r=3,s=3", "--dtype", "int8"]


def test_best_ranks_and_keeps():
    report = succeeds(*BEST).stdout
    files = tuned_files()
    assert len(files) == 1 and "best-int8-n1-c16" in files[0] and f" in {files[0]}\n" in report, f"{files}: {report}"
    assert "34-int8-hopper" in report and "30-winograd-int8" in report and "measured " in report, report
    kept = json.loads(succeeds(*BEST, "--json").stdout)
    right = [row for row in kept["candidates"] if row["status"] == "ok"]
    assert kept["kept"] and kept["best"] == min(right, key=lambda row: row["estimated_cycles"]), kept["best"]
    assert {row["stage"] for row in right} == {"30-winograd-int8", "34-int8-hopper"}, right
    # What was kept is what is told: with another figure in the file, another stage is the best.
    slower = json.loads(contents(files[0]))
    for row in slower["candidates"]:
        if row["stage"] == "34-int8-hopper":
            row["estimated_cycles"] = 1e9
    with open(files[0], "w", encoding="utf-8") as file:
        json.dump(slower, file)
    assert "./lab run 30 --shape n=1,c=16" in succeeds(*BEST).stdout, "the kept file was not read"
    assert json.loads(succeeds(*BEST, "--again", "--json").stdout)["best"] == kept["best"], "not measured again"
    with open(files[0], "w", encoding="utf-8") as file:
        file.write("{")
    again = succeeds(*BEST)
    assert "is damaged; measuring again" in again.stderr and "measured " in again.stdout, again


def test_best_keeps_to_an_error():
    errors = sorted({row["rel_l2_err"] for row in json.loads(succeeds(*BEST, "--json").stdout)["candidates"]
                     if row["status"] == "ok"})
    least, most = errors[0], errors[-1]
    of_least = json.loads(succeeds(*BEST, "--json", "--error", str(least * 1.0001)).stdout)
    assert of_least["kept"] and of_least["best"]["rel_l2_err"] == least < most, of_least["best"]
    refuses([*BEST, "--error", str(least / 2)], "no stage has a relative error of at most", "the most exact is", status=3)


@pytest.mark.slow
def test_best_of_fp32_is_exact_by_default():
    layer = ["best", "--backend", "sim", "--shape", "c=8,h=4,w=4,k=8,r=3,s=3"]
    told = json.loads(succeeds(*layer, "--json").stdout)
    assert told["error"] == 1e-5 and told["best"]["rel_l2_err"] <= 1e-5, told["best"]
    assert any(row["status"] == "ok" and row["rel_l2_err"] > 1e-5 for row in told["candidates"]), "nothing left out"
    assert "are beyond the error" in succeeds(*layer).stdout
    # A bound below the error of the fastest of all: the fastest of those that meet it.
    right = [row for row in told["candidates"] if row["status"] == "ok"]
    bound = max(row["rel_l2_err"] for row in right if row["rel_l2_err"] < told["best"]["rel_l2_err"])
    within = json.loads(succeeds(*layer, "--json", "--error", repr(bound)).stdout)
    exact = [row for row in right if row["rel_l2_err"] <= bound]
    assert within["best"] == min(exact, key=lambda row: row["estimated_cycles"]) != told["best"], within["best"]


def test_best_with_wrong_arguments():
    refuses(["best", "--backend", "sim"], "best needs a layer, as in --shape c=64")
    refuses([*BEST[:5], "--dtype", "fp8"], "--dtype must be fp32, fp16, bf16 or int8; got 'fp8'")
    refuses([*BEST, "--error", "0"], "--error must be above 0")
    refuses([*BEST, "--error", "-1e-3"], "--error must be above 0")
    refuses(["best", "--backend", "gpu", *BEST[3:]], "no usable NVIDIA GPU")
    refuses(["best", "--backend", "sim", "--shape", "c=16,h=9,w=9,k=16,r=9,s=9", "--dtype", "int8"],
            "no stage in int8 takes", status=3)
    assert not tuned_files(), "a file appeared"


def test_tune_with_wrong_arguments():
    refuses([*TUNE, "--search", "genetic"], "--search must be random, annealing, model, exhaustive or all", "'genetic'")
    refuses([*TUNE, "--configuration", "filter=disk"], "filter")
    refuses([*TUNE, "--configuration", "block_rows=64"], "no configuration with block_rows=64 is valid", status=3)
    refuses([*TUNE, "--kernel-tuner", "nowhere/cache.json"], "nowhere/cache.json")
    refuses(["tune", "--replay", "none.json"], "'none.json': there is no such file; give the path of a log of ./lab tune")
    refuses(["tune", "--replay", "."], "'.': this is not a regular file; give the path of a log of ./lab tune")
    refuses(["tune", "--replay", "none.json", "--shards", "1/2"], "--replay tries nothing")
    refuses([*TUNE, "--trials", "-1"], "--trials must be an integer from 0 to ", "'-1'")
    refuses([*TUNE, "--trials", "many"], "--trials must be an integer from 0 to ", "'many'")
    refuses([*TUNE, "--workload", "small"], "--workload and --shape")
    refuses(["tune", "--workload", "none", "--backend", "sim"], "--workload must be one of", "'none'")
    refuses(["tune", "3"], "03-tiled-1d has no configurations to search; tune takes 15-depthwise-tuned")
    refuses(["tune", "23"], "23-winograd has no configurations to search; tune takes 15-depthwise-tuned")
    refuses(["tune", "77"], "unknown stage '77'")
    refuses(["tune", "--backend", "gpu"], "no usable NVIDIA GPU")
    refuses(["tune", "--backend", "sim", "--shape", "c=2,k=4,h=8,w=8,r=3,s=3"], "refuses: ", status=3)
    refuses(["tune", "--backend", "sim", "--shape", "h=8,w=8,r=0,s=3"], "r")
    refuses(["tune", "--backend", "sim", "--shape", "h=1,w=8,r=3,s=3", "--padding", "reflect"], "reflect", status=3)
    assert not os.path.exists("tuned"), "a log appeared"


def test_tune_without_a_folder_to_write():
    with open("tuned", "w"):
        pass
    refuses(TUNE, "cannot make 'tuned/simt-simulator'", "set CONVLADDER_TUNED to a folder of your own")


SMALL_WINOGRAD = ("--backend", "sim", "--shape", "c=3,h=9,w=10,k=5,r=3,s=3")


def test_configuration_sets_the_knobs_that_it_names():
    run = json.loads(succeeds("run", "23", *SMALL_WINOGRAD, "--configuration", "m=4", "--json").stdout)
    assert run["configuration"] == {"m": 4} and run["configuration_origin"] == "given", run["configuration"]
    default = json.loads(succeeds("run", "23", *SMALL_WINOGRAD, "--json").stdout)
    assert default["configuration"] == {"m": 2} and default["configuration_origin"] == "default", default
    assert run["counters"] != default["counters"] and run["rel_l2_err"] > default["rel_l2_err"], "the same run"
    shape = "n=3,c=4,h=16,w=32,k=4,r=7,s=7,groups=4"
    plain = json.loads(succeeds("run", "15", "--backend", "sim", "--shape", shape, "--json").stdout)["configuration"]
    run = json.loads(succeeds("run", "15", "--backend", "sim", "--shape", shape, "--configuration",
                              "block_planes=2", "--json").stdout)["configuration"]
    assert run == {**plain, "block_planes": 2} != plain, run


def test_configuration_in_compare_reaches_the_stages_that_have_the_knob():
    both = json.loads(succeeds("compare", "16", "23", *SMALL_WINOGRAD, "--configuration", "m=6", "--json").stdout)
    assert [row["configuration"] for row in both] == [None, {"m": 6}], both


def test_configurations_that_are_none():
    run = ["run", "23", *SMALL_WINOGRAD, "--configuration"]
    for text in ("", "m", "m=", "=4", "m=4,"):
        refuses([*run, text], "--configuration takes knob=value, as in m=4,tbm=32; got ")
    refuses([*run, "m=5"], "m of 23-winograd must be 2, 4 or 6; got '5'")
    refuses([*run, "tbm=16"], "23-winograd has no knob 'tbm'; its knobs are m (2, 4 or 6)")
    refuses([*run, "m=4,m=4"], "--configuration sets 'm' twice")
    refuses(["run", "16", *SMALL_WINOGRAD, "--configuration", "m=4"],
            "16-direct has no configurations to choose from; leave out --configuration")
    refuses(["compare", "16", "17", *SMALL_WINOGRAD, "--configuration", "m=4"], "leave out --configuration")
    shape = "n=1,c=1,h=1,w=2,k=1,r=1,s=1"
    refuses(["run", "15", "--backend", "sim", "--shape", shape, "--configuration", "block_planes=8"], "refuses: ",
            status=3)


def test_bench_has_rows_for_the_other_knobs_of_winograd():
    out = succeeds("bench", "--backend", "sim", "--track", "winograd", "--workload", "odd (2,5,57,57)->7 3x3", "--json",
                   "b.json", "--", "--benchmark_filter=winograd(m=|/)").stdout
    assert "rel. L2 error" in out and "winograd m=6 (no stage)" in out, out
    with open("b.json") as file:
        rows = {row["stage"]: row for row in json.load(file)["rows"]}
    assert set(rows) == {"winograd", "winograd m=4", "winograd m=6"}, set(rows)
    row = rows["winograd m=4"]
    assert row["number"] is None and row["configuration"] == {"m": 4} and row["configuration_origin"] == "given", row
    assert row["dtype"] == "fp32" and row["workspace_bytes"] < rows["winograd"]["workspace_bytes"], row


# ---- --gpu ------------------------------------------------------------------------------------------------------------

def test_a_stage_refuses_on_a_simulated_gpu_as_on_the_card():
    refuses(["run", "32", "--gpu", "T4"], "implicit-gemm-hopper needs a GPU of sm_90a", "Tesla T4 (simulated) is sm_75")
    refuses(["run", "30", "--gpu", "v100"], "needs a GPU of sm_75 or later")
    refuses(["run", "33", "--gpu", "B200"], "NVIDIA B200 (simulated) is sm_100")
    refuses(["run", "9", "--gpu", "T4", "--shape", "h=80,w=80,r=65,s=65"], "a block has 65536", status=3)
    refuses(["compare", "31", "32", "--gpu", "A100"], "needs a GPU of sm_90a")


def test_what_gpu_is_refused():
    refuses(["run", "3", "--gpu", "T5"], "--gpu must be one of V100, RTX 2080 Ti, T4, A100", "got 'T5'")
    refuses(["run", "3", "--gpu", "T4", "--backend", "gpu"], "--gpu says what the simulator stands for")
    refuses(["run", "22", "--gpu", "T4"], "runs on the CPU", "leave out --gpu")
    refuses(["explore", "--measure", "--gpu", "T4", "--backend", "gpu"], "--gpu says what the simulator stands for")


def test_a_bench_on_a_simulated_gpu_says_which():
    succeeds("bench", "--stage", "1,3", "--workload", "w=257 r=5", "--gpu", "RTX 2080 Ti", "--json", "out.json")
    bench = json.loads(pathlib.Path("out.json").read_text())
    assert bench["device"]["name"] == "NVIDIA GeForce RTX 2080 Ti (simulated)"
    assert (bench["device"]["compute_capability"], bench["device"]["shared_bytes_per_block"]) == (75, 65536)
    assert {row["status"] for row in bench["rows"]} == {"ok"}


# ---- explore and prune ----------------------------------------------------------------------------------------------

def test_explore_without_a_gpu_is_about_the_papers_gpu():
    result = succeeds("explore")
    assert result.stdout.startswith("RTX 2080 Ti: 64 KB of shared memory a block, 5.5 MB of L2, 68 "), result.stdout
    assert "PKF-Shmem: TBM that the rules of Tong et al. leave: 8-56\n" in result.stdout, result.stdout
    assert "by their rules: PKF-Shmem both in, PKF-LLC both in\n" in result.stdout, result.stdout
    assert "by all rules: PKF-Shmem both out, PKF-LLC 16 in, 32 out\n" in result.stdout, result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100, "wider than 100 columns"
    assert succeeds("explore", "--all").stdout.count("\n") > 500, "not every tile"


def test_explore_json():
    space = json.loads(succeeds("explore", "--gpu", "NVIDIA H200", "--type", "int8", "--m", "2", "--json").stdout)
    assert list(space) == ["gpu", "layer", "rules", "pkf_shmem", "pkf_llc", "points"], list(space)
    assert space["gpu"] == {"name": "H200", "shared_bytes": 232448, "l2_bytes": 62914560, "multiprocessors": 132}
    assert space["layer"]["tiles"] == 12544 and space["layer"]["meets_wmma_rules"], space["layer"]
    rules = {rule["key"] for rule in space["rules"]}
    assert len(rules) == 6 and all(rules.issuperset(point["broken"]) for point in space["points"]), rules
    for form in ("pkf_shmem", "pkf_llc"):
        for rules in ("by_source", "by_all"):
            left = sorted({point["tbm"] for point in space["points"] if point[form][rules]})
            assert left == space[form]["tbm_" + rules] != [], f"{form} {rules}: {left}"
    point = next(p for p in space["points"] if (p["tbm"], p["tbn"], p["tbk"]) == (32, 16, 48))
    assert point["shared_input_bytes"] == 16 * 32 * 48 and point["accumulators"] == 4 * 32 * 16 // 32, point


def test_explore_takes_sizes_and_shapes():
    options = ("--smem", "100K", "--l2", "0.5m", "--sms", "7", "--shape", "n=2,c=20,h=9,w=10,k=5")
    space = json.loads(succeeds("explore", *options, "--json").stdout)
    assert (space["gpu"] == {"name": "a GPU as described", "shared_bytes": 102400, "l2_bytes": 524288,
            "multiprocessors": 7}), space["gpu"]
    assert space["layer"] == {"m": 4, "type": "fp16", "tiles": 18, "c": 20, "k": 5, "meets_wmma_rules": False}
    changed = succeeds("explore", "--gpu", "a100", "--smem", "65536").stdout
    assert changed.startswith("A100, changed: 64 KB"), changed


def test_explore_measures_what_the_stages_let_in():
    layer = ("--backend", "sim", "--shape", "c=16,h=5,w=6,k=16")
    text = succeeds("explore", "--measure", "--stage", "28", "--stage", "30", *layer).stdout
    assert "points measured" in text and "farthest from the model:\n" in text and "28-winograd-pkf-shmem" in text, text
    found = json.loads(succeeds("explore", "--measure", "--stage", "28", "--json", *layer).stdout)
    assert list(found) == ["device", "unit", "shape", "ceilings", "points"] and found["unit"] == "bytes", list(found)
    points = found["points"]
    assert len(points) > 1 and {point["number"] for point in points} == {28}, points
    assert all(point["status"] == "ok" for point in points), points
    assert [point["measured"] for point in points] == sorted(point["measured"] for point in points), points
    for point in points:
        assert abs(point["ratio"] - point["measured"] / point["foreseen"]) < 1e-9, point
    in_time = json.loads(succeeds("explore", "--measure", "--json", "--budget", "1e-9", *layer).stdout)["points"]
    assert [point["status"] for point in in_time].count("not measured") == len(in_time) - 1, in_time


def test_explore_measure_with_wrong_arguments():
    refuses(["explore", "--measure", "--stage", "25"], "--measure is for the stages 26 to 30; got 25-winograd-fused")
    refuses(["explore", "--measure", "--budget", "-1"], "--budget must be a number of seconds, 0 for no end; got -1")
    refuses(["explore", "--measure", "--m", "2"], "--m excludes --measure")
    refuses(["explore", "--budget", "5"], "--budget requires --measure")
    refuses(["explore", "--measure", "--shape", "c=64,h=9,w=9,k=64,r=5,s=5"], "3x3 filters")


def test_explore_with_wrong_arguments():
    refuses(["explore", "--gpu", "Voodoo 2"], "--gpu must be one of V100, RTX 2080 Ti", "'Voodoo 2'", "--smem")
    for text in ("", "0", "-1", "64KB", "K", "1e6", "9999G", "nan"):
        refuses(["explore", f"--smem={text}"], "--smem")
    refuses(["explore", "--l2", "many"], "--l2 must be a number of bytes", "5.5M")
    refuses(["explore", "--sms", "1.5"], "--sms must be an integer from 1 to 65536; got '1.5'")
    refuses(["explore", "--type", "fp32"], "--type must be fp16 or int8; got 'fp32'")
    refuses(["explore", "--m", "3"], "--m must be 2, 4 or 6; got '3'")
    refuses(["explore", "--shape", "c=64,h=9,w=9,k=64,r=5,s=5"], "3x3 filters", "'n=1,c=64,h=9")
    refuses(["explore", "--shape", "c=64,h=9,w=9,k=64,stride_h=2"], "3x3 filters")
    refuses(["explore", "--shape", "c=0"], "c")
    refuses(["explore", "--shape", f"c={2**62}"], "c")


def test_prune_finds_needed_barriers():
    result = succeeds("prune", "3")
    assert "tiled_1d.cu:" in result.stdout and " in tiled_1d: needed\n  race at " in result.stdout, result.stdout
    assert result.stdout.endswith("\n1 barrier: 1 needed, 0 not needed on these shapes\n"), result.stdout
    greedy = succeeds("prune", "3", "--greedy").stdout
    assert "one block barrier after another" in greedy and ": needed, put back\n" in greedy, greedy
    assert succeeds("prune", "1").stdout.endswith("\n0 barriers: 0 needed, 0 not needed on these shapes\n"), "naive"


@pytest.mark.slow
def test_prune_finds_what_outputs_do_not_show():
    report = json.loads(succeeds("prune", "09-register-2d", "--json").stdout)
    assert (list(report) == ["stage", "number", "greedy", "shapes", "barriers", "needed", "not_needed",
            "needed_but_output_right"]), list(report)
    assert (report["needed"], report["not_needed"], report["needed_but_output_right"]) == (3, 0, 1), report
    unseen, = [b for b in report["barriers"] if all(trial["right"] for trial in b["trials"])]
    assert unseen["needed"] and unseen["faults_unseen"] == len(unseen["trials"]) > 1, unseen
    for trial in unseen["trials"]:
        assert trial["shape"] in report["shapes"] and trial["faults"][0]["kind"] == "race", trial
        assert unseen["file"] == trial["faults"][0]["file"] and unseen["file"] in trial["faults"][0]["other"], trial


@pytest.mark.slow
def test_prune_of_several_barriers():
    for stage in ("19", "21"):
        report = json.loads(succeeds("prune", stage, "--json").stdout)
        assert report["number"] == int(stage) and report["needed"] == len(report["barriers"]) == 2, report["barriers"]
        assert all(len(barrier["trials"]) == 4 for barrier in report["barriers"]), "a barrier was not tried"


def traced(stage, shape, *more):
    return json.loads(succeeds("trace", stage, "--shape", shape, "--events", "1000000", *more, "--json").stdout)


def test_trace_adds_up_to_the_counters():
    one_block = {"3": "w=200,s=11", "7": "h=17,w=29,r=5,s=5", "9": "h=9,w=40,r=3,s=3", "31": "c=32,h=5,w=7,k=16,r=3,s=3"}
    for stage, shape in one_block.items():
        counters = json.loads(succeeds("run", stage, "--shape", shape, "--backend", "sim", "--json").stdout)["counters"]
        trace = traced(stage, shape)
        events = [event for launch in trace["launches"] for event in launch["events"]]
        assert trace["status"] == "ok" and all(launch["left_out"] == 0 for launch in trace["launches"]), stage
        assert all(launch["grid"] == [1, 1, 1] for launch in trace["launches"]), f"{stage}: more than one block"
        for space, cost in ("global", "sectors"), ("shared", "conflicts"):
            for what in "load", "store":
                chosen = [e for e in events if (e["space"], e["what"]) == (space, what)]
                assert len(chosen) == counters[f"{space}_{what}_requests"], f"{stage}: {space} {what}"
                assert sum(e["cost"] for e in chosen) == counters[f"{space}_{what}_{cost}"], f"{stage}: {space} {what}"
        assert sum(e["what"] == "barrier" for e in events) == counters["barriers"], stage
        for event in events:
            assert len(event["at"]) in (0, bin(event["lanes"]).count("1")), event
            assert pathlib.Path(ROOT / event["file"]).is_file() and event["line"] > 0, event


def test_loads_add_up_to_the_counters():
    for stage, shape in {"3": "w=300,s=11", "26": "c=32,h=9,w=7,k=32,r=3,s=3", "32": "c=16,h=8,w=56,k=16,r=3,s=3"}.items():
        counters = json.loads(succeeds("run", stage, "--shape", shape, "--backend", "sim", "--json").stdout)["counters"]
        tensors = json.loads(succeeds("trace", stage, "--shape", shape, "--loads", "--json").stdout)["tensors"]
        assert sum(sum(each["loads"]) for each in tensors) == counters["global_load_sectors"], stage
        assert all(len(each["loads"]) == -(-each["bytes"] // 32) for each in tensors), stage
        assert "input" in [each["tensor"] for each in tensors], stage
    assert re.search(r"^input +38 +\d+ +1 +1\.\d\d +3 +tiled_1d$",
                     succeeds("trace", "3", "--shape", "w=300,s=11", "--loads").stdout, re.MULTILINE)


def test_trace_of_copies_and_mbarriers():
    launch, = traced("32", "c=16,h=8,w=56,k=16,r=3,s=3", "--block", "1")["launches"]
    count = collections.Counter(event["what"] for event in launch["events"])
    assert count["bulk_load"] > 9 and count["bulk_store"] > 0 and count["wgmma"] > 0, count
    assert count["complete"] > 9 and count["wait"] > 0 and count["arrive"] >= count["complete"], count
    waits = [event for event in launch["events"] if event["what"] == "wait" and event["warp"] < 8]
    assert waits and all(event["lanes"] == 2**32 - 1 for event in waits), "the lanes of a warp wait as one"


def test_trace_as_text():
    text = succeeds("trace", "3", "--shape", "w=300,s=11", "--warp", "0", "--events", "4").stdout
    assert text.startswith("03 tiled-1d on n=1,c=1,h=1,w=300,"), text
    assert "tiled_1d: grid (2,1,1), blocks of (256,1,1)" in text and "4 sectors" in text and " more: --events" in text, text
    lines = succeeds("trace", "3", "--shape", "w=300,s=11", "--warp", "1").stdout.splitlines()
    assert {line.split()[0] for line in lines[4:]} <= {"0", "1"}, "of warp 0 only the barrier"


def test_trace_with_wrong_arguments():
    refuses(["trace"], "STAGE")
    refuses(["trace", "22"], "22-im2win-cpu runs on the CPU: it has no blocks")
    for block in "", "a", "1,", "1,2,3,4", "-1":
        refuses(["trace", "3", "--block", block], "--block takes x, x,y or x,y,z")
    refuses(["trace", "3", "--loads", "--warp", "1"], "--warp excludes --loads")
    refuses(["trace", "3", "--warp", "32"], "--warp must be an integer from 0 to 31; got '32'")
    refuses(["trace", "3", "--events", "-1"], "--events must be an integer from 0 to ", "'-1'")
    refuses(["trace", "3", "--shape", "w=300,s=11", "--block", "2"], "no launch of 03-tiled-1d has a block (2,0,0)")
    assert lab("trace", "33", "--shape", "c=16,h=8,w=8,k=16,r=5,s=5").returncode == 3


def test_prune_with_wrong_arguments():
    refuses(["prune"], "STAGE")
    refuses(["prune", "77"], "unknown stage '77'")
    refuses(["prune", "22"], "22-im2win-cpu runs on the CPU: it has no block barriers")
    refuses(["prune", "3", "--configuration", "m=4"], "03-tiled-1d has no configurations")
