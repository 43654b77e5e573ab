"""``do_bench`` and ``Profiler``: times, and comparisons with a program's own reference."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from tile_core.runtime.bench import Stopwatch, measure
from tile_core.runtime.kernel import Kernel
from tile_tilelang.errors import BadCall, Differs
from tile_tilelang.host import target_of
from tile_tilelang.supply import TensorSupplyType, host, inputs_of

__all__ = ["Profiler", "TensorSupplyType", "do_bench"]

#: By the host's clock, or the launches alone by the device's, where its runtime has one; see `do_bench`.
BACKENDS = ("event", "cupti", "cudagraph")
_MODES: dict[str, Callable[[Sequence[float]], float]] = {
    "mean": statistics.fmean,
    "median": statistics.median,
    "min": min,
    "max": max,
}
_MOST = 10_000


def do_bench(
    fn: Callable[[], object],
    warmup: float = 25,
    rep: float = 100,
    _n_warmup: int = 0,
    _n_repeat: int = 0,
    quantiles: Sequence[float] | None = None,
    fast_flush: bool = True,
    backend: str = "event",
    return_mode: str = "mean",
) -> float | list[float]:
    """Return the milliseconds of a call.

    Parameters
    ----------
    fn
        Queues work, for example ``lambda: kernel(a, b)``.
    warmup, rep
        Milliseconds of calls before and during the measurement.
    _n_warmup, _n_repeat
        Numbers of calls instead, unless they are 0.
    quantiles
        Return these quantiles, from 0 to 1, instead of one number.
    fast_flush
        A hint without effect here.
    backend
        ``"event"``: calls and the device's work, until it is done. ``"cudagraph"``, ``"cupti"``: the device's work
        alone, by its clock, where its runtime can record it; the same as ``"event"`` elsewhere, as on the CPU.
    return_mode
        ``"mean"``, ``"median"``, ``"min"`` or ``"max"`` of the samples.

    Raises
    ------
    BadCall
        For another backend, mode, or quantile.
    """
    _among("backend", backend, BACKENDS)
    _among("return_mode", return_mode, tuple(_MODES))
    if quantiles is not None and not all(0 <= q <= 1 for q in quantiles):
        instead = "write quantiles=[0.5, 0.2, 0.8]"
        raise BadCall(function="do_bench", name="quantiles", found=repr(quantiles), expected="0 to 1", instead=instead)
    adapter = _adapter()
    wait = getattr(adapter, "synchronize", None) or (lambda: None)
    fn()
    wait()
    start = time.perf_counter()
    fn()
    wait()
    once = max(time.perf_counter() - start, 1e-7) * 1e3
    clock = None if backend == "event" else getattr(adapter, "clock", None)
    watch = Stopwatch(getattr(fn, "__name__", "fn"), fn, wait, clock)
    times = {"warmup": _n_warmup or _count(warmup, once), "repeat": _n_repeat or _count(rep, once)}
    (result,) = measure([watch], **times)
    return _summary(result.samples, quantiles, return_mode)


class Profiler:
    """Runs a kernel on random inputs: against a reference, and against the clock.

    Parameters
    ----------
    kernel
        A kernel whose shapes are constant, or give ``input_tensors`` to every call.
    supply
        Which numbers the inputs have.
    """

    def __init__(self, kernel: Kernel, supply: TensorSupplyType = TensorSupplyType.Auto) -> None:
        self.kernel = kernel
        self.supply = supply

    @property
    def func(self) -> Kernel:
        """The kernel."""
        return self.kernel

    def assert_allclose(
        self,
        reference_program: Callable[..., Any],
        input_tensors: Sequence[Any] | None = None,
        atol: float = 1e-2,
        rtol: float = 1e-2,
        max_mismatched_ratio: float = 0.01,
    ) -> None:
        """Compare the kernel's outputs with a reference that is called with the same inputs.

        Parameters
        ----------
        reference_program
            Returns one output or several; or writes those of its arguments that a kernel without ``out_idx`` writes.
        input_tensors
            The kernel's inputs; by default random ones.
        atol, rtol
            An element differs if ``|found - expected| > atol + rtol * |expected|``.
        max_mismatched_ratio
            The share of elements that may differ.

        Raises
        ------
        Differs
            With the worst element.
        """
        if not getattr(self.kernel.adapter, "launches", True):
            raise Differs(kernel=self.kernel.name, index="count", found="nothing was launched")
        found, expected = self._outputs(input_tensors), self._reference(reference_program, input_tensors)
        if len(found) != len(expected):
            numbers = f"the kernel has {len(found)}, the reference {len(expected)}"
            raise Differs(kernel=self.kernel.name, index="count", found=numbers)
        for index, (a, b) in enumerate(zip(found, expected, strict=True)):
            self._compare(index, host(a), host(b), atol, rtol, max_mismatched_ratio)

    def manual_assert_close(
        self,
        reference_program: Callable[..., Any],
        input_tensors: Sequence[Any] | None = None,
        manual_check_prog: Callable[[Any, Any], object] | None = None,
    ) -> None:
        """Give both outputs, as a list each, to a function that compares them."""
        check = manual_check_prog
        if check is None:
            expected, instead = "a function of both outputs", "or use assert_allclose"
            raise BadCall(
                function="manual_assert_close", name="manual_check_prog", found="missing", expected=expected,
                instead=instead,
            )  # fmt: skip
        check(self._outputs(input_tensors), self._reference(reference_program, input_tensors))

    def assert_consistent(self, repeat: int = 10) -> None:
        """Check that every launch with the same inputs gives the same bits.

        Raises
        ------
        Differs
            If one does not.
        """
        first = [host(x) for x in self._outputs(None)]
        for _ in range(repeat):
            for index, (a, b) in enumerate(zip(self._outputs(None), first, strict=True)):
                self._compare(index, host(a), b, 0.0, 0.0, 0.0)

    def run_once(self, func: Callable[..., Any] | Sequence[Any] | None = None) -> Any:
        """Call a function, by default the kernel, with random inputs."""
        inputs = func if isinstance(func, (list, tuple)) else self._inputs(None)
        return (func if callable(func) else self.kernel)(*inputs)

    def do_bench(
        self,
        func: Callable[..., Any] | None = None,
        warmup: float = 25,
        rep: float = 100,
        n_warmup: int = 0,
        n_repeat: int = 0,
        input_tensors: Sequence[Any] | None = None,
        backend: str = "event",
        quantiles: Sequence[float] | None = None,
        return_mode: str = "mean",
        **hints: Any,
    ) -> float | list[float]:
        """Return the milliseconds of a launch, or of a function of the same inputs.

        A launch is timed without checking its arguments, by the device's clock where its runtime has one, for any
        ``backend``.

        Parameters
        ----------
        func
            A function instead of the kernel, such as a reference.
        input_tensors
            By default random ones.
        warmup, rep, n_warmup, n_repeat, backend, quantiles, return_mode
            As of `do_bench`.
        **hints
            ``profiler`` and ``dynamic_symbolic_constraints`` of other versions.
        """
        unknown = sorted(set(hints) - {"profiler", "dynamic_symbolic_constraints"})
        if unknown:
            _among("a keyword", unknown[0], ("func", "warmup", "rep", "input_tensors", "backend", "return_mode"))
        inputs = self._inputs(input_tensors)
        if func is not None:
            return do_bench(
                lambda: func(*inputs), warmup, rep, n_warmup, n_repeat, quantiles, True, backend, return_mode
            )
        _among("backend", backend, BACKENDS)
        _among("return_mode", return_mode, tuple(_MODES))
        once = self.kernel.bench(*inputs, warmup=1, repeat=1).min * 1e3
        result = self.kernel.bench(
            *inputs, warmup=n_warmup or _count(warmup, once), repeat=n_repeat or _count(rep, once)
        )
        return _summary(result.samples, quantiles, return_mode)

    def _inputs(self, given: Sequence[Any] | None) -> Sequence[Any]:
        return inputs_of(self.kernel, self.supply) if given is None else given

    def _outputs(self, given: Sequence[Any] | None) -> list[Any]:
        inputs = self._copies(given)
        return self._written(self.kernel(*inputs), inputs)

    def _reference(self, program: Callable[..., Any], given: Sequence[Any] | None) -> list[Any]:
        inputs = self._copies(given)
        return self._written(program(*inputs), inputs)

    def _copies(self, given: Sequence[Any] | None) -> list[Any]:
        """Return private copies of inputs that may be written; given ones may be read twice."""
        if given is None:
            return list(inputs_of(self.kernel, self.supply))
        return [x.clone() if hasattr(x, "clone") else x.copy() if hasattr(x, "copy") else x for x in given]

    def _written(self, result: Any, inputs: Sequence[Any]) -> list[Any]:
        """Return the results of a call, or the written arguments if it returned none."""
        if result is not None:
            return list(result) if isinstance(result, (tuple, list)) else [result]
        signature = self.kernel.signature
        return [x for i, x in zip(signature.inputs, inputs, strict=True) if signature.params[i].writes]

    def _compare(self, index: int, a: Any, b: Any, atol: float, rtol: float, ratio: float) -> None:
        import numpy as np

        if a.shape != b.shape:
            raise Differs(kernel=self.kernel.name, index=index, found=f"shape {a.shape}, not {b.shape}")
        with np.errstate(invalid="ignore"):
            distance = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
            wrong = ~(distance <= atol + rtol * np.where(np.isfinite(b), np.abs(b), 0.0))
        count = int(wrong.sum())
        if count > ratio * a.size:
            worst = np.unravel_index(int(np.argmax(np.where(wrong, np.nan_to_num(distance, nan=np.inf), -1))), a.shape)
            worst_index = ", ".join(map(str, worst))
            found = f"{count} of {a.size} elements, at [{worst_index}] {a[worst]:.6g}, not {b[worst]:.6g}"
            raise Differs(kernel=self.kernel.name, index=index, found=found)


def _adapter() -> Any:
    """Return the runtime of the target that kernels are compiled for by default."""
    from tile_core.plugins.manager import installed
    from tile_core.plugins.runtimes import find_runtime

    plugins = installed()
    return find_runtime(plugins, plugins.resolve_target(target_of("auto")))


def _count(milliseconds: float, once: float) -> int:
    return max(1, min(_MOST, int(milliseconds / once)))


def _summary(samples: Sequence[float], quantiles: Sequence[float] | None, mode: str) -> float | list[float]:
    times = sorted(s * 1e3 for s in samples)
    if quantiles is None:
        return float(_MODES[mode](times))
    return [times[round(q * (len(times) - 1))] for q in quantiles]


def _among(name: str, found: str, known: Sequence[str]) -> None:
    if found not in known:
        expected = f"one of {', '.join(known)}"
        raise BadCall(function="do_bench", name=name, found=repr(found), expected=expected, instead="leave it out")
