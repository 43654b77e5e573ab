"""``tile.autotune``: the fastest of several configurations, each compiled, checked and timed like any kernel.

A thin loop over the same compile call. A configuration that is refused is part of the report with its code, one whose
result differs from the program's reference meaning is never chosen, and measurements are kept per arguments and target.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from tile_core.compat.types import Argument
from tile_core.errors import InternalError, TileError
from tile_core.errors.cli import CommandError
from tile_core.errors.language import BadArgument
from tile_core.errors.launch import CannotFreeze, NoWorkingConfig
from tile_core.records import dataclass
from tile_core.runtime.bench import time_text
from tile_core.runtime.results import Measured, Measurements
from tile_core.runtime.settings import count_of, path_of
from tile_core.tasks import PATIENCE, Baseline, How, Task, compare, expected_of, run_tasks, task_of
from tile_core.trace.by_name import ByName
from tile_runtime import markup
from tile_runtime.traces import short_traces, shorten

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from tile_core.abi.signature import Signature
    from tile_core.decorators import JitFunction
    from tile_core.ir.program import Program
    from tile_core.runtime.kernel import Kernel
    from tile_core.runtime.memo import Key
    from tile_core.runtime.reads import Reads

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
    known
        Whether this was measured before, and found in the database of results.
    low, high
        The fastest launch and the third quartile of all.
    """

    config: Config
    seconds: float | None = None
    error: str = ""
    known: bool = False
    low: float | None = None
    high: float | None = None

    @staticmethod
    def of(config: Config, found: Measured, known: bool = False) -> Trial:
        """Return the outcome of a measurement."""
        return Trial(config, found.seconds, found.error, known, found.low, found.high)

    @property
    def fastest(self) -> float:
        """The time by which configurations are compared: noise only makes launches longer."""
        return self.low if self.low is not None else self.seconds or 0.0

    def ties(self, other: Trial) -> bool:
        """Whether the times of two configurations overlap, so that neither is known faster."""
        mine, others = (t.high if t.high is not None else t.seconds or 0.0 for t in (self, other))
        return self.fastest <= others and other.fastest <= mine

    def __str__(self) -> str:
        shown = _config_text(self.config)
        if self.seconds is None:
            return f"{shown}: {self.error}"
        spread = (
            "" if self.low is None or self.high is None else f"{self.low * 1e6:.1f} to {self.high * 1e6:.1f}, median "
        )
        return f"{shown}: {spread}{self.seconds * 1e6:.1f} us"


#: What a search calls with every outcome and the number of configurations.
Watch = Callable[[Trial, int], None]


#: The best configurations, which are measured twice.
FINALISTS = 3
#: Bars of a picture in a notebook.
_MOST_BARS = 24


def _config_text(config: Config) -> str:
    return ", ".join(f"{k}={v!r}" for k, v in config.items())


