"""Redis' serialization protocol, RESP 2 and 3 (redis.io, "Redis serialization protocol specification").

A request is one command. Between MULTI and EXEC commands are only queued, so EXEC is the one that changes something. A
connection that subscribes, or monitors, has no requests any more: what comes passes at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from ._buffers import taken
from ._declaration import Answered, Protocol, Request, Sent

SHOWN = 200
"""Characters of a command that are told."""

HARMLESS = frozenset(
    {
        "AUTH", "BITCOUNT", "CLIENT", "COMMAND", "DBSIZE", "DISCARD", "ECHO", "EXISTS", "EXPIRETIME", "GET",
        "GETRANGE", "HELLO", "HEXISTS", "HGET", "HGETALL", "HKEYS", "HLEN", "HMGET", "HSCAN", "HSTRLEN", "HVALS",
        "INFO", "KEYS", "LINDEX", "LLEN", "LPOS", "LRANGE", "MEMORY", "MGET", "MULTI", "OBJECT", "PEXPIRETIME",
        "PING", "PTTL", "QUIT", "READONLY", "RESET", "ROLE", "SCAN", "SCARD", "SELECT", "SINTER", "SISMEMBER",
        "SMEMBERS", "SMISMEMBER", "SRANDMEMBER", "SSCAN", "STRLEN", "TIME", "TTL", "TYPE", "UNWATCH", "WAIT", "WATCH",
        "XINFO", "XLEN", "XRANGE", "XREAD", "XREVRANGE", "ZCARD", "ZCOUNT", "ZRANGE", "ZRANGEBYSCORE", "ZRANK",
        "ZSCAN", "ZSCORE",
    }
)  # fmt: skip
"""Commands that only read, or set what ends with the connection."""

LISTENING = frozenset({"SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "MONITOR"})


class _Session:
    def __init__(self) -> None:
        self._from_client = bytearray()
        self._from_server = bytearray()
        self._queueing = False
        self._listens = False
        self._asked = 0

    def sent(self, data: bytes) -> Iterator[Sent]:
        self._from_client += data
        while self._from_client and not self._listens:
            command = taken(self._from_client, _end(self._from_client, 0))
            if command is None:
                return
            yield self._command(command)
        if self._listens:
            yield Sent(bytes(self._from_client))
            self._from_client.clear()

    def _command(self, data: bytes) -> Sent:
        words = _words(data)
        kind = words[0].upper() if words else ""
        if not kind:
            return Sent(data)
        if kind in LISTENING:
            self._listens = True
            return Sent(data)
        changes = kind not in HARMLESS and not (self._queueing and kind != "EXEC")
        self._queueing = kind == "MULTI" or (self._queueing and kind not in ("EXEC", "DISCARD", "RESET"))
        self._asked += 1
        return Sent(data, Request(kind, " ".join(words)[:SHOWN], changes))

    def answered(self, data: bytes) -> Iterator[Answered]:
        if self._listens:
            yield Answered(data)
            return
        self._from_server += data
        while self._from_server:
            answer = taken(self._from_server, _end(self._from_server, 0))
            if answer is None:
                return
            whole = self._asked > 0 and not answer.startswith(b">")  # RESP 3 pushes what nobody asked for
            self._asked -= whole
            yield Answered(answer, whole)


def _end(data: bytearray, start: int) -> int | None:
    """Where the value that begins at ``start`` ends; None if it is not whole."""
    line = data.find(b"\r\n", start)
    if line < 0:
        return None
    kind, rest, after = bytes(data[start : start + 1]), bytes(data[start + 1 : line]), line + 2
    if kind in (b"$", b"=", b"!"):
        after += _number(rest) + 2 if _number(rest) >= 0 else 0  # -1: null
        return after if len(data) >= after else None
    if kind in (b"*", b"~", b">", b"%", b"|"):
        return _end_of_all(data, after, max(_number(rest), 0) * (2 if kind in (b"%", b"|") else 1))
    return after


def _end_of_all(data: bytearray, start: int, values: int) -> int | None:
    for _ in range(values):
        end = _end(data, start)
        if end is None:
            return None
        start = end
    return start


def _number(text: bytes) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text[:20]!r} is no length of Redis' protocol") from None


def _words(command: bytes) -> list[str]:
    """The command and its arguments: an array of bulk strings, or a line of text."""
    if not command.startswith(b"*"):
        return command.decode("utf-8", "replace").split()
    words, start = list[str](), command.find(b"\r\n") + 2
    while start < len(command):
        line = command.find(b"\r\n", start)
        length = _number(command[start + 1 : line])
        words.append(command[line + 2 : line + 2 + length].decode("utf-8", "replace"))
        start = line + 2 + length + 2
    return words


PROTOCOL = Protocol(lambda route: _Session(), kinds=("SET", "HSET", "EXEC", "EVALSHA", "FCALL"))
