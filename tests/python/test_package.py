"""The Python package against NumPy and against the command line."""
import concurrent.futures
import importlib
import importlib.util
import json
import multiprocessing
import os
import pathlib
import re
import subprocess

import numpy as np
import pytest

import convladder


def normal(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def correlation(x, w, pad=1, stride=1):
    """Of (n, c, h, w) with (k, c, r, s), zeros outside, in double precision."""
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))[:, :, ::stride, ::stride]
    return np.einsum("ncpqrs,kcrs->nkpq", windows, w.astype(np.float64))


def test_stages_are_those_of_the_list():
    numbers = [stage["number"] for stage in convladder.stages()]
    assert numbers == sorted(numbers) and {1, 22, 33} <= set(numbers)
    assert convladder.stages()[2]["name"] == "tiled-1d"


def test_signal():
    x, w = normal(1000), normal(5)
    y = convladder.conv(x, w, stage=3)
    assert y.shape == (1, 1, 1, 1000) and y.dtype == np.float32
    np.testing.assert_allclose(y.ravel(), np.correlate(np.pad(x, 2), w), atol=1e-5)


# fp32 NCHW, on the host, a tuned one, fp16, bf16 and int8 in NHWC, and fp32 of scales that depend on the input.
@pytest.mark.parametrize("stage, error", [(16, 1e-6), (22, 1e-6), (25, 1e-5), (33, 4e-3), ("33:bf16", 1e-2), (34, 2.5e-2), (36, 1e-6)])
def test_layer(stage, error):
    w = normal(16, 16, 3, 3, seed=2)
    prepared = convladder.Conv(stage, w)
    for seed, scale in ((3, 1), (4, 100)):  # prepared once
        x = scale * normal(2, 16, 10, 12, seed=seed)
        exact = correlation(x, w)
        assert np.linalg.norm(prepared(x) - exact) <= error * np.linalg.norm(exact)


EPILOGUES = {"bias": ("bias",), "bias_relu": ("bias", "activation"), "relu": ("activation",),
             "bias_residual_relu": ("bias", "residual", "activation"), "residual_relu": ("residual", "activation")}


def epilogue_of(names, output, seed=5):
    """Arguments of an epilogue, and what it makes of the exact sums."""
    n, k, p, q = output
    every = {"bias": normal(k, seed=seed), "residual": normal(*output, seed=seed + 1), "activation": "relu"}
    given = {name: every[name] for name in names}

    def finished(sums):
        sums = sums + given.get("bias", np.zeros(k)).astype(np.float64).reshape(1, k, 1, 1)
        sums += given.get("residual", 0)
        return np.maximum(sums, 0) if "activation" in given else sums

    return given, finished