@dataclass(frozen=True)
class Tuned:
    """The outcome of tuning.

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

    @property
    def won(self) -> Trial:
        """The outcome of the fastest kernel."""
        return next(t for t in self.trials if t.config is self.config)

    @property
    def ties(self) -> tuple[Trial, ...]:
        """The other outcomes whose times overlap with those of the fastest kernel."""
        return tuple(t for t in self.trials if t.seconds is not None and t is not self.won and t.ties(self.won))

    def _repr_html_(self) -> str:
        measured = sorted(
            (t for t in self.trials if t.seconds is not None), key=lambda t: (t is not self.won, t.fastest)
        )
        ties = [id(t) for t in self.ties]
        rows = []
        for t in measured[:_MOST_BARS]:
            assert t.seconds is not None
            note = time_text(t.seconds) + (", as fast, as far as measured" if id(t) in ties else "")
            high = t.seconds if t.high is None else max(t.high, t.seconds)
            rows.append(markup.Span(_config_text(t.config), t.fastest, high, note, (t.seconds,), t is self.won))
        end = max(row.high for row in rows)
        picture = markup.spans(rows, end, time_text(end))
        left = len(measured) - len(rows)
        more = [markup.paragraph(f"{left} slower configurations are not shown")] if left else []
        refused = [(_config_text(t.config), t.error) for t in self.trials if t.seconds is None]
        if refused:
            table = markup.table(("configuration", "error"), refused, code=("configuration",))
            more.append(markup.section(f"{len(refused)} configurations that do not work", table, is_open=False))
        head = f"{self.kernel.name}: the fastest of {len(self.trials)} is {_config_text(self.config)}"
        legend = markup.paragraph("from the fastest launch to the third quartile; the mark is the median")
        return markup.page(markup.paragraph(head, "title"), picture, legend, *more)

    def __str__(self) -> str:
        ties = [id(t) for t in self.ties]
        others = [
            f"  {t}{' (as fast, as far as measured)' * (id(t) in ties)}" for t in self.trials if t is not self.won
        ]
        return "\n".join([f"{self.kernel.name}: the fastest of {len(self.trials)} is {self.won}", *others])


def autotune(
    configs: Sequence[Config] | Callable[..., Sequence[Config]],
    *,
    inputs: Callable[..., Sequence[Argument]] | None = None,
    check: bool = True,
    warmup: int = 3,
    repeat: int = 10,
    executor: Executor | int | None = None,
    results: str | os.PathLike[str] | None = None,
    watch: Watch | None = None,
    reference: Callable[..., Any] | None = None,
    timeout: float = PATIENCE,
) -> Callable[[JitFunction], AutotunedFunction]:
    """Choose the fastest configuration of a factory or eager kernel when first called.

    Parameters
    ----------
    configs
        Keyword arguments to try, or a function from the factory's arguments to them.
    inputs
        From the factory's arguments to the kernel's; random arrays if not given, where all shapes are constant.
    check
        Compare each configuration with its plain meaning, and that of the first one or ``reference``, before timing.
    warmup, repeat
        As of ``Kernel.bench``.
    executor
        Any ``concurrent.futures.Executor``, or a number of processes.
    results
        A file that keeps what was measured, by program, shapes, options, versions and device, for later searches.
    watch
        Called with every outcome when it is there, and the number of configurations.
    reference
        A function that returns the outputs, of the arguments that the kernel does not only write.
    timeout
        Seconds within which ``executor`` must finish something, or the rest is given up.

    Returns
    -------
    Callable
        A decorator for what ``tile.jit`` made; the result is called like it. That of a factory returns the fastest
        kernel, that of an eager kernel runs it.

    Raises
    ------
    BadArgument
        If there are no configurations, or the decorated object was not made by ``tile.jit``.
    NoWorkingConfig
        When called, if no configuration works; with the reason of each.
    """

    def decorate(function: JitFunction) -> AutotunedFunction:
        from tile_core.decorators import JitFunction

        if not isinstance(function, JitFunction):
            _refuse_function(function)
        how = How(check, count_of("autotune", "warmup", warmup, 0), count_of("autotune", "repeat", repeat, 1))
        kept = None if results is None else Measurements(path_of("autotune", "results", results))
        return AutotunedFunction(function, configs, inputs, how, executor, kept, watch, reference, timeout)

    return decorate


def _raise_of_command(refused: Sequence[TileError], count: int) -> None:
    """Raise an error that all configurations have in common, such as a wrong argument."""
    if len(refused) == count and isinstance(refused[0], CommandError) and len({str(e) for e in refused}) == 1:
        raise refused[0]


def _refuse_function(function: object) -> NoReturn:
    found, expected = type(function).__name__, "a factory or eager kernel of tile.jit"
    instead = "put @tile.autotune above @tile.jit"
    raise BadArgument(function="autotune", name="function", found=found, expected=expected, instead=instead)


class AutotunedFunction(ByName):
    """A factory whose calls return the fastest kernel, or an eager kernel calling it.

    Attributes
    ----------
    function
        What is tuned.
    configs, inputs, how, executor, results, watch, reference, timeout
        See ``tile.autotune``.
    """

    def __init__(
        self,
        function: JitFunction,
        configs: Sequence[Config] | Callable[..., Sequence[Config]],
        inputs: Callable[..., Sequence[Argument]] | None,
        how: How,
        executor: Executor | int | None,
        results: Measurements | None,
        watch: Watch | None = None,
        reference: Callable[..., Any] | None = None,
        timeout: float = PATIENCE,
    ) -> None:
        from tile_core.runtime.memo import Memo

        functools.update_wrapper(self, function)
        self.function = function
        self.configs, self.inputs, self.how = configs, inputs, how
        self.executor, self.results, self.watch = executor, results, watch
        #: Supplies inputs for tuning; by default random ones where all shapes are constant.
        self.supply: Callable[[Signature, Program], tuple[Any, ...]] | None = None
        self.reference, self.timeout = reference, timeout
        #: Whether to measure what ``results`` has, too.
        self.again = False
        self._memo: Memo[Tuned] = Memo()

    def __call__(self, *args: object, **keywords: object) -> Any:
        """Return the fastest kernel for these arguments, or its results.

        They are tuned once per target.
        """
        try:
            tuned = self.tune(*args, **keywords)
            if not self.function.eager:
                return tuned.kernel
            return self.function.launch(tuned.kernel, self.function.arguments(args, {**keywords, **tuned.config}))
        except TileError as error:
            shorten(error)
            raise error

    @short_traces
    def compile(self, *args: object, **keywords: object) -> Kernel:
        """Return the fastest kernel for these arguments, for eager kernels also by sizes alone."""
        return self.tune(*args, **keywords).kernel

    @short_traces
    def tune(self, *args: object, **keywords: object) -> Tuned:
        """Return the fastest kernel with all outcomes: which configuration won, and why others failed.

        Parameters
        ----------
        *args, **keywords
            As of ``JitFunction.compile``. Arrays given to an eager kernel are those that are timed.

        Raises
        ------
        NoWorkingConfig
            If no configuration works.
        """
        from tile_core.decorators import described
        from tile_core.plugins.manager import installed
        from tile_core.runtime.memo import make_key

        configs = self.configs(*args, **keywords) if callable(self.configs) else self.configs
        if not isinstance(configs, (list, tuple)) or not configs or not all(isinstance(c, Mapping) for c in configs):
            expected, instead = "a list of dicts", "give at least one configuration"
            raise BadArgument(
                function="autotune", name="configs", found=repr(configs), expected=expected, instead=instead
            )
        eager = self.function.eager
        shown: dict[str, Any] = {"args": tuple(described(a, eager) for a in args)}
        shown |= {"keywords": {n: described(v, eager) for n, v in keywords.items()}}
        shown |= {"configs": [dict(c) for c in configs]}
        target = installed().resolve_target(self.function.target)
        key = make_key(self.function.function, shown, target=target.text, options=self.function.options_for(target))
        return self._memo.get(
            key, lambda: self._search(configs, args, keywords), lambda: self._reads(args, keywords, configs)
        )

    def _reads(self, args: tuple[object, ...], keywords: Mapping[str, object], configs: Sequence[Config]) -> Reads:
        """Return the places on which programs and inputs of a search depend."""
        given = {str(n): v for n, v in enumerate((*args, *keywords.values(), *(list(c.values()) for c in configs)))}
        return self.function.reads({**given, "inputs": self.inputs})

    def _search(self, configs: Sequence[Config], args: tuple[object, ...], keywords: Mapping[str, object]) -> Tuned:
        trials: list[Trial | None] = [None] * len(configs)
        tasks: dict[int, Task] = {}
        if self.results is not None:
            self.results.prepare()

        def ended(n: int, trial: Trial) -> None:
            trials[n] = trial
            if self.watch is not None:
                self.watch(trial, len(configs))

        refused: list[TileError] = []
        baseline = Baseline(self.how.check, self.reference)
        for n, config in enumerate(configs):
            try:
                found = self._known_or_task(args, keywords, config, baseline)
            except InternalError:
                raise
            except TileError as error:
                refused.append(error)
                ended(n, Trial(config, error=f"[{error.code}] {error.message}"))
                continue
            baseline.begin(n, found)
            if isinstance(found, Task):
                tasks[n] = found
            else:
                ended(n, Trial.of(config, found, known=True))

        _raise_of_command(refused, len(configs))
        self._expect(tasks, baseline, configs, args, keywords)

        def done(n: int, found: Measured) -> None:
            if self.results is not None and tasks[n].key and (found.device or found.error.startswith("[K")):
                facts = {"config": repr(dict(configs[n])), "kernel": tasks[n].program.name, "target": tasks[n].target}
                self.results.store(tasks[n].key, found, **facts)
            ended(n, Trial.of(configs[n], found))

        run_tasks(tasks, self.executor, done, self.timeout)
        outcomes = [t for t in trials if t is not None]
        if tasks and (self.executor is None or isinstance(self.executor, int)):  # this process has the device
            outcomes = self._compared(outcomes, tasks, args, keywords)
        return self._best(outcomes, args, keywords)

    def _compared(
        self,
        trials: list[Trial],
        measured: Mapping[int, Task],
        args: tuple[object, ...],
        keywords: Mapping[str, object],
    ) -> list[Trial]:
        """Measure the best configurations again, side by side, and keep the new times."""
        best = sorted((t for t in trials if t.seconds is not None), key=lambda t: t.fastest)[:FINALISTS]
        if len(best) < 2 or all(t.known for t in best):
            return trials
        made = {id(trials[n]): task for n, task in measured.items()}
        tasks = [made.get(id(t)) or self._task(args, keywords, t.config) for t in best]
        try:
            times = compare(tasks)
        except TileError:  # of memory, where all have to be there at once
            return trials
        changed: dict[int, Trial] = {}
        for trial, task, new in zip(best, tasks, times, strict=True):
            # Noise only makes launches longer.
            low = min(trial.fastest, new.low or trial.fastest)
            changed[id(trial)] = dataclasses.replace(trial, seconds=new.seconds, low=low, high=new.high)
            known = self.results.find(task.key, new.device) if self.results is not None and task.key else None
            if known is not None and self.results is not None:
                kept = dataclasses.replace(new, low=low, baseline=known.baseline)
                facts = {"config": repr(dict(trial.config)), "kernel": task.program.name, "target": task.target}
                self.results.store(task.key, kept, **facts)
        return [changed.get(id(t), t) for t in trials]

    def _best(self, trials: list[Trial], args: tuple[object, ...], keywords: Mapping[str, object]) -> Tuned:
        working = [t for t in trials if t.seconds is not None]
        if not working:
            reasons = "\n".join(f"  {t}" for t in trials)
            name = self.function.function.__name__
            raise NoWorkingConfig(function=name, count=len(trials), reasons=reasons)
        won = min(working, key=lambda t: t.fastest)
        return Tuned(self.function.compile(*args, **{**keywords, **won.config}), won.config, tuple(trials))

    def _expect(
        self, tasks: dict[int, Task], baseline: Baseline, configs: Sequence[Config], args: tuple[object, ...],
        keywords: Mapping[str, object],
    ) -> None:  # fmt: skip
        """Give tasks the results of the first configuration, or of the user's reference."""
        if not self.how.check or not tasks or baseline.first is None:
            return
        first = tasks.get(baseline.first) or self._task(args, keywords, configs[baseline.first])
        expected = expected_of(first, self.reference) if first.comparable else None
        for n, task in tasks.items():
            # Other parameters may be packed for a configuration: then its results are its own.
            same = task.interface == first.interface and task.comparable
            tasks[n] = dataclasses.replace(task, expected=expected if same else None, baseline=baseline.group or "")

    def _known_or_task(
        self, args: tuple[object, ...], keywords: Mapping[str, Any], config: Config, baseline: Baseline
    ) -> Measured | Task:
        """Return the measurement of a configuration, or else its task.

        What this process traced before is not traced again for its key.
        """
        if self.results is None or self.again:
            return self._task(args, keywords, config)
        identity, device = self._identity(args, keywords, config)
        if identity is None:
            task = self._task(args, keywords, config)
            known = self.results.find(task.key, task.device) if task.key else None
            return baseline.accepted(known, task.key) or task
        tasks: list[Task] = []

        def key() -> str:
            tasks.append(self._task(args, keywords, config))
            return tasks[0].key

        found = self.function.traced_keys.get(identity, key, lambda: self._reads(args, keywords, [config]))
        known = self.results.find(found, tasks[0].device if tasks else device) if found else None
        known = baseline.accepted(known, found)
        return known or (tasks or [self._task(args, keywords, config)])[0]

    def _identity(
        self, args: tuple[object, ...], keywords: Mapping[str, Any], config: Config
    ) -> tuple[Key | None, str]:
        """Return a configuration's trace key, where it has one, and the device's name."""
        from tile_core.decorators import described
        from tile_core.plugins.manager import installed
        from tile_core.plugins.runtimes import find_runtime
        from tile_core.runtime.freeze import fingerprint
        from tile_core.runtime.memo import make_key
        from tile_runtime import knobs

        plugins, function = installed(), self.function
        target = plugins.resolve_target(function.target)
        shown: dict[str, Any] = {"args": tuple(described(a, function.eager) for a in args)}
        shown |= {n: described(v, function.eager) for n, v in {**keywords, **config}.items()}
        device = find_runtime(plugins, target, function.runtime).device_name()
        try:
            inputs = repr(self.supply) if self.inputs is None else fingerprint(self.inputs)
            settings = (function.runtime, self.how.check, inputs, repr(knobs.current()))
            rest = (function.out_idx, function.options_for(target), *settings)
            return make_key(function.function, shown, target=target.text, options=rest), device
        except CannotFreeze:
            return None, device

    def _task(self, args: tuple[object, ...], keywords: Mapping[str, Any], config: Config) -> Task:
        """Return the task of one configuration, traced here so that it is plain data."""
        from tile_core.compiler import signature_of
        from tile_core.plugins.contexts import make_context
        from tile_core.plugins.manager import installed

        plugins, function = installed(), self.function
        whole = {**keywords, **config}
        program = function.program(*args, **whole)
        target = plugins.resolve_target(function.target)
        options = function.options_for(target)
        out_idx = program.outputs if function.eager else function.out_idx
        signature = signature_of(program, out_idx)
        if self.inputs is not None:
            values = tuple(self.inputs(*args, **keywords))
        else:
            values = function.values_of(program, args, whole)
            if not values and self.supply is not None:
                values = self.supply(signature, program)
        ctx = make_context(target, options, plugins=plugins)
        return task_of(program, signature, ctx, out_idx, values, self.how, function.runtime)
