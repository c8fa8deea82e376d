"""Fetching jars into the cache: pinned, parallel, resumable, and safe for two processes at once."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from threading import Event, get_ident
from typing import IO

import pooch
import requests
from filelock import FileLock
from requests.adapters import HTTPAdapter
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from urllib3.util.retry import Retry

from .errors import MIRROR, ArtifactError, of_storage
from .lock import Jar, path_of

PARALLEL = 8
CHUNK = 1 << 14
"""Bytes read at a time."""
TIMEOUT = (10.0, 60.0)
"""Seconds to connect, and to wait for the next bytes."""
RESUMPTIONS = 20
"""How often a transfer that breaks off is taken up again before the repository counts as unreachable."""

pooch.get_logger().setLevel(logging.WARNING)

Report = Callable[[int], None]
"""Told the number of bytes that have arrived."""


class Interrupted(Exception):
    """Another jar failed, or the user pressed Ctrl-C: this transfer was given up, its ``.part`` file stays."""


class Downloads:
    """A cache directory filled from a Maven repository at ``base_url``."""

    def __init__(self, directory: Path, base_url: str, progress: bool = False) -> None:
        self.directory = directory
        self.base_url = base_url.rstrip("/")
        self.progress = progress

    def paths(self, jars: Sequence[Jar]) -> list[Path]:
        """Verified local files for these jars, in order; what is missing is fetched. Raises ArtifactError."""
        missing = [jar for jar in jars if not is_verified(self.path(jar), jar)]
        if missing:
            self._fetch(missing)
        return [self.path(jar) for jar in jars]

    def unpinned(self, coordinates: str) -> Path:
        """The file of a jar whose hash is not known beforehand: as the repository has it now. Raises ArtifactError."""
        place = path_of(coordinates)
        path, url = self.directory / place, f"{self.base_url}/{place}"
        try:
            with _locked(path), _explained(url, self.base_url):
                if not path.is_file():  # pooch moves it into place once it is whole
                    get = pooch.HTTPDownloader(timeout=TIMEOUT)
                    pooch.retrieve(url, known_hash=None, fname=path.name, path=path.parent, downloader=get)
        except OSError as error:
            raise of_storage(error, path.parent) from error
        return path

    def path(self, jar: Jar) -> Path:
        return self.directory / jar.path

    def missing(self, jars: Sequence[Jar]) -> list[Jar]:
        """Those that :meth:`paths` would have to fetch."""
        return [jar for jar in jars if not is_verified(self.path(jar), jar)]

    def _fetch(self, jars: Sequence[Jar]) -> None:
        stop = Event()
        with (
            _progress_bar(self.progress, sum(jar.size for jar in jars)) as report,
            requests.Session() as session,
            ThreadPoolExecutor(PARALLEL) as pool,
        ):
            retries = Retry(total=2, backoff_factor=0.3, status_forcelist=(429, 500, 502, 503, 504))
            for scheme in ("http://", "https://"):
                session.mount(scheme, HTTPAdapter(pool_maxsize=PARALLEL, max_retries=retries))
            fetch = Fetch(self, session, report, stop)
            futures = [pool.submit(fetch, jar) for jar in jars]
            try:
                for future in as_completed(futures):
                    future.result()
            except BaseException:
                stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise


class Fetch:
    """One round of transfers; called with a jar, leaves it verified in the cache."""

    def __init__(self, downloads: Downloads, session: requests.Session, report: Report, stop: Event) -> None:
        self.downloads = downloads
        self.session = session
        self.report = report
        self.stop = stop

    def __call__(self, jar: Jar) -> None:
        path = self.downloads.path(jar)
        try:
            with _locked(path):
                if not is_verified(path, jar):
                    self._retrieve(jar, path)
        except OSError as error:
            raise of_storage(error, path.parent) from error

    def _retrieve(self, jar: Jar, path: Path) -> None:
        """A broken ``.part`` of an earlier transfer must not condemn the repository: try once more without."""
        # What pooch was about to move into place when a process was killed; nobody else is at this jar (see _locked).
        for orphan in path.parent.glob("tmp*"):
            orphan.unlink(missing_ok=True)
        resumed = _part(path).exists()
        try:
            self._retrieve_once(jar, path)
        except ArtifactError:
            if not resumed or _part(path).exists():
                raise
            self._retrieve_once(jar, path)

    def _retrieve_once(self, jar: Jar, path: Path) -> None:
        url = f"{self.downloads.base_url}/{jar.path}"

        def into(url: str, output_file: str, _pooch: object) -> None:
            self._resume(url, _part(path), jar)
            os.replace(_part(path), output_file)

        try:
            with _explained(url, self.downloads.base_url):
                pooch.retrieve(
                    url, known_hash=f"sha256:{jar.sha256}", fname=path.name, path=path.parent, downloader=into
                )
        except ValueError as error:
            raise ArtifactError(_mismatch(url, jar, error)) from error
        write_stamp(path, jar)

    def _resume(self, url: str, part: Path, jar: Jar) -> None:
        """Append to ``part`` what is missing; a transfer that breaks off is taken up where it stopped, if it got on."""
        for left in reversed(range(RESUMPTIONS)):
            before = _size(part)
            try:
                return self._append(url, part, jar)
            except (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError):
                if not left or _size(part) == before:
                    raise
        return None

    def _append(self, url: str, part: Path, jar: Jar) -> None:
        have = _size(part)
        if have >= jar.size:
            part.unlink()
            have = 0
        # Content encoding would make the offsets of a range those of another representation.
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
        with self.session.get(url, headers=headers, stream=True, timeout=TIMEOUT) as answer:
            if answer.status_code == requests.codes.requested_range_not_satisfiable:
                part.unlink()
                raise requests.ConnectionError("the repository refused to resume the transfer")
            answer.raise_for_status()
            resuming = answer.status_code == requests.codes.partial_content
            self.report(have if resuming else 0)
            with part.open("ab" if resuming else "wb") as file:
                self._copy(answer, file, jar)
        if _size(part) < jar.size:
            raise requests.ConnectionError(f"the transfer ended after {_size(part)} of {jar.size} bytes")

    def _copy(self, answer: requests.Response, file: IO[bytes], jar: Jar) -> None:
        """An answer that goes on beyond the jar's size is cut there: its hash will not match."""
        for chunk in answer.iter_content(CHUNK):
            if self.stop.is_set():
                raise Interrupted
            file.write(chunk)
            self.report(len(chunk))
            if file.tell() > jar.size:
                return


