"""A Redis database of the trial's own: one of the server's numbers, and two users who may use no other.

``url`` is that of a user who may do everything, in database 0. There a hash says which number is whose: a field is set
once (HSETNX), so two harnesses never get the same one. The job and the sink's own process have a user each, by which
their connections are told apart (CLIENT LIST), and with which they end (ACL DELUSER). ``db=`` in the rules of a user
needs Valkey 9.1. Errors are redis-py's own: :class:`redis.RedisError`.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import redis

from ...faults.protocols import Address
from ..environments.base import Side
from ..errors import ObservationError
from ._declaration import SIDES, Endpoint, Fields, Location, Target

ALLOTTED = "onceproof:databases"
"""In database 0: the trial's name by the number of its database."""

RULES = ("on", "~*", "&*", "+@all", "-@admin", "-script|flush", "-function|flush")
"""What a trial's users may do: all but what concerns the server as a whole. FLUSHALL, SWAPDB and MOVE are refused
because of the database that they name."""

TIMEOUT = 10.0
"""Seconds for a connection, and for an answer."""

KEYS = 1000
"""So many keys are looked at at once."""

OTHERS = ":*"
"""Stands for what follows the first colon in the names of keys that hold one row each."""

PLACES = 10
"""So many places are told apart: those with the most rows. Rows may lie under names that have nothing in common."""


def allot(url: str, name: str) -> int:
    """A number that no other trial has, now and until :func:`release`. Raises ObservationError if there is none."""
    with _connect(url) as client:
        count = int(str(client.config_get("databases")["databases"]))
        taken = {int(number) for number in client.hkeys(ALLOTTED)}
        for number in range(1, count):
            if number not in taken and client.hsetnx(ALLOTTED, str(number), name):
                return number
    raise ObservationError(
        f"all {count - 1} databases of Redis belong to trials, also to those that did not end in order: "
        "start the environment anew"
    )


def release(url: str, name: str) -> None:
    """End the connections of the trial's users, empty its database, and let others have the number."""
    with _connect(url) as client:
        client.acl_deluser(*(user_of(name, side) for side in SIDES))
        client.acl_save()
        for number in _numbers(client, name):
            with _connect(url, number) as own:
                own.flushdb()
            client.hdel(ALLOTTED, str(number))


def number_of(url: str, name: str) -> int:
    """The number that a trial has. Raises ObservationError if it has none."""
    with _connect(url) as client:
        numbers = _numbers(client, name)
    if not numbers:
        raise ObservationError(f"trial {name} has no database in Redis any more: somebody else has emptied the server")
    return numbers[0]


def add_user(url: str, name: str, side: Side, number: int) -> str:
    """Make the user of this side, with the one database; returns the password."""
    password = secrets.token_urlsafe(18)
    with _connect(url) as client:
        client.execute_command(  # type: ignore[no-untyped-call]
            "ACL", "SETUSER", user_of(name, side), "reset", f">{password}", *RULES, f"db={number}"
        )
        client.acl_save()
    return password


def user_of(name: str, side: Side) -> str:
    """``t0a1-job``: on each side another one."""
    return f"{name}-{side}"


def sessions(url: str, user: str) -> list[str]:
    """Connections of a user, one line each with the server's number, the name it gave itself, and its last command."""
    with _connect(url) as client:
        found = [one for one in client.client_list() if one["user"] == user]
    return [f"connection {one['id']} ({one['name'] or 'no name'}), last command {one['cmd']}" for one in found]


def count_rows(url: str, number: int, column: str) -> dict[str, int]:
    """Rows that have a ``column``, by their place: a hash with such a field is one, and so is each JSON object with it
    that is a string or an element of a list, a set, a hash or a stream, or a stream's entry with such a field."""
    found: Counter[str] = Counter()
    with _connect(url, number) as client:
        for kind, look in KINDS.items():
            for key, content in _contents(client, kind, look):
                place, rows = _rows(kind, key, content, column.encode())
                found[place] += rows
    counted = (+found).most_common()
    rest = sum(rows for _, rows in counted[PLACES:])
    return dict(sorted(counted[:PLACES])) | ({f"{len(counted) - PLACES} further keys": rest} if rest else {})


