"""What a sweep was asked for, kept in its run directory: ``certify --resume`` needs nothing but the directory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from ..errors import UsageError
from ..session import EnvironmentOptions, Request
from .certify import Wanted

SETTINGS = "settings.json"


@dataclass(frozen=True)
class Settings:
    """The trials' request without its plan, the environment, and what to sweep."""

    request: Request
    environment: EnvironmentOptions
    wanted: Wanted


def save_settings(settings: Settings, directory: Path) -> None:
    temporary = directory / f".{SETTINGS}"
    temporary.write_bytes(TypeAdapter(Settings).dump_json(settings, indent=2))
    os.replace(temporary, directory / SETTINGS)


def load_settings(directory: Path) -> Settings:
    """Raises UsageError where there is no sweep to go on with."""
    path = directory / SETTINGS
    if not path.is_file():
        raise UsageError(f"--resume {directory}: no sweep is there (it has no {SETTINGS}): give the directory of one")
    try:
        return TypeAdapter(Settings).validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise UsageError(f"--resume {directory}: {SETTINGS} is damaged: {' '.join(str(error).split())}") from error
