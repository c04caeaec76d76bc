"""Stages for PyTorch: an operator that torch.compile passes through, and a module in place of torch.nn.Conv2d.

Tensors on a GPU are read where they lie and run on torch's current stream; tensors in torch.channels_last are NHWC.
Tensors on the host run in the simulator. Gradients are those of torch's own functions: a backward pass runs no stage.
"""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any, Optional, cast

import torch

from . import _api, _arguments, _device, _sim
from .errors import BadInput, ConvLadderError

_SAMPLES = 5  # of a stage's time


@torch.library.custom_op("convladder::conv2d", mutates_args=())
def conv2d(
    x: torch.Tensor,
    w: torch.Tensor,
    stage: int,
    pad: list[int],
    stride: list[int],
    dilation: list[int],
    groups: int,
    bias: Optional[torch.Tensor] = None,
    residual: Optional[torch.Tensor] = None,
    activation: Optional[str] = None,
) -> torch.Tensor:
    """The convolution of `x` (N, C, H, W) with `w` (K, C/groups, R, S) by a stage, with zeros outside the input.

    Args:
        pad, stride, dilation: (height, width).
        bias: (K,), added to each sum.
        residual: (N, K, P, Q), in the element type and layout of the result, added before the ReLU that it wants.
        activation: "relu" or None.

    The result has the layout of the stage's tensors. Its gradients are torch's.

    Raises:
        Refused: bias, residual or activation are there, and the stage does not compute them with the convolution.
    """
    return cast(
        torch.Tensor,
        _api.conv(
            x,
            w,
            stage,
            pad=(pad[0], pad[1]),
            stride=(stride[0], stride[1]),
            dilation=(dilation[0], dilation[1]),
            groups=groups,
            bias=bias,
            residual=residual,
            activation=activation,
        ),
    )


@conv2d.register_fake
def _(
    x: torch.Tensor,
    w: torch.Tensor,
    stage: int,
    pad: list[int],
    stride: list[int],
    dilation: list[int],
    groups: int,
    bias: Optional[torch.Tensor] = None,
    residual: Optional[torch.Tensor] = None,
    activation: Optional[str] = None,
) -> torch.Tensor:
    n, _, height, width = x.shape
    k, _, r, s = w.shape
    p = (height + 2 * pad[0] - dilation[0] * (r - 1) - 1) // stride[0] + 1
    q = (width + 2 * pad[1] - dilation[1] * (s - 1) - 1) // stride[1] + 1
    on_gpu = x.device.type == "cuda"
    last = on_gpu and _sim.tensors_of(_device.stage_for(str(stage), x)).endswith("NHWC")
    form = torch.channels_last if last else torch.contiguous_format
    return torch.empty((n, k, p, q), dtype=x.dtype, device=x.device, memory_format=form)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    x, w, _, ctx.pad, ctx.stride, ctx.dilation, ctx.groups, bias, residual, activation = inputs
    ctx.of_bias = None if bias is None else bias.dtype
    ctx.of_residual = None if residual is None else residual.dtype
    ctx.save_for_backward(x, w, output if activation == "relu" else None)


