"""``tile.pointers``: a table of addresses, for kernels that take ``T.Tensor((n,), T.ptr)``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tile_core.abi.adapter import HOST_DEVICE
from tile_core.compat.types import Array
from tile_core.errors.launch import NoAddress
from tile_runtime.calls.arrays import ArrayFacts, Unreadable, facts_of


class PointerTable(np.ndarray[Any, np.dtype[np.int64]]):
    """Addresses on the host.

    Attributes
    ----------
    arrays
        The arrays that they are the addresses of, which live as long as the table.
    """

    arrays: tuple[Array, ...] = ()


def pointers(arrays: Sequence[Array]) -> Array:
    """Return the addresses of arrays for a ``T.Tensor((n,), T.ptr)``: ``kernel(tile.pointers([a, b]), out)``.

    Parameters
    ----------
    arrays
        Arrays of one device and of any library. They stay alive as long as the result.

    Returns
    -------
    array
        ``int64``, of NumPy for arrays on the host, of torch for its tensors on a device. Other libraries have no
        arrays that this function could make: fill one of ``int64`` with addresses on the device.

    Raises
    ------
    NoAddress
        If an argument is not an array or has no address, or arrays are on different devices or not of torch there.

    Notes
    -----
    The table of addresses is copied to the device once, here. The arrays are used as they are: nothing checks their
    shapes and types, and what a call writes through the table is unordered with other uses of them on other streams.
    """
    facts = []
    for n, array in enumerate(arrays):
        facts.append(_facts(array, n))
        if facts[-1].device != facts[0].device:
            raise NoAddress(number=n, found=f"on device {facts[-1].device}, the first one on {facts[0].device}")
        if facts[-1].library != "torch" and facts[-1].device[0] != HOST_DEVICE:
            raise NoAddress(number=n, found=f"an array of {facts[-1].library} on device {facts[-1].device}")
    found = np.array([f.pointer for f in facts], np.uint64).astype(np.int64)
    if facts and facts[0].device[0] != HOST_DEVICE:
        there: Any = sys.modules["torch"].tensor(found, device=arrays[0].device)
        there.arrays = tuple(arrays)
        return there
    table = found.view(PointerTable)
    table.arrays = tuple(arrays)
    return table


def address_of(array: Array, number: int = 0) -> int:
    """Return the address of an array's first element.

    Raises
    ------
    NoAddress
        If it is not an array, or its device has buffers without addresses.
    """
    return _facts(array, number).pointer


def _facts(array: Array, number: int) -> ArrayFacts:
    try:
        facts = facts_of(array)
    except Unreadable as error:
        raise NoAddress(number=number, found=f"not an array: {error}") from error
    if facts.handle:
        raise NoAddress(number=number, found="in a buffer of its device that has no address")
    return facts
