"""Arrays on a GPU: skipped where torch, a GPU or the package's GPU side is missing."""
import importlib.util

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available() or importlib.util.find_spec("convladder._gpu") is None:
    pytest.skip("no GPU, or a package without its GPU side", allow_module_level=True)

import convladder  # noqa: E402
import convladder.torch  # noqa: E402
from convladder import _sim  # noqa: E402


@pytest.fixture(autouse=True)
def strict():
    """torch computes as it says, without TF32."""
    torch.manual_seed(1)
    torch.compiler.reset()  # tests share what is compiled of a module, which torch does at most eight times
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False


def tensors(stage, x, w):
    """Random ones on the GPU, the input as the stage takes it."""
    element, layout = _sim.tensors_of(str(stage)).split()
    form = torch.channels_last if layout == "NHWC" else torch.contiguous_format
    dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(element, torch.float32)
    return torch.randn(x, device="cuda", dtype=dtype).to(memory_format=form), torch.randn(w, device="cuda")


def exact_of(x, w, **options):
    """On the host, where double precision is cuDNN's business nowhere."""
    return torch.nn.functional.conv2d(x.detach().cpu().double(), w.detach().cpu().double(), padding=1, **options)


def error_of(y, exact):
    assert y.shape == exact.shape
    return float((y.detach().cpu().double() - exact).norm() / exact.norm())


def assert_near(y, x, w, error, **options):
    assert y.dtype == x.dtype and y.device == x.device
    assert error_of(y, exact_of(x, w, **options)) <= error


X, W = (2, 64, 28, 28), (64, 64, 3, 3)
LAYERS = [
    (9, (1, 1, 200, 300), (1, 1, 3, 3), 2e-5),
    (15, (2, 32, 40, 40), (32, 1, 3, 3), 2e-5),
    (25, X, W, 2e-5),
    (30, X, W, 2.5e-2),
    ("31:bf16", X, W, 1e-2),
    ("32:bf16", X, W, 1e-2),
    (33, X, W, 4e-3),
    ("33:bf16", X, W, 1e-2),
    ("33:bf16", (16, 96, 28, 28), (256, 96, 3, 3), 1e-2),
    (35, X, W, 1e-5),
    (36, X, W, 3e-7),
    (37, X, W, 1e-5),
    (38, (2, 32, 40, 40), (32, 1, 3, 3), 2e-5),
    (39, (2, 33, 28, 28), (33, 1, 3, 3), 4e-3),
]


@pytest.mark.parametrize("stage, x, w, error", LAYERS)
def test_tensors(stage, x, w, error):
    x, w = tensors(stage, x, w)
    groups = x.shape[1] // w.shape[1]
    prepared = convladder.Conv(stage, w, groups=groups)
    for scale in (1, 3, 1 / 64):  # prepared once
        scaled = scale * x
        assert_near(prepared(scaled), scaled, w, error, groups=groups)
    y = convladder.conv(x, w, stage=stage, groups=groups)
    w *= 2  # which torch notes
    torch.testing.assert_close(convladder.conv(x, w, stage=stage, groups=groups), 2 * y, rtol=2e-2, atol=2e-2)


EPILOGUES = {"bias": ("bias",), "bias_relu": ("bias", "activation"), "relu": ("activation",),
             "bias_residual_relu": ("bias", "residual", "activation"), "residual_relu": ("residual", "activation")}


def with_epilogue(names, w=W, padding=1):
    """Input and filter of stage 32, arguments of an epilogue, and the exact result."""
    x, w = tensors(32, X, w)
    sums = torch.nn.functional.conv2d(x.cpu().double(), w.cpu().double(), padding=padding)
    bias = torch.randn(w.shape[0], device="cuda") if "bias" in names else None
    residual = None
    if "residual" in names:
        residual = torch.randn(sums.shape, device="cuda", dtype=x.dtype).to(memory_format=torch.channels_last)
    if bias is not None:
        sums += bias.cpu().double().reshape(1, -1, 1, 1)
    if residual is not None:
        sums += residual.cpu().double()
    activation = "relu" if "activation" in names else None
    return x, w, {"bias": bias, "residual": residual, "activation": activation}, sums.relu() if activation else sums


