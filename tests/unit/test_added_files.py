"""What docs/architecture.md says is added by adding a file: here it is added to a copy of the packages, and works."""

from __future__ import annotations

import re
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
    assert judged == "pass swallowed by the sink or its client: neither the driver nor a task failed of it"


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


STRIKE = """
from ....faults import Action, Fault, Plan, format_action
from ..points import SweepPoint, selector
from ..trace import Step
from ._declaration import Strike

def naps(question):
    here, nap = Step("sink.write", "before"), Action("delay", arguments={"for": 0.001})
    for role, batch in question.roles.items():
        yield SweepPoint(here, format_action(nap), role, batch, Plan((Fault(selector(here, batch), (nap,)),)))

STRIKE = Strike(5, (naps,))
"""

SWEPT = """
from test_space import batch_of, space
print(space(batch_of(1)).points[0].text)
"""


def test_a_strike_is_added_by_one_file(copy: Path) -> None:
    (copy / "harness" / "certification" / "strikes" / "naps.py").write_text(STRIKE)
    assert printed(copy, SWEPT) == ["sink.write:before[batch=0] -> delay(1ms)"]


def test_a_strike_that_declares_none_is_refused(copy: Path) -> None:
    (copy / "harness" / "certification" / "strikes" / "naps.py").write_text(STRIKE.partition("STRIKE =")[0])
    ran = run(copy, SWEPT)
    assert ran.returncode == 1
    assert "TypeError: onceproof.harness.certification.strikes.naps declares no STRIKE" in ran.stderr


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


def test_a_known_failure_is_added_by_one_file(copy: Path) -> None:
    plans = copy / "faults" / "plans"
    shutil.copy(plans / "replayed_batch.plan", plans / "mine.plan")
    listed = printed(copy, "from onceproof.harness.cli import main\nmain(['plans'])")
    assert [line.split("\t")[1] for line in listed if line.startswith("mine\t")] == ["postgres_append"]


def test_a_job_is_added_by_one_file(copy: Path) -> None:
    """One file and its expectation."""
    shutil.copy(copy / "jobs" / "passthrough.py", copy / "jobs" / "positive.py")
    (copy / "jobs" / "positive.sql").write_text("SELECT * FROM input WHERE value > 0\n")
    program = (
        "from onceproof.harness.cli import main\n"
        "from onceproof.harness.jobs import find_job\n"
        "print(find_job('positive').sql.strip())\n"
        "main(['jobs'])"
    )
    found, *listed = printed(copy, program)
    assert found == "SELECT * FROM input WHERE value > 0"
    assert [line.split("\t")[0] for line in listed if "\t" in line][-9:] == sorted(
        [path.stem for path in (copy / "jobs").glob("*.sql")]
    )[-9:]


TARGET = '''
"""A SQLite file in a directory that driver and executors share."""

import sqlite3
from contextlib import closing
from pathlib import Path

from ...assertions import Open
from ._declaration import SIDES, Target

def place(location):
    return location.directory / "rows.sqlite"

def create(location):
    sqlite3.connect(place(location)).close()
    return {side: {"sqlite": str(place(location))} for side in SIDES}

def raw(location, column):
    with closing(sqlite3.connect(place(location))) as connection:
        return {"table rows": connection.execute(f"SELECT count({column}) FROM rows").fetchone()[0]}

def opened(location):
    return [Open("sqlite", path.name, "left") for path in location.directory.glob("*.sqlite-journal")]

TARGET = Target(
    create=create,
    fields=("sqlite",),
    raw=raw,
    unsettled=lambda location: ["a writer holds its lock"] if (location.directory / "lock").exists() else [],
    open=opened,
    abort=lambda location, left: (location.directory / left.name).unlink(),
    drop=lambda location: place(location).unlink(),
    errors=(sqlite3.Error,),
)
'''

SQLITE_SINK = """
import sqlite3

GUARANTEE = "exactly-once"
SERVICES = ("sqlite",)

def prepare(target):
    assert target.postgres is None
    with sqlite3.connect(target.sqlite) as connection:
        connection.execute("CREATE TABLE rows (id INTEGER)")

def write_batch(df, batch_id, target):
    with sqlite3.connect(target.sqlite) as connection:
        connection.executemany("INSERT INTO rows VALUES (?)", [(row.id,) for row in df.collect()])

def read(target):
    with sqlite3.connect(target.sqlite) as connection:
        return [{"id": id} for (id,) in connection.execute("SELECT id FROM rows WHERE id > 1")]
"""

