"""Random programs of tile ops, drawn step by step by the fuzzer's strategies.

A ``Sketch`` is a kernel over a grid of blocks. Every step appends lines of the kernel. Values stay integers that all
element types involved hold exactly (``Tile.bound`` is their largest size), so the order of additions does not matter
and results must be equal; integers of any size wrap.
"""

from __future__ import annotations

import functools
from dataclasses import field

import numpy as np

from tile_core.dtypes import DTYPES
from tile_core.records import dataclass
from tile_core.testing import plain
from tile_core.testing.case import VALUE, Data, Launch, Param, Part, Unit, scalar, tensor
from tile_core.testing.data import Array, anything, numbers, stored

#: Largest integer size up to which all integers are exact.
LIMITS = {"float32": 2.0**24, "float16": 2.0**11, "bfloat16": 2.0**8, "float64": 2.0**53}


@dataclass(frozen=True)
class Tile:
    """A scratch buffer of the program.

    Attributes
    ----------
    name, shape, dtype, scope
        Of the buffer.
    bound
        Largest absolute value that it may hold; infinite for integers, which wrap.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    scope: str
    bound: float


@dataclass
class Block:
    """A sequence of statements: their lines, and how many there are."""

    lines: list[str] = field(default_factory=list)
    count: int = 0

    def add(self, line: str) -> None:
        """Append a statement, which may have several lines."""
        self.lines += line.splitlines()
        self.count += 1

    def indented(self) -> str:
        """Return the lines one level deeper."""
        return "\n".join("    " + line for line in self.lines or ["pass"])


@dataclass
class Sketch:
    """A program that is being drawn.

    Attributes
    ----------
    rows, cols
        Of the tile that a block of the grid writes to each output.
    threads
        Of a block.
    tiles
        Scratch buffers by name.
    inputs
        Input tensors: name -> (element type, how data are made).
    outputs
        Output tensors: name -> the tile that is written to it.
    extras
        Further inputs, of shapes of their own: name -> (element type, array).
    """

    rows: int
    cols: int
    threads: int
    tiles: dict[str, Tile] = field(default_factory=dict)
    inputs: dict[str, tuple[str, bool]] = field(default_factory=dict)
    outputs: dict[str, Tile] = field(default_factory=dict)
    extras: dict[str, tuple[str, Array]] = field(default_factory=dict)
    body: Block = field(default_factory=Block)
    count: int = 0

    def fresh(self, prefix: str) -> str:
        """Return a new name."""
        self.count += 1
        return f"{prefix}{self.count}"

    def input(self, dtype: str, whole: bool = False) -> str:
        """Return an input tensor of an element type; ``whole`` integers have all bits."""
        for name, known in self.inputs.items():
            if known == (dtype, whole):
                return name
        name = self.fresh("X")
        self.inputs[name] = (dtype, whole)
        return name

    def alloc(self, shape: tuple[int, ...], dtype: str, scope: str, bound: float) -> Tile:
        """Allocate a buffer at the beginning of the kernel; it begins as zeros."""
        made = Tile(self.fresh("t"), shape, dtype, scope, bound)
        self.tiles[made.name] = made
        return made

    def grown(self, tile: Tile, bound: float) -> None:
        """Note that a tile holds larger values from now on."""
        self.tiles[tile.name] = Tile(tile.name, tile.shape, tile.dtype, tile.scope, max(tile.bound, bound))

    def unit(self, sizes: list[tuple[int, int, int]], seed: int) -> Unit:
        """Return the program as a unit with a launch per (m, n, v)."""
        start = "\n".join(
            f'{t.name} = T.alloc_{t.scope}({t.shape}, "{t.dtype}")\nT.clear({t.name})' for t in self.tiles.values()
        )
        end = "\n".join(f"T.copy({t.name}, {name}[bx * {self.rows}, 0])" for name, t in self.outputs.items())
        body = "\n".join([*start.splitlines(), *self.body.lines, *end.splitlines()])
        params = [tensor(n, dtype, "m", "n") for n, (dtype, _) in self.inputs.items()]
        params += [tensor(n, dtype, *array.shape) for n, (dtype, array) in self.extras.items()]
        params += [scalar("v"), *(Param(n, t.dtype, ("m", "n"), out=True) for n, t in self.outputs.items())]
        launches = {f"{m}x{n},v={v}": Launch(functools.partial(self.data, seed, m, n, v)) for m, n, v in sizes}
        part = Part((), body, lambda d: plain.run(unit.text(), params, d), VALUE)
        unit = Unit(
            "fuzz", f"program-{seed}", tuple(params), "", {"": part}, launches, threads=self.threads,
            symbols=("m", "n"), grid=f"T.ceildiv(m, {self.rows})",
        )  # fmt: skip
        return unit

    def data(self, seed: int, m: int, n: int, v: int, rng: np.random.Generator) -> Data:
        """Return the inputs of a launch."""
        own = np.random.default_rng([seed, m, n, v + 1000])
        made: Data = {"m": m, "n": n, "v": v}
        for name, (dtype, whole) in self.inputs.items():
            made[name] = anything(own, (m, n), dtype) if whole else numbers(own, (m, n), dtype, -3, 3)
        made.update({name: array for name, (_, array) in self.extras.items()})
        for name, t in self.outputs.items():  # a tile need not cover all columns
            made[name] = numbers(own, (m, n), t.dtype, 0, 0)
        return made


def sparse_operand(seed: int, m: int, k: int, dtype: str, meta: str) -> tuple[Array, Array]:
    """Return kept values and metadata of a random 2:4 sparse operand.

    Values are small integers.
    """
    from tile_core import sparse

    rng = np.random.default_rng(seed)
    group, kept = (2, 1) if DTYPES[dtype].bits == 32 else (4, 2)
    order = rng.random((m, k // group, group)).argsort(axis=-1)
    count = rng.integers(0, kept + 1, (m, k // group, 1))
    dense = np.where(order < count, rng.integers(-3, 4, (m, k // group, group)), 0).reshape(m, k).astype(np.float64)
    compressed, metadata = sparse.compress(stored(dense, dtype), meta_dtype=meta)
    return np.asarray(compressed).view(DTYPES[dtype].numpy()), np.asarray(metadata)


def limit(dtype: str) -> float:
    """Return the largest bound that keeps an element type exact."""
    return LIMITS.get(dtype, float("inf"))