# A filter of 3 x 3 goes by strips, one of 1 x 1 by tiles; 40 filters are no whole block.
@pytest.mark.parametrize("stage, k, size, name", [
    *((32, 64, 3, name) for name in EPILOGUES),
    (32, 40, 1, "bias_residual_relu"), (34, 64, 3, "bias_residual_relu"), (34, 40, 1, "bias"),
])
def test_epilogue(stage, k, size, name):
    w = normal(k, 64, size, size, seed=2) / 8 / size
    for seed in (3, 4):  # prepared once
        x = normal(1, 64, 6, 6, seed=seed)
        given, finished = epilogue_of(EPILOGUES[name], (1, k, 6, 6), seed + 10)
        exact = finished(correlation(x, w, pad=size // 2))
        seen = convladder.simulate(stage, x, w, **given)  # each output within its own bound
        assert seen.result["workload"]["epilogue"] == (name if "bias" in name else f"bias_{name}")  # of zeros
        y = convladder.conv(x, w, stage=stage, **given)
        assert 0 < np.linalg.norm(y - exact) <= seen.result["tolerance"] * np.linalg.norm(exact)
        np.testing.assert_array_equal(y, seen.output)


def test_epilogue_of_a_prepared_filter():
    """With the residual and without, each prepared once; bias and filter are copies."""
    w, bias = normal(64, 64, 3, 3, seed=2) / 24, normal(64, seed=3)
    prepared = convladder.Conv(32, w, bias=bias, activation="relu")
    exact_bias = bias.astype(np.float64).reshape(1, 64, 1, 1)
    bias *= 2
    for seed in (4, 5):
        x, residual = normal(1, 64, 6, 6, seed=seed), normal(1, 64, 6, 6, seed=seed + 10)
        exact = correlation(x, w) + exact_bias
        for added, y in ((0, prepared(x)), (residual, prepared(x, residual=residual))):
            wanted = np.maximum(exact + added, 0)
            assert np.linalg.norm(y - wanted) <= 2e-3 * np.linalg.norm(wanted)
    assert len(prepared._prepared) == 2
    y = convladder.conv(x, w, stage=32, bias=bias, activation="relu")
    bias *= 2  # which conv() sees
    assert not np.array_equal(convladder.conv(x, w, stage=32, bias=bias, activation="relu"), y)


@pytest.mark.parametrize("stage", [3, 16, 22, 25, 31, 33, 36, "32:bf16"])
@pytest.mark.parametrize("names", [EPILOGUES["bias"], EPILOGUES["relu"], EPILOGUES["bias_residual_relu"]])
def test_stage_without_an_epilogue_refuses(stage, names):
    x, w = (normal(9), normal(3)) if stage == 3 else (normal(1, 16, 8, 8), normal(16, 16, 3, 3))
    given, _ = epilogue_of(names, (1, 1, 1, 9) if stage == 3 else (1, 16, 8, 8))
    epilogue = "bias_residual_relu" if "residual" in names else "bias_relu" if "activation" in names else "bias"
    rule = f"the epilogue must be none; got {epilogue}"
    assert convladder.refusal(stage, x, w, **given) == rule
    for call in (convladder.conv, lambda x, w, stage, **given: convladder.simulate(stage, x, w, **given)):
        with pytest.raises(convladder.Refused, match=f"^[a-z0-9:-]+ refuses: {rule}$"):
            call(x, w, stage=stage, **given)


def test_refusal_of_an_epilogue_is_that_of_the_command_line():
    program = os.environ.get("CONVLADDER_PROGRAM")
    if not program:
        pytest.skip("CONVLADDER_PROGRAM names no program")
    shape = "c=16,h=8,w=8,k=16,r=3,s=3,epilogue=bias"
    done = subprocess.run([program, "run", "33", "--backend", "sim", "--shape", shape], capture_output=True, text=True,
                          check=False)
    with pytest.raises(convladder.Refused) as refused:
        convladder.conv(normal(1, 16, 8, 8), normal(16, 16, 3, 3), stage=33, bias=normal(16))
    assert done.returncode == 3 and done.stderr.strip() == f"./lab: {refused.value}"


LAYER = normal(1, 16, 6, 6), normal(16, 16, 3, 3)


@pytest.mark.parametrize("given, message", [
    ({"bias": normal(15)}, r"the bias must have the shape \(16,\), a number for each filter; got \(15,\)"),
    ({"bias": normal(16, 1)}, r"got \(16, 1\)"),
    ({"bias": normal(16).astype(np.float64)}, "the bias has elements of type float64; convert it to float32"),
    ({"bias": np.full(16, np.inf, np.float32)}, "the bias: value 0 is inf; give finite numbers"),
    ({"activation": "gelu"}, "activation must be \"relu\" or None; got 'gelu'"),
    ({"residual": normal(1, 16, 6, 6)}, 'a residual is added before a ReLU, and no other way: give activation="relu"'),
    ({"residual": normal(1, 16, 6, 5), "activation": "relu"},
     r"the residual must have the output's shape \(1, 16, 6, 6\); got \(1, 16, 6, 5\)"),
    ({"residual": normal(16 * 36), "activation": "relu"}, r"got \(576\)"),
    ({"residual": normal(1, 16, 6, 6).astype(np.float16), "activation": "relu"},
     "the residual has elements of type float16; convert it to float32"),
])
def test_bad_epilogue(given, message):
    for call in (lambda: convladder.conv(*LAYER, stage=32, **given), lambda: convladder.simulate(32, *LAYER, **given)):
        with pytest.raises(convladder.BadInput, match=message) as raised:
            call()
        assert "\n" not in str(raised.value)


def test_residual_beyond_fp16_is_refused():
    given = {"residual": normal(1, 16, 6, 6), "activation": "relu"}
    given["residual"][0, 1, 2, 3] = 70000
    rule = r"hopper refuses: the residual is rounded to fp16 and has 7.0e\+04 at \(0,1,2,3\), beyond 65504"
    for call in (lambda: convladder.conv(*LAYER, stage=32, **given), lambda: convladder.simulate(32, *LAYER, **given)):
        with pytest.raises(convladder.Refused, match=rule):
            call()


def test_one_filter_on_several_shapes():
    w = normal(4, 3, 3, 3)
    prepared = convladder.Conv(16, w)
    for shape in ((1, 3, 8, 9), (2, 3, 5, 6), (1, 3, 8, 9)):
        x = normal(*shape)
        np.testing.assert_allclose(prepared(x), correlation(x, w), atol=1e-5)


def test_options():
    x, w = normal(1, 3, 9, 11), normal(4, 3, 3, 3)
    y = convladder.conv(x, w, stage=16, stride=(2, 2), pad=0)
    np.testing.assert_allclose(y, correlation(x, w, pad=0, stride=2), atol=1e-5)
    np.testing.assert_array_equal(convladder.conv(x, w, stage=16, stride=[2, 2], pad=[0, 0]), y)
    image = normal(9, 11)
    y = convladder.conv(image, np.ones((3, 3), np.float32), stage="tiled-2d", padding="replicate")
    np.testing.assert_allclose(y[0, 0, 0, 0], 4 * image[0, 0] + 2 * (image[0, 1] + image[1, 0]) + image[1, 1],
                               atol=1e-5)


def test_filters_take_turns_in_constant_memory():
    """One kernel holds one filter: the other Conv must put its own there again."""
    x, one, two = normal(300), np.float32([0, 1, 0]), np.float32([0, 2, 0])
    single, double = convladder.Conv(3, one), convladder.Conv(3, two)
    for _ in range(2):
        np.testing.assert_array_equal(single(x).ravel(), x)
        np.testing.assert_array_equal(double(x).ravel(), 2 * x)


def test_changed_filter_is_prepared_again():
    x, w = normal(1, 4, 8, 8), normal(4, 4, 3, 3)
    before = convladder.conv(x, w, stage=25)
    w *= 2
    np.testing.assert_allclose(convladder.conv(x, w, stage=25), 2 * before, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("stage, x, w", [
    (3, (1000,), (5,)),
    (7, (40, 70), (3, 3)),
    (33, (1, 16, 8, 16), (16, 16, 3, 3)),
])
def test_counters_are_those_of_the_command_line(command_line, stage, x, w):
    x, w = normal(*x), normal(*w)
    result, output, _ = command_line(stage, x, w)
    seen = convladder.simulate(stage, x, w)
    assert seen.counters == result["counters"] and seen.counters["global_load_sectors"] > 0
    assert seen.lines == result["lines"] and seen.faults == []
    assert seen.result == result
    np.testing.assert_array_equal(seen.output, output)
    np.testing.assert_array_equal(convladder.conv(x, w, stage=stage), output)


@pytest.mark.parametrize("stage, x, w, options", [
    (3, (100,), (4,), ()),  # an even filter
    (33, (1, 4, 8, 8), (4, 4, 5, 5), ()),
    (5, (4, 4), (9, 9), ("--padding", "reflect")),
])
def test_refusals_are_those_of_the_command_line(command_line, stage, x, w, options):
    x, w = normal(*x), normal(*w)
    padding = options[1] if options else "zero"
    _, _, complaint = command_line(stage, x, w, *options)
    for call in (lambda: convladder.conv(x, w, stage=stage, padding=padding),
                 lambda: convladder.simulate(stage, x, w, padding=padding)):
        with pytest.raises(convladder.Refused) as refused:
            call()
        assert f"./lab: {refused.value}" == complaint
    rule = convladder.refusal(stage, x, w, padding=padding)
    assert rule and complaint.endswith(f" refuses: {rule}")


def test_refusal_of_shapes():
    assert convladder.refusal(33, shape="c=64,h=56,w=56,k=64,r=3,s=3") is None
    assert convladder.refusal(32, shape={"c": 16, "h": 8, "w": 8, "k": 16, "epilogue": "bias"}) is None
    assert convladder.refusal(33, shape="c=16,h=8,w=8,k=16,r=3,s=3,epilogue=bias") == "the epilogue must be none; got bias"
    assert "3 x 3" in convladder.refusal(33, shape={"c": 64, "h": 56, "w": 56, "k": 64, "r": 5, "s": 5})


@pytest.mark.parametrize("call, message", [
    (lambda: convladder.conv(normal(9), normal(3), stage=99), r"^unknown stage '99'; convladder.stages\(\) lists the stages$"),
    (lambda: convladder.conv(normal(9).astype(np.float64), normal(3), stage=3), "float64; convert it to float32"),
    (lambda: convladder.conv(normal(2, 3, 4), normal(3), stage=3), "^the input has 3 dimensions; reshape it"),
    (lambda: convladder.conv(normal(1, 3, 8, 8), normal(4, 2, 3, 3), stage=16), r"c/groups \(groups=... sets groups\)$"),
    (lambda: convladder.conv(normal(9), normal(3), stage=3, padding="same"), "same"),
    (lambda: convladder.conv(normal(9), normal(3) * np.float32(np.nan), stage=3), "^the filter: value 0 is nan; give finite numbers$"),
    (lambda: convladder.conv(normal(9), normal(3), stage=3, stride=1.5), "stride must be an integer"),
    (lambda: convladder.conv(normal(1, 4, 8, 8), normal(4, 4, 3, 3), stage=36, configuration={"no": 1}), "no"),
    (lambda: convladder.bench([3], backend="cuda"), "backend"),
    (lambda: convladder.conv(3, normal(9), normal(3)), r"^stage must be a number or a name, .* of the shape \(3,\)$"),
    (lambda: convladder.conv(normal(9), normal(3), stage=3.0), "^stage must be a number or a name, .*; got 3.0$"),
    (lambda: convladder.conv(None, normal(3), stage=3), "^the input must be an array of numbers; got None$"),
    (lambda: convladder.Conv(3, "normal"), "^the filter must be an array of numbers; got 'normal'$"),
    (lambda: convladder.Conv(3, normal(3), padding=1), "^padding must be .* got 1: how many zeros there are says `pad`$"),
    (lambda: convladder.simulate(3, normal(9), normal(3), padding=None), "^padding must be"),
    (lambda: convladder.refusal(3, normal(9), normal(3), padding=1), "^padding must be"),
    (lambda: convladder.refusal(3, shape="w=9,s=3", padding=1), "^padding must be"),
    (lambda: convladder.bench(3, shape="w=9,s=3", padding=1, backend="sim"), "^padding must be"),
    (lambda: convladder.Conv(3, normal(3), pad="same"), "^pad must be an integer; got 'same'$"),
    (lambda: convladder.Conv(3, normal(3), stride=np.zeros((30, 30))), r"^stride must be .* got an array of the shape"),
    (lambda: convladder.Conv(36, normal(4, 4, 3, 3), configuration=4), "^configuration must be as .*; got 4$"),
    (lambda: convladder.simulate(3, normal(9), normal(3), without_barrier=41), '"tiled_1d.cu:41"; got 41$'),
    (lambda: convladder.refusal(3), r"^refusal\(\) wants an input and a filter, or a shape$"),
    (lambda: convladder.refusal(3, shape=9), '^shape must be as "w=4096,s=5" or .*; got 9$'),
    (lambda: convladder.bench(3, shape=[9], backend="sim"), "^shape must be as"),
    (lambda: convladder.bench(3, tracks="images", backend="sim"), "^no stage is both in stages and in tracks;"),
    (lambda: convladder.conv(LAYER[0], LAYER[1], stage=16, configuration={"m": 4}), "; leave out configuration$"),
])
def test_bad_input(call, message):
    with pytest.raises(convladder.BadInput, match=message) as raised:
        call()
    assert isinstance(raised.value, ValueError) and "\n" not in str(raised.value)


def barrier_of_stage_3():
    source = pathlib.Path(__file__).parents[2] / "chapters/03-tiled-1d/tiled_1d.cu"
    lines = source.read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if "__syncthreads();" in line)


def test_fault_carries_its_records_and_what_was_seen():
    """A real one: without its barrier, stage 3 reads shared memory while others write it."""
    x, w, line = normal(1000), normal(5), barrier_of_stage_3()
    with pytest.raises(convladder.Fault, match=r"^race at .*tiled_1d\.cu:\d+ in tiled.* with ") as raised:
        convladder.simulate(3, x, w, without_barrier=f"tiled_1d.cu:{line}")
    fault = raised.value
    record = fault.faults[0]
    assert record["kind"] == "race" and record["file"].endswith("tiled_1d.cu") and record["thread"]
    assert record["line"] == line + 1 or record["second"]["line"] == line + 1 or str(record["line"]) in str(fault)
    assert fault.simulation.faults == fault.faults and fault.simulation.output.size == 0
    assert fault.simulation.counters["global_load_requests"] > 0 and fault.simulation.lines
    # The barrier is back.
    np.testing.assert_array_equal(convladder.simulate(3, x, w).output, convladder.conv(x, w, stage=3))


def test_barrier_that_is_not_there():
    with pytest.raises(convladder.BadInput, match=r"no block passes a barrier at tiled_1d.cu:1; .*tiled_1d.cu:\d+$"):
        convladder.simulate(3, normal(100), normal(5), without_barrier="tiled_1d.cu:1")


def test_barriers_have_lines_by_addr2line(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(convladder.MachineError, match="^addr2line tells the lines of barriers, .* install binutils$"):
        convladder.simulate(3, normal(100), normal(5), without_barrier="tiled_1d.cu:42")


def test_fault_of_any_function_has_records():
    fault = convladder.Fault("race at a.cu:1", '[{"kind": "race", "line": 1}]')
    assert str(fault) == "race at a.cu:1" and fault.faults[0]["kind"] == "race" and fault.simulation is None


@pytest.mark.parametrize("status, raised", [("wrong", convladder.WrongResult), ("error", convladder.DeviceError)])
def test_what_is_not_right_is_raised(monkeypatch, status, raised):
    """The project's stages are right, so the harness's word is made up."""
    told = json.dumps({"stage": "tiled-1d", "status": status, "reason": "off by one", "faults": []})
    monkeypatch.setattr("convladder._sim.simulate", lambda *_: (told, None))
    with pytest.raises(raised, match="^off by one$"):
        convladder.simulate(3, normal(9), normal(3))


@pytest.mark.parametrize("stage", [30, 36])
def test_scales_follow_the_input(stage):
    """Right whatever input came first: these stages choose scales by it."""
    x, w = normal(1, 16, 8, 8) / 64, normal(16, 16, 3, 3, seed=2)
    alone = convladder.Conv(stage, w)(x)
    after_others = convladder.Conv(stage, w)
    after_others(x * np.float32(2**-10))
    after_others(x * np.float32(2**10))
    np.testing.assert_array_equal(after_others(x), alone)


def test_stream_wants_an_input_on_the_gpu():
    with pytest.raises(convladder.BadInput, match="lies on the host, and a stream is given"):
        convladder.conv(normal(9), normal(3), stage=3, stream=1)


def test_gpu_side_has_classes_of_its_own():
    """A library that loads second must not be handed the first one's."""
    if importlib.util.find_spec("convladder._gpu") is None:
        pytest.skip("a package without its GPU side")
    sim, gpu = importlib.import_module("convladder._sim"), importlib.import_module("convladder._gpu")
    assert set(dir(gpu)) == set(dir(sim)) and gpu.Prepared is not sim.Prepared
    with pytest.raises(convladder.BadInput, match="99"):
        gpu.tensors_of("99")


def test_bench_gives_rows():
    rows = convladder.bench([2, 3], shape="w=2000,s=5", backend="sim")
    assert [row["number"] for row in rows] == [2, 3]
    assert all(row["status"] == "ok" and row["counters"]["barriers"] is not None for row in rows)


def test_bench_of_one_stage():
    rows = convladder.bench("03", shape={"w": 200, "s": 5}, backend="sim")
    assert [row["number"] for row in rows] == [3]


def test_threads():
    """Calls from several threads come one after the other."""
    x, filters = normal(500), [normal(3, seed=seed) for seed in range(8)]
    wanted = [np.correlate(np.pad(x, 1), w) for w in filters]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for y, exact in zip(pool.map(lambda w: convladder.conv(x, w, stage=3), filters), wanted):
            np.testing.assert_allclose(y.ravel(), exact, atol=1e-5)


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_forked_process_says_so():
    convladder.conv(normal(9), normal(3), stage=3)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        with pytest.raises(convladder.MachineError, match="spawn"):
            pool.apply(convladder.conv, (normal(9), normal(3)), {"stage": 3})


def test_example_of_the_page(capsys):
    page = (pathlib.Path(__file__).parents[2] / "docs/python.md").read_text(encoding="utf-8")
    code, output = re.search(r"```python\n(.*?)```\s*```\n(.*?)```", page, re.DOTALL).groups()
    exec(compile(code, "docs/python.md", "exec"), {})
    assert capsys.readouterr().out == output
