"""./lab sim on plain CUDA programs: those that are right, those with faults, and what is refused.

A program in programs/ must print the lines at its head that begin with "// >", and have no fault; other files there are
parts of programs. One in faults/ marks the line of each fault
by a comment, // FAULT kind; each must be found, and none on any other line. It may say what it prints, too.
"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "tools/lab"), str(ROOT / "tools/ncu")]
import compare  # noqa: E402
import ptx  # noqa: E402
from cuda_front_end import Refused, translate  # noqa: E402

HEAD = "// > "
PROGRAMS = sorted(path.stem for path in (HERE / "programs").glob("*.cu") if HEAD in path.read_text())
FAULTS = sorted(path.stem for path in (HERE / "faults").glob("*.cu"))


def sim(*arguments, **options):
    return subprocess.run([sys.executable, ROOT / "tools/lab", "sim", *map(str, arguments)], capture_output=True,
                          text=True, timeout=120, env=dict(os.environ, LAB_NVCC="", LAB_PACKAGES=""), **options)


@pytest.fixture(scope="module")
def runs():
    """Every program, run once, as many at a time as there are cores."""
    paths = [HERE / "programs" / f"{name}.cu" for name in PROGRAMS] + [HERE / "faults" / f"{name}.cu" for name in FAULTS]
    parts = {path: sorted(path.with_suffix("").glob("*.cu")) for path in paths}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip((path.stem for path in paths), pool.map(lambda path: sim("--json", path, *parts[path]), paths)))


def output_of(path):
    lines = path.read_text().splitlines()
    return "".join(line[len(HEAD):] + "\n" for line in lines if line.startswith(HEAD))


def report_of(done):
    output, report = done.stdout[:-1].rsplit("\n", 1) if "\n" in done.stdout[:-1] else ("", done.stdout)
    return output + "\n" if output else "", json.loads(report)


@pytest.mark.parametrize("name", PROGRAMS)
def test_right_program(runs, name):
    done = runs[name]
    output, report = report_of(done)
    assert (done.returncode, output) == (0, output_of(HERE / "programs" / f"{name}.cu")), done.stderr
    assert not report["host_faults"] and not report["notes"]
    assert not any(kernel["faults"] for kernel in report["kernels"])


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_named_at_its_line(runs, name):
    done = runs[name]
    path = HERE / "faults" / f"{name}.cu"
    wanted = {(number, line.split("// FAULT ")[1]) for number, line in enumerate(path.read_text().splitlines(), 1)
              if "// FAULT " in line}
    assert done.returncode == 4, done.stdout + done.stderr
    output, report = report_of(done)
    assert HEAD not in path.read_text() or output == output_of(path)
    found = {(fault["line"], fault["kind"].replace("_", " "))
             for fault in report["host_faults"] + [f for kernel in report["kernels"] for f in kernel["faults"]]}
    assert found >= wanted
    other = {(fault.get("other") or {}).get("line") for kernel in report["kernels"] for fault in kernel["faults"]}
    assert {line for line, _ in found} <= {line for line, _ in wanted} | other


def test_counters_of_a_kernel(runs):
    kernel, = report_of(runs["vector_add"])[1]["kernels"]
    assert (kernel["name"], kernel["launches"]) == ("add", 1)
    assert kernel["counters"]["global_load_requests"] == 64
    assert kernel["counters"]["global_store_sectors"] == 125


def test_vector_is_loaded_and_stored_at_once(runs):
    kernel = next(kernel for kernel in report_of(runs["votes"])[1]["kernels"] if kernel["name"] == "vectors")
    assert kernel["counters"]["global_load_requests"] == 1
    assert kernel["counters"]["global_store_requests"] == 7


def compared_with_a_gpu(folder):
    """{name: counters} of the programs there that were held against Nsight Compute."""
    rows = json.loads((ROOT / "docs/results/nvidia-h100-counters.json").read_text())["rows"]
    return {pathlib.Path(row["name"]).stem: row["simulator"] for row in rows if row["name"].startswith(folder)}


@pytest.mark.parametrize("name, counters", compared_with_a_gpu("tests/sim/programs").items())
def test_counts_as_compared_with_ncu(runs, name, counters):
    assert compare.program_counters(report_of(runs[name])[1]) == counters


@pytest.mark.parametrize("hands_back", ["mbarrier_arrive(&empty", "&in[step + kSlots]"])
def test_slot_that_is_handed_back_before_the_wait_for_the_warpgroup(tmp_path, hands_back):
    lines = (HERE / "programs/wgmma_ring.cu").read_text().splitlines()
    wait, early = (next(number for number, line in enumerate(lines) if what in line)
                   for what in ("wgmma.wait_group", hands_back))
    moved = lines[:wait] + [lines[early]] + lines[wait:early] + lines[early + 1:]
    done = sim("--json", written(tmp_path, "\n".join(moved)))
    assert done.returncode == 4, done.stdout + done.stderr
    copy, product = (next(number for number, line in enumerate(moved, 1) if what in line)
                     for what in ("cp_async_bulk(", "wgmma.mma_async"))
    found = {(fault["kind"], fault["line"], fault["other"]["line"])
             for fault in report_of(done)[1]["kernels"][0]["faults"]}
    assert found & {("race", copy, product), ("missing_wait", copy, product)}, found


def test_table_lines_and_arguments():
    done = sim("--lines", HERE / "programs/vector_add.cu", "--", "64")
    assert done.returncode == 0
    assert done.stdout.startswith("64: PASS\n\nSimulated kernels\nkernel  launches  loads  sectors  stores  sectors")
    assert "vector_add.cu:17 " in done.stdout
    assert "\n0 faults\n" in done.stdout


def written(folder, text):
    path = folder / "program.cu"
    path.write_text(text)
    return path


def test_exit_status_is_the_programs(tmp_path):
    assert sim(written(tmp_path, "#include <omp.h>\nint main() { return 6 + omp_get_max_threads(); }\n")).returncode == 7


@pytest.mark.parametrize("text, message", [
    ("#include <cufft.h>\nint main() {}\n", "program.cu:1: cuFFT is not simulated (#include cufft"),
    ("#include <thrust/sort.h>\nint main() {}\n", "program.cu:1: Thrust is not simulated"),
    ("#include <cublas_v2.h>\nint main() {\n  cublasHandle_t h;\n  cublasStrsm(h);\n}\n", "program.cu:4: 'cublasStrsm'"),
    ("#include <cublas_v2.h>\nint main() {\n  cublasHandle_t h;\n  cudaStream_t s;\n  cublasCreate(&h);\n"
     "  cudaStreamCreate(&s);\n  cublasSetStream(h, s);\n  float by = 2, *x;\n  cudaMalloc(&x, 4);\n  cudaMemset(x, 0, 4);\n"
     "  cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);\n  cublasSscal(h, 1, &by, x, 1);\n}\n",
     "program.cu:12: cuBLAS in a stream that is captured is not simulated"),
    ("texture<float, 2> t;\n__global__ void k(float* p) {\n  p[0] = tex2D(t, 1, 2);\n}\nint main() {}\n",
     "program.cu:1: CUDA 12 has no texture references any more ('texture')"),
    ('__global__ void k() {\n  asm volatile("tcgen05.fence::before_thread_sync;");\n}\nint main() {}\n',
     "program.cu:2: inline PTX: tcgen05.fence::before_thread_sync is not simulated"),
    ('__global__ void k(int* p) {\n  *p = 1;\n  asm("ld.global.u32.wrong %0, [%1];" : "=r"(*p) : "l"(p));\n}\nint main() {}\n',
     "program.cu:3: inline PTX: ld.global.u32.wrong is not simulated"),
    ('__global__ void k(float* d) {\n  asm("div.rz.f32 %0, %0, %0;" : "+f"(*d));\n}\nint main() {}\n',
     "program.cu:2: inline PTX: div.rz.f32 is not simulated: it has '.rz'; docs/sim.md"),
    ('__global__ void k(float* d) {\n  asm("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, "\n'
     '      "1, %6, 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(0ul), "l"(0ul), "n"(2));\n}\nint main() {}\n',
     "program.cu:2: inline PTX: wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16: a transposition is 0 or 1"),
    ("#include <cuda/ptx>\n__global__ void k(int* p) {\n  cuda::ptx::mapa(cuda::ptx::space_cluster, p, 1);\n}\nint main() {}\n",
     "program.cu:3: cuda::ptx::mapa is not here"),
    ("int main() {\n  cudaGraph_t graph;\n  cudaGraphDeviceNode_t node;\n  cudaGraphCreate(&graph, 0);\n}\n",
     "program.cu:3: 'cudaGraphDeviceNode_t' is not"),
    ("__global__ void k() {}\nint main() { k<<<1, 1; }\n", "program.cu:2: this launch has no >>>"),
])
def test_refusal_names_the_line(tmp_path, text, message):
    done = sim(written(tmp_path, text))
    assert done.returncode == 2
    assert message in done.stderr.splitlines()[-1]


def test_shuffles_and_votes_without_a_mask(tmp_path):
    """CUDA 13 has them no more, so no program in programs/ does."""
    program = written(tmp_path, """__global__ void k(int* out) {
  int v = threadIdx.x, some = __any(v == 31) && !__all(v < 31);
  for (int delta = 16; delta > 0; delta /= 2) v += __shfl_down(v, delta);
  if (threadIdx.x == 0) out[0] = v * some;
  if (threadIdx.x < 8) {
    int part = threadIdx.x;
    for (int bit = 4; bit > 0; bit /= 2) part += __shfl_xor(part, bit, 8);
    const int first = __shfl(threadIdx.x + 3, 0), before = __shfl_up(threadIdx.x + 1, 1, 8);
    if (threadIdx.x == 7) out[1] = part, out[2] = first, out[3] = before;
  }
  const unsigned even = __ballot(threadIdx.x % 2 == 0);
  if (threadIdx.x == 0) out[4] = __popc(even);
}
int main() {
  int *d, h[5];
  cudaMalloc(&d, sizeof h);
  k<<<1, 32>>>(d);
  cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
  for (int x : h) printf("%d ", x);
  cudaFree(d);
}
""")
    done = sim(program)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "496 28 3 7 16 "), done.stdout + done.stderr


def test_macros_of_the_program_do_not_reach_into_headers(tmp_path):
    program = written(tmp_path, """#define M 16
