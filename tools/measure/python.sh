#!/usr/bin/env bash
# The Python package on a GPU: builds it with its GPU side, runs its tests on tensors of torch, and times what a call costs the
# host. In a checkout's root, where `python3` has torch and NumPy, with nvcc, cmake and ninja; no network is needed. OUT is a
# folder. 3 minutes, if `build` holds the project's objects already; a build that time does not suffice for goes on where it
# ended when this runs again. .gpu/wheels holds what `python3` lacks of scikit-build-core, nanobind, nanobind-backend and pytest:
#   pip download --python-version 3.12 --only-binary=:all: --platform manylinux_2_28_x86_64 \
#     --dest .gpu/wheels scikit-build-core nanobind nanobind-backend pytest
#   log.txt               what ran, its exit status and seconds
#   build.txt             pip's and CMake's output
#   tests.txt             the tests of tests/python that want a GPU or torch, and why any was skipped
#   python-overhead.json  tools/python_overhead.py: conv, Conv and Conv2d beside torch's conv2d; for docs/results
set -u
. tools/measure/empty-out.sh
BUDGET=${BUDGET:-180}
PATH=$PATH:/usr/local/cuda/bin
SITE=$(mktemp -d)
export PYTHONPATH=$SITE XLA_PYTHON_CLIENT_PREALLOCATE=false
SECONDS=0
step() { # step FILE SECONDS COMMAND...: at most so long, and not beyond the budget
  local file=$1 most=$2 rest=$((BUDGET - SECONDS)) begin=$SECONDS status
  shift 2
  if ((rest < 5)); then
    echo "$file: left out, no time" | tee -a "$OUT/log.txt"
    return 1
  fi
  timeout $((most < rest ? most : rest)) "$@" >>"$OUT/$file" 2>&1
  status=$?
  echo "$file: exit $status after $((SECONDS - begin)) s" | tee -a "$OUT/log.txt"
  return $status
}
install() { python3 -m pip install --no-index --no-deps --no-compile --upgrade --target "$SITE" "$@"; }
export -f install
export SITE

step build.txt 30 bash -c 'install .gpu/wheels/*.whl' &&
  step build.txt "$BUDGET" bash -c 'install --no-build-isolation --config-settings=build-dir=build .' || exit 1
# The build tree is the project's, and keeps nothing of this environment.
step build.txt 30 cmake -B build -U SKBUILD -U '*Python*'
step tests.txt 90 python3 -m pytest -q -rs tests/python/test_gpu.py tests/python/test_torch.py \
  tests/python/test_launches.py tests/python/test_package.py::test_gpu_side_has_classes_of_its_own
step overhead.txt 90 python3 tools/python_overhead.py "$OUT/python-overhead.json"
tail -n 12 "$OUT/tests.txt"
