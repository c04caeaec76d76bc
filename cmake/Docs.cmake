# The target `docs`: the documentation as a site, in docs/ of the build folder, as `./lab docs` makes it.
find_package(Python3 QUIET COMPONENTS Interpreter)
find_program(CONVLADDER_DOXYGEN doxygen)
find_path(CONVLADDER_AWESOME doxygen-awesome.css PATHS /usr/share/doxygen-awesome-css)
find_path(CONVLADDER_MATHJAX MathJax.js PATHS /usr/share/javascript/mathjax)
mark_as_advanced(CONVLADDER_DOXYGEN CONVLADDER_AWESOME CONVLADDER_MATHJAX)
if(Python3_FOUND AND CONVLADDER_DOXYGEN AND CONVLADDER_AWESOME AND CONVLADDER_MATHJAX)
  add_custom_target(docs
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/site/build.py ${PROJECT_BINARY_DIR}/docs
            ${CONVLADDER_AWESOME} ${CONVLADDER_MATHJAX} VERBATIM)
else()
  add_custom_target(docs
    COMMAND ${CMAKE_COMMAND} -E echo
            "docs: needs python3, doxygen, doxygen-awesome-css and libjs-mathjax: ./lab docs installs them"
    COMMAND ${CMAKE_COMMAND} -E false VERBATIM)
endif()
