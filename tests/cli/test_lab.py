"""./lab itself, in a copy that has no build: help, suggestions, and the commands in Python."""
import base64
import hashlib
import importlib.util
import json
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("CONVLADDER_BUILD", ROOT / "build")).resolve() / "bin/convladder"
sys.path.insert(0, str(ROOT / "tools"))
import help_texts  # noqa: E402

COMMANDS = re.findall(r"^  ([a-z]+)  ", (ROOT / "tools/help/lab.txt").read_text(), re.M)
COPIED = ["lab", "CMakeLists.txt", "CMakePresets.json", "tools/changes.py", "tools/feedback.py", "tools/grade.py", "tools/handout.py",
          "tools/recompute.py", "tools/report.py", "common/harness/ladder/tracks.json",
          *(path.relative_to(ROOT) for pattern in ("tools/lab/*.py", "tools/help/*", "cmake/new-stage/*",
                                                   "chapters/*/stage.json") for path in ROOT.glob(pattern))]


class Copy:
    def __init__(self, folder):
        self.folder = folder
        self.build = folder / "build"
        for name in COPIED:
            self.write(name, (ROOT / name).read_text())
        (folder / "bin").mkdir()
        (folder / "bin/python3").symlink_to(sys.executable)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("LAB_")}  # of `lab test`
        self.environment = dict(inherited, PATH=f"{folder / 'bin'}:{os.environ['PATH']}", NO_COLOR="")
        self.environment.pop("CLICOLOR_FORCE", None)

    def write(self, name, text, mode=0o644):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def run(self, *arguments, **changes):
        return subprocess.run(arguments, capture_output=True, text=True, timeout=60, cwd=self.folder,
                              env=dict(self.environment, **changes))

    def lab(self, *arguments):
        return self.run("bash", "lab", *arguments)

    def tool(self, *arguments, **changes):
        """As lab calls it."""
        return self.run(sys.executable, "tools/lab", *arguments, LAB_NVCC="", LAB_PACKAGES="bash", **changes)

    def on_terminal(self, *arguments, **changes):
        """What it prints where that is a terminal."""
        ours, theirs = pty.openpty()
        subprocess.run([sys.executable, "tools/lab", *arguments], stdout=theirs, cwd=self.folder, timeout=60,
                       env=dict(self.environment, TERM="xterm", **changes))
        os.close(theirs)
        text = b""
        try:
            while part := os.read(ours, 65536):
                text += part
        except OSError:  # Linux's word for the end
            pass
        os.close(ours)
        return text.decode()

    def refuses(self, arguments, *parts):
        done = self.lab(*arguments)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
        for part in parts:
            assert part in done.stderr


@pytest.fixture
def copy(tmp_path):
    yield Copy(tmp_path)
    shutil.rmtree(tmp_path)


# ---- Help -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_answers_without_building(copy, command):
    texts = set()
    for words in ([command, "--help"], [command, "-h"], ["help", command], ["--yes", command, "1", "--help"]):
        done = copy.lab(*words)
        assert (done.returncode, done.stderr) == (0, ""), words
        assert f"./lab {command}" in done.stdout
        texts.add(done.stdout)
    assert len(texts) == 1 and not copy.build.exists()


@pytest.mark.parametrize("words", ["help", "--help", "-h", "help help", "help --help"])
def test_help_on_all_commands(copy, words):
    done = copy.lab(*words.split())
    assert (done.returncode, done.stdout) == (0, (ROOT / "tools/help/lab.txt").read_text())


def test_no_command_is_told_what_there_is(copy):
    done = copy.lab()
    assert (done.returncode, done.stdout, done.stderr) == (2, "", (ROOT / "tools/help/lab.txt").read_text())


def test_help_texts_are_the_programs():
    """Word by word: CLI11's releases lay them out differently."""
    printed = help_texts.texts(PROGRAM)
    kept = {path.stem: path.read_text() for path in (ROOT / "tools/help").iterdir()}
    assert set(printed) == set(kept) - {"lab", "build"} and set(printed) < set(COMMANDS)
    for command, text in printed.items():
        assert kept[command].split() == text.split(), f"run tools/help_texts.py {PROGRAM}"


@pytest.mark.parametrize("typed, meant", [("lsit", "list"), ("bnech", "bench"), ("tests", "test"),
                                          ("hand-out", "handout")])
