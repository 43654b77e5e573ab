"""Record launches of the conformance suite without a device; replay them with only its driver.

::

    python replay.py record DIRECTORY            # anywhere: needs NVRTC and these packages, no GPU
    python replay.py run DIRECTORY               # with a GPU: needs Python, NumPy and the driver
    compute-sanitizer --tool memcheck python3 replay.py run DIRECTORY --exact

``record`` compiles the units that ``subset.py`` names and writes their machine code, the memory of their arrays and
what they must compute. ``run`` launches them between guards and prints a table per op; it fails if a launch is wrong.

With ``--exact`` there are no guards: every array is alone in an allocation of its size, and outputs are left as they
were allocated, so that a tool that watches the device sees every access that is out of bounds or reads nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import fnmatch
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

if __package__:
    from ..vectors.record import Driver, DriverError
else:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from vectors.record import Driver, DriverError

GUARD = 256
POISON = 0xFF
MANIFEST = "manifest.json"
TABLES = "tables.npz"
KINDS = ("right", "wrong", "failed")
MAP_BYTES = 128  # of an encoded tensor map; also more than its alignment
_PROMOTION = 3  # CU_TENSOR_MAP_L2_PROMOTION_L2_256B
_MOST_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


def main(arguments: list[str]) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Record launches of the conformance kit, and replay them on a device.")
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="compile and write; needs no device")
    recording.add_argument("directory", type=Path)
    recording.add_argument("--target", default="cuda:sm_90a")
    recording.add_argument("--launches", type=int, default=2, help="data sets of each unit")
    recording.add_argument("--seed", type=int, default=0)
    recording.add_argument("--seconds", type=float, default=60, help="for each unit")
    recording.add_argument("--workers", type=int, default=2, help="units at a time")
    recording.add_argument("--option", action="append", metavar="NAME=VALUE", help="of the backend; may be repeated")
    running = commands.add_parser("run", help="launch and compare")
    running.add_argument("directory", type=Path)
    running.add_argument("--exact", action="store_true", help="no guards: for tools that watch the device")
    for command in (recording, running):
        command.add_argument("--only", action="append", default=[], metavar="PATTERN", help="op/unit; may be repeated")
    given = parser.parse_args(arguments)
    if given.command == "run":
        return run(given.directory, Replayer(), given.only, exact=given.exact)
    if __package__:
        from .recording import Wish, record
    else:
        from recording import Wish, record  # type: ignore[import-not-found,no-redef]
    from tile_core.pairs import pairs

    options = pairs("--option", given.option, "wgmma=always")
    wish = Wish(given.target, given.launches, given.seed, given.seconds, given.workers, options)
    return int(record(given.directory, given.only, wish))


def run(directory: Path, driver: Any, only: list[str], *, exact: bool = False) -> int:
    """Launch recorded units, and print their results.

    Parameters
    ----------
    directory
        What ``record`` wrote.
    driver
        A `Replayer`.
    only
        Patterns of ``op/unit``; all units if there are none.
    exact
        No guards, outputs not initialised.
    """
    manifest = json.loads((directory / MANIFEST).read_text())
    driver.open(manifest["arch"])
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    problems, begin = [], time.perf_counter()
    with np.load(directory / TABLES) as tables:
        known = dict(tables)
    for launch in manifest["launches"]:
        if only and not any(fnmatch.fnmatchcase(launch["unit"], pattern) for pattern in only):
            continue
        kind, found = _one(directory, launch, known, driver, exact)
        counts[launch["op"]][kind] += 1
        problems += [f"{launch['name']}: {text}" for text in found]
    print_table(counts)
    print(f"{sum(c.total() for c in counts.values())} launches in {time.perf_counter() - begin:.1f} s")
    for text in problems:
        print(text)
    return 1 if problems else 0


def print_table(counts: Mapping[str, Counter[str]]) -> None:
    """Print outcomes per op."""
    width = max(len("all ops"), *map(len, counts), 0) if counts else len("all ops")
    print(f"{'op':<{width}} " + "".join(f"{k:>9}" for k in KINDS))
    for op in sorted(counts):
        print(f"{op:<{width}} " + "".join(f"{counts[op][k] or '-':>9}" for k in KINDS))
    total: Counter[str] = sum(counts.values(), Counter())
    print(f"{'all ops':<{width}} " + "".join(f"{total[k] or '-':>9}" for k in KINDS))


def _one(
    directory: Path, launch: Mapping[str, Any], tables: Mapping[str, Any], driver: Any, exact: bool
) -> tuple[str, list[str]]:
    """Launch once; return the outcome and the difference."""
    with np.load(directory / launch["data"]) as file:
        data = dict(file)
    before = {name: image_of(data[name], array, exact=exact) for name, array in launch["arrays"].items()}
    fresh = {name for name, array in launch["arrays"].items() if exact and array["fresh"]}
    try:
        code = (directory / launch["code"]).read_bytes()
        after = driver.replay(code, launch, before, fresh, 0 if exact else GUARD)
    except DriverError as error:
        return "failed", [str(error)]
    problems = []
    for name, array in launch["arrays"].items():
        changed = before[name] != after[name]
        if array["out"]:
            _view(changed, array, exact, bytes_of=True)[...] = False
        if name not in fresh and changed.any():
            where = "memory around it" if array["out"] else "an input or memory around it"
            problems.append(f"{name}: {where} was written, {int(changed.sum())} bytes, first at {_first(changed)}")
    for wanted in launch["wanted"]:
        array = launch["arrays"][wanted["array"]]
        found = values_of(_view(after[wanted["array"]], array, exact), array, data[wanted["key"]].shape, tables)
        problem = different(found, data[wanted["key"]], wanted)
        problems += [f"{wanted['part'] or 'output'} {wanted['array']}: {problem}"] if problem else []
    return ("wrong" if problems else "right"), problems


def image_of(stored: Any, array: Mapping[str, Any], *, exact: bool = False) -> Any:
    """Return the bytes of an allocation that holds an array's memory."""
    front, back = (array["skew"], 0) if exact else (GUARD + array["skew"], GUARD)
    image = np.full(max(front + stored.size + back, 1), POISON, np.uint8)
    image[front : front + stored.size] = stored
    return image


