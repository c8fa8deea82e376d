"""Warm environments for a command that runs sinks of several releases of Spark."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path

from onceproof.harness.cli.sessions import told
from onceproof.harness.environment_options import EnvironmentOptions, make_ready
from onceproof.harness.releases import with_release
from onceproof.harness.request import with_brokers
from onceproof.harness.session import Session


class Sessions:
    """One for each release, and number of brokers, that sinks want; asked for by several threads."""

    def __init__(self, stack: ExitStack, options: EnvironmentOptions) -> None:
        self._stack = stack
        self._options = options
        self._open: dict[EnvironmentOptions, Session] = {}
        self._one_at_a_time = threading.Lock()

    def of(self, sink: Path) -> Session:
        with self._one_at_a_time:
            options = with_brokers(with_release(self._options, sink, told), "", sink)
            if options not in self._open:
                make_ready(options, told)
                self._open[options] = self._stack.enter_context(Session(options))
            return self._open[options]
