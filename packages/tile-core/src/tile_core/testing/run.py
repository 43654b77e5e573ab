"""Run cases: one compilation per unit, one launch per data set, one outcome per case."""

from __future__ import annotations

import functools
import itertools
import linecache
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tile_core.abi.adapter import HOST_DEVICE
from tile_core.compat.types import Array
from tile_core.errors import InternalError, KernelError, TileError, UnsupportedError
from tile_core.errors.launch import NoAddress
from tile_core.ir.warp import WARP
from tile_core.numerics.levels import STANDARD, STRICT, level_of
from tile_core.records import dataclass
from tile_core.runtime.pointers import address_of, pointers
from tile_core.testing.admitted import Admitted
from tile_core.testing.case import LANES, Case, Data, Param, Unit, output
from tile_core.testing.compile_only import BUILD, MODES, compile_only, toolchain_of
from tile_core.testing.data import different, poisoned, seed_of, unharmed
from tile_core.testing.needs import excuse, optional
from tile_core.weights import pack_weights, with_packed_weights

#: The target that executes the meaning of every op: it may refuse nothing that is legal.
REFERENCE = "cpu"

_files = itertools.count()
#: A kernel that every target runs.
_COUNTS = """import tile_core.language as T


@T.prim_func
def main(B: T.Tensor((4,), "int32")):
    with T.Kernel(1, threads=32) as bx:
        for i in T.Parallel(4):
            B[i] = i
"""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a case.

    Attributes
    ----------
    kind
        ``"right"``, ``"compiled"`` (where nothing is launched), ``"refused"``, ``"skipped"`` or ``"wrong"``.
    detail
        The reason; for ``"wrong"`` the whole report with the kernel.
    launched
        Whether no launch failed.
    """

    kind: str
    detail: str = ""
    launched: bool = True


def load(text: str, name: str = "case") -> Any:
    """Return the program that a kernel's text defines as ``main``.

    Raises
    ------
    TileError
        Whatever tracing refuses.
    """
    file = f"<{name} {next(_files)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"__name__": "tile_case"}
    exec(compile(text, file, "exec"), scope)
    return scope["main"]


class Session:
    """A target with a runtime, and the results of runs on it.

    Parameters
    ----------
    target
        A target's text.
    runtime
        Name of one of its runtimes, the first by default; ``"text"`` or ``"build"``: nothing is launched.
    seed
        Where all random data begins.
    interpreted
        Whether the fuzzer also runs the reference interpreter.
    options
        Fields of the backend's options.
    """

    def __init__(
        self,
        target: str = REFERENCE,
        runtime: str | None = None,
        seed: int = 0,
        interpreted: bool = True,
        options: Mapping[str, object] | None = None,
    ) -> None:
        from tile_core.plugins.contexts import make_context
        from tile_core.plugins.manager import installed
        from tile_core.plugins.runtimes import find_runtime

        self.context = make_context(target, options, plugins=installed())
        self.target = self.context.target
        self.asked = target
        self.options = options
        self.runtime = runtime
        self.level = level_of(self.context.options)
        self.launches = runtime not in MODES
        if runtime == BUILD:
            toolchain_of(installed(), self.target)
        elif self.launches and runtime is not None:
            find_runtime(installed(), self.target, runtime)
        self.seed = seed
        self.interpreted = interpreted
        self.selected: dict[int, list[Case]] = {}
        self.outcomes: dict[str, Outcome] = {}

    @property
    def strict(self) -> bool:
        """Whether the target is the reference, which refuses nothing that is legal."""
        return self.target.kind == REFERENCE

    def select(self, cases: Sequence[Case]) -> None:
        """Register the cases to run, so that one unit's cases share its runs."""
        for case in cases:
            self.selected.setdefault(id(case.unit), []).append(case)

    def run(self, case: Case) -> Outcome:
        """Return the outcome of a case."""
        if case.id not in self.outcomes:
            others = self.selected.pop(id(case.unit), [case])
            self._run_unit(case.unit, list({c.id: c for c in [case, *others]}.values()))
        return self.outcomes.pop(case.id)

    def alive(self) -> bool:
        """Return whether launches still work, since a device fault may end them for the process."""
        if not self.launches:
            return True
        try:
            self.call(self.compile(load(_COUNTS)), [output("B", "int32", 4)], {"B": np.zeros(4, np.int32)})
        except Exception:
            return False
        return True

    def compile(self, program: Any) -> Any:
        """Compile a program for the session's target and runtime; ``None`` where nothing is launched."""
        import tile_core as tile
        from tile_core.plugins.manager import installed

        if not self.launches:
            return compile_only(program, self.context, installed(), str(self.runtime))

        return tile.compile(program, target=self.target.text, runtime=self.runtime, options=self.options)

    def _run_unit(self, unit: Unit, cases: list[Case]) -> None:
        left = []
        for case in cases:
            why = excuse(unit.features(case.part), _count(unit.threads), self.target.capabilities)
            if why:
                self.outcomes[case.id] = Outcome("skipped", why)
            else:
                left.append(case)
        if unit.illegal:
            for case in left:
                self.outcomes[case.id] = self._illegal(unit)
            return
        parts = list(dict.fromkeys(c.part for c in left))
        if not parts:
            return
        try:
            kernel = self.compile(with_packed_weights(load(unit.text(parts), unit.op), *unit.packed))
        except Exception as error:
            if len(parts) > 1:  # which part is it?
                for part in parts:
                    self._run_unit(unit, [c for c in left if c.part == part])
                return
            outcome = self._failed(unit, parts[0], error)
            self.outcomes.update({c.id: outcome for c in left})
            return
        if unit.reported:
            self.outcomes.update({c.id: _reported(unit, c) for c in left})
            return
        if not self.launches:
            self.outcomes.update({c.id: Outcome("compiled") for c in left})
            return
        for launch in dict.fromkeys(c.launch for c in left):
            self._launch(unit, kernel, parts, launch, [c for c in left if c.launch == launch])

    def _illegal(self, unit: Unit) -> Outcome:
        text = unit.text()
        expected = " or ".join(unit.illegal)
        try:
            self.compile(load(text, unit.op))
        except InternalError as error:
            return Outcome("wrong", f"expected {expected}, found an internal error:\n{error}\n\n{text}")
        except TileError as error:
            if error.code in unit.illegal:
                return Outcome("refused", error.message)
            return Outcome("wrong", f"expected {expected}, found {error.code}:\n{error}\n\n{text}")
        except Exception as error:
            return Outcome("wrong", f"expected {expected}, found {type(error).__name__}: {error}\n\n{text}")
        return Outcome("wrong", f"expected {expected}, but the kernel compiled\n\n{text}")

    def _failed(self, unit: Unit, part: str, error: Exception) -> Outcome:
        text = unit.text([part])
        if isinstance(error, TileError) and error.code in unit.refusals:
            return Outcome("refused", error.message)
        if isinstance(error, UnsupportedError):
            why = unit.optional or optional(unit.features(part))
            if why and not self.strict:
                return Outcome("refused", f"{error.message} (allowed: {why})")
            return Outcome("wrong", f"every target must run this, it was refused:\n{error}\n\n{text}")
        what = "a legal kernel was refused" if isinstance(error, KernelError) else "it did not compile"
        return Outcome("wrong", f"{what}: {type(error).__name__}: {error}\n\n{text}")

    def _launch(self, unit: Unit, kernel: Any, parts: list[str], launch: str, cases: list[Case]) -> None:
        params = [*unit.params, *(p for part in parts for p in unit.parts[part].params)]
        rng = np.random.default_rng([self.seed, seed_of(unit.op, unit.name, launch)])
        data = unit.launches[launch].data(rng)
        arrays = {p.name: argument(p, data) for p in params if not p.of}
        arrays |= {name: pack_weights(arrays[name]) for name in unit.packed}
        before = {p.name: _bytes(arrays[p.name]) for p in params if not p.out and not p.of}
        text = unit.text(parts)
        try:
            self.call(kernel, params, arrays)
        except NoAddress as error:
            self.outcomes.update({c.id: Outcome("skipped", f"the runtime's arrays: {error.message}") for c in cases})
            return
        except Exception as error:
            outcome = Outcome("wrong", f"the launch failed: {type(error).__name__}: {error}\n\n{text}", False)
            self.outcomes.update({c.id: outcome for c in cases})
            return
        general = [f"the input {n} was written" for n, old in before.items() if _bytes(arrays[n]) != old]
        general += [f"memory around {n} was written" for n, x in arrays.items() if _guarded(x) and not unharmed(x)]
        inputs = {**data, LANES: self.context.capabilities.execution_width or WARP}
        admitted = self._admitted(functools.partial(load, text, unit.op), params, inputs, data)
        for case in cases:
            problems = general + differences(unit, case, inputs, arrays, data, admitted)
            report = "\n".join([*problems, "", text])
            self.outcomes[case.id] = Outcome("wrong", report) if problems else Outcome("right")

    def _admitted(
        self, program: Callable[[], Any], params: Sequence[Param], inputs: Data, data: Data
    ) -> Admitted | None:
        """Return further results that the session's level of numerics admits for a launch, if any."""
        if self.level == STRICT:
            return None
        made = functools.cache(program)
        return Admitted(lambda seed: referenced(made(), params, data, seed, self.level, inputs[LANES]))

    def call(self, kernel: Any, params: Sequence[Param], arrays: Mapping[str, Any]) -> None:
        """Launch a kernel on host arrays through its runtime's memory, and wait."""
        adapter, tables = kernel.adapter, {p.name: p.of for p in params if p.of}
        if HOST_DEVICE in adapter.devices:
            given = with_tables(params, arrays)
            kernel(*(given[p.name] for p in params))
            return
        there = {
            p.name: adapter.from_host(arrays[p.name]) if p.shape is not None else arrays[p.name]
            for p in params if not p.of
        }  # fmt: skip
        addresses = {name: np.array([address_of(there[n]) for n in of], np.int64) for name, of in tables.items()}
        given = {**there, **{name: adapter.from_host(found) for name, found in addresses.items()}}
        kernel(*(given[p.name] for p in params))
        adapter.synchronize()
        for p in params:
            if p.shape is not None and not p.of:
                arrays[p.name][...] = adapter.to_host(there[p.name])


