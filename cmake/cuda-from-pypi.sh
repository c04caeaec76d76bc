#!/usr/bin/env bash
# Usage: cuda-from-pypi.sh FOLDER
#        cuda-from-pypi.sh --check-driver    (only whether the GPU's driver, if there is one, takes this CUDA)
# Puts a CUDA toolkit with NVRTC, cuBLAS and cuFFT, and cuDNN, taken from PyPI's nvidia-* wheels, into a Python
# environment in FOLDER:
#
#   FOLDER/cuda    bin/nvcc, include, lib64      (cmake/Cuda.cmake looks here)
#   FOLDER/cudnn   include, lib
set -euo pipefail

fail() {
  echo "cuda-from-pypi: $1" >&2
  exit 2
}

[ $# = 1 ] || fail "usage: cuda-from-pypi.sh FOLDER"
folder=$1

# CUDA 13 runs on drivers from 580 on; 13.0 on all of them. The wheels of CUDA 12 (nvidia-cuda-nvcc-cu12) have ptxas and
# no nvcc, so for older drivers there is nothing to take.
if driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null); then
  driver=${driver%%$'\n'*}
  [ "${driver%%.*}" -ge 580 ] || fail "driver $driver takes no CUDA 13, and PyPI has no nvcc of CUDA 12: install \
driver 580 or newer, or the CUDA Toolkit 12.9, whose nvcc ./lab finds on PATH, in CUDACXX or in /usr/local/cuda"
fi
[ "$folder" != --check-driver ] || exit 0

command -v python3 >/dev/null || fail "python3 is missing: apt-get install python3 python3-venv"
python3 -c 'import ensurepip, venv' 2>/dev/null || fail "python3 makes no environments: apt-get install python3-venv"

{ mkdir -p "$folder" 2>/dev/null && [ -w "$folder" ]; } || fail "cannot write $folder: name a folder of your own"
python3 -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check \
  'nvidia-cuda-nvcc==13.0.*' 'nvidia-cuda-crt==13.0.*' 'nvidia-nvvm==13.0.*' 'nvidia-cuda-runtime==13.0.*' \
  'nvidia-cuda-cccl==13.0.*' 'nvidia-cuda-nvrtc==13.0.*' 'nvidia-cublas==13.*' 'nvidia-cufft==12.0.*' \
  'nvidia-cudnn-cu13==9.*' >&2 ||
  fail "pip could not install the wheels: look at its message above"

# A wheel has no lib64, where nvcc looks, and no unversioned names, which the linker looks for.
packages=$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/nvidia
ln -sfn lib "$packages/cu13/lib64"
ln -sfn libcudart.so.13 "$packages/cu13/lib/libcudart.so"
ln -sfn libcublas.so.13 "$packages/cu13/lib/libcublas.so"
ln -sfn libcublasLt.so.13 "$packages/cu13/lib/libcublasLt.so"
ln -sfn libcufft.so.12 "$packages/cu13/lib/libcufft.so"
ln -sfn libnvrtc.so.13 "$packages/cu13/lib/libnvrtc.so"
ln -sfn "$packages/cudnn" "$folder/cudnn"
ln -sfn "$packages/cu13" "$folder/cuda" # last: its being there says that all is
"$folder/cuda/bin/nvcc" --version >/dev/null || fail "the nvcc in $folder does not run"
