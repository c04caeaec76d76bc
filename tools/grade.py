#!/usr/bin/env python3
"""Grades the exercise of a chapter: `./lab grade` builds what this needs, then runs it.

    grade.py --build DIR CHAPTER [--file FILE] [--json] [--watch] [--hint LEVEL | --no-hints] [--variant SEED]

1. The file is looked over and compiled (`build_exercise`): it may use what kernel.hpp and its companions offer, and
   nothing else of the machine.
2. The judge makes the cases, of a fresh seed.
3. The runner, with the exercise linked in, runs them in a process of its own, in the simulator and, with a GPU, there
   too; or on the host's processor, where the lab is about that. It has the inputs, a limit on its processor time and
   memory, and a folder for what comes out.
4. The judge, which holds the right results, compares and gives the marks; feedback.py says them.

Exit status: 0 for full marks, 1 for marks lost, 2 where nothing could be graded.
"""
import argparse
import contextlib
import ctypes
import functools
import hashlib
import json
import os
import pathlib
import re
import resource
import secrets
import signal
import subprocess
import sys
import tempfile
import time

from feedback import as_gradescope, as_text, shorten

ROOT = pathlib.Path(__file__).resolve().parents[1]

COMPILE_SECONDS = 120
RUN_SECONDS = 10  # of processor time, for one process; a correct answer takes about one for all cases
WALL_SECONDS = 60  # for all cases, restarts included
RUN_GIB = 6
THREADS = 4  # of an exercise on the host, on however many cores
DEATHS = 3  # how often the runner may crash, or be stopped, before the remaining cases are given up
POLL_SECONDS = 0.3  # of --watch
GIB = 1 << 30
PR_SET_PDEATHSIG, PR_SET_DUMPABLE = 1, 4  # of prctl(2)
FACTORY = "_Z13make_exercisev"  # convladder::Stage* make_exercise()


class Unusable(Exception):
    """Nothing can be graded: one line for the person who called."""


class Rejected(Exception):
    """The file earns nothing: what is wrong with it, and what to do."""

    def __init__(self, message, hint):
        super().__init__(message)
        self.hint = hint


UNUSABLE = (Unusable, OSError, subprocess.CalledProcessError, ValueError)


# ---- The chapter -----------------------------------------------------------------------------------------------------


def chapters():
    return sorted(path.parent for path in ROOT.glob("chapters/*/stage.json"))


def find_chapter(designation):
    is_number = designation.isascii() and designation.isdigit()
    for folder in chapters():
        number, name = folder.name.split("-", 1)
        if designation.removeprefix("chapters/").rstrip("/") in (folder.name, name) or (is_number and int(designation) == int(number)):
            if (folder / "lab.json").exists():
                return folder
            raise Unusable(f"chapter {folder.name} has no lab; these have: {', '.join(with_labs())}")
    raise Unusable(f"there is no chapter '{designation}'; labs: {', '.join(with_labs())}")


def with_labs():
    return [folder.name for folder in chapters() if (folder / "lab.json").exists()] or ["none"]


def runs_on_host(lab):
    """Whether the lab's exercise is plain C++ for the host, and not a kernel file."""
    try:
        return json.loads(lab.read_text()).get("runs") == "host"
    except (OSError, ValueError, AttributeError):
        return False  # the judge says what is wrong with it


def exercise_of(folder):
    return folder / ("exercise.cpp" if runs_on_host(folder / "lab.json") else "exercise.cu")


# ---- Variants --------------------------------------------------------------------------------------------------------

# In a shape of lab.json a size may be a range: w=300..340, or h=16..32/8 for every eighth. Without --variant it is the
# first; with it, it is drawn, so that each student has shapes, outputs and counters of his own.
RANGE = re.compile(r"(\d+)\.\.(\d+)(?:/(\d+))?")


def variant_name(text):
    if not re.fullmatch(r"[\w.@-]{1,64}", text):
        raise argparse.ArgumentTypeError(f"'{text}' is no seed")
    return text


