"""A trial as one JSON document: its model, of which docs/trial.schema.json is generated."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from ...assertions import ClaimName, VerdictDocument
from ...documents import CLOSED
from ..determinism import Determinism
from .recovery import Recovery


class SinkNamed(BaseModel):
    model_config = CLOSED

    name: str = Field(description="its file's name without .py")
    path: str = Field(description="the absolute path of its file")
    guarantee: ClaimName = Field(description="what it claims itself (GUARANTEE)")


class JobNamed(BaseModel):
    model_config = CLOSED

    name: str = Field(description="its file's name without .py")
    path: str = Field(description="the absolute path of its file")
    expectation: str = Field(description="the absolute path of the SQL that says what must come out")


class WorkloadUsed(BaseModel):
    model_config = CLOSED

    seed: int
    partitions: int = Field(ge=1, description="partitions of the source topic")
    batches: int = Field(ge=1, description="batches that the input is cut into")
    rows: int = Field(ge=1, description="visible rows asked for in a batch")
    max_offsets_per_trigger: int = Field(ge=1, description="the option maxOffsetsPerTrigger of the source")


class Timings(BaseModel):
    """Seconds by stage."""

    model_config = CLOSED | {"serialize_by_alias": True}

    arrange: float = Field(ge=0, description="topics, database, directories, prepare")
    first_driver_start: float = Field(
        ge=0, alias="first driver start", description="from the driver's process to the query's start"
    )
    run: float = Field(ge=0, description="the rest of the act")
    recovery_start: float = Field(ge=0, alias="recovery start", description="the starts of all further drivers")
    settle: float = Field(ge=0, description="until all is at rest, and two readings")
    judge: float = Field(ge=0, description="the comparison and the verdict")
    total: float = Field(ge=0, description="all of these")


class Versions(BaseModel):
    """Versions by what they are of; an environment and a sink's target may add theirs."""

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, str] = Field(init=False)

    python: str
    spark: str
    java: str
    kafka: str


class JarUsed(BaseModel):
    model_config = CLOSED

    name: str
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class Configuration(BaseModel):
    model_config = CLOSED

    master: str = Field(description="Spark's master")
    conf: dict[str, str] = Field(description="the properties of --conf")
    jars: list[JarUsed] = Field(description="the files of --jars and of the sink's JARS")
    services: dict[str, str] = Field(default_factory=dict, description="HOST:PORT of --proxy, by name")


class TrialDocument(VerdictDocument):
    """What ``onceproof run --json`` prints, and trial.json in a run directory."""

    sink: SinkNamed
    job: JobNamed
    plan: str = Field(description="the plan in its canonical form; empty without faults")
    seed: int
    workload: WorkloadUsed
    timings: Timings
    environment: Versions
    configuration: Configuration
    recoveries: list[Recovery] = Field(
        default_factory=list, description="what the recovery from each driver's death consisted of"
    )
    warnings: list[str] = Field(
        description="what went wrong apart from the trial, such as the sink's cleanup: the verdict stands"
    )
    run_directory: str = Field(description="its absolute path")
    determinism: Determinism | None = Field(
        default=None, description="whether the job gives the same rows again; null where that was not looked into"
    )


TRIAL_DOCUMENT = TypeAdapter(TrialDocument)
