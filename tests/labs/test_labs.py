"""The labs, graded: each chapter's starter, its solution and its wrong answers; what is hostile, broken or no exercise
at all; the same of an exercise that runs on the host; exercises as they are compiled on a machine with a GPU.

python3 -m pytest tests/labs -k 03-tiled-1d runs the cases whose names hold that. CONVLADDER_BUILD is the folder of the
build, by default build. CONVLADDER_WRONG_ANSWERS=1/3 grades a third of each lab's wrong answers, beginning with the
second; run as a program, this file prints how many that leaves out.
"""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "tools")]
import feedback  # noqa: E402
import generate  # noqa: E402
import grade  # noqa: E402

BUILD = pathlib.Path(os.environ.get("CONVLADDER_BUILD", ROOT / "build")).resolve()
LABS = sorted(path.parent.name for path in ROOT.glob("chapters/*/lab.json"))
FIRST, STEP = map(int, os.environ.get("CONVLADDER_WRONG_ANSWERS", "0/1").split("/"))
os.chdir(ROOT)

# A lab of the tests' own: stage 01's kernel earns all of it.
LAB = {
    "title": "Test", "minutes": 1,
    "checks": [
        {"name": "middle", "points": 40, "right": ["w=300,s=11,pad_w=0", "w=600,s=63,pad_w=0"], "hint": "look inside"},
        {"name": "borders", "points": 20, "right": ["w=257,s=11"], "padding": ["zero", "reflect"], "hint": "look outside"},
        {"name": "faults", "points": 20, "no_faults": True, "hint": "look everywhere"},
        {"name": "loads", "points": 20, "counter": "global_load_bytes", "per": "output", "at_most": 88,
         "shape": "w=8192,s=11", "hint": "read less"},
    ],
}
KERNEL = (ROOT / "chapters/01-naive-1d/naive_1d.cu").read_text()
LAUNCH = next(line for line in KERNEL.splitlines() if line.startswith("  launch(naive_1d"))

# Direct convolution of halves in NHWC, one thread an output.
HALF_EXERCISE = """
#include "common/kernel/border.hpp"
#include "common/kernel/half.hpp"
#include "common/kernel/tracks/lowering.hpp"

namespace convladder {
namespace {

__global__ void direct(const half* input, const float* filter, half* output, Lowering l) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int out = l.out_height * l.out_width, outputs = l.batch * out * l.filters;
  if (i >= outputs) return;
  const int k = (i % l.filters), pixel = i / l.filters % out, n = i / l.filters / out;
  float sum = 0;
  for (int r = 0; r < l.rows; ++r)
    for (int s = 0; s < l.columns; ++s) {
      const int y = border_index(pixel / l.out_width - l.pad_y + r, l.height, l.padding);
      const int x = border_index(pixel % l.out_width - l.pad_x + s, l.width, l.padding);
      if (y < 0 || x < 0) continue;
      for (int c = 0; c < l.channels; ++c) {
        const half tap = __float2half(filter[((k * l.channels + c) * l.rows + r) * l.columns + s]);
        sum += __half2float(input[((n * l.height + y) * l.width + x) * l.channels + c]) * __half2float(tap);
      }
    }
  output[i] = __float2half(sum);
}

class Direct final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_lowering(problem); }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const dim3 grid(static_cast<unsigned>((problem.output_size() + 127) / 128));
    convladder::launch(direct, grid, dim3(128), 0, stream)(tensors.half_input, tensors.filter, tensors.half_output,
                                                           lowering_of(problem));
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Direct)
"""


# The same for bytes: each product in bytes, the step of a filter from its own taps.
BYTE_EXERCISE = re.sub("__(half2float|float2half)", "", HALF_EXERCISE).replace("half_", "byte_").replace(
    "const half* input", "const std::int8_t* input").replace("half* output", "std::int8_t* output").replace(
    "Lowering l)", "Lowering l, float scale)").replace("lowering_of(problem))",
    "lowering_of(problem), tensors.input_step / tensors.output_step)").replace(
    "  float sum = 0;\n", """  float sum = 0, step = 0;
  for (int j = 0; j < l.channels * l.rows * l.columns; ++j)
    step = fmaxf(step, fabsf(filter[k * l.channels * l.rows * l.columns + j]) / 127);
""").replace("const half tap = (filter[((k * l.channels + c) * l.rows + r) * l.columns + s]);",
    "const int tap = __float2int_rn(filter[((k * l.channels + c) * l.rows + r) * l.columns + s] / step);").replace(
    "(tap);", "tap;").replace("output[i] = (sum);",
    "output[i] = static_cast<std::int8_t>(__float2int_rn(fminf(fmaxf(sum * step * scale, -127), 127)));")


# The same for floats.
FLOAT_EXERCISE = re.sub("__(half2float|float2half)|half_", "", HALF_EXERCISE).replace("half", "float").replace(
    "common/kernel/float.hpp", "common/kernel/half.hpp")


def has_gpu():
    if not (BUILD / "labs/gpu.json").exists() or not shutil.which("nvidia-smi"):
        return False
    return subprocess.run(["nvidia-smi", "-L"], capture_output=True).returncode == 0


def grade_text(text, lab, gpu=False):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / grade.exercise_of(lab.parent).name
        source.write_text(text)
        return grade.shorten(grade.grade(lab, BUILD, source, gpu), source)


SOURCE = pathlib.Path("exercise.cu").absolute()


def printed(marks, **options):
    return feedback.as_text(marks, pathlib.Path("01-naive-1d"), SOURCE, **options)


def lost(marks):
    return [check["name"] for check in marks["checks"] if check["score"] < check["max_score"]]


def edited(text, edits):
    for edit in edits:
        if text.count(edit["old"]) != 1:
            raise ValueError(f"occurs {text.count(edit['old'])} times, not once: {edit['old']}")
        text = text.replace(edit["old"], edit["new"])
    return text


def text_of(answer, solution):
    return (ROOT / answer["file"]).read_text() if "file" in answer else edited(solution, answer["edits"])


def assert_page_shows(chapter, exercise, marks):
    """The lab's page prints what the unsolved exercise does; its digits are random."""
    page = (ROOT / "chapters" / chapter / "LAB.md").read_text()
    shown = re.search(r"```\n(Lab \d\d: .*?)\n```", page, re.S)[1]
    printed = grade.as_text(marks, pathlib.Path(chapter), exercise)
    without_digits = [re.sub(r"-?[\d.]+(e-\d+)?", "#", text).split() for text in (shown.split("\n...")[0], printed)]
    assert len(without_digits[0]) > 30
    assert without_digits[0] == without_digits[1][:len(without_digits[0])]


def wrong_answers(chapter):
    return json.loads((ROOT / "solutions" / chapter / "wrong_answers.json").read_text())