def drawn(shape, variant, chapter):
    """A shape whose ranges are numbers. Equal shapes of a lab are drawn alike, on any machine."""
    places = iter(range(len(shape)))

    def number(match):
        low, high, step = (int(group or 1) for group in match.groups())
        if low > high or step == 0:
            raise Unusable(f"'{match[0]}' is no range")
        if variant is None:
            return str(low)
        digest = hashlib.sha256(f"{variant}/{chapter}/{shape}/{next(places)}".encode()).digest()
        return str(low + step * (int.from_bytes(digest[:8], "big") % ((high - low) // step + 1)))

    return RANGE.sub(number, shape)


def vary(lab, variant, folder):
    """The lab with its shapes drawn, as a file in `folder`, and which these are. As it is, where nothing is drawn."""
    text = lab.read_text() if lab.exists() else ""
    shapes = []

    def draw(match):
        shape = drawn(match[0], variant, lab.parent.name)
        if shape not in shapes:
            shapes.append(shape)
        return shape

    changed = re.sub(r'"[a-z_]+=[^"]*\d\.\.\d[^"]*"', draw, text)
    if not shapes:
        return lab, []
    path = folder / "lab.json"
    path.write_text(changed)
    return path, [shape.strip('"') for shape in shapes]


# ---- What a file may hold --------------------------------------------------------------------------------------------

# A student's file and what it includes run in the runner's process, so it must not reach around the simulator: no other
# headers of the project, no calls of the system, no code that escapes the hooks or runs before main().

# The folders whose headers an exercise may include: what kernels and harness agree on, and what kernel files include.
FOLDERS = ["common/stage", "common/kernel", "common/kernel/tracks"]
OFFERED = sorted(str(path.relative_to(ROOT)) for folder in FOLDERS for path in (ROOT / folder).glob("*.hpp"))
HEADERS = f"the headers of {', '.join(FOLDERS[:-1])} and {FOLDERS[-1]}"
LANGUAGE = ["cfloat", "climits", "cmath", "cstddef", "cstdint", "limits", "math.h", "stddef.h", "stdint.h", "type_traits"]
LANGUAGE_ON_HOST = [*LANGUAGE, "algorithm", "omp.h"]
DIRECTIVES = {"include", "define", "undef", "if", "ifdef", "ifndef", "elif", "else", "endif", "pragma", "error"}
# As a compiler reads: the first of these that begins at a place is there. Raw strings and grouped digits are rejected,
# since they would make this reading a guess.
LEXEME = re.compile(r"""(?P<raw>\b(?:u8|[uUL])?R")|(?P<grouped>\b\d[\w.]*')|(?P<comment>//[^\n]*|/\*.*?\*/)|"""
                    r"""(?P<quoted>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""", re.S)
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
# What the preprocessor makes of the words that kernel.hpp offers.
EXPANSIONS = re.compile(r"__attribute__\s*\(\(\s*(always_inline|aligned\s*\(\w+\)|(used\s*,\s*)?"
                        r'section\s*\("simt_constant"\)|used)\s*\)\)|::simt::(thread_index|block_index|block_size|'
                        r"grid_size)\(\)|::simt::(copy_memory|set_memory)\b|::simt::Guard\s+simt_guard_\d+")
FORBIDDEN = re.compile(r"\b(asm|__asm(__)?|__attribute(__)?|_Pragma|__pragma|gnu|__gnu__|no_sanitize\w*|__builtin_\w+|"
                       r"simt\w*|SIMT_\w+|__tsan\w*|__sanitizer\w*|operator\s+(new|delete))\b|\bextern\s*\"")
# What would let a file show one face to the simulator and another to nvcc.
TELLTALE = re.compile(r"\b__(CUDA|NVCC|SANITIZE)\w*")
PRINTING = re.compile(r"\b(f?printf|puts)\b")
PRAGMA = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+(?!unroll\b|once\b|nv_)(.*)$", re.M)
PRAGMA_ON_HOST = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+(?!omp\b|once\b)(.*)$", re.M)

# Functions of the simulator's kernel-facing headers (simt.hpp, half.hpp, wmma.hpp, mma.hpp, hopper.hpp), and what
# compilers call on their own.
CALLS = re.compile(
    r"__tsan_\w+|__sanitizer_cov_trace_pc|atomic(Add|Min|Max|Exch|CAS)\(.*|"
    r"simt::(thread_index|block_index|block_size|grid_size|lane_index|dynamic_shared_memory|block_barrier|collective|"
    r"fence|(load|store)_signal|copy_memory|set_memory|copy_async|commit_copies|wait_copies|run_grid|defer|"
    r"copy_to_constant|watch|ballot|"
    r"half_\w+|halves_\w+|round_to_int|fill_elements|(load|store)_matri(x|ces)|"
    r"multiply_(matrices|halves|bytes)|(fence_)?mbarrier_\w+|fence_async_proxy|named_barrier|bulk_\w+|"
    r"tensor_(load|store)|matrix_descriptor|wgmma(_\w+)?)\(.*|convladder::make_tensor_map\(.*|"
    r"operator (new|delete)\(.*|__gxx_personality_v0|_Unwind_Resume|__stack_chk_fail|__cxa_pure_virtual|"
    r"__start_simt_constant|__stop_simt_constant|_GLOBAL_OFFSET_TABLE_|__tls_get_addr|"
    r"(vtable|typeinfo) for (__cxxabiv1::__\w+|convladder::Stage)|memcpy|memset|memmove|"
    r"f?(abs|ma|min|max|mod)f?|(exp|exp2|log|log2|pow|sqrt|rsqrt|sin|cos|tan|tanh|floor|ceil|round|trunc|rint)f?")

# On the host: of OpenMP's functions those that ask, and what compilers make of its pragmas. No hook sees an atomic, and
# the runner counts what one operator new hands out.
CALLS_ON_HOST = re.compile(r"(?!__tsan_atomic|simt::(run_grid|defer|watch|copy_to_constant)\(|"
                           r"operator new(?!\(unsigned long\)$))(" + CALLS.pattern +
                           r"|GOMP_(parallel|loop_\w+|barrier|critical_\w+|single_\w+)|__kmpc_\w+|"
                           r"omp_get_(num_threads|max_threads|thread_num))")


def lexed(source):
    """The text without comments, and the same without what stands in quotes."""
    text = re.sub(r"\\[ \t]*\n", "", source.replace("\r\n", "\n"))
    control = CONTROL.search(text)
    if control:
        raise Rejected(f"holds the control character {control[0]!r}", "remove it")
    code, bare, end = [], [], 0
    for lexeme in LEXEME.finditer(text):
        if lexeme["raw"] or lexeme["grouped"]:
            raise Rejected(f"'{lexeme[0]}' is not allowed in an exercise", "write plain strings, and digits without '")
        between = text[end:lexeme.start()]
        code += [between, lexeme["quoted"] or " "]
        bare += [between, lexeme[0][0] * 2 if lexeme["quoted"] else " "]
        end = lexeme.end()
    return "".join([*code, text[end:]]), "".join([*bare, text[end:]])


def look_over_source(source, on_host):
    """Rejects what a file must not hold as it is written."""
    code, bare = lexed(source)
    language = LANGUAGE_ON_HOST if on_host else LANGUAGE
    include = re.compile(r'\s*("(' + "|".join(map(re.escape, OFFERED)) + r')"|<(' + "|".join(map(re.escape, language)) +
                         r")>)\s*")
    for line in code.split("\n"):
        directive = re.match(r"\s*(?:#|%:)\s*(\w*)(.*)", line)
        if not directive:
            continue
        if directive[1] not in DIRECTIVES | {""}:
            raise Rejected(f"the directive '#{directive[1]}' is not allowed", "remove it")
        if directive[1] == "include" and not include.fullmatch(directive[2]):
            raise Rejected(f"includes {directive[2].strip()}", f"an exercise may include {HEADERS}, and "
                           f"<{'>, <'.join(language)}>")
    for pattern, remedy in ((PRINTING, "nothing is printed here; the marks name the shape, the output, the line and the "
                             "thread"), (TELLTALE, "write the same code for both back ends"),
                            (FORBIDDEN, f"write it in plain {'C++' if on_host else 'CUDA C++'}")):
        found = pattern.search(bare)
        if found:
            raise Rejected(f"'{found[0]}' is not allowed in an exercise", remedy)


def look_over_expansion(preprocessed, on_host):
    """The same for what its macros make of it. Line markers tell which text is the file's own."""
    own, depth = [], 0
    for line in preprocessed.split("\n"):
        marker = re.match(r'# \d+ "[^"]*"((?: \d)*)$', line)
        if not marker:
            if depth == 0:
                own.append(line)
        elif "1" in marker[1].split():
            depth += 1
        elif "2" in marker[1].split():
            depth = max(depth - 1, 0)
    text = "\n".join(own)
    pragma = (PRAGMA_ON_HOST if on_host else PRAGMA).search(text)
    if pragma:
        raise Rejected(f"'#pragma {pragma[1]}' is not allowed", "use OpenMP's alone" if on_host else
                       "use UNROLL and UNROLL_BY(n) for loops")
    forbidden = FORBIDDEN.search(EXPANSIONS.sub(" ", text))
    if forbidden:
        raise Rejected(f"'{forbidden[0]}' is not allowed in an exercise",
                       f"write it in plain {'C++' if on_host else 'CUDA C++'}")


@functools.cache  # those of the libraries are the same for every exercise
def offered_by(nm, libraries):
    return {name for library in libraries for name in symbols_of(nm, library, "-C", "--defined-only")}


def symbols_of(nm, path, *flags):
    output = subprocess.run([nm, *flags, path], capture_output=True, text=True, check=True).stdout
    return [line.split(None, 2 if line[:1].strip() else 1)[-1] for line in output.splitlines() if " " in line.strip()]


def variables_of(toolchain, path):
    """Whatever can be written and is there before and after a call: globals, statics, thread_local ones."""
    output = subprocess.run([toolchain["nm"], "-C", "--defined-only", "-f", "sysv", path], capture_output=True,
                            text=True, check=True).stdout
    for line in output.splitlines():
        fields = [field.strip() for field in line.rsplit("|", 6)]  # name, value, class, type, size, line, section
        if len(fields) == 7 and fields[3] in ("OBJECT", "TLS") and not fields[0].startswith("DW.ref."):
            if not re.match(r"\.rodata|\.data\.rel\.ro", fields[6]):
                yield fields[0]


def check_symbols(toolchain, compiled, on_host):
    calls = CALLS_ON_HOST if on_host else CALLS
    needs = (f"it may call what {HEADERS} and <algorithm> offer, and use OpenMP without atomics, which "
             "reduction(...) needs too" if on_host else
             f"kernels and launches need nothing but what {HEADERS} offer")
    nm = toolchain["nm"]
    offered = offered_by(nm, tuple(toolchain["offered"]))
    for name in symbols_of(nm, compiled, "-C", "-u"):
        if name not in offered and not calls.fullmatch(name):
            raise Rejected(f"calls or uses '{name}', which an exercise cannot",
                           f"{needs}; declare your own functions static or in the anonymous namespace, and define them")
    defined = symbols_of(nm, compiled, "--defined-only")
    if FACTORY not in defined:
        raise Rejected("has no exercise in it", "keep the line CONVLADDER_STAGE(...) at the end of the file")
    if any("_GLOBAL__sub_" in name for name in defined):
        raise Rejected("has a global object with a constructor or destructor",
                       "a GPU would not run it: use __constant__ arrays, constexpr values and local variables")
    if on_host:
        for name in variables_of(toolchain, compiled):
            raise Rejected(f"has the variable '{name}', which is global, static or thread_local",
                           "its accesses would not be counted: use local variables, and a Workspace for what is large")


# ---- Building --------------------------------------------------------------------------------------------------------


def limited(seconds, file_bytes, gib=None):
    """For a child: processor time, file size, memory; no core dumps; and it ends with its parent."""

    def apply():
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 2))
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if gib:
            resource.setrlimit(resource.RLIMIT_DATA, (gib * GIB, gib * GIB))
        process_control(PR_SET_PDEATHSIG, signal.SIGKILL)

    return apply


def process_control(option, value):
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


LARGE_FRAME = re.compile(r"\[-Werror\S*\b(frame-larger-than|vla)")  # what host.json's compiler rejects


def run_tool(command, what, source):
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL,
                              timeout=2 * COMPILE_SECONDS, preexec_fn=limited(COMPILE_SECONDS, 64 << 20, 8))
    except subprocess.TimeoutExpired:
        raise Rejected(f"{what}: stopped after {2 * COMPILE_SECONDS} s", "simplify the file") from None
    if done.returncode:
        text = done.stderr.strip() or f"{command[0]} ended with status {done.returncode}"
        raise Rejected(f"{what}: " + "\n".join(telling_lines(text, source)),
                       "local variables are not counted, so they have room for a tile and no more: what is large belongs "
                       "in a Workspace" if LARGE_FRAME.search(text) else "correct what the compiler says")
    return done


