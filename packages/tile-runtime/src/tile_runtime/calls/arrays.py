"""Facts about arrays of any library without importing it, and views that never copy.

NumPy arrays and torch tensors are read through their attributes; every other array through the DLPack protocol, by
reading the structure behind the capsule (https://dmlc.github.io/dlpack/latest/c_api.html). The capsule is not consumed.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import field
from typing import Any

from tile_runtime.abi.adapter import HOST_DEVICE
from tile_runtime.calls.dlpack import (
    CODES,
    HANDLE_DEVICES,
    NARROW_CODES,
    READ_ONLY,
    VERSION,
    DLTensor,
    Versioned,
    contiguous_strides,
)
from tile_runtime.compat.devices import device_name
from tile_runtime.errors.interrupts import passed_on
from tile_runtime.records import dataclass
from tile_runtime.types import Argument, Array, TorchTensor

IMMUTABLE_LIBRARIES = frozenset({"jax", "mlx", "tensorflow"})
"""Libraries whose arrays are immutable values."""

_PUBLIC_NAMES = {"jaxlib": "jax"}  # where a type is defined is not always where users import it from

_MOST_AXES = 64
"""More than array libraries have."""

_ADDRESSES = 1 << 63

_OVERLAP_EFFORT: Any = 10_000
"""Candidates that the exact overlap test may try (Any: NumPy's stubs know the two special values only)."""


class Unreadable(Exception):
    """The reason why an object's memory cannot be described.

    `calls.checks` converts it to an error of the catalogue.
    """


class NoArray(Unreadable):
    """The object is not an array."""


class ForeignByteOrder(Unreadable):
    """The elements are stored in the other byte order."""


@dataclass(frozen=True)
class ArrayFacts:
    """Facts about an array that a launch needs.

    Attributes
    ----------
    library
        ``"numpy"``, ``"torch"``, or the top-level package of the array's type.
    dtype
        Name of the element type.
    itemsize
        Bytes of one stored element.
    shape
        Stored extents, in elements of ``dtype``.
    strides
        In elements; ``None`` when they are not a whole number of elements.
    device
        DLPack device type and device number.
    pointer
        Address of the first element (byte offset included); on a device whose buffers have handles, its byte offset
        in the buffer.
    writable
        Whether the memory may be written.
    why_read_only
        Reason, for messages, if it is not.
    requires_grad
        Whether it is a torch tensor that requires a gradient.
    keep
        Objects other than the array itself that must stay alive while ``pointer`` is used.
    handle
        The buffer that ``pointer`` is relative to; 0 if ``pointer`` is an address.
    """

    library: str
    dtype: str
    itemsize: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    device: tuple[int, int]
    pointer: int
    writable: bool
    why_read_only: str = ""
    requires_grad: bool = False
    keep: object = field(default=None, compare=False, repr=False)
    handle: int = 0

    @property
    def size(self) -> int:
        """Number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def contiguous(self) -> bool:
        """Whether memory is contiguous and row-major (axes of extent 0 or 1 do not matter)."""
        if self.strides is None:
            return False
        step = 1
        for extent, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if extent != 1 and stride != step:
                return self.size == 0
            step *= extent
        return True

    @property
    def span(self) -> int:
        """Elements from the lowest to the highest address, both included; 0 when empty."""
        if self.size == 0 or self.strides is None:
            return self.size
        return 1 + sum((extent - 1) * abs(stride) for extent, stride in zip(self.shape, self.strides, strict=True))

    @property
    def address_range(self) -> tuple[int, int]:
        """First byte and one past the last byte of the memory that holds the elements."""
        if self.size == 0:
            return self.pointer, self.pointer
        below = sum((e - 1) * min(s, 0) for e, s in zip(self.shape, self.strides or (), strict=False))
        low = self.pointer + below * self.itemsize
        return low, low + self.span * self.itemsize

    @property
    def distinct(self) -> bool:
        """Whether the elements provably do not overlap."""
        axes = sorted((abs(s), e) for e, s in zip(self.shape, self.strides or (), strict=False) if e > 1)
        reach = 0
        for stride, extent in axes:
            if stride <= reach:
                return self.size == 0
            reach += (extent - 1) * stride
        return True


def facts_of(value: Array) -> ArrayFacts:
    """Describe an array.

    Raises
    ------
    NoArray, ForeignByteOrder, Unreadable
        With a text for the user.
    """
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        return _numpy_facts(value)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _torch_facts(value)
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__") and not isinstance(value, type):
        return _dlpack_facts(value)
    raise NoArray(_describe(value))


def library_of(value: Array) -> str:
    """The library that an object's type belongs to: its top-level package as users know it."""
    package = str(type(value).__module__).partition(".")[0]
    return _PUBLIC_NAMES.get(package, package)


def writable_alias(array: Array, storage: str) -> Array:
    """A read-only NumPy array that can be exported through DLPack without a copy.

    NumPy refuses to export read-only memory. The alias is only handed to launches that do not write it.
    """
    import numpy as np

    interface = array.view(storage).__array_interface__
    interface["data"] = (interface["data"][0], False)
    return np.asarray(_ForeignMemory(array, interface))


def empty_array(shape: tuple[int, ...], storage: str) -> Array:
    """Return an empty array with the strides of contiguous memory, unlike NumPy's own."""
    import numpy as np

    strides, step = [], np.dtype(storage).itemsize
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return np.lib.stride_tricks.as_strided(np.empty(1, storage), shape, tuple(reversed(strides)))


def numpy_alias(facts: ArrayFacts, owner: Array, storage: str | None = None) -> Array:
    """Return a writable NumPy array over the host memory of any library's array.

    It serves libraries that have no view of an array as another element type, and arithmetic on addresses. ``owner`` is
    kept alive by the alias. The address is not touched, so facts of device memory give an alias that is good for
    arithmetic on addresses only.

    Parameters
    ----------
    facts
        Facts of ``owner``; strides must be whole elements.
    owner
        The object that owns the memory.
    storage
        NumPy name of an element type of the same size; by default unsigned bytes of the item size.
    """
    import numpy as np

    view = np.dtype(storage or f"uint{8 * facts.itemsize}")
    memory = _ForeignMemory(
        (owner, facts.keep),
        {
            "version": 3,
            "typestr": view.str,
            "shape": facts.shape,
            "strides": tuple(s * facts.itemsize for s in facts.strides or ()),
            # A null address is legal for an empty array in DLPack, but not here.
            "data": (facts.pointer or facts.itemsize, False),
        },
    )
    return np.asarray(memory)


def share_memory(a: ArrayFacts, b: ArrayFacts) -> bool:
    """Whether two arrays may overlap; exact for strided arrays unless too expensive."""
    if (a.device, a.handle) != (b.device, b.handle) or not a.size or not b.size:
        return False
    (a_low, a_high), (b_low, b_high) = a.address_range, b.address_range
    if a_high <= b_low or b_high <= a_low:
        return False
    if (a.contiguous and b.contiguous) or a.itemsize > 8 or b.itemsize > 8:
        return True
    import numpy as np

    try:
        return bool(np.shares_memory(numpy_alias(a, a), numpy_alias(b, b), max_work=_OVERLAP_EFFORT))
    except np.exceptions.TooHardError:
        return True


def device_text(device: tuple[int, int]) -> str:
    """``"cpu"``, or the kind and the number of a device."""
    return device_name(HOST_DEVICE) if device[0] == HOST_DEVICE else device_name(*device)


class _ForeignMemory:
    def __init__(self, owner: object, interface: dict[str, object]) -> None:
        self.owner = owner
        self.__array_interface__ = interface


def _describe(value: Argument) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 40 else text[:37] + '...'}"


