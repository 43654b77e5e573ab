"""Regions of numerics: strict ones have equal bits on all targets."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tile_core.testing.case import Data, Launch, Part, Unit, one, output, refused, tensor

_COUNT = 300


def units() -> list[Unit]:
    """Return the units of this table."""
    illegal = {"level": '"exact"', "no-level": "None", "number": "1", "case": '"Strict"'}
    return [
        _arithmetic("float32"), _arithmetic("float64"), _ops(1), _ops(3), _loops(),
        *(
            refused("regions", f"illegal-{name}", f"with T.numerics({level}):\n    A[0] = 1.0", "K128",
                    params=(tensor("A", "float32", 4),))
            for name, level in illegal.items()
        ),
    ]  # fmt: skip


def _residue(dtype: str, rng: np.random.Generator) -> Data:
    """Return factors and the negative of their rounded products: what is fused leaves rounding errors."""
    a, b = (rng.standard_normal(_COUNT).astype(dtype) for _ in range(2))
    return {"A": a, "B": b, "C": -(a * b)}


def _arithmetic(dtype: str) -> Unit:
    bodies = {
        "fused": 'with T.numerics("strict"):\n    {0} = A[i] * B[i] + C[i]',
        "nested": 'with T.numerics("fast"):\n    with T.numerics("strict"):\n        {0} = A[i] * B[i] + C[i]',
        "result": 'with T.numerics("strict"):\n    x = A[i] * B[i]\n{0} = x + C[i]',
        "operand": 'x = A[i] * B[i]\nwith T.numerics("strict"):\n    {0} = x + C[i]',
        "quotient": 'with T.numerics("strict"):\n    {0} = (A[i] * B[i]) / C[i] + 1',
        "looser": 'with T.numerics("strict"):\n    with T.numerics("standard"):\n        x = A[i] + 0\n'
        "    {0} = x * B[i] + C[i]",
    }
    parts = {}
    for name, text in bodies.items():
        lines = "".join(f"\n    {line}" for line in text.format(f"O_{name}[i]").splitlines())
        want = np.zeros(_COUNT, dtype)
        parts[name] = Part(
            (output(f"O_{name}", dtype, _COUNT),), f"for i in T.Parallel({_COUNT}):{lines}", lambda d, x=want: x
        )
    params = tuple(tensor(name, dtype, _COUNT) for name in "ABC")
    launch = Launch(functools.partial(_residue, dtype))
    return Unit("regions", dtype, params, "", parts, {"": launch}, threads=64)


def _ascending(terms: np.ndarray) -> np.ndarray:
    """Return the partial results of additions along the last axis, one by one."""
    zeros = np.zeros_like(terms[..., :1])
    return np.add.accumulate(np.concatenate([zeros, terms], -1), -1, dtype="float32")[..., 1:]


def _ops(stages: int) -> Unit:
    """Return a pipelined product, a reduction, a scan and a combination in regions."""
    body = f"""
        a, b = T.alloc_shared((16, 16), "float16"), T.alloc_shared((16, 16), "float16")
        c, s = T.alloc_fragment((16, 16), "float32"), T.alloc_shared((16, 16), "float32")
        r, f = T.alloc_fragment((16,), "float32"), T.alloc_fragment((16,), "float32")
        T.clear(c)
        with T.numerics("strict"):
            for k in T.Pipelined(3, num_stages={stages}):
                T.copy(A[0, k * 16], a)
                T.copy(B[k * 16, 0], b)
                T.gemm(a, b, c)
        T.copy(c, s)
        with T.numerics("strict"):
            T.reduce_sum(c, r, dim=1)
            T.reduce_with(lambda x, y: x + y, c, f, dim=1, identity=0)
            T.cumsum(s, s, dim=1)
        T.copy(c, C)
        T.copy(s, S)
        T.copy(r, R)
        T.copy(f, F)
    """

    def want(d: Data) -> dict[str, Any]:
        a, b = (np.asarray(d[name]).astype("float32") for name in "AB")
        c = _ascending(a[:, None, :] * b.T[None])[..., -1]
        states = _ascending(c)
        return {"C": c, "S": states, "R": states[:, -1], "F": states[:, -1]}

    def data(rng: np.random.Generator) -> Data:
        return {
            name: rng.standard_normal(shape).astype("float16") for name, shape in (("A", (16, 48)), ("B", (48, 16)))
        }

    params = [tensor("A", "float16", 16, 48), tensor("B", "float16", 48, 16)]
    params += [output("C", "float32", 16, 16), output("S", "float32", 16, 16)]
    params += [output("R", "float32", 16), output("F", "float32", 16)]
    return one("regions", f"ops-{stages}", params, body, want, {"": data})


def _loops() -> Unit:
    """Return a compensated sum: where operations are fused or reordered, its corrections are lost."""
    body = """
        total, lost = T.alloc_var("float32", init=0), T.alloc_var("float32", init=0)
        for i in T.serial(300):
            with T.numerics("strict"):
                y = A[i] * B[i] - lost
                t = total + y
                lost = (t - total) - y
                total = t
        O[0] = total
    """

    params = [tensor("A", "float32", _COUNT), tensor("B", "float32", _COUNT), output("O", "float32", 1)]
    return one("regions", "compensated", params, body, None, {"": functools.partial(_residue, "float32")}, threads=1)