def telling_lines(text, source):
    """Of a compiler's messages: the errors; for those in a header, the lines that lead there from the file too."""
    lines = text.splitlines()
    errors = [line for line in lines if "error:" in line or "undefined" in line][:4]
    own = [line for line in lines if line.startswith(f"{source}:")]
    if any(line in own for line in errors):
        return errors
    return errors + own[:3] or lines[:5]


def build_exercise(toolchain, source, folder, name):
    """Compiles the file and links it to the runner. Returns the program, and the compiler's warnings."""
    compiled, program = folder / f"{name}.o", folder / name
    options = ["-DCONVLADDER_STAGE_FACTORY=make_exercise"]
    done = run_tool([*toolchain["compile"], *options, "-c", str(source), "-o", str(compiled)], "does not compile", source)
    if name != "gpu":
        check_symbols(toolchain, compiled, name == "host")
        # Whatever else it defines stays its own, and takes the place of nothing in the runner; so templates need no
        # groups, by which the linker would choose one of several. The library's memcpy carries no hooks.
        renamed = {symbol: f"simt_{symbol}" for symbol in ("memcpy", "memmove", "memset")}
        if name == "host":
            renamed["_Znwm"] = "simt_new"  # operator new(unsigned long)
        run_tool([toolchain["objcopy"], f"--keep-global-symbol={FACTORY}", "--remove-section=.group",
                  *(f"--redefine-sym={old}={new}" for old, new in renamed.items()), str(compiled)],
                 "objcopy", source)
    run_tool([toolchain["link"][0], str(compiled), *toolchain["link"][1:], "-o", str(program)], "does not link", source)
    return program, [line for line in done.stderr.splitlines() if "warning:" in line]


