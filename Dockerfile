# ConvLadder with all that it needs: on the CPU (target cpu), or with CUDA from PyPI as well (target cuda).
#
#     docker build --target cpu -t convladder .
#     docker run --rm -it convladder ./lab run 3
#     docker build --target cuda -t convladder-cuda .
#     docker run --rm -it --gpus all convladder-cuda ./lab bench
#
# The dev container (.devcontainer/devcontainer.json) is the target tools, with the checkout mounted. docs/docker.md says
# what was tried.
FROM debian:12-slim AS tools
ENV DEBIAN_FRONTEND=noninteractive \
    PATH=/opt/python/bin:$PATH
COPY lab /opt/lab
# hadolint ignore=DL3008
RUN apt-get update -q \
    && apt-get install -y -q --no-install-recommends ca-certificates git python3-dev python3-venv \
    && bash /opt/lab doctor --install-packages \
    && rm -rf /var/lib/apt/lists/* \
    && python3 -m venv /opt/python

# The simulator's side of the Python package, and of the command line, which is made of the same objects.
FROM tools AS cpu
COPY . /convladder
WORKDIR /convladder
# hadolint ignore=DL3013
RUN pip install --no-cache-dir --config-settings=build-dir=build '.[notebook]' \
    && ./lab list
CMD ["bash"]

FROM tools AS cuda-tools
COPY cmake/cuda-from-pypi.sh /opt/
RUN bash /opt/cuda-from-pypi.sh /opt/cuda

# The Python package's GPU side too, for the architectures that CUDAARCHS names ("75"), else for sm_80, sm_90 and later.
# The command line's is built by the first command that finds a GPU, for that one.
FROM cuda-tools AS cuda
ARG CUDAARCHS
COPY --from=cpu /convladder /convladder
WORKDIR /convladder
# hadolint ignore=DL3013
RUN ln -s /opt/cuda .venv-cuda \
    && pip install --no-cache-dir '.[notebook]' \
    && rm -rf build-python
CMD ["bash"]
