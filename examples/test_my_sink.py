"""A sink through chosen faults, one test for each: run with ``pytest examples/test_my_sink.py``."""

import pytest

STEPS = ["batch.offsets:after", "sink.write:before", "sink.write:after", "batch.commit:before", "batch.commit:after"]


@pytest.mark.onceproof(sink="my_sink.py", faults=[f"{step}[batch=1] -> kill(driver)" for step in STEPS])
def test_is_exactly_once(onceproof_trial):
    assert onceproof_trial.passed, onceproof_trial.explain()
