"""Jars: fetched once, verified always, one clear line when they cannot be had. The repository is local."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from onceproof.harness.artifacts import ArtifactError, Artifacts, Jar, default_cache, download
from onceproof.harness.artifacts.download import Downloads, stamp_of
from onceproof.harness.artifacts.errors import of_storage
from onceproof.harness.artifacts.lock import shipped_lock
from onceproof.harness.environments.base import Unavailable

CONTENT = bytes(range(256)) * 2000
BOOTSTRAP = "org.example:first:1.0"


def jar(coordinates: str = BOOTSTRAP, content: bytes = CONTENT) -> Jar:
    return Jar(jar=coordinates, sha256=hashlib.sha256(content).hexdigest(), size=len(content))


@dataclass
class Repository:
    """``requests`` are the paths and ranges that were asked for; ``break_after`` cuts each answer off after so many
    bytes; without ``ranges`` a resumption is answered with the whole file."""

    files: dict[str, bytes] = field(default_factory=dict)
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    break_after: int | None = None
    ranges: bool = True
    url: str = ""

    def put(self, jar: Jar, content: bytes = CONTENT) -> None:
        self.files[f"/{jar.path}"] = content


@pytest.fixture
def repository() -> Iterator[Repository]:
    served = Repository()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers.get("Range")
            served.requests.append((self.path, asked))
            content = served.files.get(self.path)
            if content is None:
                self.send_error(404)
                return
            start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and served.ranges else 0
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            end = len(content) if served.break_after is None else start + served.break_after
            self.wfile.write(content[start:end])

        def log_message(self, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    served.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield served
    server.shutdown()
    thread.join()
    server.server_close()


def downloads(repository: Repository, directory: Path) -> Downloads:
    return Downloads(directory, repository.url)


def test_a_jar_is_fetched_once_and_then_taken_from_the_cache(repository: Repository, tmp_path: Path) -> None:
    wanted = [jar(), jar("org.example:second:2.0", b"two")]
    repository.put(wanted[0])
    repository.put(wanted[1], b"two")
    paths = downloads(repository, tmp_path).paths(wanted)
    assert [path.read_bytes() for path in paths] == [CONTENT, b"two"]
    assert downloads(repository, tmp_path).paths(wanted) == paths
    assert len(repository.requests) == 2


def test_a_verified_jar_is_not_hashed_again(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.put(jar())
    downloads(repository, tmp_path).paths([jar()])
    monkeypatch.setattr(download.pooch, "file_hash", lambda *_, **__: pytest.fail("hashed again"))
    downloads(repository, tmp_path).paths([jar()])


def test_a_jar_that_was_touched_is_hashed_again_and_kept(repository: Repository, tmp_path: Path) -> None:
    repository.put(jar())
    (path,) = downloads(repository, tmp_path).paths([jar()])
    os.utime(path, ns=(1, 1))
    downloads(repository, tmp_path).paths([jar()])
    assert len(repository.requests) == 1
    assert stamp_of(path).read_text().split()[2] == "1"


@pytest.mark.parametrize("change", [b"\0", b""], ids=["same size", "cut off"])
def test_a_jar_that_changed_in_the_cache_is_fetched_again(
    repository: Repository, tmp_path: Path, change: bytes
) -> None:
    repository.put(jar())
    (path,) = downloads(repository, tmp_path).paths([jar()])
    path.write_bytes(change * len(CONTENT))
    os.utime(path, ns=(1, 1))
    assert downloads(repository, tmp_path).missing([jar()]) == [jar()]
    assert downloads(repository, tmp_path).paths([jar()])[0].read_bytes() == CONTENT


def test_a_transfer_that_breaks_off_is_taken_up_where_it_stopped(repository: Repository, tmp_path: Path) -> None:
    repository.put(jar())
    repository.break_after = len(CONTENT) // 3 + 1
    (path,) = downloads(repository, tmp_path).paths([jar()])
    assert path.read_bytes() == CONTENT
    starts = [asked for _, asked in repository.requests]
    assert starts[0] is None
    assert len(starts) > 2
    assert all(asked for asked in starts[1:])


def test_an_interrupted_process_is_resumed_by_the_next(repository: Repository, tmp_path: Path) -> None:
    repository.put(jar())
    part = tmp_path / f"{jar().path}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(CONTENT[:1000])
    (path,) = downloads(repository, tmp_path).paths([jar()])
    assert path.read_bytes() == CONTENT
    assert repository.requests == [(f"/{jar().path}", "bytes=1000-")]
    assert not part.exists()


def test_a_server_that_cannot_resume_sends_the_whole_jar(repository: Repository, tmp_path: Path) -> None:
    repository.put(jar())
    repository.ranges = False
    part = tmp_path / f"{jar().path}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x" * 1000)
    assert downloads(repository, tmp_path).paths([jar()])[0].read_bytes() == CONTENT


@pytest.mark.parametrize("garbage", [1000, len(CONTENT), len(CONTENT) + 1])
def test_a_spoilt_part_of_an_earlier_transfer_does_not_condemn_the_repository(
    repository: Repository, tmp_path: Path, garbage: int
) -> None:
    repository.put(jar())
    part = tmp_path / f"{jar().path}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x" * garbage)
    assert downloads(repository, tmp_path).paths([jar()])[0].read_bytes() == CONTENT


@pytest.mark.parametrize("wrong", [CONTENT[::-1], CONTENT + b"more"], ids=["same size", "longer"])
def test_a_wrong_hash_names_the_file_both_hashes_and_the_fix(
    repository: Repository, tmp_path: Path, wrong: bytes
) -> None:
    repository.put(jar(), wrong)
    with pytest.raises(ArtifactError, match="wrong content") as caught:
        downloads(repository, tmp_path).paths([jar()])
    message = str(caught.value)
    assert "\n" not in message
    assert f"{repository.url}/{jar().path}" in message
    assert len(re.findall(r"[0-9a-f]{64}", message)) == 2
    assert jar().sha256 in message
    assert "ONCEPROOF_MIRROR" in message
    assert not list(tmp_path.rglob("*.jar"))


def test_an_unreachable_mirror_is_one_line_with_its_url_and_the_variable(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError) as caught:
        Downloads(tmp_path, "http://127.0.0.1:9/maven2").paths([jar()])
    message = str(caught.value)
    assert isinstance(caught.value, Unavailable)
    assert "\n" not in message
    assert "http://127.0.0.1:9/maven2/org/example/first/1.0/first-1.0.jar (connection refused)" in message
    assert "ONCEPROOF_MIRROR" in message


@pytest.mark.parametrize("mirror", ["no-such-scheme", "ftp://mirror.example/maven2", "http://"])
def test_a_mirror_that_is_no_url_is_one_line(tmp_path: Path, mirror: str) -> None:
    with pytest.raises(ArtifactError, match="ONCEPROOF_MIRROR") as caught:
        Downloads(tmp_path, mirror).paths([jar()])
    assert "\n" not in str(caught.value)


def test_a_jar_that_the_mirror_lacks_is_one_line(repository: Repository, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"first-1\.0\.jar answers 404: set ONCEPROOF_MIRROR"):
        downloads(repository, tmp_path).paths([jar()])


def test_a_jar_without_a_known_hash_is_taken_as_the_repository_has_it_and_kept(
    repository: Repository, tmp_path: Path
) -> None:
    with pytest.raises(ArtifactError, match=r"first-1\.0\.jar answers 404: set ONCEPROOF_MIRROR"):
        downloads(repository, tmp_path).unpinned(BOOTSTRAP)
    repository.put(jar())
    paths = {downloads(repository, tmp_path).unpinned(BOOTSTRAP) for _ in range(2)}
    assert [path.read_bytes() for path in paths] == [CONTENT]
    assert len(repository.requests) == 2, "one that failed, and one transfer"


def test_a_jar_of_the_lock_file_has_the_hash_that_it_has_there(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONCEPROOF_MIRROR", repository.url)
    (pinned,) = shipped_lock().groups["byteman"].jars
    repository.put(pinned, bytes(pinned.size))
    with pytest.raises(ArtifactError, match="has the wrong content"):
        Artifacts.open(tmp_path).by_coordinates(pinned.coordinates)
    repository.put(jar())
    assert Artifacts.open(tmp_path).by_coordinates(BOOTSTRAP).read_bytes() == CONTENT


def test_a_full_disk_names_the_place_and_what_is_free(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    repository.put(jar())
    monkeypatch.setattr(download.Fetch, "_copy", full)
    with pytest.raises(
        ArtifactError, match=r"the disk is full: .* has \d+ bytes free; make room, or point ONCEPROOF_CACHE"
    ):
        downloads(repository, tmp_path).paths([jar()])


def test_a_cache_that_cannot_be_written_to_names_the_variable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ArtifactError, match="ONCEPROOF_CACHE"):
        Downloads(tmp_path / "file", "http://127.0.0.1:9").paths([jar()])
    assert "writable" in str(of_storage(PermissionError(errno.EACCES, "Permission denied"), tmp_path))


def test_fetching_at_the_same_time_fetches_once_and_corrupts_nothing(repository: Repository, tmp_path: Path) -> None:
    repository.put(jar())
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: downloads(repository, tmp_path).paths([jar()])[0], range(8)))
    assert {path.read_bytes() for path in found} == {CONTENT}
    assert len(repository.requests) == 1


def test_the_mirror_variable_replaces_the_repository(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONCEPROOF_MIRROR", repository.url + "/")
    with pytest.raises(ArtifactError, match=re.escape(repository.url) + r"/org/jboss/byteman/.*404"):
        Artifacts.open(tmp_path).byteman()


def test_the_cache_is_chosen_by_the_variables(tmp_path: Path) -> None:
    assert default_cache({"ONCEPROOF_CACHE": "/a", "XDG_CACHE_HOME": "/b"}) == Path("/a")
    assert default_cache({"XDG_CACHE_HOME": "/b"}) == Path("/b/onceproof")
    assert default_cache({}) == Path.home() / ".cache" / "onceproof"


def test_an_unknown_spark_names_the_supported_ones_and_the_fix(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError) as caught:
        Artifacts.open(tmp_path).connector_jars("3.5.4")
    assert str(caught.value) == (
        "pyspark 3.5.4 is not supported (supported: 4.2.0, 4.1.3, 4.0.0): "
        "pip install 'pyspark==4.2.0' in the job's interpreter"
    )


def test_the_lock_pins_every_jar_of_every_group() -> None:
    lock = shipped_lock()
    assert set(lock.groups) == {"broker", "byteman", "spark-4.2.0", "spark-4.1.3", "spark-4.0.0", "delta", "jdbc"}
    for each in (jar for group in lock.groups.values() for jar in group.jars):
        assert re.fullmatch(r"[0-9a-f]{64}", each.sha256)
        assert each.size > 0
        assert len(each.coordinates.split(":")) == 3
    for version in lock.spark_versions():
        names = [each.path.name for each in lock.connector(version)]
        assert names[:2] == [
            f"spark-sql-kafka-0-10_2.13-{version}.jar",
            "spark-token-provider-kafka-0-10_2.13-4.0.0.jar",
        ]
