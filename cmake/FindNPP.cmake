# Finds NPP's image filters: in the CUDA toolkit, or in the wheel nvidia-npp of the project's environment of baselines
# (cmake/Baselines.cmake).
#
#   NPP::npp    imported target: libnppif, and libnppidei, which pads
#   NPP_INCLUDE_DIR, NPP_FILTER_LIBRARY, NPP_EXCHANGE_LIBRARY, NPP_CORE_LIBRARY

find_package(CUDAToolkit QUIET)
set(_npp_wheel ${CONVLADDER_BASELINE_PACKAGES}/nvidia/cu${CUDAToolkit_VERSION_MAJOR})
find_path(NPP_INCLUDE_DIR nppi_filtering_functions.h HINTS ${NPP_ROOT} ${CUDAToolkit_INCLUDE_DIRS} ${_npp_wheel}
          PATH_SUFFIXES include)
foreach(_npp_part IN ITEMS FILTER:nppif EXCHANGE:nppidei CORE:nppc)
  string(REPLACE ":" ";" _npp_part ${_npp_part})
  list(GET _npp_part 0 _npp_variable)
  list(GET _npp_part 1 _npp_name)
  find_library(NPP_${_npp_variable}_LIBRARY NAMES ${_npp_name} lib${_npp_name}.so.${CUDAToolkit_VERSION_MAJOR}
               NAMES_PER_DIR HINTS ${NPP_ROOT} ${CUDAToolkit_LIBRARY_DIR} ${_npp_wheel} PATH_SUFFIXES lib64 lib)
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  NPP
  REQUIRED_VARS NPP_FILTER_LIBRARY NPP_EXCHANGE_LIBRARY NPP_CORE_LIBRARY NPP_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "./lab doctor --install-baselines, or install libnpp of the CUDA toolkit")
mark_as_advanced(NPP_INCLUDE_DIR NPP_FILTER_LIBRARY NPP_EXCHANGE_LIBRARY NPP_CORE_LIBRARY)

if(NPP_FOUND AND NOT TARGET NPP::npp)
  add_library(NPP::npp INTERFACE IMPORTED)
  set_target_properties(
    NPP::npp PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${NPP_INCLUDE_DIR}"
                        INTERFACE_LINK_LIBRARIES "${NPP_FILTER_LIBRARY};${NPP_EXCHANGE_LIBRARY};${NPP_CORE_LIBRARY}")
endif()
