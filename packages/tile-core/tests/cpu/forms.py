"""Vector forms of a kernel, compiled for many processors: ``python forms.py GROUP TRIPLE ROTATION NAME...``.

The rotation selects the kernel of the group for each processor. Each processor has a process of its own, forked after
TVM is imported. Where this machine has its instructions, results are compared with the reference; for the others
machine code is generated. Prints the failures, by name, as JSON.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import json
import os
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tile_core as tile
from tile_core.cpu import build, pipeline, target
from tile_core.cpu.isa import Isa
from tile_core.cpu.processors import missing_here
from tile_core.cpu.runtime.host import HostAdapter
from tile_core.reference import execute

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
SIZE = 37
#: Kernels by group: text, name and type of the parameters that it reads, and of those that it writes.
Form = tuple[str, dict[str, tuple[tuple[int, ...], str]], dict[str, tuple[tuple[int, ...], str]]]


def _kernel(loops: list[str], reads: dict[str, Any], writes: dict[str, Any]) -> Form:
    params = ", ".join(f'{n}: T.Tensor({s}, "{t}")' for n, (s, t) in {**reads, **writes}.items())
    body = "\n".join(f"        {line}" for line in loops)
    text = f"import tile_core.language as T\n\n@T.prim_func\ndef f({params}):\n    with T.Kernel(1):\n{body}\n"
    return text, reads, writes


def conversions() -> Iterator[Form]:
    """Yield conversions of each type into each other one, alone and behind a guard."""
    for source in (*INTEGERS, *FLOATS):
        loops, writes = [], {}
        for kind in (*INTEGERS, *FLOATS, "bfloat16"):
            if kind == source:
                continue
            cast = f"T.cast(A[i], '{kind}')"
            writes |= {f"{kind}_": ((SIZE,), kind), f"{kind}_g": ((SIZE,), kind)}
            loops += [
                f"for i in T.Parallel({SIZE}):", f"    {kind}_[i] = {cast}",
                f"for i in T.Parallel({SIZE}):",
                f"    {kind}_g[i] = T.if_then_else(i % 3 != 1, {cast}, T.cast(A[{SIZE - 1} - i], '{kind}'))",
            ]  # fmt: skip
        yield _kernel(loops, {"A": ((SIZE,), source)}, writes)


def quotients() -> Iterator[Form]:
    """Yield quotients and remainders of each type by constants and values, both roundings."""
    for kind in INTEGERS:
        loops, writes = [], {}
        divisors = ["1", "2", "3", "8", "10", "64", "B[i]"] + (["-1", "-4", "-7"] if kind.startswith("i") else [])
        for n, (d, function) in enumerate(
            (d, f) for d in divisors for f in ("T.floordiv", "T.floormod", "T.truncdiv", "T.truncmod")
        ):
            writes[f"o{n}"] = ((SIZE,), kind)
            value = f"{function}(A[i], T.cast({d}, '{kind}'))" if d != "B[i]" else f"{function}(A[i], B[i])"
            guarded = f"T.if_then_else(i < 30, {value}, A[i])" if n % 3 == 0 else value
            loops += [f"for i in T.Parallel({SIZE}):", f"    o{n}[i] = {guarded}"]
        yield _kernel(loops, {"A": ((SIZE,), kind), "B": ((SIZE,), kind)}, writes)


def indices() -> Iterator[Form]:
    """Yield guarded loads at remainders, masks and narrow loop variables, whose lanes wrap."""
    guards = ("j < 3", "j >= 5", "j == 4", "j % 2 == 0", "i < 2", "j < i", "j < n[0]")
    for kind in ("int32", "float32", "int8", "float64"):
        loops, writes, reads = [], {}, {"A": ((6, 3), kind), "n": ((1,), "int32")}
        for p, q in ((3, 4), (5, 4), (7, 8), (5, 2), (6, 16)):
            reads[f"C{p}{q}"] = ((p, q), kind)
            for b, extent in ((1, 61), (5, 64), (-3, 48), (7, 32)):
                step = 256 // q
                narrow = f"T.cast(T.cast(j * {step} + {b}, 'uint8'), 'int32') // {step}"
                column = (f"(j + {b}) % {q}", f"(j + {b}) & {q - 1}", narrow)[len(writes) % 3]
                name = f"o{len(writes)}"
                guard = guards[len(writes) % len(guards)]
                writes[name] = ((6, extent), kind)
                loops += [
                    f"for i, j in T.Parallel(6, {extent}):",
                    f"    {name}[i, j] = C{p}{q}[(i + {b + 3}) % {p}, {column}] + T.if_then_else({guard}, A[i, 0], 0)",
                ]
        yield _kernel(loops, reads, writes)


GROUPS: dict[str, Callable[[], Iterator[Form]]] = {
    "conversions": conversions, "quotients": quotients, "indices": indices,
}  # fmt: skip


def _values(shape: tuple[int, ...], kind: str, rng: np.random.Generator) -> Any:
    """Return extremes and small values, among them floats that integer types lack."""
    if kind.startswith("float"):
        far = [0.0, -0.0, 1.5, -1.5, 127.9, 255.0, -128.0, 3e4, -3e4, 2.0**31, 2.0**40, -(2.0**63), np.inf, -np.inf]
        with np.errstate(over="ignore"):
            found = rng.choice(np.array([*far, *rng.uniform(-200, 200, 20)]), shape).astype(kind)
        return found
    info = np.iinfo(kind)
    return rng.choice(np.array([info.min, info.max, info.max // 2 + 1, 0, 1, 2, 3, *range(5, 100)], kind), shape)


def lowered(program: Any, isa: Isa) -> Any:
    """Return the function that the builder takes."""

    def load(self: HostAdapter, artefact: Any) -> Any:
        found.append(artefact)
        return lambda *values: None

    found: list[Any] = []
    whole, isas = HostAdapter.load, (target.isa_of, pipeline.isa_of)
    HostAdapter.load = load  # type: ignore[method-assign]
    target.isa_of = pipeline.isa_of = lambda _: isa
    try:
        tile.compile(program, "cpu")
    finally:
        HostAdapter.load = whole  # type: ignore[method-assign]
        target.isa_of, pipeline.isa_of = isas
    return found[0]


@functools.cache
def program(group: str, number: int) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Return a kernel of a group with values and what the reference computes from them."""
    forms = list(GROUPS[group]())
    text, reads, writes = forms[number % len(forms)]
    path = Path(tempfile.mkdtemp(), f"forms_{group}_{number}.py")
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rng = np.random.default_rng()
    given = {name: _values(shape, kind, rng) for name, (shape, kind) in reads.items()}
    outputs = {
        name: np.full(shape, 77, np.uint16 if kind == "bfloat16" else kind) for name, (shape, kind) in writes.items()
    }
    execute(module.f, {**given, **outputs}, check=False)
    return module.f, given, outputs