def test_an_unknown_command_is_told_the_nearest(copy, typed, meant):
    copy.refuses([typed], f"unknown command '{typed}': did you mean '{meant}'? ./lab help lists them")
    copy.refuses([typed, "--help"], f"did you mean '{meant}'?")


@pytest.mark.parametrize("words", ["diff 3 4", "doctor", "next", "--version"])
def test_a_full_disk_is_told(two_kernels, words):
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "tools/lab", *words.split()], stdout=full, stderr=subprocess.PIPE, text=True,
                              cwd=two_kernels.folder, env=dict(two_kernels.environment, LAB_NVCC="", LAB_PACKAGES="bash"))
    assert (done.returncode, done.stderr) == (2, "./lab: cannot write: No space left on device\n")


def test_a_standard_error_on_a_full_disk_leaves_the_status():
    with open("/dev/full", "w") as full:
        assert subprocess.run([sys.executable, ROOT / "tools/lab", "merge", "a.json", "b.json"], stderr=full).returncode == 2


@pytest.mark.parametrize("words", ["grade", "grade 3 --foo", "grade 3 --hint x", "grade 99", "handout", "handout /proc/x"])
def test_what_is_wrong_with_a_lab_is_told_in_a_line(copy, words):
    done = copy.run(sys.executable, f"tools/{words.split()[0]}.py", *(["--build", "build"] if "grade" in words else []),
                    *words.split()[1:])
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
    assert done.stderr.startswith("./lab: ") and "Errno" not in done.stderr


@pytest.mark.parametrize("limit", ["0", "-3"])
def test_sim_wants_a_limit_of_a_second_or_more(copy, limit):
    copy.write("program.cu", "int main() {}")
    done = copy.tool("sim", f"--limit={limit}", "program.cu")
    assert (done.returncode, done.stderr) == (2, f"./lab: sim: --limit must be at least 1 second; got {limit}\n")


def test_an_unknown_command_that_is_like_none(copy):
    copy.refuses(["frobnicate"], "unknown command 'frobnicate': ./lab help lists them")
    copy.refuses(["--frobnicate"], "unknown command '--frobnicate'")
    assert not copy.build.exists()


@pytest.mark.parametrize("words", ["doctor x", "doctor --install", "docs x", "build x", "new", "new a b",
                                   "diff", "diff 3", "diff 3 4 5", "diff 3 --all",
                                   "single", "single 3 4", "single 3 --all", "next 3",
                                   "notebook", "notebook 3 a.ipynb b", "notebook 99", "notebook 31a",
                                   "notebook 3 a.txt"])
def test_wrong_arguments(copy, words):
    copy.refuses(words.split(), f"./lab: {words.split()[0]}: ")
    assert not copy.build.exists()


def test_version(copy):
    number = re.search(r"VERSION (\d+\.\d+\.\d+)", (ROOT / "CMakeLists.txt").read_text())[1]
    assert copy.lab("--version").stdout == f"ConvLadder {number}\n"  # no checkout: no commit
    if (ROOT / ".git").exists():
        done = subprocess.run([ROOT / "lab", "--version"], capture_output=True, text=True)
        assert re.fullmatch(rf"ConvLadder {re.escape(number)} \([0-9a-f]+\)\n", done.stdout)


# ---- new ------------------------------------------------------------------------------------------------------------

def stages(copy):
    return sorted((json.loads(path.read_text()) for path in copy.folder.glob("chapters/*/stage.json")),
                  key=lambda stage: stage["number"])


def test_new_picks_the_next_number(copy):
    last = stages(copy)[-1]
    for number in (last["number"] + 1, last["number"] + 2):
        name = f"my-{number}th-idea"
        done = copy.lab("new", name)
        folder = f"chapters/{number:02}-{name}"
        assert (done.returncode, done.stdout, done.stderr) == (0, folder + "\n", "")
        made = {path.name: path.read_text() for path in (copy.folder / folder).iterdir()}
        assert set(made) == {"stage.json", f"my_{number}th_idea.cu", "test.cpp", "README.md"}
        assert not any("@" in text for text in made.values())
        stage = json.loads(made["stage.json"])
        assert (stage["number"], stage["name"], stage["track"], stage["previous"]) == (
            number, name, last["track"], number - 1)
        assert f'check_suite("{number:02}"' in made["test.cpp"]
        assert f"class Stage{number:02} " in made[f"my_{number}th_idea.cu"]