@pytest.mark.parametrize("names", list(EPILOGUES.values()), ids=list(EPILOGUES))
@pytest.mark.parametrize("filter, padding", [(W, 1), ((40, 64, 1, 1), 0)])
def test_epilogue(names, filter, padding):
    x, w, given, exact = with_epilogue(names, filter, padding)
    y = convladder.conv(x, w, stage=32, pad=padding, **given)
    assert y.dtype == x.dtype and y.is_contiguous(memory_format=torch.channels_last)
    assert error_of(y, exact) <= 4e-3
    if "bias" in names:
        given["bias"] += 1  # which torch notes
        assert not torch.equal(convladder.conv(x, w, stage=32, pad=padding, **given), y)


def test_epilogue_of_a_prepared_filter():
    """Prepared once; a residual is read where it lies, and the output is all the memory that a call takes."""
    x, w, given, exact = with_epilogue(EPILOGUES["bias_residual_relu"])
    residual = given.pop("residual")
    prepared = convladder.Conv(32, w, **given)
    kept = residual.clone()
    for _ in range(2):  # looked at, and as one before
        assert error_of(prepared(x, residual=residual), exact) <= 4e-3
    assert torch.equal(residual, kept)
    sums = exact_of(x, w) + given["bias"].cpu().double().reshape(1, -1, 1, 1)
    other = torch.randn_like(residual)
    assert error_of(prepared(x, residual=other), (sums + other.cpu().double()).relu()) <= 4e-3
    assert error_of(prepared(x), sums.relu()) <= 4e-3
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    y = prepared(x, residual=residual)
    assert torch.cuda.max_memory_allocated() - before == -(-y.numel() * y.element_size() // 512) * 512


def test_epilogue_on_a_stream_and_in_a_graph():
    x, w, given, exact = with_epilogue(EPILOGUES["bias_residual_relu"])
    residual = given.pop("residual")
    prepared = convladder.Conv(32, w, **given)
    stream, late = torch.cuda.Stream(), torch.zeros_like(residual)
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(100_000_000)
        late.copy_(residual)
    y = prepared(x, residual=late, stream=stream)
    stream.synchronize()
    assert error_of(y, exact) <= 4e-3
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = prepared(x, residual=late)
    late.zero_()
    graph.replay()
    assert torch.equal(y, prepared(x, residual=torch.zeros_like(residual)))


def test_epilogue_that_does_not_fit_is_an_error():
    x, w, given, _ = with_epilogue(EPILOGUES["bias_residual_relu"])
    residual = given.pop("residual")
    for bad, message in (
        (residual.contiguous(), r"takes fp16 in NHWC \(torch.channels_last\) on a GPU, and the residual is fp16 NCHW"),
        (residual.float(), "the residual is fp32 NHWC"),
        (residual[:1], r"the residual must have the output's shape \(2, 64, 28, 28\); got \(1, 64, 28, 28\)"),
        (residual.cpu(), "the input lies on a GPU, and the residual on the host"),
    ):
        with pytest.raises(convladder.BadInput, match=message):
            convladder.conv(x, w, stage=32, residual=bad, **given)
    with pytest.raises(convladder.BadInput, match=r"the bias must have the shape \(64,\)"):
        convladder.conv(x, w, stage=32, bias=given["bias"][:63])
    for stage in (33, "33:bf16", "32:bf16", 25):
        x, w = tensors(stage, X, W)
        with pytest.raises(convladder.Refused, match="refuses: the epilogue must be none; got bias_residual_relu"):
            convladder.conv(x, w, stage=stage, residual=residual, **given)


def test_module_with_the_stages_epilogue():
    """Bias, residual and ReLU are the stage's work, and gradients torch's."""
    layer = torch.nn.Conv2d(64, 64, 3, padding=1).cuda()
    x, _ = tensors(32, X, W)
    residual = torch.randn_like(x)
    module = convladder.torch.Conv2d(32, layer, activation="relu")
    sums = exact_of(x, layer.weight) + layer.bias.detach().cpu().double().reshape(1, -1, 1, 1)
    compiled = torch.compile(module, fullgraph=True)
    for run in (module, compiled):
        with torch.no_grad():
            assert error_of(run(x), sums.relu()) <= 4e-3
            assert error_of(run(x, residual), (sums + residual.cpu().double()).relu()) <= 4e-3
    assert error_of(convladder.torch.Conv2d(32, layer)(x), sums) <= 4e-3
    residual.requires_grad_()
    module(x, residual).float().square().mean().backward()
    have = [layer.weight.grad, layer.bias.grad, residual.grad.float()]
    layer.weight.grad = layer.bias.grad = residual.grad = None
    (layer(x.float()) + residual.float()).relu().square().mean().backward()
    for one, other in zip(have, (layer.weight.grad, layer.bias.grad, residual.grad.float())):
        assert float((one - other).norm() / other.norm()) <= 2e-2


def test_beside_torchs_own():
    """torch in fp32 and fp16 differs from a stage by no more than both do from the exact result."""
    x, w = tensors(36, X, W)
    torch.testing.assert_close(
        convladder.conv(x, w, stage=36), torch.nn.functional.conv2d(x, w, padding=1), rtol=1e-5, atol=1e-3
    )
    half, w = tensors(33, X, W)
    torch.testing.assert_close(
        convladder.conv(half, w, stage=33), torch.nn.functional.conv2d(half, w.half(), padding=1), rtol=2e-2, atol=0.3
    )


@pytest.mark.parametrize("stage", [31, 32, 33])
def test_bf16_is_taken_by_the_tensors_type(stage):
    x, w = tensors("33:bf16", X, W)
    for filter in (w, w.to(torch.bfloat16)):
        y = convladder.conv(x, filter, stage=stage)
        assert_near(y, x, filter, 1e-2)
        torch.testing.assert_close(
            y, torch.nn.functional.conv2d(x, filter.to(x.dtype), padding=1), rtol=2e-2, atol=0.5
        )
    layer = torch.nn.Conv2d(64, 64, 3, padding=1).cuda().to(torch.bfloat16)
    module = convladder.torch.Conv2d(stage, layer)
    torch.testing.assert_close(torch.compile(module, fullgraph=True)(x), layer(x), rtol=2e-2, atol=5e-2)


@pytest.mark.parametrize("stage", [30, 36])
def test_scales_follow_the_input(stage):
    """Right whatever input came first: these stages choose scales by it."""
    x, w = tensors(stage, X, W)
    x = x / 64
    alone = convladder.Conv(stage, w)(x)
    after_another = convladder.Conv(stage, w)
    after_another(x * 2**-10)
    after_another(x * 2**10)
    assert torch.equal(after_another(x), alone)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there is no second GPU")
def test_whichever_gpu_is_the_current_one():
    """A call goes to the first, whose tensors these are, and leaves the current one as it was."""
    x, w = tensors(33, X, W)
    y = convladder.Conv(33, w)(x)
    with torch.cuda.device(1):
        prepared = convladder.Conv(33, w)
        for _ in range(2):  # prepared, and as one before
            assert torch.equal(prepared(x), y)
        assert torch.cuda.current_device() == 1
        with pytest.raises(convladder.BadInput, match="first GPU"):
            prepared(x.to("cuda:1"))
        with pytest.raises(convladder.BadInput, match="first GPU"):
            prepared(x, stream=torch.cuda.Stream(1))


@pytest.mark.parametrize("stage", [25, 33])
def test_nothing_is_copied(stage):
    """The call takes the memory of its output from torch, and no more."""
    x, w = tensors(stage, X, W)
    prepared = convladder.Conv(stage, w)
    y = prepared(x)
    last = stage == 33
    assert y.is_contiguous(memory_format=torch.channels_last) == last and y.is_contiguous() != last
    del y
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    y = prepared(x)
    rounded = -(-y.numel() * y.element_size() // 512) * 512
    assert torch.cuda.max_memory_allocated() - before == rounded


def test_on_a_stream_of_the_caller():
    """What is queued before is seen, and what is queued after sees the result; the call waits for neither."""
    x, w = tensors(25, X, W)
    zeros, stream = torch.zeros_like(x), torch.cuda.Stream()
    for explicit in (False, True):
        prepared = convladder.Conv(25, w)
        prepared(zeros)
        torch.cuda.synchronize()
        late = torch.zeros_like(x)
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            torch.cuda._sleep(200_000_000)  # cycles: a tenth of a second
            late.copy_(x)
            if not explicit:
                y = prepared(late)
        if explicit:
            y = prepared(late, stream=stream)
        with torch.cuda.stream(stream):
            doubled = 2 * y
        assert not stream.query()  # the call did not wait
        stream.synchronize()
        assert_near(y, x, w, 2e-5)
        assert torch.equal(doubled, 2 * y)


@pytest.mark.parametrize("stage, x, w", [(25, X, W), (9, (1, 1, 200, 300), (1, 1, 3, 3))])
def test_two_streams_share_what_is_prepared(stage, x, w):
    """The second stream waits for the first one's launch, whose workspace, or constants, it uses."""
    (one, w), (two, _) = tensors(stage, x, w), tensors(stage, x, w)
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    torch.cuda.synchronize()
    filters = convladder.Conv(stage, w), convladder.Conv(stage, 2 * w) if stage == 9 else None
    with torch.cuda.stream(first):
        torch.cuda._sleep(100_000_000)
        y = filters[0](one)
    with torch.cuda.stream(second):
        z = (filters[1] or filters[0])(two)
    torch.cuda.synchronize()
    assert_near(y, one, w, 2e-5)
    assert_near(z, two, 2 * w if filters[1] else w, 2e-5)


def test_in_a_graph():
    x, w = tensors(33, X, W)
    prepared = convladder.Conv(33, w)
    prepared(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = prepared(x)
    x.copy_(torch.randn_like(x))
    graph.replay()
    assert_near(y, x, w, 4e-3)
    assert_near(prepared(x), x, w, 4e-3)


def test_what_does_not_fit_is_an_error():
    x, w = tensors(33, X, W)
    for bad, message in (
        (x.contiguous(), r"fp16 in NHWC \(torch.channels_last\) on a GPU, and the input is fp16 NCHW; convert it"),
        (x.float(), "is fp32 NHWC"),
        (x.double(), "is float64 NHWC"),
        (x[:, :, ::2], "fp16 in another order"),
    ):
        with pytest.raises(convladder.BadInput, match=message):
            convladder.conv(bad, w, stage=33)
    x, w = tensors(25, X, W)
    with pytest.raises(convladder.BadInput, match="fp32 in NCHW on a GPU, and the input is fp32 NHWC"):
        convladder.conv(x.to(memory_format=torch.channels_last), w, stage=25)
    with pytest.raises(convladder.BadInput, match="25-winograd-fused computes in fp32; got 'bf16'"):
        convladder.conv(x.to(torch.bfloat16), w, stage=25)
    with pytest.raises(convladder.BadInput, match="fp16 in NHWC .* and the input is bf16 NHWC"):
        convladder.Conv(33, w)(tensors("33:bf16", X, W)[0])
    with pytest.raises(convladder.BadInput, match="lies on the host, and the filter lies on a GPU"):
        convladder.conv(x.cpu(), w, stage=25)
    with pytest.raises(convladder.BadInput, match="lies on the host, and a stream is given"):
        convladder.conv(x.cpu().numpy(), w.cpu().numpy(), stage=25, stream=torch.cuda.current_stream())
    for stage in (22, 34):
        with pytest.raises(convladder.BadInput, match="arrays on the host"):
            convladder.conv(x, w, stage=stage)
    with pytest.raises(convladder.Refused, match="refuses: "):
        convladder.conv(x, torch.randn(64, 64, 5, 5, device="cuda"), stage=25)


def test_a_part_that_begins_anywhere_is_an_error():
    whole, w = torch.randn(1 + 200 * 300, device="cuda"), torch.randn(1, 1, 3, 3, device="cuda")
    prepared = convladder.Conv(9, w)
    x = whole[:-1].view(1, 1, 200, 300)
    assert_near(prepared(x), x, w, 2e-5)
    for _ in range(2):  # what was checked before is no excuse
        with pytest.raises(convladder.BadInput, match="multiple of 16 bytes"):
            prepared(whole[1:].view(1, 1, 200, 300))
    assert_near(prepared(x), x, w, 2e-5)  # the GPU has not seen it


def test_second_gpu_is_an_error():
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU")
    x, w = tensors(25, X, W)
    with pytest.raises(convladder.BadInput, match="first GPU"):
        convladder.conv(x.to("cuda:1"), w, stage=25)


def test_memory_does_not_grow():
    """A thousand calls, and as many with filters that change, keep no memory but what is said to be kept."""
    def used():
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        free, total = torch.cuda.mem_get_info()
        return total - free

    x, w = tensors(25, X, W)
    prepared = convladder.Conv(25, w)
    prepared(x)
    before = used()
    for _ in range(1000):
        prepared(x)
    assert used() <= before
    for _ in range(20):
        w += 1
        convladder.conv(x, w, stage=25)
    before = used()
    for _ in range(200):
        w += 1
        convladder.conv(x, w, stage=25)
    assert used() <= before


@pytest.mark.parametrize("stage", [25, 33, 36])
def test_compiled(stage):
    x, _ = tensors(stage, X, W)
    layer = torch.nn.Conv2d(64, 64, 3, padding=1).cuda()
    module = torch.nn.Sequential(convladder.torch.Conv2d(stage, layer), torch.nn.ReLU())
    wanted = torch.relu(exact_of(x, layer.weight) + layer.bias.detach().cpu().double().reshape(1, -1, 1, 1))
    compiled = torch.compile(module, fullgraph=True)
    bound = 4e-3 if stage == 33 else 2e-5
    with torch.no_grad():
        for _ in range(2):
            assert error_of(compiled(x), wanted) <= bound
    assert error_of(compiled(x), wanted) <= bound
    torch.library.opcheck(convladder.torch.conv2d, (x, layer.weight.detach(), stage, [1, 1], [1, 1], [1, 1], 1))


def test_compiled_call_prepares_once():
    x, _ = tensors(25, X, W)
    module = convladder.torch.Conv2d(25, torch.nn.Conv2d(64, 64, 3, padding=1).cuda())
    compiled = torch.compile(module, fullgraph=True)
    from convladder import _api

    compiled(x)
    kept = list(_api._kept.values())
    for _ in range(3):
        compiled(x)
        module(x)
    assert list(_api._kept.values()) == kept


def test_gradients_are_torchs():
    x, _ = tensors(33, X, W)
    layer = torch.nn.Conv2d(64, 64, 3, padding=1).cuda()
    module = convladder.torch.Conv2d(36, layer)
    x = x.float().requires_grad_()
    for run in (module, torch.compile(module, fullgraph=True)):
        run(x).square().sum().backward()
        have = [each.grad.clone() for each in (x, layer.weight, layer.bias)]
        x.grad = layer.weight.grad = layer.bias.grad = None
        layer(x).square().sum().backward()
        torch.testing.assert_close(have, [each.grad for each in (x, layer.weight, layer.bias)], rtol=1e-3, atol=1e-2)
        x.grad = layer.weight.grad = layer.bias.grad = None


@pytest.mark.parametrize("error, dtype, form", [
    (1e-5, torch.float32, torch.channels_last),
    (1e-5, torch.float32, torch.contiguous_format),
    (4e-3, torch.float16, torch.channels_last),
    (1e-2, torch.bfloat16, torch.channels_last),
])
def test_choice_is_kept(tmp_path, monkeypatch, error, dtype, form):
    monkeypatch.setenv("CONVLADDER_TUNED", str(tmp_path))
    layer = torch.nn.Conv2d(64, 64, 3, padding=1).cuda()
    x = torch.randn(X, device="cuda", dtype=dtype).to(memory_format=form)
    module = convladder.torch.Conv2d.from_conv2d(layer, x, error=error)
    assert len(list(tmp_path.rglob("conv2d-*.json"))) == 1
    monkeypatch.setattr(convladder.torch, "_fastest", None)  # which a second choice does not ask
    assert convladder.torch.Conv2d.from_conv2d(layer, x, error=error).stage == module.stage
    wanted = exact_of(x, layer.weight) + layer.bias.detach().cpu().double().reshape(1, -1, 1, 1)
    assert error_of(module(x), wanted) <= error
    print("chosen:", module.stage, dtype, form)


def test_cupy():
    cupy = pytest.importorskip("cupy")
    x = cupy.random.standard_normal((2, 16, 20, 20), dtype=cupy.float32)
    w = np.random.default_rng(1).standard_normal((4, 16, 3, 3)).astype(np.float32)
    wanted = exact_of(torch.from_numpy(x.get()), torch.from_numpy(w))
    for filter in (w, cupy.asarray(w)):
        y = convladder.conv(x, filter, stage=16)
        assert isinstance(y, cupy.ndarray) and error_of(torch.from_numpy(y.get()), wanted) <= 2e-5
    stream = cupy.cuda.Stream(non_blocking=True)
    y = convladder.conv(x, w, stage=16, stream=stream)
    stream.synchronize()
    assert error_of(torch.from_numpy(y.get()), wanted) <= 2e-5
    with stream:
        y = convladder.conv(x, w, stage=16)
    del stream  # whose end the next call does not mind
    cupy.cuda.get_current_stream().synchronize()
    convladder.conv(x, w, stage=16)
    last = cupy.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    y = convladder.conv(last, w, stage=35)
    assert error_of(torch.from_numpy(y.get()), wanted) <= 1e-5
    with pytest.raises(convladder.BadInput, match="is float64 NCHW"):
        convladder.conv(x.astype(cupy.float64), w, stage=16)
    half = last.astype(cupy.float16)
    residual = cupy.random.standard_normal((2, 20, 20, 4), dtype=cupy.float32).astype(cupy.float16)
    residual = residual.transpose(0, 3, 1, 2)
    bias = cupy.asarray([1, -1, 2, 0], dtype=cupy.float32)
    y = convladder.conv(half, w, stage=32, bias=bias, residual=residual, activation="relu")
    added = [torch.from_numpy(each.get()).double() for each in (bias.reshape(1, -1, 1, 1), residual)]
    assert isinstance(y, cupy.ndarray)
    assert error_of(torch.from_numpy(y.get()), (wanted + added[0] + added[1]).relu()) <= 4e-3
    with pytest.raises(convladder.BadInput, match="arrays of one library"):
        convladder.conv(half, w, stage=32, residual=torch.from_dlpack(residual), activation="relu")


def test_jax(monkeypatch):
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX without a GPU")
    x = jax.random.normal(jax.random.PRNGKey(1), (2, 16, 20, 20))
    w = jax.random.normal(jax.random.PRNGKey(2), (4, 16, 3, 3))
    wanted = exact_of(torch.from_numpy(np.array(x)), torch.from_numpy(np.array(w)))
    for filter in (w, np.asarray(w)):
        y = convladder.conv(x, filter, stage=16)
        assert isinstance(y, jax.Array) and error_of(torch.from_numpy(np.array(y)), wanted) <= 2e-5
    assert error_of(torch.from_numpy(np.array(2 * y)), 2 * wanted) <= 2e-5
    with pytest.raises(convladder.BadInput, match="in NHWC"):
        convladder.conv(x, w, stage=35)


def test_bench_on_the_gpu():
    rows = convladder.bench([3], shape="w=100000,s=5")
    assert rows[0]["backend"] == "gpu" and rows[0]["status"] == "ok" and rows[0]["time_us"]["median"] > 0
