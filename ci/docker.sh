#!/usr/bin/env bash
# Make a machine ready for the Docker environment: an engine that runs, Compose v2, and the base image.
#
# What is there is used and left as it is. On a Debian-like system as root, what is missing is installed from package
# registries only; elsewhere one line says what to install. Idempotent; says what it did.
#
#   BASE_IMAGE    the image that the Dockerfile builds on (debian:bookworm-slim); where no registry for images can be
#                 reached, debootstrap makes a stand-in for it from Debian's packages
set -euo pipefail

BASE_IMAGE=${BASE_IMAGE:-debian:bookworm-slim}
PULL_SECONDS=60
ENGINE_SECONDS=60
ENGINE_LOG=/var/log/dockerd.log

# Debian 13's package of Compose 2, for releases of Debian that have only version 1. It needs nothing but libc 2.34.
COMPOSE_VERSION=2.26.1-4
COMPOSE_MIRROR=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
declare -A COMPOSE_SHA256=(
    [amd64]=47681197cb2b1ab88206b42a1a92fc75f50d9530a6322d03494a473eed0408ea
    [arm64]=bbafaa666f3e7fa00ad36f2a8bab889f1c791ca8743d674e7267a3d07203869c
)

say() { echo "docker: $*"; }

fail() {
    echo "onceproof: $*" >&2
    exit 4
}

can_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

updated=""
add_packages() {
    [ -n "$updated" ] || apt-get update -qq >/dev/null 2>&1 || true
    updated=yes
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1
}

engine_answers() { docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }

ensure_engine() {
    engine_answers && return
    if ! command -v dockerd >/dev/null; then
        can_install || fail "no Docker engine: install one (Debian: apt-get install docker.io), or start it"
        say "installing the engine (docker.io)"
        add_packages docker.io || fail "apt-get could not install docker.io: install a Docker engine by hand"
    fi
    [ "$(id -u)" = 0 ] || fail "the Docker engine does not run, or $(id -un) may not use it: start it, join the group docker"
    start_engine
}

# A package's own service where there is an init system; otherwise the daemon by itself.
start_engine() {
    if [ -d /run/systemd/system ]; then
        systemctl start docker
    else
        say "starting dockerd"
        rm -f /var/run/docker.pid
        setsid nohup dockerd >"$ENGINE_LOG" 2>&1 </dev/null &
    fi
    for _ in $(seq $((ENGINE_SECONDS * 5))); do
        engine_answers && return
        sleep 0.2
    done
    fail "dockerd did not answer within $ENGINE_SECONDS s: $(tail -n 3 "$ENGINE_LOG" 2>/dev/null | tr '\n' ' ')"
}

compose_version() { docker compose version --short 2>/dev/null | sed 's/^v//'; }

ensure_compose() {
    case "$(compose_version)" in [2-9]*) return ;; esac
    can_install || fail "no Compose v2 ('docker compose'): install the package docker-compose-plugin or docker-compose-v2"
    for package in docker-compose-plugin docker-compose-v2; do
        add_packages "$package" || continue
        say "installed $package"
        return
    done
    compose_of_debian
    case "$(compose_version)" in [2-9]*) ;; *) fail "Compose v2 was installed but 'docker compose' does not find it" ;; esac
}

compose_of_debian() {
    local architecture package=docker-compose_$COMPOSE_VERSION directory
    architecture=$(dpkg --print-architecture)
    directory=$(mktemp -d)
    [ -n "${COMPOSE_SHA256[$architecture]:-}" ] || fail "no Compose v2 for $architecture: install docker-compose-plugin"
    say "installing Compose ${COMPOSE_VERSION%-*} from Debian 13"
    command -v curl >/dev/null || add_packages curl ca-certificates || fail "apt-get could not install curl"
    curl -fsSL --retry 3 -o "$directory/compose.deb" \
        "$COMPOSE_MIRROR/pool/main/d/docker-compose/${package}_$architecture.deb" ||
        fail "Compose could not be fetched from $COMPOSE_MIRROR: install docker-compose-plugin by hand"
    echo "${COMPOSE_SHA256[$architecture]}  $directory/compose.deb" | sha256sum --quiet --check ||
        fail "the package of Compose from $COMPOSE_MIRROR is not the pinned one"
    dpkg-deb --extract "$directory/compose.deb" "$directory/files"
    mkdir -p /usr/local/lib/docker/cli-plugins
    install -m 755 "$(find "$directory/files" -path '*/cli-plugins/docker-compose' -type f | head -n 1)" /usr/local/lib/docker/cli-plugins/
    rm -rf "$directory"
}

ensure_base_image() {
    docker image inspect "$BASE_IMAGE" >/dev/null 2>&1 && return
    if timeout "$PULL_SECONDS" docker pull --quiet "$BASE_IMAGE" >/dev/null 2>&1; then
        say "pulled $BASE_IMAGE"
        return
    fi
    [ "$BASE_IMAGE" = debian:bookworm-slim ] || fail "the base image $BASE_IMAGE cannot be pulled"
    can_install || fail "$BASE_IMAGE cannot be pulled: run 'docker pull $BASE_IMAGE' where a registry can be reached"
    say "no registry for images can be reached: making a stand-in for $BASE_IMAGE with debootstrap"
    command -v debootstrap >/dev/null || add_packages debootstrap || fail "apt-get could not install debootstrap"
    local directory
    directory=$(mktemp -d)
    debootstrap --variant=minbase bookworm "$directory" "$COMPOSE_MIRROR" >"$directory.log" 2>&1 ||
        fail "debootstrap failed: $(tail -n 1 "$directory.log")"
    tar -C "$directory" -c . | docker import --change 'CMD ["bash"]' - "$BASE_IMAGE" >/dev/null
    rm -rf "$directory" "$directory.log"
}

ensure_engine
ensure_compose
ensure_base_image
say "ready: engine $(docker version --format '{{.Server.Version}}'), compose $(compose_version), base image $BASE_IMAGE"
