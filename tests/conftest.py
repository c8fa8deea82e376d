"""Tests send signals to processes that they start: these must not inherit that nohup or a shell had them ignored."""

import signal

for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)
