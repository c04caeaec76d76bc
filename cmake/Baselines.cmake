# The project's environment of baselines, which `./lab doctor --install-baselines` fills from PyPI. What is found there
# goes before the system's.
set(CONVLADDER_BASELINES ${PROJECT_SOURCE_DIR}/.venv-baselines CACHE PATH "Python environment with libraries to compare with")
file(GLOB CONVLADDER_BASELINE_PACKAGES ${CONVLADDER_BASELINES}/lib/python3*/site-packages)
