"""All that can change a sweep's result is among its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from onceproof.harness.certification.inputs import inputs_of
from onceproof.harness.environment_options import EnvironmentOptions
from onceproof.harness.request import Request


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    return [name for name in before if before[name] != after[name]]


def test_modules_of_one_name_in_several_folders_are_told_apart(tmp_path: Path) -> None:
    for folder in ("north", "south"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "rows.py").write_text("LIMIT = 1\n")
    (tmp_path / "job.py").write_text("import north.rows\nimport south.rows\n")
    (tmp_path / "job.sql").write_text("SELECT * FROM input")
    request = Request("postgres_upsert", job=str(tmp_path / "job.py"))
    before = inputs_of(EnvironmentOptions(), request)
    (tmp_path / "north" / "rows.py").write_text("LIMIT = 2\n")
    assert changed(before, inputs_of(EnvironmentOptions(), request)) == ["module north/rows.py of the job"]


def test_settings_of_spark_that_a_user_has_are_an_input_where_they_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    request, own, lean = Request("postgres_upsert"), EnvironmentOptions(lean=False), EnvironmentOptions()
    before = inputs_of(own, request), inputs_of(lean, request)
    (tmp_path / "spark-defaults.conf").write_text("spark.sql.shuffle.partitions 7\n")
    assert changed(before[0], inputs_of(own, request)) == ["settings of Spark"]
    assert changed(before[1], inputs_of(lean, request)) == []
