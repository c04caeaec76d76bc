#!/usr/bin/env python3
"""Tests of `./lab fuse`: what it makes of stage 27, what it refuses, and that the made stage runs and is right.

Usage: test_fuse.py [CMAKE_BUILD_FOLDER]. Exit status 77 where there is no libclang for Python."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/lab"))

import fuse  # noqa: E402
from machine import Unusable  # noqa: E402

STAGE = ROOT / "chapters/27-winograd-sync-free"
KNOWN = json.loads((STAGE / "stage.json").read_text())
BUILD = None  # CMake's

PRODUCER = """
__host__ __device__ __forceinline__ int tiles_of(const Winograd& w) { return w.tiles; }
__global__ void produce(const half* input, half* v, Winograd w) {
  const int tiles = tiles_of(w), elements = tiles * 16;
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= elements) return;
  const int t = i / 16, c = i % 16;
  half* out = v + t * 16 + c;
  for (int position = 0; position < 36; ++position) out[position * elements] = input[i];
}
"""
CONSUMER = """
constexpr int kTiles = 32;
__global__ void consume(const half* v, half* m, Winograd w) {
  const int tiles = tiles_of(w), warp = threadIdx.x / 32;
  const int first_t = static_cast<int>(blockIdx.x) * kTiles;
  const half* rows = v + (warp * tiles + first_t) * 16;
  for (int block = 0; block < 1; ++block) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::load_matrix_sync(a, rows, 16);
    rows += tiles * 16;
  }
  m[warp * tiles + first_t] = __float2half_rn(0.0f);
}
"""
FILE = """#include "chapters/26-winograd-tensor-core/half_transforms.cuh"
namespace convladder {
namespace {
using Form = F4Fractions;
%s%s
class Two final : public Stage {
  Verdict check(const ConvProblem&, const DeviceLimits&) const override { return Verdict::accept(); }
  void launch(const ConvProblem&, const Tensors& tensors, Stream stream) override {
    const Winograd w{};
    convladder::launch(produce, dim3(w.tiles), dim3(256), 0, stream)(tensors.half_input, tensors.half_output, w);
    convladder::launch(consume, dim3(w.tiles), dim3(32), 0, stream)(tensors.half_input, tensors.half_output, w);
  }
};
}  // namespace
}  // namespace convladder
CONVLADDER_STAGE(convladder::Two)
"""

# The same with a template's parameters for the tiles of a block and a barrier, as 27 has them.
TYPES = """
template <int Tbm>
struct Tile {
  static constexpr int tbm = Tbm;
};
template <class T, int Tbm>
struct Fixed {
  using Block = Tile<Tbm>;
};
using Usual = Fixed<float, 32>;
"""
TEMPLATE = TYPES + CONSUMER.replace("constexpr int kTiles = 32;", "template <class Block, bool Wait>") \
    .replace("Winograd w)", "Winograd w, Block b)").replace("kTiles;", "b.tbm;") \
    .replace("    rows +=", "    if (Wait) __syncthreads();\n    const auto past = [&](int t) { return t >= tiles; };\n"
                            "    if (past(first_t)) continue;\n    rows +=")
HELD = FILE.replace("    convladder::launch(consume,", "    auto kernel = consume<decltype(Usual::Block{}), false>;\n"
                                                         "    convladder::launch(kernel,") \
    .replace("half_output, w);\n  }", "half_output, w, Usual::Block{});\n  }")



class Refusals(unittest.TestCase):
    def made(self, producer=PRODUCER, consumer=CONSUMER, through="shmem", file=FILE):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "two").mkdir()
            (pathlib.Path(folder) / "two/two.cu").write_text(file % (producer, consumer))
            return fuse.made(pathlib.Path(folder) / "two", through, 16)

    def refuses(self, sentence, line, **kernels):
        with self.assertRaises(Unusable) as caught:
            self.made(**kernels)
        text = kernels.get("file", FILE) % (kernels.get("producer", PRODUCER), kernels.get("consumer", CONSUMER))
        number = 1 + text[:text.index(line)].count("\n")
        self.assertRegex(str(caught.exception), rf"^fuse: \S+two\.cu:{number}: .*{re.escape(sentence)}")
        self.assertNotIn("\n", str(caught.exception))

    def changed(self, text, old, new):
        self.assertIn(old, text)
        return text.replace(old, new)

    def test_two_small_kernels(self):
        text = self.made()
        self.assertIn("constexpr int kTiles = 16;", text)
        self.assertIn("const int tiles = kTiles, elements = tiles * 16;", text)
        self.assertIn("half* out = v + (t - first_t) * 16 + c;", text)
        self.assertIn("rows = v + (warp * kTiles + 0) * 16;", text)
        self.assertIn("m[warp * tiles + first_t]", text)  # of another tensor

    def test_producers(self):
        for old, new, sentence, line in [
                ("if (i >= elements) return;", "if (i >= elements) return; if (i == 3) return;", "returns here",
                 "if (i == 3)"),
                ("const int t =", "__syncthreads();\n  const int t =", "has a barrier", "__syncthreads"),
                ("if (i >= elements) return;\n", "", "must leave by", "const int i ="),
                ("blockIdx.x * 256 + threadIdx.x", "threadIdx.x", "in one declaration alone", "const int i ="),
                ("i / 16, c = i % 16", "i % tiles_of(w), c = i / tiles_of(w)", "must be neighbours", "const int t ="),
                ("half* out = v + t * 16 + c;", "half* out = v + t * 16 + (c ^ 1);", "sum of products", "out[position"),
                ("= input[i];", "+= input[i];", "uses v other than", "out[position")]:
            with self.subTest(new=new):
                self.refuses(sentence, line, producer=self.changed(PRODUCER, old, new))

    def test_consumers(self):
        for old, new, sentence, line in [
                ("a, rows, 16", "a, rows, 24", "leading dimension", "wmma::load_matrix_sync"),
                ("rows += tiles", "if (block > 9) return;\n    rows += tiles", "returns here", "if (block > 9)"),
                ("* kTiles;", "* 32;", "named constant", "const int first_t"),
                ("const int tiles = tiles_of(w), warp", "const int tiles = tiles_of(w) + blockIdx.z, warp",
                 "uses blockIdx.z", "const int tiles = tiles_of(w) + blockIdx.z")]:
            with self.subTest(new=new):
                self.refuses(sentence, line, consumer=self.changed(CONSUMER, old, new))

    def test_template(self):
        text = self.made(consumer=TEMPLATE, file=HELD)
        self.assertIn("using Block = Tile<16>;\n[[maybe_unused]] constexpr bool Wait = false;\n", text)
        self.assertNotIn("(Wait)", text)
        self.assertIn("[&](int t) { return t >= tiles; }", text)
        self.assertIn("rows = v + (warp * Block::tbm + 0) * 16;", text)
        waiting = self.made(consumer=TEMPLATE, file=HELD.replace("false>", "true>"))
        self.assertIn("constexpr bool Wait = true;", waiting)
        self.assertIn("if (Wait) __syncthreads();", waiting)

    def test_templates(self):
        for old, new, sentence, line in [
                ("using Usual =", "using Others =", "as Usual", "consume(const"),
                ("int Tbm>\nstruct Fixed", "int Tiles>\nstruct Fixed", "Block::tbm one of them", "using Usual"),
                ("if (past(first_t)) continue;", "if (past(first_t)) return;", "returns here", "if (past(first_t)")]:
            with self.subTest(new=new):
                file = HELD.replace("Usual", "Others") if "Others" in new else HELD
                self.refuses(sentence, line, consumer=self.changed(TEMPLATE, old, new).replace(
                    "Tile<Tbm>", "Tile<Tiles>" if "Tiles" in new else "Tile<Tbm>"), file=file)

    def test_other_stages(self):
        for name in ("01-naive-1d", "17-im2col", "24-winograd-bgemm", "26-winograd-tensor-core", "28-winograd-pkf-shmem"):
            with self.subTest(name), self.assertRaisesRegex(Unusable, r"^fuse: chapters/\S+:\d+: [^\n]+$"):
                fuse.made(ROOT / "chapters" / name, "shmem", 16)


class Made(unittest.TestCase):
    def test_only_indices_of_v_change(self):
        text = fuse.made(STAGE, "shmem", 16)
        self.assertIn("tile_rows += deep * Block::tbm * kBlock;", text)
        self.assertIn("m + (position * tiles + first_t + Shape::kTiles * i) * filters", text)  # `tiles` of another tensor
        self.assertIn("using Block = FixedBlockTile<16, 64, 16>;", text)
        kernel = text[text.index("transform_inputs_and_multiply("):text.index("// How a block's share")]
        self.assertNotRegex(kernel, r"return;|Barriers")
        self.assertEqual(kernel.count("return "), 3)  # the lambdas'
        self.assertEqual(kernel.count("__syncthreads();"), 2)
        self.assertEqual(fuse.made(STAGE, "llc", 32).count("__syncthreads();"), 3)

    def test_pieces_of_the_lesson(self):
        """What docs/fuse.md says that patterns would get wrong is so in the kernels."""
        used = (STAGE / "winograd_sync_free.cu").read_text()
        made = (ROOT / "chapters/26-winograd-tensor-core/half_transforms.cuh").read_text()
        kernel = used[used.index("multiply(const"):used.index("#if", used.index("multiply(const"))]
        self.assertIn("(position * blocks * tiles + first_t) * kBlock", kernel)  # V's
        self.assertIn("(position * tiles + first_t + Shape::kTiles * i) * filters", kernel)  # M's
        self.assertIn("past_tiles = [&](int i) { return b.tbm > kTileUnit &&", kernel)
        self.assertEqual(kernel.count("if (Barriers) __syncthreads();"), 2)
        producer = made[made.index("__global__ void transform_inputs"):made.index("// The outputs of tile t")]
        self.assertIn("if (i >= elements / 2) return;", producer)
        self.assertIn("block = i / 32", producer)
        self.assertIn("for (int block = 0;", kernel)
        self.assertIn("const int i = blockIdx.x", producer)
        self.assertIn("for (int i = 0;", kernel)

    def test_built_checked_and_pruned(self):
        if BUILD is None:
            self.skipTest("no build folder was given")
        file = fuse.file_of_stage("llc", BUILD)
        before = {path: path.read_text() for path in file.parent.glob("*")}  # somebody's own
        fuse.write(fuse.made(STAGE, "llc", 16), KNOWN, "llc", 16, BUILD)
        try:
            done = subprocess.run(["cmake", "--build", BUILD, "--target", "fused"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-3000:])
            program = BUILD / "bin/fused"
            for shape in ("n=2,c=5,h=9,w=11,k=6,r=3,s=3", "c=70,h=13,w=18,k=70,r=3,s=3"):
                done = subprocess.run([program, "run", "99", "--backend", "sim", "--shape", shape, "--json"],
                                      capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(json.loads(done.stdout)["status"], "ok")
            needed = {}
            for how in ((), ("--greedy",)):
                done = subprocess.run([program, "prune", "99", "--json", *how], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                needed[how] = [barrier["needed"] for barrier in json.loads(done.stdout)["barriers"]]
            self.assertEqual(needed[()], [True, False, False])  # alone, each does the other's work
            self.assertEqual(needed[("--greedy",)], [True, False, True])
        finally:
            shutil.rmtree(file.parent)
            for path, text in before.items():
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)


if __name__ == "__main__":
    python = fuse.ready()
    if not python:
        print("skipped: no libclang for Python: install python3-clang")
        sys.exit(77)
    if python != sys.executable and os.path.realpath(python) != os.path.realpath(sys.executable):
        os.execv(python, [python, *sys.argv])
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
