"""What the command line refuses before anything starts, in one line with exit code 2."""

from __future__ import annotations

import pytest
from onceproof.harness.cli import execute
from onceproof.harness.errors import USAGE

WRONG = [
    (("run", "--sink", "kafka_append", "--claim", "twice"), '"twice" for --claim. Choose from: "exactly-once", "at-le'),
    (("demo", "--env", "podman"), '"podman" for --env. Choose from: "local", "docker"'),
    (("setup", "--env", "podman"), '"podman" for --env'),
    (("doctor", "--env", "podman"), '"podman" for --env'),
    (("plan", "check", "at(3s) -> kill(driver)", "--env", "podman"), '"podman" for --env'),
    (("certify", "kafka_append", "--profile", "deep"), '"deep" for --profile. Choose from: "demo", "quick"'),
    (("certify", "kafka_append", "--pack", "0"), '"0" for --pack. Must be >= 1'),
    (("certify", "kafka_append", "--parallel", "0"), '"0" for --parallel. Must be >= 1'),
    (("certify", "kafka_append", "--resume", "."), "certify takes either a sink or --resume DIRECTORY"),
    (("certify",), "certify takes either a sink or --resume DIRECTORY"),
]


@pytest.mark.parametrize(("words", "message"), WRONG, ids=[" ".join(words) for words, _ in WRONG])
def test_a_wrong_choice_is_refused_with_those_that_there_are(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(words) == USAGE
    said = capsys.readouterr().err
    assert message in said
    assert said.startswith("onceproof: ")
    assert said.count("\n") == 1