def _gradients(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    x, w, clamped = ctx.saved_tensors
    if clamped is not None:
        gradient = torch.ops.aten.threshold_backward(gradient, clamped, 0)
    # Arguments at the end that are left away have no entry.
    wanted = (*ctx.needs_input_grad, False, False)
    of_bias, of_residual = ctx.of_bias is not None and wanted[7], ctx.of_residual is not None and wanted[8]
    of_x, of_w, sums = torch.ops.aten.convolution_backward(
        gradient,
        x,
        w.to(x.dtype),
        [w.shape[0]],
        ctx.stride,
        ctx.pad,
        ctx.dilation,
        False,
        [0, 0],
        ctx.groups,
        [wanted[0], wanted[1], of_bias],
    )
    return (
        of_x,
        None if of_w is None else of_w.to(w.dtype),
        *[None] * 5,
        sums.to(ctx.of_bias) if of_bias else None,
        gradient.to(ctx.of_residual) if of_residual else None,
        None,
    )


conv2d.register_autograd(_gradients, setup_context=_keep)


class Conv2d(torch.nn.Module):
    """A convolution by a stage, with the weights of a torch.nn.Conv2d. Gradients are those of torch's own functions.

    A stage that computes a bias with the convolution does so, in the type of the input; after any other, torch adds the
    bias to what the stage stored. A residual and a ReLU are the stage's work alone: without an epilogue it refuses.

    Args:
        stage: the stage's number.
        of: the layer; its weight and bias become this module's. Its padding_mode must be "zeros".
        activation: "relu" or None.
    """

    def __init__(self, stage: int, of: torch.nn.Conv2d, *, activation: str | None = None) -> None:
        super().__init__()
        _arguments.epilogue_text(of.bias is not None, False, activation)
        if of.padding_mode != "zeros" or isinstance(of.padding, str):
            raise BadInput('the layer must have padding_mode="zeros" and a padding in numbers')
        self.stage = stage
        self.weight, self.bias = of.weight, of.bias
        self.padding = [int(each) for each in of.padding]
        self.stride, self.dilation = list(of.stride), list(of.dilation)
        self.groups = of.groups
        self.activation = activation
        self._fuses = {bf16: _has_epilogue(stage, bf16) for bf16 in (False, True)}

    def forward(self, x: torch.Tensor, residual: torch.Tensor | None = None) -> torch.Tensor:
        """(N, C, H, W) to (N, K, P, Q); `residual` is as that, and is added before the ReLU."""
        layer = (self.weight, self.stage, self.padding, self.stride, self.dilation, self.groups)
        fuses = self._fuses[x.dtype == torch.bfloat16]
        if fuses or residual is not None or self.activation is not None:
            return cast(torch.Tensor, conv2d(x, *layer, self.bias, residual, self.activation))
        y = cast(torch.Tensor, conv2d(x, *layer))
        return y if self.bias is None else y + self.bias.to(y.dtype).reshape(1, -1, 1, 1)

    @classmethod
    def from_conv2d(
        cls, layer: torch.nn.Conv2d, x: torch.Tensor, *, error: float = 1e-5, activation: str | None = None
    ) -> Conv2d:
        """The fastest stage for `layer` on inputs like `x` (N, C, H, W), of those that take the layout and element type
        of `x` and stay within `error`, the relative RMS error against torch in double precision. Times and errors are
        those of the module, its bias and ReLU among them.

        On a GPU every stage is timed once; what is found is kept in a file for this GPU, layer and input's shape and
        error. On the host, where times of the simulator say nothing, it is stage 22, or the last stage that meets it.

        Raises:
            BadInput: no stage does; the message has the nearest one's reason.
        """
        kept = _kept_choice(layer, x, error, activation)
        if kept.exists():
            return cls(int(json.loads(kept.read_text())["stage"]), layer, activation=activation)
        stage, times = _fastest(cls, layer, x, error, activation)
        if x.is_cuda:
            kept.parent.mkdir(parents=True, exist_ok=True)
            aside = kept.with_suffix(f".{os.getpid()}")
            aside.write_text(json.dumps({"stage": stage, "times_ms": times}))
            aside.replace(kept)
        return cls(stage, layer, activation=activation)


def _has_epilogue(stage: int, bf16: bool) -> bool:
    """Whether a stage computes an epilogue; not in a type that it does not have."""
    try:
        return _sim.has_epilogue(f"{stage}:bf16" if bf16 else str(stage))
    except BadInput:
        return False


def _fastest(
    cls: type[Conv2d], layer: torch.nn.Conv2d, x: torch.Tensor, error: float, activation: str | None
) -> tuple[int, dict[int, float]]:
    with torch.no_grad():
        bias = None if layer.bias is None else layer.bias.double()
        exact = torch.nn.functional.conv2d(
            x.double(), layer.weight.double(), bias, layer.stride, layer.padding, layer.dilation, layer.groups
        )
        if activation is not None:
            exact = exact.relu()
        times: dict[int, float] = {}
        reason = "no stage runs on this device"
        numbers = [stage["number"] for stage in _api.stages()]
        if not x.is_cuda:
            numbers.sort(key=lambda number: (not _sim.on_host(str(number)), -number))
        for number in numbers:
            module = cls(number, layer, activation=activation)
            try:
                y = module(x)
            except ConvLadderError as refused:
                reason = str(refused)
                continue
            have = float((y.double() - exact).norm() / exact.norm())
            if not have <= error:
                reason = f"stage {number} has an error of {have:.1e}"
                continue
            if not x.is_cuda:
                return number, {}
            times[number] = _milliseconds(module, x)
    if not times:
        raise BadInput(f"no stage computes this layer with an error of at most {error:g}; of the last: {reason}")
    return min(times, key=lambda number: times[number]), times


def _milliseconds(module: Conv2d, x: torch.Tensor) -> float:
    cuda: Any = torch.cuda  # whose events have no types
    samples = []
    for _ in range(_SAMPLES):
        begin, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        begin.record()
        module(x)
        end.record()
        end.synchronize()
        samples.append(float(begin.elapsed_time(end)))
    return sorted(samples)[_SAMPLES // 2]


def _kept_choice(layer: torch.nn.Conv2d, x: torch.Tensor, error: float, activation: str | None) -> pathlib.Path:
    """The file of a choice: in the folder of what `./lab tune` keeps, by CONVLADDER_TUNED; else in the user's cache."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    folder = pathlib.Path(os.environ.get("CONVLADDER_TUNED") or cache / "convladder")
    device = torch.cuda.get_device_name(x.device) if x.is_cuda else "host"
    form = "nhwc" if x.is_contiguous(memory_format=torch.channels_last) else "nchw"
    of_layer = [layer.weight.shape[0], *layer.kernel_size, *layer.stride, *map(str, layer.padding), *layer.dilation]
    words = [*x.shape, str(x.dtype).removeprefix("torch."), form, *of_layer, layer.groups, f"{error:g}"]
    epilogue = _arguments.epilogue_text(layer.bias is not None, False, activation)
    if epilogue != "none":
        words.append(epilogue)
    return folder / "-".join(device.lower().split()) / f"conv2d-{'-'.join(map(str, words))}.json"