def is_verified(path: Path, jar: Jar) -> bool:
    """Whether ``path`` is the jar. The whole file is hashed once; afterwards its size and modification time, which a
    stamp next to it records, are compared. Whatever has changed is hashed again."""
    try:
        status = path.stat()
    except OSError:
        return False
    if status.st_size != jar.size:
        return False
    with contextlib.suppress(OSError):
        if stamp_of(path).read_text() == _stamp(jar, status):
            return True
    if pooch.file_hash(str(path), alg="sha256") != jar.sha256:
        return False
    with contextlib.suppress(OSError):  # a cache that cannot be written to is hashed each time
        write_stamp(path, jar)
    return True


def write_stamp(path: Path, jar: Jar) -> None:
    """Record that ``path``, as it is now, has been hashed and is the jar."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.{get_ident()}.stamp")
    temporary.write_text(_stamp(jar, path.stat()))
    os.replace(temporary, stamp_of(path))


def stamp_of(path: Path) -> Path:
    return path.with_name(path.name + ".verified")


def _stamp(jar: Jar, status: os.stat_result) -> str:
    return f"{jar.sha256} {status.st_size} {status.st_mtime_ns}\n"


def _part(path: Path) -> Path:
    return path.with_name(path.name + ".part")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _locked(path: Path) -> FileLock:
    """Nobody else, thread or process, fetches this jar meanwhile. A lock of flock(2): it dies with its holder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(path.with_name(path.name + ".lock"))


def _mismatch(url: str, jar: Jar, error: ValueError) -> str:
    got = re.search(r"got ([0-9a-f]{64})", str(error))
    return (
        f"{url} has the wrong content: sha256 {got[1] if got else '?'} instead of {jar.sha256}; "
        f"the repository, or a proxy on the way, changes it: set {MIRROR} to one that does not"
    )


@contextlib.contextmanager
def _explained(url: str, base_url: str) -> Iterator[None]:
    """What a request's failure means for the user."""
    try:
        yield
    except requests.HTTPError as error:
        raise ArtifactError(
            f"{url} answers {error.response.status_code}: set {MIRROR} to the base URL of a Maven repository "
            "that has it"
        ) from error
    except requests.RequestException as error:
        raise ArtifactError(
            f"cannot reach {url} ({_cause(error)}): check the network, or set {MIRROR} to the base URL of a "
            f"Maven repository that can be reached (now: {base_url})"
        ) from error


def _cause(error: BaseException) -> str:
    """The innermost reason, which is what helps: the libraries wrap it three times."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    text = str(error) or type(error).__name__
    if isinstance(error, OSError) and error.errno == errno.ECONNREFUSED:
        return "connection refused"
    return " ".join(text.split())


@contextlib.contextmanager
def _progress_bar(wanted: bool, total: int) -> Iterator[Report]:
    if not wanted:
        yield lambda _count: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(file=sys.stderr)) as bar:
        task = bar.add_task("fetching jars", total=total)
        yield lambda count: bar.advance(task, count)