def read_source(path):
    try:
        if not path.is_file():
            raise Unusable(f"no file '{path}': name the exercise by --file FILE" if not path.exists() else
                           f"'{path}' is no ordinary file: name the exercise by --file FILE")
        data = path.read_bytes()
    except OSError as error:
        raise Unusable(f"cannot read '{path}': {error.strerror}") from None
    if len(data) > 1 << 20:
        raise Unusable(f"'{path}' has {len(data)} bytes: an exercise has less than 1 MiB")
    return data.decode(errors="replace")


def load_toolchain(build, name):
    path = build / "labs" / f"{name}.json"
    if not path.exists():
        raise Unusable(f"{path} is missing: run ./lab build")
    return json.loads(path.read_text())


def load_gpu_toolchain(lab, build):
    """That of this machine's GPU, or None where the GPU is not the only one that runs the stage."""
    requires = json.loads((lab.parent / "stage.json").read_text())["requires"]
    if not requires.endswith("a"):
        return load_toolchain(build, "gpu")
    name = f"gpu-{requires}"
    return load_toolchain(build, name) if (build / "labs" / f"{name}.json").exists() else None


# ---- Running ---------------------------------------------------------------------------------------------------------


def describe_end(child, timed_out):
    if timed_out:
        return "stopped, since the whole took too long"
    if child.returncode == -signal.SIGXCPU or child.returncode == -signal.SIGKILL:
        return f"stopped after {RUN_SECONDS} s of processor time: a loop without end?"
    if child.returncode < 0:
        return f"crashed ({signal.Signals(-child.returncode).name}) in host code"
    return f"ended by itself, with status {child.returncode}"


