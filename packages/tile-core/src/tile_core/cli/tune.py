"""``tile tune``: find the fastest configuration of a kernel, with a table and a chart."""

from __future__ import annotations

import contextlib
import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from tile_core.cli.arguments import Arguments, File, Options, combinations, read_arguments, read_options
from tile_core.cli.console import AsJson, Verbose, console, print_json, table
from tile_core.errors import TileError
from tile_core.errors.cli import MissingPackage, MissingValue, NoScheduler, NotAKernel, NothingToVary
from tile_core.records import dataclass

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from tile_core.abi.signature import Signature
    from tile_core.compat.types import Argument
    from tile_core.decorators import JitFunction
    from tile_core.ir.program import Program
    from tile_core.tuning import AutotunedFunction, Trial, Tuned


_Target = Annotated[
    Optional[str],  # noqa: UP045 - typer evaluates it on Python 3.10
    typer.Option("--target", "-t", help="By default that of the file's decorator."),
]
_Vary = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(metavar="NAME=VALUE,VALUE", help="Values of an argument to try; all combinations are tried."),
]
_Workers = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(min=1, help="Number of processes that run configurations; those of one device disturb each other."),
]
_Scheduler = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(metavar="ADDRESS", help="Run configurations on the cluster of this dask scheduler."),
]
_Results = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(help="Database of measurements; by default one beside the cache of kernels."),
]
_Warmup = Annotated[Optional[int], typer.Option(min=0, help="Launches before timing.")]  # noqa: UP045
_Repeat = Annotated[Optional[int], typer.Option(min=1, help="Number of timed samples.")]  # noqa: UP045
_Check = Annotated[bool, typer.Option(help="Compare each configuration with the program's plain meaning.")]
_Again = Annotated[bool, typer.Option("--again", help="Measure configurations that were measured before, too.")]
_Plot = Annotated[Optional[Path], typer.Option(help="Draw the times to this file: .svg, .png, .pdf.")]  # noqa: UP045


