"""Export memory of any device as a DLPack capsule, without an array library.

The structures are those of https://dmlc.github.io/dlpack/latest/c_api.html. A capsule keeps its memory alive until the
library that takes it, or else the capsule itself, lets go of it.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any

from tile_runtime.dtype_table import TABLE

READ_ONLY = 1
"""The flag of a versioned capsule whose memory must not be written."""

VERSION = (1, 1)

CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}
"""Families of element types: a name is a family and its bits."""

NARROW_CODES = {row.dlpack: row.name for row in TABLE if row.dlpack > max(CODES)}
"""Element types with a code of their own."""


HANDLE_DEVICES = frozenset({4, 7, 8})
"""Device types whose ``data`` is the handle of a buffer, to which ``byte_offset`` is relative, not an address."""


class DLTensor(ctypes.Structure):
    """``DLTensor``."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    """``DLManagedTensor``."""

    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    """``DLManagedTensorVersioned``."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    ]


def export(
    pointer: int,
    device: tuple[int, int],
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: str,
    keep: object,
    *,
    max_version: tuple[int, int] | None = None,
    read_only: bool = False,
    byte_offset: int = 0,
) -> object:
    """Return a capsule over memory, as ``__dlpack__`` returns it.

    Parameters
    ----------
    pointer
        Address of the first element, less ``byte_offset``; the handle of a buffer on devices that have handles.
    device
        DLPack device type and device number.
    shape, strides
        In elements.
    dtype
        Name of the element type.
    keep
        The owner of the memory; it stays alive while the capsule's contents may be used.
    max_version
        The version that the consumer supports; ``None``, older than DLPack 1.0, gets an unversioned capsule.
    read_only
        Whether the memory must not be written.
    byte_offset
        Offset of the first element from ``pointer``.

    Raises
    ------
    BufferError
        DLPack has no code for the element type, or an old consumer would write read-only memory.
    """
    versioned = max_version is not None and max_version[0] >= 1
    if read_only and not versioned:
        raise BufferError("the memory is read-only, which a consumer older than DLPack 1.0 cannot represent")
    managed = Versioned() if versioned else Managed()
    if isinstance(managed, Versioned):
        (managed.major, managed.minor), managed.flags = VERSION, READ_ONLY if read_only else 0
    managed.deleter = ctypes.cast(_deleter, ctypes.c_void_p)
    extents = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    steps = (ctypes.c_int64 * max(len(strides), 1))(*strides)
    tensor = managed.tensor
    tensor.data, (tensor.device_type, tensor.device_id), tensor.ndim = pointer, device, len(shape)
    tensor.code, tensor.bits = code_of(dtype)
    tensor.lanes, tensor.byte_offset = 1, byte_offset
    tensor.shape = ctypes.cast(extents, ctypes.POINTER(ctypes.c_int64))
    tensor.strides = ctypes.cast(steps, ctypes.POINTER(ctypes.c_int64))
    address = ctypes.addressof(managed)
    name = _VERSIONED if versioned else _OLD
    _alive[address] = (managed, extents, steps, keep)
    return _new(address, name, _destructor)


def code_of(dtype: str) -> tuple[int, int]:
    """Return DLPack's code and bits of an element type.

    Raises
    ------
    BufferError
        There is none.
    """
    for row in TABLE:
        if row.name == dtype and row.dlpack >= 0:
            return row.dlpack, row.bits
    raise BufferError(f"DLPack has no code for {dtype}")


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides, in elements, of row-major memory without gaps."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


_OLD, _VERSIONED = b"dltensor", b"dltensor_versioned"

#: Memory that consumers may still use, by the address of the structure that they hold.
_alive: dict[int, tuple[object, ...]] = {}


def _forget(address: int) -> None:
    _alive.pop(address, None)


# The capsule is being destroyed when its destructor is called, so it must not become a Python object again: its
# address is passed on as a number.
def _drop(capsule: int) -> None:
    for name in (_OLD, _VERSIONED):  # a consumer renames what it takes, and calls the deleter when it is done
        if _is_valid(capsule, name):
            _forget(_pointer(capsule, name))


_Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_deleter, _destructor = _Callback(_forget), _Callback(_drop)
_is_valid: Callable[[int, bytes], int] = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_pointer: Callable[[int, bytes], int] = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_new: Callable[[int, bytes, Any], object] = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _Callback
)(("PyCapsule_New", ctypes.pythonapi))
