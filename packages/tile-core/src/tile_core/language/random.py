"""Random numbers by counting: Philox 4x32-10, the same on every target.

Philox maps a key and a counter to four random words by ten rounds of products and exclusive ors (Salmon, Moraes,
Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011). Word ``n`` of a sequence is word ``n % 4`` of the
counter whose low half is ``n // 4`` and whose high half is the number of the sequence; the key is the seed. So every
element of a tile has numbers of its own, whoever computes it.
"""

from __future__ import annotations

import math

from tile_core.dtypes import DTYPES
from tile_core.errors.language import BadArgument, NoGenerator
from tile_core.errors.naming import naming
from tile_core.language.rounding import ieee_fsqrt
from tile_core.language.threads import thread_builder
from tile_core.numerics.math import COSINE, SINE
from tile_core.numerics.math import log as log_expr
from tile_core.records import dataclass
from tile_core.trace.choices import Select
from tile_core.values import scalar
from tile_core.values.allocation import allocate
from tile_core.values.buffer import Buffer, store
from tile_core.values.builder import Builder, Scope
from tile_core.values.checks import python_int, shown
from tile_core.values.value import Scalar, Value, as_value, derive

_FACTORS = (0xD2511F53, 0xCD9E8D57)
_STEPS = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_WORD = 2**32
_U32, _U64 = DTYPES["uint32"], DTYPES["uint64"]
_I32, _F32, _F64 = DTYPES["int32"], DTYPES["float32"], DTYPES["float64"]


def philox(seed: Scalar, seq: Scalar = 0, off: Scalar = 0) -> tuple[Value, Value, Value, Value]:
    """Return the four random ``uint32`` words from ``4 * off`` on of a sequence.

    Parameters
    ----------
    seed, seq, off
        Integers, modulo ``2**64``: the seed, the number of the sequence, and how many words are before these, by four.

    Raises
    ------
    BadArgument
        If one of them is not an integer.
    """
    builder = thread_builder("philox")
    key = _halves("philox", "seed", seed)
    words = [*_halves("philox", "off", off), *_halves("philox", "seq", seq)]
    for n in range(_ROUNDS):
        high0, low0 = _product(builder, _FACTORS[0], words[0])
        high1, low1 = _product(builder, _FACTORS[1], words[2])
        a, b = (_sum(k, n * step) for k, step in zip(key, _STEPS, strict=True))
        words = [_xor(builder, high1, words[1], a), low1, _xor(builder, high0, words[3], b), low0]
    w = [_bound(builder, as_value(x, _U32)) for x in words]
    return w[0], w[1], w[2], w[3]


def uniform_of(word: Scalar) -> Value:
    """Return a ``float32`` strictly between 0 and 1.

    It is ``(k + 1/2) / 2**23`` of the upper 23 bits ``k``.
    """
    k = scalar.cast(_word("uniform_of", word) >> 9, _I32)
    return (scalar.cast(k, _F32) + 0.5) * 2.0**-23


def normal_of(a: Scalar, b: Scalar) -> tuple[Value, Value]:
    """Return two independent normal ``float32`` (mean 0, variance 1) of two random words.

    Box's and Muller's transformation: a radius up to 5.9 of the first word, an angle of the second.
    """
    builder = thread_builder("normal_of")
    first, second = _word("normal_of", a), _bound(builder, _word("normal_of", b))
    u = _bound(builder, (scalar.cast(scalar.cast(first >> 8, _I32), _F32) + 0.5) * 2.0**-24)
    squared = _bound(builder, derive(log_expr(u.expr), _F32, u) * -2.0)
    radius = _bound(builder, ieee_fsqrt(squared))
    fraction = scalar.cast(second & 0x3FFFFFFF, _I32) - 2**29
    y = _bound(builder, scalar.cast(fraction, _F32) * (math.pi / 2 * 2.0**-30))
    square = _bound(builder, y * y)
    sine = _bound(builder, radius * (y + y * (square * _polynomial(SINE, square))))
    cosine = _bound(builder, radius * (square * _polynomial(COSINE, square) + 1.0))
    swapped, turned = (second & (1 << 30)) != 0, (second >> 31) != 0
    one = _bound(builder, Select(swapped, -sine, cosine))
    other = _bound(builder, Select(swapped, cosine, sine))
    return Select(turned, -one, one), Select(turned, -other, other)


def rng_init(seed: Scalar, seq: Scalar, off: Scalar = 0, generator: str | None = None) -> None:
    """Begin a random sequence for the following ``rng_rand`` and ``rng_rand_float``.

    Parameters
    ----------
    seed, seq
        Integers, modulo ``2**64``: threads, or iterations of a parallel loop, with the same seed have sequences of
        their own if they have numbers of their own.
    off
        How many words of the sequence come before the first one that is taken.
    generator
        ``None`` or a name that contains ``Philox4_32_10``: there is one generator.

    Raises
    ------
    BadArgument
        If a number is not an integer, or for another generator.

    Notes
    -----
    The count is a variable: in a kernel that names its threads each has its own; inside of a parallel loop each
    iteration has its own, and the sequence must begin there.
    """
    builder = thread_builder("rng_init")
    if generator is not None and "philox4_32_10" not in str(generator).lower():
        instead = "leave it out"
        raise BadArgument(
            function="rng_init", name="generator", found=shown(generator), expected="Philox4_32_10", instead=instead
        )
    numbers = [_bound(builder, _long("rng_init", n, x)) for n, x in (("seed", seed), ("seq", seq))]
    first = _long("rng_init", "off", off)
    builder.hints = []
    count = allocate("alloc_var", (1,), "uint64", "local.var", "rng")
    store(count, 0, first)
    builder.random = _Sequence(numbers[0], numbers[1], count, builder.scope)


