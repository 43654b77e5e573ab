"""NumPy aliases of other libraries' memory: cheap to make, and their calls have forms."""

from __future__ import annotations

from collections.abc import Callable

from tile_runtime.abi.adapter import HOST_DEVICE
from tile_runtime.abi.signature import Signature
from tile_runtime.types import Argument

Aliases = Callable[[tuple[Argument, ...]], tuple[Argument, ...] | None]
"""Returns arguments with NumPy's arrays of the same memory.

``None`` if an array has none: it is not in host memory, NumPy lacks its element type, or it may not be written where
the kernel writes. The full checks decide about such a call.
"""

_NUMBERS = (int, float, bool)


def host_aliases(signature: Signature, types: tuple[type, ...]) -> Aliases | None:
    """Return the aliases of arguments of these types.

    ``None`` if none is needed, or an argument has a form of its own.
    """
    import numpy

    plain = (numpy.ndarray, *_NUMBERS)
    foreign = [(i, kind) for i, kind in enumerate(types) if kind not in plain]
    own = [k for _, k in foreign if issubclass(k, numpy.ndarray) or k.__module__.partition(".")[0] == "torch"]
    if not foreign or own:
        return None
    from_dlpack = numpy.from_dlpack
    written = [(i, signature.params[signature.inputs[i]].writes) for i, _ in foreign]

    def aliases(args: tuple[Argument, ...]) -> tuple[Argument, ...] | None:
        values = list(args)
        try:
            for i, writes in written:
                value = values[i]
                if value.__dlpack_device__()[0] != HOST_DEVICE:
                    return None
                values[i] = alias = from_dlpack(value)
                if writes and not alias.flags.writeable:
                    return None
        except Exception:  # whatever another library raises: the full checks name it
            return None
        return tuple(values)

    return aliases
