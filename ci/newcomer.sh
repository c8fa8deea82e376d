#!/usr/bin/env bash
# What a newcomer does, in a bare Debian container: a fresh clone of HEAD, `make setup`, one trial, and the tests of life
# and death. A container is root on an overlay file system and has no user namespaces: much that holds elsewhere is seen
# not to hold there first. Skipped, with a line that says why, where no Docker engine can be had.
#
#   BASE_IMAGE    the image of the container (debian:bookworm-slim)
#   EXTRA_CA      a bundle of certificates that the package registries need; by default the one this machine trusts
set -euo pipefail

BASE_IMAGE=${BASE_IMAGE:-debian:bookworm-slim}
PLACE=/newcomer
# Settings of this machine for package registries, where there are any. Paths in them would mean nothing in the container.
PASSED=(
    PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_TRUSTED_HOST PIP_DEFAULT_TIMEOUT PIP_RETRIES
    UV_INDEX UV_DEFAULT_INDEX UV_INDEX_URL UV_EXTRA_INDEX_URL UV_INSECURE_HOST UV_HTTP_TIMEOUT ONCEPROOF_MIRROR
    HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy
)
TESTS=(
    tests/system/test_guardian.py
    tests/system/test_life_and_death.py::test_sigkill_in_mid_trial_leaves_nothing_and_the_next_run_works
    tests/system/test_life_and_death.py::test_a_command_that_is_interrupted_ends_soon_and_leaves_nothing
    tests/system/test_local_environment.py::test_a_harness_that_ends_while_its_services_start_leaves_nothing
    tests/system/test_local_environment.py::test_a_harness_that_ends_while_the_databases_files_are_copied_leaves_nothing
)

say() { echo "newcomer: $*"; }

ca_bundle() {
    local bundle
    for bundle in "${EXTRA_CA:-}" "${SSL_CERT_FILE:-}" "${REQUESTS_CA_BUNDLE:-}" /etc/ssl/certs/ca-certificates.crt; do
        if [ -s "$bundle" ]; then
            cat "$bundle"
            return
        fi
    done
}

# As one file, because a clone needs nothing else: not this checkout's path, and no network.
bundle_of_head() { git bundle create --quiet "$1" HEAD; }

directory=""
container=""
clean_up() {
    rm -rf "$directory"
    [ -z "$container" ] || docker rm --force "$container" >/dev/null
}

outside() {
    local reason name
    cd "$(dirname "$0")/.."
    if ! reason=$(bash ci/docker.sh 2>&1); then
        say "skipped: ${reason##*$'\n'}"
        return
    fi
    directory=$(mktemp -d)
    trap clean_up EXIT
    bundle_of_head "$directory/head.bundle"
    ca_bundle >"$directory/ca.pem"
    cp ci/newcomer.sh "$directory/"
    local variables=()
    for name in "${PASSED[@]}"; do
        [ -z "${!name:-}" ] || variables+=(--env "$name")
    done
    container=$(docker create --hostname newcomer "${variables[@]}" "$BASE_IMAGE" bash "$PLACE/newcomer.sh" inside)
    docker cp --quiet "$directory/." "$container:$PLACE"
    docker start --attach "$container"
}

inside() {
    if [ -s "$PLACE/ca.pem" ]; then
        export PIP_CERT=$PLACE/ca.pem SSL_CERT_FILE=$PLACE/ca.pem REQUESTS_CA_BUNDLE=$PLACE/ca.pem
    fi
    export DEBIAN_FRONTEND=noninteractive
    step "git, make and python3" packages git make python3
    step "a clone" git -c advice.detachedHead=false clone --quiet "$PLACE/head.bundle" /root/onceproof
    cd /root/onceproof
    step "make setup" make setup
    step "a trial" .venv/bin/onceproof run --sink postgres_upsert --fault 'sink.write:after[batch=1] -> kill(driver)'
    step "life and death" .venv/bin/python -m pytest -q -n 2 --dist worksteal "${TESTS[@]}"
    step "nothing is left" nothing_left
    say "well in $SECONDS s"
}

# Runs a command, says its time, and ends everything where it fails.
step() {
    local what=$1 start=$SECONDS
    shift
    "$@" || {
        local code=$?
        say "$what: exit code $code" >&2
        exit "$code"
    }
    say "$what: $((SECONDS - start)) s"
}

packages() {
    apt-get update -qq >/dev/null
    apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1
}

nothing_left() {
    local left
    left=$(compgen -G '/tmp/onceproof-*') || return 0
    echo "left in /tmp: $left" >&2
    return 1
}

"${1:-outside}"
