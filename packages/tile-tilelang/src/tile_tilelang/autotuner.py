"""``tilelang.autotune`` and ``AutoTuner`` over ``tile_core.autotune``."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
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
from tile_tilelang.kernel import JITKernel
from tile_tilelang.profiler import Profiler, do_bench
from tile_tilelang.supply import TensorSupplyType, numbers_of, there_for

__all__ = ["AutoTuner", "AutotuneResult", "autotune"]


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

    def counts(self) -> dict[str, int]:
        """Return the launches before timing, and samples as long as the clock needs."""
        return {"warmup": max(1, min(5, int(self.warmup / 5))), "repeat": max(1, min(20, int(self.rep / 5)))}

    def inputs(self, signature: Signature, program: Program | None) -> Sequence[Any]:
        """Return the inputs of configurations."""
        if self.supply_prog is None:
            from tile_core.ops.held_codes import held_codes

            return numbers_of(signature, self.supply_type, held=held_codes(program))
        return self.supply_prog(list(signature.params[: len(signature.params) - signature.workspaces]))


#: Keyword of ``autotune`` -> why it is accepted and changes nothing.
IGNORED = {
    "timeout": "no configuration is stopped: a kernel that does not end can be interrupted by hand",
    "cache_input_tensors": "inputs are the same for every configuration",
    "manual_check_prog": "None only: pass ref_prog",
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
    **hints
        ``timeout``, ``cache_input_tensors``: of no effect.

    Raises
    ------
    BadCall
        For other keywords.
    """
    unknown = sorted(n for n in hints if n not in IGNORED or (n == "manual_check_prog" and hints[n] is not None))
    if unknown:
        expected, instead = "no such keyword", "compare with ref_prog="
        raise BadCall(function="autotune", name=unknown[0], found="given", expected=expected, instead=instead)
    plan = _Plan(
        warmup, rep, supply_type, ref_prog, supply_prog, rtol, atol, max_mismatched_ratio, skip_check
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
            whole = self._names and self._names <= keywords.keys()
            return (self.function if whole else self._tuned)(*args, **keywords)
        return self.compile(*args, **keywords)

    def compile(self, *args: object, **keywords: object) -> Any:
        """Return the fastest kernel, with ``config`` and ``latency``."""
        if self._names and self._names <= keywords.keys():
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

    def _configs(self, *args: object, **keywords: object) -> list[dict[str, Any]]:
        return _listed(self.configs(*args, **keywords) if callable(self.configs) else self.configs)


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
            Profiler(kernel).assert_allclose(plan.ref_prog, values, plan.atol, plan.rtol, plan.max_mismatched_ratio)
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

    def run(self, warmup: float = 25, rep: float = 100, timeout: float | None = None) -> AutotuneResult:
        """Return the fastest configuration.

        Parameters
        ----------
        warmup, rep
            Milliseconds of runs that are not counted, and that are.
        timeout
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
        tuned = autotune(function, configs=self.configs, warmup=warmup, rep=rep, **self.profile_args)
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
    """Return configurations as dicts; a dict of lists is all combinations."""
    if isinstance(configs, Mapping):
        values = [v if isinstance(v, (list, tuple)) else [v] for v in configs.values()]
        return [dict(zip(configs, chosen, strict=True)) for chosen in itertools.product(*values)]
    return [dict(c) for c in configs]
