"""A quicker start of a job's Python processes, which changes nothing of what they do. Standard library only.

The probe imports this where ONCEPROOF_LEAN is set.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


def start_lean() -> None:
    prefer_installed()
    sys.meta_path[:0] = [SparkML, Converters()]


def prefer_installed() -> None:
    """Import pyspark and py4j from where they are installed instead of from the archives that Spark puts in front.

    pip's pyspark carries a copy of itself as ``python/lib/pyspark.zip``; modules of an archive are compiled anew in
    each process, which costs every one of a job's Python workers about half a second.
    """
    tail = os.path.join("", "python", "lib", "")
    for entry in [entry for entry in sys.path if entry.endswith(".zip")]:
        library, name = os.path.split(entry)
        home = library[: -len(os.path.join("python", "lib")) - 1]
        installed = os.path.dirname(home)
        package = "pyspark" if name == "pyspark.zip" else name.split("-")[0]
        if (
            os.path.join(library, "").endswith(tail)
            and os.path.basename(home) == "pyspark"
            and installed in sys.path
            and os.path.isfile(os.path.join(installed, package, "__init__.py"))
        ):
            sys.path.remove(entry)


class SparkML:
    """A finder that finds nothing: it tells the JVM, which inherits the environment, that the job uses Spark ML."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        if name == "pyspark.ml":
            os.environ["ONCEPROOF_SPARK_ML"] = "1"


class Converters:
    """Finds pyspark.sql.types where it is installed, and has its converters of numpy's values wait for numpy.

    Before a call of the JVM with anything but plain values, Spark's converters are asked whether it is one of numpy's.
    In Spark 4.2 they ask pyspark.testing whether numpy is installed, which imports pandas and pyarrow: half a second of
    each driver's start. As long as the process has not imported numpy, no value can be one of its.
    """

    NAMES = ("NumpyScalarConverter", "NumpyArrayConverter")

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != "pyspark.sql.types":
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                for converter in self.NAMES:
                    wait_for_numpy(getattr(module, converter, None))

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def wait_for_numpy(converter: Any) -> None:
    """Have the class answer that it cannot convert a value before numpy is imported."""
    can_convert = getattr(converter, "can_convert", None)
    if can_convert is not None:
        converter.can_convert = lambda self, value: "numpy" in sys.modules and can_convert(self, value)
