"""Inputs for profiling: their values, and their library."""

from __future__ import annotations

import enum
import functools
import importlib
import importlib.util
import itertools
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tile_core.abi.signature import Param, Signature
from tile_core.compat.types import Array
from tile_core.dtypes import dtype
from tile_core.errors.launch import MissingArgument
from tile_core.runtime.kernel import Kernel, there
from tile_core.runtime.verify import random_arguments
from tile_tilelang.errors import BadCall


class TensorSupplyType(enum.Enum):
    """Value distributions of a profiler's inputs.

    ``Auto`` is ``Normal`` for floats and small integers for integers; packed types of 4 bits are always random.
    """

    Integer = 1
    Uniform = 2
    Normal = 3
    Randn = 4
    Zero = 5
    One = 6
    Auto = 7


def inputs_of(kernel: Kernel, supply: TensorSupplyType = TensorSupplyType.Auto, seed: int = 0) -> tuple[Any, ...]:
    """Return random inputs for a kernel of constant shapes.

    They are tensors of torch if the program has imported torch, or if the kernel's device has memory of its own and
    torch is installed; NumPy arrays or arrays on the device otherwise.

    Raises
    ------
    BadCall
        If an input is a number, or its shape has symbols.
    """
    from tile_core.ops.held_codes import held_codes

    made = numbers_of(kernel.signature, supply, seed, held_codes(kernel.program))
    return tuple(there_for(kernel, v) for v in made)


def numbers_of(
    signature: Signature,
    supply: TensorSupplyType = TensorSupplyType.Auto,
    seed: int = 0,
    held: Mapping[str, str] | None = None,
) -> list[Array]:
    """Return the same as NumPy arrays.

    Words that ``held`` names are legal whatever the supply (see ``held_codes``).

    Raises
    ------
    BadCall
        As of `inputs_of`.
    """
    if not isinstance(supply, TensorSupplyType):
        expected = "a TensorSupplyType"
        raise BadCall(
            function="get_profiler", name="tensor_supply_type", found=repr(supply), expected=expected,
            instead="leave it out",
        )  # fmt: skip
    try:
        values = random_arguments(signature, seed, held or {})
    except MissingArgument:
        names = [signature.params[i].name for i in signature.inputs]
        raise BadCall(
            function=f"profiler of {signature.name}", name="input_tensors", found="missing",
            expected="given: an input is a number, or its shape has symbols",
            instead=f"pass input_tensors=[{', '.join(names)}]",
        ) from None  # fmt: skip
    return _supplied(signature, values, supply, seed, held or {})


def host(array: Any) -> Any:
    """Return an array of any library as a NumPy array of float64."""
    import numpy as np

    if hasattr(array, "detach"):
        array = array.detach().cpu().double().numpy()
    elif not isinstance(array, np.ndarray) and hasattr(array, "get"):
        array = array.get()
    return np.asarray(array).astype("float64")


def _supplied(
    signature: Signature, values: Sequence[Array], supply: TensorSupplyType, seed: int, held: Mapping[str, str]
) -> list[Array]:
    import numpy as np

    rng = np.random.default_rng(seed)
    kinds: dict[TensorSupplyType, Callable[[Any], Array]] = {
        TensorSupplyType.Integer: lambda shape: rng.integers(-2, 3, shape),
        TensorSupplyType.Uniform: lambda shape: rng.uniform(-1, 1, shape),
        TensorSupplyType.Zero: np.zeros,
        TensorSupplyType.One: np.ones,
    }
    make = kinds.get(supply)
    found = []
    for position, value in zip(signature.inputs, values, strict=True):
        param = signature.params[position]
        kind = dtype(param.dtype)
        plain = make is None or kind.is_packed or param.name in held
        made = value if make is None or plain else make(value.shape)
        found.append(made if plain else (np.abs(made) if kind.kind == "uint" else made).astype(value.dtype))
    return found


def there_for(kernel: Kernel, array: Array) -> Any:
    """Return an input in the kernel's memory, a torch tensor if the program uses torch."""
    if not hasattr(array, "__array_interface__") or hasattr(array, "detach"):
        return array
    moved = functools.partial(there, kernel.adapter)
    found = moved(array) if sys.modules.get("torch") is None else None
    if found is not None and (found is array or importlib.util.find_spec("torch") is None):
        return found
    return _as_torch(array, moved)


def of_script(result: Any, given: Iterable[Any]) -> Any:
    """Return several results as a list; as tensors where torch is used without arrays."""
    result = list(result) if isinstance(result, tuple) else result
    if result is None or sys.modules.get("torch") is None or any(hasattr(v, "__dlpack__") for v in given):
        return result
    if isinstance(result, list):
        return [of_script(one, ()) for one in result]
    return _as_torch(result, lambda array: array)


def get_tensor_supply(supply_type: TensorSupplyType = TensorSupplyType.Integer) -> Callable[[Any], Any]:
    """Return a function from a parameter to a random tensor of torch."""
    seeds = itertools.count()

    def supplied(param: Any) -> Any:
        import torch

        one = Param("X", "tensor", str(param.dtype), tuple(map(int, param.shape)))
        (values,) = numbers_of(Signature("get_tensor_supply", (one,)), supply_type, next(seeds))
        return _as_torch(values, lambda array: array).to("cuda" if torch.cuda.is_available() else "cpu")

    return supplied


def _as_torch(array: Array, moved: Callable[[Array], Any]) -> Any:
    torch, kind = importlib.import_module("torch"), dtype(array.dtype)
    if kind.storage == kind:
        return torch.from_dlpack(moved(array))
    bits = array.view("int16" if kind.bits == 16 else "uint8")  # torch takes only those from NumPy
    return torch.from_dlpack(moved(bits)).view(kind.as_torch())
