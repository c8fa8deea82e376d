"""What a plan sets for its trial, besides its faults: ``set brokers = 3``, ``set broker.min.insync.replicas = 1``.

>>> is_setting("batches"), setting_value("batches", "12")
(True, '12')
>>> settings_of({"batches": "12", "broker.unclean.leader.election.enable": "true"}).workload
{'batches': 12}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..naming import Named, as_option

NUMBERS = {"brokers": 3, "copies": 3, "partitions": 100, "batches": 1000, "rows": 100_000, "starts": 100}
"""What is a number, of at least 1, and its largest."""

OF_WORKLOAD = ("partitions", "batches", "rows")

MASTER, CLUSTER = "master", "standalone"
"""The setting that gives a trial executors of its own, whatever master the others have, and its only value."""

SPARK = "spark."
"""Properties of Spark, for the driver."""

OWN = {
    "spark.master": "is {master}'s: choose the master there",
    "spark.driver.host": "is the environment's own: leave it out",
    "spark.driver.bindAddress": "is the environment's own: leave it out",
}
"""Properties of Spark that drivers have from elsewhere, and what to do instead."""

BROKER = "broker."
"""Stands before a property of brokers that can be changed while they run (KIP-226)."""


@dataclass(frozen=True)
class Settings:
    """``brokers``: how many there have to be; None for any number. ``copies``: of each topic of the trial; None for one
    on each broker. ``workload``: fields of the workload. ``starts``: how often a process of the job starts its query.
    ``master``: None for that of all trials. ``spark`` are properties of the driver, ``broker`` those of all brokers,
    for the time of the trial."""

    brokers: int | None
    copies: int | None
    workload: Mapping[str, int]
    starts: int
    master: str | None
    spark: Mapping[str, str]
    broker: Mapping[str, str]


SETTINGS = (*NUMBERS, MASTER, f"{SPARK}PROPERTY", f"{BROKER}PROPERTY")
"""What can be set, for people."""


def is_setting(name: str) -> bool:
    """Whether a plan can set it."""
    return name in (*NUMBERS, MASTER) or any(name.startswith(prefix) and name != prefix for prefix in (SPARK, BROKER))


def setting_value(name: str, text: str) -> str:
    """The text, if it is a value that it can have. Raises ValueError, one line."""
    if name in NUMBERS and not (re.fullmatch("[0-9]{1,9}", text) and 1 <= int(text) <= NUMBERS[name]):
        raise ValueError(f"{name} is a whole number from 1 to {NUMBERS[name]}, not {text}")
    if name == MASTER and text != CLUSTER:
        raise ValueError(f"{name} is {CLUSTER}, for a trial on executors, not {text}: leave it out")
    if name.startswith(SPARK):
        check_property(name)
    return text


def check_property(name: str, named: Named = as_option) -> None:
    """Whether it is a property of Spark that may be set for a trial. Raises ValueError, one line."""
    if not name.startswith(SPARK) or name == SPARK:
        raise ValueError(f"{name!r} is no property of Spark, which begins with {SPARK}: write {SPARK}{name}")
    if name in OWN:
        raise ValueError(f"{name} {OWN[name].format(master=named('master'))}")


def settings_of(settings: Mapping[str, str]) -> Settings:
    """What a plan's settings, which have been checked, mean."""
    return Settings(
        brokers=int(settings["brokers"]) if "brokers" in settings else None,
        copies=int(settings["copies"]) if "copies" in settings else None,
        workload={name: int(settings[name]) for name in OF_WORKLOAD if name in settings},
        starts=int(settings.get("starts", 1)),
        master=settings.get(MASTER),
        spark={name: value for name, value in settings.items() if name.startswith(SPARK)},
        broker={name.removeprefix(BROKER): value for name, value in settings.items() if name.startswith(BROKER)},
    )
