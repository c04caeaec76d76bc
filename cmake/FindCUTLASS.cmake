# Finds CUTLASS's headers: in CUTLASS_ROOT, which is a checkout of CUTLASS, or in the wheel nvidia-cutlass of the
# project's environment of baselines (cmake/Baselines.cmake). Nowhere else: its templates take a minute to compile.
#
#   CUTLASS::cutlass    imported target
#   CUTLASS_VERSION     "4.2.0"
#   CUTLASS_INCLUDE_DIR

find_path(
  CUTLASS_INCLUDE_DIR cutlass/conv/collective/collective_builder.hpp
  HINTS ${CUTLASS_ROOT} $ENV{CUTLASS_ROOT} ${CONVLADDER_BASELINE_PACKAGES}/cutlass_library/source
  PATH_SUFFIXES include
  NO_DEFAULT_PATH)
if(CUTLASS_INCLUDE_DIR)
  file(STRINGS "${CUTLASS_INCLUDE_DIR}/cutlass/version.h" _cutlass_defines
       REGEX "#define CUTLASS_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "[^0-9;]" "" _cutlass_numbers "${_cutlass_defines}")
  string(REPLACE ";" "." CUTLASS_VERSION "${_cutlass_numbers}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  CUTLASS
  REQUIRED_VARS CUTLASS_INCLUDE_DIR
  VERSION_VAR CUTLASS_VERSION
  REASON_FAILURE_MESSAGE "./lab doctor --install-baselines, or set CUTLASS_ROOT to a checkout of CUTLASS")
mark_as_advanced(CUTLASS_INCLUDE_DIR)

if(CUTLASS_FOUND AND NOT TARGET CUTLASS::cutlass)
  add_library(CUTLASS::cutlass INTERFACE IMPORTED)
  # The second has packed_stride.hpp, which the first includes.
  set_target_properties(
    CUTLASS::cutlass PROPERTIES INTERFACE_INCLUDE_DIRECTORIES
                                "${CUTLASS_INCLUDE_DIR};${CUTLASS_INCLUDE_DIR}/../tools/util/include")
endif()
