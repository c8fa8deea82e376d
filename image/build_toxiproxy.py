"""Build Toxiproxy's server with the Go toolchain that the Go module proxy serves: ``VERSION TARGET``.

Standard library only. Modules are verified by the Go checksum database, the toolchain by the hash below.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from pathlib import Path

GO = "go1.23.12"
MACHINES = {"x86_64": "amd64"}
SHA256 = {"amd64": "7bf9a01c191c452bf1fa9266a547abe0e437ff46d16adc9ec55fcc4fea24c121"}
PROXY = "https://proxy.golang.org"


def toolchain(directory: Path) -> Path:
    """The directory that holds ``bin/go``."""
    architecture = MACHINES.get(platform.machine())
    if architecture is None:
        sys.exit(f"no Go toolchain is pinned for {platform.machine()}: the image is built on x86_64 only")
    name = f"v0.0.1-{GO}.linux-{architecture}"
    archive = directory / "go.zip"
    with urllib.request.urlopen(f"{PROXY}/golang.org/toolchain/@v/{name}.zip") as answer, archive.open("wb") as file:
        shutil.copyfileobj(answer, file)
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != SHA256[architecture]:
        sys.exit(f"{name}.zip of {PROXY} has the hash {found}, not the pinned one")
    with zipfile.ZipFile(archive) as content:
        content.extractall(directory)
    home = directory / f"golang.org/toolchain@{name}"
    for program in [*(home / "bin").iterdir(), *(home / "pkg/tool").rglob("*")]:
        program.chmod(0o755)
    return home


def main(version: str, target: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        home = toolchain(directory)
        settings = {
            "GOROOT": home,
            "GOBIN": directory / "bin",
            "GOPATH": directory / "path",
            "GOCACHE": directory / "cache",
            "GOFLAGS": "-modcacherw",
            "GOTOOLCHAIN": "local",
            "GOPROXY": PROXY,
            "CGO_ENABLED": "0",
        }
        environment = os.environ | {name: str(value) for name, value in settings.items()}
        module = f"github.com/Shopify/toxiproxy/v2/cmd/server@{version}"
        subprocess.run([home / "bin/go", "install", "-ldflags=-s -w", module], env=environment, check=True)
        shutil.copy2(directory / "bin/server", target)


if __name__ == "__main__":
    main(*sys.argv[1:])
