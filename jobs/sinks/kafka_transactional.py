"""Two-phase commit from Spark to Kafka, through Spark's Python data source API: exactly-once for committed readers.

Each task writes its rows in a Kafka transaction, leaves it open and hands its identity over. The driver's commit()
first makes the *decision* durable, the list of the batch's transactions in a file of the checkpoint, and only then
commits them one by one. A batch with a decision is never written again; its recorded transactions are committed again
until they all are. README.md in the directory above goes through the crashes and the zombies one by one.

Needs: a checkpoint directory that driver and executors see under the same path, and no copy of it with a second query:
neither sees what the other has decided. spark.speculation off, and a restart before the transactions of a decided batch
time out: their timeout counts from their start, and a batch is decided only while a third of it is left. All of a
transaction's life is spoken in version 1 of the transaction protocol, in which the epoch stays the same from
InitProducerId to the marker (KIP-890 has version 2, which kafka-python 3.0 lacks).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeVar, cast
from uuid import uuid4

from kafka import KafkaProducer
from kafka.errors import KafkaError, NoError, RetriableError, TransactionalIdNotFoundError, for_code
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.admin.transactions import DescribeTransactionsRequest, ListTransactionsRequest
from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest
from kafka.protocol.producer import EndTxnRequest
from pyspark import TaskContext
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.functions import concat_ws, struct, to_json
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

GUARANTEE = "exactly-once"
TECHNIQUE = "two-phase commit"
SERVICES = ("kafka",)
DURABLE = True

TRANSACTION_TIMEOUT_MS = 15 * 60 * 1000
"""The longest that brokers allow by default (transaction.max.timeout.ms). It counts from a transaction's start: the
rest of the batch, a crash and the recovery must be over by then."""
RESERVE = 1 / 3
"""The part of a transaction's timeout that is kept for what comes after the decision: less left, and none is made."""
VOID = "void"

DEADLINE = 60.0
"""Seconds for which a request to a coordinator is repeated."""

Answer = TypeVar("Answer")


def transform(df: DataFrame, target: SimpleNamespace) -> DataFrame:
    return df.select(concat_ws("|", *target.key).alias("key"), to_json(struct("*")).alias("value"))


def attach(stream: DataStreamWriter, target: SimpleNamespace) -> DataStreamWriter:
    spark = SparkSession.active()
    speculation = str(spark.sparkContext.getConf().get("spark.speculation", "false"))
    if speculation.strip().lower() == "true":  # as Spark reads it
        raise ValueError(
            "spark.speculation is true: a speculative copy of a task fences the transaction of the task that it copies;"
            " set spark.speculation=false"
        )
    spark.dataSource.register(TransactionalTopic)
    options = {
        "bootstrap": target.kafka,
        "topic": target.topic,
        "name": target.name,
        "checkpoint": local_path(target.checkpoint),
    }
    return stream.format(TransactionalTopic.name()).options(**options)


def local_path(checkpoint: str) -> str:
    path = checkpoint.removeprefix("file://").removeprefix("file:")
    if "://" in path or path.startswith("hdfs:"):
        raise ValueError(f"checkpoint {checkpoint}: decisions need a path of a local or mounted file system")
    return path


class Transaction(NamedTuple):
    """A transaction by what a coordinator knows it by. Another epoch is another transaction."""

    transactional_id: str
    producer_id: int
    epoch: int


@dataclass(frozen=True)
class Prepared(WriterCommitMessage):
    """What a task hands over: its open transaction, or None if it wrote nothing, and the turn in which it wrote."""

    transaction: Transaction | None
    turn: int = 0


@dataclass(frozen=True)
class Decision:
    """The outcome of a batch, made once: these transactions are committed, those are aborted.

    ``offsets`` is the digest of the input that they hold: see :func:`source_offsets`.
    """

    query: str
    batch: int
    commits: Sequence[Transaction]
    aborts: Sequence[Transaction]
    offsets: str


class TransactionalTopic(DataSource):
    @classmethod
    def name(cls) -> str:
        return "kafka_transactional"

    def streamWriter(self, schema: StructType, overwrite: bool) -> TransactionalWriter:
        return TransactionalWriter(self.options)


