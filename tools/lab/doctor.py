"""`./lab doctor`: what is installed here, and what each stage needs."""
import importlib.util
import os
import shutil
import sys

import machine
import site_builder
from terminal import paint

INSTALL = "(./lab doctor --install-baselines)"
DESCRIPTION = "What is installed here, and what each stage needs."


def built_with(variable):
    """The file that the build has found; empty where there is none."""
    try:
        for line in (machine.BUILD / "CMakeCache.txt").read_text().splitlines():
            name, _, path = line.partition("=")
            if name == f"{variable}:FILEPATH" and "NOTFOUND" not in path:
                return path
    except OSError:
        pass
    return ""


def cudnn():
    """As the build has found it, else where it usually lies."""
    return built_with("CUDNN_LIBRARY") or machine.find_file("libcudnn.so.9", libraries(), str(machine.CUDA_FOLDER / "cudnn/lib"))


def libraries():
    """The toolkit's folder of libraries."""
    return os.path.join(os.path.dirname(os.path.dirname(machine.NVCC)), "lib64")


def python_module(name):
    if not importlib.util.find_spec(name):
        return ""
    return getattr(__import__(name), "__version__", "installed")


def pytest():
    """As cmake looks for it: python3's, or that of the system's Python."""
    for python in (sys.executable, "/usr/bin/python3"):
        version = machine.first_line(python, "-c", "import pytest; print(pytest.__version__)")
        if version:
            return version
    return ""


def baseline(name, folder):
    """A file of the environment of baselines, below its packages; empty where it is missing."""
    return next(map(str, sorted(machine.BASELINES.glob(f"lib/python3*/site-packages/{folder}/{name}"))), "")


def findings():
    """Each with its version or path, empty where it is missing, and what it is for."""
    first_line = machine.first_line
    yield "C++ compiler", first_line(os.environ.get("CXX", "g++"), "--version"), "everything"
    yield "cmake", first_line("cmake", "--version"), "everything"
    yield "ninja or make", shutil.which("ninja") or shutil.which("make"), "everything"
    missing = machine.missing_packages()
    if missing is not None:
        yield "libraries", "" if missing else "all packages installed", " ".join(["everything", *missing])
    yield ("OpenBLAS", baseline("libscipy_openblas.so", "scipy_openblas32/lib") or machine.find_file("libopenblas.so"),
           "bench's row of im2col and OpenBLAS on the CPU")
    yield ("oneDNN", machine.find_file("libdnnl.so", str(machine.BASELINES / "lib")),
           "bench's row of oneDNN on the CPU")
    yield "libsndfile", machine.find_file("libsndfile.so"), "./lab sound"
    yield "nvcc", machine.NVCC, "the GPU side (./lab doctor --install-cuda)"
    yield ("GPU, driver", first_line("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"),
           "running on a GPU")
    yield "cuDNN", cudnn(), "the cuDNN baseline"
    yield ("NCCL", built_with("NCCL_LIBRARY") or machine.find_file("libnccl.so.2", libraries()),
           "stages 40 to 43 on several GPUs (apt-get install libnccl-dev, or pip install nvidia-nccl-cu13)")
    yield "cuBLAS", machine.find_file("libcublas.so", libraries()), "bench's row of im2col and cuBLAS"
    yield "cuFFT", machine.find_file("libcufft.so", libraries()), "bench's row of FFT convolution"
    cutlass = os.environ.get("CUTLASS_ROOT", "") and machine.find_file("cutlass.h", os.environ["CUTLASS_ROOT"] + "/include")
    yield ("CUTLASS", cutlass or baseline("cutlass.h", "cutlass_library/source/include/cutlass"),
           f"bench's rows of CUTLASS {INSTALL}")
    yield ("NPP", machine.find_file("libnppif.so", libraries()) or baseline("libnppif.so*", "nvidia/cu13/lib"),
           f"bench's row of NPP {INSTALL}")
    for name, package in (("PyTorch", "torch"), ("Triton", "triton")):
        yield (name, first_line(machine.baselines_python(), "-c",
                                f"import importlib.metadata as m; print(m.version('{package}'))"),
               f"bench's row of {name} {INSTALL}")
    yield ("NVRTC", machine.find_file("libnvrtc.so", libraries()),
           "stage 15, compiled at run time, and its tuning on a GPU")
    yield "compute-sanitizer", machine.cuda_tool("compute-sanitizer"), "memcheck and racecheck on a GPU"
    yield "ncu", machine.cuda_tool("ncu"), "comparing counters with a GPU's"
    yield "python3", first_line(sys.executable, "--version"), "tests, plots"
    yield "pytest", pytest(), "tests of the command line and the labs"
    yield ("matplotlib", python_module("matplotlib"), "--plot of bench and tune (apt-get install python3-matplotlib)")
    yield "doxygen", first_line("doxygen", "--version"), "./lab docs"
    yield "site's theme", site_builder.present(site_builder.THEME), "./lab docs (apt-get install doxygen-awesome-css)"
    yield "MathJax", site_builder.present(site_builder.MATHJAX), "./lab docs (apt-get install libjs-mathjax)"
    yield "clang-format", first_line("clang-format", "--version"), "changing the code"
    yield "clang-tidy", first_line("clang-tidy", "--version"), "changing the code"