def tune_file(
    file: File,
    target: _Target = None,
    arg: Arguments = None,
    vary: _Vary = None,
    option: Options = None,
    workers: _Workers = None,
    scheduler: _Scheduler = None,
    results: _Results = None,
    warmup: _Warmup = None,
    repeat: _Repeat = None,
    check: _Check = True,
    again: _Again = False,
    plot: _Plot = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Compile, check and time configurations of a kernel, and show the fastest.

    Configurations are those of @tile.autotune, or of --vary. The best three are measured again with alternating
    samples. What was measured before is not measured again: an interrupted search goes on where it was.
    """
    if workers is not None and scheduler is not None:
        raise typer.BadParameter("choose one of --workers and --scheduler")
    if plot is not None:
        from tile_core.cli import chart

        chart.require(plot)
    name, search, given = _search(
        file, target, read_options(option), read_arguments(arg), combinations("--vary", vary) if vary else None
    )
    how = {"check": check, "warmup": warmup, "repeat": repeat}
    search = _configured(search, {n: v for n, v in how.items() if v is not None}, results)
    search.again = again
    with _executor(workers, scheduler) as executor:
        search.executor = executor
        found = _run(name, search, given)
    if plot is not None:
        chart.draw(plot, found)
    database = search.results.path if search.results is not None else None
    if as_json:
        print_json(_json(found, database))
    else:
        _show(found, database, search.supply if isinstance(search.supply, Supply) else Supply({}))


def _search(
    file: str,
    target: str | None,
    options: Mapping[str, object] | None,
    given: Mapping[str, object],
    varied: list[dict[str, object]] | None,
) -> tuple[str, AutotunedFunction, dict[str, object]]:
    """Return the name of what is tuned, the search, and the arguments of the function.

    Raises
    ------
    CommandError
        If the file has nothing that can be tuned, or its function has not these arguments.
    """
    from tile_core.cli.source import find_value
    from tile_core.decorators import JitFunction, jit
    from tile_core.tuning import AutotunedFunction, autotune

    path, name, value = find_value(file, AutotunedFunction)
    tuned = value if isinstance(value, AutotunedFunction) else None
    function: Any = tuned.function if tuned is not None else value
    if inspect.isfunction(function):
        function = jit(function)
    if not isinstance(function, JitFunction):
        found, expected = f"is {type(value).__name__}", "a function that makes a kernel from what is varied"
        raise NotAKernel(name=name, file=path, found=found, expected=expected)
    configs = varied if varied is not None or tuned is None else tuned.configs
    own, rest = _divided(function, given)
    _refuse_wrong(name, function, own, rest, configs)
    function = function.changed(target=target, options=options)
    if tuned is None:
        search = autotune(configs or [])(function)
    else:
        kept = (tuned.inputs, tuned.how, tuned.executor, tuned.results, None, tuned.reference, tuned.timeout)
        search = AutotunedFunction(function, configs or [], *kept)
    search.supply = Supply(rest)
    return name, search, own


def _divided(function: JitFunction, given: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """Return the arguments of the function, and sizes and scalars of its kernel by name."""
    known = inspect.signature(function.function).parameters
    own = {n: v for n, v in given.items() if function.eager or n in known}
    return own, {n: v for n, v in given.items() if n not in own}


def _refuse_wrong(
    name: str, function: JitFunction, given: Mapping[str, object], rest: Mapping[str, object], configs: Any
) -> None:
    from tile_core.cli.source import refuse_argument

    parameters = inspect.signature(function.function).parameters
    known = tuple(parameters)
    if rest:
        of_kernel = _names_of_kernel(function, given, configs)
        for argument in rest:
            if argument not in of_kernel:
                refuse_argument(name, argument, (*known, *of_kernel))
    if not configs:
        raise NothingToVary(kernel=name, known=", ".join(n for n in known if n not in given) or "none")
    tried = set() if callable(configs) else {n for config in configs for n in config}
    for argument in sorted(tried - set(known)):
        refuse_argument(name, argument, known, "--vary")
    there = {*given, *tried}
    missing = [n for n, p in parameters.items() if p.default is p.empty and n not in there]
    if missing and not (callable(configs) or function.eager):
        usage = " ".join(f"--arg {n}=VALUE" for n in missing)
        raise MissingValue(kernel=name, name=", ".join(missing), what="", usage=usage)


def _names_of_kernel(function: JitFunction, given: Mapping[str, object], configs: Any) -> tuple[str, ...]:
    """Return symbolic sizes and scalar inputs of the first configuration that can be traced."""
    from tile_core.compiler import signature_of

    for config in () if callable(configs) else configs or ():
        with contextlib.suppress(TileError, TypeError):  # the search reports the reason
            signature = signature_of(function.program(**{**given, **config}), function.out_idx)
            scalars = (signature.params[i].name for i in signature.inputs if signature.params[i].kind == "scalar")
            return (*signature.symbols, *scalars)
    return ()


@dataclass(frozen=True)
class Supply:
    """Makes up inputs of kernels with symbolic sizes or scalars.

    Attributes
    ----------
    given
        Values of sizes and scalars by name, see ``make_inputs``.
    """

    given: Mapping[str, object]

    def __call__(self, signature: Signature, program: Program) -> tuple[Argument, ...]:
        """Return the inputs of one configuration; none where random arrays of its shapes will do."""
        from tile_core.cli.inputs import make_inputs
        from tile_core.ops.held_codes import held_codes

        scalar = any(signature.params[i].kind == "scalar" for i in signature.inputs)
        if not self.given and not signature.symbols and not scalar:
            return ()
        return make_inputs(signature, self.given, 0, held_codes(program)).values

    def sizes(self, signature: Signature) -> dict[str, object]:
        """Return the values of the symbolic sizes."""
        from tile_core.cli.inputs import DEFAULT_SIZE

        return {s: self.given.get(s, DEFAULT_SIZE) for s in signature.symbols}


def _configured(search: AutotunedFunction, how: Mapping[str, Any], results: Path | None) -> AutotunedFunction:
    """Set how a search measures, and where it keeps what it measured."""
    from dataclasses import replace

    from tile_core.runtime import cache
    from tile_core.runtime.results import Measurements

    search.how = replace(search.how, **how)
    if results is not None:
        search.results = Measurements(results)
    elif search.results is None and cache.enabled():
        folder = cache.root()
        with contextlib.suppress(OSError):  # the database reports the problem of the folder
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        search.results = Measurements(folder / "tuning.sqlite", own=True)
    return search


@contextlib.contextmanager
def _executor(workers: int | None, scheduler: str | None) -> Iterator[Executor | int | None]:
    """Give what runs configurations.

    Raises
    ------
    MissingPackage, NoScheduler
        If dask is not installed, or no scheduler responds at the address.
    """
    if scheduler is None:
        yield workers
        return
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError as error:
        raise MissingPackage(option="--scheduler", package="dask.distributed", extra="dask") from error
    try:
        client = distributed.Client(scheduler, timeout="10s")
    except (OSError, ValueError) as error:
        raise NoScheduler(address=scheduler, reason=str(error).splitlines()[0]) from error
    with client:
        yield client.get_executor()


def _run(name: str, search: AutotunedFunction, given: Mapping[str, object]) -> Tuned:
    """Run a search under a bar of progress."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from tile_core.runtime.bench import time_text

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    progress = Progress(*columns, console=console(stderr=True), transient=True)
    ended: list[Trial] = []
    with progress:
        bar = progress.add_task(f"tuning {name}", total=None)

        def watch(trial: Trial, total: int) -> None:
            ended.append(trial)
            best = min((t.seconds for t in ended if t.seconds is not None), default=None)
            text = f"tuning {name}" if best is None else f"tuning {name}, best {time_text(best)}"
            progress.update(bar, total=total, completed=len(ended), description=text)

        search.watch = watch
        try:
            return search.tune(**given)
        except KeyboardInterrupt:
            progress.stop()
            kept = "" if search.results is None else f"; kept in {search.results.path}: the same command goes on"
            text = f"interrupted after {len(ended)} configurations{kept}"
            console(stderr=True).print(text, markup=False, soft_wrap=True)
            raise
        except TileError:
            progress.stop()
            raise


def _show(found: Tuned, database: Path | None, supply: Supply) -> None:
    from tile_core.cli.bench import spread_text
    from tile_core.runtime.bench import time_text

    names = list(dict.fromkeys(n for t in found.trials for n in t.config))
    working = sorted((t for t in found.trials if t.seconds is not None), key=lambda t: (t is not found.won, t.fastest))
    failed = [t for t in found.trials if t.seconds is None]
    best = found.won.seconds or 0.0
    rates = _rates(found, supply)
    rows = [
        (
            *_values(t, names), time_text(t.seconds or 0.0), spread_text(t.fastest, t.high or t.seconds or 0.0),
            *rates(t), f"{t.fastest / (found.won.fastest or 1.0):.2f}", "yes" if t.known else "",
        )
        for t in working
    ]  # fmt: skip
    out = console()
    out.print(f"{found.kernel.signature} for {found.kernel.target}", markup=False)
    sizes = supply.sizes(found.kernel.signature)
    if sizes:
        out.print(f"inputs: random, {', '.join(f'{n} = {v}' for n, v in sizes.items())}", markup=False)
    columns = (
        *names,
        "median",
        "min to third quartile",
        "operations",
        "memory",
        "share of peak",
        "min / best",
        "known",
    )
    out.print(table(columns, rows))
    if failed:
        rows = [(*_values(t, names), t.error.splitlines()[0]) for t in failed]
        out.print(table((*names, "why not"), rows))
    known = sum(t.known for t in found.trials)
    won = ", ".join(f"{n}={v!r}" for n, v in found.config.items())
    out.print(f"the fastest of {len(found.trials)}: {won}, {time_text(best)}", markup=False, soft_wrap=True)
    for tie in found.ties:
        shown = ", ".join(f"{n}={v!r}" for n, v in tie.config.items())
        out.print(f"as fast, as far as measured: {shown}", markup=False, soft_wrap=True)
    if database is not None:
        out.print(f"{known} of {len(found.trials)} known before; in {database}", markup=False, soft_wrap=True)


def _rates(found: Tuned, supply: Supply) -> Callable[[Trial], tuple[str, str, str]]:
    """Return a function from an outcome to its rates as texts.

    All configurations do the same work.
    """
    from tile_core.cli.bench import peaks_of
    from tile_core.cli.roofline import Rates
    from tile_core.tiling.work import work_of

    kernel = found.kernel
    sizes = {n: v for n, v in supply.sizes(kernel.signature).items() if isinstance(v, int)}
    if kernel.program is None or len(sizes) != len(kernel.signature.symbols):
        return lambda trial: ("", "", "")
    work, peaks = work_of(kernel.program, kernel.signature, sizes), peaks_of(kernel)
    return lambda trial: Rates("", work, trial.seconds or 0.0, peaks).cells()


def _values(trial: Trial, names: list[str]) -> tuple[str, ...]:
    return tuple(str(trial.config[n]) if n in trial.config else "" for n in names)


def _json(found: Tuned, database: Path | None) -> dict[str, object]:
    fields = ("seconds", "low", "high", "error", "known")
    trials = [{"config": {**t.config}, **{f: getattr(t, f) for f in fields}} for t in found.trials]
    return {
        "kernel": found.kernel.name, "target": found.kernel.target, "signature": found.kernel.signature.to_json(),
        "config": {**found.config}, "trials": trials, "results": None if database is None else str(database),
    }  # fmt: skip
