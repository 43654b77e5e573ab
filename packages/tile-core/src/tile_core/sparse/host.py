"""Convert host arrays of any library to bits, and results back."""

from __future__ import annotations

import importlib
import sys

import numpy as np

from tile_core.abi.adapter import HOST_DEVICE
from tile_core.compat.types import Array, DTypeLike
from tile_core.dtypes import DType
from tile_core.dtypes import dtype as to_dtype
from tile_core.errors.language import UnknownDType
from tile_core.errors.sparse import BadMetadataRank, BadSparseDType, NotAMatrix
from tile_core.records import dataclass
from tile_core.sparse.format import GROUPS, META_DTYPES, operand_type
from tile_runtime.calls.arrays import ArrayFacts, Unreadable, device_text, facts_of, numpy_alias


@dataclass(frozen=True)
class Source:
    """Where bits came from: the library, and the type that the elements had there."""

    library: str
    element: str

    def give(self, bits: Array, element: str | None = None) -> Array:
        """Return NumPy bits as an array of the library, with elements of type ``element``.

        torch and JAX get their own arrays, sharing memory where they can; every other library gets NumPy.
        """
        name = element or self.element
        if self.library == "torch":
            torch = sys.modules["torch"]
            signed = bits.view(f"int{8 * bits.itemsize}")
            return torch.from_numpy(signed).view(getattr(torch, name))
        typed = bits.view(to_dtype(name).numpy())
        if self.library == "jax":
            return importlib.import_module("jax.numpy").asarray(typed)
        return typed


def read_matrix(value: Array, dtype: DTypeLike, name: str = "A") -> tuple[Array, DType, Source]:
    """Return a matrix as unsigned integers of its width, without a copy if possible.

    Parameters
    ----------
    value
        An array of any library in host memory.
    dtype
        The operand type; by default that of the array. An array of integers may hold the codes of another type of the
        same width, and float32 may hold tfloat32.
    name
        What messages call it.

    Returns
    -------
    tuple
        The bits, the operand type, and the source.

    Raises
    ------
    NotAMatrix, BadSparseDType
        If it is not a matrix in host memory, or its type is not an operand type.
    """
    bits, found, source = _read(value, name)
    if bits.ndim != 2:
        raise NotAMatrix(name=name, found=f"{bits.ndim} dimensions {bits.shape}")
    return bits, _operand(found, source.element, bits.itemsize, dtype), source


def operand_of(facts: ArrayFacts, dtype: DTypeLike) -> DType:
    """Return the operand type of an array, see ``read_matrix``.

    Raises
    ------
    BadSparseDType
        If it has none.
    """
    try:
        found = to_dtype(facts.dtype)
    except UnknownDType:
        found = None
    return _operand(None if found is None or found.is_packed else found, facts.dtype, facts.itemsize, dtype)


def read_metadata(value: Array, rank: int | None = 2) -> tuple[Array, Source]:
    """Return metadata as unsigned integers, and the source.

    Raises
    ------
    BadMetadataRank
        If it is not an array of integers, or has another rank.
    """
    try:
        bits, found, source = _read(value, "E")
    except NotAMatrix as error:
        raise BadMetadataRank(found=error.facts["found"]) from error
    if found not in META_DTYPES or bits.ndim == 0 or rank not in (None, bits.ndim):
        raise BadMetadataRank(found=f"{source.element} of shape {bits.shape}")
    return bits, source


def _read(value: Array, name: str) -> tuple[Array, DType | None, Source]:
    try:
        facts = facts_of(value)
    except Unreadable as error:
        raise NotAMatrix(name=name, found=str(error)) from error
    if facts.device[0] != HOST_DEVICE:
        raise NotAMatrix(name=name, found=f"an array on {device_text(facts.device)}")
    if facts.strides is None:  # NumPy only: fields of packed records
        value = np.ascontiguousarray(value)
        facts = facts_of(value)
    try:
        found = to_dtype(facts.dtype)
    except UnknownDType:
        found = None
    if facts.itemsize not in (1, 2, 4, 8) or (found is not None and found.is_packed):
        raise BadSparseDType(found=facts.dtype, expected=", ".join(GROUPS))
    return numpy_alias(facts, value), found, Source(facts.library, facts.dtype)


def _operand(found: DType | None, element: str, size: int, dtype: DTypeLike) -> DType:
    if found is None:
        raise BadSparseDType(found=element, expected=", ".join(GROUPS))
    operand = operand_type(found if dtype is None else dtype)
    same = found == operand or (found.is_float and found.storage == operand.storage == "float32")
    if size * 8 != operand.bits or not (same or found.is_integer):
        raise BadSparseDType(found=f"{operand} in an array of {element}", expected=", ".join(GROUPS))
    return operand
