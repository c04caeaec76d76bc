# Read by CTest, after the lists of the cases: those that measure time, or use every core themselves, run alone.
foreach(case IN LISTS simt-tests_TESTS stage-tests_TESTS)
  if(case MATCHES "a second of processor time|stage-tests: ?22 ")
    set_tests_properties("${case}" PROPERTIES RUN_SERIAL ON)
  endif()
endforeach()
