"""What every environment asks of its Valkey: whether it answers, and that it be empty again."""

from __future__ import annotations

import redis

from ..runtime.waiting import NotYet
from .base import Unavailable

TIMEOUT = 2.0
"""Seconds for a connection, and for an answer."""

DEFAULT_USER = "default"


def first_user(password: str) -> str:
    """The text of a file of users that has the one that everybody is who names none."""
    return f"user {DEFAULT_USER} on >{password} ~* &* +@all\n"


def version(url: str) -> str | NotYet:
    """The server's version, if it answers."""
    try:
        with connect(url) as client:
            return str(client.info("server")["valkey_version"])
    except redis.RedisError as error:
        return NotYet(str(error))


def clear(url: str) -> None:
    """Remove every user but the first one, with their connections, and every key. Raises Unavailable."""
    try:
        with connect(url) as client:
            users = [user for user in client.acl_users() if user != DEFAULT_USER]
            if users:
                client.acl_deluser(*users)
                client.acl_save()
            client.flushall()
    except redis.RedisError as error:
        raise Unavailable(f"valkey does not answer: {error}") from error


def connect(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, decode_responses=True, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT)
