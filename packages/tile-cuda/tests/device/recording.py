"""Record launches for `replay`: units of the conformance suite, called with a recording driver."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import multiprocessing
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tile_core.abi.kernel_text import KernelText, LaunchFacts
from tile_core.compiler import lower, signature_of
from tile_core.dtypes import DTYPES
from tile_core.errors import TileError
from tile_core.numerics import codecs
from tile_core.plugins.manager import installed
from tile_core.runtime.kernel import Kernel
from tile_core.runtime.pointers import address_of
from tile_core.testing import oracles
from tile_core.testing.case import LANES, Case, Param, Unit
from tile_core.testing.data import seed_of
from tile_core.testing.run import Outcome, Session, argument, expected_of, load, shape_of
from tile_core.testing.tables import cases
from tile_cuda.runtime import CudaAdapter
from tile_cuda_runtime.architectures import record_of
from tile_cuda_runtime.memory import DeviceArray
from tile_cuda_runtime.tensor_map import BYTES, SWIZZLES, TensorMap
from tile_runtime.texts.guarded import GUARD

if __package__:
    from ..runtime.fake import Device, FakeDriver
    from .replay import MANIFEST, TABLES
    from .subset import SUBSET
else:
    from replay import MANIFEST, TABLES
    from runtime.fake import Device, FakeDriver
    from subset import SUBSET

MOST_SHARED = 227 << 10


@dataclass(frozen=True)
class Wish:
    """Settings of a recording.

    Attributes
    ----------
    target
        A target's text with an architecture.
    launches
        Data sets of each unit.
    seed
        Where all random data begins.
    seconds
        For each unit: the compiler cannot be interrupted, so every unit has a process of its own.
    workers
        Processes at a time.
    options
        Fields of the backend's options.
    """

    target: str = "cuda:sm_90a"
    launches: int = 2
    seed: int = 0
    seconds: float = 60
    workers: int = 2
    options: Mapping[str, object] = field(default_factory=dict)


def record(directory: Path, only: Sequence[str] = (), wish: Wish = Wish()) -> int:
    """Write the launches of units to a directory.

    Parameters
    ----------
    directory
        Is made; files of the same names are replaced.
    only
        Patterns of ``op/unit``; by default those of ``subset``.
    wish
        Further settings.

    Returns
    -------
    int
        1 if a unit that every target must run could not be recorded.
    """
    directory.mkdir(parents=True, exist_ok=True)
    begin = time.perf_counter()
    chosen = [u for u in units(only or SUBSET) if not u.illegal]
    results = _recorded(directory, chosen, wish)
    session = Recording(directory, wish)
    for result in results:
        session.entries += result["entries"]
        session.missing += result["missing"]
    session.write()
    count, size = len(session.entries), sum(f.stat().st_size for f in directory.iterdir())
    took = time.perf_counter() - begin
    print(f"{count} launches of {len(chosen)} units, {size / 2**20:.1f} MiB, {took:.0f} s", end="; ")
    print(f"{len(session.missing)} cases missing")
    return 1 if session.missing else 0


def units(patterns: Sequence[str]) -> list[Unit]:
    """Return units of the suite matching a pattern of ``op/unit``, in its order."""
    known = {id(c.unit): c.unit for c in cases()}.values()
    return [u for u in known if any(fnmatch.fnmatchcase(f"{u.op}/{u.name}", pattern) for pattern in patterns)]


def _recorded(directory: Path, chosen: Sequence[Unit], wish: Wish) -> list[dict[str, Any]]:
    """Record every unit in a process of its own; return their outputs."""
    fork = multiprocessing.get_context("fork")
    warm = units(["fill/float32"])[0]  # all that is imported now, no child imports
    Recording(directory, wish).compile(load(warm.text(), warm.op))
    waiting, running, results = list(enumerate(chosen)), {}, []
    while waiting or running:
        while waiting and len(running) < wish.workers:
            number, unit = waiting.pop(0)
            process = fork.Process(target=_record_unit, args=(directory, number, unit, wish))
            process.start()
            running[number] = (process, unit, time.monotonic() + wish.seconds)
        time.sleep(0.02)
        for number, (process, unit, end) in list(running.items()):
            if process.is_alive() and time.monotonic() < end:
                continue
            why = "its process died" if not process.is_alive() else f"it took more than {wish.seconds:.0f} s"
            process.kill()
            process.join()
            del running[number]
            results.append(_result(directory / f"{number:04d}.json", unit, why))
    return results


def _record_unit(directory: Path, number: int, unit: Unit, wish: Wish) -> None:
    session = Recording(directory, wish, f"{number:04d}")
    session.select(unit.cases())
    for case in unit.cases():
        outcome = session.run(case)
        if outcome.kind == "refused":
            print(f"{case.id}: {outcome.detail.splitlines()[0]}", flush=True)
        if outcome.kind == "wrong":
            session.missing.append(f"{case.id}: {outcome.detail.splitlines()[0]}")
    result = {"entries": session.entries, "missing": session.missing}
    (directory / f"{number:04d}.json").write_text(json.dumps(result))


def _result(path: Path, unit: Unit, why: str) -> dict[str, Any]:
    result: dict[str, Any] = {"entries": [], "missing": [f"{unit.op}/{unit.name}: {why}"]}
    if path.exists():
        result = json.loads(path.read_text())
        path.unlink()
    for text in result["missing"]:
        print(text, flush=True)
    return result


class Recorder(FakeDriver):
    """A driver without a device that keeps code and how it is launched."""

    facts: LaunchFacts

    def begin(self, facts: LaunchFacts) -> None:
        """Receive the facts of the next launch."""
        self.facts, self.parameters = facts, len(facts.given)
        self.maps = len(facts.params) - self.parameters

    def encode_map(self, fields: TensorMap) -> bytes:
        found: list[TensorMap] = self.__dict__.setdefault("encoded", [])
        found.append(fields)
        return (len(found) - 1).to_bytes(BYTES, "little")

    def load(self, code: bytes) -> Any:
        return bytes(code)

    def function(self, library: Any, name: str) -> int:
        found: dict[int, tuple[bytes, str]] = self.__dict__.setdefault("functions", {})
        found[len(found) + 1] = (library, name)
        return len(found)


class Adapter(CudaAdapter):
    """Report the text of each launch to the driver: arguments may select a text."""

    def _launcher(self, kernel: KernelText) -> Any:
        return ReportingLaunch(super()._launcher(kernel), kernel.facts, self._open())


class ReportingLaunch:
    """A launch that reports its facts to the driver."""

    def __init__(self, launch: Any, facts: LaunchFacts, driver: Any) -> None:
        self._launch, self._facts, self._driver = launch, facts, driver

    def __call__(self, values: Any, location: Any) -> None:
        self._driver.begin(self._facts)
        self._launch(values, location)

    def repeat(self, *arguments: Any) -> None:
        """Return no short form: each launch reports its facts."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._launch, name)