#define T float
#include <mma.h>
#include <cuda/atomic>
__global__ void k(T* to) {
  nvcuda::wmma::fragment<nvcuda::wmma::accumulator, M, N, M, T> sums;
  nvcuda::wmma::fill_fragment(sums, 2.5f);
  nvcuda::wmma::store_matrix_sync(to, sums, N, nvcuda::wmma::mem_row_major);
}
int main() {
  T *d, h[M * N];
  cudaMalloc(&d, sizeof h);
  k<<<1, 32>>>(d);
  cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
  printf("%g\\n", h[M * N - 1] + a);
  cudaFree(d);
}
""")
    done = sim("-D", "N=16", "-D", "a", program)
    assert (done.returncode, done.stdout.splitlines()[:1]) == (0, ["3.5"]), done.stdout + done.stderr


def test_limit_ends_a_loop_of_the_host(tmp_path):
    done = sim("--limit", "1", written(tmp_path, "__global__ void k(int* a) { *a = 1; }\nint main() { int* a; "
                                       "cudaMalloc(&a, 4); k<<<1, 1>>>(a); volatile int x = 0; while (x == 0) {} }\n"))
    assert done.returncode == 1
    assert "\nk  " in done.stdout and "ended by --limit" in done.stdout


def test_the_language_may_be_cpp20(tmp_path):
    program = written(tmp_path, "#include <concepts>\n#include <cstdio>\n#include <cublas_v2.h>\n#include <cuda/barrier>\n"
                      "#include <cuda/std/span>\n#include <cuda_fp8.h>\n#include <mma.h>\n#include <span>\n"
                      "template <std::integral T>\n__global__ void k(std::span<T> x) { x[threadIdx.x] = x.size(); }\n"
                      "int main() { int* a; cudaMallocManaged(&a, 8); k<int><<<1, 2>>>(std::span<int>(a, 2)); cudaDeviceSynchronize(); "
                      "printf(\"%d\\n\", a[1]); cudaFree(a); }\n")
    assert sim("--std", "c++20", program).stdout.startswith("2\n")


def test_faults_are_told_where_the_program_aborts(tmp_path):
    done = sim(written(tmp_path, "#include <cstdlib>\n__global__ void k(int* a) { a[8] = 1; }\nint main() {\n  int* a;\n"
                       "  cudaMalloc(&a, 32);\n  k<<<1, 1>>>(a);\n  if (cudaDeviceSynchronize() != cudaSuccess) abort();\n}\n"))
    assert done.returncode == 4
    assert "program.cu:2: out of bounds" in done.stdout
    assert done.stderr.splitlines()[-1] == "./lab sim: the program ended by SIGABRT"


def test_several_cores_change_nothing(tmp_path, monkeypatch):
    """In a launch that is long enough to be shared."""
    program = written(tmp_path, "__global__ void k(float* a) { __shared__ float s[256]; s[threadIdx.x] = threadIdx.x; "
                      "float sum = 0; for (int i = 0; i < 200; ++i) { __syncthreads(); sum += s[(threadIdx.x + i) % 256]; } "
                      "a[blockIdx.x * 256 + threadIdx.x] = sum; if (threadIdx.x == 7) printf(\"%d %g\\n\", blockIdx.x, sum); }\n"
                      "int main() { float* a; cudaMalloc(&a, 1 << 16); k<<<40, 256>>>(a); cudaFree(a); }\n")
    outputs = []
    for cores in "1", "3":
        monkeypatch.setenv("CONVLADDER_SIM_CORES", cores)
        outputs.append(sim("--json", "--lines", program).stdout)
    assert outputs[0].splitlines()[:2] == ["0 21300", "1 21300"] and len(outputs[0].splitlines()) == 41
    assert outputs[0].replace(str(tmp_path), "") == outputs[1].replace(str(tmp_path), "")


@pytest.mark.parametrize("cores", ["many", "0", "2x", "1025"])
def test_a_number_of_cores_that_is_none_is_told(tmp_path, monkeypatch, cores):
    monkeypatch.setenv("CONVLADDER_SIM_CORES", cores)
    done = sim(written(tmp_path, "__global__ void k() {}\nint main() { k<<<2, 1>>>(); k<<<2, 1>>>(); }\n"))
    assert (done.returncode, done.stderr) == (
        0, f"note: CONVLADDER_SIM_CORES must be a number from 1 to 1024; got '{cores}': all cores are used\n")


@pytest.mark.parametrize("body, line", [
    ("std::condition_variable c; bool set = false;\n"
     "std::thread t([&] { std::unique_lock<std::mutex> own(m); c.wait(own, [&] { return set; }); });\nset = true; c.notify_all();"
     " t.join();", 10),
    ("m.lock();\nstd::thread t([] { std::lock_guard<std::mutex> own(m); });\nm.unlock(); t.join();", 10),
    ("std::promise<int> p;\nstd::thread t([&] { p.get_future().get(); });\np.set_value(1); t.join();", 10),
    ("pthread_barrier_t b; pthread_barrier_init(&b, nullptr, 2);\nstd::thread t([&] { pthread_barrier_wait(&b); });\n"
     "pthread_barrier_wait(&b); t.join();", 10),
    ("sem_t s; sem_init(&s, 0, 0);\nstd::thread t([&] { sem_wait(&s); });\nsem_post(&s); t.join();", 10),
    ("std::latch l(1);\nstd::thread t([&] { l.wait(); });\nl.count_down(); t.join();", 10),
])
def test_a_thread_of_the_host_that_waits_for_a_later_one(tmp_path, body, line):
    program = written(tmp_path, "#include <condition_variable>\n#include <future>\n#include <latch>\n#include <mutex>\n"
                      "#include <semaphore.h>\n#include <thread>\nstd::mutex m;\nint main() {\n" + body + "\n}\n")
    done = sim("--std", "c++20", "--limit", "20", program)
    assert done.returncode == 2, done
    assert done.stderr.startswith(f"./lab sim: {program}:{line}: the host waits here for another of its threads"), done


def test_what_is_no_text_is_told_in_a_line(tmp_path):
    program = tmp_path / "program.cu"
    program.write_bytes(pathlib.Path("/proc/self/exe").read_bytes()[:4096])
    done = sim(program)
    assert (done.returncode, done.stderr) == (
        2, f"./lab: sim: {program} is no text: give the program's source, a .cu file\n")


def test_gpu_is_the_one_that_is_named(tmp_path):
    program = written(tmp_path, "int main() { cudaDeviceProp p; cudaGetDeviceProperties(&p, 0); "
                      "printf(\"%d.%d %d\\n\", p.major, p.minor, p.multiProcessorCount); }\n")
    assert sim("--gpu", "rtx 4090", program).stdout.startswith("8.9 128\n")
    refused = sim("--gpu", "Voodoo", program)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--gpu must be one of V100, " in refused.stderr


def test_gpu_decides_which_instructions_there_are(tmp_path):
    program = written(tmp_path, """__global__ void k(int* a) {
#if __CUDA_ARCH__ >= 800
  __shared__ int s[4];
  unsigned to = __cvta_generic_to_shared(s);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(a));
  asm volatile("cp.async.wait_all;");
