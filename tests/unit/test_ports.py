"""Reserved ports."""

from __future__ import annotations

import random
import socket
import subprocess
import sys

import pytest
from onceproof.harness.environments.base import Unavailable
from onceproof.harness.runtime import ports


def test_a_reserved_port_lies_below_the_ephemeral_range_and_can_be_bound() -> None:
    port = ports.reserve()
    ephemeral = int(ports.EPHEMERAL.read_text().split()[0])
    assert ports.LOWEST <= port.number < ephemeral
    assert ports.bindable(port.number)
    port.release()


def test_two_harnesses_with_the_same_random_numbers_get_different_ports() -> None:
    program = (
        "import random, sys; from onceproof.harness.runtime import ports; "
        "port = ports.reserve(random.Random(7)); print(port.number, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        theirs = int(other.stdout.readline())
        ours = ports.reserve(random.Random(7))
        assert ours.number != theirs
        other.kill()
    ours.release()


def test_a_released_port_is_given_again() -> None:
    first = ports.reserve(random.Random(11))
    first.release()
    second = ports.reserve(random.Random(11))
    assert second.number == first.number
    second.release()


def test_a_port_on_which_another_program_listens_is_not_given() -> None:
    first = ports.reserve(random.Random(13))
    first.release()
    with socket.create_server((ports.LOOPBACK, first.number)):
        second = ports.reserve(random.Random(13))
        assert second.number != first.number
        second.release()


def test_a_restart_that_finds_its_port_taken_names_the_port() -> None:
    port = ports.reserve()
    with (
        socket.create_server((ports.LOOPBACK, port.number)),
        pytest.raises(Unavailable, match=rf"broker 1 .*port {port.number}"),
    ):
        port.check("broker 1")
    port.release()
