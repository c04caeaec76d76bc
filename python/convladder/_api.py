"""The package's functions."""

from __future__ import annotations

import json
import shutil
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from . import _device, _sim
from ._arguments import (
    Configuration,
    Floats,
    Pair,
    Problem,
    Stage,
    bias_floats,
    configuration_text,
    epilogue_text,
    filters_of,
    host_floats,
    list_of,
    on_gpu,
    options_of,
    options_text,
    padding_text,
    shape_text,
    stage_text,
)
from .errors import BadInput, DeviceError, Fault, MachineError, Refused, WrongResult

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
        bias: (K,), as the filter; what is added to each sum. It is copied.
        activation: "relu", which makes negative results 0; or None. Bias, residual and activation are done by the
            stage's own kernel, before it stores a sum; a stage that has no such epilogue refuses.
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
        bias: Any = None,
        activation: str | None = None,
        padding: str = "zero",
        pad: Pair | None = None,
        stride: Pair = 1,
        dilation: Pair = 1,
        groups: int = 1,
        configuration: Configuration = None,
    ) -> None:
        epilogue_text(bias is not None, False, activation)
        self._activation = activation
        self._stage = stage_text(stage)
        self._name = _sim.name_of(self._stage)
        self._tensors, self._on_host = _sim.tensors_of(self._stage), _sim.on_host(self._stage)
        self._of_gpu = on_gpu(w)
        self._w = _parameter(w, "the filter").copy()
        self._bias: Floats | None = None
        if bias is not None:
            self._bias = bias_floats(_parameter(bias, "the bias"), filters_of(self._w)).copy()
        self._padding = padding_text(padding)
        self._options = options_of(pad, stride, dilation, groups)
        self._configuration = configuration_text(configuration)
        self._prepared: OrderedDict[Any, Any] = OrderedDict()
        self._launches: dict[Any, _device.TorchLaunch] = {}  # of what is prepared, by how tensors of torch lie
        self._lock = threading.Lock()

    def __call__(self, x: Any, *, residual: Any = None, stream: Any = None) -> Any:
        """The convolution of `x` (N, C, H, W), or (H, W), or (W,): an array (N, K, P, Q).

        A `residual` (N, K, P, Q), of the kind, element type and layout of the output, is added before a ReLU, which it
        wants: activation="relu".

        On the host: float32, or of torch.bfloat16 for a stage in bf16; runs in the simulator (stage 22 on the host's processor) and gives a NumPy array, or a
        tensor for a tensor of torch. On a GPU: an array of torch or CuPy with the element type and layout of the
        stage's tensors, which is read where it lies; runs on the library's current stream, or on `stream`, and gives an
        array of the same library and type. It does not wait for the GPU. With an array of JAX it does, at both ends.

        Raises:
            Refused, Fault, BadInput, MachineError, DeviceError: see convladder.errors.
        """
        if stream is None and self._launches:
            known = self._launches.get(_lie_of(x, residual))
            if known is not None:  # all has been checked for tensors that lie so
                return known(x, residual)
        epilogue = epilogue_text(self._bias is not None, residual is not None, self._activation)
        if residual is not None and on_gpu(residual) != on_gpu(x):
            places = ("a GPU", "the host") if on_gpu(x) else ("the host", "a GPU")
            raise BadInput("the input lies on {}, and the residual on {}; bring both to one".format(*places))
        if on_gpu(x):
            return self._on_gpu(x, residual, epilogue, stream)
        if self._of_gpu or stream is not None:
            reason = "the filter lies on a GPU" if self._of_gpu else "a stream is given"
            raise BadInput(f"the input lies on the host, and {reason}; hand over an input on the GPU, as torch and CuPy do")
        values = self._host_tensor(x, "the input")
        added = None if residual is None else self._host_tensor(residual, "the residual")

        def run() -> Floats:
            prepared = self._prepare(_sim, values.shape, epilogue)
            if added is not None:
                prepared.require_residual(list(added.shape))
            return cast(Floats, prepared.run(values, added))

        return _device.like(x, _named(self._name, run))

    def _host_tensor(self, array: Any, name: str) -> Floats:
        values = host_floats(array, name)
        if _device.is_bf16(array) and not self._tensors.startswith("bf16"):
            raise BadInput(f"{self._name} computes in {self._tensors.split()[0]}, and {name} is in bf16; convert it")
        return values

    def _on_gpu(self, x: Any, residual: Any, epilogue: str, stream: Any) -> Any:
        library = _device.gpu_library()
        array = _device.device_array(x)
        array.require(self._name, self._tensors, self._on_host)
        added = None if residual is None else _device.device_array(residual)
        if added is not None and type(added) is not type(array):
            raise BadInput("input and residual must be arrays of one library, whose stream both are on")

        def launch() -> Any:
            prepared = self._prepare(library, array.shape, epilogue)
            if added is not None:
                added.require(self._name, self._tensors, self._on_host, "residual")
                prepared.require_residual(list(added.shape))
            with array.on_stream(stream) as address:
                output = array.new_output(prepared.output_shape)
                prepared.launch(array.address, output.address, address, 0 if added is None else added.address)
                array.finish(output, prepared)
            self._keep_launch(_lie_of(x, residual), output, prepared)
            return output.array

        return _named(self._name, launch)

    def _keep_launch(self, lie: Any, output: Any, prepared: Any) -> None:
        """Of tensors of torch, whose calls are the host's work alone where layers are small."""
        if lie is None:
            return
        with self._lock:
            if any(kept is prepared for kept in self._prepared.values()):
                self._launches[lie] = _device.TorchLaunch(prepared, output)

    def _prepare(self, library: Any, shape: Sequence[int], epilogue: str) -> Any:
        key = (library.__name__, tuple(shape), epilogue)
        with self._lock:
            if key in self._prepared:
                self._prepared.move_to_end(key)
                return self._prepared[key]
        options = options_text(len(shape), *self._options, epilogue)
        bias = _bias_for(epilogue, self._bias, self._w)
        prepared = library.Prepared(
            self._stage, list(shape), list(self._w.shape), self._w, bias, options, self._padding, self._configuration
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
    bias: Any = None,
    residual: Any = None,
    activation: str | None = None,
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

    With `bias` (K,), `residual` (N, K, P, Q) and activation="relu" it is max(0, convolution + bias + residual), by a
    stage that computes that with the convolution; any other refuses. A residual wants the ReLU.

    What the stage prepared is kept for the last few filters; a filter or a bias with other numbers prepares anew. On a
    GPU that comparison needs these numbers on the host, but for tensors of torch, which tell when they changed (not
    when they were written to by their `data`): use Conv where calls are many.
    """
    epilogue_text(bias is not None, residual is not None, activation)
    stage = _device.stage_for(stage_text(stage), x)
    pad, stride, dilation, groups = options_of(pad, stride, dilation, groups)
    configuration = configuration_text(configuration)
    options = (stage, activation, padding_text(padding), pad, stride, dilation, groups, configuration)
    of_filter, kept_filter = _identity(w, "the filter")
    of_bias, kept_bias = (None, None) if bias is None else _identity(bias, "the bias")
    key = (options, of_filter, of_bias)
    with _kept_lock:
        found = _kept.get(key)
        if found:
            _kept.move_to_end(key)
    if not found:
        made = Conv(
            stage,
            w,
            bias=bias,
            activation=activation,
            padding=padding,
            pad=pad,
            stride=stride,
            dilation=dilation,
            groups=groups,
            configuration=configuration,
        )
        found = ((kept_filter, kept_bias), made)
        with _kept_lock:
            _kept[key] = found
            while len(_kept) > _KEPT_FILTERS:
                _kept.popitem(last=False)
    return found[1](x, residual=residual, stream=stream)


def refusal(
    stage: Stage,
    x: Any = None,
    w: Any = None,
    *,
    bias: Any = None,
    residual: Any = None,
    activation: str | None = None,
    shape: Problem | None = None,
    padding: str = "zero",
    pad: Pair | None = None,
    stride: Pair = 1,
    dilation: Pair = 1,
    groups: int = 1,
) -> str | None:
    """The rule by which a stage refuses a problem, or None where it computes it. Nothing is computed.

    The problem is that of the arrays `x` and `w`, as Conv takes them, or of `shape`: "c=64,h=56,w=56,k=64,r=3,s=3", or
    a mapping of these names, which may have pads, strides, dilations, groups and an epilogue of its own. Of `bias` and
    `residual` it matters only whether they are there.
    """
    name = stage_text(stage)
    if shape is not None:
        return _sim.refusal_of_shape(name, shape_text(shape), padding_text(padding)) or None
    if x is None or w is None:
        raise BadInput("refusal() wants an input and a filter, or a shape")
    input, filter = host_floats(x, "the input"), host_floats(w, "the filter")
    epilogue = epilogue_text(bias is not None, residual is not None, activation)
    options = options_text(input.ndim, pad, stride, dilation, groups, epilogue)
    mode = padding_text(padding)
    return _sim.refusal_of_arrays(name, list(input.shape), list(filter.shape), options, mode, filter) or None


@dataclass(frozen=True)
class Simulation:
    """What the simulator saw of one launch, which was compared with the exact reference."""

    output: Floats  #: (N, K, P, Q); empty of a run with a fault
    counters: dict[str, int | None]  #: by the JSON's names: bytes, requests, sectors, conflicts, barriers, flops
    lines: list[dict[str, Any]]  #: of each line of the source: file ("?" without addr2line), line and its counters
    faults: list[dict[str, Any]]  #: of a run that raised Fault, which has this as its `simulation`; else empty
    result: dict[str, Any]  #: all of it, as `./lab run --lines --json` prints it


def simulate(
    stage: Stage,
    x: Any,
    w: Any,
    *,
    bias: Any = None,
    residual: Any = None,
    activation: str | None = None,
    padding: str = "zero",
    pad: Pair | None = None,
    stride: Pair = 1,
    dilation: Pair = 1,
    groups: int = 1,
    configuration: Configuration = None,
    without_barrier: str | None = None,
) -> Simulation:
    """Runs a stage in the simulator, checks its result, and tells what it did. The arguments are those of conv(), with
    arrays on the host. Stage 22, which runs on the host's processor, has no counters.

    Args:
        without_barrier: the line of a `__syncthreads` that does nothing in this run, as in "tiled_1d.cu:41": what would
            be wrong without it?

    Raises:
        Refused, Fault, WrongResult, BadInput, MachineError, DeviceError: see convladder.errors.
    """
    if without_barrier is not None:
        if not isinstance(without_barrier, str):
            raise BadInput(f'without_barrier must name a file and a line, as "tiled_1d.cu:41"; got {without_barrier!r}')
        if shutil.which("addr2line") is None:
            raise MachineError("addr2line tells the lines of barriers, and is not on PATH; install binutils")
    name = stage_text(stage)
    epilogue = epilogue_text(bias is not None, residual is not None, activation)
    input, filter = host_floats(x, "the input"), host_floats(w, "the filter")
    numbers = None if bias is None else bias_floats(bias, filters_of(filter))
    added = None if residual is None else host_floats(residual, "the residual")
    text, output = _sim.simulate(
        name,
        list(input.shape),
        input,
        list(filter.shape),
        filter,
        _bias_for(epilogue, numbers, filter),
        [] if added is None else list(added.shape),
        added,
        options_text(input.ndim, pad, stride, dilation, groups, epilogue),
        padding_text(padding),
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
    stages: Stage | Sequence[Stage] | None = None,
    *,
    tracks: str | Sequence[str] | None = None,
    shape: Problem | Sequence[Problem] | None = None,
    padding: str | None = None,
    backend: str = "auto",
) -> list[dict[str, Any]]:
    """Rows as `./lab bench --json` has them, without cuDNN: a dictionary for each stage and problem.

    Args:
        stages, tracks: which, one or several; all without them.
        shape: the user's layers, as of refusal(), instead of the tracks' workloads.
        padding: of those.
        backend: "gpu", "sim", or "auto": the GPU where there is one and the package has a GPU side.
    """
    library = _device.library_for(backend)
    names = [stage_text(stage) for stage in list_of(stages)]
    shapes = [shape_text(each) for each in list_of(shape)]
    text = library.bench(names, list_of(tracks), shapes, None if padding is None else padding_text(padding))
    return cast("list[dict[str, Any]]", json.loads(text))


def _parameter(array: Any, name: str) -> Floats:
    """A filter or a bias, on the host."""
    return _device.to_host(array, name) if on_gpu(array) else host_floats(array, name)


def _identity(array: Any, name: str) -> tuple[Any, Any]:
    """What tells a filter or a bias from all others, and the tensor to be kept for that, since it keeps its memory."""
    known = _device.identity_of(array)
    if known is not None:
        return known, array
    values = _parameter(array, name)
    return (values.shape, values.tobytes(), on_gpu(array)), None


def _bias_for(epilogue: str, bias: Floats | None, w: Floats) -> Floats | None:
    """Zeros where an epilogue has a bias and the caller has none."""
    if epilogue == "none" or bias is not None:
        return bias
    return np.zeros(filters_of(w), np.float32)


def _lie_of(x: Any, residual: Any) -> Any:
    """All of the tensors of torch on a GPU that a launch depends on, but for their addresses. None for other arrays."""
    lie = _device.lie_of(x)
    if residual is None or lie is None:
        return lie
    other = _device.lie_of(residual)
    return None if other is None else (lie, other)


def _named(stage: str, work: Any) -> Any:
    """Says which stage it is that refuses, as the command line does."""
    try:
        return work()
    except Refused as error:
        raise Refused(f"{stage} refuses: {error}") from None