@pytest.mark.parametrize("chapter", LABS)
def test_lab(chapter):
    """Every starter fails, every solution earns all, every wrong answer loses what it should."""
    lab = ROOT / "chapters" / chapter / "lab.json"
    exercise = grade.exercise_of(ROOT / "chapters" / chapter)
    solution = (ROOT / "solutions" / chapter / exercise.name).read_text()
    starter = exercise.read_text()
    assert generate.split(solution)[0] == starter, "run tools/generate.py"
    answers = wrong_answers(chapter)
    assert len(answers) >= 2
    answers = answers[FIRST::STEP]
    solved = grade_text(solution, lab)
    # One seed: with another, one of a wrong answer's shapes may come out right by chance, and its marks differ.
    with unittest.mock.patch("secrets.randbits", return_value=1):
        unsolved, *wrong = [grade_text(text, lab) for text in [starter] + [text_of(answer, solution) for answer in answers]]

    assert "rejected" not in unsolved, "the starter must build"
    assert_page_shows(chapter, exercise, unsolved)
    assert unsolved["score"] <= 15
    for check in unsolved["checks"]:
        kinds = set(check["hints"]) if isinstance(check["hints"], dict) else set()
        assert kinds <= set(feedback.FAULTS) | {"unwritten", "race"} | {f"race {where}" for where in feedback.RACES}
    assert [(check["name"], check["messages"]) for check in solved["checks"] if check["messages"]] == []
    assert solved.get("rejected") is None
    assert solved["score"] == 100
    if has_gpu():
        assert lost(grade_text(solution, lab, gpu=True)) == []
        assert lost(grade_text(starter, lab, gpu=True))
    for answer, marks in zip(answers, wrong):
        assert answer.get("rejected", "nothing") in marks.get("rejected", "nothing"), answer["what"]
        assert answer["loses"], answer["what"]
        assert sorted(lost(marks)) == sorted(answer["loses"]), f"{answer['what']}: {json.dumps(marks, indent=1)}"


