"""The JSON that is printed and stored is what its schema in docs/ says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from documents import valid
from onceproof.assertions import Workload
from onceproof.harness.certification.certificate import CERTIFICATE, certificate_as_json
from onceproof.harness.certification.certify import certify
from onceproof.harness.certification.rejudge import rejudge
from onceproof.harness.certification.traced import REFERENCE, judged_replay
from onceproof.harness.certification.wanted import Wanted
from onceproof.harness.request import Request
from onceproof.harness.session import Session
from onceproof.harness.trial.record import TRIAL, trial_as_json
from onceproof.harness.trial.spec import TrialResult
from trials import described, long

ROOT = Path(__file__).resolve().parents[2]
SMALL = Workload(batches=3, rows=24)

FORGETFUL = """
import json
import time
from pathlib import Path

GUARANTEE = "exactly-once"
SERVICES = ("directory",)

def write_batch(df, batch_id, target):
    Path(target.directory, f"{batch_id}-{time.time_ns()}").write_text("\\n".join(df.toJSON().collect()))

def read(target):
    return [json.loads(line) for file in Path(target.directory).iterdir() for line in file.read_text().splitlines()]
"""
"""Appends, in one line of code: a fault at that line comes before the rows, one behind it duplicates them, and so does
a driver that comes back to it."""


def samples(document: str) -> list[str]:
    """The sinks that a document shows, each a whole file."""
    found = re.findall(r"(?ms)^```python\n(.*?)^```", (ROOT / document).read_text(encoding="utf-8"))
    return [text for text in found if "GUARANTEE" in text]


@pytest.mark.parametrize("document", ["README.md", long("docs/sinks.md")])
def test_a_sink_that_is_shown_can_be_copied_as_it_is(
    trial: Callable[..., TrialResult], tmp_path: Path, document: str
) -> None:
    (text,) = samples(document)
    (tmp_path / "my_sink.py").write_text(text)
    result = trial(tmp_path / "my_sink.py", "sink.write:after[batch=1] -> kill(driver)", workload=SMALL)
    assert (result.verdict.outcome, result.verdict.guarantee) == ("pass", "exactly-once"), described(result)


@pytest.mark.long
def test_a_trial_that_fails_is_as_documented(trial: Callable[..., TrialResult], tmp_path: Path) -> None:
    sink = tmp_path / "forgetful.py"
    sink.write_text(FORGETFUL)
    result = trial(sink, "sink.write:after[batch=1] -> kill(driver)", workload=SMALL)
    printed = valid(trial_as_json(result), "trial")
    assert (printed["verdict"], printed["anomalies"]) == ("fail", {"duplicated": 24})
    assert json.loads((result.directory / TRIAL).read_text()) == printed


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_certificate_and_its_trials_are_as_documented(session: Session, tmp_path: Path) -> None:
    sink = tmp_path / "forgetful.py"
    sink.write_text(FORGETFUL)
    wanted = Wanted(points="lines", batch=1)
    certificate = certify(session, Request(str(sink), workload=SMALL), tmp_path / "sweep", wanted)
    printed = valid(certificate_as_json(certificate), "certificate")
    assert json.loads((tmp_path / "sweep" / CERTIFICATE).read_text()) == printed
    reasons = [point["reason"] for point in printed["points"]]
    assert printed["coverage"] == {"points": 6, "run": 6, "landed": 6}, reasons
    verdicts = {re.findall(r"-> (\w+)", point["plan"])[0]: point["verdict"] for point in printed["points"]}
    assert verdicts == {"stop": "pass", "pause": "fail", "kill": "pass", "fail": "pass"}
    for point in [printed["reference"], *printed["points"]]:
        stored = valid(json.loads(Path(point["run_directory"], TRIAL).read_text()), "trial")
        assert {name: stored[name] for name in ("verdict", "reason", "anomalies")} == {
            name: point[name] for name in ("verdict", "reason", "anomalies")
        }
    assert rejudge(certificate, tmp_path / "sweep") == certificate
    replay = judged_replay(tmp_path / "sweep")
    assert replay is not None, "each batch of an appending sink was replayed"
    assert set(replay.anomalies) == {"duplicated"}
    with_replay = certificate.model_copy(update={"points": [*certificate.points, replay]})
    assert rejudge(with_replay, tmp_path / "sweep").points[-1] == replay
    told = tmp_path / "sweep" / REFERENCE / TRIAL
    told.write_text(told.read_text().replace('"verdict": "pass"', '"verdict": "inconclusive"', 1))
    assert certify(session, Request(str(sink), workload=SMALL), tmp_path / "sweep", wanted).reference.verdict == "pass"


@pytest.mark.parametrize("name", ["trial", "certificate"])
def test_what_is_not_in_the_schema_is_refused(name: str) -> None:
    with pytest.raises(jsonschema.ValidationError):
        valid({"verdict": "perhaps"}, name)
