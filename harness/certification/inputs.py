"""All that can change the result of a sweep's trials: names that a person knows, with a digest or the value itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ... import assertions, documents, faults, harness
from ...faults import modules_used
from ..environment_options import EnvironmentOptions, where
from ..environments.driver_start import user_settings
from ..java import find_java
from ..jobs import find_job
from ..request import Request
from ..sinks import find_sink, jars_next_to, shape
from ..spark import spark_of


def inputs_of(options: EnvironmentOptions, request: Request) -> dict[str, str]:
    """Names and values, the same for the same inputs. Raises UsageError or Unavailable for what is not there."""
    sink = find_sink(request.sink)
    env, master = where(options)
    jars = [*map(Path, request.jars), *jars_next_to(sink)]
    found = {f"sink {sink.name}": documents.file_digest(sink)}
    modules = sorted(set(shape(sink).modules) - {sink.name})
    found |= {f"module {name}": documents.file_digest(sink.parent / name) for name in modules}
    job = find_job(request.job, request.expect)
    for file in modules_used(job.path):
        found[f"module {file.relative_to(job.path.parent)} of the job"] = documents.file_digest(file)
    found |= {
        f"job {job.path.name}": documents.file_digest(job.path),
        f"expectation {job.expectation_path.name}": documents.file_digest(job.expectation_path),
    }
    found |= {
        "seed": str(request.workload.seed),
        "workload": _text(request.workload.as_json()),
        "claim": request.claim.value if request.claim else "the sink's own",
        "trigger": request.trigger or "the job's own",
        "configuration": _text(request.conf),
        "services of your own": _text(request.own_services),
        "jars": _text({jar.name: documents.file_digest(jar) for jar in jars}),
        "environment": env,
        "master": master,
        "brokers": str(options.brokers or "as the environment has them"),
        "settings of Spark": "lean" if options.lean else "its own",
        "readings while the job runs": "on" if request.watch else "off",
        "deadlines": _text(
            {"progress": request.deadline, "settle": request.settle_deadline, "sink": options.sink_deadline}
        ),
        "onceproof": f"{onceproof_version()}, {_own_digest()}",
    }
    if env == "local":
        spark, java = spark_of(options.python), find_java()
        found |= {"spark": spark.version, "java": f"{java.version} ({java.vendor})"}
        if not options.lean and (own := user_settings(spark.home)):
            found["settings of Spark"] = f"its own: {_text(own)}"
    else:
        found |= {"image": options.image or "our own", "compose files": _text(list(options.compose_files))}
    return found


def onceproof_version() -> str:
    try:
        return version("onceproof")
    except PackageNotFoundError:
        return "not installed"


def _own_digest() -> str:
    """Of our own source: a development version changes without its number."""
    roots = [Path(str(module.__file__)).parent for module in (documents, assertions, faults, harness)]
    files = sorted({path for root in roots for path in root.rglob("*.py")})
    return hashlib.sha256("".join(map(documents.file_digest, files)).encode()).hexdigest()[:16]


def _text(value: object) -> str:
    return json.dumps(dict(value) if isinstance(value, Mapping) else value, sort_keys=True, ensure_ascii=False)