def referenced(
    program: Any,
    params: Sequence[Param],
    data: Data,
    shake: int | None = None,
    level: str = STANDARD,
    width: int = WARP,
) -> dict[str, Any]:
    """Return the arguments of a launch after the reference.

    It watches memory unless it changes results.

    Parameters
    ----------
    program
        A traced program.
    params, data
        Its parameters, and the launch's arrays and sizes.
    shake, level
        Seed of changes of results, and the level of numerics whose bounds these keep.
    width
        Threads of a warp.

    Raises
    ------
    TileError
        The program has undefined behaviour.
    """
    from tile_core.reference import execute

    arrays = {p.name: argument(p, data) for p in params if not p.of}
    given = with_tables(params, arrays)
    unwritten = [n for n, p in enumerate(params) if p.out and p.name not in data]
    symbols = {k: v for k, v in data.items() if k in program.symbols}
    with np.errstate(all="ignore"):
        execute(
            program, {p.name: given[p.name] for p in params}, check=shake is None, width=width, symbols=symbols,
            unwritten=unwritten, shake=shake, level=level,
        )  # fmt: skip
    return arrays


def _reported(unit: Unit, case: Case) -> Outcome:
    """Return whether the reference reports what a program may not do."""
    text, expected = unit.text([case.part]), " or ".join(unit.reported)
    data = unit.launches[case.launch].data(np.random.default_rng(0))
    try:
        referenced(load(text, unit.op), [*unit.params, *unit.parts[case.part].params], data)
    except TileError as error:
        if error.code in unit.reported:
            return Outcome("refused", error.message)
        return Outcome("wrong", f"the reference should report {expected}, it has {error.code}:\n{error}\n\n{text}")
    return Outcome("wrong", f"the reference should report {expected}, it reports nothing\n\n{text}")


