"""Runs convolutions by PyTorch and by Triton for the rows beside the stages.

The harness starts this program once (common/harness/run/python_run.cpp) and drives it: each line of the standard input
is a request in JSON, each line of the standard output its answer. Tensors pass as files of floats in NCHW. The program
does what the harness tells it, one step at a time; when to run, what to check and how often to sample is decided there.

    {"do": "place", "row": ROW, "problem": {...}, "dtype": "fp16", "device": "cuda", "input": FILE, "filter": FILE}
        makes the tensors, prepares, and runs once: a first run may search for the fastest way. Answers with the
        "library" and its version, or with "refused", the reason why there is none
    {"do": "run", "output": FILE}               one launch; writes the result
    {"do": "graph", "copies": N, "us": TIME}    captures launches that take about so long, on N copies of the tensors
    {"do": "sample"}                            replays the graph; answers with microseconds a launch, "us"
    {"do": "clear"}                             frees the tensors

A request that fails is answered with "error", one line.
"""
import concurrent.futures
import importlib
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


def floats(torch, path, shape):
    count = 1
    for size in shape:
        count *= size
    return torch.from_file(path, size=count, dtype=torch.float32).reshape(shape)


class Torch:
    """torch.nn.functional.conv2d: NCHW in fp32 without TF32, NHWC in fp16. cuDNN's fastest algorithm is searched for."""

    def __init__(self, torch, problem, dtype, device):
        self.torch, self.problem = torch, problem
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.allow_tf32 = False
        self.type = torch.float16 if dtype == "fp16" else torch.float32
        self.layout = torch.channels_last if dtype == "fp16" else torch.contiguous_format
        self.device = device
        self.library = "PyTorch " + torch.__version__

    def tensors(self, images, taps):
        return [each.to(self.device, self.type).contiguous(memory_format=self.layout) for each in (images, taps)]

    def launch(self, tensors):
        p = self.problem
        return self.torch.nn.functional.conv2d(
            *tensors, stride=(p["stride_h"], p["stride_w"]), padding=(p["pad_h"], p["pad_w"]),
            dilation=(p["dilation_h"], p["dilation_w"]), groups=p["groups"])


class Rows:
    """The requests, on one problem at a time."""

    def __init__(self, importing):
        """`importing` gives PyTorch, or raises why there is none: a Future."""
        self.importing, self.torch, self.cuda = importing, None, False
        self.copies, self.captured = [], None

    def place(self, request):
        self.clear()
        try:
            torch = self.importing.result()
        except ImportError as error:
            return {"refused": f"PyTorch is missing in {sys.executable}: {error}"}
        cuda = request["device"] == "cuda"
        if cuda and not torch.cuda.is_available():
            return {"refused": f"PyTorch {torch.__version__} of {sys.executable} sees no GPU"}
        self.torch, self.cuda = torch, cuda
        kind = Torch
        if request["row"] == "triton":
            try:
                from triton_convolution import Triton as kind
            except ImportError as error:
                return {"refused": f"Triton is missing in {sys.executable}: {error}"}
        p = request["problem"]
        self.way = kind(torch, p, request["dtype"], request["device"])
        images = floats(torch, request["input"], (p["n"], p["c"], p["h"], p["w"]))
        taps = floats(torch, request["filter"], (p["k"], p["c"] // p["groups"], p["r"], p["s"]))
        self.copies = [self.way.tensors(images, taps)]
        with torch.inference_mode():
            self.way.launch(self.copies[0])
        self.wait()
        return {"library": self.way.library}

    def run(self, request):
        for output in self.copies[0][2:]:  # where the row has its own: what is not written must show
            output.fill_(float("nan"))
        with self.torch.inference_mode():
            result = self.way.launch(self.copies[0])
            self.wait()
            floats_out = result.float().contiguous(memory_format=self.torch.contiguous_format).cpu()
        self.torch.from_file(request["output"], shared=True, size=floats_out.numel(),
                             dtype=self.torch.float32).copy_(floats_out.reshape(-1))
        return {}

    def graph(self, request):
        """As GraphTimer (common/harness/device/timing.hpp): warmed up by two replays. Copies are made on the device."""
        torch = self.torch
        self.captured = None
        while len(self.copies) < request["copies"]:
            self.copies.append([each.clone() for each in self.copies[0]])
        del self.copies[request["copies"]:]
        with torch.inference_mode():
            once = self.time(lambda: self.way.launch(self.copies[0]))
            if once < request["us"]:
                once = self.time(lambda: [self.way.launch(self.copies[0]) for _ in range(10)]) / 10
            launches = min(max(request["us"] / max(once, 0.1), 1), 200)
            rounds = max(1, int(launches) // len(self.copies))
            self.captured = torch.cuda.CUDAGraph()
            outputs = [None] * len(self.copies)  # each copy's lives on until the next round
            with torch.cuda.graph(self.captured):
                for _ in range(rounds):
                    for i, tensors in enumerate(self.copies):
                        outputs[i] = self.way.launch(tensors)
        self.launches = rounds * len(self.copies)
        for _ in range(2):
            self.captured.replay()
        self.wait()
        return {}

    def sample(self, request):
        if self.cuda:
            return {"us": self.time(self.captured.replay) / self.launches}
        with self.torch.inference_mode():
            self.way.launch(self.copies[0])
        return {}

    def time(self, work):
        """Microseconds between two events."""
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1000

    def wait(self):
        if self.cuda:
            self.torch.cuda.synchronize()

    def clear(self, request=None):
        self.copies, self.captured = [], None
        if self.cuda:
            self.torch.cuda.empty_cache()
        return {}


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    # While the harness does something else. The first request waits for that: nothing is imported beside it.
    rows = Rows(concurrent.futures.ThreadPoolExecutor(1).submit(importlib.import_module, "torch"))
    requests = {"place": rows.place, "run": rows.run, "graph": rows.graph, "sample": rows.sample,
                "clear": rows.clear}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = requests[request["do"]](request)
        except Exception as error:  # the row's, whatever it is
            answer = {"error": " ".join(f"{type(error).__name__}: {error}".split())[:400]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