def test_new_takes_a_number_and_a_track(copy):
    of_winograd = [stage["number"] for stage in stages(copy) if stage["track"] == "winograd"]
    assert copy.lab("new", "--track", "winograd", "77-large-tiles").stdout == "chapters/77-large-tiles\n"
    assert copy.lab("new", "after").stdout == "chapters/78-after\n"
    made = {stage["number"]: stage for stage in stages(copy)}
    assert (made[77]["track"], made[77]["previous"]) == ("winograd", of_winograd[-1])
    assert (made[78]["track"], made[78]["previous"]) == ("winograd", 77)
    assert copy.lab("new", "99-last").returncode == 0
    copy.refuses(["new", "one-more"], "stage 99 is there already")


@pytest.mark.parametrize("words", ["new x", "doctor", "single 50"])
def test_a_stage_whose_json_is_broken_is_named(copy, words):
    copy.write("chapters/50-x/stage.json", '{"number": 50,')
    done = copy.lab(*words.split())
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done
    assert done.stderr.startswith("./lab: chapters/50-x/stage.json is not JSON: ")


def test_new_refuses(copy):
    copy.refuses(["new", "03-other"], "number 03 is taken by 03-tiled-1d")
    copy.refuses(["new", "tiled-1d"], "the name tiled-1d is taken by 03-tiled-1d")
    copy.refuses(["new", "x", "--track", "hoper"], "unknown track 'hoper'", "hopper")
    copy.refuses(["new", "x", "--track", "cpu"], "plain C++")
    for name in ("exercise", "50-exercise-b"):
        copy.refuses(["new", name], "the labs' own")
    for name in ("00-x", "X", "a_b", "a--b", "-a", "", "a/b", "ä", "100-x", "5-x", "60"):
        copy.refuses(["new", "--", name] if name.startswith("-") else ["new", name], "is no stage name")
    assert len(stages(copy)) == len(list(ROOT.glob("chapters/*/stage.json")))


# ---- test -----------------------------------------------------------------------------------------------------------

def write_tests(copy, **commands):
    """Tests of CTest: what each runs, and with which label."""
    text = ""
    for name, (command, label) in commands.items():
        text += f'add_test({name} sh -c "{command}")\n'
        text += f"set_tests_properties({name} PROPERTIES LABELS {label} SKIP_RETURN_CODE 77)\n"
    copy.write("build/CTestTestfile.cmake", text)


def test_report_of_tests(copy):
    write_tests(copy, good=("true", "fast"), better=("echo unseen", "slow"), bad=("echo why; false", "fast"),
                absent=("exit 77", "gpu"), fastest=("true", "faster"))
    done = copy.tool("test")
    lines = done.stdout.splitlines()
    assert (done.returncode, lines[-1]) == (1, "3 passed, 1 failed, 1 skipped")
    assert any(re.search(r"Test +#\d+: bad .*\*\*\*Failed", line) for line in lines)  # .ci/run looks for both
    assert any(re.fullmatch(r"\s+\d+ - bad \(Failed\)", line) for line in lines)
    assert "why" in lines and "unseen" not in done.stdout and " Passed " not in done.stdout
    assert "Not built: the tests of the GPU side (no nvcc)" in lines
    assert " Passed " in (copy.build / "test.log").read_text()
    done = copy.tool("test", "--fast", "-E", "bad")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "1 passed, 0 failed")
    assert "--fast" in done.stdout
    done = copy.tool("test", "-R", "b.d|better", "-LE", "slow")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "0 passed, 1 failed")


def test_a_run_without_tests_has_failed(copy):
    write_tests(copy, good=("true", "fast"))
    assert copy.tool("test").returncode == 0
    done = copy.tool("test", "-R", "nothing")  # the results of the run before must not count
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "0 passed, 1 failed")


def test_every_test_has_a_label():
    listed = subprocess.run(["ctest", "--test-dir", PROGRAM.parents[1], "--show-only=json-v1"], capture_output=True)
    tests = json.loads(listed.stdout)["tests"]
    labels = {test["name"]: [p["value"] for p in test["properties"] if p["name"] == "LABELS"] for test in tests}
    assert len(labels) > 10 and {name: found for name, found in labels.items()
                                 if found not in ([["fast"]], [["slow"]], [["gpu"]])} == {}