def write_tables(images: Mapping[str, Any], arrays: Mapping[str, Any], memory: Mapping[str, int], guard: int) -> None:
    """Write the addresses that arrays have into the images of tables of them.

    Parameters
    ----------
    images
        The bytes of the allocations.
    arrays
        The launch's arrays as the manifest has them: ``of`` names those in a table.
    memory
        Where each allocation begins.
    guard
        Bytes before each array.
    """
    for name, table in arrays.items():
        for n, other in enumerate(table["of"]):
            array = arrays[other]
            address = memory[other] + guard + array["skew"] + array["first"]
            _view(images[name], table, not guard)[n] = address


def _view(image: Any, array: Mapping[str, Any], exact: bool, *, bytes_of: bool = False) -> Any:
    """Return an array in the image of its allocation, or its bytes along another axis."""
    kind = np.dtype(array["storage"])
    start = (0 if exact else GUARD) + array["skew"] + array["first"]
    if bytes_of:
        shape, strides = (*array["shape"], kind.itemsize), (*array["strides"], 1)
        return np.ndarray(shape, image.dtype, image.data, start, strides)
    return np.ndarray(tuple(array["shape"]), kind, image.data, start, tuple(array["strides"]))


def values_of(stored: Any, array: Mapping[str, Any], shape: tuple[int, ...], tables: Mapping[str, Any]) -> Any:
    """Return values of stored elements: float64, or integers unchanged."""
    how = array["dtype"]
    if array["packed"]:
        nibbles = np.stack([stored & 15, stored >> 4], -1).reshape(*stored.shape[:-1], -1)
        stored = nibbles[..., : shape[-1]]
    if how in tables:
        return tables[how][stored]
    if how == "bfloat16":
        wide = stored.astype(np.uint32) << np.uint32(16)
        stored = wide.view(np.float32)
    with np.errstate(invalid="ignore"):  # widening a signalling NaN warns
        return stored.astype(np.float64) if stored.dtype.kind == "f" else stored


def different(found: Any, want: Any, wanted: Mapping[str, Any]) -> str:
    """Return the difference of values beyond their tolerances; empty if there is none."""
    if want.dtype.kind == "f":
        with np.errstate(all="ignore"):
            good = (found == want) | (np.isnan(found) & np.isnan(want))
            if wanted["zeros"]:
                good &= (np.signbit(found) == np.signbit(want)) | (found != 0) | np.isnan(found)
            near = np.abs(found - want) <= wanted["atol"] + wanted["rtol"] * np.abs(want)
            if wanted["atol"] or wanted["rtol"]:
                good |= near & np.isfinite(want)
    else:
        good = found == want
    if np.all(good):
        return ""
    at = tuple(int(i) for i in np.argwhere(~good)[0])
    count = f"{int((~good).sum())} of {good.size} elements are wrong"
    return f"{count}, first at {at}: found {found[at]!r}, expected {want[at]!r}"


def _first(changed: Any) -> int:
    return int(np.flatnonzero(changed)[0])