def run_once(program, cases, results, first, seconds):
    """Runs the cases from number `first` on. Returns the process, what it complained of, and whether time was up."""
    environment = {key: os.environ[key] for key in ("PATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "HOME",
                                                    "CONVLADDER_SIM_CORES") if key in os.environ}
    environment.update(OMP_NUM_THREADS=str(THREADS), OMP_DYNAMIC="false", OMP_WAIT_POLICY="passive")
    child = subprocess.Popen([str(program), str(cases), str(results), str(first)], cwd=results, env=environment,
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             start_new_session=True, preexec_fn=limited(RUN_SECONDS, 256 << 20, RUN_GIB))
    timed_out = False
    try:
        messages = child.communicate(timeout=seconds)[1]
    except subprocess.TimeoutExpired:
        timed_out = True
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    if timed_out:
        messages = child.communicate()[1]
    return child, messages.decode(errors="replace").strip().splitlines(), timed_out


def note(results, number, reason):
    (results / f"{number}.json").write_text(json.dumps({"status": "error", "reason": reason}))


def run_cases(program, cases, results):
    """Runs all cases; a case that takes the runner down is noted, and the runner begins again behind it."""
    count = len(json.loads((cases / "cases.json").read_text()))
    first = deaths = 0
    deadline = time.monotonic() + WALL_SECONDS
    while first < count and deaths < DEATHS and time.monotonic() < deadline:
        child, complaints, timed_out = run_once(program, cases, results, first, deadline - time.monotonic())
        done = [number for number in range(first, count) if (results / f"{number}.json").exists()]
        first = done[-1] + 1 if done else first
        if first >= count or (done and child.returncode == 1):  # all done; or a fault in host code, which is noted
            continue
        if child.returncode == 2 and complaints:  # the runner's own: no memory, no GPU
            raise Unusable(f"the runner: {complaints[-1]}")
        deaths += 1
        note(results, first, describe_end(child, timed_out))
        first += 1
    for number in range(first, count):
        note(results, number, "not run, since other shapes crashed or took too long")