def test_colours_are_for_terminals(copy):
    write_tests(copy, good=("true", "fast"))
    assert "\033" not in copy.tool("test").stdout + copy.tool("doctor").stdout
    assert copy.on_terminal("test").endswith("\033[32m1 passed, 0 failed\033[0m\r\n")
    assert copy.on_terminal("test", NO_COLOR="1").endswith("\n1 passed, 0 failed\r\n")
    write_tests(copy, bad=("false", "fast"))
    assert copy.on_terminal("test").endswith("\033[31m0 passed, 1 failed\033[0m\r\n")
    assert "\033" not in (copy.build / "test.log").read_text()
    assert re.search(r"\nnvcc +\033\[31mmissing +\033\[0m the GPU side", copy.on_terminal("doctor"))
    assert "\033" not in copy.on_terminal("doctor", NO_COLOR="1")


# ---- diff -----------------------------------------------------------------------------------------------------------

@pytest.fixture
def two_kernels(copy):
    """Of stages 3 and 4: a line of them differs besides indentation, their names and the opening comments."""
    copy.write("chapters/03-tiled-1d/tiled_1d.cu",
               "// Tiles.\n\nvoid tiled_1d(int i) {\n  use(i);\n  wait();\n  stop();\n}\n")
    copy.write("chapters/03-tiled-1d/test.cpp", "the_test();\n")
    copy.write("chapters/04-halo-1d/halo_1d.cuh", "// Halo.\nvoid halo_1d(int i) {\n    use(i);\n  pass();\n")
    copy.write("chapters/04-halo-1d/halo_1d.cu", "  stop();\n}\n")
    copy.write("chapters/04-halo-1d/exercise.cu", "the_lab();\n")
    return copy


@pytest.mark.parametrize("words", ["diff 3 4", "diff 03 halo-1d", "diff 03-tiled-1d 04-halo-1d",
                                   "diff chapters/03-tiled-1d/ chapters/04-halo-1d"])
def test_diff(two_kernels, words):
    done = two_kernels.lab(*words.split())
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("03-tiled-1d → 04-halo-1d: lines that go: 1, that come: 1\n"
                           "@@ tiled_1d.cu:3 → halo_1d.cuh:2 @@\n"
                           " void halo_1d(int i) {\n     use(i);\n-  wait();\n+  pass();\n   stop();\n }\n")
    assert two_kernels.lab("diff", "3", "3").stdout == "03-tiled-1d → 03-tiled-1d: lines that go: 0, that come: 0\n"
    assert not two_kernels.build.exists()


def test_diff_is_coloured_on_a_terminal(two_kernels):
    assert "\033[31m-  wait();\033[0m" in two_kernels.on_terminal("diff", "3", "4")
    assert "\033" not in two_kernels.on_terminal("diff", "3", "4", NO_COLOR="1")
    assert "\033" not in two_kernels.tool("diff", "3", "4").stdout


def test_diff_of_no_stage(copy):
    copy.refuses(["diff", "3", "99"], "diff: unknown stage '99'; './lab list' shows the stages")
    copy.refuses(["diff", "tild-1d", "3"], "unknown stage 'tild-1d', did you mean 'tiled-1d'?; './lab list'")


def test_diff_of_steps(copy):
    for label in ("04a", "04b"):
        copy.write(f"chapters/04-halo-1d/{label}-one/stage.json", "{}")
        copy.write(f"chapters/04-halo-1d/{label}-one/one.cu", f"void {label}();\n")
    assert copy.lab("diff", "4a", "04b").stdout == ("04a-one → 04b-one: lines that go: 1, that come: 1\n"
                                                    "@@ one.cu:1 → one.cu:1 @@\n-void 04a();\n+void 04b();\n")
    copy.refuses(["diff", "04a", "04c"], "diff: unknown step '04c'; chapter 04 has the steps 04a, 04b")
    copy.refuses(["diff", "3", "3A"], "diff: unknown step '3A'; chapter 3 has no steps")
    assert copy.lab("diff", "chapters/04-halo-1d/04a-one/", "4a").returncode == 0


# ---- next -----------------------------------------------------------------------------------------------------------

@pytest.fixture
def three_labs(copy):
    for number, name in ((1, "naive-1d"), (2, "constant-1d"), (22, "im2win-cpu")):
        folder = f"chapters/{number:02}-{name}"
        copy.write(f"{folder}/lab.json", json.dumps({"title": f"Task {number}", "minutes": 30}))
        copy.write(f"{folder}/exercise.{'cpp' if number == 22 else 'cu'}", "code\n")
    return copy


