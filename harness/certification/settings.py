"""What a sweep was asked for, kept in its run directory: ``certify --resume`` needs nothing but the directory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from ...documents import DocumentError, read_document, write_document
from ..environment_options import EnvironmentOptions
from ..errors import UsageError
from ..request import Request
from .wanted import Wanted

SETTINGS = "settings.json"


@dataclass(frozen=True)
class Settings:
    """The trials' request without its plan, the environment, and what to sweep."""

    request: Request
    environment: EnvironmentOptions
    wanted: Wanted


DOCUMENT = TypeAdapter(Settings)


def save_settings(settings: Settings, directory: Path) -> None:
    write_document(directory / SETTINGS, DOCUMENT.dump_json(settings, indent=2).decode())


def load_settings(directory: Path) -> Settings:
    """Raises UsageError where there is no sweep to go on with."""
    path = directory / SETTINGS
    if not path.is_file():
        raise UsageError(f"--resume {directory}: no sweep is there (it has no {SETTINGS}): give the directory of one")
    try:
        return read_document(path, DOCUMENT, SETTINGS)
    except (OSError, DocumentError) as error:
        raise UsageError(f"--resume {directory}: {error}") from error
