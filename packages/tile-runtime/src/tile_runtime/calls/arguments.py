"""Order a call's arguments by the signature, and check that they determine the symbols."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tile_runtime.abi.signature import Param, Signature, shape_text, solvable
from tile_runtime.dtypes import dtype
from tile_runtime.errors import launch as errors
from tile_runtime.errors.base import InternalError, TileError, Where
from tile_runtime.errors.interrupts import passed_on
from tile_runtime.errors.setup import OutOfMemory
from tile_runtime.types import Argument


@contextlib.contextmanager
def only_catalogue(stage: str, where: Where | None) -> Iterator[None]:
    """Convert errors outside the catalogue into an ``InternalError``: the arguments have been checked by then."""
    try:
        yield
    except TileError as error:
        raise error.at(where) from error.__cause__
    except Exception as error:
        passed_on(error)
        raise defect(stage, error, where, "the kernel") from error


def defect(stage: str, error: Exception, where: Where | None, kernel: str) -> TileError:
    """Return the catalogue's error for one that was not caused by a user."""
    if isinstance(error, MemoryError) or "std::bad_alloc" in str(error):
        return OutOfMemory(kernel=kernel, where=where)
    return InternalError(stage=stage, detail=f"{type(error).__name__}: {error}", where=where)


def normalise_out_idx(
    name: str, params: Sequence[Param], out_idx: int | Sequence[int] | None, where: Where | None = None
) -> tuple[int, ...]:
    """Positions of the parameters that a call allocates, negative ones counted from the end.

    Raises
    ------
    BadOutIdx
        A position is out of range, repeated, or not that of a written array.
    """
    given: tuple[Argument, ...] = () if out_idx is None else (out_idx,)
    given = tuple(out_idx) if isinstance(out_idx, (tuple, list, range)) else given
    found: list[int] = []
    for index in given:
        reason, fix = "", f"use positions of written array parameters, from {-len(params)} to {len(params) - 1}"
        position = index + len(params) if isinstance(index, int) and index < 0 else index
        if not isinstance(position, int) or isinstance(position, bool) or not 0 <= position < len(params):
            reason = f"{index!r} is not a position of {len(params)} parameters"
        elif position in found:
            reason = f"parameter {params[position].name!r} is named twice"
        elif params[position].kind != "tensor":
            reason = f"parameter {params[position].name!r} is not an array"
        elif not params[position].writes:
            reason = f"parameter {params[position].name!r} is never written"
        elif params[position].access == "readwrite":
            tensor = params[position].name
            reason = f"parameter {tensor!r} is read too, perhaps before it is written"
            fix = (
                f"compute in a tile (T.alloc_fragment) and store {tensor} once, at the end; or leave it out of out_idx "
                "and pass an array, which then holds what is read first"
            )
        if reason:
            raise errors.BadOutIdx(kernel=name, found=out_idx, reason=reason, fix=fix, where=where)
        found.append(position)
    return tuple(found)


def check_signature(signature: Signature) -> None:
    """Refuse a kernel whose inputs can never determine its symbols."""
    inputs = [signature.params[i] for i in signature.inputs]
    dims = [d for p in inputs if p.kind == "tensor" for d in (*p.shape, *(p.strides or ()))]
    names = {p.name for p in inputs if p.kind == "scalar" and dtype(p.dtype).is_integer}
    found = solvable(dims, names)
    for symbol in signature.symbols:
        if symbol not in found:
            users = ", ".join(str(p) for p in signature.params if symbol in shape_text((*p.shape, *(p.strides or ()))))
            error = errors.UnsolvableSymbol(kernel=signature.name, symbol=symbol, occurrences=users)
            raise error.at(signature.where)


def arrange(signature: Signature, args: Sequence[Argument], kwargs: Mapping[str, Argument]) -> tuple[Argument, ...]:
    """Positional order of the arguments that the caller passes.

    Raises
    ------
    TooManyArguments, MissingArgument, UnknownKeyword, DuplicateArgument
    """
    names = [signature.params[i].name for i in signature.inputs]
    facts: dict[str, Any] = {"kernel": signature.name, "usage": signature.usage}
    if len(args) > len(names):
        outs = ", ".join(signature.params[i].name for i in signature.results)
        note = f"; {outs} is allocated and returned" if outs else ""
        raise errors.TooManyArguments(found=len(args), expected=len(names), note=note, **facts)
    given = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name not in names:
            raise errors.UnknownKeyword(name=name, expected=", ".join(names) or "none", **facts)
        if name in given:
            raise errors.DuplicateArgument(name=name, **facts)
        given[name] = value
    for name in names:
        if name not in given:
            raise errors.MissingArgument(name=name, found=len(given), expected=len(names), **facts)
    return tuple(given[name] for name in names)
