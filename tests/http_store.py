"""A service of a user's own, of HTTP, and a sink that writes to it."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HTTP_SINK = """
import json, urllib.error, urllib.request
GUARANTEE, SERVICES = "exactly-once", ()

def ask(target, method, path, rows=None):
    body = None if rows is None else json.dumps(rows, default=str).encode()
    url = f"http://{target.proxy['api']}/{target.name}/{path}"
    with urllib.request.urlopen(urllib.request.Request(url, body, method=method), timeout=30) as answer:
        return json.loads(answer.read())

def write_batch(df, batch_id, target):
    rows = df.toArrow().to_pylist()
    try:
        ask(target, METHOD, batch_id, rows)
    except (urllib.error.URLError, OSError):
        ask(target, METHOD, batch_id, rows)

def read(target):
    return ask(target, "GET", "")
"""


class Store(ThreadingHTTPServer):
    """Keeps rows by path. PUT replaces what is there, POST adds to it; GET gives all that lie below a path."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), StoreHandler)
        self.kept: dict[str, list[Any]] = {}
        self.looked_up: list[str] = []


class StoreHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _body(self) -> list[Any]:
        return list(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _answer(self, rows: list[Any]) -> None:
        body = json.dumps(rows).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @property
    def _store(self) -> Store:
        assert isinstance(self.server, Store)
        return self.server

    @property
    def _kept(self) -> dict[str, list[Any]]:
        return self._store.kept

    def do_PUT(self) -> None:
        self._kept[self.path] = self._body()
        self._answer([])

    def do_POST(self) -> None:
        self._kept.setdefault(self.path, []).extend(self._body())
        self._answer([])

    def do_GET(self) -> None:
        self._store.looked_up.append(self.path)
        self._answer([row for path, rows in self._kept.items() if path.startswith(self.path) for row in rows])

    def log_message(self, format: str, *arguments: object) -> None:
        pass
