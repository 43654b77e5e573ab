"""Check once per compiler for known miscompilations of integers and floats.

g++ 12 takes the quotient of a negation for the negation of the quotient, which is wrong for the least integer. A wrong
compiler is given flags with which the forms are right, if there are any. The verdict is kept in the cache.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import math
import shlex
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tile_core.runtime.libraries import stored
from tile_emulator.calls import called
from tile_emulator.errors import CompilerSlow
from tile_emulator.flags import FLAGS, LEVELS
from tile_runtime import knobs

__all__ = ["expected", "flags_for", "wrong_forms"]

SOURCE = Path(__file__).parent / "probes" / "forms.cpp"
#: Flags to try in order: empty, and flags that disable value numbering.
REPAIRS: tuple[tuple[str, ...], ...] = ((), ("-fno-tree-fre", "-fno-tree-pre"))

#: Seconds that a compilation, and the forms, may take.
LONGEST = 120
VALUES = (-(2**31), -(2**31) + 1, -11, -10, -8, -1, 0, 1, 7, 10, 2**31 - 1, 2**30, -(2**30), -(2**63), 2**63 - 1, 2**40)
NUMBERS = (0.0, -0.0, 1.5, -2.0, math.inf, -math.inf, math.nan, 1e-40)
_FORMS = (
    *(f"{name} {d}" for d in (10, 3, -7, 8) for name in ("x /", "-x /", "x %", "-x %")),
    "x / 10 of int64", "-x / 10 of int64", "x + 1 > x", "2x / 2", "-x < 0", "x << 3 >> 3", "x >> 31", "int8(x)",
    "uint16(3x)", "float32(int64)", "float64(uint64)", "float32(uint64)",
)  # fmt: skip
_FLOATS = ("isnan(x)", "x * 0", "1 / (x + 0)", "x - x")


def flags_for(compiler: Sequence[str], link: Sequence[str], identity: str, family: str) -> tuple[str, ...] | str:
    """Return flags with which a compiler is correct, or the forms it always miscompiles.

    Parameters
    ----------
    compiler, link
        How it is called to compile, and to link a shared library.
    identity
        Changes whenever the compiler does.
    family
        ``"gcc"`` or ``"clang"``.
    """
    facts = repr((identity, FLAGS, LEVELS, REPAIRS, VALUES, NUMBERS, SOURCE.read_text(encoding="utf-8")))

    def make(path: Path) -> None:
        verdict: Sequence[str] | str = ""
        for repair in REPAIRS if family == "gcc" else REPAIRS[:1]:
            wrong = next((w for level in LEVELS if (w := wrong_forms(compiler, link, (level, *repair)))), None)
            verdict = repair if wrong is None else ", ".join(wrong)
            if wrong is None:
                break
        path.write_text(json.dumps(verdict), encoding="utf-8")

    key = hashlib.sha256(facts.encode("utf-8", "surrogateescape")).hexdigest()[:40]
    with stored("emulator", key, make) as (path, _):
        content = path.read_bytes()
    verdict, _ = json.JSONDecoder().raw_decode(content.decode("utf-8", "replace"))
    return verdict if isinstance(verdict, str) else tuple(verdict)


def wrong_forms(compiler: Sequence[str], link: Sequence[str], flags: Sequence[str]) -> list[str]:
    """Compile the forms and run them in a separate process; return the wrong ones.

    A compiler that makes no library of them is not judged here: the engine names its error.

    Raises
    ------
    CompilerSlow
        It does not end in time.
    """
    with tempfile.TemporaryDirectory(prefix="tile-") as folder:
        made, library = Path(folder, "forms.o"), Path(folder, "forms.so")
        compiling = [*compiler, *FLAGS, *flags, "-w", "-c", str(SOURCE), "-o", str(made)]
        for command in (compiling, [*link, "-o", str(library), str(made)]):
            seconds = knobs.current().build_seconds
            try:
                done = called(command, seconds)
            except subprocess.TimeoutExpired:
                raise CompilerSlow(compiler=shlex.join(compiler), seconds=seconds) from None
            except OSError:
                return []
            if done.returncode:
                return []
        if not library.exists():
            return []
        command = [sys.executable, "-m", "tile_emulator.sound", str(library)]
        try:
            judged = called(command, LONGEST)
        except subprocess.TimeoutExpired:
            return [f"the process takes more than {LONGEST} s"]
        if judged.returncode:
            return [f"the process ends with status {judged.returncode}"]
        return [str(name) for name in json.loads(judged.stdout)]


def computed(library: str) -> list[tuple[str, int]]:
    """Return a library's results, by form."""
    table, rows = _tables()
    out = (ctypes.c_int64 * (28 * len(VALUES) + 4 * len(NUMBERS)))()
    lanes = (ctypes.c_int32 * 1024)()
    ctypes.CDLL(library).forms(
        (ctypes.c_int64 * len(VALUES))(*VALUES), len(VALUES), (ctypes.c_double * len(NUMBERS))(*NUMBERS), len(NUMBERS),
        (ctypes.c_int32 * len(table))(*table), (ctypes.c_int32 * len(rows))(*rows), out, lanes,
    )  # fmt: skip
    names = [*_FORMS * len(VALUES), *_FLOATS * len(NUMBERS)]
    return [*zip(names, out, strict=True), *(("loads at remainders", int(x)) for x in lanes)]


