#!/usr/bin/env bash
# See to a Java runtime that Spark can use: where there is none, install Debian's as root, else say what to install.
set -euo pipefail
cd "$(dirname "$0")/.."

found() {
    .venv/bin/python -c '
import sys
from onceproof.harness.environments.base import Unavailable
from onceproof.harness.java import find_java
try:
    find_java()
except Unavailable as missing:
    sys.exit(f"onceproof: {missing}")
'
}

reason=$(found 2>&1) && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "$reason" >&2
    exit 4
fi
echo "installing a Java runtime"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq >/dev/null || true
for package in openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless; do
    if apt-get install -y -qq --no-install-recommends "$package" >/dev/null 2>&1; then
        break
    fi
done
found >&2 || exit 4
