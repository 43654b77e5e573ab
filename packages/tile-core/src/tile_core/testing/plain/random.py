"""Philox 4x32-10 with Python's integers, and what is made of its words with NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tile_core.testing.plain.numbers import Number, number

_MASK = 2**32 - 1


def words(seed: int, seq: int, off: int) -> list[int]:
    """Return the four words of a counter."""
    keys = [seed & _MASK, seed >> 32 & _MASK]
    c = [off & _MASK, off >> 32 & _MASK, seq & _MASK, seq >> 32 & _MASK]
    for _ in range(10):
        first, second = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [second >> 32 ^ c[1] ^ keys[0], second & _MASK, first >> 32 ^ c[3] ^ keys[1], first & _MASK]
        keys = [(keys[0] + 0x9E3779B9) & _MASK, (keys[1] + 0xBB67AE85) & _MASK]
    return c


def uniform(word: int) -> float:
    """Return the number of a word between 0 and 1."""
    return ((word >> 9) + 0.5) / 2**23


def normal(a: int, b: int) -> tuple[float, float]:
    """Return two normal samples from two words, in float64 after rounding the first."""
    u = float(np.float32((a >> 8) + 0.5)) / 2**24
    angle = (b >> 30) * math.pi / 2 + ((b & 0x3FFFFFFF) - 2**29) * math.pi / 2 / 2**30
    radius = math.sqrt(-2 * math.log(u))
    return radius * math.cos(angle), radius * math.sin(angle)


class Sequences:
    """The names of ``T`` for random numbers; every thread has a sequence of its own."""

    def __init__(self) -> None:
        self.states: dict[int, list[int]] = {}
        self.thread = 0

    def philox(self, seed: Any, seq: Any = 0, off: Any = 0) -> tuple[Number, ...]:
        """Return four words."""
        return tuple(Number(w, "uint32") for w in words(*(int(number(x).value) for x in (seed, seq, off))))

    def uniform_of(self, word: Any) -> Number:
        """Return a number between 0 and 1."""
        return Number(uniform(int(number(word).value)), "float32")

    def normal_of(self, a: Any, b: Any) -> tuple[Number, Number]:
        """Return two normal numbers."""
        one, other = normal(*(int(number(x).value) for x in (a, b)))
        return Number(float(np.float32(one)), "float32"), Number(float(np.float32(other)), "float32")

    def rng_init(self, seed: Any, seq: Any, off: Any = 0, generator: Any = None) -> None:
        """Begin a sequence."""
        self.states[self.thread] = [int(number(x).value) for x in (seed, seq, off)]

    def rng_rand(self) -> Number:
        """Return the next word."""
        seed, seq, off = self.states[self.thread]
        self.states[self.thread][2] += 1
        return Number(words(seed, seq, off // 4)[off % 4], "uint32")

    def rng_rand_float(self, bit: int = 32, dist: str = "uniform") -> Number:
        """Return the next float."""
        first = self.rng_rand()
        if bit == 64:
            k = int(first.value) << 20 | int(self.rng_rand().value) >> 12
            return Number((k + 0.5) / 2**52, "float64")
        return self.uniform_of(first) if dist == "uniform" else self.normal_of(first, self.rng_rand())[0]
