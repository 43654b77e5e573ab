"""Thousands of random index expressions per kernel: indices, values and conditions.

Every expression becomes a statement of a kernel whose loop, element type and sizes are drawn too. What the kernel
leaves is compared with the evaluator of ``expressions``, point by point. A wrong expression is made small in a kernel
of its own.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tile_core.records import dataclass
from tile_core.testing.case import EXACT, Data, Launch, Param, Part, Unit, output, scalar, tensor
from tile_core.testing.data import from_codes
from tile_core.testing.expressions import Chooser, Expression, expression, value
from tile_core.testing.plain.numbers import Illegal, Number, convert

#: How a kernel runs through its points: the text of the loop, its variables, its points.
_LOOPS: dict[str, tuple[str, tuple[str, ...], tuple[tuple[int, ...], ...]]] = {
    "parallel": ("for i in T.Parallel(24):", ("i",), tuple((i,) for i in range(24))),
    "parallel-2d": ("for i, j in T.Parallel(3, 7):", ("i", "j"), tuple((i, j) for i in range(3) for j in range(7))),
    "serial": ("for i in T.serial(17):", ("i",), tuple((i,) for i in range(17))),
    "down": ("for i in T.serial(12, -4, -1):", ("i",), tuple((i,) for i in range(12, -4, -1))),
    "grid": ("for i, j in T.grid(5, 4):", ("i", "j"), tuple((i, j) for i in range(5) for j in range(4))),
    "unroll": ("for i in T.unroll(6):", ("i",), tuple((i,) for i in range(6))),
    "vectorized": ("for i in T.vectorized(8):", ("i",), tuple((i,) for i in range(8))),
    "static": ("for i in T.static_range(5):", ("i",), tuple((i,) for i in range(5))),
    "blocks": ("", ("bx",), tuple((b,) for b in range(19))),
    "mixed": ("for i in T.Parallel(8):", ("bx", "i"), tuple((b, i) for b in range(3) for i in range(8))),
    "far": (
        f"for i in range({-(2**31)}, {2**31 - 1}, {2**29}):",
        ("i",),
        tuple((i,) for i in range(-(2**31), 2**31 - 1, 2**29)),
    ),
    "stride": (f"for i in range(a, b, {2**29}):", ("i",), ((0,),) * 8),
    "stride-down": (f"for i in T.serial(b, a, {-(2**29)}):", ("i",), ((0,),) * 8),
}
#: Steps of the loops between the scalar parameters ``a`` and ``b``; the table above has at most this number of points.
_STRIDES = {"stride": 2**29, "stride-down": -(2**29)}
#: Launches: the size, the scalar parameters ``v`` and ``w``, and the bounds of strides.
Size = tuple[int, int, int, int, int]
_BOUNDS = (-(2**31), -(2**31) + 1, -(2**30), -5, 0, 7, 2**30, 2**31 - 2, 2**31 - 1)
_EXTREMES = (2**31 - 1, -(2**31), 2**31 - 8, -(2**30) - 1, 2**30)
#: Loops whose indices are constant in Python or in the compiler, which rejects negative ones.
_KNOWN = ("unroll", "static")
_SIZE = 29
_USES = ("load", "load", "load", "value", "condition", "store", "load4", "sized", "sized", "pair")


@dataclass(frozen=True)
class Statement:
    """An expression in a kernel.

    Attributes
    ----------
    use
        ``"load"``, ``"load4"`` (4-bit elements), ``"sized"`` (a tensor of symbolic size), ``"pair"`` (of two
        dimensions), ``"store"``, ``"value"`` or ``"condition"``.
    e
        The expression.
    """

    use: str
    e: Expression

    def line(self, n: int) -> str:
        """Return the statement, whose results are row ``n``; ``p`` is the number of the point."""
        e = str(self.e)
        return {
            "load": f"B[{n}, p] = A[{e}]", "load4": f'B[{n}, p] = T.cast(P[{e}], "int32")',
            "sized": f"B[{n}, p] = D[{e}]",
            "pair": f"B[{n}, p] = A2[{e}, ({e}) % 5]", "value": f'B[{n}, p] = T.cast({e}, "int32")',
            "condition": f"if {e} > 3:\n    B[{n}, p] = 7", "store": f"S[{n}, {e}] = p + 1",
        }[self.use]  # fmt: skip


@dataclass(frozen=True)
class IndexKernel:
    """A kernel of many statements over the same points."""

    loop: str
    statements: tuple[Statement, ...]
    seed: int
    sizes: tuple[Size, ...]

    @property
    def capacity(self) -> int:
        """The number of points, at most."""
        return len(_LOOPS[self.loop][2])

    def points(self, d: Data) -> tuple[tuple[int, ...], ...]:
        """Return the values of the variables at every point of a launch."""
        step = _STRIDES.get(self.loop)
        if step is None:
            return _LOOPS[self.loop][2]
        low, high = int(d["a"]), int(d["b"])
        return tuple((i,) for i in (range(low, high, step) if step > 0 else range(high, low, step)))

    def unit(self) -> Unit:
        """Return the kernel as a unit of the kit."""
        head = _LOOPS[self.loop][0]
        number = _number(self.loop)
        lines = [f"p = {number}", *(line for n, s in enumerate(self.statements) for line in s.line(n).splitlines())]
        body = "\n".join([head, *("    " + x for x in lines)] if head else lines)
        rows, used = max(1, len(self.statements)), " ".join(s.use for s in self.statements)
        params = [tensor("A", "int32", _SIZE)] if "load" in used.split() else []
        params += [tensor("P", "uint4", 30)] if "load4" in used else []
        params += [tensor("D", "int32", "m")]
        params += [tensor("A2", "int32", 7, 5)] if "pair" in used else []
        params += [scalar("v"), scalar("w", "int64"), scalar("u", "uint8")]
        params += [scalar("a"), scalar("b")] if self.loop in _STRIDES else []
        params += [output("B", "int32", rows, self.capacity)]
        params += [output("S", "int32", rows, _SIZE)] if "store" in used else []
        launches = {
            f"m={m},v={v},w={w}" + (f",a={a},b={b}" if self.loop in _STRIDES else ""): Launch(
                functools.partial(self.data, (m, v, w, a, b), params)
            )
            for m, v, w, a, b in self.sizes
        }
        part = Part((), body, lambda d: self.expected(d, params), EXACT)
        grid = "19" if self.loop == "blocks" else "3" if self.loop == "mixed" else "1"
        return Unit(
            "indices", f"{self.loop}-{self.seed}", tuple(params), "", {"": part}, launches, grid=grid, threads=32,
            symbols=("m",),
        )  # fmt: skip

    def data(self, size: Size, params: Sequence[Param], rng: Any = None) -> Data:
        """Return the inputs of a launch: every element holds its own position."""
        made = {**_scalars(*size), "D": np.arange(100, 100 + size[0], dtype=np.int32)}
        made |= {"A": np.arange(1, _SIZE + 1, dtype=np.int32), "A2": np.arange(1, 36, dtype=np.int32).reshape(7, 5)}
        made["P"] = from_codes(np.arange(30) * 7 % 15 + 1, "uint4")
        rows = max(1, len(self.statements))
        made["B"] = np.full((rows, self.capacity), -5, np.int32)
        made["S"] = np.full((rows, _SIZE), -5, np.int32)
        names = {p.name for p in params}
        return {k: x for k, x in made.items() if k in names or k == "m"}

    def expected(self, d: Data, params: Sequence[Param]) -> dict[str, Any]:
        """Return the evaluator's result."""
        b = np.full((max(1, len(self.statements)), self.capacity), -5, np.int64)
        s = np.full((max(1, len(self.statements)), _SIZE), -5, np.int64)
        for n, statement in enumerate(self.statements):
            text = str(statement.e)
            for p, names in enumerate(self.environments(d)):
                x = int(value(text, names))
                if statement.use == "store":
                    if 0 <= x < _SIZE:
                        s[n, x] = p + 1
                elif statement.use != "condition":
                    b[n, p] = _read(statement.use, x, d)
                elif x > 3:
                    b[n, p] = 7
        return {"B": b, "S": s} if any(p.name == "S" for p in params) else {"B": b}

    def environments(self, d: Data, *, some: bool = False) -> Iterator[dict[str, Any]]:
        """Yield the variables at every point.

        With ``some``, yield one possibly invalid point if there is none.
        """
        names = _LOOPS[self.loop][1]
        fixed = {"m": Number(int(d["m"]), "int32"), "v": Number(int(d["v"]), "int32")}
        fixed |= {"w": Number(int(d["w"]), "int64"), "u": Number(int(d["u"]), "uint8")}
        points = self.points(d) or ((0,) * len(names),) * some
        for point in points:
            loops = dict(zip(names, point, strict=True))
            yield fixed | ({k: i if self.loop == "static" else Number(i, "int32") for k, i in loops.items()})


