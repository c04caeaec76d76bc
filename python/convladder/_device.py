"""Arrays in a GPU's memory, and the library that runs stages there."""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from . import _sim
from ._arguments import Floats, host_floats
from .errors import BadInput, MachineError

_NO_GPU_SIDE = "this build of convladder has no GPU side: install it again where there is nvcc"


@functools.cache
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
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def is_bf16(array: Any) -> bool:
    """Whether it is a tensor of torch.bfloat16."""
    return is_torch(array) and str(array.dtype) == "torch.bfloat16"


def stage_for(stage: str, x: Any) -> str:
    """The stage in the type of its input: "32:bf16" for "32" and a tensor of torch.bfloat16."""
    return stage if ":" in stage or not is_bf16(x) else f"{stage}:bf16"


def like(array: Any, output: Floats) -> Any:
    """An output on the host in the kind of its input: a tensor for a tensor, in bf16 where that is, else NumPy's."""
    if not is_torch(array):
        return output
    tensor = sys.modules["torch"].from_numpy(output)
    return tensor.to(array.dtype) if is_bf16(array) else tensor


def lie_of(array: Any) -> tuple[Any, ...] | None:
    """All of a tensor of torch on a GPU that a launch depends on, but for its address. None for other arrays."""
    if not is_torch(array) or not array.is_cuda:
        return None
    return array.shape, array.stride(), array.dtype, array.get_device()


class TorchLaunch:
    """A prepared launch on tensors that lie as one that was checked, on torch's current stream."""

    def __init__(self, prepared: Any, output: DeviceArray) -> None:
        self._prepared = prepared
        self._shape, self._strides = output.shape, output.strides
        # What torch's own compiler calls: the address, without an object of a stream around it.
        raw = getattr(sys.modules["torch"]._C, "_cuda_getCurrentRawStream", None)
        self._stream_of = raw or (lambda index: sys.modules["torch"].cuda.current_stream(index).cuda_stream)

    def __call__(self, x: Any, residual: Any) -> Any:
        output = x.new_empty_strided(self._shape, self._strides)
        added = 0 if residual is None else residual.data_ptr()
        self._prepared.launch(x.data_ptr(), output.data_ptr(), self._stream_of(x.get_device()), added)
        return output


def identity_of(w: Any) -> tuple[Any, ...] | None:
    """What tells a filter of torch on a GPU from all others, as long as its memory is kept: where and how it lies, and
    a count of the times it was written to, but by its `data`. None for others."""
    if not is_torch(w) or not w.is_cuda or w.is_inference():
        return None
    return int(w.data_ptr()), int(w._version), tuple(w.shape), w.stride(), w.dtype


def to_host(w: Any, name: str) -> Floats:
    """The numbers of a filter or a bias in a GPU's memory, as float32."""
    if is_torch(w):
        return host_floats(w.detach().float().cpu().contiguous(), name)
    if hasattr(w, "get"):  # CuPy's
        return np.ascontiguousarray(w.get(), dtype=np.float32)
    return np.ascontiguousarray(np.asarray(w), dtype=np.float32)


class DeviceArray:
    """An array of one of the libraries in a GPU's memory."""

    array: Any
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements
    element: str  # "float32"
    layout = ""  # of the stage that it was required for

    def require(self, stage: str, tensors: str, on_host: bool, name: str = "input") -> None:
        """Checks that it is as the stage's tensors are: "fp32 NCHW". Nothing is copied to make it so."""
        if on_host:
            raise BadInput(f"{stage} runs on the host's processor; give it arrays on the host")
        element, self.layout = tensors.split()
        if element == "int8":
            raise BadInput(f"{stage} quantises its input by the exact result; give it arrays on the host")
        have = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}.get(self.element, self.element)
        if have == element and _same(self.shape, self.strides, self.layout):
            return
        dense = [layout for layout in ("NCHW", "NHWC") if _same(self.shape, self.strides, layout)]
        channels_last = " (torch.channels_last)" if self.layout == "NHWC" else ""
        raise BadInput(
            f"{stage} takes {element} in {self.layout}{channels_last} on a GPU, and the {name} is {have} "
            f"{dense[0] if dense else 'in another order'}; convert it, since nothing is copied silently"
        )

    def new_output(self, shape: Sequence[int]) -> DeviceArray:
        """An array of the same library, type and layout, which nothing has filled."""
        raise NotImplementedError

    def on_stream(self, stream: Any) -> contextlib.AbstractContextManager[int]:
        """Has the library use `stream`, if one is given: an address, or a stream of torch or CuPy. Gives the address of
        its current one."""
        raise NotImplementedError

    def finish(self, output: DeviceArray, prepared: Any) -> None:
        """After the launch."""


