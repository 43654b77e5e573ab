"""``tilelang.autotune`` and ``AutoTuner`` over ``tile_core.autotune``."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import tile_core
from tile_core.abi.signature import Signature
from tile_core.compiler import signature_of
from tile_core.ir.program import Program
from tile_core.records import dataclass
from tile_core.trace.by_name import ByName
from tile_core.trace.tracer import caller_scope
from tile_tilelang.compiling import JITImpl
from tile_tilelang.errors import BadCall
from tile_tilelang.host import runtime
from tile_tilelang.kernel import JITKernel
from tile_tilelang.params import params_of
from tile_tilelang.profiler import Profiler, do_bench
from tile_tilelang.supply import TensorSupplyType, numbers_of, there_for
from tile_tilelang.unlaunched import NAME as UNLAUNCHED

__all__ = ["AutoTuner", "AutotuneResult", "autotune", "set_autotune_inputs"]


#: About how many configurations are tried where nothing is timed.
_UNTIMED = 4
#: Of `set_autotune_inputs`, the innermost last.
_inputs: list[Sequence[Any]] = []


@contextlib.contextmanager
def set_autotune_inputs(*arrays: Any) -> Iterator[None]:
    """Tune all kernels of a block with these arrays, or this list of them."""
    one = len(arrays) == 1 and isinstance(arrays[0], (list, tuple))
    _inputs.append(list(arrays[0] if one else arrays))
    try:
        yield
    finally:
        _inputs.pop()


@dataclass(frozen=True)
class _Plan:
    """How configurations are judged: keywords of ``autotune`` that mean something here."""

    warmup: float = 25
    rep: float = 100
    supply_type: TensorSupplyType = TensorSupplyType.Auto
    ref_prog: Callable[..., Any] | None = None
    supply_prog: Callable[..., Sequence[Any]] | None = None
    rtol: float = 1e-2
    atol: float = 1e-2
    max_mismatched_ratio: float = 0.01
    skip_check: bool = False
    manual_check_prog: Callable[..., Any] | None = None

    def counts(self) -> dict[str, Any]:
        """Return the launches before timing, and samples as long as the clock needs."""
        return {"warmup": max(1, min(5, int(self.warmup / 5))), "repeat": max(1, min(20, int(self.rep / 5)))}

    def inputs(self, signature: Signature, program: Program | None) -> Sequence[Any]:
        """Return the inputs of configurations: of `set_autotune_inputs`, of ``supply_prog``, or random ones."""
        if _inputs:
            return _inputs[-1]
        if self.supply_prog is None:
            from tile_core.ops.held_codes import held_codes

            return numbers_of(signature, self.supply_type, held=held_codes(program))
        params = params_of(signature)
        return self.supply_prog([params[i] for i in signature.inputs])


#: Keyword of ``autotune`` -> why it is accepted and changes nothing.
IGNORED = {
    "timeout": "no configuration is stopped: a kernel that does not end can be interrupted by hand",
    "cache_input_tensors": "inputs are the same for every configuration",
    "early_stop": "every configuration is measured, the best ones again",
    "early_stop_factor": "as early_stop",
    "do_not_specialize": "an argument that is a symbol stays one",
    "use_pipeline": "compiling and measuring do not share cores",
    "enable_grouped_compile": "programs are compiled one by one, and kept",
    "group_compile_size": "as enable_grouped_compile",
    "benchmark_devices": "launches go to the device of their arrays",
    "benchmark_multi_gpu": "as benchmark_devices",
    "backend": "the device's clock, where its runtime has one",
    "execution_backend": "there is one",
}


def autotune(
    func: Callable[..., Any] | None = None,
    *,
    configs: Any,
    warmup: float = 25,
    rep: float = 100,
    supply_type: TensorSupplyType = TensorSupplyType.Auto,
    ref_prog: Callable[..., Any] | None = None,
    supply_prog: Callable[..., Sequence[Any]] | None = None,
    rtol: float = 1e-2,
    atol: float = 1e-2,
    max_mismatched_ratio: float = 0.01,
    skip_check: bool = False,
    manual_check_prog: Callable[..., Any] | None = None,
    **hints: Any,
) -> Any:
    """Select a factory's or eager kernel's fastest configuration on its first call.

    Parameters
    ----------
    func
        The factory or eager kernel. An eager kernel is tuned with the arrays that it is called with.
    configs
        Keyword arguments to try: a list of dicts, a dict of lists whose combinations are tried, or a function from the
        factory's arguments to either.
    warmup, rep
        Milliseconds of launches before and during each measurement; at most 20 samples are taken.
    supply_type, supply_prog
        Inputs: which random numbers; or a function from the kernel's parameters to them.
    ref_prog, rtol, atol, max_mismatched_ratio
        A reference that every configuration is compared with, in addition to the meaning of its program.
    skip_check
        Compare with neither.
    manual_check_prog
        A function of the outputs of a configuration and of the reference, which raises if they differ too much.
    **hints
        Of no effect, see `IGNORED`.

    Raises
    ------
    BadCall
        For other keywords.
    """
    unknown = sorted(hints.keys() - IGNORED.keys())
    if unknown:
        expected, instead = "no such keyword", "compare with ref_prog="
        raise BadCall(function="autotune", name=unknown[0], found="given", expected=expected, instead=instead)
    # Without launches there is nothing to compare.
    skip_check = skip_check or runtime() == UNLAUNCHED
    plan = _Plan(
        warmup, rep, supply_type, ref_prog, supply_prog, rtol, atol, max_mismatched_ratio, skip_check,
        manual_check_prog,
    )  # fmt: skip
    return _decorator(configs, plan) if func is None else _decorator(configs, plan)(func)


class TunedFactory(ByName):
    """A factory or eager kernel whose calls use the fastest configuration."""

    def __init__(self, function: JITImpl, configs: Any, plan: _Plan) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.configs = configs
        self.plan = plan
        self._names: set[str] = set() if callable(configs) else {n for c in _listed(configs) for n in c}
        candidates = _CheckedFactory(function, plan)
        own = plan.supply_prog is None and function.eager
        self._tuned = tile_core.autotune(
            self._configs, inputs=None if own else candidates.inputs, check=not plan.skip_check, **plan.counts()
        )(candidates)

    def __call__(self, *args: object, **keywords: object) -> Any:
        """Return the fastest kernel for these arguments, or the results of an eager kernel.

        Arguments that name a configuration are obeyed.
        """
        if self.function.eager:
            return (self.function if self._chosen(args, keywords) else self._tuned)(*args, **keywords)
        return self.compile(*args, **keywords)

    def compile(self, *args: object, **keywords: object) -> Any:
        """Return the fastest kernel, with ``config`` and ``latency``."""
        if self._chosen(args, keywords):
            return self.function.compile(*args, **keywords)
        found = self.tune(*args, **keywords)
        kernel = JITKernel(getattr(found.kernel, "kernel", found.kernel))
        kernel.config = dict(found.config)
        best = next(t for t in found.trials if t.config == found.config and t.seconds is not None)
        kernel.latency = (best.seconds or 0.0) * 1e3
        return kernel

    def tune(self, *args: object, **keywords: object) -> Any:
        """Return the fastest kernel with the outcome of every configuration, as of ``tile_core.autotune``."""
        return self._tuned.tune(*args, **keywords)

    def _chosen(self, args: Sequence[object], keywords: Mapping[str, object]) -> bool:
        """Return whether a call gives a whole configuration, by name or by position."""
        names = list(inspect.signature(self.function.function).parameters)[: len(args)]
        return bool(self._names) and self._names <= {*names, *keywords}

    def _configs(self, *args: object, **keywords: object) -> list[dict[str, Any]]:
        found = _listed(self.configs(*args, **keywords) if callable(self.configs) else self.configs)
        # Nothing is timed there: some of many show whether the program compiles.
        return found[:: max(1, len(found) // _UNTIMED)] if runtime() == UNLAUNCHED else found


class _CheckedFactory(JITImpl):
    """A factory or eager kernel whose configurations are checked against a reference.

    They are compared when they are traced for tuning.
    """

    def __init__(self, function: JITImpl, plan: _Plan) -> None:
        self.__dict__.update(vars(function))
        self.plan = plan
        self._last: tuple[Signature, Program] | None = None

    def program(self, *args: object, **keywords: object) -> Program:
        """Return the program of one configuration.

        Raises
        ------
        Differs
            If its kernel's results are not those of the reference.
        """
        program = super().program(*args, **keywords)
        self._last = (signature_of(program, program.outputs if self.eager else self.out_idx), program)
        plan = self.plan
        if plan.ref_prog is not None and not plan.skip_check:
            kernel = self.compile(*args, **keywords).kernel
            given = () if plan.supply_prog else self.values_of(program, args, keywords)
            values = given or [there_for(kernel, v) for v in plan.inputs(*self._last)]
            profiler = Profiler(kernel)
            if plan.manual_check_prog is not None:
                profiler.manual_assert_close(plan.ref_prog, values, plan.manual_check_prog)
            else:
                profiler.assert_allclose(plan.ref_prog, values, plan.atol, plan.rtol, plan.max_mismatched_ratio)
        return program

    def inputs(self, *args: object, **keywords: object) -> Sequence[Any]:
        """Return the inputs of the configuration that was traced last."""
        assert self._last is not None, "inputs are requested when there is a program"
        return self.plan.inputs(*self._last)


@dataclass(frozen=True)
class AutotuneResult:
    """Result of ``AutoTuner.run``: kernel, configuration, milliseconds, and text."""

    kernel: JITKernel
    config: dict[str, Any]
    latency: float
    ref_latency: float | None
    libcode: str


class AutoTuner:
    """Tune a factory without a decorator.

    Examples
    --------
    >>> tuner = AutoTuner.from_kernel(factory, configs)                    # doctest: +SKIP
    >>> best = tuner.set_compile_args(out_idx=[-1]).run(warmup=3, rep=20)  # doctest: +SKIP
    """

    def __init__(self, fn: Callable[..., Any], configs: Any) -> None:
        self.fn = fn
        self.configs = configs
        self.scope = caller_scope(2)
        self.compile_args: dict[str, Any] = {}
        self.profile_args: dict[str, Any] = {}

    @classmethod
    def from_kernel(cls, kernel: Callable[..., Any], configs: Any) -> AutoTuner:
        """Return the tuner of a factory whose keywords are those of the configurations."""
        return cls(kernel, configs)

    def set_compile_args(self, out_idx: Any = None, target: Any = "auto", **hints: Any) -> AutoTuner:
        """Set what `tile_tilelang.jit` is given."""
        self.compile_args = {"out_idx": out_idx, "target": target, **hints}
        return self

    def set_profile_args(self, **plan: Any) -> AutoTuner:
        """Set what `autotune` is given besides the configurations."""
        self.profile_args = plan
        return self

    def run(self, warmup: float = 25, rep: float = 100, **hints: Any) -> AutotuneResult:
        """Return the fastest configuration.

        Parameters
        ----------
        warmup, rep
            Milliseconds of runs that are not counted, and that are.
        **hints
            Of no effect, see `IGNORED`.

        Raises
        ------
        NoWorkingConfig
            If none works, with the reason of each.
        """
        from tile_tilelang.compiling import jit

        function = self.fn
        if not isinstance(function, JITImpl):
            given = {k: v for k, v in self.compile_args.items() if v is not None}
            function = jit(function, **given)
        plan_of = {**self.profile_args, **hints, "warmup": warmup, "rep": rep}
        tuned = autotune(function, configs=self.configs, **plan_of)
        kernel = tuned()
        ref_latency, plan = None, tuned.plan
        if plan.ref_prog is not None:
            inputs = [there_for(kernel.kernel, v) for v in plan.inputs(kernel.kernel.signature, kernel.kernel.program)]
            kernel.ref_latency = ref_latency = cast("float", do_bench(lambda: plan.ref_prog(*inputs), warmup, rep))
        return AutotuneResult(kernel, kernel.config, kernel.latency, ref_latency, kernel.kernel_source)


def _decorator(configs: Any, plan: _Plan) -> Callable[[Any], TunedFactory]:
    def decorate(function: Any) -> TunedFactory:
        if not isinstance(function, JITImpl):
            found, instead = type(function).__name__, "put @tilelang.autotune above @tilelang.jit"
            expected = "what tilelang.jit made"
            raise BadCall(function="autotune", name="func", found=found, expected=expected, instead=instead)
        return TunedFactory(function, configs, plan)

    return decorate


def _listed(configs: Any) -> list[dict[str, Any]]:
    """Return configurations as dicts; a dict of lists is all combinations.

    ``pass_configs`` are hints, also those that allow approximate functions.
    """
    if isinstance(configs, Mapping):
        values = [v if isinstance(v, (list, tuple)) else [v] for v in configs.values()]
        configs = [dict(zip(configs, chosen, strict=True)) for chosen in itertools.product(*values)]
    return [{k: v for k, v in c.items() if k != "pass_configs"} for c in configs]
