# The package that find_package(convladder) finds, and the same two libraries for a project that has this one by
# add_subdirectory:
#
#   convladder::simt     the simulator, and the device over it: for kernels of one's own (convladder_add_kernels)
#   convladder::stages   all stages, the registry, tensors in the layouts of stages, and the reference
#
# Their headers keep the paths by which they include each other: "common/harness/ladder/registry.hpp".
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# convladder_add_package_library(NAME OBJECTS... [SOURCES ...]): a static library of libraries' objects.
function(convladder_add_package_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "OBJECTS;SOURCES")
  list(TRANSFORM arg_OBJECTS REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>")
  add_library(convladder-${name} STATIC ${arg_SOURCES} ${arg_OBJECTS})
  add_library(convladder::${name} ALIAS convladder-${name})
  set_target_properties(convladder-${name} PROPERTIES LINKER_LANGUAGE CXX EXPORT_NAME ${name}
                                                      POSITION_INDEPENDENT_CODE ON)
  target_compile_features(convladder-${name} PUBLIC cxx_std_20)
  target_include_directories(convladder-${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/convladder>)
  if(PROJECT_IS_TOP_LEVEL)
    install(TARGETS convladder-${name} EXPORT convladder-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
endfunction()

convladder_add_package_library(simt
  OBJECTS convladder_stage convladder_simt convladder_kernel convladder_tracks convladder_device convladder_device_sim)
target_link_libraries(convladder-simt PUBLIC fmt::fmt OpenMP::OpenMP_CXX Threads::Threads ${CMAKE_DL_LIBS})
if(TARGET Boost::context)
  target_link_libraries(convladder-simt PUBLIC Boost::context)
endif()
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_link_options(convladder-simt PUBLIC -Wl,--wrap=memcpy,--wrap=memset,--wrap=memmove)
endif()

set(kernels "")
foreach(folder IN LISTS CONVLADDER_STAGES CONVLADDER_STEPS)
  list(APPEND kernels ${folder}-kernel)
endforeach()
set(harness ${PROJECT_SOURCE_DIR}/common/harness)
convladder_add_package_library(stages OBJECTS convladder_stages ${kernels}
  SOURCES ${harness}/check/device_tensors.cpp ${harness}/check/half_bits.cpp ${harness}/check/inputs.cpp
          ${harness}/check/quantise.cpp ${harness}/check/reference.cpp ${harness}/files/spelling.cpp
          ${harness}/ladder/registry.cpp ${harness}/ladder/tracks.cpp ${PROJECT_BINARY_DIR}/generated/tracks.cpp)
target_compile_options(convladder-stages PRIVATE -ffp-contract=off)
target_link_libraries(convladder-stages PUBLIC convladder-simt)

if(NOT PROJECT_IS_TOP_LEVEL)
  return()  # the parent installs what is its own
endif()

# The headers of what these libraries hold.
foreach(folder IN ITEMS stage simt kernel kernel/tracks harness/device)
  file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/common/${folder}/*.hpp)
  install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/convladder/common/${folder})
endforeach()
foreach(header IN ITEMS check/device_tensors check/half_bits check/inputs check/quantise check/reference files/errors
                        files/spelling ladder/registry ladder/tracks)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${harness}/${header}.hpp
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/convladder/common/harness/${folder})
endforeach()

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/convladder)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/convladder-config.cmake.in
  ${PROJECT_BINARY_DIR}/generated/convladder-config.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/convladder-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/convladder-config.cmake
              ${PROJECT_BINARY_DIR}/generated/convladder-config-version.cmake
              ${PROJECT_SOURCE_DIR}/cmake/Kernels.cmake DESTINATION ${package})
install(EXPORT convladder-targets NAMESPACE convladder:: DESTINATION ${package})