#endif
  a[0] = __CUDA_ARCH__;
#ifdef NEWEST
  asm volatile("setmaxnreg.inc.sync.aligned.u32 168;");
#endif
}
int main() { int* a; cudaMalloc(&a, 16); cudaMemset(a, 0, 16); k<<<1, 1>>>(a); int b; cudaMemcpy(&b, a, 4, cudaMemcpyDefault);
  printf("%d\\n", b); cudaFree(a); }
""")
    assert sim("--gpu", "V100", program).stdout.startswith("700\n")
    assert sim("--gpu", "NVIDIA A100", program).stdout.startswith("800\n")
    refused = sim("--gpu", "l4", "-D", "NEWEST", program)
    assert refused.returncode == 2
    assert "program.cu:10: inline PTX: setmaxnreg.inc.sync.aligned.u32 needs sm_90a, and the chosen GPU is sm_89: " \
           "choose a newer one by --gpu, or put it behind #if __CUDA_ARCH__ >= 900" in refused.stderr


@pytest.mark.parametrize("opcode, capability", [
    ("cp.async.cg.shared.global", 80), ("cp.async.bulk.commit_group", 90), ("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", 75),
    ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 80), ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", 89),
    ("tanh.approx.bf16x2", 90), ("tanh.approx.f16x2", 75), ("fma.rn.bf16x2", 80), ("add.rn.bf16x2", 90), ("mbarrier.init.shared.b64", 80), ("mbarrier.try_wait.parity.shared.b64", 90),
    ("ld.global.nc.L2::128B.v4.f32", 75), ("add.f32", 70), ("fence.acq_rel.gpu", 70), ("fence.proxy.async.shared::cta", 90)])
def test_capability_of_an_instruction(opcode, capability):
    assert ptx.capability_of(opcode) == capability


def test_clusters_that_cuda_refuses(tmp_path):
    program = written(tmp_path, """#include <cstdio>