def differences(
    unit: Unit, case: Case, inputs: Data, arrays: Mapping[str, Array], data: Data, admitted: Admitted | None = None
) -> list[str]:
    """Return the errors in the outputs of one case.

    ``admitted`` are further results of its level of numerics.
    """
    part, want = unit.parts[case.part], expected_of(unit, case.part, inputs)
    outputs = [p for p in (*part.params, *unit.params) if p.out]
    problems = []
    for p in outputs:
        if p.name not in want:
            continue
        expected = np.broadcast_to(want[p.name], shape_of(p, data))
        found = arrays[p.name]
        admits = None if admitted is None else functools.partial(admitted.among, p, tolerance=part.tolerance)
        problem = different(found, expected, p.dtype, part.tolerance, admits)
        if problem:
            problems.append(f"{case.id}: output {p.name}: {problem}")
    return problems


def expected_of(unit: Unit, part: str, inputs: Data) -> Mapping[str, Array]:
    """Return the expected outputs of a part by name.

    Parameters
    ----------
    inputs
        Arrays, scalars and sizes of a launch, and ``LANES``.
    """
    from tile_core.testing import plain

    chosen = unit.parts[part]
    params = [*unit.params, *chosen.params]
    with np.errstate(all="ignore"):
        if chosen.want is None:
            return plain.run(unit.text([part]), params, {k: _copied(x) for k, x in inputs.items()})
        want = chosen.want(inputs)
    outputs = [p.name for p in (*chosen.params, *unit.params) if p.out]
    return want if isinstance(want, Mapping) else {outputs[0]: want}


