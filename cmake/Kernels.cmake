# How kernel files are compiled for the simulator: as C++17, with the hooks through which it sees every access
# (-fsanitize=thread) and every branch (-fsanitize=coverage), and with blocks laid out in source order, since the
# simulator reconverges warps by program counter. Nothing is linked with -fsanitize: the simulator defines the hooks.
set(CONVLADDER_INSTRUMENTED_FLAGS
    -O1 -g -fsanitize=thread -fsanitize-coverage=trace-pc -fno-optimize-sibling-calls -Wno-unknown-pragmas)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND CONVLADDER_INSTRUMENTED_FLAGS
       "SHELL:--param tsan-instrument-func-entry-exit=0"
       -fno-reorder-blocks -fno-guess-branch-probability -fno-tree-ch -fno-tree-tail-merge -fno-crossjumping
       -fno-thread-jumps)
else()
  list(APPEND CONVLADDER_INSTRUMENTED_FLAGS
       "SHELL:-mllvm -tsan-instrument-func-entry-exit=0" "SHELL:-mllvm -tsan-instrument-read-before-write=1"
       -fno-vectorize -fno-slp-vectorize -fno-unroll-loops -fno-builtin)
endif()
# Functions of the package are called from folders that do not see this one's variables.
set(CONVLADDER_INSTRUMENTED_FLAGS ${CONVLADDER_INSTRUMENTED_FLAGS} CACHE INTERNAL "Flags of kernels in the simulator")

# convladder_instrumented_flags(VARIABLE): the same as plain arguments of a compiler.
function(convladder_instrumented_flags variable)
  string(REPLACE "SHELL:" "" flags "${CONVLADDER_INSTRUMENTED_FLAGS}")
  string(REPLACE " " ";" flags "${flags}")
  set(${variable} "${flags}" PARENT_SCOPE)
endfunction()

# convladder_add_kernels(TARGET SOURCES...): an object library of kernel files for the simulator.
function(convladder_add_kernels target)
  convladder_add_generated_kernels(${target} ${ARGN})
  set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL OFF)
  set_property(GLOBAL APPEND PROPERTY CONVLADDER_INSTRUMENTED_TARGETS ${target})
endfunction()

# The same of files that only what is asked for by its name needs, and that no test looks at as a library.
# The language of a source is set per directory: the same files are compiled by nvcc from cmake/cuda.
function(convladder_add_generated_kernels target)
  set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CXX)
  add_library(${target} OBJECT EXCLUDE_FROM_ALL ${ARGN})
  # Parts of a program, or of the Python package's library: what they export is nobody else's.
  set_target_properties(${target} PROPERTIES
    CXX_STANDARD 17 POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden)
  if(CONVLADDER_SANITIZE)  # the hooks are the simulator's: these objects are as in any other build
    get_target_property(options ${target} COMPILE_OPTIONS)
    list(REMOVE_ITEM options ${CONVLADDER_SANITIZER_FLAGS})
    set_target_properties(${target} PROPERTIES COMPILE_OPTIONS "${options}")
  endif()
  target_compile_options(${target} PRIVATE ${CONVLADDER_INSTRUMENTED_FLAGS})
  if(TARGET convladder::simt)  # of a project that uses this one
    target_link_libraries(${target} PUBLIC convladder::simt)
  endif()
endfunction()

# convladder_add_host_kernel(TARGET SOURCE): an object library of the kernel file of a stage that runs on the host, in
# every program.
function(convladder_add_host_kernel target source)
  add_library(${target} OBJECT ${source})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  if(NOT CONVLADDER_SANITIZE)
    target_compile_options(${target} PRIVATE -O3)
  endif()
  target_link_libraries(${target} PUBLIC OpenMP::OpenMP_CXX)
  set_property(GLOBAL APPEND PROPERTY CONVLADDER_PLAIN_TARGETS ${target})
endfunction()
