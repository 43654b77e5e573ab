"""Handlers of XLA's foreign function interface: targets by name, registered through ``jax-tvm-ffi``.

A handler takes the arrays of a call in XLA's order: arguments, results, then the numbers as attributes. On the CPU it
is machine code (`tile_jax.machine_code`), which also takes the symbols that shapes do not show. Elsewhere it is a
Python function that launches with addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import tile_core as tile
from tile_core.abi.adapter import Location
from tile_core.compat.tvm import tvm_ffi
from tile_core.numerics.codecs import decode
from tile_jax.checking import Number
from tile_jax.launching import WIDE
from tile_jax.machine_code import adapted
from tile_runtime.calls.convert import coded_number

if TYPE_CHECKING:
    from tile_jax.launching import JaxKernel

PLATFORMS = {"cpu": "cpu", "cuda": "gpu"}
"""XLA's name of each platform."""

_ENVIRONMENT = "tvm_ffi"  # the library whose current stream is the one that XLA calls the handler with


def register(kernel: JaxKernel, platform: str, wide: bool) -> str:
    """Register a kernel with XLA, once for each platform and version.

    Parameters
    ----------
    kernel
        The kernel.
    platform
        JAX's name of the platform.
    wide
        Whether its arrays need 64-bit offsets.

    Returns
    -------
    str
        The name of the target.
    """
    with kernel.lock:
        if (platform, wide) not in kernel.targets:
            name = kernel.name + WIDE if wide else kernel.name
            _register(name, kernel, platform, wide)
            kernel.targets[platform, wide] = name
        return kernel.targets[platform, wide]


def _register(name: str, kernel: JaxKernel, platform: str, wide: bool) -> None:
    import jax_tvm_ffi

    compiled = kernel.compiled(platform)
    code = compiled.machine_code(wide=wide)
    if code:
        function = adapted(name, kernel, code, compiled.hidden, bounded=not wide)
    else:
        function = tvm_ffi.convert(by_addresses(kernel, compiled))
    numbers = [f"attrs.number{n}" for n in range(len(_scalars(kernel)) + (len(compiled.hidden) if code else 0))]
    jax_tvm_ffi.register_ffi_target(
        name, function, ["args", "rets", *numbers], platform=PLATFORMS[platform], pass_owned_tensor=not code
    )


def attributes(kernel: JaxKernel, numbers: tuple[Number, ...], symbols: Sequence[int] = ()) -> dict[str, Any]:
    """Return the numbers and symbols of a call as XLA's attributes."""
    params = [kernel.signature.params[i] for i in _scalars(kernel)]
    coded = [coded_number(value, param.dtype) for value, param in zip(numbers, params, strict=True)]
    return {
        f"number{n}": np.float64(value) if isinstance(value, float) else np.int64(value)
        for n, value in enumerate([*coded, *symbols])
    }


def by_addresses(kernel: JaxKernel, compiled: tile.Kernel) -> Callable[..., None]:
    """Return a handler that launches with addresses, on XLA's stream.

    Parameters
    ----------
    kernel
        The kernel.
    compiled
        Its version for a runtime of the convention ``"pointers"``.
    """
    signature, count, end = kernel.signature, len(kernel.tensors), len(kernel.tensors) + len(kernel.written)
    number_of = {i: n for n, i in enumerate(_scalars(kernel))}
    known: dict[Any, tuple[Callable[..., object], tuple[int, ...]]] = {}

    def launch_for(arguments: tuple[Any, ...], numbers: tuple[Number, ...]) -> Any:
        checked = kernel.check([(tuple(a.shape), str(a.dtype)) for a in arguments], numbers, compiled)
        return compiled.launch_of(checked.wide), tuple(checked.symbols[s] for s in compiled.hidden)

    def handler(*values: Any) -> None:
        arguments, results, rest = values[:count], values[count:end], values[end:]
        numbers = tuple([_decoded(v, signature.params[i].dtype) for v, i in zip(rest, number_of, strict=True)])
        key = (tuple([tuple(a.shape) for a in arguments]), numbers)
        found = known.get(key)
        if found is None:
            found = known[key] = launch_for(arguments, numbers)
        launch, symbols = found
        at = {**dict(zip(kernel.tensors, arguments, strict=True)), **dict(zip(kernel.written, results, strict=True))}
        given = [
            numbers[number_of[i]] if i in number_of else at[i].data_ptr() for i in range(len(signature.params))
        ]  # fmt: skip
        device = results[0].device
        launch((*given, *symbols), Location((device.dlpack_device_type(), device.index), _ENVIRONMENT))

    return handler


def _scalars(kernel: JaxKernel) -> list[int]:
    return [i for i in kernel.signature.inputs if kernel.signature.params[i].kind == "scalar"]


def _decoded(value: Number, name: str) -> Number:
    """Return a number from what `coded_number` made of it."""
    if name == "uint64":
        return value % (1 << 64)
    return float(decode(value, name)) if coded_number(1.0, name) != 1.0 else value