class TransactionalWriter(DataSourceStreamWriter):
    """write() runs in the executors' Python workers, commit() and abort() in one on the driver's side."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.bootstrap = options["bootstrap"]
        self.topic = options["topic"]
        self.name = options["name"]
        self.checkpoint = Path(options["checkpoint"])

    def prefix(self, query: str) -> str:
        """The start of the query's transactional ids; the rest is the task's number. Each batch uses the same ids."""
        return f"{self.name}-{query}-"

    def write(self, iterator: Iterator[Row]) -> Prepared:
        context = TaskContext.get()
        assert context is not None
        query = str(context.getLocalProperty("sql.streaming.queryId"))
        batch = int(str(context.getLocalProperty("streaming.sql.batchId")))
        turn = None
        if read_decision(self.checkpoint, query, batch) is None:
            turn = take_turn(self.checkpoint, batch, run=str(context.getLocalProperty("spark.jobGroup.id")))
        if turn is None:
            deque(iterator, maxlen=0)
            return Prepared(None)
        transactional_id = f"{self.prefix(query)}{context.partitionId()}"
        return Prepared(write_transaction(self.bootstrap, self.topic, transactional_id, iterator), turn)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        query = query_id(self.checkpoint)
        offsets = source_offsets(self.checkpoint, batchId)
        prepared = transactions_of(messages)
        with Coordinators(self.bootstrap) as coordinators:
            decision = read_decision(self.checkpoint, query, batchId)
            if decision is None:
                others = coordinators.others_open(self.prefix(query), prepared)
                coordinators.require_open(prepared)
                turn = max((message.turn for message in messages if isinstance(message, Prepared)), default=0)
                decision = decide(self.checkpoint, Decision(query, batchId, prepared, others, offsets), turn)
            require_same_input(decision, offsets)
            sync_directory(decisions(self.checkpoint, batchId))
            for transaction in decision.commits:
                coordinators.commit(transaction)
            for transaction in sorted({*decision.aborts, *prepared} - {*decision.commits}):
                coordinators.abort(transaction)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Spark calls it after a failed task or a failed commit(). What is decided stays: a replay finishes it."""
        decision = read_decision(self.checkpoint, query_id(self.checkpoint), batchId)
        decided = decision.commits if decision else ()
        with Coordinators(self.bootstrap) as coordinators:
            for transaction in sorted({*transactions_of(messages)} - {*decided}):
                coordinators.abort(transaction)


def transactions_of(messages: Sequence[WriterCommitMessage | None]) -> list[Transaction]:
    prepared = [message.transaction for message in messages if isinstance(message, Prepared)]
    return [transaction for transaction in prepared if transaction is not None]


# -- The task's side: write rows and leave the transaction open ----------------------------------------------------


def write_transaction(bootstrap: str, topic: str, transactional_id: str, rows: Iterator[Row]) -> Transaction | None:
    """Fences ``transactional_id`` and writes ``rows`` in a transaction that is still open on return; None without rows.

    InitProducerId aborts what an earlier attempt left open and bumps the epoch, so that a dead or slow attempt can
    neither add to this transaction nor commit it. Raises if any row was not acknowledged by all in-sync replicas.
    """
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        transactional_id=transactional_id,
        transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
        acks="all",
        linger_ms=5,
        retry_backoff_ms=20,  # also the step in which the client waits for its coordinator
        delivery_timeout_ms=60_000,
        request_timeout_ms=10_000,
        reconnect_backoff_max_ms=500,
        allow_auto_create_topics=False,
        metrics_enabled=False,
    )
    try:
        producer.init_transactions()
        transaction = identity(producer, transactional_id)
        first = next(rows, None)
        if first is None:
            return None
        producer.begin_transaction()
        send_all(producer, topic, chain([first], rows))
        if identity(producer, transactional_id) != transaction:
            # The client may recover from a lost sequence by a new epoch (KIP-360), which aborts what came before.
            raise RuntimeError(f"the producer of {transactional_id} went on to another epoch: rows were aborted")
        return transaction
    except BaseException:
        close(producer)  # first, so that nothing of it is still under way to the brokers when the transaction ends
        abort_failed(bootstrap, producer, transactional_id)
        raise
    finally:
        close(producer)


