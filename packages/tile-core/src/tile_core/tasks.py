"""Configurations of a search as tasks: plain data that any executor can run, on this machine or another one."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from tile_core.compat.types import Argument
from tile_core.errors.base import TileError
from tile_core.errors.setup import WorkerEnded
from tile_core.records import dataclass
from tile_core.runtime.results import Measured

if TYPE_CHECKING:
    from tile_core.abi.signature import Signature
    from tile_core.context import Context
    from tile_core.ir.program import Program


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
    program, target, out_idx, options
        What ``tile.compile`` takes.
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
    """

    program: Program
    target: str
    out_idx: Any
    options: Any
    values: tuple[Argument, ...]
    how: How
    key: str
    device: str
    timed_by_device: bool = False


def task_of(
    program: Program, signature: Signature, ctx: Context, out_idx: Any, values: tuple[Argument, ...], how: How
) -> Task:
    """Return the task of a traced configuration, with its key."""
    from tile_core.plugins.manager import installed
    from tile_core.plugins.runtimes import find_runtime
    from tile_core.runtime.cache_key import key_of

    plugins = installed()
    adapter = find_runtime(plugins, ctx.target, None)
    key = key_of(program, signature, ctx, plugins, adapter)
    if key is not None:
        shapes = [(getattr(v, "shape", None), str(getattr(v, "dtype", repr(v)))) for v in values]
        key = hashlib.sha256(repr((key, shapes, how.check)).encode()).hexdigest()
    facts = (key or "", adapter.device_name(), getattr(adapter, "clock", None) is not None)
    return Task(program, ctx.target.text, out_idx, ctx.options, values, how, *facts)


def measure(task: Task) -> Measured:
    """Compile a configuration, compare its results with the program's meaning, and time it while nothing else is."""
    from tile_core.compiler import compile as compile_program
    from tile_core.ops.held_codes import held_codes
    from tile_core.runtime.judge import ALLOWED
    from tile_core.runtime.kernel import there
    from tile_core.runtime.turns import alone, among_others
    from tile_core.runtime.verify import random_arguments

    device = ""  # a refusal of the compiler is the same for all
    try:
        with contextlib.nullcontext() if task.timed_by_device else among_others(task.device):
            kernel = compile_program(task.program, task.target, task.out_idx, task.options)
            device = getattr(kernel.adapter, "device_name", str)()
            given = task.values or random_arguments(kernel.signature, 0, held_codes(task.program))
            values = [there(kernel.adapter, v) if hasattr(v, "shape") else v for v in given]
            if task.how.check:
                # Arrays that a kernel is given may be meant to be written in part.
                kernel.verify(*values, allow=ALLOWED[1:] if kernel.signature.out_idx else ALLOWED)
        with alone(task.device):
            seconds = kernel.bench(*values, warmup=task.how.warmup, repeat=task.how.repeat).median
    except TileError as error:
        return Measured(None, f"[{error.code}] {error.message}", device)
    return Measured(seconds, "", device)


def run_tasks(
    tasks: Mapping[int, Task], executor: Executor | int | None, done: Callable[[int, Measured], None]
) -> None:
    """Run tasks and hand over each outcome when it is there, in any order.

    Parameters
    ----------
    tasks
        By number.
    executor
        See ``tile.autotune``.
    done
        Called in this thread.
    """
    if executor is None:
        for n, task in tasks.items():
            done(n, measure(task))
        return
    lost = _together(tasks, executor, done)
    for n in lost:  # alone: one that ends its process takes those beside it along
        for n_again in _together({n: tasks[n]}, executor, done):
            error = WorkerEnded(reason=lost[n])
            done(n_again, Measured(None, f"[{error.code}] {error.message}", ""))


def _together(
    tasks: Mapping[int, Task], executor: Executor | int, done: Callable[[int, Measured], None]
) -> dict[int, str]:
    """Run tasks side by side and return those whose process was lost, with the reason."""
    own = ProcessPoolExecutor(executor, get_context("spawn")) if isinstance(executor, int) else None
    pool: Any = own or executor
    lost: dict[int, str] = {}
    try:
        futures = {}
        for n, task in tasks.items():
            try:
                futures[pool.submit(measure, task)] = n
            except RuntimeError as error:  # the pool is broken already
                lost[n] = _text(error)
        for future in as_completed(futures):
            try:
                found = future.result()
            except Exception as error:
                lost[futures[future]] = _text(error)
            else:
                done(futures[future], found)
    finally:
        if own is not None:
            own.shutdown(cancel_futures=True)
    return lost


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
