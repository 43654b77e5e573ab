"""Names of ``tilelang.testing``: comparisons, seeds, requirements of tests, and times of regressions."""

from __future__ import annotations

import importlib.util
import inspect
import operator
import random
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tile_tilelang.errors import Differs
from tile_tilelang.host import every_target_name
from tile_tilelang.supply import host

_F = TypeVar("_F", bound=Callable[..., Any])
_ORDERS = {"ge": operator.ge, "gt": operator.gt, "le": operator.le, "lt": operator.lt, "eq": operator.eq}
_VERSIONS = [f"requires_cuda_compute_version_{order}" for order in _ORDERS]

__all__ = [
    "main",
    "process_func",
    "regression",
    "requires_cdna",
    "requires_cuda",
    "requires_cuda_compute_version",
    "requires_cuda_or_cdna",
    "requires_gfx950",
    "requires_llvm",
    "requires_metal",
    "requires_package",
    "requires_rocm",
    "set_random_seed",
    "torch_assert_close",
]
__all__ += _VERSIONS

#: Names and milliseconds of `process_func`, until `regression` prints them.
_times: list[tuple[str, float]] = []


def set_random_seed(seed: int = 42) -> None:
    """Seed Python's and NumPy's generators, and torch's if the program uses it."""
    import numpy as np

    random.seed(seed)
    np.random.seed(seed)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)


def torch_assert_close(
    tensor_a: Any, tensor_b: Any, rtol: float = 1e-2, atol: float = 1e-3, max_mismatched_ratio: float = 0.001,
    verbose: bool = False, equal_nan: bool = True, check_device: bool = True, check_dtype: bool = True,
    check_layout: bool = True, check_stride: bool = False, base_name: str = "LHS", ref_name: str = "RHS",
) -> None:  # fmt: skip
    """Compare arrays of any library.

    Raises
    ------
    Differs
        If more elements differ than allowed, or an attribute that is checked.
    """
    import numpy as np

    checked = {"device": check_device, "dtype": check_dtype, "layout": check_layout, "shape": True}
    for name in (n for n, wanted in checked.items() if wanted):
        mine, theirs = getattr(tensor_a, name, None), getattr(tensor_b, name, None)
        if mine != theirs:
            raise Differs(kernel="torch_assert_close", index=0, found=f"{name} {mine} of {base_name}, not {theirs}")
    if check_stride and tensor_a.stride() != tensor_b.stride():
        raise Differs(kernel="torch_assert_close", index=0, found=f"stride {tensor_a.stride()}")
    a, b = host(tensor_a), host(tensor_b)
    different = ~np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
    wrong = int(different.sum())
    if verbose:
        print(f"{wrong} of {a.size} elements differ")
    if wrong > int(max_mismatched_ratio * a.size):
        first = np.unravel_index(int(different.argmax()), a.shape)
        at = f"first at {tuple(map(int, first))}: {base_name} {a[first]:g}, {ref_name} {b[first]:g}"
        raise Differs(kernel="torch_assert_close", index=0, found=f"{wrong} of {a.size} elements, {at}")


def requires_package(*packages: str) -> Callable[[_F], _F]:
    """Skip a test if one of these packages is not installed."""
    missing = [p for p in packages if importlib.util.find_spec(p) is None]
    return lambda test: _skipped(test, bool(missing), f"{', '.join(missing)} is not installed")


def requires_cuda(test: _F) -> _F:
    """Return a test as it is: its kernels run on every target here."""
    return test


requires_llvm = requires_cuda_or_cdna = requires_cuda


def requires_rocm(test: _F) -> _F:
    """Skip a test unless kernels are compiled for AMD GPUs."""
    return _skipped(test, not every_target_name().startswith("rocm"), "not for AMD GPUs")


requires_cdna = requires_rocm


def requires_gfx950(test: _F) -> _F:
    """Skip a test unless kernels are compiled for gfx950."""
    return _skipped(test, every_target_name() != "rocm:gfx950", "not for gfx950")


def requires_metal(test: _F) -> _F:
    """Skip a test unless kernels are compiled for Apple GPUs."""
    return _skipped(test, not every_target_name().startswith("metal"), "not for Apple GPUs")


def requires_cuda_compute_version(
    major_version: int, minor_version: int = 0, mode: str = "ge"
) -> Callable[[_F], _F]:  # fmt: skip
    """Skip a test unless kernels are compiled for NVIDIA's GPUs of a compute capability."""
    found = re.search(r"sm_(\d+)(\d)", every_target_name())
    has = found is not None and _ORDERS[mode]((int(found[1]), int(found[2])), (major_version, minor_version))
    return lambda test: _skipped(test, not has, f"compute capability {mode} {major_version}.{minor_version}")


def process_func(func: Callable[..., float], name: str | None = None, /, **keywords: Any) -> None:
    """Call a function that returns a time, and keep it for `regression`."""
    _times.append((name or func.__module__, float(func(**keywords))))


def regression(prefixes: Sequence[str] = ("regression_",), verbose: bool = True) -> None:
    """Call the caller's functions of these names; print the times of `process_func`."""
    names = inspect.stack()[1].frame.f_globals
    _times.clear()
    for name in sorted(n for n, v in names.items() if callable(v) and n.startswith(tuple(prefixes))):
        names[name]()
    for name, milliseconds in _times:
        print(f"{name}: {milliseconds}")


def main() -> None:
    """Run the script's tests by pytest, which must be installed, and exit with its status."""
    import pytest

    sys.exit(pytest.main([sys.argv[0], *sys.argv[1:]]))


def __getattr__(name: str) -> Any:
    if name not in _VERSIONS:
        raise AttributeError(name)
    mode = name.rpartition("_")[2]
    return lambda major, minor=0: requires_cuda_compute_version(major, minor, mode)


def _skipped(test: _F, condition: bool, reason: str) -> _F:
    import pytest

    found: _F = pytest.mark.skipif(condition, reason=reason)(test)
    return found