def send_all(producer: KafkaProducer, topic: str, rows: Iterator[Row]) -> None:
    """Returns once each row is acknowledged. flush() waits but reports no failure, the futures do."""
    futures = [producer.send(topic, key=row.key.encode(), value=row.value.encode()) for row in rows]
    producer.flush(timeout=90)
    for future in futures:
        future.get(timeout=0)


def identity(producer: KafkaProducer, transactional_id: str) -> Transaction:
    """What the handing over needs and KafkaProducer has no public name for."""
    current = producer._transaction_manager.producer_id_and_epoch
    return Transaction(transactional_id, current.producer_id, current.epoch)


def close(producer: KafkaProducer) -> None:
    """Ends the producer's thread and connections. It sends no EndTxn: the transaction stays as it is."""
    try:
        producer.close(timeout=10)
    except KafkaError:  # rows that cannot be sent; without this their thread would go on trying in a reused worker
        producer._sender.force_close()
        producer._sender.join(10)


def abort_failed(bootstrap: str, producer: KafkaProducer, transactional_id: str) -> None:
    """Spares readers the wait for the timeout. Where it fails, the next attempt's InitProducerId aborts instead."""
    transaction = identity(producer, transactional_id)
    if transaction.producer_id >= 0:
        with suppress(KafkaError, TimeoutError), Coordinators(bootstrap, deadline=5.0) as coordinators:
            coordinators.abort(transaction)


# -- The decision ---------------------------------------------------------------------------------------------------


def query_id(checkpoint: Path) -> str:
    try:
        return str(json.loads((checkpoint / "metadata").read_text())["id"])
    except FileNotFoundError as error:
        # An executor that cannot see the decisions would write a decided batch again.
        raise FileNotFoundError(f"checkpoint {checkpoint} is not visible here: use a shared directory") from error


def decisions(checkpoint: Path, batch: int) -> Path:
    """Of a batch: ``N.run``, the run of the query whose turn N is, and ``N.json``, what it decided; VOID if it may not
    any more. A turn begins when the one before is void, so that no two of them have a decision."""
    return checkpoint / "decisions" / str(batch)


