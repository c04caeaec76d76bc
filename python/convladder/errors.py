"""What convladder raises. Each message is the sentence that the command line prints, its options as arguments."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._api import Simulation


class ConvLadderError(Exception):
    """The base of all of them."""


class BadInput(ConvLadderError, ValueError):
    """Unusable arguments: an unknown stage, shapes that do not fit, another element type. Exit status 2."""


class Refused(ConvLadderError):
    """A rule of the stage refuses a well-formed problem; the message names the rule. Exit status 3."""


class MachineError(ConvLadderError):
    """This machine cannot do it: no GPU, a GPU that the stage does not run on, too little memory. Exit status 2."""


class DeviceError(ConvLadderError):
    """A kernel or a CUDA call failed while running. Exit status 1."""


class WrongResult(ConvLadderError):
    """A result is outside its bound of errors. Exit status 1."""


class Fault(ConvLadderError):
    """The simulator found a fault: a race, an access out of bounds, a missing barrier. Exit status 1.

    `faults` has a record for each, with the keys of the command line's JSON: kind, kernel, file, line, block, thread,
    other and more. `simulation` is what simulate() saw of the run, whose counters end where the faulty blocks did; None
    where another function met the fault.
    """

    def __init__(
        self, message: str, faults: str | list[dict[str, Any]], simulation: Simulation | None = None
    ) -> None:
        super().__init__(message)
        self.faults: list[dict[str, Any]] = json.loads(faults) if isinstance(faults, str) else faults
        self.simulation = simulation