Look = Callable[[Any, bytes], object]
"""Asks a pipeline for all that a key holds."""

KINDS: Mapping[str, Look] = {
    "hash": lambda pipeline, key: pipeline.hgetall(key),
    "list": lambda pipeline, key: pipeline.lrange(key, 0, -1),
    "set": lambda pipeline, key: pipeline.smembers(key),
    "stream": lambda pipeline, key: pipeline.xrange(key),
    "string": lambda pipeline, key: pipeline.get(key),
    "zset": lambda pipeline, key: pipeline.zrange(key, 0, -1),
}


def _contents(client: redis.Redis, kind: str, look: Look) -> Iterator[tuple[bytes, Any]]:
    """Every key of a kind once, with what it holds. SCAN may give a key twice."""
    keys = sorted(set(client.scan_iter(count=KEYS, _type=kind)))
    for start in range(0, len(keys), KEYS):
        some = keys[start : start + KEYS]
        pipeline = client.pipeline(transaction=False)
        for key in some:
            look(pipeline, key)
        yield from zip(some, pipeline.execute(), strict=True)


def _rows(kind: str, key: bytes, content: Any, column: bytes) -> tuple[str, int]:
    """The place of a key's rows, and how many there are."""
    name = key.decode("utf-8", "replace")
    family = name.partition(":")[0] + OTHERS if ":" in name else name
    if kind == "string":
        return f"string {family}", _objects([content], column)
    if kind == "hash":
        return (f"hash {family}", 1) if column in content else (f"hash {name}", _objects(content.values(), column))
    if kind == "stream":
        return f"stream {name}", sum(column in fields or _objects(fields.values(), column) > 0 for _, fields in content)
    return f"{kind} {name}", _objects(content, column)


def _objects(values: Iterable[bytes | None], column: bytes) -> int:
    return sum(column.decode() in _object(value) for value in values if value)


def _object(value: bytes) -> Mapping[str, Any]:
    """The JSON object that a value is, else an empty one."""
    try:
        found = json.loads(value) if value.lstrip().startswith(b"{") else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _numbers(client: redis.Redis, name: str) -> list[int]:
    return [int(number) for number, owner in client.hgetall(ALLOTTED).items() if owner == name.encode()]


@contextmanager
def _connect(url: str, number: int = 0) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(
        _in_database(url, number), socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT
    ) as client:
        yield client


def _in_database(url: str, number: int) -> str:
    return urlsplit(url)._replace(path=f"/{number}").geturl()


def _as_user(url: str, user: str, password: str, number: int) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=f"{user}:{password}@{parts.hostname}:{parts.port}", path=f"/{number}").geturl()


def _endpoint(url: str) -> list[Address]:
    parts = urlsplit(url)
    return [(str(parts.hostname), int(str(parts.port)))]


def _moved(url: str, to: Sequence[Address]) -> str:
    parts, [(host, port)] = urlsplit(url), to
    return parts._replace(netloc=f"{parts.netloc.rpartition('@')[0]}@{host}:{port}").geturl()


def _create(location: Location) -> Fields:
    """``redis``: a URL of this side's user, with the number of the database."""
    url, name = location.address("redis"), location.name
    number = allot(url, name)
    return {
        side: {
            "redis": _as_user(
                location.address("redis", side), user_of(name, side), add_user(url, name, side, number), number
            )
        }
        for side in SIDES
    }


def _sessions(location: Location) -> list[str]:
    """Those of the job's user."""
    found = sessions(location.address("redis"), user_of(location.name, "job"))
    return [f"{session}, is still open in the database" for session in found]


def _raw(location: Location, column: str) -> dict[str, int]:
    url = location.address("redis")
    return count_rows(url, number_of(url, location.name), column)


TARGET = Target(
    create=_create,
    fields=("redis",),
    service="redis",
    raw=_raw,
    sessions=_sessions,
    drop=lambda location: release(location.address("redis"), location.name),
    endpoint=Endpoint(_endpoint, _moved),
    errors=(redis.RedisError,),
)
