"""The stages of ConvLadder on arrays: in the simulator, which counts what they do, and on a GPU.

    import convladder, numpy as np
    y = convladder.conv(x, w, stage=3)
    seen = convladder.simulate(3, x, w)
    seen.counters["global_load_sectors"]
"""

from ._api import Conv, Simulation, bench, conv, refusal, simulate, stages
from .errors import BadInput, ConvLadderError, DeviceError, Fault, MachineError, Refused, WrongResult

__all__ = [
    "BadInput",
    "Conv",
    "ConvLadderError",
    "DeviceError",
    "Fault",
    "MachineError",
    "Refused",
    "Simulation",
    "WrongResult",
    "bench",
    "conv",
    "refusal",
    "simulate",
    "stages",
]