class Replayer(Driver):
    """Launch with any parameters; keep code loaded until a launch fails."""

    def __init__(self) -> None:
        super().__init__()
        self._functions: dict[tuple[bytes, str], ctypes.c_void_p] = {}
        self._context: ctypes.c_void_p | None = None
        self._zero: ctypes.c_uint64 | None = None

    def replay(
        self, code: bytes, launch: Mapping[str, Any], before: Mapping[str, Any], fresh: set[str], guard: int
    ) -> dict[str, Any]:
        """Launch and return the allocations as it left them.

        Parameters
        ----------
        code
            The machine code.
        launch
            Its entry in the manifest.
        before
            Bytes of the allocations.
        fresh
            Those that are not initialised.
        guard
            Bytes before each array.
        """
        try:
            self._enter()
            with self._allocated(before) as memory:
                write_tables(before, launch["arrays"], {name: x.value for name, x in memory.items()}, guard)
                for name in set(before) - fresh:
                    self._call("cuMemcpyHtoD_v2", memory[name], _data(before[name]), _size(before[name]))
                self._launch_once(code, launch, {name: x.value + guard for name, x in memory.items()})
                after = {name: np.empty_like(image) for name, image in before.items()}
                for name, image in after.items():
                    self._call("cuMemcpyDtoH_v2", _data(image), memory[name], _size(image))
                return after
        except DriverError:  # faults of a kernel stay with its context
            self._leave()
            raise

    def _launch_once(self, code: bytes, launch: Mapping[str, Any], arrays: Mapping[str, int]) -> None:
        slots: list[Any] = []
        for param in launch["params"]:
            if "map" in param:
                slots.append(self._map(param["map"], self._base(param, arrays)))
            elif "array" in param:
                slots.append(ctypes.c_uint64(arrays[param["array"]] + param["offset"]))
            else:
                slots.append(ctypes.c_uint64.from_buffer_copy(bytes.fromhex(param["bytes"])))
        pointers = (ctypes.c_void_p * max(len(slots), 1))(*(ctypes.addressof(slot) for slot in slots))
        sizes = [ctypes.c_uint(n) for n in (*launch["grid"], *launch["block"], launch["shared"])]
        self._call("cuLaunchKernel", self._function(code, launch), *sizes, None, pointers, None)
        self._call("cuCtxSynchronize")

    def _base(self, param: Mapping[str, Any], arrays: Mapping[str, int]) -> int:
        """Return the origin of a tensor map: in an array, or at an allocated zero."""
        if param["array"] is not None:
            return int(arrays[param["array"]] + param["offset"])
        if self._zero is None:
            self._zero = ctypes.c_uint64()
            self._call("cuMemAlloc_v2", ctypes.byref(self._zero), ctypes.c_size_t(GUARD))
            self._call("cuMemsetD8_v2", self._zero, ctypes.c_ubyte(0), ctypes.c_size_t(GUARD))
        return self._zero.value

    def _map(self, fields: Mapping[str, Any], address: int) -> Any:
        """Return an encoded tensor map, at the alignment that it needs."""
        rank, memory = len(fields["extents"]), ctypes.create_string_buffer(3 * MAP_BYTES)
        start = -ctypes.addressof(memory) % MAP_BYTES
        made = (ctypes.c_char * MAP_BYTES).from_buffer(memory, start)
        strides = fields["strides"] or (16,)  # one dimension has none, but the driver reads one
        self._call(
            "cuTensorMapEncodeTiled", made, ctypes.c_int(fields["code"]), ctypes.c_uint32(rank),
            ctypes.c_uint64(address),
            (ctypes.c_uint64 * rank)(*fields["extents"]), (ctypes.c_uint64 * len(strides))(*strides),
            (ctypes.c_uint32 * rank)(*fields["box"]), (ctypes.c_uint32 * rank)(*[1] * rank), ctypes.c_int(0),
            ctypes.c_int(fields["swizzle"]), ctypes.c_int(_PROMOTION), ctypes.c_int(int(fields["nan"])),
        )  # fmt: skip
        return made

    def _function(self, code: bytes, launch: Mapping[str, Any]) -> ctypes.c_void_p:
        key = (code, launch["entry"])
        if key not in self._functions:
            module, function = ctypes.c_void_p(), ctypes.c_void_p()
            self._call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(code))
            self._call("cuModuleGetFunction", ctypes.byref(function), module, ctypes.c_char_p(launch["entry"].encode()))
            kind, size = ctypes.c_int(_MOST_SHARED), ctypes.c_int(launch["shared"])
            self._call("cuFuncSetAttribute", function, kind, size)
            self._functions[key] = function
        return self._functions[key]

    @contextlib.contextmanager
    def _allocated(self, images: Mapping[str, Any]) -> Iterator[dict[str, ctypes.c_uint64]]:
        memory: dict[str, ctypes.c_uint64] = {}
        for name, image in images.items():
            memory[name] = ctypes.c_uint64()
            self._call("cuMemAlloc_v2", ctypes.byref(memory[name]), _size(image))
        yield memory
        for address in memory.values():
            self._call("cuMemFree_v2", address)

    def _enter(self) -> None:
        if self._context is None:
            context = ctypes.c_void_p()
            self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._device)
            self._call("cuCtxSetCurrent", context)
            self._context = context

    def _leave(self) -> None:
        self._functions.clear()
        self._context = self._zero = None
        self._library.cuDevicePrimaryCtxRelease_v2(self._device)
        self._library.cuDevicePrimaryCtxReset_v2(self._device)


def _data(image: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(image.ctypes.data)


def _size(image: Any) -> ctypes.c_size_t:
    return ctypes.c_size_t(image.nbytes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