def _elements(byte_strides: tuple[int, ...], itemsize: int) -> tuple[int, ...] | None:
    if itemsize == 0 or any(s % itemsize for s in byte_strides):
        return None
    return tuple(s // itemsize for s in byte_strides)


def _numpy_facts(array: Array) -> ArrayFacts:
    kind = array.dtype
    if kind.hasobject or kind.names is not None or kind.subdtype is not None:
        raise Unreadable(f"its elements are {kind}, not numbers")
    if not kind.isnative:
        raise ForeignByteOrder(kind.str)
    if library_of(array) == "numpy" and type(array).__name__ == "MaskedArray":
        raise Unreadable("it is a masked array, whose mask a kernel would ignore")
    flags = array.flags
    return ArrayFacts(
        library="numpy",
        dtype=kind.name,
        itemsize=kind.itemsize,
        shape=array.shape,
        strides=_elements(array.strides, kind.itemsize),
        device=(HOST_DEVICE, 0),
        pointer=array.__array_interface__["data"][0],
        writable=flags.writeable,
        why_read_only="" if flags.writeable else "a read-only NumPy array",
    )


def _torch_facts(tensor: TorchTensor) -> ArrayFacts:
    torch = sys.modules["torch"]
    if tensor.is_nested:
        raise Unreadable("it is a nested tensor, whose parts have different shapes")
    if tensor.layout != torch.strided:
        raise Unreadable(f"its layout is {tensor.layout}")
    if tensor.is_quantized:
        raise Unreadable("it is quantised")
    if tensor.is_neg() or tensor.is_conj():
        raise Unreadable("it is a lazy negation or conjugate; resolve_neg() or resolve_conj() makes it dense")
    if tensor.device.type == "meta":
        raise Unreadable("it is on the meta device and has no memory")
    try:
        device = (HOST_DEVICE, 0) if tensor.device.type == "cpu" else tuple(map(int, tensor.__dlpack_device__()))
        if tensor.untyped_storage().device.type == "meta":  # whose address torch warns of
            raise Unreadable("it represents a tensor (a fake tensor, or one that is being compiled) and has no memory")
        pointer, handle = tensor.data_ptr(), 0
        if device[0] in HANDLE_DEVICES:
            handle = tensor.untyped_storage().data_ptr()
            pointer = tensor.storage_offset() * tensor.element_size()
        elif tensor.numel():
            _require_memory(tensor, pointer)
    except (RuntimeError, ValueError, BufferError, TypeError) as error:
        raise Unreadable(str(error)) from error
    return ArrayFacts(
        library="torch",
        dtype=_torch_name(tensor.dtype),
        itemsize=tensor.element_size(),
        shape=tuple(tensor.shape),
        strides=tuple(tensor.stride()),
        device=(device[0], device[1]),
        pointer=pointer,
        writable=True,
        requires_grad=tensor.requires_grad,
        handle=handle,
    )


def _require_memory(tensor: TorchTensor, pointer: int) -> None:
    """Refuse placeholder tensors, and those whose memory was freed."""
    storage = tensor.untyped_storage()
    reach = sum((extent - 1) * stride for extent, stride in zip(tensor.shape, tensor.stride(), strict=True))
    needed = (tensor.storage_offset() + reach + 1) * tensor.element_size()
    if storage.nbytes() < needed:
        found = f"its storage has {storage.nbytes()} bytes, and its elements need {needed}"
        raise Unreadable(f"{found}: it was freed or made smaller")
    if not pointer:
        raise Unreadable("it represents a tensor of a transformation, and has no memory")


def _torch_name(kind: object) -> str:
    name = str(kind).rpartition(".")[2]
    return name[: -len("_x2")] if name.endswith("_x2") else name


def _dlpack_facts(value: Argument) -> ArrayFacts:
    try:
        try:
            capsule = value.__dlpack__(max_version=(1, 1))
        except TypeError:  # older than DLPack 1.0
            capsule = value.__dlpack__()
    except Exception as error:
        passed_on(error)
        raise Unreadable(f"{library_of(value)} does not export it: {error}") from error
    tensor, read_only = _open_capsule(capsule)
    library = library_of(value)
    shape = _dlpack_shape(tensor)
    immutable = library in IMMUTABLE_LIBRARIES
    reason = f"an immutable {library} array" if immutable else "exported as read-only"
    itemsize = -(-tensor.bits * tensor.lanes // 8)
    handle = (tensor.data or 0) if tensor.device_type in HANDLE_DEVICES else 0
    facts = ArrayFacts(
        library=library,
        dtype=_dlpack_name(tensor),
        itemsize=itemsize,
        shape=shape,
        strides=_dlpack_strides(tensor, shape),
        device=(tensor.device_type, tensor.device_id),
        pointer=(tensor.data or 0) - handle + tensor.byte_offset,
        writable=not (immutable or read_only),
        why_read_only=reason if immutable or read_only else "",
        keep=capsule,
        handle=handle,
    )
    _check_memory(facts, tensor)
    return facts


def _dlpack_shape(tensor: DLTensor) -> tuple[int, ...]:
    """Return the extents of a tensor, whose structure may hold anything.

    Raises
    ------
    Unreadable
        It has no extents, or no elements that a processor has.
    """
    if not 0 <= tensor.ndim <= _MOST_AXES:
        raise Unreadable(f"its DLPack capsule has {tensor.ndim} axes")
    if tensor.ndim and not tensor.shape:
        raise Unreadable(f"its DLPack capsule has {tensor.ndim} axes and no extents")
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    if any(extent < 0 for extent in shape):
        raise Unreadable(f"its DLPack capsule has the shape {shape}")
    if not tensor.bits or not tensor.lanes:
        raise Unreadable(f"its DLPack capsule has elements of {tensor.lanes} times {tensor.bits} bits")
    return shape


def _check_memory(facts: ArrayFacts, tensor: DLTensor) -> None:
    """Refuse elements that cannot be in memory: at no address, or beyond all addresses.

    Raises
    ------
    Unreadable
        They cannot.
    """
    if not facts.size:
        return
    if not tensor.data:
        raise Unreadable(f"its DLPack capsule has the shape {facts.shape} and no memory")
    low, high = facts.address_range
    if low < 0 or high > _ADDRESSES or facts.size * facts.itemsize > _ADDRESSES:
        strides = f" and the strides {facts.strides}" if not facts.contiguous else ""
        raise Unreadable(f"its DLPack capsule has the shape {facts.shape}{strides}, which no memory holds")


def _open_capsule(capsule: Any) -> tuple[DLTensor, bool]:
    api = ctypes.pythonapi
    get = api.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    valid = api.PyCapsule_IsValid
    valid.restype, valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
    if valid(capsule, b"dltensor_versioned"):
        managed = ctypes.cast(get(capsule, b"dltensor_versioned"), ctypes.POINTER(Versioned)).contents
        if managed.major != VERSION[0]:  # of another structure
            raise Unreadable(f"its DLPack capsule has version {managed.major}.{managed.minor}")
        return managed.tensor, bool(managed.flags & READ_ONLY)
    if valid(capsule, b"dltensor"):
        return ctypes.cast(get(capsule, b"dltensor"), ctypes.POINTER(DLTensor)).contents, False
    raise Unreadable("its __dlpack__ did not return a DLPack capsule")


def _dlpack_name(tensor: DLTensor) -> str:
    if tensor.code == 6:
        return "bool" if tensor.bits == 8 else f"bool{tensor.bits}"
    if tensor.code in NARROW_CODES and tensor.lanes in (1, 2):
        return NARROW_CODES[tensor.code]
    lanes = "" if tensor.lanes == 1 else f"x{tensor.lanes}"
    return f"{CODES.get(tensor.code, f'type{tensor.code}_')}{tensor.bits}{lanes}"


def _dlpack_strides(tensor: DLTensor, shape: tuple[int, ...]) -> tuple[int, ...]:
    if tensor.strides:
        return tuple(tensor.strides[i] for i in range(tensor.ndim))
    return contiguous_strides(shape)
