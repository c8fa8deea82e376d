"""One server for the trials of an environment, driven with plain sockets."""

from __future__ import annotations

import errno
import os
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from onceproof.faults import Injector, Rendezvous, parse
from test_injector import Acts, Journal, Probe

FIRST = "sink.commit:after[batch=1] -> kill(driver)"
BROKER = "txn.prepare:after -> kill(broker)"


@pytest.fixture
def rendezvous() -> Iterator[Rendezvous]:
    with Rendezvous() as rendezvous:
        yield rendezvous


def test_trials_one_beside_another_are_told_apart_by_token(rendezvous: Rendezvous) -> None:
    one, other, acts = Journal(), Journal(), Acts()
    with (
        Injector(parse(FIRST), acts, one.record, rendezvous=rendezvous) as first,
        Injector(parse(FIRST), acts, other.record, rendezvous=rendezvous) as second,
    ):
        assert (first.port, first.host) == (second.port, second.host)
        assert Probe(second).ask("sink.commit", "after", batch=0) == b"G"
        assert Probe(first).ask("sink.commit", "after", batch=1) == b"G"
        assert [status.reached for status in (*first.status(), *second.status())] == [True, False]
    assert (len(one.named("point")), len(other.named("point"))) == (1, 1)


def test_the_end_of_a_trial_ends_its_own_probes_only(rendezvous: Rendezvous) -> None:
    one, other, acts = Journal(), Journal(), Acts()
    with Injector(parse(FIRST), acts, other.record, rendezvous=rendezvous) as second:
        with Injector(parse("sink.write:before -> delay(1m)"), acts, one.record, rendezvous=rendezvous) as first:
            parked = Probe(first)
            parked.tell("sink.write", "before", batch=0)
            one.wait_for("fault.fired")
            late = Probe(first)
            going_on = Probe(second)
            assert going_on.ask("sink.commit", "after", batch=0) == b"G"
        assert parked.answer() == b""
        assert late.ask("sink.write", "before", batch=1) == b"", "nothing goes on without its trial"
        assert going_on.ask("sink.commit", "after", batch=0) == b"G"
    assert other.named("probe.refused") == [], "a trial that has ended is known"


def test_a_report_of_nobody_is_refused_and_recorded_by_each_trial(rendezvous: Rendezvous) -> None:
    one, other, acts = Journal(), Journal(), Acts()
    with (
        Injector(parse(FIRST), acts, one.record, rendezvous=rendezvous) as first,
        Injector(parse(FIRST), acts, other.record, rendezvous=rendezvous),
    ):
        assert Probe(first, token="guess").ask("sink.commit", "after", batch=1) == b""
        one.wait_for("probe.refused")
        other.wait_for("probe.refused")


def test_what_brokers_report_is_for_the_trial_that_has_them(rendezvous: Rendezvous) -> None:
    journal, acts = Journal(), Acts()
    with Injector(parse(BROKER), acts, journal.record, rendezvous=rendezvous) as injector:
        broker = Probe(injector, token=rendezvous.brokers_token)
        assert broker.ask("txn.prepare", "after", role="broker") == b"G", "nobody has the brokers: they go on"
        assert journal.named("point") == []
        with rendezvous.brokers_of(injector):
            assert broker.ask("txn.prepare", "after", role="broker") == b"G"
        assert len(journal.named("point")) == 1
        assert acts.done == [("kill", "broker")]
        again = Probe(injector, token=rendezvous.brokers_token)
        assert again.ask("txn.prepare", "after", role="broker") == b"G"
        assert len(journal.named("point")) == 1


class Full(socket.socket):
    """A server that cannot accept for a time. ``refusals``: the errors of the next calls."""

    refusals: list[int]

    def accept(self) -> Any:
        if self.refusals:
            number = self.refusals.pop(0)
            raise OSError(number, os.strerror(number))
        return super().accept()


def serve_with(refusals: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """The next server cannot accept for a time."""
    create = socket.create_server

    def create_full(address: tuple[str, int]) -> Full:
        full = Full(fileno=create(address).detach())
        full.refusals = refusals
        return full

    monkeypatch.setattr(socket, "create_server", create_full)


def accepting() -> set[threading.Thread]:
    return {one for one in threading.enumerate() if one.name == "rendezvous"}


def test_a_server_without_descriptors_says_so_once_and_accepts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    journal, refusals = Journal(), list[int]()
    serve_with(refusals, monkeypatch)
    with (
        Rendezvous() as rendezvous,
        Injector(parse(FIRST), Acts(), journal.record, rendezvous=rendezvous) as injector,
    ):
        refusals += [errno.EMFILE, errno.ENFILE]
        assert Probe(injector).ask("sink.commit", "after", batch=0) == b"G"  # accepted by the call before
        assert Probe(injector).ask("sink.commit", "after", batch=1) == b"G"
        assert refusals == []
        assert injector.errors == ["no probe could connect: [Errno 24] Too many open files"]
    assert journal.named("injector.error") == [{"error": injector.errors[0]}]


def test_a_probe_that_dies_before_it_is_accepted_is_normal(monkeypatch: pytest.MonkeyPatch) -> None:
    journal, refusals = Journal(), list[int]()
    serve_with(refusals, monkeypatch)
    with (
        Rendezvous() as rendezvous,
        Injector(parse(FIRST), Acts(), journal.record, rendezvous=rendezvous) as injector,
    ):
        refusals.append(errno.ECONNABORTED)
        for batch in (0, 1):
            assert Probe(injector).ask("sink.commit", "after", batch=batch) == b"G"
        assert (refusals, injector.errors) == ([], [])


def test_a_server_that_is_closed_accepts_no_more_and_complains_to_nobody() -> None:
    journal, before = Journal(), accepting()
    with Injector(parse(FIRST), Acts(), journal.record) as injector:
        (thread,) = accepting() - before
    thread.join(5)
    assert not thread.is_alive()
    assert injector.errors == []
