#!/usr/bin/env bash
# Make .venv with every dependency as uv.lock has it. Does nothing if that has been done for these very files.
set -euo pipefail
cd "$(dirname "$0")/.."

UV_VERSION=0.13.8
OLDEST=3.11

fail() {
    echo "onceproof: $*" >&2
    exit 1
}

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
    local name
    for name in python3 python3.13 python3.12 python3.11; do
        if command -v "$name" >/dev/null && new_enough "$name"; then
            command -v "$name"
            return
        fi
    done
    return 1
}

# Debian's python3 comes without venv and ensurepip.
ensure_venv_module() {
    "$1" -c 'import ensurepip, venv' 2>/dev/null && return
    local package
    package="python$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv"
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "installing $package"
        { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package"; } \
            >/dev/null || fail "apt-get could not install $package: install it by hand"
    else
        fail "$1 has no venv module: install it (Debian, Ubuntu: apt-get install $package)"
    fi
}

make_venv() {
    local python
    python=$(find_python) || fail "no Python $OLDEST or newer found: install python3"
    ensure_venv_module "$python"
    "$python" -m venv --clear .venv || fail "$python could not make .venv"
}

# The scripts of a virtual environment name its path: one that was copied or moved is made anew.
usable() {
    [ -x .venv/bin/python ] && new_enough .venv/bin/python && grep -qs "$(pwd -P)/.venv" .venv/bin/activate
}

ensure_uv() {
    [ "$(.venv/bin/uv --version 2>/dev/null | cut -d' ' -f2)" = "$UV_VERSION" ] && return
    .venv/bin/python -m pip --version >/dev/null 2>&1 || .venv/bin/python -m ensurepip >/dev/null
    .venv/bin/python -m pip install --quiet --disable-pip-version-check "uv==$UV_VERSION" ||
        fail "uv $UV_VERSION could not be installed from the package index: check the network or pip's configuration"
}

key=$(cat uv.lock pyproject.toml setup.py ci/venv.sh | cksum)
if usable && [ "$(cat .venv/.synced 2>/dev/null)" = "$key" ]; then
    exit 0
fi
usable || make_venv
ensure_uv
# --inexact: uv and pip themselves are not in the lock file and stay. Compiled modules save each of the many Python
# processes of a trial more than half a second.
env -u VIRTUAL_ENV .venv/bin/uv sync --quiet --frozen --inexact --compile-bytecode --python .venv/bin/python ||
    fail "the dependencies in uv.lock could not be installed (see above)"
printf '%s' "$key" >.venv/.synced