def graded(copy, **scores):
    """As ./lab grade leaves it; the later ones were graded later."""
    digest = hashlib.sha256(b"code\n").hexdigest()
    copy.write("build/labs/marks.json", json.dumps(
        {name: {"score": score, "max_score": 100, "graded": time, "sha256": digest}
         for time, (name, score) in enumerate((name.replace("_", "-"), score) for name, score in scores.items())}))


def test_next(three_labs):
    def lines():
        done = three_labs.lab("next")
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout.splitlines()

    assert lines() == ["Done: 0 of 3 labs", 'Next: lab 01, "Task 1", about 30 minutes',
                       "  read   chapters/01-naive-1d/README.md, then chapters/01-naive-1d/LAB.md",
                       "  write  chapters/01-naive-1d/exercise.cu", "  grade  ./lab grade 1 --watch"]
    graded(three_labs, **{"02_constant_1d": 100})
    assert lines()[:2] == ["Done: 1 of 3 labs (02)", 'Next: lab 22, "Task 22", about 30 minutes']
    assert "  write  chapters/22-im2win-cpu/exercise.cpp" in lines()
    graded(three_labs, **{"22_im2win_cpu": 100, "02_constant_1d": 40})  # the last one lacks points
    assert lines()[:3] == ["Done: 1 of 3 labs (22)", "Begun: lab 02, 40 of 100 points",
                           'Next: lab 02, "Task 2", about 30 minutes']
    three_labs.write("chapters/02-constant-1d/exercise.cu", "other code\n")
    assert lines()[1] == "Begun: lab 02, 40 of 100 points, and its file has changed since"
    graded(three_labs, **{"01_naive_1d": 100, "02_constant_1d": 100, "22_im2win_cpu": 100})
    assert lines() == ["Done: 3 of 3 labs (01, 02, 22)", "All labs are done."]
    three_labs.write("build/labs/marks.json", "{")
    assert lines()[0] == "Done: 0 of 3 labs"

# ---- notebook -------------------------------------------------------------------------------------------------------

LESSON = """\
# 03 tiled-1d: a title

<!--figures x-->

**The idea.** It takes <!--= time(3) as .1 µs-->1.5 µs<!--/-->: see [01](../01-naive-1d/README.md#the-idea).
It has `a[0](b)`.

## The idea

<!-- trace -->

```math
x^2
```

![A drawing](reads.svg)

## What to count

```
./lab run 3   # [no](link) <!-- kept -->
```

## What happened, and why

Nothing.
"""
# Instead of jupytext: it keeps the script as it is.
JUPYTEXT = """import pathlib
def reads(text, fmt):
    assert fmt == "py:percent"
    return text
def write(notebook, file):
    pathlib.Path(file).write_text(notebook)
"""


def test_notebook(copy):
    copy.write("chapters/03-tiled-1d/README.md", LESSON)
    copy.write("chapters/03-tiled-1d/reads.svg", "<svg><style>@media (prefers-color-scheme: dark) {}</style></svg>")
    copy.write("stand-in/jupytext.py", JUPYTEXT)
    environment = {"PYTHONPATH": str(copy.folder / "stand-in")}
    done = copy.tool("notebook", "3", **environment)
    file = copy.build / "notebooks/03-tiled-1d.ipynb"
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{file}\n", ""), done
    text = file.read_text()
    assert ("# **The idea.** It takes 1.5 µs: see [01](../../chapters/01-naive-1d/README.md#the-idea).\n"
            "# It has `a[0](b)`.\n") in text
    assert "# $$\n# x^2\n# $$\n" in text and "(Here the site that `./lab docs` makes has a player" in text
    assert "# ./lab run 3   # [no](link) <!-- kept -->\n" in text
    drawing = base64.b64decode(re.search(r"!\[A drawing\]\(data:image/svg\+xml;base64,(.*?)\)", text)[1]).decode()
    assert drawing == "<svg><style>svg { background: #fff; }@media not all {}</style></svg>"
    order = ["03 tiled-1d: a title", "import convladder", "stage=3", "## The idea", "## What to count",
             "simulate(3, x, w)", "simulate(2, x, w)", "show_lines(seen.lines)", "## What happened", "bench([3, 2], "]
    places = [text.find(part) for part in order]
    assert places == sorted(places) and places[0] > 0, places
    compile(text, "notebook", "exec")
    # What is there may be somebody's work.
    file.write_text("mine")
    done = copy.tool("notebook", "3", **environment)
    assert (done.returncode, done.stderr.count("\n"), file.read_text()) == (2, 1, "mine") and "is there" in done.stderr
    done = copy.tool("notebook", "tiled-1d", "sub/mine.py", **environment)
    assert (done.returncode, done.stdout) == (0, "sub/mine.py\n")
    assert "](../chapters/01-naive-1d/README.md#the-idea)" in (copy.folder / "sub/mine.py").read_text()
    copy.write("chapters/03-tiled-1d/README.md", LESSON.replace("What happened, and why", "What else"))
    done = copy.tool("notebook", "3", "new.py", **environment)
    assert done.returncode == 2 and "has no section 'What happened, and why'" in done.stderr


