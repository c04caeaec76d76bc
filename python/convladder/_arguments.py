"""Python's arguments as the harness takes them: arrays of float32 on the host, options as the text of --shape."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from .errors import BadInput

Floats = npt.NDArray[np.float32]
Stage = Union[int, str]
Pair = Union[int, tuple[int, int]]
Configuration = Union[str, Mapping[str, Any], None]
Problem = Union[str, Mapping[str, Union[int, str]]]

_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13  # of DLPack


def on_gpu(array: Any) -> bool:
    """Whether an array lies in a GPU's memory."""
    is_cuda = getattr(array, "is_cuda", None)  # of torch, whose DLPack takes longer
    if isinstance(is_cuda, bool):
        return is_cuda
    device = getattr(array, "__dlpack_device__", None)
    return device is not None and int(device()[0]) in (_CUDA, _CUDA_MANAGED)


def host_floats(array: Any, name: str) -> Floats:
    """An array of float32 on the host, in C order; a copy only where it is not that yet.

    `array` is NumPy's, or has NumPy's protocol or DLPack's; or it is a tensor of torch.bfloat16, which float32 holds.
    """
    if hasattr(array, "detach"):  # torch's, perhaps with a gradient, which DLPack does not hand out
        array = array.detach()
        if str(array.dtype) == "torch.bfloat16":
            array = array.float()
    if not isinstance(array, np.ndarray):
        try:
            array = np.from_dlpack(array) if hasattr(array, "__dlpack__") else np.asarray(array)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise BadInput(f"{name} cannot be read as an array: {error}") from error
    if array.dtype != np.float32:
        raise BadInput(f"{name} has elements of type {array.dtype}; convert it to float32")
    return np.ascontiguousarray(array)


def stage_text(stage: Stage) -> str:
    """A stage as the command line takes it: a number, a name or a folder."""
    if isinstance(stage, str):
        return stage
    return str(_integer("stage", stage))


def bias_floats(bias: Any, filters: int) -> Floats:
    """A number for each of the filters (K,), on the host: all finite, as a filter's are."""
    values = host_floats(bias, "the bias")
    if values.shape != (filters,):
        raise BadInput(f"the bias must have the shape ({filters},), a number for each filter; got {values.shape}")
    if not np.isfinite(values).all():
        index = int(np.flatnonzero(~np.isfinite(values))[0])
        raise BadInput(f"the bias: value {index} is {values[index]}; give finite numbers")
    return values


def filters_of(w: Floats) -> int:
    """K of a filter (K, C/groups, R, S), (R, S) or (S,)."""
    return w.shape[0] if w.ndim == 4 else 1


def epilogue_text(has_bias: bool, has_residual: bool, activation: str | None) -> str:
    """The epilogue of --shape: what a stage does with each sum before it stores it."""
    if activation is not None and activation != "relu":
        raise BadInput(f'activation must be "relu" or None; got {activation!r}')
    if has_residual:
        if activation is None:
            raise BadInput('a residual is added before a ReLU, and no other way: give activation="relu" with it')
        return "bias_residual_relu"
    if activation is not None:
        return "bias_relu"
    return "bias" if has_bias else "none"


def configuration_text(configuration: Configuration) -> str:
    """Knobs as the command line takes them: "m=4,tbm=32"."""
    if configuration is None or isinstance(configuration, str):
        return configuration or ""
    return ",".join(f"{knob}={value}" for knob, value in configuration.items())


def options_text(
    dimensions: int, pad: Pair | None, stride: Pair, dilation: Pair, groups: int, epilogue: str = "none"
) -> str | None:
    """What --shape says beside the arrays. One number is for height and width; of a signal, for the width alone."""
    items: list[str] = []
    if pad is not None:
        items += _pair("pad", pad, dimensions, 0)
    items += _pair("stride", stride, dimensions, 1)
    items += _pair("dilation", dilation, dimensions, 1)
    items.append(f"groups={_integer('groups', groups)}")
    items.append(f"epilogue={epilogue}")
    return ",".join(items)


def shape_text(shape: Problem) -> str:
    """A problem without arrays: "c=64,h=56,...", or the same as a mapping. Its epilogue alone is a name."""
    if isinstance(shape, str):
        return shape
    return ",".join(f"{key}={value if key == 'epilogue' else _integer(key, value)}" for key, value in shape.items())


def _pair(name: str, value: Pair, dimensions: int, neutral: int) -> list[str]:
    if isinstance(value, (tuple, list)):
        if len(value) != 2:
            raise BadInput(f"{name} must be a number or (height, width); got {value!r}")
        height, width = (_integer(name, each) for each in value)
    else:
        width = _integer(name, value)
        height = neutral if dimensions == 1 else width
    return [f"{name}_h={height}", f"{name}_w={width}"]


def _integer(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError as error:
        raise BadInput(f"{name} must be an integer; got {value!r}") from error
