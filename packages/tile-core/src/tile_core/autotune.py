"""``tile.autotune``: the fastest of several configurations, each compiled, checked and timed like any kernel.

A thin loop over the same compile call. A configuration that is refused is part of the report with its code, one whose
result differs from the program's reference meaning is never chosen, and measurements are kept per arguments and target.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tile_core.errors import InternalError, TileError
from tile_core.errors.language import BadArgument
from tile_core.errors.launch import NoWorkingConfig

if TYPE_CHECKING:
    from tile_core.decorators import JitFunction
    from tile_core.runtime.kernel import Kernel

Config = Mapping[str, Any]


@dataclass(frozen=True)
class Trial:
    """One configuration's outcome.

    Attributes
    ----------
    config
        The keyword arguments that were tried.
    seconds
        Median time of a launch; ``None`` if it did not get that far.
    error
        What refused or disproved it: ``"[K219] …"``; empty if it worked.
    """

    config: Config
    seconds: float | None = None
    error: str = ""

    def __str__(self) -> str:
        shown = ", ".join(f"{k}={v!r}" for k, v in self.config.items())
        return f"{shown}: {self.error}" if self.seconds is None else f"{shown}: {self.seconds * 1e6:.1f} us"


@dataclass(frozen=True)
class Tuned:
    """What tuning found.

    Attributes
    ----------
    kernel
        The fastest kernel.
    config
        Its configuration.
    trials
        All outcomes, in the order of the configurations.
    """

    kernel: Kernel
    config: Config
    trials: tuple[Trial, ...]


def autotune(
    configs: Sequence[Config] | Callable[..., Sequence[Config]],
    *,
    inputs: Callable[..., Sequence[Any]] | None = None,
    check: bool = True,
    warmup: int = 3,
    repeat: int = 10,
) -> Callable[[JitFunction], AutotunedFunction]:
    """Choose the fastest configuration of a factory when it is first called.

    Parameters
    ----------
    configs
        Keyword arguments to try, or a function from the factory's arguments to them.
    inputs
        From the factory's arguments to the kernel's arguments; by default random arrays where all shapes are constant.
    check
        Compare each configuration with the program's plain meaning before it is timed.
    warmup, repeat
        As of ``Kernel.bench``.

    Returns
    -------
    Callable
        A decorator for a ``tile.jit`` factory; what it makes is called like the factory and returns its fastest kernel.

    Raises
    ------
    BadArgument
        If there are no configurations, or the decorated object is not a ``tile.jit`` factory.
    NoWorkingConfig
        When called, if no configuration works; with the reason of each.

    Examples
    --------
    >>> @tile.autotune(configs=[{"block": 32}, {"block": 64}])     # doctest: +SKIP
    ... @tile.jit(out_idx=[-1])
    ... def scale(n, block=64): ...
    """

    def decorate(function: JitFunction) -> AutotunedFunction:
        from tile_core.decorators import JitFunction

        if not isinstance(function, JitFunction) or function.eager:
            instead = "put @tile.autotune above @tile.jit, over a factory"
            found = type(function).__name__ if not isinstance(function, JitFunction) else "an eager kernel"
            raise BadArgument(
                function="autotune", name="function", found=found, expected="a tile.jit factory", instead=instead
            )
        return AutotunedFunction(function, configs, inputs, check, {"warmup": warmup, "repeat": repeat})

    return decorate


class AutotunedFunction:
    """A factory whose calls return the fastest kernel for their arguments."""

    def __init__(
        self,
        function: JitFunction,
        configs: Sequence[Config] | Callable[..., Sequence[Config]],
        inputs: Callable[..., Sequence[Any]] | None,
        check: bool,
        timing: dict[str, int],
    ) -> None:
        from tile_core.runtime.memo import Memo

        functools.update_wrapper(self, function)
        self.function = function
        self._configs, self._inputs, self._check, self._timing = configs, inputs, check, timing
        self._memo: Memo[Tuned] = Memo()

    def __call__(self, *args: Any, **keywords: Any) -> Kernel:
        """Return the fastest kernel for these arguments; tuning happens once per arguments and target."""
        return self.tune(*args, **keywords).kernel

    def tune(self, *args: Any, **keywords: Any) -> Tuned:
        """Return the fastest kernel with all outcomes.

        Raises
        ------
        NoWorkingConfig
            If no configuration works.
        """
        from tile_core.plugins.manager import installed
        from tile_core.runtime.memo import make_key

        configs = self._configs(*args, **keywords) if callable(self._configs) else self._configs
        if not isinstance(configs, (list, tuple)) or not configs or not all(isinstance(c, Mapping) for c in configs):
            expected, instead = "a list of dicts", "give at least one configuration"
            raise BadArgument(
                function="autotune", name="configs", found=repr(configs), expected=expected, instead=instead
            )
        shown = {"args": args, "keywords": keywords, "configs": [dict(c) for c in configs]}
        target = installed().resolve_target(self.function.target)
        key = make_key(self.function.function, shown, target=target.text, options=self.function.options_for(target))
        return self._memo.get(key, lambda: self._search(configs, args, keywords))

    def _search(self, configs: Sequence[Config], args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Tuned:
        trials: list[Trial] = []
        best: tuple[float, Kernel, Config] | None = None
        for config in configs:
            kernel, trial = self._try(config, args, keywords)
            trials.append(trial)
            if kernel is not None and trial.seconds is not None and (best is None or trial.seconds < best[0]):
                best = (trial.seconds, kernel, config)
        if best is None:
            reasons = "\n".join(f"  {t}" for t in trials)
            raise NoWorkingConfig(function=self.function.__name__, count=len(trials), reasons=reasons)  # type: ignore[attr-defined]
        return Tuned(best[1], best[2], tuple(trials))

    def _try(self, config: Config, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> tuple[Kernel | None, Trial]:
        from tile_core.runtime.verify import random_arguments

        try:
            kernel = self.function.compile(*args, **{**keywords, **config})
            if self._inputs is None:
                values = random_arguments(kernel.signature, seed=0)
            else:
                values = tuple(self._inputs(*args, **keywords))
            if self._check:
                kernel.verify(*values)
            return kernel, Trial(config, kernel.bench(*values, **self._timing).median)
        except InternalError:
            raise
        except TileError as error:
            return None, Trial(config, error=f"[{error.code}] {error.message}")
