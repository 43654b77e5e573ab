"""The forms of wgmma with a model: the function of an opcode, with template arguments.

PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions".
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_FORM = re.compile(
    r"wgmma\.mma_async(?P<sparse>\.sp)?\.sync\.aligned\.m64n(?P<n>\d+)k(?P<k>\d+)(?P<sat>\.satfinite)?"
    r"\.(?P<d>f32|f16|s32)\.(?P<a>\w+)\.(?P<b>\w+)"
)
_ORDERS: Mapping[str, str] = {
    "wgmma.fence.sync.aligned": "wgmma_fence",
    "wgmma.commit_group.sync.aligned": "wgmma_commit",
    "wgmma.wait_group.sync.aligned": "wgmma_wait",
}
_FORMATS = {"f16": "F16", "bf16": "Bf16", "tf32": "Tf32", "e4m3": "E4m3", "e5m2": "E5m2", "s8": "S8", "u8": "U8"}
_FP8, _INT8 = ("e4m3", "e5m2"), ("s8", "u8")
_BITS = {"f16": 16, "bf16": 16, "tf32": 32} | dict.fromkeys((*_FP8, *_INT8), 8)


def call_of(opcode: str) -> str | None:
    """Return the model's function; ``None`` if there is no such instruction."""
    if opcode in _ORDERS:
        return _ORDERS[opcode]
    found = _FORM.fullmatch(opcode)
    if found is None or found["a"] not in _BITS or found["b"] not in _BITS:
        return None
    n, k, a, b, d = int(found["n"]), int(found["k"]), found["a"], found["b"], found["d"]
    sparse = bool(found["sparse"])
    if not _has_types(a, b, d) or not has_columns(n, d == "s32") or k * _BITS[a] != (512 if sparse else 256):
        return None
    if found["sat"] and d != "s32":
        return None
    total = {"f32": "SumF32", "f16": "SumF16", "s32": f"SumS32<{'true' if found['sat'] else 'false'}>"}[d]
    name = "wgmma_sp" if sparse else "wgmma"
    return f"{name}<{n}, {k}, ptx::{_FORMATS[a]}, ptx::{_FORMATS[b]}, ptx::{total}>"


def has_columns(n: int, integers: bool) -> bool:
    """Whether an instruction has ``n`` columns; for integers multiples of 16, 8 or 24."""
    return 8 <= n <= 256 and n % 8 == 0 and (not integers or n % 16 == 0 or n in (8, 24))


def _has_types(a: str, b: str, d: str) -> bool:
    if a in _INT8 and b in _INT8:
        return d == "s32"
    if a in _FP8 and b in _FP8:
        return d in ("f32", "f16")
    return a == b and a not in _INT8 and (d == "f32" or (d, a) == ("f16", "f16"))