def test_notebook_without_jupytext(copy):
    copy.write("chapters/03-tiled-1d/README.md", LESSON)
    if importlib.util.find_spec("jupytext"):
        pytest.skip("jupytext is installed")
    copy.refuses(["notebook", "3"], "needs jupytext: python3 -m pip install '.[notebook]'")

# ---- doctor, --plot -------------------------------------------------------------------------------------------------

def test_doctor(copy):
    out = copy.tool("doctor").stdout
    assert re.search(r"^nvcc +missing +the GPU side \(./lab doctor --install-cuda\)$", out, re.M)
    assert re.search(r"^libraries +all packages installed +everything$", out, re.M)
    assert "\nstage 03 tiled-1d                 simulator: any machine; GPU: sm_70 or newer\n" in out
    assert "\nstage 22 im2win-cpu               runs on the CPU: any machine\n" in out
    out = copy.run(sys.executable, "tools/lab", "doctor", LAB_NVCC="/x/bin/nvcc", LAB_PACKAGES="bash nothing").stdout
    assert re.search(r"^nvcc +/x/bin/nvcc +the GPU side", out, re.M)
    assert re.search(r"^libraries +missing +everything nothing$", out, re.M)
    for library in ("CUTLASS", "NPP"):
        assert re.search(rf"^{library} +missing +bench's rows? of {library} \(./lab doctor --install-baselines\)$", out, re.M)


def test_doctor_finds_baselines_and_says_where_they_cannot_be_installed(copy):
    packages = ".venv-baselines/lib/python3.11/site-packages"
    copy.write(f"{packages}/cutlass_library/source/include/cutlass/cutlass.h", "")
    copy.write(f"{packages}/nvidia/cu13/lib/libnppif.so.13", "")
    out = copy.tool("doctor").stdout
    assert re.search(rf"^CUTLASS +\S*/{packages}/cutlass_library\S* +bench's rows of CUTLASS", out, re.M)
    assert re.search(rf"^NPP +\S*/{packages}/nvidia/cu13/lib/libnppif.so.13 +bench's row of NPP", out, re.M)
    shutil.rmtree(copy.folder / ".venv-baselines")
    copy.write(".venv-baselines", "in the way")
    done = copy.tool("doctor", "--install-baselines")
    assert done.returncode == 2
    assert "the baselines could not be taken from PyPI" in done.stderr


def stand_in(copy, name, script):
    """A program that the copy finds first."""
    copy.write(f"bin/{name}", "#!/bin/bash\n" + script, mode=0o755)


def test_cuda_from_pypi_wants_a_driver(copy):
    copy.write("cmake/cuda-from-pypi.sh", (ROOT / "cmake/cuda-from-pypi.sh").read_text(), mode=0o755)
    stand_in(copy, "nvidia-smi", "echo 550.90.07\n")
    for words, status in ((["doctor", "--install-cuda"], 2), (["offer-cuda"], 0)):  # without it the simulator serves
        done = copy.tool(*words, CONVLADDER_YES="1")
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (status, "", 1), done
        assert "driver 550.90.07 takes no CUDA 13" in done.stderr and "or the CUDA Toolkit 12.9" in done.stderr
    stand_in(copy, "nvidia-smi", "echo 580.65.06\n")
    done = copy.tool("offer-cuda")
    assert (done.returncode, done.stderr.count("\n")) == (0, 1) and "a GPU, but no nvcc: './lab doctor" in done.stderr


