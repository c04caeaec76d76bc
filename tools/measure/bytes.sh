#!/usr/bin/env bash
# 04, 08, 09 and 15 on a GPU: their tests, and the old and the new configurations side by side on the workloads of their tracks,
# with cuDNN and NPP where they are, beside copies of the same images by kernels of this script. In a checkout's root,
# with build/bin/convladder, convladder-gpu and stage-tests-gpu; nvcc for the copies. OUT is a folder. About 5 minutes.
#   tests.txt     stage-tests-gpu of the four stages
#   bytes.json    every configuration: time, spread, error, registers, spills, share of the floor; cuDNN's best
#   workloads.json  bench: 04, 08, 09 and cuDNN on every workload of their tracks: a file for docs/results
#                 (left out where time does not suffice)
#   copies.json   copies of the images and one value a thread on (3,4,16,32), in µs
set -u
. tools/measure/empty-out.sh
export BUDGET=${BUDGET:-280}
python3 - "$OUT" <<'PY'
import json, os, pathlib, shutil, subprocess, sys, time
out, began, budget = pathlib.Path(sys.argv[1]), time.time(), float(os.environ["BUDGET"])
left = lambda: budget - (time.time() - began)


def call(command, seconds):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=max(1, seconds))
        return done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        text = lambda part: (part or b"").decode(errors="replace") if isinstance(part, bytes) else part or ""
        return "timeout", text(late.stdout), text(late.stderr)


COPIES = r"""
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <algorithm>
#include <cuda_runtime.h>
__global__ void copy4(const float4* a, float4* b, long n) {
  long i = blockIdx.x * 256L + threadIdx.x;
  if (i < n) b[i] = a[i];
}
__global__ void one_value(const float* a, float* b, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) b[i] = a[i];
}
__global__ void nothing() {}
template <class F> double time_of(F launch) {
  cudaStream_t s; cudaStreamCreate(&s);
  cudaGraph_t g; cudaGraphExec_t e;
  for (int i = 0; i < 3; ++i) launch(s);
  cudaStreamSynchronize(s);
  cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal);
  for (int i = 0; i < 50; ++i) launch(s);
  cudaStreamEndCapture(s, &g);
  cudaGraphInstantiate(&e, g, 0);
  cudaEvent_t a, b; cudaEventCreate(&a); cudaEventCreate(&b);
  std::vector<float> t;
  for (int i = 0; i < 18; ++i) {
    cudaEventRecord(a, s); cudaGraphLaunch(e, s); cudaEventRecord(b, s); cudaEventSynchronize(b);
    float ms; cudaEventElapsedTime(&ms, a, b);
    if (i > 2) t.push_back(ms * 20);
  }
  std::sort(t.begin(), t.end());
  return t[t.size() / 2];
}
int main() {
  float *a, *b; const long most = 30000000;
  if (cudaMalloc(&a, most * 4) || cudaMalloc(&b, most * 4)) return 1;
  cudaMemset(a, 0, most * 4);
  struct { const char* name; long n; } images[] = {{"3840x2160", 3840L * 2160}, {"1920x1080", 1920L * 1080},
      {"6000x4000", 24000000}, {"ConvNeXt (32,96,56,56)", 32L * 96 * 56 * 56}, {"3e7 samples", 30000000}};
  std::printf("{");
  for (auto& i : images)
    std::printf("\"copy %s\": %.3f, ", i.name, time_of([&](cudaStream_t s) {
      copy4<<<(i.n / 4 + 255) / 256, 256, 0, s>>>(reinterpret_cast<float4*>(a), reinterpret_cast<float4*>(b), i.n / 4); }));
  std::printf("\"one value a thread (3,4,16,32)\": %.3f, ", time_of([&](cudaStream_t s) { one_value<<<48, 128, 0, s>>>(a, b, 6144); }));
  std::printf("\"an empty kernel\": %.3f}\n", time_of([&](cudaStream_t s) { nothing<<<1, 1, 0, s>>>(); }));
  return cudaDeviceSynchronize() != cudaSuccess;
}
"""


def copies():
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    pathlib.Path("/tmp/bytes_copies.cu").write_text(COPIES)
    built = call([nvcc, "-O3", "-std=c++17", "-arch=native", "/tmp/bytes_copies.cu", "-o", "/tmp/bytes_copies"], 60)
    ran = call(["/tmp/bytes_copies"], 30) if built[0] == 0 else built
    return json.loads(ran[1]) if ran[0] == 0 else {"failed": ran[2][-500:]}


