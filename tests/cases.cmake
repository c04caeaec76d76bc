# Read by CTest, after the lists of the doctest cases.

# Those that take more than about 4 seconds of one core have the label slow, the others fast: whole suites of images,
# more images than a grid has blocks, and single ones; and the wrong kernels, which are many. The longest begin first.
set(slow
  "stage-tests: ?mutants: "
  "stage-tests: ?(0[5-9]|1[5-9]|[23][0-9]|4[0-2]) .*every (image|plane|switch) is "
  "stage-tests: ?.*: configurations are right and counted as predicted"
  "stage-tests: ?.* than a grid has blocks in y"
  "stage-tests: ?(06|07|09|2[3-9]|3[0-9]) .*: counters are what the lesson predicts"
  "stage-tests: ?3[1-7] .*(are|is) right"
  "stage-tests: ?33 .*: (more channels|strips, chunks and blocks of filters)"
  "stage-tests: ?3[57] .*: errors are below what is predicted"
  "stage-tests: ?36 .*: (a slice that does not fit|NaN and infinity)"
  "stage-tests: ?4[123] .*: has the bits of one device, for any number"
  "stage-tests: ?15 .*: (any point of the space is right|taps far apart cost|two stages are right)"
  "harness-tests: ?a (chain|layer) in bands"
  "harness-tests: ?filtered pictures: every stage gives the exact picture"
  "harness-tests: ?simulated GPUs: each stage"
  "harness-tests: ?the bounds hold for all kinds of inputs")
list(JOIN slow "|" slow)

# Those that measure time, or use every core themselves, run alone.
set(serial "a second of processor time|stage-tests: ?22 ")

foreach(case IN LISTS harness-tests_TESTS simt-tests_TESTS stage-tests_TESTS)
  if(case MATCHES "${slow}")
    set_tests_properties("${case}" PROPERTIES LABELS slow COST 20)
  else()
    set_tests_properties("${case}" PROPERTIES LABELS fast)
  endif()
  if(case MATCHES "${serial}")
    set_tests_properties("${case}" PROPERTIES RUN_SERIAL ON)
  endif()
endforeach()

# Tests run beside each other; each takes one core, and OpenMP's threads give theirs up where they wait.
set(ENV{CONVLADDER_SIM_CORES} 1)
set(ENV{OMP_WAIT_POLICY} passive)
