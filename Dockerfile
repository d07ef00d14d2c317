# docker build -t berth:0.1.0 .        from another package index: --build-arg PIP_INDEX_URL=...
#
# For an image that can be built again, pin the base by its digest, which
# `docker buildx imagetools inspect python:3.13-slim` prints:
#   docker build --build-arg PYTHON=python:3.13-slim@sha256:... -t berth:0.1.0 .

ARG PYTHON=python:3.13-slim

FROM ${PYTHON} AS builder
# pip reads it from the environment; unset, it is pip's own default.
ARG PIP_INDEX_URL
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /build

COPY requirements.lock .
RUN python -m venv --without-pip /opt/berth \
 && pip --python /opt/berth/bin/python install --require-hashes --only-binary=:all: --no-compile \
      -r requirements.lock

# What builds the wheel, as locked, whatever of it the base has.
COPY requirements-build.lock .
RUN pip install --ignore-installed --require-hashes -r requirements-build.lock

COPY pyproject.toml README.md LICENSE ./
COPY release/readme.py release/
COPY app app
COPY plugins plugins
RUN pip wheel --no-deps --no-build-isolation --wheel-dir dist . \
 && pip --python /opt/berth/bin/python install --no-deps --no-index --no-compile dist/*.whl \
# Nothing is compiled at run time, for nothing can be written then. By content, not by time.
 && /opt/berth/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/berth/lib

FROM ${PYTHON}
ARG PYTHON
LABEL org.opencontainers.image.base.name="${PYTHON}" \
      org.opencontainers.image.title="berth" \
      org.opencontainers.image.description="A Kubernetes pod scheduler as one asyncio Python service" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.1.0"
# No entry of /etc/passwd says where this user is at home, and the Kubernetes client wants to know.
ENV HOME=/var/lib/berth PATH=/opt/berth/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# New volumes at these places belong to berth. Other users, as some clusters choose them, may enter.
RUN install -d -o 65532 -g 65532 -m 0755 /var/lib/berth \
 && install -d -o 65532 -g 65532 -m 0700 /var/lib/berth/admin /var/lib/berth/credentials \
      /var/lib/berth/credentials/admin /var/lib/berth/credentials/apiserver \
      /var/lib/berth/credentials/scheduler /var/lib/berth/credentials/kubelets \
      /var/lib/berth/credentials/monitoring
COPY --from=builder /opt/berth /opt/berth
USER 65532:65532
WORKDIR /var/lib/berth
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["berth", "health"]
ENTRYPOINT ["berth"]
CMD ["--help"]
