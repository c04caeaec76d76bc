"""`./lab sim`: a plain CUDA program, unchanged, in the simulator."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from cuda_front_end import Refused, has_asm, translate
from machine import BUILD, ROOT, Unusable

DESCRIPTION = ("Compiles a CUDA C++ program, runs its main() on the host and its kernels in the simulator, then prints "
               "what each kernel did and every fault. Needs neither a GPU nor CUDA. The exit status is the program's, "
               "4 where a fault was found, 2 where something is not supported.")

HEADERS = ROOT / "common/cuda/include"
FAULT, REFUSED = 4, 2
LIBRARIES = {"cublasXt": "cuBLASXt", "cublas": "cuBLAS", "cudnn": "cuDNN", "thrust": "Thrust", "cub/": "CUB", "cufft": "cuFFT",
             "cusparse": "cuSPARSE", "cusolver": "cuSOLVER", "nccl": "NCCL", "cutlass/": "CUTLASS", "cute/": "CuTe",
             "cuda/": "libcu++", "nvrtc": "NVRTC", "cuda_profiler": "the profiler"}
RENAMED = ("memcpy", "memmove", "memset", "malloc", "free", "_Znwm", "_Znam", "_ZdlPv", "_ZdlPvm", "_ZdaPv", "_ZdaPvm",
           "printf", "__printf_chk", "puts", "putchar", "sincosf", "sincos", "modff", "modf", "frexpf", "frexp",
           "pthread_create", "pthread_join", "pthread_detach", "pthread_exit",
           "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE", "_ZNSt6thread4joinEv",
           "_ZNSt6thread6detachEv", "pthread_mutex_lock", "pthread_cond_wait", "pthread_barrier_init",
           "pthread_barrier_wait", "sem_wait", "syscall", "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE",
           "_ZNSt28__atomic_futex_unsigned_base19_M_futex_wait_untilEPjjbNSt6chrono8durationIlSt5ratioILl1ELl1EEEENS2_"
           "IlS3_ILl1ELl1000000000EEEE", "omp_get_num_procs", "omp_get_max_threads")
REMEDY = "compute that on the host, or in a kernel of your own"
COUNTERS = (("global_load_requests", "loads"), ("global_load_sectors", "sectors"), ("global_store_requests", "stores"),
            ("global_store_sectors", "sectors"), ("shared_load_requests", "shared loads"),
            ("shared_load_conflicts", "conflicts"), ("shared_store_requests", "shared stores"),
            ("shared_store_conflicts", "conflicts"), ("atomic_requests", "atomics"), ("barriers", "barriers"))


def add_arguments(parser):
    parser.add_argument("files", metavar="FILE.cu", nargs="+", help="the program's source files")
    parser.add_argument("-I", dest="folders", metavar="DIR", action="append", default=[], help="where its headers are")
    parser.add_argument("-D", dest="macros", metavar="NAME[=VALUE]", action="append", default=[], help="a macro")
    parser.add_argument("--lines", action="store_true", help="also the counters of each source line")
    parser.add_argument("--json", action="store_true", help="print one JSON object after the program's output")
    parser.add_argument("--gpu", metavar="NAME", help="the GPU that the program is told of, as in A100 or 'RTX 4090'; H200 "
                        "otherwise")
    parser.add_argument("--std", default="c++17", choices=("c++17", "c++20"), help="the C++ that the program is in; "
                        "C++17 otherwise, as with nvcc")
    parser.add_argument("--limit", metavar="SECONDS", type=int,
                        help="end the program then, with what was counted so far")


def capability(gpu):
    """10 major + minor of a GPU of the table in common/stage/gpus.cpp, which is an H200 where none is named."""
    def plain(name):
        return re.sub("^(nvidia|geforce|tesla)+", "", re.sub("[^a-z0-9]", "", name.lower()))

    table = re.findall(r'^ +\{"([^"]+)", "[^"]+", (\d+),', (ROOT / "common/stage/gpus.cpp").read_text(), re.MULTILINE)
    for name, capability in table:
        if plain(name) == plain(gpu or "H200"):
            return int(capability)
    raise Unusable(f"sim: --gpu must be one of {', '.join(name for name, _ in table)}; got '{gpu}'")


def tool(command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", **options)


def missing(message):
    """One line about what g++ did not find, if that is CUDA's; or what a static_assert says of inline PTX."""
    if found := re.match(r"(.*?:\d+):\d+: error: static assertion failed: ptx: (.*)", message):
        return f"{found[1]}: inline PTX: {found[2]}"
    if found := re.match(r"(.*?:\d+):\d+: error: [‘'](\w+)[’'] is not a member of [‘'](?:cuda::)?ptx[’']", message):
        return f"{found[1]}: cuda::ptx::{found[2]} is not here: write the instruction as inline PTX; see docs/sim.md"
    if found := re.match(r"(.*?:\d+):\d+: fatal error: (\S+): No such file", message):
        for prefix, name in LIBRARIES.items():
            if found[2].startswith(prefix):
                return f"{found[1]}: {name} is not simulated (#include {found[2]}): {REMEDY}"
        return f"{found[1]}: the header {found[2]} is not here: give its folder by -I, or do without it"
    if found := re.match(r"(.*?:\d+):\d+: error: .*?[‘'](?:\w+::)*((?:cuda|cu[A-Z]|__|cooperative_|cg::|curand|cublas|"
                         r"atomic|coalesced|this_grid|grid_group|tex|surf|clock|nvcuda|thrust)\w*)[^’']*[’'].*"
                         r"(?:not declared|has not been declared|is not a member|does not name a type|no matching)",
                         message):
        if found[2] in ("texture", "surface", "cudaBindTexture", "cudaBindTexture2D", "cudaBindTextureToArray"):
            return f"{found[1]}: CUDA 12 has no texture references any more ('{found[2]}'): use a texture object"
        return f"{found[1]}: '{found[2]}' is not supported by the simulator, or not as it is used here: see docs/sim.md"
    return None


