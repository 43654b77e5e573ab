"""Errors of the catalogue that pass through TVM come out as themselves.

An error that a callback of TVM raises (of a structural map, of a pass over functions) crosses C++ as three texts, and
is made anew on the other side from the name of its class: a refusal would come out as a ``RuntimeError``. So its texts
hold a number, by which the error itself is found again. An error of another class still comes out as TVM makes it.
"""

from __future__ import annotations

import re
from typing import Any

from tile_core.errors.base import TileError

KIND = "tile_core.TileError"
_NUMBER = re.compile(r"\[crossing (\d+)\]\Z")
_inside: dict[int, TileError] = {}


def install(tvm_ffi: Any) -> None:
    """Teach TVM's FFI about the catalogue.

    Parameters
    ----------
    tvm_ffi
        The module. It reads the attribute ``__tvm_ffi_error__`` of an error that a callback raised, and sets that of
        one that it raises.
    """

    def texts(error: TileError) -> Any:
        _inside[id(error)] = error
        return tvm_ffi.core.Error(KIND, f"{error} [crossing {id(error)}]", "")

    def keep(error: TileError, value: Any) -> None:
        """Forget the texts: they are made anew where the error enters again."""

    TileError.__tvm_ffi_error__ = property(texts, keep)  # type: ignore[attr-defined]
    tvm_ffi.core.ERROR_NAME_TO_TYPE[KIND] = Restored


class Restored:
    """Makes errors from TVM's messages: returns the error whose number the message ends with."""

    def __new__(cls, message: str) -> BaseException:  # type: ignore[misc]
        """Find the error."""
        number = _NUMBER.search(message)
        error = _inside.pop(int(number[1]), None) if number is not None else None
        # TVM appends the frames that its texts name to those that the error has.
        return RuntimeError(message) if error is None else error.with_traceback(None)
