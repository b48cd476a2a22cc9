# The program alone: `docker run --rm -it -v store:/store secondtake demo`
# With an agent that can reach nothing else: compose.yaml.
ARG BASE=python:3.12-slim
FROM ${BASE} AS build
# Where the packages come from, for pip: the person's index, or `--no-index --find-links=DIR` (see .ci/image).
ARG PACKAGES=""
WORKDIR /src
COPY . .
RUN python -m venv /opt/secondtake \
 && /opt/secondtake/bin/python -m pip install --no-cache-dir --no-compile ${PACKAGES} --require-hashes -r requirements.lock \
 && /opt/secondtake/bin/python -m pip install --no-cache-dir --no-compile ${PACKAGES} --no-deps . \
 && /opt/secondtake/bin/python -m pip uninstall -y -q pip \
 && /opt/secondtake/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/secondtake/lib

FROM ${BASE}
COPY --from=build /opt/secondtake /opt/secondtake
RUN useradd --uid 10001 --no-create-home --home-dir /store secondtake \
 && install -d -o secondtake -g secondtake -m 0700 /store \
 && install -d -o secondtake -g secondtake -m 0755 /shared
ENV PATH=/opt/secondtake/bin:$PATH SECONDTAKE_STORE=/store PYTHONDONTWRITEBYTECODE=1
USER secondtake
WORKDIR /store
VOLUME /store
ENTRYPOINT ["secondtake"]
CMD ["--help"]
