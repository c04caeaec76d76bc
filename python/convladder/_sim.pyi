import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Shape = list[int]

def stages() -> str: ...
def no_gpu_reason() -> str: ...
def tensors_of(stage: str, /) -> str: ...
def name_of(stage: str, /) -> str: ...
def on_host(stage: str, /) -> bool: ...
def refusal_of_arrays(
    stage: str, input: Shape, filter: Shape, shape: str | None, padding: str, taps: Floats | None, /
) -> str: ...
def refusal_of_shape(stage: str, shape: str, padding: str, /) -> str: ...
def simulate(
    stage: str,
    input_shape: Shape,
    input: Floats,
    filter_shape: Shape,
    filter: Floats,
    shape: str | None,
    padding: str,
    configuration: str,
    /,
) -> tuple[str, Floats | None]: ...
def bench(stages: list[str], tracks: list[str], shapes: list[str], padding: str | None, /) -> str: ...

class Prepared:
    def __init__(
        self,
        stage: str,
        input_shape: Shape,
        filter_shape: Shape,
        filter: Floats,
        shape: str | None,
        padding: str,
        configuration: str,
        /,
    ) -> None: ...
    @property
    def output_shape(self) -> list[int]: ...
    def run(self, input: Floats, /) -> Floats: ...
    def launch(self, input: int, output: int, stream: int, /) -> None: ...
