"""Services of the user's own: what --proxy says, and how a trial's job and harness find them."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import cast

import pytest
from onceproof.faults import parse, parse_located, resolve
from onceproof.faults.errors import PlanError
from onceproof.faults.protocols import Address
from onceproof.faults.shape import SinkShape
from onceproof.harness.environments.base import Addresses, Environment
from onceproof.harness.errors import UsageError
from onceproof.harness.proxies.own import address_of, check_reachable, own_services
from onceproof.harness.proxies.services import DIRECT, proxies_for


def test_a_service_has_a_name_and_an_address() -> None:
    found = own_services(["api=localhost:8080", "store=[::1]:9000"])
    assert found == {"api": "localhost:8080", "store": "[::1]:9000"}
    assert [address_of(text) for text in found.values()] == [("localhost", 8080), ("::1", 9000)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("localhost:8080", "names no service"),
        ("a b=localhost:8080", "'a b' is no name"),
        ("=localhost:8080", "names no service"),
        ("postgres=localhost:5432", "a service of onceproof's own"),
        ("api=localhost", "'localhost' is no address"),
        ("api=:80", "':80' is no address"),
        ("api=localhost:80000", "'localhost:80000' is no address"),
        ("api=https://localhost:8080", "is no address"),
    ],
)
def test_anything_else_is_refused_with_what_is_wrong(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        own_services([text])


def test_a_name_stands_for_one_service() -> None:
    with pytest.raises(UsageError, match="api is given twice, as a:1 too"):
        own_services(["api=a:1", "api=a:2"])


def test_a_service_that_takes_no_connection_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        check_reachable({"api": address})
    with pytest.raises(UsageError, match=f"--proxy api={address}: nothing answers there"):
        check_reachable({"api": address})


def nobody(peer: Address, port: int) -> None:
    """Whose process a connection is: none of a job's."""


def test_the_job_finds_it_behind_a_proxy_where_the_plan_speaks_of_requests() -> None:
    own = {"api": "127.0.0.1:8080", "other": "127.0.0.1:8081"}
    nothing = Addresses(kafka="127.0.0.1:9092")
    there = SimpleNamespace(addresses=lambda side: nothing, own_host=lambda: "127.0.0.1", client=nobody)
    environment = cast("Environment", there)
    assert DIRECT.in_front_of_own(own) == own
    with proxies_for({"api"}, environment, own) as proxies:
        moved = proxies.in_front_of_own(own)
        assert moved["other"] == own["other"]
        assert moved["api"] != own["api"]
        socket.create_connection(address_of(moved["api"])).close()
        assert proxies.in_front_of(nothing) == nothing


FOREACH = SinkShape(foreach_batch=True, services=frozenset({"directory"}))
WITH_API = SinkShape(foreach_batch=True, services=frozenset({"directory"}), own_services=frozenset({"api"}))
REQUEST = "request:after[service=api, kind=POST] -> drop"


def test_a_plan_may_name_the_services_that_there_are() -> None:
    assert resolve(parse_located(REQUEST), WITH_API, "local[2]").proxied == {"api"}
    assert resolve(parse("request:before -> drop"), WITH_API, "local[2]").proxied == {"api"}
    with pytest.raises(PlanError, match="has no request"):
        resolve(parse_located(REQUEST), FOREACH, "local[2]")
    with pytest.raises(PlanError, match="does not use postgres: it uses api; --proxy NAME=HOST:PORT names one"):
        resolve(parse_located(REQUEST.replace("api", "postgres")), WITH_API, "local[2]")
