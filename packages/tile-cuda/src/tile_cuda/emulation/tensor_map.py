"""Tensor maps as the models of copies read them: ``ptx::Map`` of ``headers/ptx_tensor.h``."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING

from tile_core.errors.base import InternalError
from tile_cuda_runtime.tensor_map import BYTES, SWIZZLES, TensorMap, broken_rules

if TYPE_CHECKING:
    from tile_core.abi.kernel_text import ParamFact

_FORMAT = "<Q5Q4Q5H6B32x"
_MARK = 0x7A
assert struct.calcsize(_FORMAT) == BYTES


def opaque(param: ParamFact, values: Mapping[str, object]) -> tuple[bytes, tuple[tuple[int, str], ...]]:
    """Return the bytes of a map, and the offset and parameter of its address.

    Parameters
    ----------
    param
        A parameter with a descriptor.
    values
        Scalars of the call by name, and its arrays.
    """
    if param.descriptor is None:
        raise InternalError(stage="emulation", detail=f"the opaque parameter {param.name} has no descriptor")
    source = param.descriptor.source
    numbers = {name: int(value) for name, value in values.items() if isinstance(value, Integral)} | {source: 0}
    return encode(TensorMap.of(param.descriptor.at(numbers))), ((0, source),)


def encode(fields: TensorMap) -> bytes:
    """Return the bytes of a map that the driver would accept.

    Raises
    ------
    InternalError
        It breaks a rule: the lowering has to check it.
    """
    for rule in broken_rules(fields.of_zeros(0) if fields.is_empty else fields):
        detail = f"a tensor map whose {rule.what} {rule.found(fields)} is not {rule.expected}"
        raise InternalError(stage="emulation", detail=detail)

    def padded(values: tuple[int, ...], count: int) -> tuple[int, ...]:
        return (*values, *(1,) * (count - len(values)))

    rank, code = len(fields.extents), fields.code
    return struct.pack(
        _FORMAT, fields.address, *padded(fields.extents, 5), *padded(fields.strides, 4), *padded(fields.box, 5),
        _MARK, rank, fields.element_bytes, code, SWIZZLES[fields.swizzle], fields.nan,
    )  # fmt: skip
