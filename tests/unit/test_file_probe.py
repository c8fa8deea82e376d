"""The probe for changes of files, with real processes and the real kernel."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from onceproof.faults import Plan, parse
from onceproof.faults.injection import Injector
from onceproof.faults.probes import FILE_PROBE, PYTHON_PROBE
from onceproof.harness.runtime.waiting import wait_for

Look = Callable[[Mapping[str, Any]], None]
NONE: Mapping[str, str | None] = MappingProxyType({})


class Run:
    """A program that runs with the probe, and what was reported of it.

    Its first argument is the watched directory ``target``. ``look`` is called at each point, while the call is stopped.
    ``command`` is run instead of a Python program; of ``variables`` those that are None are not set.
    """

    def __init__(
        self,
        directory: Path,
        program: str = "",
        plan: str = "",
        look: Look = lambda point: None,
        left_out: str = "",
        command: Sequence[str] = (),
        variables: Mapping[str, str | None] = NONE,
    ) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.target = directory / "target"
        self.target.mkdir()
        (directory / "program.py").write_text(f"import os, sys\ntarget = sys.argv[1]\n{program}")

        def observe(point: Mapping[str, Any]) -> dict[str, Any]:
            look(point)
            return {}

        settings = {"roots": {"target": str(self.target)}, "left_out": [left_out] if left_out else []}
        with Injector(parse(plan) if plan else Plan(), None, self.record, observe=observe) as injector:
            injector._batches.note(str(directory), {"phase": "sink.write", "edge": "before", "batch": 0})
            environment = {
                **{name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
                "ONCEPROOF_INJECTOR": f"{injector.host}:{injector.port}",
                "ONCEPROOF_TOKEN": injector.token,
                "ONCEPROOF_DRIVER": str(directory),
                "ONCEPROOF_FILES": json.dumps(settings),
                **variables,
            }
            probe = ["-I", "-S", str(PYTHON_PROBE / FILE_PROBE)]
            self.process = subprocess.Popen(
                [sys.executable, *probe, *(command or (str(directory / "program.py"), str(self.target)))],
                env={name: value for name, value in environment.items() if value is not None},
                cwd=directory, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip
            self.output, self.errors = self.process.communicate(timeout=60)
        self.code = self.process.returncode

    def record(self, event: str, fields: Mapping[str, Any]) -> None:
        self.events.append((event, dict(fields)))

    @property
    def points(self) -> list[tuple[str, str, str]]:
        """Operation, edge and path, without ``target/``."""
        found = [fields for event, fields in self.events if event == "point"]
        return [(one["op"], one["edge"], one["path"].removeprefix("target/")) for one in found]

    @property
    def changes(self) -> list[tuple[str, str]]:
        return [(op, path) for op, edge, path in self.points if edge == "before"]

    def named(self, event: str) -> list[dict[str, Any]]:
        return [fields for name, fields in self.events if name == event]


EACH = """\
import shutil
os.mkdir(target + "/a")
with open(target + "/a/x.tmp", "w") as file:
    file.write("hello")
    file.flush()
    os.fsync(file.fileno())
os.rename(target + "/a/x.tmp", target + "/a/x")
os.chdir(target)
open("b", "a").close()
open("b", "a").close()
open("b").close()
os.link("b", "c")
os.symlink("c", "d")
os.truncate("c", 3)
shutil.rmtree("a")
os.unlink("b")
print(os.path.getsize("c"), oct(os.stat("c").st_mode & 0o777))
sys.exit(7)
"""


def test_each_change_is_reported_in_order_before_and_after_and_has_its_effect(tmp_path: Path) -> None:
    run = Run(tmp_path, f"os.umask(0o027)\n{EACH}")
    assert (run.code, run.output, run.errors) == (7, "3 0o640\n", "")
    assert run.changes == [
        ("mkdir", "a"), ("create", "a/x.tmp"), ("sync", "a/x.tmp"), ("rename", "a/x"), ("create", "b"), ("open", "b"),
        ("link", "c"), ("link", "d"), ("truncate", "c"), ("delete", "a/x"), ("delete", "a"), ("delete", "b"),
    ]  # fmt: skip
    assert [edge for _, edge, _ in run.points] == ["before", "after"] * 12
    renamed = next(fields for fields in run.named("point") if fields["op"] == "rename")
    assert renamed["source"] == "target/a/x.tmp"
    assert renamed["role"] == "python"


def test_before_it_is_not_done_and_after_it_is_while_the_caller_knows_nothing_yet(tmp_path: Path) -> None:
    seen: list[tuple[str, str, bool]] = []

    def look(point: Mapping[str, Any]) -> None:
        seen.append((point["op"], point["edge"], (tmp_path / "target" / "new").exists()))

    run = Run(tmp_path, 'open(target + "/old", "w").close()\nos.rename(target + "/old", target + "/new")', look=look)
    assert run.code == 0
    assert seen[2:] == [("rename", "before", False), ("rename", "after", True)]


FAILING = """\
try:
    os.mkdir(target + "/a")