def rng_rand() -> Value:
    """Return the next word of the sequence, as ``uint32``.

    Raises
    ------
    NoGenerator
        Without ``rng_init`` before it.
    """
    builder = thread_builder("rng_rand")
    sequence = _sequence(builder, "rng_rand")
    at = _bound(builder, sequence.count.value())
    words = philox(sequence.seed, sequence.number, at >> 2)
    low = Select((at & 1) != 0, words[1], words[0])
    high = Select((at & 1) != 0, words[3], words[2])
    found = _bound(builder, Select((at & 2) != 0, high, low))
    store(sequence.count, 0, at + 1)
    return found


@naming("rng_rand_float")
def rng_rand_float(bit: int = 32, dist: str = "uniform") -> Value:
    """Return the next random float of the sequence.

    Parameters
    ----------
    bit
        32 or 64 bits. Of ``float64`` there are uniform ones only: they have 52 random bits of two words.
    dist
        ``"uniform"``: between 0 and 1, neither included. ``"normal"``: mean 0 and variance 1, of two words.

    Raises
    ------
    NoGenerator, BadArgument
        Without ``rng_init`` before it, or for another number of bits or distribution.
    """
    if not isinstance(dist, str) or dist not in ("uniform", "normal"):
        raise _unknown("dist", dist, "'uniform' or 'normal'")
    if not isinstance(bit, int) or bit not in (32, 64) or (bit == 64 and dist == "normal"):
        raise _unknown("bit", bit, "32" if dist == "normal" else "32 or 64")
    first = rng_rand()
    if bit == 32:
        return uniform_of(first) if dist == "uniform" else normal_of(first, rng_rand())[0]
    k = (scalar.cast(first, _U64) << 20) | scalar.cast(rng_rand() >> 12, _U64)
    return (scalar.cast(scalar.cast(k, DTYPES["int64"]), _F64) + 0.5) * 2.0**-52


@dataclass(frozen=True)
class _Sequence:
    """A sequence of random words: seed, number, and the variable that counts what was taken."""

    seed: Value
    number: Value
    count: Buffer
    scope: Scope


def _sequence(builder: Builder, name: str) -> _Sequence:
    found = builder.random
    if not isinstance(found, _Sequence) or found.scope.closed:
        raise NoGenerator(function=name)
    return found


def _unknown(name: str, found: object, expected: str) -> BadArgument:
    return BadArgument(
        function="rng_rand_float", name=name, found=shown(found), expected=expected, instead="use a legal one"
    )


def _integer(function: str, name: str, x: Scalar) -> int | Value:
    number = python_int(x) if not isinstance(x, Value) else None
    if number is not None:
        return number
    value = as_value(x)
    if not value.dtype.is_integer:
        found = f"a {value.dtype} value"
        raise BadArgument(function=function, name=name, found=found, expected="an integer", instead="cast it")
    constant = scalar.constant_of(value)
    return value if constant is None else int(constant)


def _long(function: str, name: str, x: Scalar) -> Value:
    number = _integer(function, name, x)
    return as_value(number % 2**64, _U64) if isinstance(number, int) else scalar.cast(number, _U64)


def _word(function: str, x: Scalar) -> Value:
    number = _integer(function, "word", x)
    return as_value(number % _WORD, _U32) if isinstance(number, int) else scalar.cast(number, _U32)


def _halves(function: str, name: str, x: Scalar) -> list[int | Value]:
    """Return the low and high word of an integer modulo 2^64.

    Constants become Python ints, which are exact.
    """
    number = _integer(function, name, x)
    if isinstance(number, int):
        return [number % _WORD, number // _WORD % _WORD]
    if number.dtype.bits <= 32 and number.dtype.kind == "uint":
        return [scalar.cast(number, _U32), 0]
    whole = _bound(thread_builder(function), scalar.cast(number, _U64))
    return [scalar.cast(whole, _U32), scalar.cast(whole >> 32, _U32)]


def _product(builder: Builder, factor: int, x: int | Value) -> tuple[int | Value, int | Value]:
    """Return the high and the low word of a product."""
    if isinstance(x, int):
        return factor * x // _WORD, factor * x % _WORD
    whole = _bound(builder, scalar.cast(x, _U64) * factor)
    return scalar.cast(whole >> 32, _U32), scalar.cast(whole, _U32)


def _sum(x: int | Value, step: int) -> int | Value:
    return (x + step) % _WORD if isinstance(x, int) else x + step % _WORD


def _xor(builder: Builder, *words: int | Value) -> int | Value:
    constant = 0
    found: Value | None = None
    for w in words:
        if isinstance(w, int):
            constant ^= w
        else:
            found = w if found is None else found ^ w
    if found is None:
        return constant
    return _bound(builder, found ^ constant if constant else found)


def _polynomial(coefficients: list[float], x: Value) -> Value:
    total: Value | float = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = x * total + c
    return as_value(total)


def _bound(builder: Builder, x: Value) -> Value:
    """Return a name for a value, bound here."""
    return x if scalar.constant_of(x) is not None else Value(builder.bind("w", x.expr), x.dtype)