def _number(loop: str) -> str:
    """Return the text of a point's number."""
    return {
        "parallel-2d": "i * 7 + j", "grid": "i * 4 + j", "down": "12 - i", "blocks": "bx", "mixed": "bx * 8 + i",
        "far": f'T.cast((T.cast(i, "int64") + {2**31}) // {2**29}, "int32")',
        "stride": f'T.cast((T.cast(i, "int64") - T.cast(a, "int64")) // {2**29}, "int32")',
        "stride-down": f'T.cast((T.cast(b, "int64") - T.cast(i, "int64")) // {2**29}, "int32")',
    }.get(loop, "i + 0" if loop != "static" else "i")  # fmt: skip


def _read(use: str, x: int, d: Data) -> int:
    if use == "value":
        return int(convert(x, "int32").value)
    if use == "load4":
        return x * 7 % 15 + 1 if 0 <= x < 30 else 0
    if use == "sized":
        return 100 + x if 0 <= x < int(d["m"]) else 0
    if use == "pair":
        return x * 5 + x % 5 + 1 if 0 <= x < 7 else 0
    return x + 1 if 0 <= x < _SIZE else 0


@dataclass
class Dice:
    """A chooser for thousands: a seeded generator."""

    random: random.Random

    def pick(self, items: Sequence[Any]) -> Any:
        """Return one of the items."""
        return self.random.choice(items)

    def integer(self, low: int, high: int) -> int:
        """Return an integer of a closed range."""
        return self.random.randint(low, high)