def refuse_libraries(preprocessed):
    """Where CUDA is installed, its headers are found, and nothing that stands in them is simulated."""
    file, line = "", 0
    for row in preprocessed.splitlines():
        if not row.startswith("# ") or not row[2:3].isdigit():
            line += 1
            continue
        number, rest = row[2:].split(" ", 1)
        entered, flags = rest[1:rest.rindex('"')], rest[rest.rindex('"') + 1:].split()
        if "1" in flags and not entered.startswith(str(ROOT)):
            for prefix, name in LIBRARIES.items():
                if f"/{prefix}" in entered and "3" in flags:
                    raise Unusable(f"sim: {file}:{line}: {name} is not simulated (#include {prefix.rstrip('/')}...): {REMEDY}")
        file, line = entered, int(number)


def refuse_compilation(messages):
    for message in messages.splitlines():
        if line := missing(message):
            raise Unusable(f"sim: {line}")
    sys.stderr.write(messages)
    raise Unusable("sim: the program does not compile: look at the messages above")


def headers_first(source):
    """Of CUDA's headers those that the file includes itself. NVIDIA's do without names that a program may have defined as
    macros by then, such as N; the simulator's do not."""
    text = pathlib.Path(source).read_text(errors="replace")
    named = re.findall(r"^[ \t]*#[ \t]*include[ \t]*<([\w/.]+)>", text, re.MULTILINE)
    return [HEADERS / "cuda_runtime.h", *(HEADERS / name for name in dict.fromkeys(named) if (HEADERS / name).is_file())]


class CopiesUnion(Exception):
    """The program copies a union that has one of CUDA's vectors."""


