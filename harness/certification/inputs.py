"""All that can change the result of a sweep's trials: names that a person knows, with a digest or the value itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ...documents import file_digest
from ..java import find_java
from ..jobs import find_job
from ..session import EnvironmentOptions, Request, where
from ..sinks import find_sink, shape
from ..spark import spark_of


def inputs_of(options: EnvironmentOptions, request: Request) -> dict[str, str]:
    """Names and values, the same for the same inputs. Raises UsageError or Unavailable for what is not there."""
    sink = find_sink(request.sink)
    env, master = where(options)
    found = {f"sink {sink.name}": file_digest(sink)}
    modules = sorted(set(shape(sink).modules) - {sink.name})
    found |= {f"module {name}": file_digest(sink.parent / name) for name in modules}
    job = find_job(request.job, request.expect)
    found |= {
        f"job {job.path.name}": file_digest(job.path),
        f"expectation {job.expectation_path.name}": file_digest(job.expectation_path),
    }
    found |= {
        "seed": str(request.workload.seed),
        "workload": _text(request.workload.as_json()),
        "claim": request.claim.value if request.claim else "the sink's own",
        "configuration": _text(request.conf),
        "jars": _text({Path(jar).name: file_digest(Path(jar)) for jar in request.jars}),
        "environment": env,
        "master": master,
        "brokers": str(options.brokers or "as the environment has them"),
        "settings of Spark": "lean" if options.lean else "its own",
        "readings while the job runs": "on" if request.watch else "off",
        "onceproof": onceproof_version(),
    }
    if env == "local":
        spark, java = spark_of(options.python), find_java()
        found |= {"spark": spark.version, "java": f"{java.version} ({java.vendor})"}
    else:
        found |= {"image": options.image or "our own", "compose files": _text(list(options.compose_files))}
    return found


def onceproof_version() -> str:
    try:
        return version("onceproof")
    except PackageNotFoundError:
        return "not installed"


def _text(value: object) -> str:
    return json.dumps(dict(value) if isinstance(value, Mapping) else value, sort_keys=True, ensure_ascii=False)