def test_install_packages(copy):
    stand_in(copy, "id", "echo 0\n")
    stand_in(copy, "apt-get", f'echo "$*" >>{copy.folder}/calls\n')
    stand_in(copy, "dpkg-query", "echo '/g++ install ok installed/'\n")
    done = copy.lab("doctor", "--install-packages")
    assert (done.returncode, done.stdout) == (0, ""), done
    update, install = (copy.folder / "calls").read_text().splitlines()
    assert update == "update -q" and " libfmt-dev" in install and "g++" not in install
    stand_in(copy, "dpkg-query", 'for name; do printf "/$name install ok installed/"; done\n')
    done = copy.lab("doctor", "--install-packages")
    assert (done.returncode, done.stderr) == (0, "./lab: no package is missing\n")
    copy.refuses(["doctor", "--install-packages", "--install-cuda"], "stands alone")
    assert len((copy.folder / "calls").read_text().splitlines()) == 2 and not copy.build.exists()


def test_what_the_build_does_without_is_told_once(copy):
    stand_in(copy, "cmake", """[ "$1" = --preset ] || exit 0
echo "-- no OpenBLAS (libopenblas-dev): one row less"
echo "-- no cuDNN: no rows of its"
echo "-- no compiler warnings"
touch build/CMakeCache.txt build/build.ninja
""")
    stand_in(copy, "apt-get", "exit 1\n")
    program(copy, "echo ran")
    done = copy.lab("list")
    assert (done.returncode, done.stdout) == (0, "ran\n"), done
    assert done.stderr.splitlines() == ["./lab: configuring", "./lab: trying to install libopenblas-dev",
                                        "./lab: no OpenBLAS (libopenblas-dev): one row less",
                                        "./lab: no cuDNN: no rows of its"]
    assert copy.lab("list").stderr == ""
    (copy.build / "build.ninja").unlink()  # as an interrupted build leaves it
    assert copy.lab("list").stderr.startswith("./lab: configuring\n")
    for name in ("nope", "sim"):  # one that there is not, and one that builds elsewhere
        done = copy.run("bash", "lab", "list", CONVLADDER_PRESET=name)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"./lab: CONVLADDER_PRESET is '{name}'; it must be one of default ci-students ci\n"
        assert (copy.build / "CMakeCache.txt").exists() and copy.lab("list").stderr == ""


PLOT = """import pathlib, sys
pathlib.Path(sys.argv[2]).mkdir(exist_ok=True)
pathlib.Path(sys.argv[2], "drawn").write_text(pathlib.Path(sys.argv[1]).read_text())
"""


@pytest.fixture
def plotting(copy):
    copy.write("tools/plot.py", PLOT)
    return copy


def program(copy, script):
    copy.write("build/bin/convladder", "#!/bin/bash\n" + script, mode=0o755)


def drawn(copy):
    path = copy.folder / "out/drawn"
    return path.read_text() if path.exists() else None


def test_bench_draws_what_this_run_has_measured(plotting):
    program(plotting, 'echo "$*"\nwhile [ "$1" != --json ]; do shift; done\necho "$RESULT" >"$2"\nexit "$STATUS"\n')
    done = plotting.tool("plot", "bench", "--plot", "out", "--stage=3", "--", "--plot", RESULT="new", STATUS="0")
    assert (done.returncode, drawn(plotting)) == (0, "new\n"), done
    assert re.fullmatch(r"bench --stage=3 --json \S+ -- --plot\n", done.stdout)
    done = plotting.tool("plot", "bench", "--json", "mine.json", "--plot=out", RESULT="mine", STATUS="1")
    assert (done.returncode, drawn(plotting)) == (1, "mine\n")
    assert (plotting.folder / "mine.json").read_text() == "mine\n"
    # A run that leaves no results does not draw those of an earlier one.
    plotting.write("mine.json", "old")
    (plotting.folder / "out/drawn").unlink()
    program(plotting, "exit 2")
    done = plotting.tool("plot", "bench", "--json", "mine.json", "--plot", "out")
    assert (done.returncode, drawn(plotting)) == (2, None)