@functools.cache
def function(group: str, number: int, level: Isa) -> Any:
    """Return the lowered function of a kernel for a kind of vector unit."""
    return lowered(program(group, number)[0], level)


def _differences(entry: Any, given: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    outputs = {name: np.full_like(e, 99) for name, e in expected.items()}
    entry(*given.values(), *outputs.values())
    return [name for name, e in expected.items() if not np.array_equal(e, outputs[name], equal_nan=e.dtype.kind == "f")]


def check(isa: Isa, group: str, number: int, is_foreign: bool) -> str:
    """Compile, and if possible run, a kernel in its own process; return the failure."""
    func = function(group, number, dataclasses.replace(isa, mcpu="", mattr=()))
    _, given, expected = program(group, number)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writer, 1)
        os.dup2(writer, 2)
        module, wrong = build.build(func, isa), []
        if is_foreign or missing_here(isa):
            module.inspect_source("asm")
        else:
            wrong = _differences(module[build.ENTRY], given, expected)
        print(" ".join(wrong), flush=True)
        os._exit(bool(wrong))
    os.close(writer)
    with os.fdopen(reader, errors="replace") as said:
        text = said.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status < 0:
        return signal.Signals(-status).name
    return text.strip()[-300:] or "ended" if status else ""


def main(group: str, triple: str, rotation: int, names: list[str]) -> None:
    """Check processors, and print the failures."""
    warnings.simplefilter("ignore")
    if triple:
        whole = Isa.target
        Isa.target = lambda self: {**whole(self), "mtriple": triple}  # type: ignore[method-assign]
    failed = {}
    with tile.disable_cache():
        for n, name in enumerate(names):
            if reason := check(Isa.for_cpu(name, triple or None), group, rotation + n, bool(triple)):
                failed[name] = reason
    print(json.dumps(failed))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:])