class _TorchArray(DeviceArray):
    def __init__(self, tensor: Any) -> None:
        self.array = tensor
        _require_first_gpu(tensor.device.index)
        self.address, self.shape, self.strides = tensor.data_ptr(), tuple(tensor.shape), tensor.stride()
        self.element = str(tensor.dtype).removeprefix("torch.")

    def new_output(self, shape: Sequence[int]) -> DeviceArray:
        torch = sys.modules["torch"]
        form = torch.channels_last if self.layout == "NHWC" else torch.contiguous_format
        like = self.array
        return _TorchArray(torch.empty(shape, dtype=like.dtype, device=like.device, memory_format=form))

    @contextlib.contextmanager
    def on_stream(self, stream: Any) -> Iterator[int]:
        cuda = sys.modules["torch"].cuda
        if stream is None:
            yield int(cuda.current_stream(self.array.device).cuda_stream)
        else:
            own = isinstance(stream, cuda.Stream)
            _require_first_gpu(stream.device.index if own else None)
            with cuda.stream(stream if own else cuda.ExternalStream(_address_of(stream))):
                yield _address_of(stream)


class _CupyArray(DeviceArray):
    def __init__(self, array: Any) -> None:
        self.array = array
        _require_first_gpu(array.device.id)
        self.address, self.shape = array.data.ptr, tuple(array.shape)
        self.strides = tuple(stride // array.itemsize for stride in array.strides)
        self.element = array.dtype.name

    def new_output(self, shape: Sequence[int]) -> DeviceArray:
        empty = sys.modules["cupy"].empty
        if self.layout != "NHWC":
            return _CupyArray(empty(tuple(shape), dtype=self.array.dtype))
        n, k, p, q = shape
        return _CupyArray(empty((n, p, q, k), dtype=self.array.dtype).transpose(0, 3, 1, 2))

    @contextlib.contextmanager
    def on_stream(self, stream: Any) -> Iterator[int]:
        cuda = sys.modules["cupy"].cuda
        if stream is None:
            yield int(cuda.get_current_stream().ptr)
        else:
            with stream if isinstance(stream, cuda.Stream) else cuda.ExternalStream(_address_of(stream)):
                yield _address_of(stream)


class _JaxArray(DeviceArray):
    """JAX names no stream of its own, so the host waits for it, and for the launch."""

    def __init__(self, array: Any) -> None:
        self.array = array.block_until_ready()
        _require_first_gpu(array.__dlpack_device__()[1])
        interface = array.__cuda_array_interface__
        self.address, self.shape = int(interface["data"][0]), tuple(array.shape)
        self.strides = _strides_of(self.shape, "NCHW")
        self.element = array.dtype.name

    def new_output(self, shape: Sequence[int]) -> DeviceArray:
        # Its memory is nobody else's yet, so writing to it changes no value that JAX has told.
        empty = sys.modules["jax"].numpy.empty(tuple(shape), self.array.dtype, device=self.array.device)
        return _JaxArray(empty)

    def on_stream(self, stream: Any) -> contextlib.AbstractContextManager[int]:
        if stream is not None:
            raise BadInput("JAX has no streams; leave `stream` away")
        return contextlib.nullcontext(0)

    def finish(self, output: DeviceArray, prepared: Any) -> None:
        prepared.wait(0)


def device_array(array: Any) -> DeviceArray:
    """An array of torch, CuPy or JAX on the first GPU."""
    if is_torch(array):
        return _TorchArray(array)
    kinds = {"cupy": _CupyArray, "jax": _JaxArray, "jaxlib": _JaxArray}
    kind = kinds.get(type(array).__module__.partition(".")[0])
    if kind is None:
        raise BadInput(
            f"on a GPU, arrays of torch, CuPy and JAX are read where they lie; hand over "
            f"{type(array).__module__}.{type(array).__name__} by torch.from_dlpack or cupy.from_dlpack"
        )
    return kind(array)


def _require_first_gpu(index: int | None) -> None:
    if index:
        raise BadInput("convladder runs on the first GPU that CUDA shows; choose another by CUDA_VISIBLE_DEVICES")


def _address_of(stream: Any) -> int:
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
