"""What a Conv keeps of tensors on a GPU, by stand-ins for torch and for the package's GPU side: no GPU is needed."""
import contextlib
import sys
import types

import numpy as np
import pytest

import convladder
from convladder import _device

STAGE = 33  # fp16 in NHWC


class Type:
    def __init__(self, name):
        self.name = name

    def __str__(self):
        return f"torch.{self.name}"


FLOAT, HALF = Type("float32"), Type("float16")


def strides_of(shape, last):
    return _device._strides_of(shape, "NHWC" if last else "NCHW")


class Tensor:
    """Of torch, as far as the package looks at one."""

    is_cuda = True

    def __init__(self, shape, dtype=HALF, last=True, gpu=0, strides=None):
        self.shape, self.dtype, self.device = tuple(shape), dtype, types.SimpleNamespace(index=gpu)
        self.strides = strides or strides_of(self.shape, last)

    def stride(self):
        return self.strides

    def data_ptr(self):
        return id(self)

    def get_device(self):
        return self.device.index

    def new_empty_strided(self, shape, strides):
        return Tensor(shape, self.dtype, gpu=self.device.index, strides=strides)


class Stream:
    def __init__(self, address, gpu=0):
        self.cuda_stream, self.device = address, types.SimpleNamespace(index=gpu)


class Library:
    """The GPU side: notes what is prepared and launched."""

    __name__ = "convladder._gpu"

    def __init__(self):
        self.prepared, self.launched = [], []
        library = self

        class Prepared:
            def __init__(self, stage, shape, *others):
                self.output_shape = list(shape)
                library.prepared.append(tuple(shape))

            def require_residual(self, shape):
                if list(shape) != self.output_shape:
                    raise convladder.BadInput("the residual must have the output's shape")

            def launch(self, source, target, stream, residual):
                library.launched.append((source, target, stream, residual))

        self.Prepared = Prepared


@pytest.fixture
def library(monkeypatch):
    torch = types.SimpleNamespace(
        Tensor=Tensor, channels_last="last", contiguous_format="contiguous",
        empty=lambda shape, dtype, device, memory_format: Tensor(shape, dtype, memory_format == "last", device.index),
        _C=types.SimpleNamespace(_cuda_getCurrentRawStream=lambda gpu: 7),
        cuda=types.SimpleNamespace(Stream=Stream, current_stream=lambda device: Stream(7),
                                   stream=lambda stream: contextlib.nullcontext()))
    own = Library()
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(_device, "gpu_library", lambda: own)
    return own


@pytest.fixture
def conv():
    return convladder.Conv(STAGE, np.ones((16, 16, 3, 3), np.float32))


def test_a_tensor_that_lies_as_one_before_is_launched_on_at_once(library, conv, monkeypatch):
    first, second = Tensor((1, 16, 8, 8)), Tensor((1, 16, 8, 8))
    one = conv(first)
    monkeypatch.setattr(_device, "device_array", None)  # nothing is looked at again
    two = conv(second)
    assert library.prepared == [(1, 16, 8, 8)]
    assert library.launched == [(id(first), id(one), 7, 0), (id(second), id(two), 7, 0)]
    assert one is not two and (two.shape, two.stride(), two.dtype) == (one.shape, one.stride(), HALF)


def test_one_that_lies_otherwise_is_looked_at(library, conv):
    conv(Tensor((1, 16, 8, 8)))
    for other, message in ((Tensor((1, 16, 8, 8), last=False), "NHWC"), (Tensor((1, 16, 8, 8), FLOAT), "fp16"),
                           (Tensor((1, 16, 8, 8), gpu=1), "first GPU")):
        with pytest.raises(convladder.BadInput, match=message):
            conv(other)
    conv(Tensor((2, 16, 8, 8)))
    assert library.prepared == [(1, 16, 8, 8), (2, 16, 8, 8)] and len(library.launched) == 2


def test_a_stream_is_the_callers(library, conv):
    x = Tensor((1, 16, 8, 8))
    conv(x)
    y = conv(x, stream=Stream(9))
    assert library.launched[-1] == (id(x), id(y), 9, 0)
    with pytest.raises(convladder.BadInput, match="first GPU"):
        conv(x, stream=Stream(9, gpu=1))


def test_what_is_no_longer_kept_is_prepared_again(library, conv):
    for n in range(1, 11):
        conv(Tensor((n, 16, 8, 8)))
    assert len(conv._prepared) == 8 and len(conv._launches) <= 8
    assert all(launch._prepared in conv._prepared.values() for launch in conv._launches.values())
    conv(Tensor((1, 16, 8, 8)))
    assert library.prepared.count((1, 16, 8, 8)) == 2


@pytest.fixture
def fused():
    return convladder.Conv(32, np.ones((16, 16, 3, 3), np.float32), bias=np.ones(16, np.float32), activation="relu")


def test_a_residual_is_launched_on_where_it_lies(library, fused, monkeypatch):
    x, residual, other = (Tensor((1, 16, 8, 8)) for _ in range(3))
    one = fused(x, residual=residual)
    plain = fused(x)
    monkeypatch.setattr(_device, "device_array", None)  # nothing is looked at again
    two, again = fused(x, residual=other), fused(x)
    assert library.prepared == [(1, 16, 8, 8)] * 2  # with the residual and without
    assert library.launched == [(id(x), id(one), 7, id(residual)), (id(x), id(plain), 7, 0),
                                (id(x), id(two), 7, id(other)), (id(x), id(again), 7, 0)]


def test_a_residual_that_lies_otherwise_is_looked_at(library, fused):
    x = Tensor((1, 16, 8, 8))
    fused(x, residual=Tensor((1, 16, 8, 8)))
    for other, message in (
        (Tensor((1, 16, 8, 8), last=False), r"takes fp16 in NHWC \(torch.channels_last\) .* the residual is fp16 NCHW"),
        (Tensor((1, 16, 8, 8), FLOAT), "the residual is fp32 NHWC"),
        (Tensor((1, 16, 8, 8), gpu=1), "first GPU"),
        (Tensor((1, 16, 4, 8)), "the output's shape"),
        (np.ones((1, 16, 8, 8), np.float32), "the input lies on a GPU, and the residual on the host"),
    ):
        with pytest.raises(convladder.BadInput, match=message):
            fused(x, residual=other)
    assert len(library.launched) == 1
