"""Each call on its way: reported, carried out, and reported again."""

from __future__ import annotations

import errno
import json
import os
import platform
import select
import threading

from .changes import Opening, change_of
from .filter import NUMBERS
from .kernel import Stopped

TYPE_CHECKING = False  # the program starts quicker without the module typing
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .changes import Change
    from .kernel import Call, Kernel
    from .names import Names


class Files:
    """Reports what is done to the watched files, and does it. ``apart``: on another machine than the driver's."""

    def __init__(self, kernel: Kernel, names: Names, injector: Any, apart: bool = False) -> None:
        self._kernel = kernel
        self._names = names
        self._injector = injector
        self._roles = ("executor", "worker") if apart else ("driver", "python")
        self._calls = {number: name for name, number in NUMBERS[platform.machine()].items()}
        self._stopped: dict[int, Stopped] = {}

    def serve(self, listener: int) -> None:
        """Until nobody is watched any more."""
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        while True:
            events = poll.poll()[0][1]
            if events & select.POLLIN:
                call = self._kernel.receive(self._calls)
                if call is not None:
                    self._take(call)
            elif events & (select.POLLHUP | select.POLLERR):
                return

    def _take(self, call: Call) -> None:
        known = self._stopped.get(call.thread)
        if known is not None and known.renewed(call):
            return
        stopped = self._stopped[call.thread] = Stopped(call)
        try:
            change = change_of(call)
            names = self._named(change) if change is not None else None
        except (OSError, ValueError):  # the caller has ended, or may not be looked into
            change = names = None
        if change is None or names is None:
            self._kernel.go_on(stopped)
            return
        threading.Thread(target=self._pass, args=(stopped, change, names), daemon=True).start()

    def _named(self, change: Change) -> dict[str, str] | None:
        """``path`` and ``source`` as they are reported; None if neither is watched."""
        if "everywhere" in change.traits:
            there = not change.path or self._names.share_a_file_system_with(change.path)
            return {"path": self._names.for_all} if there else None
        path, source = self._names.of(change.path), self._names.of(change.source) if change.source else None
        if path is None and source is None:
            return None
        return {"path": path or change.path, **({"source": source or change.source} if change.source else {})}

    def _pass(self, stopped: Stopped, change: Change, names: Mapping[str, str]) -> None:
        """A call on its way: before it is carried out, and before its caller learns that it was."""
        try:
            report = self._report(stopped.call, change, names)
        except (OSError, ValueError):  # the caller has ended
            self._kernel.go_on(stopped)
            return
        failed = self._told(report, "before")
        if failed:
            self._kernel.returns(stopped, failed)
        elif change.perform is None:
            self._kernel.go_on(stopped)
        else:
            self._perform(stopped, change.perform, report)

    def _perform(self, stopped: Stopped, perform: Any, report: Mapping[str, Any]) -> None:
        if not self._kernel.waits(stopped):
            return  # its caller was killed meanwhile: then it has not been done
        try:
            file = perform()
        except OSError as error:
            self._kernel.returns(stopped, error.errno or errno.EIO)
            return
        try:
            failed = self._told(report, "after")
            if failed:
                self._kernel.returns(stopped, failed)
            elif isinstance(perform, Opening):
                self._kernel.gives(stopped, file, perform.on_exec)
            else:
                self._kernel.returns(stopped)
        finally:
            if file is not None:
                os.close(file)

    def _told(self, report: Mapping[str, Any], edge: str) -> int:
        """Reports it and waits; the number of the error that the call is to fail with, else 0."""
        order = self._injector.tell({**report, "edge": edge})
        if order is None:
            return 0
        name = json.loads(order)["error"]
        self._injector.tell({**report, "edge": edge, "event": "probe.raised", "error": name})
        return int(getattr(errno, name))

    def _report(self, call: Call, change: Change, names: Mapping[str, str]) -> dict[str, Any]:
        process = call.process
        with open(f"/proc/{process}/cmdline", "rb") as file:
            command = [os.fsdecode(word) for word in file.read().split(b"\0")[:-1]]
        of_jvm, of_python = self._roles
        role = of_jvm if os.path.basename(command[0] if command else "") == "java" else of_python
        place = {"role": role, "pid": process, "thread": f"files {call.thread}"}
        return {"phase": "file", **place, "op": change.op, **names, **dict.fromkeys(change.traits, True)}
