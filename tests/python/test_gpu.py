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


def tensors(stage, x, w):
    """Random ones on the GPU, the input as the stage takes it."""
    torch.manual_seed(1)
    element, layout = _sim.tensors_of(str(stage)).split()
    form = torch.channels_last if layout == "NHWC" else torch.contiguous_format
    dtype = torch.float16 if element == "fp16" else torch.float32
    return torch.randn(x, device="cuda", dtype=dtype).to(memory_format=form), torch.randn(w, device="cuda")


def assert_near(y, x, w, error, **options):
    exact = torch.nn.functional.conv2d(x.double(), w.double(), padding=1, **options)
    assert y.dtype == x.dtype and y.shape == exact.shape
    assert float((y.double() - exact).norm() / exact.norm()) <= error


LAYERS = [
    (9, (1, 1, 200, 300), (1, 1, 3, 3), 2e-5),
    (15, (2, 32, 40, 40), (32, 1, 3, 3), 2e-5),
    (25, (2, 64, 28, 28), (64, 64, 3, 3), 2e-5),
    (33, (2, 64, 28, 28), (64, 64, 3, 3), 4e-3),
    (35, (2, 64, 28, 28), (64, 64, 3, 3), 1e-5),
    (36, (2, 64, 28, 28), (64, 64, 3, 3), 3e-7),
]


@pytest.mark.parametrize("stage, x, w, error", LAYERS)
def test_tensors(stage, x, w, error):
    x, w = tensors(stage, x, w)
    groups = x.shape[1] // w.shape[1]
    prepared = convladder.Conv(stage, w, groups=groups)
    for scale in (1, 3):  # prepared once
        assert_near(prepared(scale * x), scale * x, w, error, groups=groups)
    y = convladder.conv(x, w, stage=stage, groups=groups)
    w *= 2  # which torch notes
    torch.testing.assert_close(convladder.conv(x, w, stage=stage, groups=groups), 2 * y, rtol=2e-2, atol=2e-2)


def test_on_a_stream_of_the_caller():
    x, w = tensors(25, (2, 64, 28, 28), (64, 64, 3, 3))
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    prepared = convladder.Conv(25, w)
    with torch.cuda.stream(stream):
        y = prepared(x)
    explicit = prepared(x, stream=stream)
    stream.synchronize()
    assert_near(y, x, w, 2e-5)
    assert_near(explicit, x, w, 2e-5)


def test_other_layouts_and_types_are_errors():
    x, w = tensors(33, (2, 64, 28, 28), (64, 64, 3, 3))
    with pytest.raises(convladder.BadInput, match="fp16 in NHWC .*channels_last.* is fp16 NCHW"):
        convladder.conv(x.contiguous(), w, stage=33)
    with pytest.raises(convladder.BadInput, match="is fp32 NHWC"):
        convladder.conv(x.float(), w, stage=33)


def test_compiled_module(tmp_path, monkeypatch):
    monkeypatch.setenv("CONVLADDER_TUNED", str(tmp_path))
    layer = torch.nn.Conv2d(64, 64, 3, padding=1).cuda()
    x = torch.randn(2, 64, 28, 28, device="cuda").to(memory_format=torch.channels_last)
    module = convladder.torch.Conv2d.from_conv2d(layer, x, error=1e-5)
    assert len(list(tmp_path.rglob("conv2d-*.json"))) == 1
    assert convladder.torch.Conv2d.from_conv2d(layer, x, error=1e-5).stage == module.stage
    wanted = layer.double()(x.double()).float()
    layer.float()
    torch.testing.assert_close(torch.compile(module, fullgraph=True)(x), wanted, rtol=1e-3, atol=1e-3)
    torch.library.opcheck(
        convladder.torch.conv2d, (x, layer.weight.detach(), module.stage, [1, 1], [1, 1], [1, 1], 1)
    )


def test_cupy():
    cupy = pytest.importorskip("cupy")
    x = cupy.random.standard_normal((1, 3, 20, 20), dtype=cupy.float32)
    w = np.random.default_rng(1).standard_normal((4, 3, 3, 3)).astype(np.float32)
    y = convladder.conv(x, w, stage=16)
    assert isinstance(y, cupy.ndarray)
    np.testing.assert_allclose(y.get(), convladder.conv(x.get(), w, stage=16), rtol=1e-4, atol=1e-4)
