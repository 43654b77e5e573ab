"""Allocate a call's outputs in the library and on the device of its inputs.

NumPy arrays (also when a call has no array input) and torch tensors come from their libraries. Other libraries: on a
device from the library's own ``empty``; on the host as NumPy memory that the library adopts through DLPack, which is
checked to be the same memory. A library that copies instead (mlx) is refused. Packed 4-bit outputs are ``uint8`` arrays
with half the last extent.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable

from tile_runtime.abi.adapter import HOST_DEVICE, AdapterFacts, Location, NewArray
from tile_runtime.abi.signature import Param, Signature
from tile_runtime.calls.arrays import IMMUTABLE_LIBRARIES, Unreadable, facts_of
from tile_runtime.calls.dlpack import contiguous_strides
from tile_runtime.dtypes import dtype
from tile_runtime.errors.launch import CannotAllocate
from tile_runtime.types import Argument, Array, Torch

Make = Callable[[], "tuple[Argument, Argument]"]
"""Returns the value to launch with and the array to return; both are the same memory."""

_ALIGNMENT = 64


class Alone:
    """Allocates an output array, as a `Make`; ``make`` alone returns the array without a frame.

    Parameters
    ----------
    make
        Returns the array.
    """

    def __init__(self, make: Callable[[], Argument]) -> None:
        self.make = make

    def __call__(self) -> tuple[Argument, Argument]:
        """Return the array twice."""
        out = self.make()
        return out, out


def allocator(
    signature: Signature, param: Param, shape: tuple[int, ...], location: Location, like: Array, adapter: AdapterFacts
) -> Make:
    """A function that allocates ``param`` with the logical extents ``shape`` at each call."""
    if param.packed:
        shape = (*shape[:-1], -(-shape[-1] // 2))
    name = "uint8" if param.packed else dtype(param.dtype).container

    def refuse(reason: str) -> CannotAllocate:
        return CannotAllocate(kernel=signature.name, name=param.name, found=location.library, reason=reason)

    if adapter.allocate(location.library, shape, name, location.device) is not None:

        def from_adapter() -> tuple[Argument, Argument]:
            out = adapter.allocate(location.library, shape, name, location.device)
            return out, out.array if isinstance(out, NewArray) else out

        return from_adapter
    if location.library == "torch":
        return _torch(shape, name, like.device, refuse)
    if location.device[0] == HOST_DEVICE:
        return _numpy(shape, name) if location.library == "numpy" else _adopted(shape, name, location.library, refuse)
    return _foreign(shape, name, location, refuse)


def _numpy(shape: tuple[int, ...], name: str) -> Make:
    import numpy as np

    kind, empty = dtype(name).numpy(), np.empty

    def make() -> tuple[Array, Argument]:
        out = empty(shape, kind)
        return out, out

    return make


def _torch(shape: tuple[int, ...], name: str, device: object, refuse: Callable[[str], CannotAllocate]) -> Make:
    torch = sys.modules["torch"]
    kind = getattr(torch, name, None)
    if kind is None:
        raise refuse(f"this torch has no dtype {name}")

    quick = _quick(torch, shape, kind, device)
    if quick is not None:
        return Alone(functools.partial(quick, shape, contiguous_strides(shape), kind))

    def make() -> tuple[Array, Argument]:
        out = torch.empty(shape, dtype=kind, device=device)
        return out, out

    return make


def _quick(torch: Torch, shape: tuple[int, ...], kind: object, device: object) -> Callable[..., Argument] | None:
    """Return the allocation function of torch's compiler, if it behaves the same here.

    It takes a third of the time of ``torch.empty``.

    It allocates on the current device only, so that there must not be another one.
    """
    name = getattr(device, "type", "")
    count = getattr(getattr(torch, name, None), "device_count", None)
    if name != "cpu" and (count is None or count() != 1):
        return None
    found: Callable[..., Argument] | None = getattr(
        sys.modules.get("torch._C._dynamo.guards"), f"_empty_strided_{name}", None
    )
    try:
        made = None if found is None else found(shape, contiguous_strides(shape), kind)
    except (RuntimeError, TypeError, ValueError):
        return None
    usual = torch.empty(shape, dtype=kind, device=device)
    facts = operator.attrgetter("shape", "dtype", "device", "layout", "requires_grad")
    same = made is not None and facts(made) == facts(usual) and made.stride() == usual.stride()
    return found if same else None


def _adopted(shape: tuple[int, ...], name: str, library: str, refuse: Callable[[str], CannotAllocate]) -> Make:
    adopt = _from_dlpack(library)
    if adopt is None:
        raise refuse(f"{library} has no from_dlpack")

    def make() -> tuple[Array, Argument]:
        memory = _aligned(shape, name)
        try:
            result = adopt(memory)
            same = facts_of(result).pointer == memory.__array_interface__["data"][0] or memory.size == 0
        except (Unreadable, BufferError, TypeError, ValueError, RuntimeError) as error:
            raise refuse(f"its from_dlpack refuses: {error}") from error
        if not same:
            raise refuse("its from_dlpack copies instead of sharing the memory")
        return memory, result

    return make


def _foreign(shape: tuple[int, ...], name: str, location: Location, refuse: Callable[[str], CannotAllocate]) -> Make:
    empty = getattr(sys.modules.get(location.library), "empty", None)
    if empty is None or location.library in IMMUTABLE_LIBRARIES or location.library == "numpy":
        raise refuse("it has no writable arrays on this device")

    def make() -> tuple[Array, Argument]:
        try:
            out = empty(shape, dtype=name)
            device = facts_of(out).device
        except (Unreadable, BufferError, TypeError, ValueError, RuntimeError) as error:
            raise refuse(f"its empty() refuses: {error}") from error
        if device != location.device:
            raise refuse(f"its empty() allocates on device {device}, the inputs are on {location.device}")
        return out, out

    return make


def _from_dlpack(library: str) -> Callable[[Array], Argument] | None:
    for module in (library, f"{library}.numpy", f"{library}.dlpack", f"{library}.utils.dlpack"):
        adopt = getattr(sys.modules.get(module), "from_dlpack", None)
        if adopt is not None:
            found: Callable[[Array], Argument] = adopt
            return found
    return None


def _aligned(shape: tuple[int, ...], name: str) -> Array:
    import numpy as np

    kind = dtype(name).numpy()
    size = kind.itemsize * int(np.prod(shape, dtype=np.int64))
    raw = np.empty(size + _ALIGNMENT, np.uint8)
    start = -raw.__array_interface__["data"][0] % _ALIGNMENT
    return raw[start : start + size].view(kind).reshape(shape)
