"""Kafka, Spark and PostgreSQL as processes of this machine, on loopback, without Docker and without root.

>>> from onceproof.harness.environments.local import LocalOptions, open_local
>>> environment = open_local(LocalOptions(master="local[2]"))      # doctest: +SKIP
>>> environment.provide(["kafka"])                                  # doctest: +SKIP
>>> environment.addresses("harness").kafka                          # doctest: +SKIP
'127.0.0.1:24817'
"""

from .environment import LocalEnvironment, open_local
from .options import LocalOptions

__all__ = ["LocalEnvironment", "LocalOptions", "open_local"]