def compile_file(source, target, toolchain, options, plain_copies):
    """An object file of the simulator's. With plain copies the compiler must not take vectors apart."""
    include = ["-isystem", str(HEADERS), "-isystem", str(ROOT)]
    language = [f"-std={options.std}", "-DSIMT_PLAIN_CUDA", *(["-DSIMT_PLAIN_COPIES"] if plain_copies else [])]
    # Macros come behind the headers, for the same reason, but not those that the C library asks for.
    early = [macro for macro in options.macros if re.match("_|NDEBUG", macro)]
    late = target.with_suffix(".h")
    late.write_text("".join(f"#define {' '.join(macro.split('=', 1))}{'' if '=' in macro else ' 1'}\n"
                            for macro in options.macros if macro not in early))
    compiler, first = toolchain["compiler"], headers_first(source)

    def preprocess():
        return tool([compiler, "-E", "-x", "c++", *language, *include,
                     *(word for header in (*first, late) for word in ("-include", str(header))),
                     *(f"-I{folder}" for folder in options.folders), *(f"-D{macro}" for macro in early),
                     f"-D__CUDA_ARCH__={10 * capability(options.gpu)}", source])

    preprocessed = preprocess()
    if preprocessed.returncode != 0:
        refuse_compilation(preprocessed.stderr)
    if has_asm(preprocessed.stdout, source):
        first.append(ROOT / "common/cuda/ptx.hpp")
        preprocessed = preprocess()
    refuse_libraries(preprocessed.stdout)
    try:
        translated = translate(preprocessed.stdout, source, capability(options.gpu))
    except Refused as refusal:
        raise Unusable(f"sim: {refusal}") from None
    text = target.with_suffix(".ii")
    text.write_text(translated)
    compiled = tool([compiler, language[0], "-x", "c++-cpp-output", "-w", "-Wno-psabi", "-fdiagnostics-color=never",
                     *toolchain["flags"], *(["-fno-tree-sra"] if plain_copies else []),
                     "--param", "tsan-distinguish-volatile=1", "-c", str(text), "-o", str(target)])
    if compiled.returncode != 0:
        if not plain_copies and re.search(r"union member .* with non-trivial .*\b(\w+[24])::\1\(const", compiled.stderr):
            raise CopiesUnion
        refuse_compilation(compiled.stderr)
    # The library's own functions carry no hooks.
    renamed = [f"--redefine-sym={name}=simt_{name}" for name in RENAMED]
    done = tool([toolchain["objcopy"], *renamed, str(target)])
    if done.returncode != 0:
        raise Unusable(f"sim: objcopy failed: {done.stderr.strip()}")


def build(options, folder):
    toolchain = json.loads((pathlib.Path(os.environ.get("CONVLADDER_BUILD", BUILD)) / "sim.json").read_text())
    if toolchain["compiler_id"] != "GNU":
        raise Unusable("sim: programs are compiled by g++; configure the build with it")
    for source in options.files:
        if not os.path.isfile(source):
            raise Unusable(f"sim: no file {source}")
        if b"\0" in pathlib.Path(source).read_bytes():
            raise Unusable(f"sim: {source} is no text: give the program's source, a .cu file")
    objects = [folder / f"{number}.o" for number in range(len(options.files))]

    def compile_all(plain_copies):
        for source, target in zip(options.files, objects):
            compile_file(source, target, toolchain, options, plain_copies)

    try:
        compile_all(plain_copies=False)
    except CopiesUnion:  # all files anew, since functions of one that take vectors may be called by another
        compile_all(plain_copies=True)
    program = folder / "program"
    linked = tool([toolchain["compiler"], *map(str, objects), "-o", str(program),
                   "-Wl,--whole-archive", toolchain["libraries"][0], "-Wl,--no-whole-archive",
                   *toolchain["libraries"][1:], "-lgomp", "-lm"])
    if linked.returncode != 0:
        refuse_compilation(linked.stderr)
    return program


# ---- What is printed -------------------------------------------------------------------------------------------------


def place(entry):
    file = entry["file"]
    if not os.path.isabs(file) and not os.path.exists(file):
        file = ROOT / file  # the simulator's names in the project are relative to it
    if os.path.isabs(file) and os.path.exists(file):
        file = os.path.relpath(file)
    return f"{file}:{entry['line']}"


def numbers(triple):
    return "(" + ",".join(map(str, triple)) + ")"


def who(thread):
    block = f"block {numbers(thread['block'])}"
    return f"{block}, warp {thread['warp']}" if thread["whole_warp"] else f"{block}, thread {numbers(thread['thread'])}"


