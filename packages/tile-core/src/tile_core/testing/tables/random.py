"""Random numbers: words of Philox against Python's integers, known answers, sequences of threads and iterations."""

from __future__ import annotations

import numpy as np

from tile_core.testing.case import EXACT, Data, Tolerance, Unit, one, output, refused, scalar, tensor
from tile_core.testing.data import Array
from tile_core.testing.plain import random as plain
from tile_core.testing.source import lines

#: Counter, key and words of the vectors published with Random123 (``kat_vectors``, philox4x32, 10 rounds).
KNOWN = (
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((2**32 - 1,) * 4, (2**32 - 1,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
)  # fmt: skip


def units() -> list[Unit]:
    """Return the units of this table."""
    return [*_words(), *_floats(), *_sequences(), *_refusals()]


def _words() -> list[Unit]:
    body = lines("""
        for i in T.Parallel(37):
            w = T.philox(S[i], Q[i], O[i])
            for j in T.static_range(4):
                B[i, j] = w[j]
    """)

    def data(rng: np.random.Generator) -> Data:
        s, q, o = rng.integers(0, 2**64 - 1, (3, 37), np.uint64, endpoint=True)
        for n, (c, k, _) in enumerate(KNOWN):
            o[n], q[n], s[n] = c[0] | c[1] << 32, c[2] | c[3] << 32, k[0] | k[1] << 32
        return {"S": s, "Q": q, "O": o}

    def want(d: Data) -> Array:
        found = [plain.words(int(s), int(q), int(o)) for s, q, o in zip(d["S"], d["Q"], d["O"], strict=True)]
        assert [tuple(w) for w in found[: len(KNOWN)]] == [w for _, _, w in KNOWN]
        return np.array(found, np.uint32)

    params = [*(tensor(n, "uint64", 37) for n in "SQO"), output("B", "uint32", 37, 4)]
    found = [one("random", "words", params, body, want, {"": data})]
    body = lines("""
        for i, j in T.Parallel(5, 33):
            a = T.philox(-3, i, j)
            b = T.philox(12345678901, 7, 0)
            B[i, j] = a[(3)] ^ b[0]
            C[i, j] = T.philox(j, 2**40 + 1)[2]
    """)

    params = [output("B", "uint32", 5, 33), output("C", "uint32", 5, 33)]
    return [*found, one("random", "constants", params, body, None, {"": lambda rng: {}}, threads=96)]


def _floats() -> list[Unit]:
    found = []
    bodies = {
        "uniform": ("B[i] = T.uniform_of(T.philox(n, i)[1])", EXACT),
        "normal": (
            "a, b = T.normal_of(T.philox(n, i)[1], T.philox(n, i)[2])\nB[i] = T.if_then_else(i % 2 == 0, a, b)",
            Tolerance(rtol=3e-6, atol=3e-7),
        ),
    }  # fmt: skip
    for name, (text, tolerance) in bodies.items():
        body = "for i in T.Parallel(700):\n" + "\n".join(f"    {line}" for line in text.splitlines())

        data = {"": lambda rng: {"n": int(rng.integers(0, 2**31))}}
        params = [scalar("n"), output("B", "float32", 700)]
        found.append(one("random", name, params, body, None, data, tolerance))
    return found


def _sequences() -> list[Unit]:
    """A sequence per iteration and per thread: words, floats of both kinds, and a loop."""
    body = lines("""
        for i in T.Parallel(50):
            T.rng_init(n, i, 2)
            for k in T.serial(3):
                B[i, k] = T.rng_rand()
            C[i] = T.rng_rand_float()
            D[i] = T.rng_rand_float(dist="normal")
            E[i] = T.rng_rand()
    """)

    data = {"": lambda rng: {"n": int(rng.integers(0, 2**31))}}
    params = [scalar("n"), output("B", "uint32", 50, 3), output("C", "float32", 50), output("D", "float32", 50)]
    params.append(output("E", "uint32", 50))
    found = [one("random", "per-iteration", params, body, None, data, Tolerance(rtol=3e-6, atol=3e-7))]
    body = lines("""
        t = T.get_thread_binding()
        T.rng_init(n, bx * 48 + t, 1, generator="Philox4_32_10")
        for k in T.serial(5):
            B[bx * 48 + t, k] = T.rng_rand()
        v = T.alloc_var("int32", 0)
        while v < t % 3:
            v += 1
            T.rng_rand()
        C[bx * 48 + t] = T.rng_rand()
    """)

    params = [scalar("n"), output("B", "uint32", 96, 5), output("C", "uint32", 96)]
    needs = frozenset({"threads"})
    found.append(one("random", "per-thread", params, body, None, data, grid="2", threads=48, needs=needs))
    body = "T.rng_init(n, bx)\nB[bx] = T.rng_rand_float(64)\nB[bx + 5] = T.rng_rand_float(bit=64)"
    params = [scalar("n"), output("B", "float64", 10)]
    return [*found, one("random", "float64", params, body, None, data, grid="5")]


def _refusals() -> list[Unit]:
    inside = "if n > 0:\n    T.rng_init(1, 2)\nx = T.rng_rand()"
    seed = [scalar("n")]
    return [
        refused("random", "illegal-before", "x = T.rng_rand()", "K149"),
        refused("random", "illegal-block", inside, "K149", params=seed),
        refused("random", "illegal-seed", "w = T.philox(1.5)", "K128"),
        refused("random", "illegal-distribution", "T.rng_init(1, 2)\nx = T.rng_rand_float(32, 'poisson')", "K128"),
        refused("random", "illegal-bits", "T.rng_init(1, 2)\nx = T.rng_rand_float(64, 'normal')", "K128"),
        refused("random", "illegal-generator", "T.rng_init(1, 2, 0, 'mt19937')", "K128"),
        refused("random", "illegal-race", "T.rng_init(1, 2)\nfor i in T.Parallel(9):\n    B[i] = T.rng_rand()",
                "K214", params=[output("B", "uint32", 9)]),
    ]  # fmt: skip
