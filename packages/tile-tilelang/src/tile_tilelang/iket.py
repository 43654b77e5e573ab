"""Names of ``tilelang.tools.cuda.iket``, whose marks of a profiler have no effect here."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tile_tilelang.spellings import WithoutEffect

__all__ = [
    "disable", "enable", "event_table", "is_enabled", "mark", "output_dir", "output_path", "payload", "range",
    "range_end", "range_pop", "range_push", "range_start", "reset", "runtime_payloads_enabled", "session",
    "set_output_dir", "trace_files",
]  # fmt: skip

mark = payload = range = range_end = range_pop = range_push = range_start = WithoutEffect()
_FOLDER = "TL_IKET_OUTPUT_DIR"


def enable(**hints: Any) -> None:
    """Warn that nothing is recorded."""
    warnings.warn("marks of iket are not recorded: profile with the tools of the target", stacklevel=2)


def disable(**hints: Any) -> None:
    """Do nothing."""


reset = disable


def is_enabled() -> bool:
    """Return ``False``: marks have no effect."""
    return False


runtime_payloads_enabled = is_enabled


@contextlib.contextmanager
def session(*, output_dir: Any = None, **hints: Any) -> Iterator[None]:
    """Warn that nothing is recorded, and name the folder of `output_path` in the block."""
    before = os.environ.get(_FOLDER)
    enable()
    if output_dir is not None:
        set_output_dir(output_dir)
    try:
        yield
    finally:
        set_output_dir(before)


def set_output_dir(path: Any) -> Path | None:
    """Set the folder of `output_path`."""
    if path is None:
        os.environ.pop(_FOLDER, None)
        return None
    os.environ[_FOLDER] = str(Path(path).expanduser().absolute())
    return output_dir()


def output_dir(default: Any = None) -> Path | None:
    """Return the folder of `output_path`."""
    found = os.environ.get(_FOLDER) or default
    return None if found is None else Path(found).expanduser().absolute()


def output_path(name: str, *, directory: Any = None) -> Path:
    """Return the path of a file in the folder, which is made."""
    folder = output_dir(directory) or Path.cwd()
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


def event_table() -> list[Any]:
    """Return an empty list: marks have no effect."""
    return []


def trace_files(*, directory: Any = None) -> list[Path]:
    """Return an empty list: marks have no effect."""
    return []