def judge(toolchain, *arguments):
    try:
        done = subprocess.run([toolchain["judge"], *map(str, arguments)], capture_output=True, text=True)
    except OSError as error:
        raise Unusable(f"cannot start {toolchain['judge']}: {error.strerror}; run ./lab build") from None
    if done.returncode:
        raise Unusable(done.stderr.strip())
    return done.stdout


def grade(lab, build, source, gpu, variant=None):
    """The marks, as the judge gives them, with the compiler's warnings; "rejected" and "remedy" where nothing was run.
    "variant" says which shapes were drawn."""
    on_host = runs_on_host(lab)
    name = "host" if on_host else "simulator"
    toolchain = load_toolchain(build, name)
    gpu_toolchain = load_gpu_toolchain(lab, build) if gpu and not on_host else None
    where = "on this processor" if on_host else "in the simulator" + (" and on the GPU" if gpu_toolchain else "")
    text = read_source(source)
    with tempfile.TemporaryDirectory(prefix="convladder-") as temporary:
        folder = pathlib.Path(temporary)
        seed = secrets.randbits(48)
        folders = {part: folder / part for part in ("cases", "simulated", "on_gpu")}
        for path in folders.values():
            path.mkdir()
        described, (lab, shapes) = lab, vary(lab, variant, folder)
        of_all = {"where": where}
        if variant is not None:
            of_all["variant"] = f"Variant {variant}: {'; '.join(shapes) or 'no shape of this lab varies'}"
        try:
            judge(toolchain, "cases", lab, seed, folders["cases"])
        except Unusable as error:
            raise Unusable(str(error).replace(str(lab), str(described))) from None
        try:
            look_over_source(text, on_host)
            expanded = folder / "expanded"
            run_tool([*toolchain["compile"], "-DCONVLADDER_STAGE_FACTORY=make_exercise", "-E", str(source), "-o",
                      str(expanded)], "does not compile", source)
            look_over_expansion(expanded.read_text(errors="replace"), on_host)
            program, warnings = build_exercise(toolchain, source, folder, name)
            gpu_program = build_exercise(gpu_toolchain, source, folder, "gpu")[0] if gpu_toolchain else None
        except Rejected as error:
            marks = json.loads(judge(toolchain, "marks", lab, seed, folders["simulated"]))
            for check in marks["checks"]:
                check.update(score=0, messages=["nothing was run"], measured="", hints=[])
            return {**marks, **of_all, "score": 0, "rejected": str(error), "remedy": error.hint, "warnings": []}
        run_cases(program, folders["cases"], folders["simulated"])
        results = [folders["simulated"]]
        if gpu_program:
            run_cases(gpu_program, folders["cases"], folders["on_gpu"])
            results.append(folders["on_gpu"])
        marks = json.loads(judge(toolchain, "marks", lab, seed, *results))
        return {**marks, **of_all, "warnings": warnings[:3]}


