"""Hypothesis strategies for tile programs: legal ones with their meaning in NumPy, and ones that may be illegal."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tile_core.dtypes import DTYPES
from tile_core.numerics import oracles
from tile_core.testing.case import Unit
from tile_core.testing.data import Array
from tile_core.testing.draws import EXTENTS, SCOPES, THREADS, TYPES, Draw, convertible, is_matrix, offset, pick, place
from tile_core.testing.elementwise import elementwise
from tile_core.testing.sketch import Block, Env, Sketch, Tile, limit, rounded, sparse_operand


@st.composite
def programs(draw: Draw) -> Unit:
    """Draw a legal program: the target must compute what NumPy computes."""
    sketch = Sketch(draw(st.sampled_from(EXTENTS)), draw(st.sampled_from(EXTENTS)), draw(st.sampled_from(THREADS)))
    load(draw, sketch, sketch.body, (sketch.rows, sketch.cols))
    size = draw(st.integers(1, 7))
    for _ in range(3 * size):  # a step that does not fit adds nothing
        if len(sketch.body.actions) <= size:
            step(draw, sketch, sketch.body)
    fitting = [t for t in sketch.tiles.values() if t.shape == (sketch.rows, sketch.cols)]
    for t in fitting[-3:]:
        sketch.outputs[sketch.fresh("O")] = t
    r, c = sketch.rows, sketch.cols
    sizes = [(r, c, 1), (draw(st.integers(1, 2 * r + 3)), draw(st.integers(1, 2 * c + 3)), draw(st.integers(-2, 5)))]
    return sketch.unit(sizes if sizes[0] != sizes[1] else sizes[:1], draw(st.integers(0, 10**6)))


def step(draw: Draw, sketch: Sketch, block: Block, depth: int = 0) -> None:
    """Draw one statement."""
    simple = [load, fill, copy_tile, transpose, reduction, scan, cast_tile, gathered, sparse_product]
    simple += [elementwise] * 4 + [product] * 3
    nested = [pipeline, pipeline, loop, branch] if depth == 0 else []
    chosen = draw(st.sampled_from([*simple, *nested]))
    chosen(draw, sketch, block) if chosen is not load else load(draw, sketch, block, None)


def load(draw: Draw, sketch: Sketch, block: Block, shape: tuple[int, int] | None, corner: str = "") -> Tile:
    """Copy a window of an input into a new tile, converted; the window may reach outside."""
    dtype = draw(st.sampled_from(TYPES))
    whole = DTYPES[dtype].is_integer and draw(st.booleans())
    name = sketch.input(dtype, whole)
    to = dtype if whole or draw(st.booleans()) else draw(st.sampled_from(TYPES))
    if DTYPES[to].kind == "uint" and DTYPES[dtype].is_float:
        to = dtype  # a negative float has no unsigned value
    extents = shape or (draw(st.sampled_from(EXTENTS)), draw(st.sampled_from(EXTENTS)))
    bound = float("inf") if DTYPES[to].is_integer else 3.0
    t = sketch.alloc(extents, to, draw(st.sampled_from(SCOPES)), bound)
    row = corner or f"bx * {sketch.rows} + {draw(st.integers(-2, 3))}"
    col = offset(draw, 2)

    def action(env: Env) -> None:
        env[t.name] = rounded(oracles.copy_region(env[name], (place(row, env), place(col, env)), extents), t.dtype)

    slices = f"{row} : {row} + {extents[0]}, {col} : {col} + {extents[1]}"
    text = f"{name}[{row}, {col}]" if draw(st.booleans()) else f"{name}[{slices}]"
    block.add(f"T.copy({text}, {t.name})", action)
    return t


def fill(draw: Draw, sketch: Sketch, block: Block) -> None:
    """Fill a tile or a slice of it, which may reach outside."""
    t = pick(draw, sketch, is_matrix)
    if t is None:
        return
    value = draw(st.integers(0 if DTYPES[t.dtype].kind == "uint" else -3, 3))
    size = draw(st.integers(1, t.shape[0]))
    low = offset(draw, t.shape[0] - size)

    def action(env: Env) -> None:
        region = np.full((size, t.shape[1]), value, env[t.name].dtype)
        env[t.name] = oracles.write_region(env[t.name], (place(low, env), 0), region)

    block.add(f"T.fill({t.name}[{low} : {low} + {size}, :], {value})", action)
    sketch.grown(t, 3.0)


def cast_tile(draw: Draw, sketch: Sketch, block: Block) -> None:
    """Copy a tile into a new one of another element type."""
    source = pick(draw, sketch)
    legal = [t for t in TYPES if source is not None and convertible(source, t)]
    if source is None or not legal:
        return
    dtype = draw(st.sampled_from(legal))
    bound = float("inf") if DTYPES[dtype].is_integer else source.bound
    t = sketch.alloc(source.shape, dtype, draw(st.sampled_from(SCOPES)), bound)
    block.add(f"T.copy({source.name}, {t.name})", lambda env: env.__setitem__(t.name, rounded(env[source.name], dtype)))


def copy_tile(draw: Draw, sketch: Sketch, block: Block) -> None:
    """Copy rows of a tile to other rows of it or of another one of the same width."""
    source = pick(draw, sketch, is_matrix)
    if source is None:
        return
    to = pick(draw, sketch, lambda t: is_matrix(t) and t.shape[1] == source.shape[1] and t.dtype == source.dtype)
    if to is None:
        return
    rows = draw(st.integers(1, min(source.shape[0], to.shape[0])))
    a, b = offset(draw, source.shape[0] - rows), offset(draw, to.shape[0] - rows)
    width = source.shape[1]

    def action(env: Env) -> None:
        part = oracles.copy_region(env[source.name], (place(a, env), 0), (rows, width))
        env[to.name] = oracles.write_region(env[to.name], (place(b, env), 0), part)

    block.add(f"T.copy({source.name}[{a} : {a} + {rows}, :], {to.name}[{b} : {b} + {rows}, :])", action)
    sketch.grown(to, source.bound)


def transpose(draw: Draw, sketch: Sketch, block: Block) -> None:
    """Transpose a tile into a new one."""
    source = pick(draw, sketch, is_matrix)
    if source is None:
        return
    t = sketch.alloc(source.shape[::-1], source.dtype, draw(st.sampled_from(SCOPES)), source.bound)
    block.add(f"T.transpose({source.name}, {t.name})", lambda env: env.__setitem__(t.name, env[source.name].T.copy()))


def reduction(draw: Draw, sketch: Sketch, block: Block) -> None:
    """Reduce a tile into a vector."""
    source = pick(draw, sketch, is_matrix)
    if source is None:
        return
    dim = draw(st.integers(0, 1))
    is_int = DTYPES[source.dtype].is_integer
    kinds = ["max", "min", "sum", "absmax"] + (["bitand", "bitor", "bitxor"] if is_int else [])
    kind = draw(st.sampled_from(kinds))
    bound = source.bound * (source.shape[dim] if kind == "sum" else 1)
    if (bound > limit(source.dtype) and not is_int) or (is_int and kind.startswith("abs")):
        return
    t = sketch.alloc((source.shape[1 - dim],), source.dtype, "fragment", bound)

    def action(env: Env) -> None:
        env[t.name] = rounded(oracles.reduce(kind, _wide(env[source.name]), dim), t.dtype)

    block.add(f"T.reduce_{kind}({source.name}, {t.name}, dim={dim})", action)


def _wide(x: Array) -> Array:
    return x.astype(np.int64) if x.dtype.kind in "iu" else x


def scan(draw: Draw, sketch: Sketch, block: Block) -> None:
    """Scan a tile in place or into a new one."""
    source = pick(draw, sketch, is_matrix)
    if source is None:
        return
    dim, reverse, op = draw(st.integers(0, 1)), draw(st.booleans()), draw(st.sampled_from(("cumsum", "cummax")))
    bound = source.bound * (source.shape[dim] if op == "cumsum" else 1)
    if bound > limit(source.dtype) and not DTYPES[source.dtype].is_integer:
        return
    t = source if draw(st.booleans()) else sketch.alloc(source.shape, source.dtype, "shared", bound)
    sketch.grown(t, bound)
    function = oracles.cumsum if op == "cumsum" else oracles.cummax

    def action(env: Env) -> None:
        env[t.name] = rounded(function(_wide(env[source.name]), dim, reverse), t.dtype)

    block.add(f"T.{op}({source.name}, {t.name}, dim={dim}, reverse={reverse})", action)


#: Accumulator by the kind of operands.
_ACCUMULATORS = {
    "float32": "float32", "float16": "float32", "bfloat16": "float32", "float64": "float64", "int8": "int32",
    "uint8": "int32", "int16": "int32", "int32": "int32", "uint32": "uint32", "int64": "int64",
}  # fmt: skip


def product(draw: Draw, sketch: Sketch, block: Block, times: int = 1) -> None:
    """Multiply a tile by a new one that is loaded, into a new or an old accumulator."""
    a = pick(draw, sketch, is_matrix)
    if a is None:
        return
    ta, tb = draw(st.booleans()), draw(st.booleans())
    m, k = a.shape[::-1] if ta else a.shape
    n = draw(st.sampled_from(EXTENTS))
    acc = _ACCUMULATORS[a.dtype]
    is_int = DTYPES[acc].is_integer
    bound = a.bound * 3.0 * k * times
    if bound * 2 > limit(acc) and not is_int:
        return
    b = sketch.alloc((n, k) if tb else (k, n), a.dtype, draw(st.sampled_from(SCOPES)), float("inf") if is_int else 3.0)
    source = sketch.input(a.dtype)
    row = offset(draw, 4)

    def loaded(env: Env) -> None:
        env[b.name] = rounded(oracles.copy_region(env[source], (place(row, env), 0), b.shape), b.dtype)

    block.add(f"T.copy({source}[{row}, 0], {b.name})", loaded)
    old = pick(draw, sketch, lambda t: t.shape == (m, n) and t.dtype == acc and t.name != a.name)
    c = (
        old
        if old is not None and draw(st.booleans())
        else sketch.alloc((m, n), acc, draw(st.sampled_from(SCOPES)), 0.0)
    )
    total = c.bound + bound
    if total > limit(acc) and not is_int:
        return
    sketch.grown(c, float("inf") if is_int else total)
    clear = draw(st.booleans())

    def action(env: Env) -> None:
        result = oracles.gemm(
            _wide(env[a.name]),
            _wide(env[b.name]),
            _wide(env[c.name]),
            transpose_a=ta,
            transpose_b=tb,
            clear_accum=clear,
        )
        env[c.name] = rounded(result, acc)

    flags = f"transpose_A={ta}, transpose_B={tb}, clear_accum={clear}"
    block.add(f"T.gemm({a.name}, {b.name}, {c.name}, {flags})", action)


def sparse_product(draw: Draw, sketch: Sketch, block: Block) -> None:
    """Multiply a 2:4 sparse operand, which is a parameter of its own, by a tile that is loaded."""
    dtype, meta = draw(
        st.sampled_from((("float16", "int16"), ("bfloat16", "int32"), ("int8", "int32"), ("float32", "int16")))
    )
    m, n, k = draw(st.sampled_from((8, 17, 32))), draw(st.sampled_from(EXTENTS)), draw(st.sampled_from((32, 64)))
    name = sketch.fresh("S")
    kept, metadata, dense = sparse_operand(draw(st.integers(0, 10**6)), m, k, dtype, meta)
    sketch.extras[f"{name}"] = (dtype, kept)
    sketch.extras[f"{name}E"] = (meta, metadata)
    acc = _ACCUMULATORS[dtype]
    a = sketch.alloc((m, k // 2), dtype, "shared", 3.0)
    e = sketch.alloc(metadata.shape, meta, "shared", float("inf"))
    b = sketch.alloc((k, n), dtype, "shared", float("inf") if DTYPES[dtype].is_integer else 3.0)
    c = sketch.alloc((m, n), acc, "fragment", float("inf") if DTYPES[acc].is_integer else 9.0 * k)
    source, row = sketch.input(dtype), offset(draw, 3)

    def action(env: Env) -> None:
        env[a.name], env[e.name] = env[name], env[f"{name}E"]
        env[b.name] = rounded(oracles.copy_region(env[source], (place(row, env), 0), b.shape), dtype)
        env[c.name] = rounded(dense @ env[b.name].astype(np.float64), acc)

    lines = [f"T.copy({name}, {a.name})", f"T.copy({name}E, {e.name})", f"T.copy({source}[{row}, 0], {b.name})"]
    block.add("\n".join([*lines, f"T.gemm_sp({a.name}, {e.name}, {b.name}, {c.name}, clear_accum=True)"]), action)


def gathered(draw: Draw, sketch: Sketch, block: Block) -> None:
    """Gather rows of a tile by constant numbers, some outside."""
    source = pick(draw, sketch, is_matrix)
    if source is None:
        return
    rows = draw(st.lists(st.integers(-1, source.shape[0]), min_size=1, max_size=5))
    t = sketch.alloc((len(rows), source.shape[1]), source.dtype, "shared", source.bound)

    def action(env: Env) -> None:
        table = env[source.name]
        env[t.name] = np.stack([table[r] if 0 <= r < len(table) else np.zeros_like(table[0]) for r in rows])

    block.add(f"T.gather({source.name}, {rows}, {t.name})", action)


# ------------------------------------------------------------------------------------------------------------ structure


def pipeline(draw: Draw, sketch: Sketch, block: Block) -> None:
    """A pipelined loop that loads a tile and accumulates it."""
    rows, cols = sketch.rows, sketch.cols
    trips = draw(st.sampled_from((0, 1, 2, 4)))
    runtime = draw(st.booleans())
    stages = draw(st.integers(0, 4))
    inner = Block()
    t = load(draw, sketch, inner, (rows, cols), f"k * {rows} + bx")
    is_int = DTYPES[t.dtype].is_integer
    if not is_int and limit(t.dtype) < 3.0 * 8:
        return
    total = sketch.alloc((rows, cols), t.dtype, draw(st.sampled_from(SCOPES)), float("inf") if is_int else 24.0)

    def accumulate(env: Env) -> None:
        with np.errstate(all="ignore"):
            env[total.name] = rounded(env[total.name] + env[t.name], t.dtype)

    inner.add(
        f"for i, j in T.Parallel({rows}, {cols}):\n    {total.name}[i, j] = {total.name}[i, j] + {t.name}[i, j]",
        accumulate,
    )
    count = "v" if runtime else str(trips)

    def action(env: Env) -> None:
        for k in range(env["v"] if runtime else trips):
            inner.run(_with(env, k=k))

    block.add(f"for k in T.Pipelined({count}, num_stages={stages}):\n{inner.indented()}", action)


def _with(env: Env, **more: Any) -> Env:
    env.update(more)
    return env


def loop(draw: Draw, sketch: Sketch, block: Block) -> None:
    """A serial loop around statements that may be repeated."""
    inner = Block()
    for _ in range(draw(st.integers(1, 2))):
        draw(st.sampled_from((fill, copy_tile, transpose, gathered, _maximum)))(draw, sketch, inner)
    count = draw(st.sampled_from(("0", "1", "3", "v")))
    kind = draw(st.sampled_from(("T.serial", "range") if count == "v" else ("T.serial", "T.unroll", "range")))

    def action(env: Env) -> None:
        for _ in range(env["v"] if count == "v" else int(count)):
            inner.run(env)

    if inner.lines:
        block.add(f"for k in {kind}({count}):\n{inner.indented()}", action)


def _maximum(draw: Draw, sketch: Sketch, block: Block) -> None:
    """An update that may happen any number of times."""
    t = pick(draw, sketch, is_matrix)
    if t is None:
        return
    value = draw(st.integers(0, 3))
    code = f"{t.name}[i, j] = T.max({t.name}[i, j], {value})"
    sketch.grown(t, 3.0)

    def action(env: Env) -> None:
        env[t.name] = np.maximum(env[t.name], np.asarray(value).astype(env[t.name].dtype))

    block.add(f"for i, j in T.Parallel({t.shape[0]}, {t.shape[1]}):\n    {code}", action)


def branch(draw: Draw, sketch: Sketch, block: Block) -> None:
    """Statements under a condition that is the same for the whole block."""
    condition = draw(
        st.sampled_from(("v > 1", "bx == 0", "bx % 2 == 1", f"bx * {sketch.rows} < m - 3", "v > 0 and bx < 2"))
    )
    inner, other = Block(), Block()
    step(draw, sketch, inner, 1)
    if draw(st.booleans()):
        step(draw, sketch, other, 1)

    def action(env: Env) -> None:
        names = {k: env[k] for k in ("v", "m", "bx")}
        (inner if eval(condition, {}, names) else other).run(env)

    text = f"if {condition}:\n{inner.indented()}"
    if other.lines:
        text += f"\nelse:\n{other.indented()}"
    if inner.lines:
        block.add(text, action)


# ---------------------------------------------------------------------------------------------------------- near-legal


@st.composite
def mutants(draw: Draw) -> Unit:
    """Draw a program of which one number, type or name was changed: right or refused, but never an internal error."""
    unit = draw(programs())
    body = unit.parts[""].body
    tokens = list(_TOKEN.finditer(body))
    chosen = draw(st.sampled_from(tokens)) if tokens else None
    if chosen is None:
        return unit
    old = chosen.group()
    if old.isdigit():
        new = draw(st.sampled_from(("0", "1", "-1", "5", "13", "49", "2.5", "v", "bx", "300")))
    elif old.startswith('"'):
        new = f'"{draw(st.sampled_from((*TYPES, "float8_e4m3fn", "int4", "bool", "float12")))}"'
    elif old in ("True", "False"):
        new = draw(st.sampled_from(("True", "False", "v > 0", "None")))
    else:
        new = draw(st.sampled_from(sorted({m.group() for m in tokens if m.group()[0] in "tXO"}) or ["t1"]))
    part = dataclasses.replace(unit.parts[""], body=body[: chosen.start()] + new + body[chosen.end() :])
    return dataclasses.replace(unit, name=f"{unit.name}-mutant", parts={"": part})


_TOKEN = re.compile(r'(?<![\w.])\d+(?![\w.])|"\w+"|\b[tXO]\d+\b|True|False')