class Recording(Session):
    """A session of the suite that records launches instead of running them."""

    def __init__(self, directory: Path, wish: Wish, prefix: str = "") -> None:
        super().__init__(wish.target, None, wish.seed, options=wish.options or None)
        self.directory, self.most, self.prefix = directory, wish.launches, prefix
        compute = record_of(self.target.arch).compute
        self.driver = Recorder([Device(0, "none", compute, MOST_SHARED)])
        self.entries: list[dict[str, Any]] = []
        self.missing: list[str] = []

    def compile(self, program: Any) -> Kernel:
        """Compile without the cache, and load with the driver that remembers."""
        plugins = installed()
        plan = lower(program, self.context, plugins)
        adapter = Adapter(self.target, lambda: self.driver)  # type: ignore[arg-type, return-value]
        return Kernel(signature_of(program), adapter.load(plan.lowered), adapter=adapter, hidden=plan.hidden)

    def write(self) -> None:
        """Write the manifest, and values of codes of narrow types."""
        tables = {}
        for name, kind in DTYPES.items():
            if kind.bits <= 8 and (kind.is_float or kind.is_packed):
                decoded = codecs.decode(np.arange(2**kind.bits), name)
                tables[name] = decoded.astype(np.float64 if kind.is_float else np.int64)
        np.savez_compressed(self.directory / TABLES, **tables)
        manifest = {
            "arch": self.target.arch,
            "target": self.target.text,
            "seed": self.seed,
            "commit": _commit(),
            "missing": self.missing,
            "launches": self.entries,
        }
        (self.directory / MANIFEST).write_text(json.dumps(manifest, indent=0))

    def _launch(self, unit: Unit, kernel: Any, parts: list[str], launch: str, cases: list[Case]) -> None:
        self.outcomes.update({c.id: Outcome("right") for c in cases})
        if list(unit.launches).index(launch) < self.most:
            try:
                self._record(unit, kernel, parts, launch, cases)
            except TileError as error:
                self.outcomes.update({c.id: Outcome("wrong", str(error)) for c in cases})

    def _record(self, unit: Unit, kernel: Any, parts: list[str], launch: str, cases: list[Case]) -> None:
        params = [*unit.params, *(p for part in parts for p in unit.parts[part].params)]
        rng = np.random.default_rng([self.seed, seed_of(unit.op, unit.name, launch)])
        data = unit.launches[launch].data(rng)
        values = {p.name: argument(p, data) for p in params}
        there = {p.name: kernel.adapter.from_host(values[p.name]) for p in params if p.shape is not None and not p.of}
        for p in params:
            if p.of:  # the addresses of a replay are written there
                addresses = np.array([address_of(there[name]) for name in p.of], np.int64)
                there[p.name] = kernel.adapter.from_host(addresses)
        self.driver.launches.clear()
        kernel(*(there.get(p.name, values[p.name]) for p in params))
        if not self.driver.launches:  # a grid without blocks
            return
        (made,) = self.driver.launches
        arrays, kept = self._arrays(params, there, data)
        wanted = self._wanted(unit, cases, values, data, kept)
        name = "/".join(x for x in (unit.op, unit.name, launch) if x)
        file = f"{self.prefix}-{len(self.entries)}.npz"
        np.savez_compressed(self.directory / file, **kept)
        library, entry = self.driver.__dict__["functions"][made.function]
        code = f"{hashlib.sha256(library).hexdigest()[:16]}.cubin"
        (self.directory / code).write_bytes(library)
        self.entries.append(
            {
                "name": name, "op": unit.op, "unit": f"{unit.op}/{unit.name}", "code": code, "entry": entry,
                "grid": made.grid, "block": made.block, "shared": made.shared, "data": file,
                "params": self._params(made.values, there), "arrays": arrays, "wanted": wanted,
            }
        )  # fmt: skip

    def _params(self, values: bytes, there: dict[str, DeviceArray]) -> list[dict[str, Any]]:
        """Return the parameters of a launch: arrays by name, values as bytes."""
        known = {array.pointer: name for name, array in there.items()}
        found: list[dict[str, Any]] = []
        for i, param in enumerate(self.driver.facts.given):
            slot = values[8 * i : 8 * i + 8]
            if param.kind != "pointer":
                found.append({"bytes": slot.hex()})
                continue
            name = known[int.from_bytes(slot, "little")]
            array = there[name]
            found.append({"array": name, "offset": array.pointer - array._memory.address - GUARD})
        maps = values[8 * len(found) :]
        numbers = [int.from_bytes(maps[i : i + BYTES], "little") for i in range(0, len(maps), BYTES)]
        return found + [self._map(self.driver.__dict__["encoded"][i], there) for i in numbers]

    def _map(self, fields: TensorMap, there: dict[str, DeviceArray]) -> dict[str, Any]:
        """Return a tensor map: its origin in an array, and the driver's fields."""
        encoding = {
            "code": fields.code, "extents": fields.extents, "strides": fields.strides, "box": fields.box,
            "swizzle": SWIZZLES[fields.swizzle], "nan": fields.nan,
        }  # fmt: skip
        for name, array in there.items():
            offset = fields.address - array._memory.address - GUARD
            if 0 <= offset < array._image.size:
                return {"array": name, "offset": offset, "map": encoding}
        return {"array": None, "offset": 0, "map": encoding}  # one zero, for an array without elements

    def _arrays(self, params: Sequence[Param], there: dict[str, DeviceArray], data: Any) -> Any:
        """Return the arrays of a launch and their memory, as in the manifest."""
        access = {p.name: p.access for p in self.driver.facts.params}
        # initcheck does not see writes of box copies.
        boxes = {p.descriptor.source for p in self.driver.facts.params if p.descriptor is not None}
        arrays, kept = {}, {}
        for p in params:
            if p.name not in there:
                continue
            dtype = "int64" if p.of else p.dtype
            array, kind = there[p.name], DTYPES[dtype]
            skew = array._front - GUARD
            plain = array.dtype.isbuiltin == 1
            arrays[p.name] = {
                "dtype": dtype, "packed": kind.is_packed, "out": p.out, "of": p.of,
                "storage": array.dtype.str if plain else f"<u{array.dtype.itemsize}",
                "shape": array.shape, "strides": array.strides, "skew": skew, "first": array.offset - array._front,
                "fresh": p.out and p.name not in data and access.get(p.name) == "write"
                and p.name not in boxes,
            }  # fmt: skip
            kept[p.name] = array._image[array._front : array._image.size - GUARD]
        return arrays, kept

    def _wanted(self, unit: Unit, cases: list[Case], values: Any, data: Any, kept: dict[str, Any]) -> list[Any]:
        """Return expected outputs, and add the values to ``kept``."""
        found = []
        for case in cases:
            part = unit.parts[case.part]
            want = expected_of(unit, case.part, {**data, LANES: self.context.capabilities.execution_width})
            for p in (p for p in (*part.params, *unit.params) if p.out):
                if p.name not in want:
                    continue
                exact = np.asarray(oracles.cast(np.broadcast_to(want[p.name], shape_of(p, data)), p.dtype))
                key = f"want {len(found)}"
                kept[key] = exact.astype(np.float64) if DTYPES[p.dtype].is_float else exact
                t = part.tolerance
                found.append({
                    "part": case.part, "array": p.name, "key": key, "rtol": t.rtol, "atol": t.atol, "zeros": t.zeros,
                })  # fmt: skip
        return found


def _commit() -> str:
    """Return the commit of this repository, marked if modified; empty without one."""
    here = Path(__file__).resolve().parent
    found = []
    for command in ("rev-parse HEAD", "status --porcelain --untracked-files=no"):
        done = subprocess.run(["git", *command.split()], cwd=here, capture_output=True, text=True, check=False)
        found.append(done.stdout.strip() if not done.returncode else "")
    return found[0] + ("+changes" if found[1] else "")
