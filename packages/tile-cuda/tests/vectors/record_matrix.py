"""Record digests of the kernels of ``matrix.py`` on a device, for the models.

::

    python record_matrix.py RESULTS [PART...]   # with a GPU: needs this package and the driver

Inputs follow from seeds. A case whose expected bytes are known is compared with them on the device already. Cases run
in child processes (``isolated.py``); those that fail are named at the end, and the file has the others. If parts of
names are given, only the cases whose names have one of them are run, and nothing is written.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

if not __package__:
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from vectors import isolated, matrix
else:
    from . import isolated, matrix

FILE = "matrix_sm_90a.npz"
CHILD = "--child"


@functools.cache
def named() -> dict[str, matrix.Case]:
    """Return all cases by name."""
    return {case.name: case for case in matrix.cases()}


def record(results: Path, parts: Sequence[str] = (), command: Sequence[str] = (), **how: Any) -> isolated.Outcome:
    """Run cases on the current device, and write their results.

    Parameters
    ----------
    results
        The folder of the file.
    parts
        If given: run only the cases whose names have one of them, and write nothing.
    command
        Starts a child; replaced in tests.
    how
        Of `isolated.run_isolated`.
    """
    names = [name for name in named() if not parts or any(part in name for part in parts)]
    found = isolated.run_isolated(command or [sys.executable, __file__, CHILD], names, **how)
    kept = found.results
    if kept and not parts:
        results.mkdir(parents=True, exist_ok=True)
        digests = np.stack([np.frombuffer(bytes.fromhex(one["digest"]), np.uint8) for one in kept.values()])
        np.savez_compressed(results / FILE, names=np.array(list(kept)), digests=digests)
    wrong = [name for name, one in kept.items() if not one["right"]]
    print(f"{len(kept)} recorded, {len(wrong)} not as expected, {len(found.failed)} failed, {len(found.left)} not run")
    for name in wrong:
        print(f"not as expected: {name}")
    for name, reason in found.failed.items():
        print(f"failed: {name}: {reason}")
    return found


def record_of(case: matrix.Case, out: np.ndarray) -> dict[str, Any]:
    """Return the record of a case: output digest, and whether it matches if known."""
    right = not case.is_known or (out.reshape(-1, case.held.shape[-1]) == case.held).all()
    return {"digest": matrix.digest(out).tobytes().hex(), "right": bool(right)}


def on_device() -> Callable[[str], dict[str, Any]]:
    """Return a function that runs a case on the current device."""
    from tile_core.abi.adapter import Location
    from tile_cuda.runtime import CudaAdapter
    from tile_cuda.target import make_target

    adapter = CudaAdapter(make_target("sm_90a"))

    def run(name: str) -> dict[str, Any]:
        case = named()[name]
        kernel = case.copy.kernel()
        arrays = {n: adapter.from_host(a) for n, a in case.copy.arrays.items()}
        launch = adapter.load(dataclasses.replace(kernel, built=adapter.build(kernel)))
        launch(tuple(a.pointer for a in arrays.values()), Location((2, 0), adapter.library))
        return record_of(case, arrays["out"].get())

    return run


if __name__ == "__main__":
    if sys.argv[1:] == [CHILD]:
        isolated.answer(on_device())
    else:
        record(Path(sys.argv[1]), sys.argv[2:])