def fault_text(kernel, fault):
    text = f"{place(fault)}: {fault['kind'].replace('_', ' ')}: "
    text += f"{fault['detail']}; " if fault["detail"] else ""
    text += who(fault["thread"]) + (f" {fault['access']}" if fault["access"] else "")
    if other := fault.get("other"):
        text += f"; {who(other['thread'])} {other['access'] or 'is'} at {place(other)}"
    return text + f" [{kernel}" + (f", {fault['count']} times]" if fault["count"] > 1 else "]")


def faults_of(report):
    """[text] of every fault, the kernels' first."""
    texts = [fault_text(kernel["name"], fault) for kernel in report["kernels"] for fault in kernel["faults"]]
    return texts + [f"{place(fault)}: {fault['kind'].replace('_', ' ')}: {fault['detail']}"
                    + (f" [{fault['count']} times]" if fault["count"] > 1 else "") for fault in report["host_faults"]]


def table(rows):
    """Columns as wide as they must be, the first to the left."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths))]
        print("  ".join(cells).rstrip())


def counted(entries):
    """The counters that are not 0 everywhere."""
    return [(key, title) for key, title in COUNTERS if any(entry["counters"][key] for entry in entries)]


def print_report(report, with_lines):
    kernels = report["kernels"]
    print("\nSimulated kernels" if kernels else "\nNo kernel ran.")
    if kernels:
        columns = counted(kernels)
        rows = [["kernel", "launches", *(title for _, title in columns), "faults"]]
        rows += [[kernel["name"], str(kernel["launches"]), *(f"{kernel['counters'][key]:,}" for key, _ in columns),
                  str(len(kernel["faults"]))] for kernel in kernels]
        table(rows)
    for kernel in kernels if with_lines else ():
        print(f"\n{kernel['name']} by line")
        if lines := kernel["lines"]:
            columns = counted(lines)
            table([["line", *(title for _, title in columns)],
                   *([place(line), *(f"{line['counters'][key]:,}" for key, _ in columns)] for line in lines)])
    faults = faults_of(report)
    print(f"\n{len(faults)} fault{'s' if len(faults) != 1 else ''}" + (":" if faults else ""))
    for text in faults:
        print(f"  {text}")
    for note in report["notes"]:
        print(f"note: {place(note)}: {note['detail']}")
    if report["limited"]:
        print("ended by --limit: the counters are those of what ran until then")


def run(options):
    arguments = options.others
    if any(word.startswith("-") and word != "-" for word in options.files):
        raise Unusable("sim: unknown argument; see ./lab sim --help")
    if options.limit is not None and options.limit < 1:
        raise Unusable(f"sim: --limit must be at least 1 second; got {options.limit}")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="convladder-sim-"))
    try:
        program, written = build(options, folder), folder / "report.json"
        environment = dict(os.environ, CONVLADDER_SIM_REPORT=str(written))
        if options.lines:
            environment["CONVLADDER_SIM_LINES"] = "1"
        if options.gpu:
            environment["CONVLADDER_SIM_GPU"] = options.gpu
        if options.limit:
            environment["CONVLADDER_SIM_LIMIT"] = str(min(options.limit, 2**31 - 1))  # an int there
        sys.stdout.flush()
        status = subprocess.run([str(program), *arguments], env=environment, check=False).returncode
        if not written.exists():
            if status == REFUSED:
                return REFUSED  # it has said why
            name = signal.Signals(-status).name if status < 0 else f"status {status}"
            print(f"./lab sim: the program ended by {name} before its report", file=sys.stderr)
            return 128 - status if status < 0 else status
        report = json.loads(written.read_text())
    finally:
        shutil.rmtree(folder)
    report["status"] = status
    if options.json:
        print(json.dumps(report))
    else:
        print_report(report, options.lines)
    if status < 0:
        print(f"./lab sim: the program ended by {signal.Signals(-status).name}", file=sys.stderr)
    if faults_of(report):
        return FAULT
    return 128 - status if status < 0 else status