program = "build/bin/convladder"
# (stage, shape, configurations; the first is the one of the results so far)
S15 = "block_planes=1,block_rows={},block_columns={},thread_rows={},thread_columns={},order={},input=shared,filter=shared,unroll=rows,stages={}"
S08 = ["fused=no", "fused=yes,warps=1", "fused=yes,warps=2", "fused=yes,warps=4"]
RUNS = [
    ("08", "h=2160,w=3840,r=31,s=31", S08),
    ("08", "h=4000,w=6000,r=9,s=9", S08),
    ("08", "h=2160,w=3840,r=3,s=3", S08),
    ("08", "h=2160,w=3840,r=15,s=15", S08),
    ("08", "h=2160,w=3840,r=11,s=11", ["fused=no", "fused=yes"]),
    ("08", "h=1080,w=1920,r=31,s=31", ["fused=no", "fused=yes"]),
    ("08", "h=256,w=256,r=11,s=11", ["fused=no", "fused=yes"]),
    ("08", "h=2160,w=3840,r=41,s=41", ["fused=no"]),  # more than one kernel takes
    ("08", "h=2160,w=3840,r=65,s=65", ["fused=no"]),
    ("04", "w=30000000,s=201", ["outputs=4", "outputs=16"]),
    ("04", "w=16777216,s=63", ["outputs=4", "outputs=16"]),
    ("04", "w=16777216,s=31", ["outputs=4", "outputs=16"]),
    ("04", "w=16777216,s=255", ["outputs=4", "outputs=16"]),
    ("04", "w=16777216,s=11", ["outputs=4", "outputs=16"]),
    ("04", "w=16777216,s=21", ["outputs=4", "outputs=16"]),
    ("04", "w=1048576,s=63", ["outputs=4", "outputs=16"]),
    ("09", "h=2160,w=3840,r=5,s=5", [""]),
    ("09", "h=1080,w=1920,r=7,s=7", [""]),
    ("09", "h=2160,w=3840,r=7,s=7", [""]),
    ("09", "h=2160,w=3840,r=3,s=3", [""]),
    ("15", "n=32,c=96,k=96,groups=96,h=56,w=56,r=7,s=7",
     ["", S15.format(32, 64, 4, 4, "input-rows", 2), S15.format(64, 64, 4, 4, "input-rows", 2),
      S15.format(64, 64, 8, 4, "input-rows", 2), S15.format(64, 64, 4, 4, "filter-rows", 2),
      S15.format(16, 64, 4, 4, "input-rows", 2), S15.format(32, 64, 4, 4, "input-rows", 1),
      S15.format(64, 64, 4, 4, "input-rows", 1)]),
    ("15", "n=32,c=240,k=240,groups=240,h=28,w=28,r=5,s=5",
     ["", S15.format(32, 32, 4, 4, "input-rows", 2), S15.format(32, 32, 2, 4, "input-rows", 2)]),
    ("15", "n=32,c=144,k=144,groups=144,h=56,w=56,r=3,s=3",
     ["", S15.format(32, 64, 4, 4, "input-rows", 2), S15.format(64, 64, 4, 4, "input-rows", 2)]),
    ("15", "n=3,c=4,k=4,groups=4,h=16,w=32,r=7,s=7", ["", S15.format(4, 16, 1, 1, "input-rows", 1)]),
]
(out / "copies.json").write_text(json.dumps(copies(), indent=1))
status, text, errors = call(["build/bin/stage-tests-gpu", "--test-case=04*,08*,09*,15*", "-d"], left() - 130)
(out / "tests.txt").write_text(f"exit status {status}\n{text[-20000:]}\n{errors[-5000:]}")
rows = []
for stage, shape, configurations in RUNS:
    for number, configuration in enumerate(configurations):
        if left() < 15:
            rows.append({"stage": stage, "shape": shape, "configuration": configuration, "status": "no time left"})
            continue
        command = [program, "run", stage, "--backend", "gpu", "--shape", shape, "--json"]
        command += ["--beside"] if number == 0 else []
        command += ["--configuration", configuration] if configuration else []
        status, text, errors = call(command, 40)
        try:
            result = json.loads(text)
            row = {key: result.get(key) for key in ("status", "reason", "time_us", "time_cold_us", "rel_l2_err", "roofline",
                                                    "kernels", "configuration", "speedup", "device")}
            trials = [t for t in result.get("cudnn") or [] if t.get("time_us")]
            row["cudnn_best"] = min(trials, key=lambda t: t["time_us"] if not isinstance(t["time_us"], dict) else t["time_us"]["median"]) if trials else None
        except ValueError:
            row = {"status": f"exit status {status}", "reason": (errors or text)[-400:]}
        rows.append({"stage": stage, "shape": shape, "asked": configuration, **row})
        (out / "bytes.json").write_text(json.dumps(rows, indent=1))
        print(stage, shape, configuration or "default", row.get("status"), (row.get("time_us") or {}).get("median"), flush=True)
if left() > 30:
    command = [program, "bench", "--backend", "gpu", "--stage", "4,8,9", "--workload", "all", "--json", str(out / "workloads.json")]
    status, text, errors = call(command, left() - 5)
    print("workloads:", status, errors[-200:])
print((out / "copies.json").read_text())
print((out / "tests.txt").read_text()[-400:])
PY