def _copied(x: Any) -> Any:
    return x.copy() if isinstance(x, np.ndarray) else x


def with_tables(params: Sequence[Param], arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a launch on the host: arrays, and tables of their addresses."""
    return {**arrays, **{p.name: pointers([arrays[name] for name in p.of]) for p in params if p.of}}


def argument(p: Param, data: Data) -> Array:
    """Return a launch argument: a copy of the initial values, or a poisoned output."""
    if p.name in data:
        value = data[p.name]
        return _copy(value) if p.out and isinstance(value, np.ndarray) else value
    return poisoned(shape_of(p, data), p.dtype)


def _copy(value: Array) -> Array:
    """Return a copy between canaries; of a strided array a copy with its strides."""
    if not value.flags.c_contiguous:
        base = value.base.copy()
        offset = value.ctypes.data - value.base.ctypes.data
        return np.ndarray(value.shape, value.dtype, base.reshape(-1).view(np.uint8).data, offset, value.strides)
    raw = poisoned(value.shape, "uint8" if value.dtype == np.uint8 else _name(value.dtype))
    raw[...] = value
    return raw


def _name(kind: Any) -> str:
    return str(kind.name)


def _guarded(x: Any) -> bool:
    if not isinstance(x, np.ndarray):
        return False
    raw: Any = x
    while isinstance(raw.base, np.ndarray):
        raw = raw.base
    ends = raw.dtype == np.uint8 and raw.ndim == 1 and raw.size >= 512 and raw.size == x.nbytes + 512
    return bool(ends)


def _bytes(x: Any) -> Any:
    return x.tobytes() if isinstance(x, np.ndarray) else repr(x)  # NaN equals nothing, its text does


def shape_of(p: Param, data: Data) -> tuple[int, ...]:
    """Return the extents of a parameter at the sizes of a launch."""
    sizes = {k: v for k, v in data.items() if isinstance(v, int)}
    return tuple(d if isinstance(d, int) else int(eval(d, {"__builtins__": {}}, sizes)) for d in p.shape or ())


def _count(threads: int | tuple[int, ...]) -> int:
    return threads if isinstance(threads, int) else math.prod(threads)
