"""NumPy aliases of other libraries' memory: cheap to make, and their calls have forms."""

from __future__ import annotations

from tile_runtime.abi.adapter import HOST_DEVICE
from tile_runtime.abi.signature import Signature
from tile_runtime.types import Argument

_NUMBERS = (int, float, bool)


def host_aliases(signature: Signature, args: tuple[Argument, ...]) -> tuple[Argument, ...] | None:
    """Return arguments with NumPy's arrays of the same memory.

    Returns
    -------
    tuple or None
        ``None`` if an array has none: it is not in host memory, NumPy lacks its element type, or it may not be written
        where the kernel writes. The full checks decide about such a call.
    """
    import numpy

    if len(args) != len(signature.inputs):
        return None
    found, foreign = [], False
    for position, value in zip(signature.inputs, args, strict=True):
        alias = value
        if type(value) not in (numpy.ndarray, *_NUMBERS):
            if isinstance(value, numpy.ndarray) or type(value).__module__.partition(".")[0] == "torch":
                return None  # these have rules, or forms, of their own
            try:
                if value.__dlpack_device__()[0] != HOST_DEVICE:
                    return None
                alias = numpy.from_dlpack(value)
            except Exception:  # whatever another library raises: the full checks name it
                return None
            if signature.params[position].writes and not alias.flags.writeable:
                return None
            foreign = True
        found.append(alias)
    return tuple(found) if foreign else None