except OSError as error:
    print(error.errno, os.path.exists(target + "/a"))
"""


@pytest.mark.parametrize(("edge", "done"), [("before", False), ("after", True)])
def test_a_change_fails_with_the_error_that_is_ordered_before_or_after_it_is_done(
    tmp_path: Path, edge: str, done: bool
) -> None:
    run = Run(tmp_path, FAILING, plan=f"file:{edge}[op=mkdir] -> fail(error=ENOSPC)")
    assert run.output == f"28 {done}\n"
    [confirmed] = run.named("fault.confirmed")
    assert confirmed["detail"] == f"mkdir of target/a, {edge} it was done, raised ENOSPC"


def test_a_change_that_the_system_refuses_is_refused_to_the_caller_and_has_no_after(tmp_path: Path) -> None:
    program = 'os.mkdir(target + "/a")\nos.mkdir(target + "/a/b")\ntry:\n    os.rmdir(target + "/a")\n'
    run = Run(tmp_path, f"{program}except OSError as error:\n    print(error.strerror)")
    assert run.output == "Directory not empty\n"
    assert run.points[-1] == ("delete", "before", "a")


NOTHING = """\
from contextlib import suppress
with suppress(OSError):
    os.mkdir(target)
with suppress(OSError):
    os.unlink(target + "/missing")
with suppress(OSError):
    os.rename(target + "/missing", target + "/new")
with suppress(OSError):
    open(target + "/missing", "r+")
with suppress(OSError):
    os.link(__file__, target)
open(target + "/made", "w").close()
"""


def test_a_call_that_cannot_change_anything_is_no_change(tmp_path: Path) -> None:
    assert Run(tmp_path, NOTHING).changes == [("create", "made")]


def test_a_file_that_is_made_has_the_flags_and_the_mode_of_its_caller(tmp_path: Path) -> None:
    program = """\
