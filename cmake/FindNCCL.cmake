# Finds NCCL: in NCCL_ROOT, in system folders, or in the wheel nvidia-nccl-cu* of the python3 on PATH, in this order.
# Header and library come from the same place.
#
#   NCCL::nccl      imported target; the wheel holds libnccl.so.2 without the link libnccl.so, which serves as well
#   NCCL_VERSION    "2.28.9"
#   NCCL_INCLUDE_DIR, NCCL_LIBRARY

execute_process(
  COMMAND python3 -c
          "import importlib.util as u; print(next(iter(u.find_spec('nvidia.nccl').submodule_search_locations)))"
  OUTPUT_VARIABLE _nccl_wheel_folder
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)

find_path(NCCL_INCLUDE_DIR nccl.h PATHS "${_nccl_wheel_folder}" PATH_SUFFIXES include)
if(NCCL_INCLUDE_DIR)
  get_filename_component(_nccl_folder "${NCCL_INCLUDE_DIR}" REALPATH)
  find_library(
    NCCL_LIBRARY
    NAMES nccl libnccl.so.2 NAMES_PER_DIR
    HINTS "${_nccl_folder}/.."
    PATH_SUFFIXES lib64 lib "lib/${CMAKE_LIBRARY_ARCHITECTURE}")
  file(STRINGS "${NCCL_INCLUDE_DIR}/nccl.h" _nccl_defines REGEX "#define NCCL_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "[^0-9;]" "" _nccl_numbers "${_nccl_defines}")
  string(REPLACE ";" "." NCCL_VERSION "${_nccl_numbers}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  NCCL
  REQUIRED_VARS NCCL_LIBRARY NCCL_INCLUDE_DIR
  VERSION_VAR NCCL_VERSION
  REASON_FAILURE_MESSAGE "set NCCL_ROOT to the folder that holds include and lib")
mark_as_advanced(NCCL_LIBRARY NCCL_INCLUDE_DIR)

if(NCCL_FOUND AND NOT TARGET NCCL::nccl)
  add_library(NCCL::nccl SHARED IMPORTED)
  set_target_properties(NCCL::nccl PROPERTIES IMPORTED_LOCATION "${NCCL_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES
                                                                                  "${NCCL_INCLUDE_DIR}")
endif()
