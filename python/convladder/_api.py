"""The package's functions."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from . import _device, _sim
from ._arguments import (
    Configuration,
    Floats,
    Pair,
    Stage,
    configuration_text,
    host_floats,
    on_gpu,
    options_text,
    shape_text,
    stage_text,
)
from .errors import BadInput, DeviceError, Fault, Refused, WrongResult

_KEPT_PROBLEMS = 8  # of a Conv; a loop over a few shapes prepares each once
_KEPT_FILTERS = 16  # of conv()


def stages() -> list[dict[str, Any]]:
    """The stages of the ladder, by number, with the keys of `./lab list --json`: number, name, title,
    track, idea, previous, dtype, layout, source, requires."""
    return cast("list[dict[str, Any]]", json.loads(_sim.stages()))


class Conv:
    """A stage with its filter, prepared once for each shape of input and called repeatedly.

    Args:
        stage: its number, name or folder: 3, "tiled-1d"; in another type that it computes in, "32:bf16".
        w: the filter, float32 or of torch.bfloat16: (K, C/groups, R, S); (R, S) for images of one channel; (S,) for signals. It is copied.
        padding: what lies outside the input: "zero", "replicate" or "reflect".
        pad, stride, dilation: a number, or (height, width). Without `pad`, (R-1)//2 and (S-1)//2.
        groups: of channels.
        configuration: of a stage with knobs: {"m": 4} or "m=4". Without it, what was tuned or the default.

    Raises:
        BadInput: the arguments do not fit. What depends on the input's shape is raised by the first call.
    """

    def __init__(
        self,
        stage: Stage,
        w: Any,
        *,
        padding: str = "zero",
        pad: Pair | None = None,
        stride: Pair = 1,
        dilation: Pair = 1,
        groups: int = 1,
        configuration: Configuration = None,
    ) -> None:
        self._stage = stage_text(stage)
        self._name = _sim.name_of(self._stage)
        self._tensors, self._on_host = _sim.tensors_of(self._stage), _sim.on_host(self._stage)
        self._of_gpu = on_gpu(w)
        self._w = (_device.to_host(w) if self._of_gpu else host_floats(w, "the filter")).copy()
        self._padding = padding
        self._options = (pad, stride, dilation, groups)
        self._configuration = configuration_text(configuration)
        self._prepared: OrderedDict[Any, Any] = OrderedDict()
        self._launches: dict[Any, _device.TorchLaunch] = {}  # of what is prepared, by how tensors of torch lie
        self._lock = threading.Lock()

    def __call__(self, x: Any, *, stream: Any = None) -> Any:
        """The convolution of `x` (N, C, H, W), or (H, W), or (W,): an array (N, K, P, Q).

        On the host: float32, or of torch.bfloat16 for a stage in bf16; runs in the simulator (stage 22 on the host's processor) and gives a NumPy array, or a
        tensor for a tensor of torch. On a GPU: an array of torch or CuPy with the element type and layout of the
        stage's tensors, which is read where it lies; runs on the library's current stream, or on `stream`, and gives an
        array of the same library and type. It does not wait for the GPU. With an array of JAX it does, at both ends.

        Raises:
            Refused, Fault, BadInput, MachineError, DeviceError: see convladder.errors.
        """
        if stream is None and self._launches:
            known = self._launches.get(_device.lie_of(x))
            if known is not None:  # all has been checked for a tensor that lies so
                return known(x)
        if on_gpu(x):
            return self._on_gpu(x, stream)
        if self._of_gpu or stream is not None:
            reason = "the filter lies on a GPU" if self._of_gpu else "a stream is given"
            raise BadInput(f"the input lies on the host, and {reason}; hand over an input on the GPU, as torch and CuPy do")
        values = host_floats(x, "the input")
        if _device.is_bf16(x) and not self._tensors.startswith("bf16"):
            raise BadInput(f"{self._name} computes in {self._tensors.split()[0]}, and the input is in bf16; convert it")
        output = _named(self._name, lambda: self._prepare(_sim, values.shape).run(values))
        return _device.like(x, output)

    def _on_gpu(self, x: Any, stream: Any) -> Any:
        library = _device.gpu_library()
        array = _device.device_array(x)
        array.require(self._name, self._tensors, self._on_host)

        def launch() -> Any:
            prepared = self._prepare(library, array.shape)
            with array.on_stream(stream) as address:
                output = array.new_output(prepared.output_shape)
                prepared.launch(array.address, output.address, address)
                array.finish(output, prepared)
            self._keep_launch(array, output, prepared)
            return output.array

        return _named(self._name, launch)

    def _keep_launch(self, array: Any, output: Any, prepared: Any) -> None:
        """Of tensors of torch, whose calls are the host's work alone where layers are small."""
        lie = _device.lie_of(array.array)
        if lie is None:
            return
        with self._lock:
            if any(kept is prepared for kept in self._prepared.values()):
                self._launches[lie] = _device.TorchLaunch(prepared, output)

    def _prepare(self, library: Any, shape: Sequence[int]) -> Any:
        key = (library.__name__, tuple(shape))
        with self._lock:
            if key in self._prepared:
                self._prepared.move_to_end(key)
                return self._prepared[key]
        options = options_text(len(shape), *self._options)
        prepared = library.Prepared(
            self._stage, list(shape), list(self._w.shape), self._w, options, self._padding, self._configuration
        )
        with self._lock:
            self._prepared[key] = prepared
            while len(self._prepared) > _KEPT_PROBLEMS:
                self._prepared.popitem(last=False)
                self._launches.clear()  # one of them may hold what goes
        return prepared


_kept: OrderedDict[Any, tuple[Any, Conv]] = OrderedDict()
_kept_lock = threading.Lock()


def conv(
    x: Any,
    w: Any,
    stage: Stage,
    *,
    padding: str = "zero",
    pad: Pair | None = None,
    stride: Pair = 1,
    dilation: Pair = 1,
    groups: int = 1,
    configuration: Configuration = None,
    stream: Any = None,
) -> Any:
    """The convolution of `x` with `w` by a stage: cross-correlation, as in PyTorch. Arguments and result are those of
    Conv; for a tensor of torch.bfloat16 the stage is the one in bf16.

    What the stage prepared is kept for the last few filters; a filter with other numbers prepares anew. On a GPU that
    comparison needs the filter's numbers on the host, but for tensors of torch, which tell when they changed (not when
    they were written to by their `data`): use Conv where calls are many.
    """
    stage = _device.stage_for(stage_text(stage), x)
    options = (stage, padding, pad, stride, dilation, groups, configuration_text(configuration))
    identity = _device.identity_of(w)
    values = None
    if identity is None:
        values = _device.to_host(w) if on_gpu(w) else host_floats(w, "the filter")
        identity = (values.shape, values.tobytes(), on_gpu(w))
    key = (options, identity)
    with _kept_lock:
        found = _kept.get(key)
        if found:
            _kept.move_to_end(key)
    if not found:
        made = Conv(
            stage,
            w,
            padding=padding,
            pad=pad,
            stride=stride,
            dilation=dilation,
            groups=groups,
            configuration=configuration,
        )
        found = (w if values is None else None, made)  # a tensor that is kept keeps its memory
        with _kept_lock:
            _kept[key] = found
            while len(_kept) > _KEPT_FILTERS:
                _kept.popitem(last=False)
    return found[1](x, stream=stream)


def refusal(
    stage: Stage,
    x: Any = None,
    w: Any = None,
    *,
    shape: str | Mapping[str, int] | None = None,
    padding: str = "zero",
    pad: Pair | None = None,
    stride: Pair = 1,
    dilation: Pair = 1,
    groups: int = 1,
) -> str | None:
    """The rule by which a stage refuses a problem, or None where it computes it. Nothing is computed.

    The problem is that of the arrays `x` and `w`, as Conv takes them, or of `shape`: "c=64,h=56,w=56,k=64,r=3,s=3", or
    a mapping of these names, which may have pads, strides, dilations and groups of its own.
    """
    name = stage_text(stage)
    if shape is not None:
        return _sim.refusal_of_shape(name, shape_text(shape), padding) or None
    input, filter = host_floats(x, "the input"), host_floats(w, "the filter")
    options = options_text(input.ndim, pad, stride, dilation, groups)
    return _sim.refusal_of_arrays(name, list(input.shape), list(filter.shape), options, padding, filter) or None


@dataclass(frozen=True)
class Simulation:
    """What the simulator saw of one launch, which was compared with the exact reference."""

    output: Floats  #: (N, K, P, Q); empty of a run with a fault
    counters: dict[str, int | None]  #: by the JSON's names: bytes, requests, sectors, conflicts, barriers, flops
    lines: list[dict[str, Any]]  #: of each line of the source: file, line and its counters
    faults: list[dict[str, Any]]  #: of a run that raised Fault, which has this as its `simulation`; else empty
    result: dict[str, Any]  #: all of it, as `./lab run --lines --json` prints it


def simulate(
    stage: Stage,
    x: Any,
    w: Any,
    *,
    padding: str = "zero",
    pad: Pair | None = None,
    stride: Pair = 1,
    dilation: Pair = 1,
    groups: int = 1,
    configuration: Configuration = None,
    without_barrier: str | None = None,
) -> Simulation:
    """Runs a stage in the simulator, checks its result, and tells what it did. The arguments are those of Conv, with
    arrays on the host. Stage 22, which runs on the host's processor, has no counters.

    Args:
        without_barrier: the line of a `__syncthreads` that does nothing in this run, as in "tiled_1d.cu:41": what would
            be wrong without it?

    Raises:
        Refused, Fault, WrongResult, BadInput, MachineError, DeviceError: see convladder.errors.
    """
    input, filter = host_floats(x, "the input"), host_floats(w, "the filter")
    text, output = _sim.simulate(
        stage_text(stage),
        list(input.shape),
        input,
        list(filter.shape),
        filter,
        options_text(input.ndim, pad, stride, dilation, groups),
        padding,
        configuration_text(configuration),
        without_barrier or "",
    )
    result = json.loads(text)
    reason = result["reason"]
    if result["status"] == "refused":
        raise Refused(f"{result['stage']} refuses: {reason}")
    if result["status"] == "wrong":
        raise WrongResult(reason)
    if result["status"] == "error":
        raise DeviceError(reason)
    values = np.empty(0, np.float32) if output is None else output
    seen = Simulation(values, result["counters"] or {}, result["lines"] or [], result["faults"] or [], result)
    if seen.faults:
        raise Fault(reason, seen.faults, seen)
    return seen


def bench(
    stages: Sequence[Stage] | None = None,
    *,
    tracks: Sequence[str] | None = None,
    shape: str | Mapping[str, int] | Sequence[str | Mapping[str, int]] | None = None,
    padding: str | None = None,
    backend: str = "auto",
) -> list[dict[str, Any]]:
    """Rows as `./lab bench --json` has them, without cuDNN: a dictionary for each stage and problem.

    Args:
        stages, tracks: which; all without them.
        shape: the user's layers, as of refusal(), instead of the tracks' workloads.
        padding: of those.
        backend: "gpu", "sim", or "auto": the GPU where there is one and the package has a GPU side.
    """
    library = _device.library_for(backend)
    shapes = [] if shape is None else [shape] if isinstance(shape, (str, Mapping)) else list(shape)
    names = [stage_text(stage) for stage in stages or []]
    text = library.bench(names, list(tracks or []), [shape_text(each) for each in shapes], padding)
    return cast("list[dict[str, Any]]", json.loads(text))


def _named(stage: str, work: Any) -> Any:
    """Says which stage it is that refuses, as the command line does."""
    try:
        return work()
    except Refused as error:
        raise Refused(f"{stage} refuses: {error}") from None