file = os.open(target + "/x", os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND, 0o604)
os.write(file, b"one")
os.set_inheritable(file, True)
again = os.open(target + "/x", os.O_RDWR)
print(os.get_inheritable(again), os.read(again, 9), oct(os.stat(target + "/x").st_mode & 0o777))
try:
    os.open(target + "/x", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
except FileExistsError:
    print("exists")
"""
    run = Run(tmp_path, f"os.umask(0)\n{program}")
    assert run.output == "False b'one' 0o604\nexists\n", run.errors


OPENAT2 = """\
import ctypes, struct
how = struct.pack("=3Q", os.O_CREAT | os.O_WRONLY, 0o600, 0)
path = (target + "/x").encode()
print(ctypes.CDLL(None).syscall(437, -100, path, how, len(how)) > 2)
"""


def test_the_newer_call_that_opens_a_file_is_seen_too(tmp_path: Path) -> None:
    run = Run(tmp_path, OPENAT2)
    assert (run.output, run.changes) == ("True\n", [("create", "x")])


def test_there_is_no_way_past_the_calls(tmp_path: Path) -> None:
    program = "import ctypes, errno\nlibc = ctypes.CDLL(None, use_errno=True)\n"
    program += "print(libc.syscall(425, 1, None), errno.errorcode[ctypes.get_errno()])"
    assert Run(tmp_path, program).output == "-1 ENOSYS\n", "of io_uring_setup(2)"


def test_what_a_program_starts_is_watched_whatever_it_is_written_in_also_when_its_parent_has_ended(
    tmp_path: Path,
) -> None:
    script = "(sleep 0.2; mkdir $0/late; mv $0/late $0/later) & mkdir $0/early"
    run = Run(tmp_path, f"import subprocess\nsubprocess.run(['sh', '-c', {script!r}, target], stdout=2)")
    wait_for(lambda: (tmp_path / "target" / "later").exists(), 10, "the orphan has made its directory")
    assert run.changes[:1] == [("mkdir", "early")]


def test_other_files_and_those_that_are_left_out_are_not_reported(tmp_path: Path) -> None:
    program = 'open(target + "/../other", "w").close()\nopen(target + "/.x.crc", "w").close()\nos.mkdir(target + "/a")'
    run = Run(tmp_path, program, left_out="target/*.crc")
    assert (tmp_path / "other").exists()
    assert (tmp_path / "target" / ".x.crc").exists()
    assert run.changes == [("mkdir", "a")]


def test_a_path_by_a_symbolic_link_is_the_same_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    run = Run(tmp_path, 'os.mkdir(target + "/../link/a")')
    assert run.changes == [("mkdir", "a")]


def test_a_process_that_is_paused_at_a_change_makes_it_once_and_only_when_it_goes_on(tmp_path: Path) -> None:
    """SIGSTOP interrupts the call: the thread makes it again when it goes on."""
    made: list[bool] = []

    def look(point: Mapping[str, Any]) -> None:
        if point["edge"] == "before":
            pid = int(point["process"].partition(":")[2])
            os.kill(pid, signal.SIGSTOP)
            wait_for(lambda: state_of(pid) == "T", 5, "it has stopped")

            def go_on() -> None:
                made.append((tmp_path / "target" / "a").exists())
                os.kill(pid, signal.SIGCONT)

            threading.Timer(0.3, go_on).start()

    run = Run(tmp_path, 'os.mkdir(target + "/a")\nprint("made")', look=look)
    assert (run.code, run.output) == (0, "made\n")
    assert made == [False]
    assert run.points == [("mkdir", "before", "a"), ("mkdir", "after", "a")]


def state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "gone"


def test_a_process_that_is_killed_at_a_change_has_not_made_it(tmp_path: Path) -> None:
    def look(point: Mapping[str, Any]) -> None:
        pid = int(point["process"].partition(":")[2])
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: state_of(pid) in ("Z", "gone"), 5, "it is dead")

    run = Run(tmp_path, 'os.mkdir(target + "/a")', look=look)
    assert run.code == -signal.SIGKILL
    assert ("mkdir", "after", "a") not in run.points
    assert not (tmp_path / "target" / "a").exists()


def test_it_ends_by_the_programs_signal_and_passes_signals_on(tmp_path: Path) -> None:
    program = """\
import signal
signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
print(os.getppid(), flush=True)
first = int(open(f"/proc/{os.getppid()}/stat").read().rpartition(")")[2].split()[1])
os.kill(first, signal.SIGTERM)
signal.pause()
"""
    assert Run(tmp_path, program).code == 3
    shutil.rmtree(tmp_path / "target")
    assert Run(tmp_path, "import signal\nos.kill(os.getpid(), signal.SIGSEGV)").code == -signal.SIGSEGV


def test_another_program_than_pythons_is_run_by_name(tmp_path: Path) -> None:
    command = ["--run", "/bin/sh", "-c", 'mkdir "$1/a"; exit 5', "sh", str(tmp_path / "target")]
    run = Run(tmp_path, command=command, variables={"ONCEPROOF_DRIVER": None, "ONCEPROOF_JOB": str(tmp_path)})
    assert (run.code, run.changes) == (5, [("mkdir", "a")])
    assert {fields["role"] for fields in run.named("point")} == {"worker"}, "it runs on another machine than the driver"


@pytest.mark.parametrize("of", ["os.getppid()", "first"])
def test_the_program_is_killed_with_what_runs_it(tmp_path: Path, of: str) -> None:
    """Its end closes this process's standard output, which is its own."""
    program = f"""
import signal
first = int(open(f"/proc/{{os.getppid()}}/stat").read().rpartition(")")[2].split()[1])
print("runs", flush=True)
os.kill({of}, signal.SIGKILL)
signal.pause()
"""
    run = Run(tmp_path, program)
    assert run.output == "runs\n"
    assert run.code in (1, -signal.SIGKILL)


def test_nothing_goes_on_once_the_injector_is_gone(tmp_path: Path) -> None:
    """The directory is the driver's mark: all processes that have it are killed, as those of lines are."""
    run: list[Run] = []

    def look(point: Mapping[str, Any]) -> None:
        raise SystemExit  # the thread that serves the probe ends without an answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading, "excepthook", lambda *_: None)
        run.append(Run(tmp_path, 'os.mkdir(target + "/a")\nprint("went on")', look=look))
    assert run[0].code == -signal.SIGKILL
    assert "went on" not in run[0].output


def test_a_system_that_can_do_it_says_so() -> None:
    check = [sys.executable, "-I", "-S", str(PYTHON_PROBE / FILE_PROBE), "--check"]
    found = subprocess.run(check, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")