@pytest.fixture
def submitting(copy):
    """A clean checkout with a GPU, whose program writes what it is told as results."""
    copy.write("bin/nvidia-smi", '#!/bin/bash\ncase $1 in -L) echo "GPU 0: NVIDIA X" ;; *) echo "NVIDIA X, 580.1, 700.00, 1980" ;; '
               "esac\n", mode=0o755)
    copy.write("tools/checks/check_submissions.py", 'import os, sys\nprint("checked", sys.argv[1])\n'
               'sys.exit(int(os.environ.get("CHECK", 0)))\n')
    program(copy, 'echo "$*"\nwhile [ "$1" != --json ]; do shift; done\n[ -z "$RESULT" ] || echo "$RESULT" >"$2"\n'
                  'exit "${STATUS:-0}"\n')
    copy.write(".gitignore", "build/\nbin/\n__pycache__/\nout*/\n")
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=b", "commit", "-qm", "c"]):
        assert copy.run("git", *words).returncode == 0
    return copy


RESULTS = json.dumps({"device": {"name": "NVIDIA X", "compute_capability": 90}, "toolchain": {"compiler": "g++"}})


def test_bench_writes_what_a_pull_request_of_results_needs(submitting):
    done = submitting.tool("submit", "--workload", "all", "--submit", "out", RESULT=RESULTS)
    assert (done.returncode, done.stdout) == (0, "bench --workload all --backend gpu --json out/results.json\n"), done
    assert "checked out" in done.stderr and "out has what a pull request of your results needs" in done.stderr
    results, own = ((submitting.folder / "out" / name).read_text() for name in ("results.json", "submission.json"))
    own = json.loads(own)
    commit = own["commit"]
    assert commit == submitting.run("git", "rev-parse", "HEAD").stdout.strip()
    assert own["sha256"] == {"results.json": hashlib.sha256(results.encode()).hexdigest()}
    assert own["device"] == {"name": "NVIDIA X", "compute_capability": 90, "driver": "580.1", "power_limit_w": 700.0,
                             "most_sm_mhz": 1980.0}
    assert (own["command"], own["versions"]) == ("./lab bench --workload all", {"compiler": "g++"})
    submitting.write("results-of-another-run", "")
    for words in (["add", "-A"], ["-c", "user.name=a", "-c", "user.email=b", "commit", "-qm", "no code"]):
        assert submitting.run("git", *words).returncode == 0
    assert submitting.tool("submit", "--submit", "out2", RESULT=RESULTS).returncode == 0
    assert json.loads((submitting.folder / "out2/submission.json").read_text())["commit"] == commit
    assert submitting.tool("submit", "--submit=out", RESULT=RESULTS, CHECK="1").returncode == 1  # does not hold together
    assert submitting.tool("submit", "--submit=out", RESULT=RESULTS, STATUS="1").returncode == 1  # a row failed
    done = submitting.tool("submit", "--submit", "out", RESULT="", STATUS="2")  # nothing of the earlier run remains
    assert done.returncode == 2 and not list((submitting.folder / "out").iterdir())


@pytest.mark.parametrize("words, change, message", [
    (["--submit"], None, "--submit needs a folder"),
    (["--submit", "out", "--stage", "3"], None, "leave out --stage"),
    (["--submit", "out", "--", "--benchmark_filter=x"], None, "leave out what follows --"),
    (["--submit", "out"], "CMakeLists.txt", "measures what is committed"),
    (["--submit", "out"], "out/other", "'out' holds other files"),
    (["--submit", "CMakeLists.txt"], None, "cannot make the folder"),
])
def test_what_bench_does_not_submit(submitting, words, change, message):
    if change:
        submitting.write(change, "changed")
    done = submitting.lab("bench", *words)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1, done
    assert message in done.stderr


def test_tune_draws_its_log(plotting):
    plotting.write("log.json", "the log")
    program(plotting, 'echo "$*"\necho "log: log.json"\nexit 130\n')
    done = plotting.tool("plot", "tune", "15", "--plot", "out")
    assert (done.returncode, done.stdout, drawn(plotting)) == (130, "tune 15\nlog: log.json\n", "the log")
    program(plotting, 'echo "{}"\n')
    done = plotting.tool("plot", "tune", "--json", "--plot", "out")
    assert (done.returncode, done.stdout, drawn(plotting)) == (0, "{}\n", "{}\n")
    program(plotting, "exit 2\n")
    assert plotting.tool("plot", "tune", "--plot", "out").returncode == 2


def test_what_drawing_needs_is_told_before_the_run(plotting):
    program(plotting, "touch ran")
    for words, part in ((["--plot"], "--plot needs a folder"), (["--plot", "/dev/null/x"], "--plot")):
        done = plotting.lab("bench", *words)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done
        assert part in done.stderr
    assert not (plotting.folder / "ran").exists()
