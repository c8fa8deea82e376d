"""A replay has the rows of its batch in other tasks than the first run had them."""

from __future__ import annotations

from ...plans import Action
from ..capabilities import Scene
from ..declarations import ActionSpec, Parameter
from ..replays import IN_A_REPLAY


def act(action: Action, scene: Scene) -> str:
    return scene.source.repartition(int(action.arguments["to"]))


ACTION = ActionSpec(
    name="repartition",
    meaning="the drivers that follow read the source in at least so many partitions (Kafka's minPartitions), and have "
    "so many by default (spark.default.parallelism), as after a change of the cluster or of the job's options: a batch "
    "that comes again has the same rows, in other tasks. Which rows a task has is not promised for a batch "
    "(SPARK-28650)",
    example="batch.commit:before[batch=1] -> repartition(source, to=7) then kill(driver)",
    act=act,
    requires=IN_A_REPLAY,
    targets=("source",),
    arguments=(Parameter("to", "number", "the number of partitions", minimum=1, required=True),),
    moment=False,
    read_by_the_next="driver",
    executions=("micro-batch", "async progress"),
)
