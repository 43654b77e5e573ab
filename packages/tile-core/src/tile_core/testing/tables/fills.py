"""T.fill, T.clear and T.transpose."""

from __future__ import annotations

from tile_core.dtypes import DTYPES
from tile_core.testing.case import Launch, Part, Unit, one, output, refused, scalar, tensor
from tile_core.testing.data import TYPES, anything, numbers
from tile_core.testing.source import lines


def units() -> list[Unit]:
    """Return the units of this table."""
    return [*_fills(), *_regions(), *_transposes()]


def _constants(dtype: str) -> dict[str, float]:
    d = DTYPES[dtype]
    if d == "bool":
        return {"zero": 0, "true": 1}
    if d.is_integer:
        low, high = (0, 2**d.bits - 1) if d.kind == "uint" else (-(2 ** (d.bits - 1)), 2 ** (d.bits - 1) - 1)
        return {"zero": 0, "lowest": low, "highest": high, "#2427": -7 if d.kind == "int" else 7}
    if not d.has_zero:
        return {"one": 1, "half": 0.5}
    if d.is_narrow:
        return {"zero": 0, "value": -1.5}
    return {"zero": 0, "value": -1.5, "infinity": float("inf"), "nan": float("nan"), "tiny": 1e-7}


def _fills() -> list[Unit]:
    found = []
    shape = (9, 26)
    for n, dtype in enumerate(TYPES):
        parts = {}
        for name, value in _constants(dtype).items():
            scope = ("shared", "fragment", "local")[(n + len(parts)) % 3]
            tag = name.strip("#")
            body = f'''
                s_{tag} = T.alloc_{scope}({shape}, "{dtype}")
                T.fill(s_{tag}, {_literal(value)})
                T.copy(s_{tag}, B_{tag})
            '''
            parts[name] = Part((output(f"B_{tag}", dtype, *shape),), body, None)
        if DTYPES[dtype].has_zero:
            parts["clear"] = Part((output("C", dtype, *shape),), "T.clear(C)", None)
        found.append(Unit("fill", dtype, (), "", parts, {"": Launch(lambda rng: {})}))
    return found


def _literal(value: float) -> str:
    if value != value or value in (float("inf"), float("-inf")):
        return f"float('{value}')"
    return repr(value)


def _regions() -> list[Unit]:
    """Slices, runtime values, #2979: a region that reaches past its buffer."""
    params = [output("B", "float16", 12, 20), scalar("at"), scalar("v", "float32")]
    body = "T.fill(B[at : at + 5, 3:14], v)\nT.clear(B[8:12, at : at + 2])"
    launches = {
        f"#2979-{at}": lambda rng, at=at: {"at": at, "v": 1.0009765625 + at, "B": numbers(rng, (12, 20), "float16")}
        for at in (-7, -2, 0, 3, 9, 15, 40)
    }
    return [
        one("fill", "regions", params, body, None, launches),  # type: ignore[arg-type]
        refused("fill", "illegal-constant-int8", "s = T.alloc_shared((4,), 'int8')\nT.fill(s, 300)", "K104"),
        refused("fill", "illegal-constant-uint8", "s = T.alloc_shared((4,), 'uint8')\nT.fill(s, -1)", "K104"),
        refused("fill", "illegal-operand", "T.fill(5, 1)", "K201"),
    ]


def _transposes() -> list[Unit]:
    found = []
    shapes = ((1, 1), (7, 33), (17, 8), (64, 64), (1, 40), (129, 3))
    for n, dtype in enumerate(
        ("float32", "float16", "bfloat16", "int8", "int32", "uint16", "bool", "float8_e5m2", "int64")
    ):
        parts = {}
        for k in range(3):
            shape = shapes[(n + 2 * k) % 6]
            tag = f"{shape[0]}x{shape[1]}"
            body = f'''
                s_{tag} = T.alloc_shared({shape}, "{dtype}")
                t_{tag} = T.alloc_{("fragment", "shared", "local")[k]}({shape[::-1]}, "{dtype}")
                T.copy(A[0:{shape[0]}, 0:{shape[1]}], s_{tag})
                T.transpose(s_{tag}, t_{tag})
                T.copy(t_{tag}, B_{tag})
            '''
            parts[tag] = Part((output(f"B_{tag}", dtype, *shape[::-1]),), body, None)
        launch = Launch(lambda rng, t=dtype: {"A": anything(rng, (129, 64), t)})  # type: ignore[misc]
        found.append(Unit("transpose", dtype, (tensor("A", dtype, 129, 64),), "", parts, {"": launch}))
    body = lines("""
        s = T.alloc_shared((3, 7, 18), 'float32')
        T.copy(A, s)
        T.transpose(s, B)
    """)
    params = [tensor("A", "float32", 3, 7, 18), output("B", "float32", 3, 18, 7)]
    data = {"": lambda rng: {"A": anything(rng, (3, 7, 18), "float32")}}
    found.append(one("transpose", "#2626-batches", params, body, None, data))
    params = [tensor("A", "float32", 7, 18), output("B", "float16", 18, 7)]
    data = {"": lambda rng: {"A": anything(rng, (7, 18), "float32")}}
    found.append(one("transpose", "cast", params, "T.transpose(A, B)", None, data))
    body = "s = T.alloc_shared((7, 18), 'float32')\nT.transpose(A, s)"
    found.append(refused("transpose", "illegal-shape", body, "K203", params=[tensor("A", "float32", 7, 18)]))
    return found
