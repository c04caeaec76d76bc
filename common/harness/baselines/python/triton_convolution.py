"""Implicit GEMM in Triton: the stages' idea of lesson 31 in Triton's language, halves in NHWC, sums in fp32."""
import concurrent.futures

import torch
import triton
import triton.language as tl

# Outputs and filters of a block, channels of a step, warps, buffers.
CONFIGURATIONS = [triton.Config({"M": m, "N": n, "D": d}, num_warps=warps, num_stages=stages)
                  for m, n, d, warps, stages in [(64, 64, 64, 4, 4), (128, 64, 64, 4, 4), (64, 128, 64, 4, 4),
                                                 (128, 128, 64, 4, 4), (128, 128, 64, 8, 3), (128, 256, 64, 8, 3),
                                                 (256, 128, 64, 8, 3), (256, 64, 64, 8, 4), (128, 64, 32, 4, 5)]]


@triton.autotune(CONFIGURATIONS, key=["outputs", "filters", "channels", "width", "ROWS", "COLUMNS", "stride_x"])
@triton.jit
def convolve(x, f, y, outputs, filters, channels, height, width, out_height, out_width, pad_y, pad_x, stride_y,
             stride_x, dilation_y, dilation_x, ROWS: tl.constexpr, COLUMNS: tl.constexpr, M: tl.constexpr,
             N: tl.constexpr, D: tl.constexpr):
    """x (n, h, w, c), f (r, s, c, k), y (n, p, q, k)."""
    # 1. A block makes M outputs of N filters; blocks of the same filters are neighbours.
    blocks = tl.cdiv(outputs, M)
    m = tl.program_id(0) % blocks * M + tl.arange(0, M)
    n = tl.program_id(0) // blocks * N + tl.arange(0, N)
    image = m // (out_height * out_width)
    top = m // out_width % out_height * stride_y - pad_y
    left = m % out_width * stride_x - pad_x
    d = tl.arange(0, D)
    # 2. Sums over the taps, and for each over the channels.
    steps = tl.cdiv(channels, D)
    sums = tl.zeros((M, N), dtype=tl.float32)
    for i in range(ROWS * COLUMNS * steps):
        tap = i // steps
        c = i % steps * D + d
        row = top + tap // COLUMNS * dilation_y
        column = left + tap % COLUMNS * dilation_x
        inside = (m < outputs) & (row >= 0) & (row < height) & (column >= 0) & (column < width)
        pixels = tl.load(x + ((image * height + row) * width + column)[:, None] * channels + c[None, :],
                         mask=inside[:, None] & (c < channels)[None, :], other=0.0)
        taps = tl.load(f + (tap * channels + c)[:, None] * filters + n[None, :],
                       mask=(c < channels)[:, None] & (n < filters)[None, :], other=0.0)
        sums = tl.dot(pixels, taps, sums)
    # 3. The outputs, as halves.
    tl.store(y + m[:, None].to(tl.int64) * filters + n[None, :], sums.to(tl.float16),
             mask=(m < outputs)[:, None] & (n < filters)[None, :])


class Triton:
    """As rows.Torch."""

    def __init__(self, torch, problem, dtype, device):
        self.problem, self.device, self.compiled = problem, device, False
        self.library = "Triton " + triton.__version__

    def tensors(self, images, taps):
        p = self.problem
        out_h, out_w = ((p[size] + 2 * p["pad_" + size] - p["dilation_" + size] * (p[side] - 1) - 1)
                        // p["stride_" + size] + 1 for size, side in (("h", "r"), ("w", "s")))
        return [images.to(self.device, torch.float16).permute(0, 2, 3, 1).contiguous(),
                taps.to(self.device, torch.float16).permute(2, 3, 1, 0).contiguous(),
                torch.full((p["n"], out_h, out_w, p["k"]), float("nan"), dtype=torch.float16, device=self.device)]

    def arguments(self, tensors):
        p, y = self.problem, tensors[2]
        return (*tensors, y.numel() // p["k"], p["k"], p["c"], p["h"], p["w"], y.shape[1], y.shape[2], p["pad_h"],
                p["pad_w"], p["stride_h"], p["stride_w"], p["dilation_h"], p["dilation_w"], p["r"], p["s"])

    def compile(self, arguments):
        """All tiles side by side. The autotuner would compile one after the other; what fails here, it meets again."""
        with concurrent.futures.ThreadPoolExecutor(len(CONFIGURATIONS)) as pool:
            for tile in CONFIGURATIONS:
                pool.submit(convolve.fn.warmup, *arguments, grid=(1,), **tile.all_kwargs())
        self.compiled = True

    def launch(self, tensors):
        arguments = self.arguments(tensors)
        if not self.compiled:
            self.compile(arguments)
        outputs, filters = arguments[3], arguments[4]
        convolve[lambda meta: (triton.cdiv(outputs, meta["M"]) * triton.cdiv(filters, meta["N"]),)](*arguments)
        return tensors[2].permute(0, 3, 1, 2)