def kernel(choose: Chooser, count: int, seed: int = 0, loop: str | None = None) -> IndexKernel:
    """Draw a kernel of ``count`` statements."""
    loop = loop or choose.pick(tuple(_LOOPS))
    names = (*_LOOPS[loop][1], *_LOOPS[loop][1], "v", "m", choose.pick(("w", "u", "v")))
    limits = choose.integer(0, 4) == 0
    sizes = [_size(choose, limits, 40, (-9, 9), (-20, 2**33)) for _ in range(2)]
    sizes.append((_SIZE, *_size(choose, limits, 1, (-100, 200), (-40, 40))[1:]))
    empty = IndexKernel(loop, (), seed, tuple(sizes))
    statements: list[Statement] = []
    while len(statements) < count:
        e = expression(choose, names, choose.integer(1, 3), limits)
        made = Statement(choose.pick(_USES), e)
        if made.use == "store" and loop not in ("serial", "down", "grid", "far", *_STRIDES):
            made = Statement("load", e)  # iterations that are independent must not store to one place
        if is_legal(empty, made):
            statements.append(made)
    return replace(empty, statements=tuple(statements))


def _size(choose: Chooser, limits: bool, most: int, v: tuple[int, int], w: tuple[int, int]) -> Size:
    """Draw the scalars of a launch."""
    near = limits and choose.integer(0, 1) == 0
    a, b = choose.pick(_BOUNDS), choose.pick(_BOUNDS)
    return choose.integer(1, most), choose.pick(_EXTREMES) if near else choose.integer(*v), choose.integer(*w), a, b


def is_legal(k: IndexKernel, s: Statement) -> bool:
    """Return whether the language accepts a statement.

    Constant indices must be in bounds, and constants must fit.
    """
    known = k.loop in _KNOWN or not s.e.names()
    try:
        if s.use == "condition" and isinstance(
            value(str(s.e), next(k.environments(_scalars(*k.sizes[0]), some=True))), int
        ):
            return False
        return all(_fits(k, s, _scalars(*size), known) for size in k.sizes)
    except (Illegal, ZeroDivisionError, ValueError):
        return False


def _fits(k: IndexKernel, s: Statement, d: Data, known: bool) -> bool:
    found = [value(str(s.e), names) for names in k.environments(d, some=True)]
    whole = [int(x) for x in found]
    if any(not -(2**31) <= x < 2**31 for x in whole):
        return s.use == "value" and not isinstance(found[0], int)
    if s.use in ("value", "condition"):
        return True
    # What simplifies to a constant is a constant to the compiler too.
    if known or len(set(whole)) == 1:
        return min(whole) >= 0 and max(whole) < {"load4": 30, "pair": 7, "sized": int(d["m"])}.get(s.use, _SIZE)
    return True


def _scalars(m: int, v: int, w: int, a: int, b: int) -> Data:
    return {"m": m, "v": v, "w": w, "u": (v * 37 + 5) % 256, "a": a, "b": b}


def guilty(k: IndexKernel, fails: Callable[[IndexKernel], str], tries: int = 80) -> IndexKernel:
    """Reduce a failing kernel: usually to one statement, more if several must combine."""
    chunks = 2
    while len(k.statements) > 1 and tries > 0:
        size = max(1, len(k.statements) // chunks)
        cuts = range(0, len(k.statements), size)
        parts = [replace(k, statements=k.statements[c : c + size]) for c in cuts]
        rests = [replace(k, statements=k.statements[:c] + k.statements[c + size :]) for c in cuts] if chunks > 2 else []
        worse = next((p for p in [*parts, *rests] if p.statements and fails(p)), None)
        tries -= len(parts) + len(rests)
        if worse is not None:
            k, chunks = worse, 2
        elif size == 1:
            break
        else:
            chunks *= 2
    return k


def smallest(k: IndexKernel, fails: Callable[[IndexKernel], str], tries: int = 60) -> IndexKernel:
    """Return a kernel of one statement with the simplest expression found that fails."""
    smaller = len(k.statements) == 1
    while smaller:
        smaller = False
        for e in k.statements[0].e.smaller():
            made = replace(k, statements=(replace(k.statements[0], e=e),))
            if not is_legal(made, made.statements[0]):
                continue
            if not tries:
                return k
            tries -= 1
            if fails(made):
                k, smaller = made, True
                break
    return k
