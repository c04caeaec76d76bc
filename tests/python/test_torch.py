"""convladder.torch, where torch is installed; on the host, in the simulator."""
import pytest

torch = pytest.importorskip("torch")

import convladder  # noqa: E402
import convladder.torch  # noqa: E402


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(1)
    torch.compiler.reset()  # tests share what is compiled of a module, which torch does at most eight times


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


def torchs_own(x, w, bias=None, residual=None, activation=None):
    """In double precision; the gradients go to float32's leaves."""
    y = torch.nn.functional.conv2d(x.double(), w.double(), None if bias is None else bias.double(), padding=1)
    if residual is not None:
        y = y + residual.double()
    return y if activation is None else y.relu()


def leaves(*shapes):
    return [torch.randn(shape).requires_grad_() for shape in shapes]


def error_of(y, exact):
    assert y.shape == exact.shape
    return float((y.detach().double() - exact.detach()).norm() / exact.detach().norm())


OPTIONS = ([1, 1], [1, 1], [1, 1], 1)


@pytest.mark.parametrize("names", [("bias",), ("bias", "activation"), ("bias", "residual", "activation"),
                                   ("residual", "activation"), ("activation",)])
def test_epilogue_and_its_gradients(names):
    x, w, bias, residual = leaves((2, 16, 6, 6), (8, 16, 3, 3), (8,), (2, 8, 6, 6))
    every = {"bias": bias, "residual": residual, "activation": "relu"}
    given = {name: every[name] for name in names}
    y, exact = convladder.torch.conv2d(x, w, 32, *OPTIONS, **given), torchs_own(x, w, **given)
    assert error_of(y, exact) <= 2e-3
    inputs = [x, w] + [value for name, value in given.items() if name != "activation"]
    direction = torch.randn(y.shape)
    have = torch.autograd.grad(y, inputs, direction)
    # Where rounding moves an output across 0, its gradient is another: few, and small in the norm.
    for one, other, leaf in zip(have, torch.autograd.grad(exact, inputs, direction.double()), inputs):
        assert one.dtype == leaf.dtype and error_of(one, other.double()) <= 5e-2


def test_operator_with_an_epilogue_passes_torchs_own_tests():
    x, w, bias, residual = leaves((1, 16, 6, 6), (8, 16, 3, 3), (8,), (1, 8, 6, 6))
    for given in ({"bias": bias}, {"bias": bias, "activation": "relu"}, {"residual": residual, "activation": "relu"}):
        torch.library.opcheck(convladder.torch.conv2d, (x, w, 32, *OPTIONS), given)


def test_stage_without_an_epilogue_refuses_in_torch():
    x, w, bias, _ = leaves((1, 16, 6, 6), (8, 16, 3, 3), (8,), (1,))
    with pytest.raises(convladder.Refused, match="direct refuses: the epilogue must be none; got bias_relu"):
        convladder.torch.conv2d(x, w, 16, *OPTIONS, bias, None, "relu")
    layer = torch.nn.Conv2d(16, 8, 3, padding=1)
    with pytest.raises(convladder.Refused, match="refuses: the epilogue must be none; got bias_relu"):
        convladder.torch.Conv2d(16, layer, activation="relu")(x)
    with pytest.raises(convladder.BadInput, match="activation must be"):
        convladder.torch.Conv2d(32, layer, activation="gelu")
    with pytest.raises(convladder.BadInput, match='give activation="relu"'):
        convladder.torch.Conv2d(32, layer)(x, torch.zeros(1, 8, 6, 6))


def passed_on(monkeypatch):
    """The bias of each call of the operator."""
    own, biases = convladder.torch._api.conv, []

    def conv(*arguments, bias, **options):
        biases.append(bias)
        return own(*arguments, bias=bias, **options)

    monkeypatch.setattr(convladder.torch._api, "conv", conv)
    return biases


def test_module_has_the_bias_done_by_a_stage_that_does_it(monkeypatch):
    layer, x = torch.nn.Conv2d(16, 8, 3, padding=1), torch.randn(1, 16, 6, 6)
    exact, biases = torchs_own(x, layer.weight, layer.bias), passed_on(monkeypatch)
    for stage, fuses in ((32, True), (16, False)):
        assert error_of(convladder.torch.Conv2d(stage, layer)(x), exact) <= 2e-3
        assert (biases.pop() is not None) == fuses
    y = convladder.torch.Conv2d(32, layer)(x.to(torch.bfloat16))  # the stage has no epilogue in that type
    assert biases.pop() is None and y.dtype == torch.bfloat16 and error_of(y, exact) <= 1e-2


def test_module_with_residual_and_relu():
    layer, x, residual = torch.nn.Conv2d(16, 8, 3, padding=1), torch.randn(1, 16, 6, 6), torch.randn(1, 8, 6, 6)
    module = convladder.torch.Conv2d.from_conv2d(layer, x, error=3e-3, activation="relu")
    assert module.stage == 32
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    for run in (module, compiled):
        assert error_of(run(x), torchs_own(x, layer.weight, layer.bias, None, "relu")) <= 3e-3
        assert error_of(run(x, residual), torchs_own(x, layer.weight, layer.bias, residual, "relu")) <= 3e-3
