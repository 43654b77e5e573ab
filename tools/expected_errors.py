"""Expect an error of the catalogue by its class and its facts, so that tests do not repeat its sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

from tile_core.errors.base import TileError

Error = TypeVar("Error", bound=TileError)


@contextmanager
def raises_error(error: type[Error], /, **facts: object) -> Iterator[pytest.ExceptionInfo[Error]]:
    """Expect an error of a class with these facts among its own.

    Parameters
    ----------
    error
        The class, or a base class of it.
    **facts
        Values of placeholders of its ``template`` and ``remedy``.
    """
    with pytest.raises(error) as caught:
        yield caught
    found = caught.value.facts
    assert {name: found.get(name) for name in facts} == facts
