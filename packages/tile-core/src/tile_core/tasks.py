"""Configurations of a search as tasks: plain data for any executor, local or remote."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from tile_core.compat.types import Argument
from tile_core.errors.base import TileError
from tile_core.errors.launch import CannotFreeze
from tile_core.errors.setup import WorkerEnded, WorkerSlow
from tile_core.records import dataclass
from tile_core.runtime.results import Measured
from tile_runtime.errors.interrupts import passed_on

if TYPE_CHECKING:
    from tile_core.abi.signature import Signature
    from tile_core.context import Context
    from tile_core.ir.program import Program
    from tile_core.runtime.kernel import Kernel


PATIENCE = 600.0
"""Seconds within which an executor must finish something."""

_SECONDS_OF_A_WAIT = 0.2
_ROUNDS = 4  # of measuring a configuration whose times vary
_STEADY = 1.05  # how far medians of two rounds may be apart


@dataclass(frozen=True)
class How:
    """How configurations are measured: whether results are checked first, launches before timing, and samples."""

    check: bool
    warmup: int
    repeat: int


@dataclass(frozen=True)
class Task:
    """The work of one configuration.

    Attributes
    ----------
    program, signature, target, out_idx, options
        What ``tile.compile`` takes, and the kernel's parameters.
    values
        Arguments of the kernel; random ones of its signature if there are none.
    how
        How it is measured.
    key
        Stands for everything that decides the result but the device; empty if something has no key.
    device
        Name of this process's device; empty if it is not known.
    timed_by_device
        Whether the device times its own work: what processors do then disturbs nothing.
    expected
        Arrays that the outputs must equal besides, by parameter: results of another configuration or of a reference.
    baseline
        Key of the configuration that these are of.
    runtime
        As of ``tile.compile``.
    """

    program: Program
    signature: Signature
    target: str
    out_idx: Any
    options: Any
    values: tuple[Argument, ...]
    how: How
    key: str
    device: str
    timed_by_device: bool = False
    expected: Any = None
    baseline: str = ""
    runtime: str | None = None

    @property
    def interface(self) -> tuple[object, ...]:
        """Properties that make results comparable: parameters, and shapes of arguments."""
        params = tuple((p.name, p.kind, p.dtype, p.shape, p.strides, p.writes) for p in self.signature.params)
        return params, tuple(str(getattr(v, "shape", "")) for v in self.values)

    @property
    def comparable(self) -> bool:
        """Whether its results are a function of its arguments that another configuration has, too."""
        params = self.signature.params
        return not self.signature.workspaces and all(p.kind != "pointer" and not p.addresses for p in params)


class Baseline:
    """The search's reference for comparisons: the first configuration that can be traced.

    Attributes
    ----------
    first
        Its number.
    group
        Key of the configuration, or reference, that it was itself compared with: results of one group are equal.
    """

    def __init__(self, check: bool, reference: Callable[..., Any] | None) -> None:
        from tile_core.runtime.freeze import fingerprint

        self.check = check
        self.first: int | None = None
        self.group: str | None = None
        if reference is not None:
            with contextlib.suppress(CannotFreeze):
                self.group = f"reference {fingerprint(reference)}"

    def accepted(self, found: Measured | None, key: str) -> Measured | None:
        """Return a known outcome if its first configuration's group is this search's."""
        if found is None or not self.check:
            return found
        if self.first is None and self.group is None:
            if found.error and found.baseline != key:  # it differs from another configuration
                return None
            self.group = found.baseline or None
        return found if found.baseline and found.baseline == self.group else None

    def begin(self, number: int, found: Measured | Task) -> None:
        """Note the outcome or the work of a configuration."""
        if self.first is None:
            self.first = number
            if self.group is None and isinstance(found, Task):
                self.group = found.key


def task_of(
    program: Program,
    signature: Signature,
    ctx: Context,
    out_idx: Any,
    values: tuple[Argument, ...],
    how: How,
    runtime: str | None = None,
) -> Task:
    """Return the task of a traced configuration, with its key."""
    from tile_core.plugins.manager import installed
    from tile_core.plugins.runtimes import find_runtime
    from tile_core.runtime.cache_key import key_of

    plugins = installed()
    adapter = find_runtime(plugins, ctx.target, runtime)
    key = key_of(program, signature, ctx, plugins, adapter)
    if key is not None:
        shapes = [(getattr(v, "shape", None), str(getattr(v, "dtype", repr(v)))) for v in values]
        key = hashlib.sha256(repr((key, shapes, how.check)).encode()).hexdigest()
    facts = (key or "", adapter.device_name(), getattr(adapter, "clock", None) is not None)
    return Task(program, signature, ctx.target.text, out_idx, ctx.options, values, how, *facts, runtime=runtime)


def measure(task: Task) -> Measured:
    """Compile a configuration, compare with the reference, and time it alone."""
    from tile_core.compiler import compile as compile_program
    from tile_core.ops.held_codes import held_codes
    from tile_core.runtime.device_lock import alone, among_others
    from tile_core.runtime.judge import ALLOWED
    from tile_core.runtime.kernel import there
    from tile_core.runtime.verify import random_arguments

    device = ""  # a refusal of the compiler is the same for all
    try:
        with contextlib.nullcontext() if task.timed_by_device else among_others(task.device):
            kernel = compile_program(task.program, task.target, task.out_idx, task.options, runtime=task.runtime)
            device = getattr(kernel.adapter, "device_name", str)()
            given = task.values or random_arguments(kernel.signature, 0, held_codes(task.program))
            values = [there(kernel.adapter, v) if hasattr(v, "shape") else v for v in _own(task, given)]
            if task.how.check:
                # Arrays that a kernel is given may be meant to be written in part.
                allow = ALLOWED[1:] if kernel.signature.out_idx else ALLOWED
                kernel.verify(*values, reference=task.expected, allow=allow)
        with alone(task.device):
            samples = _samples(kernel, values, task.how)
    except TileError as error:
        return dataclasses.replace(_failed(error, device), baseline=task.baseline)
    high = samples[-1 - (len(samples) - 1) // 4]
    return Measured(statistics.median(samples), "", device, samples[0], high, task.baseline)


def compare(tasks: Sequence[Task]) -> list[Measured]:
    """Time configurations that work once more, with alternating samples."""
    from tile_core.compiler import compile as compile_program
    from tile_core.ops.held_codes import held_codes
    from tile_core.runtime.bench import measure as measure_alternately
    from tile_core.runtime.device_lock import alone
    from tile_core.runtime.kernel import there
    from tile_core.runtime.verify import random_arguments

    watches = []
    for task in tasks:
        kernel = compile_program(task.program, task.target, task.out_idx, task.options, runtime=task.runtime)
        given = task.values or random_arguments(kernel.signature, 0, held_codes(task.program))
        values = [there(kernel.adapter, v) if hasattr(v, "shape") else v for v in _own(task, given)]
        watches.append(kernel.stopwatch(*values))
    how = tasks[0].how
    with alone(tasks[0].device):
        found = measure_alternately(watches, warmup=how.warmup, repeat=2 * how.repeat)
    return [Measured(r.median, "", t.device, r.min, r.high, t.baseline) for r, t in zip(found, tasks, strict=True)]


def _own(task: Task, values: Sequence[Argument]) -> list[Argument]:
    """Return arguments with copies of those that a kernel both reads and writes.

    Other configurations get the originals.
    """
    params = [task.signature.params[n] for n in task.signature.inputs]
    made = []
    for param, value in zip(params, values, strict=True):
        copies = param.access == "readwrite" and param.strides is None and param.kind == "tensor"
        duplicate = getattr(value, "clone", None) or getattr(value, "copy", None)
        made.append(duplicate() if copies and duplicate is not None else value)
    return made


def _samples(kernel: Kernel, values: Sequence[Argument], how: How) -> list[float]:
    """Return sorted times of launches: of two rounds, and of more while their medians differ."""
    rounds: list[tuple[float, ...]] = []
    for _ in range(_ROUNDS):
        rounds.append(kernel.bench(*values, warmup=how.warmup, repeat=how.repeat).samples)
        medians = sorted(map(statistics.median, rounds[-2:]))
        if len(rounds) > 1 and medians[1] <= _STEADY * medians[0]:
            break
    return sorted(itertools.chain.from_iterable(rounds))


def expected_of(task: Task, reference: Any = None) -> Any:
    """Return the outputs that a configuration must compute, by parameter.

    Parameters
    ----------
    task
        A configuration, whose program's plain meaning is executed.
    reference
        A user's function, which is called instead with the arguments that the kernel does not only write.

    Raises
    ------
    TileError
        The program has no meaning for these arguments.
    """
    from tile_core.abi.adapter import HostMemory
    from tile_core.ops.held_codes import held_codes
    from tile_core.reference import execute
    from tile_core.runtime.kernel import Kernel
    from tile_core.runtime.own_reference import inputs_of
    from tile_core.runtime.verify import host_copy, random_arguments, values_of
    from tile_runtime.calls.arguments import only_catalogue

    program, signature = task.program, task.signature
    params = signature.params
    given = task.values or random_arguments(signature, 0, held_codes(program))
    arrays = dict(zip(signature.inputs, given, strict=True))
    copies = {n: host_copy(value, params[n]) for n, value in arrays.items()}
    if reference is not None:
        every = [arrays.get(n) for n in range(len(params))]
        with only_catalogue("the reference of a search", signature.where):
            return reference(*inputs_of(signature, every, [copies.get(n) for n in range(len(params))]))
    meaning = Kernel(signature, lambda *launched: execute(program, launched, check=False), adapter=HostMemory())
    results = meaning(*copies.values())
    made = dict(zip(signature.out_idx, results if isinstance(results, tuple) else (results,), strict=False))
    written = {n: {**copies, **made}[n] for n, p in enumerate(params) if p.writes and p.kind == "tensor"}
    return {params[n].name: values_of(array, params[n]) for n, array in written.items()}


def run_tasks(
    tasks: Mapping[int, Task],
    executor: Executor | int | None,
    done: Callable[[int, Measured], None],
    timeout: float = PATIENCE,
) -> None:
    """Run tasks and hand over each outcome when it is there, in any order.

    Parameters
    ----------
    tasks
        By number.
    executor, timeout
        See ``tile.autotune``.
    done
        Called in this thread.
    """
    if executor is None:
        for n, task in tasks.items():
            done(n, measure(task))
        return
    lost = _run_side_by_side(tasks, executor, done, timeout)
    for n in lost:  # alone: one that ends its process takes those beside it along
        for n_again, reason in _run_side_by_side({n: tasks[n]}, executor, done, timeout).items():
            done(n_again, _failed(WorkerEnded(reason=reason or lost[n])))


def _failed(error: TileError, device: str = "") -> Measured:
    return Measured(None, f"[{error.code}] {error.message}", device)


def _run_side_by_side(
    tasks: Mapping[int, Task], executor: Executor | int, done: Callable[[int, Measured], None], timeout: float
) -> dict[int, str]:
    """Run tasks side by side and return the lost ones with the reason."""
    own = ProcessPoolExecutor(executor, get_context("spawn")) if isinstance(executor, int) else None
    pool: Any = own or executor
    lost: dict[int, str] = {}
    futures: dict[Any, int] = {}
    try:
        for n, task in tasks.items():
            try:
                future = pool.submit(measure, task)
            except Exception as error:  # the pool is broken already
                passed_on(error)
                lost[n] = _text(error)
            else:
                if not isinstance(future, Future):
                    lost[n] = f"its submit() returned {type(future).__name__}"
                else:
                    futures[future] = n
        for future in _ended(set(futures), timeout):
            _take(future, futures.pop(future), done, lost)
        for future, n in futures.items():
            future.cancel()
            done(n, _failed(WorkerSlow(seconds=timeout)))
    finally:
        if own is not None:
            for process in list((own._processes or {}).values()) if futures else ():
                process.kill()
            own.shutdown(cancel_futures=True)
    return lost


def _ended(pending: set[Future[Any]], timeout: float) -> Iterator[Future[Any]]:
    """Yield futures when they end, cancelled ones too, until none has for ``timeout`` seconds."""
    last = time.monotonic()
    while pending and time.monotonic() - last < timeout:
        over = wait(pending, _SECONDS_OF_A_WAIT, FIRST_COMPLETED).done
        over |= {future for future in pending if future.cancelled()}  # nothing reports those that never ran
        if over:
            last = time.monotonic()
        pending -= over
        yield from over


def _take(future: Future[Any], n: int, done: Callable[[int, Measured], None], lost: dict[int, str]) -> None:
    """Hand over the outcome of a future, or note why there is none."""
    try:
        found = "it was cancelled" if future.cancelled() else future.result()
    except Exception as error:
        passed_on(error)
        found = _text(error)
    if isinstance(found, Measured):
        done(n, found)
    else:
        lost[n] = found if isinstance(found, str) else f"the executor returned {type(found).__name__}"


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
