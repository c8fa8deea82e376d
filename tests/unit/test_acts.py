"""Which statements may change something outside of their process is told from their text."""

from __future__ import annotations

from pathlib import Path

import pytest
from onceproof.faults.acts import acts_at

IMPORTS = """
import contextlib, json, psycopg, redis
from functools import partial
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, struct, to_json
from team import writer
from team.writer import publish as published
import team.writer
def own(target): ...
"""

HARMLESS = (
    "spark = SparkSession.active()",
    "speculation = str(spark.sparkContext.getConf().get('spark.speculation', 'false')).strip().lower()",
    "spark.dataSource.register(Topic)",
    "return df.select(col('id'), to_json(struct('*')).alias('value'))",
    "return stream.foreachBatch(partial(own, target=target))",
    "return stream.format('topic').options(**json.loads(target.more))",
    "own(target)",
    "published(target)",
    "writer.publish(target)",
    "team.writer.publish(target)",
    "later = lambda: redis.Redis().flushdb()",
    "known = {**target.columns}",
    "rows = df.filter(col('id') > 2)",
    "if len(known) > 2:\n    redis.Redis().flushdb()",
    "with contextlib.suppress(KeyError):\n    connection.commit()",
)
ACTING = (
    "connection.execute(DELETE)",
    "spark.sql('DROP TABLE events')",
    "df.write.save(target.directory)",
    "open(target.directory, 'w')",
    "redis.Redis().flushdb()",
    "publish(target)",
    "client = psycopg.connect(target.postgres)",
    "with psycopg.connect(target.postgres) as connection:\n    ...",
    "with own(target) as connection:\n    ...",
    "path.replace(final)",
    "list(map(connection.execute, STATEMENTS))",
    "with contextlib.ExitStack() as stack:\n    ...",
    "if connection.execute(CLAIM).rowcount:\n    ...",
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "team").mkdir()
    (tmp_path / "team" / "writer.py").write_text("def publish(target): ...\n")
    return tmp_path


def acts(root: Path, statement: str) -> bool:
    sink = root / "sink.py"
    body = "".join(f"    {line}\n" for line in statement.splitlines())
    sink.write_text(f"{IMPORTS}async def attach(stream, target):\n{body}")
    return acts_at(sink, len(IMPORTS.splitlines()) + 2, root)


@pytest.mark.parametrize("statement", HARMLESS)
def test_what_cannot_change_anything_outside_is_no_act(root: Path, statement: str) -> None:
    assert not acts(root, statement)


@pytest.mark.parametrize("statement", [*ACTING, "await client.set(1, 2)"])
def test_what_may_change_something_outside_is_an_act(root: Path, statement: str) -> None:
    assert acts(root, statement)
