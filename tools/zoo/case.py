"""A kernel with arguments and what it must compute, and the examples as such cases.

An example compiles a program, calls the kernel and compares what it wrote. To take one apart, its ``tile.compile``
gives a kernel that keeps its arguments, and its ``check`` keeps what is expected: the data and the tolerances are those
of the example.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@dataclass(frozen=True)
class Wanted:
    """Expected contents of an argument, and the tolerance in units of its scale."""

    index: int
    expected: Any
    tolerance: float
    scale: Any = None

    def error(self, got: Any) -> float:
        """Return the largest error in units of the scale; NaN where a number is missing."""
        expected = np.asarray(self.expected, "float64")
        scale = 1 + np.abs(expected) if self.scale is None else self.scale
        return float(np.max(np.abs(np.asarray(got, "float64") - expected) / scale, initial=0.0))

    def holds(self, got: Any) -> bool:
        """Whether an array is what is wanted."""
        return bool(self.error(got) <= self.tolerance)


@dataclass(frozen=True)
class Case:
    """One program, arguments for one call, and what they must hold after it."""

    program: Any
    args: tuple[Any, ...]
    wanted: tuple[Wanted, ...]


@functools.cache
def example(name: str) -> ModuleType:
    """Import an example; its imports find their neighbours, and no other module sees them."""
    sys.path.insert(0, str(EXAMPLES))
    before = sys.modules.pop("checks", None)
    try:
        spec = importlib.util.spec_from_file_location(f"zoo_example_{name}", EXAMPLES / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(EXAMPLES))
        sys.modules.pop("checks", None)
        if before is not None:
            sys.modules["checks"] = before
    return module


class _Recorder:
    """Stands for the language's package and for ``check`` while an example runs."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, tuple[Any, ...], list[Wanted]]] = []

    def compile(self, program: Any, target: str | None = None, out_idx: int | None = None) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            if out_idx is None:
                self.calls.append((program, args, []))
                return None
            at = out_idx % len(program.params)
            out = _result(program, at, args)
            self.calls.append((program, (*args[:at], out, *args[at:]), []))
            return out

        return call

    def check(self, name: str, got: Any, expected: Any, tolerance: float, scale: Any = None) -> bool:
        for _, args, wanted in self.calls:
            for index, arg in enumerate(args):
                if got is arg:
                    wanted.append(Wanted(index, expected, tolerance, scale))
        return True


class _Recording:
    """The package ``tile`` with another ``compile``, and the default tiles of a factory for every target."""

    def __init__(self, tile: Any, compile: Callable[..., Any]) -> None:
        self._tile, self.compile = tile, compile

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tile, name)

    def tilings(self, factory: Any, sizes: Any, **options: Any) -> list[dict[str, Any]]:
        """Return one tiling, the factory's own."""
        return [{}]


def recorded(name: str, run: Callable[[ModuleType], Any]) -> list[Case]:
    """Return an example's compilations, calls and checks while one of its functions runs."""
    module, recorder = example(name), _Recorder()
    before = {key: getattr(module, key) for key in ("tile", "check", "for_numpy") if hasattr(module, key)}
    tile = before.get("tile")
    if tile is not None:
        module.tile = _Recording(tile, recorder.compile)  # type: ignore[attr-defined]
    module.for_numpy = lambda kernel: kernel  # type: ignore[attr-defined]
    module.check = recorder.check  # type: ignore[attr-defined]
    try:
        run(module)
    finally:
        for key, value in before.items():
            setattr(module, key, value)
    return [Case(program, args, tuple(wanted)) for program, args, wanted in recorder.calls if wanted]


def from_example(name: str, *args: Any, function: str = "one", at: int = 0) -> Callable[[], Case]:
    """Return a maker of the case of an example's function, called with arguments."""

    def make() -> Case:
        def run(module: ModuleType) -> None:
            given = [getattr(module, a[1:]) if isinstance(a, str) and a.startswith("@") else a for a in args]
            getattr(module, function)(*given, "recorded")

        return recorded(name, run)[at]

    return make


def _result(program: Any, at: int, args: Sequence[Any]) -> Any:
    """Return a poisoned array for a result; extents are numbers, or other shapes' names."""
    from tile_core.dtypes import DTYPES

    names: dict[str, int] = {}
    for param, arg in zip((p for i, p in enumerate(program.params) if i != at), args, strict=True):
        dims = zip(param.shape, getattr(arg, "shape", ()), strict=False)
        names.update({dim: size for dim, size in dims if isinstance(dim, str)})
    result = program.params[at]
    return poisoned([names[d] if isinstance(d, str) else d for d in result.shape], DTYPES[result.dtype].numpy())


def poisoned(shape: Sequence[int], dtype: Any) -> Any:
    """Return an array with every bit set, which exposes unwritten elements."""
    array = np.empty(tuple(shape), dtype)
    array.view(np.uint8)[...] = 0xFF
    return array
