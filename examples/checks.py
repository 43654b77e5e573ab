"""Common parts of the examples: command line, comparison with NumPy, lines of results."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

import numpy as np


def relative_error(got: Any, expected: Any, scale: Any = None) -> float:
    """Return the largest ``|got - expected| / scale`` over all elements.

    Parameters
    ----------
    got
        A result, of any element type.
    expected
        The same in float64.
    scale
        What an element's error is measured against; by default ``1 + |expected|``.

    Returns
    -------
    float
        NaN if ``got`` has a NaN where ``expected`` has none.
    """
    expected = np.asarray(expected, "float64")
    scale = 1 + np.abs(expected) if scale is None else scale
    return float(np.max(np.abs(np.asarray(got, "float64") - expected) / scale, initial=0.0))


def check(name: str, got: Any, expected: Any, tolerance: float, scale: Any = None) -> bool:
    """Compare, print one line, and return whether the error stays within ``tolerance``."""
    error = relative_error(got, expected, scale)
    passed = got.shape == np.shape(expected) and error <= tolerance
    print(f"{'ok   ' if passed else 'WRONG'} {name:<52} error {error:.1e}, allowed {tolerance:.0e}")
    return passed


def for_numpy(kernel: Any) -> Callable[..., Any]:
    """Return a kernel as a function of NumPy arrays, copied to and from a device.

    Programs that keep their arrays on the device, as arrays of PyTorch, CuPy or MLX, pass those to the kernel itself.
    """

    def launch(*args: Any) -> Any:
        given = [kernel.adapter.from_host(a) if isinstance(a, np.ndarray) else a for a in args]
        results = kernel(*given)
        for own, copy in zip(args, given, strict=True):
            if copy is not own and own.flags.writeable:
                own[...] = copy.get()
        several = results if isinstance(results, tuple) else (results,)
        found = tuple(r.get() if hasattr(r, "get") else r for r in several)
        return found if isinstance(results, tuple) else found[0]

    return launch


def threads_for(elements: int) -> int:
    """Return the threads for 16 elements each, in whole groups of 32.

    Vectors of 16 bytes, and several loads of each thread in flight.
    """
    return min(1024, -(-elements // 512) * 32)


def poisoned(shape: tuple[int, ...], dtype: Any) -> Any:
    """Return an array with every bit set, which exposes unwritten elements."""
    array = np.empty(shape, dtype)
    array.view(np.uint8)[...] = 0xFF
    return array


def run(main: Callable[[str], list[bool]], doc: str | None) -> None:
    """Run an example with the command line's target; exit with 1 on failures."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--target", default="auto", help='where to run, such as "cpu"; by default the best device here')
    sys.exit(0 if all(main(parser.parse_args().target)) else 1)
