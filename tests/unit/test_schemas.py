"""The schemas in docs/ are those of the documents, and a document that is broken is one clear line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from onceproof.assertions import load, save, verdict_as_json
from onceproof.harness.artifacts.errors import ArtifactError
from onceproof.harness.artifacts.lock import LOCK_FILE, read_lock
from onceproof.harness.schemas import DOCUMENTS, schema_file
from onceproof.harness.trial.document import TRIAL_DOCUMENT
from paper_trial import evidence, verdict

from onceproof.documents import DocumentError, parse_document, schema_of

DOCS = Path(__file__).resolve().parents[2] / "docs"
WORKLOAD = {"seed": 1, "partitions": 3, "batches": 5, "rows": 24, "max_offsets_per_trigger": 90}
STAGES = ("arrange", "first driver start", "run", "recovery start", "settle", "judge", "total")
VERSIONS = {"python": "3.11.2", "spark": "4.2.0", "java": "17", "kafka": "4.3.1"}

Change = Callable[[dict[str, Any]], object]


def trial() -> dict[str, Any]:
    """A trial's document with a verdict on paper."""
    return {
        **verdict_as_json(verdict()),
        "sink": {"name": "mine", "path": "/mine.py", "guarantee": "exactly-once"},
        "job": {"name": "job", "path": "/job.py", "expectation": "/job.sql"},
        "plan": "",
        "seed": 1,
        "workload": dict(WORKLOAD),
        "timings": dict.fromkeys(STAGES, 0.5),
        "environment": VERSIONS | {"docker": "29.0"},
        "configuration": {"master": "local[2,4]", "conf": {}, "jars": [], "services": {}},
        "recoveries": [],
        "warnings": [],
        "run_directory": "/runs/1",
        "determinism": None,
    }


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_schema_in_docs_is_the_one_that_follows_from_the_code(name: str) -> None:
    """Written by ``make schemas``."""
    assert json.loads((DOCS / schema_file(name)).read_text(encoding="utf-8")) == schema_of(DOCUMENTS[name])


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_schema_is_one_that_validators_take(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema_of(DOCUMENTS[name]))


def test_a_trial_is_read_back_as_it_was_printed() -> None:
    printed = json.dumps(trial())
    jsonschema.Draft202012Validator(schema_of(DOCUMENTS["trial"])).validate(trial())
    assert TRIAL_DOCUMENT.validate_json(printed).model_dump(mode="json") == trial()


WRONG_TRIALS: list[tuple[Change, str]] = [
    (lambda found: found.update(verdict="perhaps"), "field verdict is 'perhaps': input should be 'pass', 'fail' or"),
    (lambda found: found.update(anomalies={"odd": 1}), "field anomalies.odd.* is 'odd': no checker finds this kind"),
    (lambda found: found.update(more=1), "field more is 1: extra inputs are not permitted"),
    (lambda found: found.pop("claim"), "field claim is missing"),
    (lambda found: found["workload"].update(rows="24"), "field workload.rows is '24': input should be a valid integer"),
    (lambda found: found["timings"].update(run=-1), "field timings.run is -1: input should be greater than or equal"),
    (lambda found: found["environment"].update(docker=29), "field environment.docker is 29: input should be a valid"),
]


@pytest.mark.parametrize(("change", "message"), WRONG_TRIALS)
def test_a_broken_trial_names_file_field_and_value_and_its_schema_refuses_it_too(change: Change, message: str) -> None:
    found = trial()
    change(found)
    with pytest.raises(DocumentError, match=f"^trial.json: {message}") as error:
        parse_document(json.dumps(found).encode(), TRIAL_DOCUMENT, "trial.json")
    assert "\n" not in str(error.value)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema_of(DOCUMENTS["trial"])).validate(found)


WRONG_EVIDENCE: list[tuple[Change, str]] = [
    (lambda found: found["workload"].update(rows=0), "field workload is .*rows is 0, but must be a whole number"),
    (lambda found: found.update(stuck=3), "field stuck is 3: input should be a valid string"),
    (lambda found: found["readings"][1].update(rows="yes"), "field readings.1.rows is 'yes': input should be a valid"),
    (lambda found: found["settlement"].pop("unmet") and found["settlement"].update(x=1), "field settlement.x is 1"),
]


@pytest.mark.parametrize(("change", "message"), WRONG_EVIDENCE)
def test_broken_evidence_names_file_field_and_value(change: Change, message: str, tmp_path: Path) -> None:
    save(evidence(unmet=["a process still runs"]), tmp_path)
    file = tmp_path / "evidence.json"
    found = json.loads(file.read_text())
    jsonschema.Draft202012Validator(schema_of(DOCUMENTS["evidence"])).validate(found)
    change(found)
    file.write_text(json.dumps(found))
    with pytest.raises(ValueError, match=f"damaged: evidence.json: {message}"):
        load(tmp_path)


WRONG_LOCKS: list[tuple[Change, str]] = [
    (lambda found: found["groups"]["byteman"]["jars"][0].update(size="1"), "groups.byteman.jars.0.size is '1': "),
    (lambda found: found["groups"]["byteman"]["jars"][0].update(jar="byteman"), "groups.byteman.jars.0.jar is 'byt"),
    (lambda found: found.pop("repository"), "repository is missing"),
]


@pytest.mark.parametrize(("change", "message"), WRONG_LOCKS)
def test_a_broken_lock_file_names_file_field_and_value(change: Change, message: str, tmp_path: Path) -> None:
    found = json.loads(LOCK_FILE.read_text())
    jsonschema.Draft202012Validator(schema_of(DOCUMENTS["lock"])).validate(found)
    change(found)
    (tmp_path / "lock.json").write_text(json.dumps(found))
    with pytest.raises(ArtifactError, match=f"cannot be used: {tmp_path}/lock.json: field {message}"):
        read_lock(tmp_path / "lock.json")
