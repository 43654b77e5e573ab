"""Bools as values: named, compared, chained, as integers, in tiles and branches."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tile_core.testing.case import Data, Launch, Part, Unit, output, refused, tensor
from tile_core.testing.data import TYPES
from tile_core.testing.source import lines

#: One element has no vectors; of 67, vectors of several widths are left over.
SIZES = (1, 67)
#: Steps of a chain: where names are unfolded, it takes years to compile.
STEPS = 60


def units() -> list[Unit]:
    """Return the units of this table."""
    return [*_expressions(), *_numbers(), *_conversions(), *_chains(), *_tiles(), *_variables(), *_refusals()]


#: Bools of x, y and the number a.
LOGIC = {
    "eq": "x == y", "ne": "x != y", "eq_true": "x == True", "eq_false": "False == x", "ne_true": "x != True",
    "ne_false": "False != y", "eq_self": "x == x", "eq_not": "x == (not y)", "lt": "x < y", "le": "x <= y",
    "gt": "x > y", "ge": "x >= y", "lt_true": "x < True", "ge_false": "x >= False", "gt_true": "True < y",
    "le_false": "y <= False", "and_const": "x and a * 0 == 0", "band_const": "x & True", "bor_const": "x | True",
    "xor_const": "x ^ True", "any_const": "T.any_of(x, False)", "all_const": "T.all_of(True, y)",
    "max_const": "T.max(x, False)", "min_const": "T.min(True, x)", "eq_consts": "x == (y != True)", "land": "x and y",
    "lor": "x or y", "lnot": "not x", "invert": "~x", "band": "x & y", "bor": "x | y", "bxor": "x ^ y",
    "any": "T.any_of(x, y, a == 5)", "all": "T.all_of(x, y, a != 5)", "max": "T.max(x, y)", "min": "T.min(x, y, a < 9)",
    "clamp": "T.clamp(x, y, True)", "clamp_low": "T.clamp(x, y)", "clamp_high": "T.clamp(x, max_val=y)",
    "abs": "T.abs(x)", "clamp_none": "T.clamp(x, True, y)", "clamp_both": "T.clamp(a > 5, x and y, y)",
    "chosen": "T.if_then_else(x, y, x != y)", "mixed": "x == (a > 1)", "chosen_const": "T.if_then_else(x, True, y)",
    "select": "T.Select(y, x == y, x)", "converted": "T.cast(a, 'bool') == x", "number": "x == a", "one": "x == 1",
}  # fmt: skip
#: Numbers of them.
NUMBERS = {
    "sum": "x + y", "difference": "x - y", "product": "x * y", "negative": "-x", "shifted": "x << 2",
    "popcount": "T.popcount(x)", "quotient": "(x + 6) // (y + 1)", "scaled": "(x == y) * a", "beside": "a + (x != y)",
    "chosen": "T.if_then_else(x == y, a, 2)", "select": "T.Select(x != y, a, 2)",
    "floats": "T.cast((x == y) * 1.5 + a * 2.0, 'int32')", "index": "A[T.cast(x != y, 'int32') * 0]",
}  # fmt: skip
#: What a step makes of x in a chain; it uses a value twice, or the value of the step before in two names.
CHAINS = {
    "eq": "x == (a > 1)", "ne": "y != x", "eqne": "(x == y) != x",
    "anyall": "T.any_of(T.all_of(x, y), T.all_of(not x, a < 7))", "logic": "(x and y) or (not x and a < 4)",
    "bits": "(x & y) ^ ~x", "select": "T.Select(x, y, x == (a < 9))", "chosen": "T.if_then_else(x, y, x == (a < 9))",
    "extremes": "T.max(T.min(x, y), x != (a < 6))", "quotients": "a == x // (y + 1)",
    "numbers": "T.cast(x + y * x + a, 'int32') % 2 == 0",
}  # fmt: skip


def _unit(name: str, n: int, parts: Mapping[str, Part], body: str = "", threads: int = 128) -> Unit:
    def data(rng: np.random.Generator) -> Data:
        return {k: rng.integers(0, 11, n).astype(np.int32) for k in "AD"}

    params = (tensor("A", "int32", n), tensor("D", "int32", n))
    return Unit("bools", name, params, body, parts, {"": Launch(data)}, threads=threads)


def _loop(kind: str, n: int, *body: str) -> str:
    head = [f"for i in {kind}({n}):", "    a = A[i]", "    x = a > 3", "    y = D[i] <= a"]
    return "\n".join([*head, *("    " + line for line in body)])


def _expressions() -> list[Unit]:
    """Every operation of bools, with a named result used three times, also as an integer."""
    found = []
    for n in SIZES:
        stored, named = {}, {}
        for part, text in LOGIC.items():
            loop = _loop("T.Parallel", n, f"O_{part}[i] = {text}")
            stored[part] = Part((output(f"O_{part}", "bool", n),), loop, None)
            loop = _loop("T.Parallel", n, f"z = {text}", f"O_{part}[i] = T.Select(z, 1, z) + z")
            named[part] = Part((output(f"O_{part}", "int32", n),), loop, None)
        found += [_unit(f"logic-stored-{n}", n, stored), _unit(f"logic-named-{n}", n, named)]
    return found


def _numbers() -> list[Unit]:
    found = []
    for n in SIZES:
        parts = {}
        for part, text in NUMBERS.items():
            body = _loop("T.Parallel", n, f"z = {text}", f"O_{part}[i] = z + 3 * z")
            parts[part] = Part((output(f"O_{part}", "int32", n),), body, None)
        found.append(_unit(f"numbers-{n}", n, parts))
    return found


def _conversions() -> list[Unit]:
    """A comparison of bools as every element type."""
    found = []
    for n in SIZES:
        size = n + n % 2  # elements of four bits share bytes
        parts = {
            t: Part(
                (output(f"O_{t}", t, size),),
                _loop("T.Parallel", n, f'O_{t}[i] = T.cast(x == y, "{t}")') + f'\nO_{t}[{size} - 1] = T.cast(1, "{t}")',
                None,
            )
            for t in TYPES
        }
        found.append(_unit(f"conversions-{n}", n, parts))
    return found


def _chains() -> list[Unit]:
    """Values that are used twice repeatedly: compile time is linear in the chain."""
    found = []
    for n, kind in ((1, "T.Parallel"), (67, "T.Parallel"), (67, "T.serial"), (64, "T.vectorized")):
        parts = {}
        for part, text in CHAINS.items():
            step = f"for _ in T.static_range({STEPS}):\n        x = {text}"
            body = _loop(kind, n, step, f"O_{part}[i] = T.cast(x, 'int32')")
            parts[part] = Part((output(f"O_{part}", "int32", n),), body, None)
        found.append(_unit(f"chain-{kind[2:].lower()}-{n}", n, parts))
    return found


def _tiles() -> list[Unit]:
    """Tiles of bools that are compared with each other, updated in place and reduced."""
    found = []
    for scope in ("shared", "fragment", "local"):
        loop, threads = ("T.serial", 1) if scope == "local" else ("T.Parallel", 64)
        body = lines(f"""
            s = T.alloc_{scope}((67,), "bool")
            q = T.alloc_{scope}((67,), "bool")
            for i in {loop}(67):
                s[i] = A[i] > 3
                q[i] = D[i] <= A[i]
                s[i] = s[i] == q[i]
                q[i] = q[i] != (s[i] == q[i])
                q[i] = T.max(q[i], s[i]) == (A[i] > 1)
        """)
        store = "for i in {0}(67):\n    O_{1}[i] = {1}[i]"
        parts = {
            "s": Part((output("O_s", "bool", 67),), store.format(loop, "s"), None),
            "q": Part((output("O_q", "bool", 67),), store.format(loop, "q"), None),
        }
        for kind in () if scope == "local" else ("any", "all", "bitxor"):
            made = f'r_{kind} = T.alloc_fragment((1,), "bool")'
            code = f"{made}\nT.reduce_{kind}(q, r_{kind})\nT.copy(r_{kind}, O_{kind})"
            parts[kind] = Part((output(f"O_{kind}", "bool", 1),), code, None)
        found.append(_unit(f"tiles-{scope}", 67, parts, body, threads))
    return found


def _variables() -> list[Unit]:
    """Variables of bools over the iterations of loops, in conditions of branches and of ``while``."""
    body = lines("""
        p = T.alloc_var("bool", init=True)
        q = T.alloc_var("bool", init=A[0] > 3)
        c = T.alloc_var("int32", init=0)
        for i in T.serial(67):
            x = A[i] > 3
            if x == p:
                c += 1
            if (D[i] <= A[i]) != (q == x):
                p = q != x
                q = not p == x
            elif p == q:
                q = p and x
            O[i] = p
        while (c > 9) == (p or not p):
            c -= 7
        O[67] = p != q
        C[0] = c
    """)

    params = (output("O", "bool", 68), output("C", "int32", 1))
    return [_unit("variables", 67, {"": Part(params, body, None)}, threads=1)]


def _refusals() -> list[Unit]:
    """The bits of a true bool are machine-specific, and a bool is not an index."""
    a = [tensor("A", "uint8", 8), tensor("Q", "bool", 8)]
    return [
        refused("bools", "illegal-bits-of", "A[0] = T.reinterpret(Q[0], 'uint8')", "K128", params=a),
        refused("bools", "illegal-bits-as", "Q[0] = T.reinterpret(A[0], 'bool')", "K128", params=a),
        refused("bools", "illegal-index", "A[0] = A[Q[0] == Q[1]]", "K103", params=a),
    ]