SQLITE_TRIAL = """
import pathlib, sqlite3, subprocess, sys
from types import SimpleNamespace

from onceproof.harness.environments.base import Addresses
from onceproof.harness.jobs import find_job
from onceproof.harness.sink_process import SinkProcess
from onceproof.harness.targets import services_of
from onceproof.harness.trial import arrange, settle
from onceproof.harness.trial.journal import Journal

here = pathlib.Path.cwd()

class Environment:
    python = sys.executable
    def addresses(self, side):
        return Addresses(kafka="the source's")
    def shared_directory(self, trial):
        (here / trial).mkdir()
        return here / trial
    def own_host(self):
        return "127.0.0.1"
    def start_process(self, spec):
        return subprocess.Popen([sys.executable, *spec.arguments])
    def job_processes(self, trial):
        return []

arrange.create_topics = lambda bootstrap, topics, copies: None
with SinkProcess(here / "mine.py", Environment(), here / "log", 30.0) as process:
    sink = process.describe()
    print(sink.services, services_of(sink.services))
    resources = arrange.arrange(sink, find_job(), 3, Environment())
    target = resources.namespace("job")
    print(target["sqlite"] == str(here / target["name"] / "rows.sqlite"), target["kafka"])
    process.call("prepare", resources.namespace("harness"))
    with sqlite3.connect(target["sqlite"]) as connection:
        connection.executemany("INSERT INTO rows VALUES (?)", [(1,), (2,), (3,)])
    directory = here / target["name"]
    (directory / "lock").touch()
    plan = SimpleNamespace(faults=())
    spec = SimpleNamespace(sink=sink, job=find_job(), plan=plan, settle_deadline=0.1)
    through = SimpleNamespace(all=lambda: True)
    settler = settle.Settler(spec, Environment(), resources, process, Journal(here / "journal.jsonl"), through)
    print(settler.settle(True).unmet)
    (directory / "rows.sqlite-journal").touch()
    hanging = settler.settle(True).hanging
    print([(one.kind, one.name) for one in hanging], (directory / "rows.sqlite-journal").exists())
    print(settler.raw(), len(process.read(resources.namespace("harness"))))
    resources.targets.drop("sqlite")
    print((directory / "rows.sqlite").exists())
    (directory / "lock").unlink()
    try:
        settler.raw()
    except settle.ObservationError as error:
        print(error)
"""


def test_a_target_is_added_by_one_file(copy: Path) -> None:
    (copy / "harness" / "targets" / "sqlite.py").write_text(TARGET)
    (copy.parent / "mine.py").write_text(SQLITE_SINK)
    assert printed(copy, SQLITE_TRIAL) == [
        "('sqlite',) set()",
        "True None",
        "('a writer holds its lock',)",
        "[('sqlite', 'rows.sqlite-journal')] False",
        "{'table rows': 3} 2",
        "False",
        "no such table: rows",
    ]


def test_a_target_that_cannot_be_used_is_refused_by_its_name(copy: Path) -> None:
    (copy / "harness" / "targets" / "sqlite.py").write_text("TARGET = 'rows.sqlite'")
    ran = run(copy, "from onceproof.harness.targets import targets\ntargets()")
    assert ran.returncode == 1
    assert "TypeError: target sqlite declares 'rows.sqlite' in the place of a Target" in ran.stderr


REPORT = """
from ._declaration import Report

REPORT = Report(
    meaning="one word",
    trial=lambda stored: f"the trial: {stored.verdict.outcome.value}",
    certificate=lambda stored: f"the sweep: {stored.verdict}",
)
"""

CHECKS = """
import pathlib
from onceproof.assertions import save
from onceproof.harness.cli import execute
from onceproof.harness.reports import report_named, written
from paper_trial import evidence
from test_reports import certificate

run = pathlib.Path("run")
run.mkdir()
save(evidence(), run)
print(execute(["check", "run", "--report", "word"]))
print(written(report_named("word"), certificate()))
"""


def test_a_report_is_added_by_one_file(copy: Path) -> None:
    (copy / "harness" / "reports" / "word.py").write_text(REPORT)
    assert printed(copy, CHECKS) == ["the trial: pass", "0", "the sweep: fail"]


def test_a_report_that_declares_none_is_refused_by_its_name(copy: Path) -> None:
    (copy / "harness" / "reports" / "word.py").write_text("")
    ran = run(copy, "from onceproof.harness.reports import report_named\nreport_named('word')")
    assert ran.returncode == 1
    assert "TypeError: report word declares None in the place of a Report" in ran.stderr


LINES = """
from ._declaration import Answered, Protocol, Request, Sent

class Conversation:
    def sent(self, data):
        yield Sent(data, Request(data.split()[0].decode()))

    def answered(self, data):
        yield Answered(data, whole=True)

PROTOCOL = Protocol(lambda route: Conversation(), kinds=("PUT",))
"""

PASSES = """
import queue, socket, threading
from onceproof.faults import parse, phase_named, resolve
from onceproof.faults.protocols import PROTOCOLS
from onceproof.faults.shape import SinkShape
from onceproof.harness.proxies import proxy
from onceproof.harness.environments.base import Client

shape = SinkShape(foreach_batch=True, services=frozenset({"lines"}))
plan = resolve(parse("request:before[service=lines, kind=PUT] -> drop"), shape, "local[2]")
print(sorted(plan.proxied), "PUT" in phase_named("request").selectors[1].meaning)
client_of = lambda peer, port: Client("local", 1, "mark", "driver")
told = queue.Queue()

def receive(message):
    if "edge" in message.fields:
        told.put(message.fields)
    return b"G"

server = socket.create_server(("127.0.0.1", 0))
proxied = proxy.Proxy("lines", PROTOCOLS["lines"], [server.getsockname()], "127.0.0.1", client_of)
with proxied as one, one.attached(receive, "token"):
    client = socket.create_connection(one.addresses[0])
    service, _ = server.accept()
    client.sendall(b"PUT a")
    print(service.recv(100).decode())
    service.sendall(b"done")
    print(client.recv(100).decode(), [told.get()[name] for name in ("edge", "kind")])
"""


def test_a_protocol_is_added_by_one_file(copy: Path) -> None:
    (copy / "faults" / "protocols" / "lines.py").write_text(LINES)
    assert printed(copy, PASSES) == ["['lines'] True", "PUT a", "done ['before', 'PUT']"]


def test_each_thing_that_the_architecture_says_is_one_file_has_its_test() -> None:
    named = re.findall(r"`(\w+_by_one_file)`", (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))
    assert [f"test_{name}" for name in named if f"test_{name}" not in globals()] == []
    assert len(named) == sum(name.endswith("_by_one_file") for name in globals())
