"""convladder.torch, where torch is installed; on the host, in the simulator."""
import pytest

torch = pytest.importorskip("torch")

import convladder  # noqa: E402
import convladder.torch  # noqa: E402


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(1)


def test_tensors_come_back_as_tensors():
    x, w = torch.randn(1, 4, 8, 8), torch.randn(4, 4, 3, 3, requires_grad=True)
    y = convladder.conv(x, w, stage=16)
    torch.testing.assert_close(y, torch.nn.functional.conv2d(x, w.detach(), padding=1), rtol=1e-4, atol=1e-4)


def test_bf16_stays_bf16():
    x, w = torch.randn(1, 16, 8, 8), torch.randn(8, 16, 3, 3)
    exact = torch.nn.functional.conv2d(x.double(), w.double(), padding=1)
    x = x.to(torch.bfloat16)
    for stage, filter in ((33, w), ("33:bf16", w), (33, w.to(torch.bfloat16))):
        y = convladder.conv(x, filter, stage=stage)
        assert y.dtype == torch.bfloat16 and float((y.double() - exact).norm() / exact.norm()) < 1e-2
    assert convladder.torch.conv2d(x, w, 33, [1, 1], [1, 1], [1, 1], 1).dtype == torch.bfloat16
    with pytest.raises(convladder.BadInput, match="16-direct computes in fp32; got 'bf16'"):
        convladder.conv(x, w, stage=16)
    with pytest.raises(convladder.BadInput, match="computes in fp16, and the input is in bf16"):
        convladder.Conv(33, w)(x)


def test_operator_passes_torchs_own_tests():
    x, w = torch.randn(1, 2, 6, 7, requires_grad=True), torch.randn(4, 2, 3, 3, requires_grad=True)
    arguments = (x, w, 16, [2, 0], [2, 1], [1, 1], 1)
    torch.library.opcheck(convladder.torch.conv2d, arguments)


def test_gradients_are_torchs():
    x, w = torch.randn(1, 2, 6, 7, requires_grad=True), torch.randn(4, 2, 3, 3, requires_grad=True)
    convladder.torch.conv2d(x, w, 16, [1, 1], [1, 1], [1, 1], 1).square().sum().backward()
    have = x.grad, w.grad
    x.grad = w.grad = None
    torch.nn.functional.conv2d(x, w, padding=1).square().sum().backward()
    torch.testing.assert_close(have, (x.grad, w.grad), rtol=1e-3, atol=1e-3)


def test_module_takes_over_a_layer():
    layer, x = torch.nn.Conv2d(4, 6, 3, padding=1, stride=2), torch.randn(2, 4, 9, 8)
    module = convladder.torch.Conv2d.from_conv2d(layer, x)
    assert module.stage == 22 and module.weight is layer.weight
    torch.testing.assert_close(module(x), layer(x), rtol=1e-4, atol=1e-4)
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), layer(x), rtol=1e-4, atol=1e-4)
    with pytest.raises(convladder.BadInput, match="error of at most"):
        convladder.torch.Conv2d.from_conv2d(layer, x, error=1e-12)