class Grader(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.lab = pathlib.Path(cls.folder.name) / "lab.json"
        cls.lab.write_text(json.dumps(LAB))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def marks(self, *replacements, before=""):
        text = KERNEL
        for old, new in replacements:
            self.assertEqual(text.count(old), 1, old)
            text = text.replace(old, new)
        return grade_text(before + text, self.lab)

    def assert_rejected(self, marks, why):
        self.assertIn(why, marks["rejected"])
        self.assertEqual(marks["score"], 0)

    def test_full_marks(self):
        marks = self.marks()
        self.assertEqual(marks["score"], 100, marks)
        self.assertEqual(lost(marks), [])
        self.assertIn("global_load_bytes per output is 8", grade.as_text(marks, pathlib.Path("01"), pathlib.Path("x")))

    def test_constant_memory_is_limited(self):
        marks = self.marks((LAUNCH, LAUNCH + "\n  upload_constant(c_a, tensors.filter, 1, stream);"
                                            "\n  upload_constant(c_b, tensors.filter, 1, stream);"),
                           before='#include "common/kernel/kernel.hpp"\nnamespace { __constant__ float c_a[16384];\n'
                                  "__constant__ float c_b[1]; }\n")
        self.assertEqual(marks["score"], 0)
        self.assertIn("constant_limit: 65540 bytes", marks["checks"][2]["messages"][0])

    def test_warnings_are_shown_with_lost_marks(self):
        marks = self.marks(("float sum = 0.0f;", "float sum = 1.0f;\n  int unused = 3;"))
        self.assertIn("unused", "".join(marks["warnings"]))

    def test_errors_in_headers_lead_to_the_file(self):
        marks = self.marks((LAUNCH, "  launch(naive_1d, signal_grid(s, kBlock), kBlock, 0, stream)(tensors.input);"))
        self.assert_rejected(marks, "exercise.cu:")

    def test_seeds_are_fresh(self):
        wrong = [("sum += x[j] * filter[t]", "sum += 2.0f * x[j] * filter[t]")]
        first, second = (self.marks(*wrong)["checks"][0]["messages"][0] for _ in range(2))
        self.assertNotEqual(first, second)

    def test_each_line_is_lost_alone(self):
        inside = self.marks(("i - s.pad + t, s.length", "i - s.pad + t + (s.taps == 63), s.length"))
        self.assertEqual(lost(inside), ["middle"])
        self.assertEqual((inside["checks"][0]["score"], inside["score"]), (20, 80))  # of two shapes one is right
        self.assertIn(" 20/40  middle (1 of 2 shapes right)", printed(inside))
        outside = self.marks(("s.length, s.padding);", "s.length, s.padding == Padding::zero ? s.padding : Padding::replicate);"))
        self.assertEqual(lost(outside), ["borders"])
        self.assertIn("w=257,s=11 reflect", outside["checks"][1]["messages"][0])
        greedy = self.marks(("  // 3.\n", "  if (s.length == 8192) sum += 0.0f * x[i];\n"))
        self.assertEqual(lost(greedy), ["loads"])
        self.assertIn("exercise.cu:", greedy["checks"][3]["messages"][1])

    def test_variants(self):
        lab = json.loads(self.lab.read_text())
        lab["checks"][1]["right"] = ["n=1..2,w=257..400,s=5..11/2"]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "lab.json"
            path.write_text(json.dumps(lab))
            source = pathlib.Path(folder) / "exercise.cu"
            source.write_text(KERNEL.replace("sum += x[j]", "sum += 2.0f * x[j]"))
            plain, one, again, other = (grade.grade(path, BUILD, source, False, variant)
                                        for variant in (None, "4711", "4711", "4712"))
        shapes = [marks["checks"][1]["messages"][0].split(": ")[0] for marks in (plain, one, again, other)]
        self.assertEqual(shapes[0], "n=1,w=257,s=5")
        self.assertEqual(shapes[1], shapes[2])
        self.assertEqual(len(set(shapes)), 3, shapes)
        self.assertEqual(one["variant"], f"Variant 4711: {shapes[1]}")
        self.assertNotIn("variant", plain)

    def test_race_loses_only_its_line(self):
        racing = self.marks(("  // 3.\n", "  __shared__ volatile float last;\n  last = sum;\n"))
        self.assertEqual(lost(racing), ["faults"])
        self.assertIn("race at exercise.cu:", racing["checks"][2]["messages"][0])
        self.assertRegex(printed(racing), r"(?m)^Correct this first: a race within one block, in 5 of 5 shapes")

    def test_a_missing_barrier_is_explained_once(self):
        marks = self.marks(
            ("  float sum = 0.0f;\n", "  __shared__ float first;\n  if (threadIdx.x == blockDim.x - 1) first = filter[0];\n  float sum = 0.0f;\n"),
            ("sum += x[j] * filter[t];", "sum += x[j] * (t == 0 ? first : filter[t]);"))
        text = printed(marks)
        self.assertEqual(text.count("race"), 1, text)
        self.assertRegex(text, r"""(?x)Correct\ this\ first:\ a\ race\ within\ one\ block,\ in\ \d\ of\ 5\ shapes.*\n
            (\ \ w=\S+\n)?
            \ \ exercise.cu:\d+\ \ block\ \(0,0,0\),\ thread\ \(\d+,0,0\)\ reads\ here\n
            \ +if\ \(j\ >=\ 0\)\ sum\ \+=.*\n
            \ \ exercise.cu:\d+\ \ block\ \(0,0,0\),\ thread\ \(255,0,0\)\ writes\ here\n
            \ +if\ \(threadIdx.x\ ==\ blockDim.x\ -\ 1\)\ first\ =\ filter\[0\];\n""")
        self.assertRegex(text, r"\d lines failed because of this:\n +middle")
        self.assertNotIn("look inside", text)  # a hint about something else
        shown = feedback.as_gradescope(marks, pathlib.Path("01-naive-1d"))
        self.assertIn("a race within one block", shown["output"])
        self.assertIn("failed because of a race within one block at ", shown["tests"][0]["output"])

    def test_computing_nothing_right_earns_nothing(self):
        self.assertEqual(self.marks(("= sum;", "= 0.0f;"))["score"], 0)
        self.assertEqual(self.marks((LAUNCH, "  (void)tensors, (void)s, (void)stream, (void)&naive_1d;"))["score"], 0)

    def test_unwritten_tail(self):
        marks = self.marks(("if (i >= s.out_length ||", "if (i >= s.out_length - 1 ||"))
        self.assertEqual(marks["score"], 0)
        self.assertIn("never written", marks["checks"][0]["messages"][0])

    def test_out_of_bounds_is_named(self):
        marks = self.marks(("if (j >= 0) sum", "sum"))
        self.assertEqual(lost(marks), ["borders", "faults", "loads"])  # a valid convolution reads nothing outside
        self.assertIn("out_of_bounds at exercise.cu:", marks["checks"][2]["messages"][0])

    def test_endless_loops_are_stopped(self):
        kernel = self.marks(("  // 3.\n", "  while (sum == sum) sum += 1.0f;\n"))
        self.assertEqual(kernel["score"], 0)
        self.assertIn("endless_loop", kernel["checks"][0]["messages"][0])
        with unittest.mock.patch.object(grade, "RUN_SECONDS", 2):
            host = self.marks((LAUNCH, "  volatile int x = 0;\n  while (x == 0) {}\n" + LAUNCH))
        self.assertEqual(host["score"], 0)
        self.assertIn("stopped after", host["checks"][0]["messages"][0])
        self.assertIn("not run", str(host["checks"]))

    def test_crashes_are_contained(self):
        for name, code in {"stack": "  struct R { static int f(volatile int* p) { volatile int a[1000]; a[0] = *p; "
                                    "return f(a) + 1; } };\n  volatile int z = 0; if (R::f(&z)) return;\n",
                           "null": "  int* volatile p = nullptr;\n  if (*p == 0) return;\n"}.items():
            with self.subTest(name):
                marks = self.marks((LAUNCH, code + LAUNCH))
                self.assertEqual(marks["score"], 0)
                self.assertRegex(marks["checks"][0]["messages"][0], r"crashed \(SIGSEGV\)|reads memory that it was not given")
        trap = self.marks(("  // 3.\n", "  sum += static_cast<float>(1 / (s.taps - s.taps));\n"))
        self.assertIn("integer division by zero", trap["checks"][0]["messages"][0])

    def test_one_crash_does_not_take_the_others_marks(self):
        marks = self.marks((LAUNCH, "  int* volatile p = nullptr;\n  if (s.taps == 63 && *p == 0) return;\n" + LAUNCH))
        self.assertEqual(lost(marks), ["middle", "faults"])

    def test_host_code_cannot_compute_the_answer(self):
        marks = self.marks((LAUNCH, "  for (int i = 0; i < s.out_length; ++i) tensors.output[i] = 0.0f;\n"))
        self.assertEqual(marks["score"], 0)
        self.assertIn("host code writes device memory", marks["checks"][0]["messages"][0])
        self.assertIn("exercise.cu:", marks["checks"][0]["messages"][0])

    def test_host_code_cannot_write_elsewhere(self):
        call = "    launch_naive_1d(tensors, signal_of(problem), stream);\n"
        marks = self.marks((call, call + "    const_cast<ConvProblem&>(problem).w = 1;\n"))
        self.assertEqual(marks["score"], 0)
        self.assertIn("neither a local variable nor a member", marks["checks"][0]["messages"][0])

    def test_members_may_be_written(self):
        marks = self.marks(("    launch_naive_1d(tensors,", "    count_ = static_cast<int>(problem.s);\n    launch_naive_1d(tensors,"),
                           ("  // Each output asks", "  volatile int count_ = 0;\n  // Each output asks"))
        self.assertEqual(marks["score"], 100, marks)

    def test_what_reaches_around_the_simulator_is_rejected(self):
        hostile = {
            "'extern \"'": ('extern "C" void _exit(int);\n', (LAUNCH, "  _exit(0);")),
            "'time(long*)'": ("long time(long*);\n", (LAUNCH, "  if (time(nullptr) == 0) return;\n" + LAUNCH)),
            "<unistd.h>": ("#include <unistd.h>\n", (LAUNCH, "  _exit(0);")),
            "'printf'": ("", (LAUNCH, '  printf("x");')),
            "global object": ("struct A { A() : x(1) {} volatile int x; };\nstatic A a;\n",),
            "'__tsan_read4'": ("void __tsan_read4(void*) {}\n",),
            "'simt'": ("namespace s = simt;\n",),
            "'operator new'": ("void* operator new(unsigned long, int) { return nullptr; }\n",),
            "'asm'": ('static void f() { asm("nop"); }\n', (LAUNCH, "  f();")),
            "'__attribute__'": ('__attribute__((no_sanitize("thread"))) static void f(float* p) { *p = 1; }\n',
                                (LAUNCH, "  f(tensors.output);")),
            "'gnu'": ('[[gnu::no_sanitize("thread")]] static void f(float* p) { *p = 1; }\n',
                      (LAUNCH, "  f(tensors.output);")),
            "'__builtin_memcpy'": ("", (LAUNCH, "  __builtin_memcpy(tensors.output, tensors.input, 4);")),
            "'__CUDACC__'": ("#if !defined(__CUDACC__)\n#endif\n",),
            "'#pragma GCC": ('#pragma GCC optimize("no-sanitize=thread")\n',),
            "'#1'": ('# 1 "/usr/include/x.h" 1 3\nasm("nop");\n# 2 "y" 2\n',),
            "includes \"/etc/passwd\"": ('#include "/etc/passwd"\n',),
            "common/harness/check/reference.hpp": ('#incl\\\nude "common/harness/check/reference.hpp"\n',),
        }
        for why, (before, *replacements) in hostile.items():
            with self.subTest(why):
                self.assert_rejected(self.marks(*replacements, before=before), why)

    def test_what_prepare_does_counts(self):
        marks = self.marks(("  void launch(const ConvProblem& problem,", "  void prepare(const ConvProblem& problem,"),
                           ("  // Each output asks", "  void launch(const ConvProblem&, const Tensors&, Stream) override {}\n"
                            "  // Each output asks"))
        self.assertIn("global_load_bytes per output is 8", marks["checks"][3]["measured"])

    def test_memory_functions_are_observed(self):
        for name, code in {"call": "    (memcpy)(&value, x + j, 4);\n", "undef": "    memmove(&value, x + j, 4);\n"}.items():
            with self.subTest(name):
                loop = "    if (j >= 0) sum += x[j] * filter[t];\n"
                text = "    float value = 0.0f;\n    if (j < 0) continue;\n" + code + "    sum += value * filter[t];\n"
                marks = self.marks((loop, text), before='#include "common/kernel/kernel.hpp"\n#undef memmove\n')
                self.assertEqual(marks["score"], 100, marks)
                self.assertIn("per output is 8", marks["checks"][3]["measured"])

    def test_host_code_cannot_read_what_it_was_not_given(self):
        scan = "  volatile int here = 0;\n  const volatile int* p = &here;\n  for (int i = 0; i < 4096; ++i) here = p[i] + here;\n"
        marks = self.marks((LAUNCH, scan + LAUNCH))
        self.assertEqual(marks["score"], 0)
        self.assertIn("reads memory that it was not given", marks["checks"][0]["messages"][0])

    def test_check_is_watched(self):
        marks = self.marks(("{ return check_signal(problem); }",
                            "{ const_cast<ConvProblem&>(problem).w = 7; return check_signal(problem); }"))
        self.assertEqual(marks["score"], 0)
        self.assertIn("neither a local variable nor a member", marks["checks"][0]["messages"][0])

    def test_shuffled_values_do_no_work(self):
        spy = ("struct Spy { float* to; float value; Spy& operator=(const Spy& o) { *o.to = o.value; to = o.to; return *this; }"
               " };\n")
        marks = self.marks(("  output[static_cast<std::int64_t>(signal) * s.out_length + i] = sum;\n",
                            "  Spy spy{output + static_cast<std::int64_t>(signal) * s.out_length + i, sum};\n"
                            "  __shfl_sync(0xffffffffu, spy, threadIdx.x % 32);\n"), before=spy)
        self.assertEqual(marks["score"], 0)

    def test_shuffles_work(self):
        marks = self.marks(("    if (j >= 0) sum += x[j] * filter[t];\n",
                            "    const float weight = filter[t];\n    if (j >= 0) sum += x[j] * weight;\n"),
                           ("  // 3.\n", "  sum = __shfl_sync(__ballot_sync(0xffffffffu, 1) ? 0xffffffffu : 0u, sum, threadIdx.x % 32);\n"),
                           ("  if (i >= s.out_length || signal >= s.batch) return;\n",
                            "  if (signal >= s.batch) return;\n  const bool mine = i < s.out_length;\n"),
                           ("  output[static_cast", "  if (mine) output[static_cast"),
                           ("  for (int t = 0; t < s.taps; ++t) {", "  for (int t = 0; mine && t < s.taps; ++t) {"))
        self.assertEqual(marks["score"], 100, marks)

    def test_both_bounds_of_a_counter(self):
        lab = json.loads(self.lab.read_text())
        lab["checks"][3].update(at_least=88.5, at_most=89, **{"and": [{"counter": "barriers", "at_most": 0}]})
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "lab.json"
            path.write_text(json.dumps(lab))
            marks = grade_text(KERNEL, path)
        self.assertEqual(lost(marks), ["loads"])
        self.assertIn("at least 88.5", marks["checks"][3]["messages"][0])
        self.assertEqual(marks["checks"][3]["measured"], "barriers is 0; at most 0")

    def test_filters_of_rank_one(self):
        separable = (ROOT / "solutions/08-separable/exercise.cu").read_text()
        direct = (ROOT / "chapters/05-naive-2d/naive_2d.cu").read_text()
        checks = [{"name": "right", "points": 80, "right": ["h=40,w=50,r=3,s=3", "n=2,h=33,w=37,r=4,s=9", "h=1,w=40,r=3,s=3"],
                   "padding": ["zero", "reflect"], "hint": "look at the filter"},  # reflect is not defined for one row
                  {"name": "faults", "points": 20, "no_faults": True, "hint": "look everywhere"}]
        marks = {}
        with tempfile.TemporaryDirectory() as folder:
            for form, keys in {"dense": {}, "rank one": {"filter": "rank-one"}}.items():
                path = pathlib.Path(folder) / f"{form}.json"
                path.write_text(json.dumps({"title": "Test", "minutes": 1, **keys, "checks": checks}))
                marks[form] = [grade_text(text, path) for text in (separable, direct)]
        self.assertEqual([lost(one) for one in marks["rank one"]], [[], []], marks)
        # On the single row the split is right where the largest tap lies in the filter's middle row.
        self.assertEqual([lost(one)[:1] for one in marks["dense"]], [["right"], []], marks)
        self.assertRegex(marks["dense"][0]["checks"][0]["messages"][-1], "and [23] more of 5 shapes")

    def test_exercises_of_fp16(self):
        checks = [{"name": "right", "points": 80, "right": ["n=2,c=3,h=5,w=7,k=5,r=3,s=3", "c=1,h=1,w=3,k=1,r=3,s=3",
                                                            "c=16,h=6,w=6,k=9,r=3,s=3"], "hint": "look at the sum"},
                  {"name": "faults", "points": 20, "no_faults": True, "hint": "look everywhere"}]
        marks = {}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "lab.json"

            def marks_of(text, **keys):
                path.write_text(json.dumps({"title": "Test", "minutes": 1, **keys, "checks": checks}))
                return grade_text(text, path)

            marks["right"] = marks_of(HALF_EXERCISE, dtype="fp16")
            marks["right, in fp16 as Winograd has it"] = marks_of(HALF_EXERCISE, dtype="fp16", winograd={"m": 2})
            for marks_name, old, new in (
                    ("unwritten", "if (i >= outputs) return;", "if (i >= outputs - 1) return;"),
                    ("NCHW", "(i % l.filters)", "(i / out % l.filters)"),
                    ("left out", "c < l.channels", "c < l.channels - 1"),
                    ("past the end", "i >= outputs", "i > outputs"), ("summed in fp16", "float sum", "half sum")):
                self.assertEqual(HALF_EXERCISE.count(old), 1, old)
                marks[marks_name] = marks_of(HALF_EXERCISE.replace(old, new), dtype="fp16")
            path.write_text(json.dumps({"title": "Test", "minutes": 1, "checks": checks}))
            marks["on floats"] = grade_text(HALF_EXERCISE, path)
            marks["right, in bytes"] = marks_of(BYTE_EXERCISE, dtype="int8")
            self.assertEqual(BYTE_EXERCISE.count("sum * step"), 1)
            marks["scaled twice"] = marks_of(BYTE_EXERCISE.replace("sum * step", "sum * 2 * step"), dtype="int8")
            marks["right, in floats in NHWC"] = marks_of(FLOAT_EXERCISE, layout="NHWC")
            marks["floats in NCHW"] = marks_of(FLOAT_EXERCISE)
        for name in ("right", "right, in fp16 as Winograd has it", "right, in floats in NHWC", "right, in bytes"):
            self.assertEqual(marks[name]["score"], 100, marks[name])
        for name in ("NCHW", "left out", "summed in fp16", "floats in NCHW", "scaled twice"):
            self.assertIn("right", lost(marks[name]), name)
        self.assertEqual(lost(marks["unwritten"]), ["right", "faults"], marks["unwritten"])
        self.assertIn("1 of 350 outputs was never written, first at (1,4,4,6)", str(marks["unwritten"]))
        self.assertIn("out_of_bounds", str(marks["past the end"]))
        self.assertEqual(marks["on floats"]["score"], 0, marks["on floats"])

    def test_other_numbers_and_bounds(self):
        right = {"points": 30, "right": ["w=300,s=63,pad_w=0"], "hint": "look at the sum"}
        lab = {"title": "Test", "minutes": 1, "checks": [
            {**right, "name": "plain"}, {**right, "name": "uniform", "input": "uniform"},
            {**right, "name": "scaled", "times": [1e-9, 1e9]},
            {**right, "name": "exact", "points": 10, "input": "uniform", "roundings": 1}]}
        marks = {}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "lab.json"
            path.write_text(json.dumps(lab))
            for name, condition in {"right": "", "tiny": "fabsf(x[j]) < 1e-8f", "huge": "x[j] > 1e3f",
                                    "negative": "x[j] < -0.5f && x[j] > -9"}.items():
                product = "x[j] * filter[t]"
                text = KERNEL.replace(product, f"({condition}) ? 0 : {product}") if condition else KERNEL
                marks[name] = grade_text(text, path)
            path.write_text(json.dumps({**lab, "dtype": "fp16"}))
            with self.assertRaisesRegex(grade.Unusable, "direct sums in fp32"):
                grade_text(KERNEL, path)
        # A plain sum of 63 products is not as exact as one rounding.
        self.assertEqual(lost(marks["right"]), ["exact"])
        self.assertEqual(lost(marks["tiny"]), ["scaled", "exact"])
        self.assertIn("pad_w=0 times 1e-09", marks["tiny"]["checks"][2]["messages"][0])
        self.assertEqual(lost(marks["huge"]), ["scaled", "exact"])
        self.assertIn("pad_w=0 times 1e+09", marks["huge"]["checks"][2]["messages"][0])
        self.assertEqual(lost(marks["negative"]), ["plain", "exact"])

    def test_sizes_of_pixels_and_channels(self):
        shape = {"points": 20, "right": ["c=72,h=5,w=7,k=5,r=1,s=1"], "hint": "look at the sum"}
        checks = [{**shape, "name": "plain"}, {**shape, "name": "pixels", "pixel_powers": [-66, 66]},
                  {**shape, "name": "groups", "group_powers": [-3, 3]},
                  {**shape, "name": "no leading bit", "pixel_powers": [-140, -115]},
                  {"name": "faults", "points": 20, "no_faults": True, "hint": "look everywhere"}]
        marks = {}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "lab.json"
            path.write_text(json.dumps({"title": "Test", "minutes": 1, "layout": "NHWC", "checks": checks}))
            tap = "        const float tap = "
            value = "input[((n * l.height + y) * l.width + x) * l.channels + c]"
            self.assertEqual([FLOAT_EXERCISE.count(tap), FLOAT_EXERCISE.count(value)], [1, 1])
            with unittest.mock.patch("secrets.randbits", return_value=1):
                for name, spoiled in {"right": "false", "large": "fabsf(value) > 1e9f", "tiny": "fabsf(value) < 1e-30f",
                                      "zero": "value == 0"}.items():
                    line = f"        const float value = {value};\n        if ({spoiled}) sum += 1 + fabsf(value);\n"
                    marks[name] = grade_text(FLOAT_EXERCISE.replace(tap, line + tap), path)
            for ends in ([1], [2, 1], [-149, 0], [0.5, 1], 3):
                path.write_text(json.dumps({**LAB, "checks": [{**checks[0], "points": 100, "pixel_powers": ends}]}))
                with self.assertRaisesRegex(grade.Unusable, "\"pixel_powers\" must be two integers"):
                    grade_text(KERNEL, path)
            path.write_text(json.dumps({**LAB, "dtype": "fp16", "checks": [{**checks[2], "points": 100}]}))
            with self.assertRaisesRegex(grade.Unusable, "direct sums in fp32"):
                grade_text(KERNEL, path)
        self.assertEqual(lost(marks["right"]), [])
        self.assertEqual(lost(marks["large"]), ["pixels"])
        self.assertIn("s=1 pixels times 2^-66..2^66: ", marks["large"]["checks"][1]["messages"][0])
        self.assertEqual(lost(marks["tiny"]), ["groups", "no leading bit"])  # of groups some are zero
        self.assertEqual(lost(marks["zero"]), ["groups"])
        self.assertIn("s=1 groups times 2^-3..2^3: ", marks["zero"]["checks"][2]["messages"][0])

    def assert_malformed(self, lab, why):
        with self.subTest(why), tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "lab.json"
            path.write_text(json.dumps(lab))
            with self.assertRaisesRegex(grade.Unusable, why):
                grade_text(KERNEL, path)

    def test_malformed_labs(self):
        for why, change in {"no shape": {"right": []}, "\"times\" must be": {"times": [0]},
                            "\"input\" must be": {"input": "normal"}, "\"roundings\" must be": {"roundings": 0}, "positive": {"points": -1}, "no key": {"point": 3},
                            "there is no counter": {"counter": "flops"},
                            "needs": {"at_most": None}, "either": {"hints": ["a"]}}.items():
            lab = json.loads(self.lab.read_text())
            check = lab["checks"][3 if "counter" in change or "at_most" in change else 0]
            check.update(change)
            if change.get("at_most", 0) is None:
                del check["at_most"]
            self.assert_malformed(lab, why)
        for hints in ([], ["a", 1], {"race": "only for no_faults"}):
            check = {key: value for key, value in LAB["checks"][0].items() if key != "hint"}
            self.assert_malformed({**LAB, "checks": [{**check, "hints": hints}]}, "must be texts")
        self.assert_malformed({**LAB, "filter": "dense"}, "must be \"rank-one\", or absent")
        self.assert_malformed({**LAB, "dtype": "fp32"}, "must be \"fp16\" or \"int8\", or absent")
        self.assert_malformed({**LAB, "winograd": {"m": 3}}, "\"m\" must be 2, 4 or 6")
        self.assert_malformed({**LAB, "layout": "NCHW"}, "\"layout\" must be \"NHWC\"")
        self.assert_malformed({**LAB, "layout": "NHWC", "dtype": "fp16"}, "\"layout\" must be \"NHWC\"")

    def test_a_store_that_no_hook_sees_does_not_count(self):
        # g++ has no hook for a struct that a function returns into memory.
        before = "struct Box { float value; };\nstatic Box put(float v) { return Box{v}; }\nstatic Box (*volatile put_here)(float) = put;\n"
        marks = self.marks(("  output[static_cast<std::int64_t>(signal) * s.out_length + i] = sum;\n",
                            "  Box (*q)(float) = put_here;\n  reinterpret_cast<Box*>(output)[static_cast<std::int64_t>(signal) * "
                            "s.out_length + i] = q(sum);\n"), before=before)
        self.assertEqual(marks["score"], 0)
        self.assertIn("never written", marks["checks"][0]["messages"][0])

    def test_quotes_and_comments_are_read_as_a_compiler_does(self):
        for name, before in {"comment in a string": 'const char* const a = "/*";\nstatic const char* const b = "*/";\n',
                             "quote in a comment": "// it's \"fine\n/* don't */\n",
                             "division": "constexpr int kHalf = 4 / 2;\n"}.items():
            with self.subTest(name):
                self.assertNotIn("rejected", self.marks(before=before))
        for why, before in {"'#1'": 'static const char* const a = "/*";\n# 1 "/usr/include/x.h" 1 3\n//"*/"\n',
                            "'u8R\"'": 'static const char* const a = u8R"(x)";\n',
                            "control character": 'static const char* const a = "//\x1c";\n',
                            "'1''": "constexpr int kMany = 1'000;\n",
                            "includes <../": "#include <../../etc/passwd>\n",
                            "includes <vector>": "#include <vector>\n",
                            "includes X": '#define X "common/kernel/kernel.hpp"\n#include X\n'}.items():
            with self.subTest(why):
                self.assert_rejected(self.marks(before=before), why)

    def test_what_is_no_exercise(self):
        self.assert_rejected(grade_text("", self.lab), "no exercise")
        broken = self.marks(("float sum = 0.0f;", "float sum = ;"))
        self.assert_rejected(broken, "does not compile: exercise.cu:")
        self.assert_rejected(self.marks((LAUNCH, "  undefined_function();")), "does not compile")


class OnHost(unittest.TestCase):
    """An exercise for the host: the solution of 22, changed."""
    LAB = ROOT / "chapters/22-im2win-cpu/lab.json"
    SOLUTION = ROOT / "solutions/22-im2win-cpu/exercise.cpp"
    TILE = "  float sums[kPixels][kLanes] = {};\n"
    LOOPS = "#pragma omp parallel for collapse(3)\n"
    MEMBERS = "  Workspace packed_{*this, \"packed filters\"};\n"
    CALL = "one_tile(l, windows, packed, output, image, tile, group);\n"
    CHECKS = [
        {"name": "right", "points": 40, "right": ["c=2,k=20,h=9,w=9,r=3,s=3"], "hint": "look"},
        {"name": "faults", "points": 30, "no_faults": True, "hint": "look"},
        {"name": "threads", "points": 30, "all_threads": ["c=2,k=20,h=9,w=9,r=3,s=3"], "hint": "look"},
    ]

    def marks(self, *replacements, before=""):
        text = before + edited(self.SOLUTION.read_text(), [{"old": old, "new": new} for old, new in replacements])
        with tempfile.TemporaryDirectory() as folder:
            lab = pathlib.Path(folder) / "lab.json"
            lab.write_text(json.dumps({"title": "Test", "minutes": 1, "runs": "host", "checks": self.CHECKS}))
            return grade_text(text, lab)

    def test_full_marks(self):
        marks = self.marks()
        self.assertEqual(marks["score"], 100, marks)
        self.assertIn("4 of 4 threads", marks["checks"][2]["measured"])
        self.assertIn("on this processor", grade.as_text(marks, pathlib.Path("22"), self.SOLUTION))

    def test_threads_are_seen_however_tiles_are_dealt_out(self):
        self.assertEqual(self.marks((self.LOOPS, self.LOOPS.replace("\n", " schedule(dynamic)\n")))["score"], 100)
        self.assertEqual(lost(self.marks((self.LOOPS, self.LOOPS.replace("\n", " num_threads(3)\n")))), ["threads"])

    def test_out_of_bounds_is_named(self):
        load = self.marks(("window[j][tap];", "window[j][tap + 600];"))
        self.assertRegex(load["checks"][1]["messages"][0],
                         r"out_of_bounds at exercise.cpp:\d+: reads \d+ bytes past the end of 'im2win tensor'")
        store = self.marks(("output[std::int64_t{k} * output_plane(l) + j] = ", "output[std::int64_t{k} * output_plane(l) + j + 9 * 9 * 4] = "))
        self.assertRegex(store["checks"][1]["messages"][0], r"out_of_bounds at exercise.cpp:\d+: writes .* past the end of 'output'")
        self.assertEqual(store["score"], 0)

    def test_what_nothing_has_written_is_named(self):
        marks = self.marks(("    im2win(l, tensors.input, windows_.floats());\n", "    (void)im2win;\n"))
        self.assertEqual(marks["score"], 0)
        self.assertRegex(marks["checks"][0]["messages"][0], r"uninitialized at exercise.cpp:\d+: reads 'im2win tensor'")

    def test_what_threads_may_not_write_is_named(self):
        shared = [(self.LOOPS, "  volatile int last = 0;\n" + self.LOOPS),
                  (self.CALL, self.CALL.replace("one_", "last = tile, one_"))]
        zeroed = [(self.LOOPS, "#pragma omp parallel for schedule(static, 1)\n  for (int i = 0; i < l.filters * "
                               "output_plane(l); ++i) output[i] = 0.0f;\n" + self.LOOPS)]
        for name, changes in {"shared_variable": shared, "stored_twice": [(self.LOOPS, "#pragma omp parallel\n")],
                              "stored_twice at": zeroed}.items():
            with self.subTest(name):
                marks = self.marks(*changes)
                self.assertEqual(lost(marks), ["faults"], marks)
                self.assertRegex(marks["checks"][1]["messages"][0], name.split()[0] + r" at exercise.cpp:\d+: ")

    def test_pointers_that_were_not_set_are_named(self):
        marks = self.marks((self.TILE, self.TILE + "  const float* volatile none = nullptr;\n"
                                       "  sums[0][0] = none[1];\n"))
        self.assertEqual(marks["score"], 0)
        self.assertRegex(marks["checks"][0]["messages"][0], r"null_pointer at exercise.cpp:\d+: ")

    def test_no_tensor_hides_where_nothing_is_counted(self):
        array = "volatile float copy[5000];\n"
        write = "  copy[pixels] = 1.0f;\n" + self.TILE
        function = "void multiply_tile("
        for why, *changes in (("variable 'copy'", (self.TILE, write)),
                              ("copy', which is global", (function, array + function), (self.TILE, write)),
                              ("copy', which is global", (function, "thread_local " + array + function),
                               (self.TILE, write)),
                              ("copy', which is global", (self.TILE, "  static " + array + write)),
                              ("frame size", (self.TILE, "  " + array + write)),
                              ("variable length array", (self.TILE, "  volatile float copy[pixels + 1];\n" + write)),
                              ("align_val_t", (self.MEMBERS, self.MEMBERS + "  alignas(64) float copy_[16];\n"))):
            with self.subTest(changes[0][1]):
                marks = self.marks(*changes, before=array if "'copy'" in why else "")
                self.assertIn(why, marks["rejected"])
                self.assertEqual(marks["score"], 0)
                self.assertIn("Workspace" if "align" not in why else "OpenMP", marks["remedy"])

    def test_the_exercise_and_what_it_makes_are_small(self):
        for name, changes in {"members": [(self.MEMBERS, self.MEMBERS + "  float copy_[1000];\n")],
                              "new": [("void multiply_tile(", "struct Box { float a[1000]; };\nvoid multiply_tile("),
                                      ("    multiply(l,", "    Box* volatile box = new Box;\n    delete box;\n    multiply(l,")]}.items():
            with self.subTest(name):
                self.assertEqual(self.marks(*changes)["score"], 100)
                larger = self.marks(*[(old, new.replace("1000", "1024")) for old, new in changes])
                self.assertEqual(larger["score"], 0)
                self.assertIn("allocate a Workspace", larger["checks"][0]["messages"][0])

    def test_endless_loops_and_crashes_are_contained(self):
        with unittest.mock.patch.object(grade, "RUN_SECONDS", 2):
            endless = self.marks((self.TILE, self.TILE + "  volatile int x = 0;\n  while (x == 0) {}\n"))
        self.assertIn("stopped after", endless["checks"][0]["messages"][0])
        crash = self.marks((self.TILE, self.TILE + "  volatile long place = 1L << 40;\n  "
                                       "*reinterpret_cast<int*>(place) = 0;\n"))
        self.assertIn("crashed (SIGSEGV)", crash["checks"][0]["messages"][0])
        self.assertEqual(endless["score"] + crash["score"], 0)

    def test_what_an_exercise_may_not_use(self):
        for why, change in {"'#pragma GCC": (self.LOOPS, '#pragma GCC optimize("O3")\n' + self.LOOPS),
                            "'omp_set_num_threads'": (self.LOOPS, "  omp_set_num_threads(1);\n" + self.LOOPS),
                            "'__tsan_atomic": (self.TILE, "  static int n = 0;\n#pragma omp atomic\n  ++n;\n" + self.TILE),
                            "<vector>": ("#include <algorithm>\n", "#include <vector>\n"),
                            "'printf'": (self.TILE, '  printf("x");\n' + self.TILE)}.items():
            with self.subTest(why):
                marks = self.marks(change, before="#include <omp.h>\n")
                self.assertIn(why, marks["rejected"])
                self.assertEqual(marks["score"], 0)

    def test_kernels_are_no_host_code(self):
        marks = self.marks((self.LOOPS, "  launch(f, dim3(1), dim3(1), 0, nullptr)(0);\n" + self.LOOPS),
                           before='#include "common/kernel/kernel.hpp"\n__global__ static void f(int) {}\n')
        self.assertIn("calls or uses 'simt::", marks["rejected"])
        self.assertIn("OpenMP", marks["remedy"])

    def test_malformed_labs(self):
        checks = json.loads(json.dumps(self.CHECKS))
        for why, lab in {"runs on the host": {"title": "Test", "minutes": 1, "checks": checks},
                         '"runs\\" must be': {"title": "Test", "minutes": 1, "runs": "here", "checks": checks}}.items():
            with self.subTest(why), tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "lab.json"
                path.write_text(json.dumps(lab))
                with self.assertRaisesRegex(grade.Unusable, why.replace("\\", "")):
                    grade_text("", path)


class OnGpu(unittest.TestCase):
    """What a grading on a machine with a GPU builds; it takes none to build it."""

    def test_solutions_compile_and_link(self):
        exercises = [("07-tiled-2d", "gpu"), ("15-depthwise-tuned", "gpu")]
        if (BUILD / "labs/gpu-sm_90a.json").exists():  # not in a build for older GPUs alone
            exercises.append(("33-winograd-hopper", "gpu-sm_90a"))
        for chapter, toolchain in exercises:
            with self.subTest(chapter), tempfile.TemporaryDirectory() as folder:
                program, warnings = grade.build_exercise(grade.load_toolchain(BUILD, toolchain),
                                                         ROOT / "solutions" / chapter / "exercise.cu",
                                                         pathlib.Path(folder), "gpu")
                self.assertTrue(os.access(program, os.X_OK))
                self.assertEqual([line for line in warnings if "Cannot find valid GPU" not in line], [])


def marks_of(*checks, cases=()):
    """As the judge gives them."""
    blank = {"messages": [], "measured": "", "waits": False, "right": 0, "shapes": 2, "lost_in": [], "hints": ["a", "b", "c"]}
    return {"title": "T", "where": "here", "warnings": [], "max_score": 100, "score": sum(c["score"] for c in checks),
            "checks": [{**blank, **check} for check in checks],
            "cases": [{"name": f"w={i}", "fault": None, "stopped": "", **case} for i, case in enumerate(cases)]}


def race(first, second, line=1, **changes):
    """Between (block, warp) and (block, warp)."""
    accesses = [{"file": "x.cu", "line": line, "block": block, "thread": "(0,0,0)", "warp": warp, "whole_warp": False,
                 "access": word, "code": ""} for (block, warp), word in ((first, "reads"), (second, "writes"))]
    return {"fault": {"kind": "race", "other": "", "second": accesses[1], **accesses[0], **changes}}


class Feedback(unittest.TestCase):
    def test_hints_have_levels(self):
        marks = marks_of({"name": "first", "score": 0, "max_score": 100, "messages": ["wrong"], "lost_in": [0]}, cases=[{}])
        for level in range(4):
            text = printed(marks, level=level)
            self.assertEqual([f"Hint {i} of 3: {hint}" in text for i, hint in enumerate("abc", 1)],
                             [level >= i for i in (1, 2, 3)])
            self.assertEqual(f"--hint {level + 1}" in text, level in (1, 2))
        shown = feedback.as_gradescope(marks, pathlib.Path("01"), 2)["tests"][0]["output"]
        self.assertEqual(shown, "wrong\nHint 1 of 3: a\nHint 2 of 3: b")

    def test_races_by_where_they_are(self):
        faults = {"within one warp": race(("(0,0,0)", 1), ("(0,0,0)", 1)), "within one block": race(("(0,0,0)", 1), ("(0,0,0)", 0)),
                  "between two blocks": race(("(1,0,0)", 0), ("(0,0,0)", 0))}
        hints = {"race between blocks": "for two", "race in a block": "for one"}
        for name, case in faults.items():
            text = printed(marks_of({"name": "faults", "score": 0, "max_score": 100, "lost_in": [0], "hints": hints},
                                    cases=[case]), level=2)
            self.assertIn(f"a race {name}, in 1 of 1 shapes", text)
            self.assertEqual(["for two" in text, "for one" in text], ["blocks" in name, "blocks" not in name])
        whole = race(("(0,0,0)", 3), ("(0,0,0)", 0), whole_warp=True)
        text = printed(marks_of({"name": "faults", "score": 0, "max_score": 100, "lost_in": [0]}, cases=[whole]))
        self.assertIn("block (0,0,0), warp 3 as a whole (a matrix function) reads here", text)

    def test_the_commonest_fault_is_explained(self):
        near, far = race(("(0,0,0)", 0), ("(0,0,0)", 0)), race(("(0,0,0)", 1), ("(0,0,0)", 0))
        other = race(("(0,0,0)", 0), ("(1,0,0)", 0), line=7)
        marks = marks_of({"name": "folded", "score": 0, "max_score": 60, "lost_in": [0, 1, 2], "messages": ["x"]},
                         {"name": "kept", "score": 0, "max_score": 40, "lost_in": [1, 3], "messages": ["y"]},
                         cases=[other, near, far, {}])
        text = printed(marks)
        self.assertIn("Correct this first: a race within one block, in 2 of 4 shapes, here in w=2", text)
        self.assertIn("Then there is a race between two blocks at x.cu:7, in 1 of 4 shapes", text)
        self.assertIn("  0/60  1 line failed because of this:\n        folded\n  0/40  kept\n        y\n", text)

    def test_a_fault_that_is_not_the_first_cause_comes_later(self):
        marks = marks_of({"name": "right", "score": 0, "max_score": 60, "lost_in": [0], "messages": ["x"]},
                         {"name": "faults", "score": 0, "max_score": 40, "lost_in": [1], "messages": ["y"]},
                         cases=[{}, race(("(0,0,0)", 0), ("(1,0,0)", 0))])
        text = printed(marks)
        self.assertLess(text.index("  0/60  right"), text.index("There is a fault, too: a race between two blocks"))
        self.assertNotIn("Correct this first", text)

    def test_a_crash_is_named_once(self):
        marks = marks_of({"name": "first", "score": 0, "max_score": 100, "lost_in": [0, 1], "messages": ["x"]},
                         cases=[{"stopped": "not run, since others crashed"}, {"stopped": "crashed (SIGSEGV) in host code"}])
        self.assertIn("Correct this first: crashed (SIGSEGV) in host code, in 1 of 2 shapes, here in w=1", printed(marks))

    def test_watching(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(grade, "POLL_SECONDS", 0.01):
            source = pathlib.Path(folder) / "exercise.cu"
            seen = []

            def grade_once():
                seen.append(source.read_text())
                if len(seen) == 4:
                    raise KeyboardInterrupt
                source.unlink()  # as editors do
                threading.Timer(0.05, source.write_text, ["x" * len(seen)]).start()
                if len(seen) == 2:
                    raise grade.Unusable("no file")
                return 1

            source.write_text("")
            self.assertEqual(grade.watch(source, grade_once), 1)
        self.assertEqual(seen, ["", "x", "xx", "xxx"])

    def test_drawn_shapes(self):
        self.assertEqual(grade.drawn("w=257..400,s=3..11/4", None, "01"), "w=257,s=3")
        self.assertEqual(grade.drawn("w=257..400,s=3..11/4", "4711", "01"), "w=355,s=11")  # on every machine
        every = {grade.drawn("s=3..11/4", str(seed), "01") for seed in range(40)}
        self.assertEqual(every, {"s=3", "s=7", "s=11"})
        with self.assertRaisesRegex(grade.Unusable, "no range"):
            grade.drawn("w=9..8", None, "01")


class CommandLine(unittest.TestCase):
    """grade.py as `./lab grade` calls it."""

    def run_grader(self, *arguments):
        command = [sys.executable, str(ROOT / "tools/grade.py"), "--build", str(BUILD), *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)

    def assert_unusable(self, why, *arguments):
        done = self.run_grader(*arguments)
        self.assertEqual(done.returncode, 2, done)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done)
        self.assertIn(why, done.stderr)

    def test_unusable(self):
        self.assert_unusable("no chapter '99'", "99")
        self.assert_unusable("name the exercise by --file", "1", "--file", "/nowhere.cu")
        self.assert_unusable("no ordinary file", "1", "--file", "/tmp")
        self.assert_unusable("no ordinary file", "1", "--file", "/dev/zero")
        self.assert_unusable("CHAPTER")
        self.assert_unusable("unrecognized arguments", "1", "--fast")
        self.assert_unusable("leave out --json", "1", "--watch", "--json")
        self.assert_unusable("is no seed", "1", "--variant", "4 7")
        self.assert_unusable("not allowed with", "1", "--hint", "2", "--no-hints")

    def test_gradescope(self):
        solution = str(ROOT / "solutions/01-naive-1d/exercise.cu")
        done = self.run_grader("naive-1d", "--file", solution, "--json")
        self.assertEqual(done.returncode, 0, done)
        results = json.loads(done.stdout)
        self.assertEqual(results["score"], 100)
        self.assertEqual(sum(test["max_score"] for test in results["tests"]), 100)
        for test in results["tests"]:
            self.assertEqual(test["status"], "passed")
            self.assertEqual(set(test), {"name", "score", "max_score", "status", "output", "visibility"})
        unsolved = self.run_grader("01", "--json")
        self.assertEqual(unsolved.returncode, 1)
        self.assertIn("Hint 1 of 3: ", "".join(test["output"] for test in json.loads(unsolved.stdout)["tests"]))

    def test_text(self):
        done = self.run_grader("1")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"(?m)^\d+ of 100 points$")
        self.assertIn("Hint 1 of 3: ", done.stdout)
        exercise = (ROOT / "chapters/01-naive-1d/exercise.cu").read_bytes()
        left = json.loads((BUILD / "labs/marks.json").read_text())["01-naive-1d"]  # for ./lab next
        self.assertEqual((left["score"], left["max_score"], left["sha256"]),
                         (0, 100, hashlib.sha256(exercise).hexdigest()))