def needs(stage):
    if machine.tracks()[stage["track"]]:
        return "runs on the CPU: any machine"
    requires = stage["requires"]
    return f"simulator: any machine; GPU: {requires}{'' if requires.endswith('a') else ' or newer'}"


def add_arguments(parser):
    parser.add_argument("--install-packages", action="store_true",
                        help="install the packages of Debian or Ubuntu that the build needs, and nothing else")
    parser.add_argument("--install-cuda", action="store_true",
                        help="take CUDA 13 and cuDNN 9 from PyPI into .venv-cuda (2 GB), and use them where no other "
                             "nvcc is found first")
    parser.add_argument("--install-baselines", action="store_true",
                        help="take what bench compares with from PyPI into .venv-baselines: OpenBLAS and oneDNN; with "
                             "nvcc also CUTLASS and NPP; with a GPU also PyTorch and Triton (5 GB)")


def run(options):
    if options.install_packages:  # else `lab` has done it
        raise machine.Unusable("doctor: --install-packages stands alone")
    if options.install_baselines:
        print(f"./lab: taking libraries to compare with from PyPI into {machine.BASELINES}", file=sys.stderr)
        print(f"./lab: done: the next build finds {', '.join(machine.install_baselines())}", file=sys.stderr)
        return 0
    if options.install_cuda:
        if not machine.driver_takes_cuda():
            return 2
        print(f"./lab: taking CUDA 13 and cuDNN 9 from PyPI into {machine.CUDA_FOLDER} (2 GB)", file=sys.stderr)
        machine.install_cuda()
        print(f"./lab: done: the next build uses {machine.CUDA_FOLDER}/cuda/bin/nvcc unless another nvcc is found "
              "first", file=sys.stderr)
        return 0
    for name, found, purpose in findings():
        shown = f"{found:<44}" if found else paint(f"{'missing':<44}", "red")
        print(f"{name:<18} {shown} {purpose}")
    print()
    for manifest in sorted(machine.ROOT.glob("chapters/*/stage.json")):
        stage = machine.json_of(manifest)
        print(f"stage {stage['number']:02} {stage['name']:<24} {needs(stage)}")
    return 0


def offer_cuda():
    """Where there is a GPU's driver and no toolkit."""
    if not machine.driver_takes_cuda():
        return 0  # it has said why
    answer = os.environ.get("CONVLADDER_YES", "")
    if not answer and sys.stdin.isatty() and sys.stderr.isatty():
        print("./lab: this machine has a GPU, but no nvcc. Take CUDA and cuDNN from PyPI into "
              f"{machine.CUDA_FOLDER} (2 GB)? [y/N] ", end="", file=sys.stderr, flush=True)
        answer = sys.stdin.readline()
    if answer[:1] in ("y", "Y", "1"):
        machine.install_cuda()
    else:
        print("./lab: a GPU, but no nvcc: './lab doctor --install-cuda' takes CUDA and cuDNN from PyPI",
              file=sys.stderr)
    return 0
