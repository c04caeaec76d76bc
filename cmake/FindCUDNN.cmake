# Finds cuDNN: in CUDNN_ROOT, in the CUDA toolkit, in system folders, or in the wheel nvidia-cudnn-cu* of the python3 on
# PATH, in this order. Header and library come from the same place.
#
#   CUDNN::cudnn    imported target; wheels hold libcudnn.so.9 without the link libcudnn.so, which serves as well
#   CUDNN_VERSION   "9.19.0"
#   CUDNN_INCLUDE_DIR, CUDNN_LIBRARY

find_package(CUDAToolkit QUIET)
foreach(folder IN LISTS CUDAToolkit_INCLUDE_DIRS)
  list(APPEND _cudnn_toolkit_folders "${folder}" "${folder}/..")
endforeach()

execute_process(
  COMMAND python3 -c
          "import importlib.util as u; print(next(iter(u.find_spec('nvidia.cudnn').submodule_search_locations)))"
  OUTPUT_VARIABLE _cudnn_wheel_folder
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)

find_path(
  CUDNN_INCLUDE_DIR cudnn_version.h
  HINTS ${_cudnn_toolkit_folders}
  PATHS "${_cudnn_wheel_folder}"
  PATH_SUFFIXES include)
if(CUDNN_INCLUDE_DIR)
  get_filename_component(_cudnn_folder "${CUDNN_INCLUDE_DIR}" REALPATH)
  find_library(
    CUDNN_LIBRARY
    NAMES cudnn libcudnn.so.9 NAMES_PER_DIR
    HINTS "${_cudnn_folder}/.." "${_cudnn_folder}/../.."
    PATH_SUFFIXES lib64 lib "lib/${CMAKE_LIBRARY_ARCHITECTURE}")
  file(STRINGS "${CUDNN_INCLUDE_DIR}/cudnn_version.h" _cudnn_defines REGEX "#define CUDNN_(MAJOR|MINOR|PATCHLEVEL) ")
  string(REGEX REPLACE "[^0-9;]" "" _cudnn_numbers "${_cudnn_defines}")
  string(REPLACE ";" "." CUDNN_VERSION "${_cudnn_numbers}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  CUDNN
  REQUIRED_VARS CUDNN_LIBRARY CUDNN_INCLUDE_DIR
  VERSION_VAR CUDNN_VERSION
  REASON_FAILURE_MESSAGE "set CUDNN_ROOT to the folder that holds include and lib")
mark_as_advanced(CUDNN_LIBRARY CUDNN_INCLUDE_DIR)

if(CUDNN_FOUND AND NOT TARGET CUDNN::cudnn)
  add_library(CUDNN::cudnn SHARED IMPORTED)
  set_target_properties(CUDNN::cudnn PROPERTIES IMPORTED_LOCATION "${CUDNN_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES
                                                                                     "${CUDNN_INCLUDE_DIR}")
  target_link_libraries(CUDNN::cudnn INTERFACE $<$<TARGET_EXISTS:CUDA::toolkit>:CUDA::toolkit>)
endif()
