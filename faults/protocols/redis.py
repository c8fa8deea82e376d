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

FILLING = (
    "APPEND", "BITOP", "COPY", "DECR", "DECRBY", "EVAL", "EVALSHA", "FCALL", "GEOADD", "GETSET", "HINCRBY",
    "HINCRBYFLOAT", "HMSET", "HSET", "HSETNX", "INCR", "INCRBY", "INCRBYFLOAT", "LINSERT", "LPUSH", "LPUSHX", "LSET",
    "MSET", "MSETNX", "PFADD", "PSETEX", "RPUSH", "RPUSHX", "SADD", "SDIFFSTORE", "SET", "SETBIT", "SETEX", "SETNX",
    "SETRANGE", "SINTERSTORE", "SUNIONSTORE", "XADD", "ZADD", "ZINCRBY", "ZUNIONSTORE",
)  # fmt: skip
"""Commands that a server refuses when its memory is full (COMMAND INFO: denyoom), and scripts. Not EXEC: what was
queued before it would stay queued."""

FULL = "OOM"

LISTENING = frozenset({"SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "MONITOR"})


class _Session:
    def __init__(self) -> None:
        self._from_client = _Values()
        self._from_server = _Values()
        self._queueing = False
        self._listens = False
        self._asked = 0

    def sent(self, data: bytes) -> Iterator[Sent]:
        self._from_client.add(data)
        while not self._listens:
            command = self._from_client.take()
            if command is None:
                return
            yield self._command(command)
        yield Sent(self._from_client.take_all())

    def _command(self, data: bytes) -> Sent:
        words = _beginning(data)
        kind = words[0].upper() if words else ""
        if not kind:
            return Sent(data)
        if kind in LISTENING:
            self._listens = True
            return Sent(data)
        changes = kind not in HARMLESS and not (self._queueing and kind != "EXEC")
        self._queueing = kind == "MULTI" or (self._queueing and kind not in ("EXEC", "DISCARD", "RESET"))
        self._asked += 1
        refused = _refusal if kind in FILLING else None
        return Sent(data, Request(kind, " ".join(words)[:SHOWN], changes, refused))

    def answered(self, data: bytes) -> Iterator[Answered]:
        if self._listens:
            yield Answered(data)
            return
        self._from_server.add(data)
        while (answer := self._from_server.take()) is not None:
            whole = self._asked > 0 and not answer.startswith(b">")  # RESP 3 pushes what nobody asked for
            self._asked -= whole
            yield Answered(answer, whole)


def _refusal(error: str) -> bytes:
    return f"-{error} command not allowed when used memory > 'maxmemory'.\r\n".encode()


STRINGS = b"$=!"
ARRAYS = b"*~>"
MAP, ATTRIBUTES = b"%|"


class _Values:
    """What has come of one side, and how far it was read: a value of many parts is read once, however it comes."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._at = 0
        self._left = 1

    def add(self, data: bytes) -> None:
        self._data += data

    def take(self) -> bytes | None:
        """The first value; None if it is not whole. Raises ValueError for what is not of the protocol."""
        self._read_on()
        if self._left:
            return None
        value = taken(self._data, self._at)
        self._at, self._left = 0, 1
        return value

    def take_all(self) -> bytes:
        value = bytes(self._data)
        self._data.clear()
        return value

    def _read_on(self) -> None:
        """Up to the end of the first value, which is that of all its parts."""
        data, at, left = self._data, self._at, self._left
        while left:
            line = data.find(b"\r\n", at)
            if line < 0:
                break
            kind, after, more = data[at], line + 2, -1
            if kind in STRINGS:
                length = _number(data[at + 1 : line])
                after += length + 2 if length >= 0 else 0  # -1: null
                if len(data) < after:
                    break
            elif kind in ARRAYS:
                more += max(_number(data[at + 1 : line]), 0)
            elif kind == MAP:
                more += 2 * _number(data[at + 1 : line])
            elif kind == ATTRIBUTES:
                more = 2 * _number(data[at + 1 : line])  # and the value that they are of
            at, left = after, left + more
        self._at, self._left = at, left


def _number(text: bytes | bytearray) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{bytes(text[:20])!r} is no length of Redis' protocol") from None


def _beginning(command: bytes) -> list[str]:
    """The command and as many of its arguments, an array of bulk strings or a line of text, as are told."""
    if not command.startswith(b"*"):
        return command.decode("utf-8", "replace").split()
    words, told, start = list[str](), 0, command.find(b"\r\n") + 2
    while start < len(command) and told < SHOWN:
        line = command.find(b"\r\n", start)
        end = line + 2 + _number(command[start + 1 : line])
        words.append(command[line + 2 : min(end, line + 2 + 4 * SHOWN)].decode("utf-8", "replace"))
        told, start = told + len(words[-1]) + 1, end + 2
    return words


PROTOCOL = Protocol(
    lambda route: _Session(),
    kinds=("SET", "HSET", "EXEC", "EVALSHA", "FCALL"),
    in_capitals=True,
    refusable=FILLING,
    errors=(FULL,),
    refusals={"before": (FULL,)},
    sessions=True,
)
