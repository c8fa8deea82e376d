"""What docs/architecture.md says is added by adding a file: here it is added to a copy of the packages, and works."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOT_SOURCE = shutil.ignore_patterns("__pycache__")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The packages, as they are installed, in a place of their own."""
    package = tmp_path / "onceproof"
    shutil.copytree(ROOT / "onceproof", package, ignore=NOT_SOURCE)
    for folder in ("faults", "assertions", "harness", "jobs"):
        shutil.copytree(ROOT / folder, package / folder, ignore=NOT_SOURCE)
    return package


def run(copy: Path, program: str) -> subprocess.CompletedProcess[str]:
    """Run ``program`` on the copy, with the modules of the unit tests at hand."""
    variables = {"PYTHONPATH": f"{copy.parent}:{Path(__file__).parent}"}
    words = [sys.executable, "-c", f"import onceproof\nassert onceproof.__file__.startswith({str(copy)!r})\n{program}"]
    return subprocess.run(words, capture_output=True, text=True, cwd=copy.parent, env=variables, check=False)


def printed(copy: Path, program: str) -> list[str]:
    ran = run(copy, program)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


ACTION = """
from ...requirements import Requirement
from ..declarations import ActionSpec, Parameter

def act(action, scene):
    scene.thread.keep(ACTION.seconds(action, "for"))
    return "the thread was rattled"

ACTION = ActionSpec(
    name="rattle",
    meaning="keeps the thread for a time",
    example="sink.write:before[batch=1] -> rattle(1ms)",
    act=act,
    requires=(Requirement({kind!r}),),
    arguments=(Parameter("for", "duration", "how long", required=True),),
    positional="for",
    moment=False,
)
"""

FIRES = """
from onceproof.faults import Injector, parse
from onceproof.harness.trial.fault_records import fault_record
from paper_trial import evidence, Paper
from test_injector import Journal, Probe
from onceproof.assertions import judge

plan = parse("sink.write:before[batch=1] -> rattle(1ms)")
journal = Journal()
with Injector(plan, None, journal.record) as injector:
    answer = Probe(injector).ask("sink.write", "before", batch=1)
    print(answer.decode(), journal.named("fault.confirmed")[0]["detail"])
paper = Paper()
for name, fields in journal.events:
    paper.add(name, **fields)
paper.finish(1, 1)
verdict = judge(evidence(None, paper, fault_record(plan.faults[0])))
print(verdict.outcome.value, verdict.faults[0].replay["seen"])
"""


def test_an_action_is_added_by_one_file(copy: Path) -> None:
    (copy / "faults" / "actions" / "rattle.py").write_text(ACTION.format(kind="error_seen"))
    done, judged = printed(copy, FIRES)
    assert done == "G the thread was rattled"
    assert judged == "pass swallowed by the sink: neither the driver nor a task failed of it"


REQUIREMENT = '''
from ..traces import Found

def check(struck):
    """The journal says so."""
    seen = "rattled" in str(struck.traces.of("fault.confirmed", struck.number))
    return Found("it rattles", "it rattled" if seen else None)
'''


def test_a_kind_of_evidence_is_added_by_one_file(copy: Path) -> None:
    (copy / "faults" / "actions" / "rattle.py").write_text(ACTION.format(kind="rattled"))
    (copy / "assertions" / "requirements" / "rattled.py").write_text(REQUIREMENT)
    assert printed(copy, FIRES)[-1] == "pass it rattled"


def test_a_requirement_that_nobody_can_check_is_refused_before_a_trial_starts(copy: Path) -> None:
    (copy / "faults" / "actions" / "rattle.py").write_text(ACTION.format(kind="ratled"))
    ran = run(copy, FIRES)
    assert ran.returncode == 1
    assert "ValueError: no requirement is of the kind 'ratled': there are" in ran.stderr


LACKING = [
    "requires=()",
    'requires=(Requirement("new_run", in_batch=True),)',
    'requires=(Requirement("goes_on", steps=(("sink.write", "before"),)),)',
]


@pytest.mark.parametrize("lacking", LACKING)
def test_an_action_that_need_not_leave_anything_behind_is_refused_at_import(copy: Path, lacking: str) -> None:
    text = ACTION.format(kind="goes_on").replace("requires=(Requirement('goes_on'),)", lacking)
    (copy / "faults" / "actions" / "rattle.py").write_text(text)
    ran = run(copy, "import onceproof.faults")
    assert ran.returncode == 1
    assert "TypeError: action rattle declares no requirement that holds at every step: see requires" in ran.stderr


PHASE = """
from ..declarations import Phase
from ..probes.rule import Rule, Spot
from ._selectors import BATCH, QUERY

PHASES = (
    Phase(
        name="sink.flush", edges=("before", "after"), selectors=(QUERY, BATCH), where="driver", sinks="every",
        meaning="the sink flushes", two_phase="none", source="Sink.flush", step=75,
    ),
)

RULES = (Rule("sink.flush", "after", "driver", Spot("com.acme.Sink", "flush()", "EXIT"), {"batch": "$1"}),)
"""

RESOLVES = """
from onceproof.faults import UNKNOWN, parse, phases_of, resolve
from onceproof.faults.probes import rules

resolved = resolve(parse("sink.flush:after[batch=1] -> kill(driver)"), UNKNOWN, "local[2]")
print(("sink.flush", "after") in resolved.driver_points)
text = rules(resolved.driver_points, "driver", spark_version="4.2.0", host="h", port=1, token="t")
print("com.acme.Sink" in text)
print("sink.flush" in [phase.name for phase, _ in phases_of(UNKNOWN)])
"""


def test_a_phase_of_a_jvm_is_added_by_one_file(copy: Path) -> None:
    (copy / "faults" / "phases" / "flush.py").write_text(PHASE)
    assert printed(copy, RESOLVES) == ["True", "True", "True"]


CHECKER = '''
from ..model import Anomaly

def check(truth, observed, evidence):
    """A reader never gets as many rows as there are."""
    return Anomaly(kind="suspicious", count=1) if observed.num_rows == truth.num_rows else None
'''

JUDGES = """
from paper_trial import verdict

found = verdict()
print(found.outcome.value, found.guarantee.value, [anomaly.kind for anomaly in found.anomalies])
"""


def test_a_checker_is_added_by_one_file(copy: Path) -> None:
    (copy / "assertions" / "checkers" / "suspicious.py").write_text(CHECKER)
    assert printed(copy, JUDGES) == ["fail none ['suspicious']"]


def test_a_sink_is_added_by_one_file(copy: Path) -> None:
    shutil.copy(copy / "jobs" / "sinks" / "postgres_upsert.py", copy / "jobs" / "sinks" / "mine.py")
    program = "from onceproof.harness.sinks import find_sink\nprint(find_sink('mine').name)"
    assert printed(copy, program) == ["mine.py"]