__global__ void k() {}
__global__ void __cluster_dims__(2) two() {}
template <class Kernel>
void launch(Kernel kernel, int grid, int cluster) {
  cudaLaunchAttribute a;
  a.id = cudaLaunchAttributeClusterDimension, a.val.clusterDim.x = cluster, a.val.clusterDim.y = a.val.clusterDim.z = 1;
  cudaLaunchConfig_t c = {dim3(grid), dim3(32), 0, 0, &a, 1};
  printf("%s\\n", cudaGetErrorName(cudaLaunchKernelEx(&c, kernel)));
  cudaGetLastError();
}
int main() {
  launch(k, 16, 8);
  launch(k, 16, 16);
  launch(k, 12, 8);
  launch(two, 4, 4);
  cudaFuncSetAttribute(k, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  launch(k, 16, 16);
  launch(k, 16, 32);
}
""")
    done = sim(program)
    refused = "cudaErrorInvalidClusterSize"
    assert done.stdout.split("\n\n")[0].split() == ["cudaSuccess", refused, refused, refused, "cudaSuccess", refused]
    assert done.returncode == 0
    assert sim("--gpu", "A100", program).stdout.split()[0] == refused



def test_limit_ends_a_program(tmp_path):
    done = sim("--limit", "1", written(tmp_path, "__global__ void k(volatile int* a) { while (*a == 0) {} }\n"
                                       "int main() { int* a; cudaMalloc(&a, 4); cudaMemset(a, 0, 4); k<<<1, 1>>>(a); }\n"))
    assert done.returncode in (1, 4)
    assert "ended by --limit" in done.stdout or "endless loop" in done.stdout


@pytest.mark.parametrize("text, wanted", [
    ("__global__ void k(int, int); k<<<g, b>>>(a, f(1, 2));",
     ' void k(int, int); ::simt_cuda::launch("k", ::simt_cuda::Configuration(g, b), [&](auto&& simt_0, auto&& simt_1) '
     '__attribute__((no_sanitize("thread"))) { ::simt::watch(); k(simt_0, simt_1); }, a, f(1, 2));'),
    ("void *p = reinterpret_cast<const void *>(f); __global__ void k(); p = (void *)k; p = reinterpret_cast<void *>(&k);",
     "void *p = reinterpret_cast<const void *>(f); void k(); p = ::simt_cuda::address_of_kernel(k); "
     "p = ::simt_cuda::address_of_kernel(k);"),
    ("k<<<g, b>>>(a);",  # a pointer
     '::simt_cuda::launch(::simt_cuda::name_of_kernel(reinterpret_cast<const void *>(k)), '
     '::simt_cuda::Configuration(g, b), [&](auto&& simt_0) '
     '__attribute__((no_sanitize("thread"))) { ::simt::watch(); k(simt_0); }, a);'),
    ("__global__ void k(int, int); k<<<g, b>>>(a, more...);",
     ' void k(int, int); ::simt_cuda::launch("k", ::simt_cuda::Configuration(g, b), [&](auto&&... simt_all) '
     '__attribute__((no_sanitize("thread"))) { ::simt::watch(); k(simt_all...); }, a, more...);'),
    ("int y = a << 2 >> 1;", "int y = a << 2 >> 1;"),
    ("__device__ int f(int a);", " int f(int a);"),
    ('auto s = R"(k<<<1>>>())";', 'auto s = R"(k<<<1>>>())";'),
    ("void f() {\nextern __shared__ float s[];\n}",
     "void f() {\nfloat *const s = (float (*))::simt::dynamic_shared_memory();\n}"),
    ("__device__ const int n = 3;", " const int n = 3;"),
    ("int f() { return threadIdx.x; }", "int f() { return (::simt::thread_index()).x; }"),
    ("void f() { dim3 gridDim(2); g(gridDim); } int y = gridDim.x;",
     "void f() { dim3 gridDim(2); g(gridDim); } int y = (::simt::grid_size()).x;"),
    ("void f() { dim3 gridDim, blockDim; g(gridDim, blockDim); }", "void f() { dim3 gridDim, blockDim; g(gridDim, blockDim); }"),
    ("void f() { int y = g(1, gridDim, 2); }", "void f() { int y = g(1, (::simt::grid_size()), 2); }"),
    ("__shared__ struct { int a; } m;", "__attribute__((used)) static __constinit thread_local ::simt::Guard "
     "simt_guard_1; static __constinit thread_local __attribute__((aligned(32))) struct { int a ; } m;"),
    ("cudaLaunchKernel((const void *)k<1>, g, b, a);", "cudaLaunchKernel(k<1>, g, b, a);"),
])
def test_front_end(text, wanted):
    assert " ".join(translate(text, "a.cu").split()) == " ".join(wanted.split())


def test_front_end_keeps_lines():
    text = "void f() {\n  __shared__\n    int a[2],\n    b;\n  k<int,\n    2><<<1,\n 2>>>(\n  a);\n}\n"
    assert translate(text, "a.cu").count("\n") == text.count("\n")


def test_front_end_names_the_line_of_a_refusal():
    with pytest.raises(Refused, match="a.cu:2: "):
        translate("int x;\nvoid f() { <<<1, 2>>>(3); }\n", "a.cu")
