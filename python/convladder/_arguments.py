"""Python's arguments as the harness takes them: arrays of float32 on the host, options as the text of --shape."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, SupportsIndex, Union

import numpy as np
import numpy.typing as npt

from .errors import BadInput

Floats = npt.NDArray[np.float32]
Stage = Union[int, str]
Pair = Union[int, tuple[int, int]]
Configuration = Union[str, Mapping[str, Any], None]

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


def configuration_text(configuration: Configuration) -> str:
    """Knobs as the command line takes them: "m=4,tbm=32"."""
    if configuration is None or isinstance(configuration, str):
        return configuration or ""
    return ",".join(f"{knob}={value}" for knob, value in configuration.items())


def options_text(dimensions: int, pad: Pair | None, stride: Pair, dilation: Pair, groups: int) -> str | None:
    """What --shape says beside the arrays. One number is for height and width; of a signal, for the width alone."""
    items: list[str] = []
    if pad is not None:
        items += _pair("pad", pad, dimensions, 0)
    items += _pair("stride", stride, dimensions, 1)
    items += _pair("dilation", dilation, dimensions, 1)
    items.append(f"groups={_integer('groups', groups)}")
    return ",".join(items)


def shape_text(shape: str | Mapping[str, int]) -> str:
    """A problem without arrays: "c=64,h=56,...", or the same as a mapping."""
    if isinstance(shape, str):
        return shape
    return ",".join(f"{key}={_integer(key, value)}" for key, value in shape.items())


def _pair(name: str, value: Pair, dimensions: int, neutral: int) -> list[str]:
    if isinstance(value, (tuple, list)):
        if len(value) != 2:
            raise BadInput(f"{name} must be a number or (height, width); got {value!r}")
        height, width = (_integer(name, each) for each in value)
    else:
        width = _integer(name, value)
        height = neutral if dimensions == 1 else width
    return [f"{name}_h={height}", f"{name}_w={width}"]


def _integer(name: str, value: SupportsIndex) -> int:
    try:
        return operator.index(value)
    except TypeError as error:
        raise BadInput(f"{name} must be an integer; got {value!r}") from error
