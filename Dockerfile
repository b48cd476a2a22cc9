# The program alone: `docker run --rm -it -v store:/store secondtake demo`
FROM python:3.12-slim AS build
WORKDIR /src
COPY . .
RUN python -m venv /opt/secondtake \
 && /opt/secondtake/bin/python -m pip install --no-cache-dir --require-hashes -r requirements.lock \
 && /opt/secondtake/bin/python -m pip install --no-cache-dir --no-deps .

FROM python:3.12-slim
COPY --from=build /opt/secondtake /opt/secondtake
RUN useradd --uid 10001 --no-create-home --home-dir /store secondtake \
 && install -d -o secondtake -g secondtake -m 0700 /store
ENV PATH=/opt/secondtake/bin:$PATH SECONDTAKE_STORE=/store PYTHONDONTWRITEBYTECODE=1
USER secondtake
WORKDIR /store
VOLUME /store
ENTRYPOINT ["secondtake"]
CMD ["--help"]
