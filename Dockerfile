# One image for every role of docker-compose.yml: broker, Spark master and worker, driver, Postgres, Valkey, Toxiproxy.
#
# Nothing in it is a job, a sink or a probe: those come with a trial, so a change to them needs no build. The stages
# below go from what changes least to what changes most. Where package registries are behind a proxy with a certificate
# of its own, EXTRA_CA names a bundle that has it (a build secret: it is not in the image).

ARG BASE_IMAGE=debian:bookworm-slim

FROM ${BASE_IMAGE} AS system
RUN apt-get update -qq \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        ca-certificates iproute2 openjdk-17-jre-headless procps python3 python3-venv >/dev/null \
    && rm -rf /var/lib/apt/lists/*
COPY image/with-ca /usr/local/bin/

# What jobs and databases run on, as uv.lock pins it.
FROM system AS python
ARG UV_VERSION=0.13.8
RUN --mount=type=secret,id=extra_ca \
    python3 -m venv /opt/build/uv && with-ca /opt/build/uv/bin/pip install --quiet "uv==${UV_VERSION}"
WORKDIR /opt/build
COPY pyproject.toml uv.lock ./
RUN --mount=type=secret,id=extra_ca \
    UV_PROJECT_ENVIRONMENT=/opt/onceproof/venv with-ca uv/bin/uv sync \
        --quiet --frozen --no-cache --compile-bytecode --only-group image --no-install-project

# The pinned jars, verified by their hashes, and the class-data archives: what `onceproof setup` makes on a machine.
FROM python AS artifacts
RUN --mount=type=secret,id=extra_ca \
    UV_PROJECT_ENVIRONMENT=/opt/build/venv with-ca uv/bin/uv sync \
        --quiet --frozen --no-cache --no-dev --no-install-project
COPY onceproof/__init__.py onceproof/documents.py onceproof/
COPY harness/errors.py harness/java.py harness/setup_steps.py harness/spark.py harness/spark_conf.py onceproof/harness/
COPY harness/artifacts onceproof/harness/artifacts
COPY harness/runtime onceproof/harness/runtime
COPY image/prepare.py ./
RUN --mount=type=secret,id=extra_ca \
    ONCEPROOF_CACHE=/opt/onceproof/cache with-ca venv/bin/python prepare.py /opt/onceproof

# Toxiproxy is a Go program; so is its compiler, which the Go proxy has too.
FROM system AS toxiproxy
ARG TOXIPROXY_VERSION=v2.12.0
COPY image/build_toxiproxy.py /opt/build/
RUN --mount=type=secret,id=extra_ca \
    with-ca python3 /opt/build/build_toxiproxy.py "${TOXIPROXY_VERSION}" /opt/build/toxiproxy-server

FROM system
COPY --from=python /opt/onceproof/venv /opt/onceproof/venv
COPY --from=artifacts /opt/onceproof/cache /opt/onceproof/cache
COPY --from=artifacts /opt/onceproof/broker /opt/onceproof/broker
COPY --from=artifacts /opt/onceproof/installed.json /opt/onceproof/
COPY --from=toxiproxy /opt/build/toxiproxy-server /usr/local/bin/
COPY harness/environments/broker.properties harness/environments/broker-log4j2.properties \
    harness/environments/postgres.settings harness/environments/valkey.settings \
    harness/environments/server_settings.py image/role.py /opt/onceproof/
ENV PATH=/opt/onceproof/venv/bin:$PATH TZ=UTC LANG=C.UTF-8
ENTRYPOINT ["python3", "-E", "-s", "-S", "/opt/onceproof/role.py"]
CMD ["driver"]