def expected() -> list[tuple[str, int]]:
    """Return the expected results, by form."""
    found: list[tuple[str, int]] = []
    for value in VALUES:
        found += zip(_FORMS, _integers(value), strict=True)
    for x in NUMBERS:
        f = struct.unpack("f", struct.pack("f", x))[0]
        finite = not (math.isnan(f) or math.isinf(f))
        negative = f < 0 and not math.isinf(f)
        found += zip(_FLOATS, (int(math.isnan(f)), int(finite), int(negative), int(finite)), strict=True)
    table, rows = _tables()
    coordinates = [(i, j) for i in range(16) for j in range(64)]
    lanes = [table[(i + 1) % 5 * 4 + (j + 5) % 4] + (rows[3 * i] if j < 3 else 0) for i, j in coordinates]
    return [*found, *(("loads at remainders", x) for x in lanes)]


def _integers(value: int) -> list[int]:
    n = _wrapped(value, 32)
    t = _wrapped(-n, 32)
    found: list[int] = []
    for d in (10, 3, -7, 8):
        found += [_wrapped(n // d, 32), _wrapped(-(t // d), 32), _remainder(n, d), _remainder(t, d)]
    wide = _wrapped(-value, 64)
    found += [_truncated(value, 10), _wrapped(-_truncated(wide, 10), 64)]
    found += [_wrapped(n + 1, 32) > n, _truncated(_wrapped(2 * n, 32), 2) == n, t < 0]
    found += [_wrapped(n << 3, 32) >> 3, 7 if n < 0 else 0, _wrapped(n, 8), 3 * n & 0xFFFF]
    quarter = value >> 2
    found += [_single(quarter), int(float(quarter & 2**62 - 1)), _single(quarter & 2**48 - 1)]
    return [int(x) for x in found]


def _remainder(a: int, b: int) -> int:
    return a - b * _truncated(a, b)


def _single(value: int) -> int:
    """Round an integer to a float32 once."""
    shift = max(0, abs(value).bit_length() - 24)
    whole, rest = divmod(abs(value), 1 << shift)
    half = (1 << shift) >> 1
    whole += rest > half or (rest == half and shift > 0 and whole % 2 == 1)
    return int(math.copysign(1, value)) * (whole << shift)


def _truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _wrapped(value: int, bits: int) -> int:
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def _tables() -> tuple[list[int], list[int]]:
    return [k * k + 1 for k in range(20)], [100 * k + 7 for k in range(48)]


def _main() -> None:
    pairs = zip(computed(sys.argv[1]), expected(), strict=True)
    print(json.dumps(sorted({name for (name, x), (_, right) in pairs if x != right})))


if __name__ == "__main__":
    _main()