# ---- While a student works -------------------------------------------------------------------------------------------


def remember(build, folder, source, marks):
    """For ./lab next: what the chapter's own exercise has earned, as it is now."""
    if source.resolve() != exercise_of(folder).resolve():
        return
    path = build / "labs" / "marks.json"
    try:
        known = json.loads(path.read_text()) if path.exists() else {}
        known[folder.name] = {"score": marks["score"], "max_score": marks["max_score"], "graded": int(time.time()),
                              "sha256": hashlib.sha256(source.read_bytes()).hexdigest()}
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(known, indent=1))
        fresh.replace(path)
    except (OSError, ValueError):
        pass  # another user's build


def state_of(path):
    try:
        found = path.stat()
        return found.st_mtime_ns, found.st_size, found.st_ino
    except OSError:
        return None  # an editor may be replacing it


def watch(source, grade_once):
    """Grades at each change of the file, until Ctrl-C. Returns the last exit status."""
    status = 2
    try:
        while True:
            seen = state_of(source)
            if sys.stdout.isatty():
                print("\033[H\033[2J", end="")
            try:
                status = grade_once()
            except UNUSABLE as error:
                status = 2
                print(f"./lab: {error}")
            print(f"\n{time.strftime('%H:%M:%S')}: waiting until {source.name} changes; Ctrl-C ends this\n", flush=True)
            while state_of(source) in (seen, None):
                time.sleep(POLL_SECONDS)
            time.sleep(POLL_SECONDS)  # until it is written to its end
    except KeyboardInterrupt:
        print()
        return status


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"./lab: grade: {message}; see ./lab grade --help\n")


def main():
    parser = Parser(prog="./lab grade", usage="./lab grade CHAPTER [options]",
                                     description="Grades the exercise of a chapter.")
    parser.add_argument("--build", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--gpu", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("chapter", metavar="CHAPTER", help="a number (1 or 01), name or folder")
    parser.add_argument("--file", type=pathlib.Path, help="grade this file; default: the chapter's exercise")
    parser.add_argument("--json", action="store_true", help="print Gradescope's results.json")
    parser.add_argument("--watch", action="store_true", help="grade again whenever the file changes, until Ctrl-C")
    parser.add_argument("--variant", metavar="SEED", type=variant_name, help="with the shapes of this seed, such as a "
                        "student's number: letters, digits, '_', '.', '@' and '-'")
    hints = parser.add_mutually_exclusive_group()
    hints.add_argument("--hint", metavar="LEVEL", type=int, default=1, help="how exact hints may be: 1 (the default) "
                       "asks, 2 tells what to count or to look at, 3 is near the solution")
    hints.add_argument("--no-hints", action="store_const", dest="hint", const=0, help="say what is wrong, and no more")
    arguments = parser.parse_args()
    if arguments.watch and arguments.json:
        parser.error("--watch prints text: leave out --json")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    process_control(PR_SET_DUMPABLE, 0)  # no other process of this user may look into this one
    try:
        folder = find_chapter(arguments.chapter)
        source = (arguments.file or exercise_of(folder)).absolute()

        def grade_once():
            marks = shorten(grade(folder / "lab.json", arguments.build, source, arguments.gpu, arguments.variant), source)
            remember(arguments.build, folder, source, marks)
            if arguments.json:
                print(json.dumps(as_gradescope(marks, folder, arguments.hint), indent=2))
            else:
                print(as_text(marks, folder, source, arguments.hint))
            sys.stdout.flush()
            return 0 if marks["score"] == marks["max_score"] else 1

        return watch(source, grade_once) if arguments.watch else grade_once()
    except BrokenPipeError:  # who reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        print(f"./lab: {error.filename or 'cannot write'}: {error.strerror or error}", file=sys.stderr)
        return 2
    except UNUSABLE as error:
        print(f"./lab: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("./lab: stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
