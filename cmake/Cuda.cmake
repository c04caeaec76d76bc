# Finds out whether the GPU side can be built, and for which GPUs. Sets CONVLADDER_HAS_CUDA.
include(CheckLanguage)

set(CONVLADDER_HAS_CUDA FALSE)
if(CONVLADDER_CUDA STREQUAL "OFF")
  return()
endif()

# An nvcc chosen by hand; else on PATH, in the toolkit's usual folder, or from PyPI's wheels (cmake/cuda-from-pypi.sh).
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(CONVLADDER_NVCC nvcc PATHS /usr/local/cuda/bin ${PROJECT_SOURCE_DIR}/.venv-cuda/cuda/bin)
  mark_as_advanced(CONVLADDER_NVCC)
  if(CONVLADDER_NVCC)
    set(ENV{CUDACXX} ${CONVLADDER_NVCC})
  endif()
endif()
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  if(CONVLADDER_CUDA STREQUAL "ON")
    message(FATAL_ERROR "CONVLADDER_CUDA=ON, but there is no nvcc that works: install the CUDA Toolkit, or name its nvcc "
                        "in the environment variable CUDACXX")
  endif()
  message(STATUS "no nvcc: building the simulator side alone")
  return()
endif()

# The architectures of the GPUs here; else sm_80, sm_90, and PTX for what comes after.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
  set(architectures "")
  find_program(CONVLADDER_NVIDIA_SMI nvidia-smi)
  mark_as_advanced(CONVLADDER_NVIDIA_SMI)
  if(CONVLADDER_NVIDIA_SMI)
    execute_process(COMMAND ${CONVLADDER_NVIDIA_SMI} --query-gpu=compute_cap --format=csv,noheader
                    OUTPUT_VARIABLE capabilities RESULT_VARIABLE result ERROR_QUIET)
    if(result EQUAL 0)
      string(REGEX MATCHALL "[0-9]+\\.[0-9]" architectures "${capabilities}")
      string(REPLACE "." "" architectures "${architectures}")
      list(REMOVE_DUPLICATES architectures)
    endif()
  endif()
  if(NOT architectures)
    set(architectures 80-real 90)
  endif()
  set(CMAKE_CUDA_ARCHITECTURES ${architectures} CACHE STRING "GPU architectures")
endif()

enable_language(CUDA)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.3)
  message(FATAL_ERROR "CUDA ${CMAKE_CUDA_COMPILER_VERSION} is too old: install CUDA 12.3 or newer, or configure with "
                      "-DCONVLADDER_CUDA=OFF")
elseif(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.9)
  message(STATUS "no overlap: ptxas before CUDA 12.9 serialises the wgmmas of stages 32, 34 and 36")
endif()
# An older g++ that nvcc calls (Debian 13: 13, beside 14) has an older libstdc++ in its folder. The C++ compiler links,
# and takes its own.
list(FILTER CMAKE_CUDA_IMPLICIT_LINK_DIRECTORIES EXCLUDE REGEX "/gcc/")
find_package(CUDAToolkit REQUIRED)
if(CMAKE_CUDA_COMPILER MATCHES "^${PROJECT_SOURCE_DIR}/.venv-cuda/")
  # The wheel's own place: cuDNN looks for cuBLAS relative to itself.
  file(REAL_PATH ${PROJECT_SOURCE_DIR}/.venv-cuda/cudnn CUDNN_ROOT)
endif()
find_package(CUDNN QUIET)
if(NOT CUDNN_FOUND)
  string(REGEX MATCH "^[0-9]+" cuda_major "${CMAKE_CUDA_COMPILER_VERSION}")
  message(STATUS "no cuDNN: GPU times stand without cuDNN's beside them (python3 -m pip install "
                 "nvidia-cudnn-cu${cuda_major}, or name its folder in CUDNN_ROOT)")
endif()
# What the rows beside the stages stand on, besides the toolkit.
find_package(CUTLASS QUIET)
find_package(NPP QUIET)
# What several GPUs talk through.
find_package(NCCL QUIET)
if(NOT NCCL_FOUND)
  message(STATUS "no NCCL (libnccl-dev, or python3 -m pip install nvidia-nccl-cu13, or name its folder in NCCL_ROOT): "
                 "bin/several cannot join several GPUs")
endif()
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
set(CONVLADDER_HAS_CUDA TRUE)
message(STATUS "GPU side: CUDA ${CMAKE_CUDA_COMPILER_VERSION}, architectures ${CMAKE_CUDA_ARCHITECTURES}")
