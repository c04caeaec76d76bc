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
    given = array
    if hasattr(array, "detach"):  # torch's, perhaps with a gradient, which DLPack does not hand out
        array = array.detach()
        if str(array.dtype) == "torch.bfloat16":
            array = array.float()
    if not isinstance(array, np.ndarray):
        try:
            array = np.from_dlpack(array) if hasattr(array, "__dlpack__") else np.asarray(array)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise BadInput(f"{name} cannot be read as an array: {_one_line(error)}") from error
    if array.dtype.kind not in "biufc" and not hasattr(given, "dtype"):  # None, a text
        raise BadInput(f"{name} must be an array of numbers; got {_shown(given)}")
    if array.dtype != np.float32:
        raise BadInput(f"{name} has elements of type {array.dtype}; convert it to float32")
    return np.ascontiguousarray(array)


def stage_text(stage: Stage) -> str:
    """A stage as the command line takes it: a number, a name or a folder."""
    if isinstance(stage, str):
        return stage
    try:
        return str(operator.index(stage))
    except TypeError:
        raise BadInput(f'stage must be a number or a name, as 3 or "tiled-1d"; got {_shown(stage)}') from None


def padding_text(padding: str) -> str:
    """The padding's mode. That it is a name: numbers are what `pad` takes, which torch calls padding."""
    if not isinstance(padding, str) or padding not in ("zero", "replicate", "reflect"):
        hint = "" if isinstance(padding, str) else ": how many zeros there are says `pad`"
        raise BadInput(f'padding must be "zero", "replicate" or "reflect"; got {_shown(padding)}{hint}')
    return padding


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
        raise BadInput(f'activation must be "relu" or None; got {_shown(activation)}')
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
    if not isinstance(configuration, Mapping):
        raise BadInput(f'configuration must be as {{"m": 4}} or "m=4"; got {_shown(configuration)}')
    return ",".join(f"{knob}={value}" for knob, value in configuration.items())


def options_of(
    pad: Pair | None, stride: Pair, dilation: Pair, groups: int
) -> tuple[Pair | None, Pair, Pair, int]:
    """The options as integers and pairs of them, which can be keys."""
    checked = None if pad is None else _pair("pad", pad)
    return checked, _pair("stride", stride), _pair("dilation", dilation), _integer("groups", groups)


def options_text(
    dimensions: int, pad: Pair | None, stride: Pair, dilation: Pair, groups: int, epilogue: str = "none"
) -> str:
    """What --shape says beside the arrays. One number is for height and width; of a signal, for the width alone."""
    pad, stride, dilation, groups = options_of(pad, stride, dilation, groups)
    items: list[str] = []
    if pad is not None:
        items += _items("pad", pad, dimensions, 0)
    items += _items("stride", stride, dimensions, 1)
    items += _items("dilation", dilation, dimensions, 1)
    items.append(f"groups={groups}")
    items.append(f"epilogue={epilogue}")
    return ",".join(items)


def shape_text(shape: Problem) -> str:
    """A problem without arrays: "c=64,h=56,...", or the same as a mapping. Its epilogue alone is a name."""
    if isinstance(shape, str):
        return shape
    if not isinstance(shape, Mapping):
        raise BadInput(f'shape must be as "w=4096,s=5" or {{"w": 4096, "s": 5}}; got {_shown(shape)}')
    return ",".join(f"{key}={value if key == 'epilogue' else _integer(key, value)}" for key, value in shape.items())


def list_of(values: Any) -> list[Any]:
    """One or several as a list; none without them."""
    if values is None:
        return []
    several = hasattr(values, "__iter__") and not isinstance(values, (str, Mapping))
    return list(values) if several else [values]


def _pair(name: str, value: Pair) -> Pair:
    if not isinstance(value, (tuple, list)):
        return _integer(name, value)
    if len(value) != 2:
        raise BadInput(f"{name} must be a number or (height, width); got {_shown(value)}")
    return _integer(name, value[0]), _integer(name, value[1])


def _items(name: str, value: Pair, dimensions: int, neutral: int) -> list[str]:
    if not isinstance(value, tuple):
        value = (neutral if dimensions == 1 else value, value)
    return [f"{name}_h={value[0]}", f"{name}_w={value[1]}"]


def _integer(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError as error:
        raise BadInput(f"{name} must be an integer; got {_shown(value)}") from error


def _shown(value: Any) -> str:
    """A value in a message of one line: itself where it is short, else its type."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"an array of the shape {tuple(value.shape)}"
    text = repr(value)
    return text if len(text) <= 60 and "\n" not in text else f"a {type(value).__name__}"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