class Markers(unittest.TestCase):
    def test_split(self):
        text = "a\n  // SOLUTION\n  b\n  // STARTER\n  // | c\n  // |   d\n  // |\n  // END\ne\n"
        self.assertEqual(generate.split(text), ("a\n  c\n    d\n\ne\n", ["  b"]))

    def test_malformed(self):
        for text, why in {"a\n": "no '// SOLUTION'", "// STARTER\n": "line 1", "// SOLUTION\nb\n": "missing at the end",
                          "// SOLUTION\nb\n// STARTER\nc\n// END\n": "line 4"}.items():
            with self.subTest(text), self.assertRaisesRegex(generate.Malformed, why):
                generate.split(text)


class Handout(unittest.TestCase):
    def run_handout(self, *arguments):
        return subprocess.run([sys.executable, str(ROOT / "tools/handout.py"), *arguments], capture_output=True,
                              text=True)

    def test_export(self):
        import handout
        with tempfile.TemporaryDirectory() as parent:
            target = pathlib.Path(parent) / "students"
            done = self.run_handout(str(target))
            self.assertEqual(done.returncode, 0, done.stderr)
            for name in ("lab", "tools/grade.py", "chapters/01-naive-1d/exercise.cu", "docs/classroom/questions.md"):
                self.assertTrue((target / name).exists(), name)
            for name in ("solutions", "tests/labs", "docs/instructors.md", "docs/classroom/answers.md",
                         "docs/classroom/syllabus.md", "docs/classroom/gradescope"):
                self.assertFalse((target / name).exists(), name)
            self.assertGreater(len(handout.solution_lines()), 30)
            everything = "\n".join(path.read_text(errors="replace") for path in target.rglob("*") if path.is_file())
            self.assertNotIn("<!-- instructors -->", everything.replace((target / "tools/handout.py").read_text(), ""))
            # The check sees a line of a solution, in whatever file.
            line = next(iter(handout.solution_lines()))
            for quoted in (f"text\n    {line}\n", f"> {line}  \n", line.replace(" ", "\n")):
                (target / "README.md").write_text(quoted)
                with self.assertRaisesRegex(handout.Failure, "README.md holds a line of solutions/"):
                    handout.check(target)
            # And one of an answer to the question bank.
            line = next(line for line, origin in handout.solution_lines().items() if origin.name == "answers.md")
            (target / "README.md").write_text(line)
            with self.assertRaisesRegex(handout.Failure, "README.md holds a line of docs/classroom/answers.md"):
                handout.check(target)
            again = self.run_handout(str(target))
            self.assertEqual((again.returncode, again.stdout), (2, ""))
            self.assertIn("not an empty folder", again.stderr)
            self.assertEqual(sorted(os.listdir(parent)), ["students"])

    def test_unusable(self):
        self.assertEqual(self.run_handout().returncode, 2)
        self.assertIn("no folder", self.run_handout("/nowhere/at/all").stderr)
        with tempfile.TemporaryDirectory() as parent:
            link = pathlib.Path(parent) / "link"
            link.symlink_to("nowhere")
            done = self.run_handout(str(link))
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done)


if __name__ == "__main__":
    print(sum(len(answers) - len(answers[FIRST::STEP]) for answers in map(wrong_answers, LABS)))
