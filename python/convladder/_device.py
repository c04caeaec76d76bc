"""Arrays in a GPU's memory, and the library that runs stages there."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _sim
from ._arguments import Floats, host_floats
from .errors import BadInput, MachineError

_NO_GPU_SIDE = "this build of convladder has no GPU side: install it again where there is nvcc"


def gpu_library() -> Any:
    """convladder._gpu, where the package has it."""
    try:
        return importlib.import_module("convladder._gpu")
    except ModuleNotFoundError:
        raise MachineError(_NO_GPU_SIDE) from None


def library_for(backend: str) -> Any:
    """The library for "gpu", "sim" or "auto"."""
    if backend not in ("auto", "gpu", "sim"):
        raise BadInput(f'backend must be "auto", "gpu" or "sim"; got {backend!r}')
    reason = "" if backend == "sim" else _sim.no_gpu_reason()
    if backend == "gpu" and reason:
        raise MachineError(f"no usable NVIDIA GPU: {reason}")
    if backend == "sim" or reason:
        return _sim
    try:
        return gpu_library()
    except MachineError:
        if backend == "gpu":
            raise
        return _sim


def is_torch(array: Any) -> bool:
    """Whether it is a tensor of torch, which is not imported for that."""
    return "torch" in sys.modules and isinstance(array, sys.modules["torch"].Tensor)


def like(array: Any, output: Floats) -> Any:
    """An output on the host in the kind of its input: a tensor for a tensor, else NumPy's."""
    return sys.modules["torch"].from_numpy(output) if is_torch(array) else output


def version_of(w: Any) -> tuple[int, int] | None:
    """What changes where a tensor of torch on a GPU is written to, but by its `data`; None for others."""
    if not is_torch(w) or not w.is_cuda or w.is_inference():
        return None
    return int(w._version), int(w.data_ptr())


def to_host(w: Any) -> Floats:
    """The numbers of a filter in a GPU's memory, as float32."""
    if is_torch(w):
        return host_floats(w.detach().float().cpu().contiguous(), "the filter")
    if hasattr(w, "get"):  # CuPy's
        return np.ascontiguousarray(w.get(), dtype=np.float32)
    return np.ascontiguousarray(np.asarray(w), dtype=np.float32)


class DeviceArray:
    """An array of torch or CuPy in a GPU's memory."""

    def __init__(self, array: Any) -> None:
        self.array = array.detach() if is_torch(array) else array
        if not is_torch(array) and type(array).__module__.partition(".")[0] != "cupy":
            raise BadInput(
                f"on a GPU, arrays of torch and CuPy are read where they lie; hand over "
                f"{type(array).__module__}.{type(array).__name__} by torch.from_dlpack or cupy.from_dlpack"
            )
        if int(array.__dlpack_device__()[1]) != 0:
            raise BadInput(
                "convladder runs on the first GPU that CUDA shows; choose another by CUDA_VISIBLE_DEVICES"
            )
        interface = self.array.__cuda_array_interface__
        self.address = int(interface["data"][0])
        self.shape: tuple[int, ...] = tuple(interface["shape"])
        self._type = str(interface["typestr"])
        size = int(self._type[2:])
        strides = interface.get("strides")
        self._strides = _strides_of(self.shape, "NCHW") if strides is None else tuple(each // size for each in strides)
        self.layout = ""

    def require(self, stage: str, tensors: str, on_host: bool) -> None:
        """Checks that it is as the stage's tensors are: "fp32 NCHW". Nothing is copied to make it so."""
        if on_host:
            raise BadInput(f"{stage} runs on the host's processor; give it arrays on the host")
        element, self.layout = tensors.split()
        if element == "int8":
            raise BadInput(f"{stage} quantises its input by the exact result; give it arrays on the host")
        types = {"<f4": "fp32", "<f2": "fp16"}
        dense = [layout for layout in ("NCHW", "NHWC") if _same(self.shape, self._strides, layout)]
        if types.get(self._type) == element and self.layout in dense:
            return
        have = f"{types.get(self._type, self._type)} {dense[0] if dense else 'in another order'}"
        channels_last = " (torch.channels_last)" if self.layout == "NHWC" else ""
        raise BadInput(
            f"{stage} takes {element} in {self.layout}{channels_last} on a GPU, and the input is {have}; convert it, "
            "since nothing is copied silently"
        )

    def new_output(self, shape: Sequence[int]) -> DeviceArray:
        """An array of the same library, type and layout, which it fills."""
        if is_torch(self.array):
            torch = sys.modules["torch"]
            form = torch.channels_last if self.layout == "NHWC" else torch.contiguous_format
            return DeviceArray(
                torch.empty(tuple(shape), dtype=self.array.dtype, device=self.array.device, memory_format=form)
            )
        cupy = sys.modules["cupy"]
        if self.layout != "NHWC":
            return DeviceArray(cupy.empty(tuple(shape), dtype=self.array.dtype))
        n, k, p, q = shape
        return DeviceArray(cupy.empty((n, p, q, k), dtype=self.array.dtype).transpose(0, 3, 1, 2))

    def stream_address(self, stream: Any) -> int:
        """Of `stream`: an address, a stream of torch or CuPy, or None for the library's current one."""
        if stream is None and is_torch(self.array):
            stream = sys.modules["torch"].cuda.current_stream(self.array.device)
        elif stream is None:
            stream = sys.modules["cupy"].cuda.get_current_stream()
        for name in ("cuda_stream", "ptr"):
            if hasattr(stream, name):
                return int(getattr(stream, name))
        return int(stream)


def _strides_of(shape: Sequence[int], layout: str) -> tuple[int, ...]:
    """In elements, of an array without gaps."""
    order = list(range(len(shape)))
    if layout == "NHWC" and len(shape) == 4:
        order = [0, 2, 3, 1]
    strides = [0] * len(shape)
    step = 1
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


def _same(shape: Sequence[int], strides: Sequence[int], layout: str) -> bool:
    """Whether the elements lie so; the stride of an axis of one element says nothing."""
    wanted = _strides_of(shape, layout)
    return all(size == 1 or have == want for size, have, want in zip(shape, strides, wanted))