def source_offsets(checkpoint: Path, batch: int) -> str:
    """sha256 of the offsets that the batch ends at in each source, by Spark's offset log.

    offsets/N is a line with the version, one with metadata (the time of the planning, which differs where a batch is
    planned again) and one for each source (OffsetSeqLog in org.apache.spark.sql.execution.streaming).
    """
    lines = (checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").split("\n")
    return hashlib.sha256("\n".join(lines[2:]).encode()).hexdigest()


def require_same_input(decision: Decision, offsets: str) -> None:
    """Raises if the batch was decided for other offsets: offsets/N was removed or torn, and Spark planned it anew."""
    if decision.offsets != offsets:
        raise RuntimeError(
            f"batch {decision.batch} was decided for other source offsets than offsets/{decision.batch} has now: it was"
            " planned anew after its decision, whose transactions hold other rows. Going on would lose rows or write"
            " them twice; put the old offsets file back, or compare the batch with the topic before the decision is"
            " removed"
        )


def read_decision(checkpoint: Path, query: str, batch: int) -> Decision | None:
    """The batch's decision, if there is one. Raises if the checkpoint is not to be seen here or is another query's."""
    if query_id(checkpoint) != query:
        raise ValueError(f"checkpoint {checkpoint} belongs to query {query_id(checkpoint)}, this is query {query}")
    texts = (file.read_text() for file in decisions(checkpoint, batch).glob("*.json"))
    text = next((text for text in texts if text != VOID), None)
    if text is None:
        return None
    stored = json.loads(text)
    if (stored["query"], stored["batch"]) != (query, batch):
        raise ValueError(f"{checkpoint}: batch {batch} was decided by query {stored['query']}, not {query}")
    commits, aborts = ([Transaction(*item) for item in stored[kind]] for kind in ("commits", "aborts"))
    return Decision(query, batch, commits, aborts, stored["offsets"])


def take_turn(checkpoint: Path, batch: int, run: str) -> int | None:
    """The number of the run's turn at the batch; None if the batch is decided. Raises if its turn is over.

    Whoever had the turn before, be it dead or slow, cannot decide any more: the transactions that this run is about to
    fence are nobody's decision.
    """
    directory = decisions(checkpoint, batch)
    while True:
        turns = {int(file.stem): file.read_text() for file in directory.glob("*.run")}
        own = [number for number, taken_by in turns.items() if taken_by == run]
        number = max(own or turns, default=None)
        if number is not None:
            decided = directory / f"{number}.json"
            if own and not decided.exists():
                return number
            publish(directory, decided.name, VOID)
            if decided.read_text() != VOID:
                return None
            if own:
                raise RuntimeError(f"{directory}: another run of the query has taken the batch over")
        publish(directory, f"{0 if number is None else number + 1}.run", run)


def decide(checkpoint: Path, decision: Decision, turn: int) -> Decision:
    """Makes the decision unless there is one; returns the one that counts. Raises if the turn is over."""
    publish(decisions(checkpoint, decision.batch), f"{turn}.json", json.dumps(vars(decision)))
    made = read_decision(checkpoint, decision.query, decision.batch)
    if made is None:
        raise RuntimeError(f"another run of the query has taken batch {decision.batch} over: it is not committed here")
    return made


def publish(directory: Path, name: str, text: str) -> None:
    """Makes a file, unless there is one: a hard link to one that is already complete and on disk, so that it appears
    whole."""
    directory.mkdir(parents=True, exist_ok=True)
    sync_directory(directory.parent.parent)
    sync_directory(directory.parent)
    draft = directory / f".{name}.{uuid4().hex}"
    with open(draft, "x") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    with suppress(FileExistsError):
        os.link(draft, directory / name)
    draft.unlink()
    sync_directory(directory)


def sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# -- The driver's side: end transactions by their identity ----------------------------------------------------------


class Coordinators:
    """Requests about transactions, each sent again until it is answered or ``deadline`` seconds are over.

    Repeated: lost answers and connections, a coordinator that is loading or has moved, a transaction that is just
    being ended. The network runs in the calling thread: nothing is left behind in a Python worker that is used again.
    """

    def __init__(self, bootstrap: str, deadline: float = DEADLINE) -> None:
        self.deadline = deadline
        self.network = NetworkSelector()
        self.manager = KafkaConnectionManager(
            self.network, bootstrap_servers=bootstrap, request_timeout_ms=5000, reconnect_backoff_max_ms=500
        )

    def __enter__(self) -> Coordinators:
        self.manager.bootstrap(timeout_ms=self.deadline * 1000)
        return self

    def __exit__(self, *exception: object) -> None:
        self.manager.close()
        self.network.close()

    def commit(self, transaction: Transaction) -> None:
        """Commits it, or proves that it is committed already. Anything else would be a loss, and raises."""
        error = self.end(transaction, committed=True)
        if error is not NoError and self.state(transaction) != "CompleteCommit":
            raise RuntimeError(
                f"transaction {transaction} was decided to be committed, but the coordinator answers {error.__name__}"
                f" and has {self.describe(transaction.transactional_id)}: its rows are lost or were never seen."
                " Going on would hide that; compare the batch with the topic before the decision is removed"
            )

    def abort(self, transaction: Transaction) -> None:
        """Aborts it if it is still open. A refusal means that it was ended or fenced by somebody else."""
        self.end(transaction, committed=False)

    def end(self, transaction: Transaction, *, committed: bool) -> type[KafkaError]:
        """EndTxn for exactly this epoch: a later transaction of the same id is out of its reach (see FLINK-8132)."""
        request = EndTxnRequest(
            transactional_id=transaction.transactional_id,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.epoch,
            committed=committed,
            max_version=3,
        )
        answer = self.ask_coordinator(transaction.transactional_id, request)
        return cast(type[KafkaError], for_code(answer.error_code))

    def require_open(self, transactions: Collection[Transaction]) -> None:
        """Raises if one of them has timed out or been fenced, or is about to time out: nothing is decided yet, so the
        batch can be redone."""
        for transaction in transactions:
            if self.state(transaction) != "Ongoing":
                found = self.describe(transaction.transactional_id)
                raise RuntimeError(f"transaction {transaction} is no longer open ({found}): the batch is not committed")
            left, timeout = self.time_left(transaction.transactional_id)
            if left < timeout * RESERVE:
                raise RuntimeError(
                    f"transaction {transaction} has {left:.0f} s left of its timeout of {timeout:.0f} s, too little for"
                    " a restart after the decision: the batch is not committed; make batches smaller"
                )

    def others_open(self, prefix: str, own: Collection[Transaction]) -> list[Transaction]:
        """Open transactions of the query's ids other than ``own``: left by an earlier attempt with more tasks."""
        ids = {*filter(re.compile(re.escape(prefix) + r"\d+").fullmatch, self.repeat(self.list_open))}
        found = [self.describe(name) for name in sorted(ids - {transaction.transactional_id for transaction in own})]
        return [transaction for transaction, state in found if state == "Ongoing"]

    def state(self, transaction: Transaction) -> str:
        """Its state at the coordinator, or "unknown" once the id has gone on to another epoch."""
        found, state = self.describe(transaction.transactional_id)
        return state if found == transaction else "unknown"

    def describe(self, transactional_id: str) -> tuple[Transaction, str]:
        """The id's latest transaction and the state that it is in."""
        found = self.described(transactional_id)
        if for_code(found.error_code) is TransactionalIdNotFoundError:
            return Transaction(transactional_id, -1, -1), "Unknown id"
        require_success(found)
        return Transaction(transactional_id, found.producer_id, found.producer_epoch), found.transaction_state

    def time_left(self, transactional_id: str) -> tuple[float, float]:
        """Seconds until the coordinator aborts the id's open transaction, and its timeout; by the clocks of both."""
        found = self.described(transactional_id)
        require_success(found)
        ends = (found.transaction_start_time_ms + found.transaction_timeout_ms) / 1000
        return ends - time.time(), found.transaction_timeout_ms / 1000

    def described(self, transactional_id: str) -> Any:
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        return self.ask_coordinator(transactional_id, request, lambda answer: answer.transaction_states[0])

    def list_open(self) -> set[str]:
        """The ids of all open transactions of the cluster; every broker knows those that it coordinates."""
        self.manager.run(self.manager.cluster.refresh_metadata)
        request = ListTransactionsRequest(state_filters=["Ongoing"], producer_id_filters=[])
        answers = [self.send(request, broker.node_id) for broker in self.manager.cluster.brokers()]
        for answer in answers:
            require_success(answer)
        states = chain.from_iterable(answer.transaction_states for answer in answers)
        return set(map(attrgetter("transactional_id"), states))

    def ask_coordinator(self, key: str, request: Any, part: Callable[[Any], Any] = lambda answer: answer) -> Any:
        """``request``'s answer (or the ``part`` of it that has the error code) from the coordinator of ``key``."""

        def attempt() -> Any:
            answer = part(self.send(request, self.find_coordinator(key)))
            if issubclass(for_code(answer.error_code), RetriableError):
                require_success(answer)
            return answer

        return self.repeat(attempt)

    def find_coordinator(self, key: str) -> Any:
        """Asked anew for each request, because coordinators move."""
        kind = CoordinatorType.TRANSACTION
        answer = self.send(FindCoordinatorRequest(key=key, key_type=kind.value, coordinator_keys=[key]))
        found = answer.coordinators[0] if answer.coordinators else answer
        return self.manager.cluster.add_coordinator(found, kind, key, synthesize_node_id=False)

    def send(self, request: Any, node: Any = None) -> Any:
        return self.manager.run(self.manager.send, request, node)

    def repeat(self, attempt: Callable[[], Answer]) -> Answer:
        end = time.monotonic() + self.deadline
        while True:
            try:
                return attempt()
            except RetriableError as error:
                if time.monotonic() > end:
                    raise TimeoutError(f"no answer within {self.deadline} s; the last one: {error!r}") from error
                time.sleep(0.1)


def require_success(answer: Any) -> None:
    error = for_code(answer.error_code)
    if error is not NoError:
        raise error(f"answer {answer}")
