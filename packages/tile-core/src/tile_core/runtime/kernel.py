"""``Kernel``: the compiled kernel that users call."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tile_core.abi.adapter import HOST_DEVICE, AdapterFacts
from tile_core.abi.signature import Signature
from tile_core.compat.types import Argument, Array
from tile_core.errors.launch import NotProvided
from tile_core.records import dataclass
from tile_core.runtime.bench import BenchResult, Stopwatch, measure
from tile_core.runtime.judge import Request, Verification, allowed, observed_run, wait
from tile_core.runtime.settings import count_of, path_of, text_of, tolerance_of
from tile_core.runtime.verify import VerifyReport, random_arguments
from tile_runtime.calls.binder import Binder
from tile_runtime.calls.launches import MachineCode, machine_code_of
from tile_runtime.calls.wide import WideVersion
from tile_runtime.compat.exits import check_thread
from tile_runtime.kernel import LoadedKernel
from tile_runtime.traces import short_traces

if TYPE_CHECKING:
    from tile_core.ir.program import Program
    from tile_core.reference.observe import Observer


Provided = TypeVar("Provided")

RuntimeLoader = Callable[[str], "tuple[Callable[..., object], AdapterFacts]"]


@dataclass(frozen=True)
class Origin:
    """The origin of a kernel: its optional reports and actions. Missing ones are refused.

    Attributes
    ----------
    target
        The target, as text.
    source
        Text that was emitted for it, or a function that makes it.
    program
        The traced tile program, opaque here.
    explain
        Makes the report of `Kernel.explain`.
    reference
        Executes the same tile program through its plain meaning: called with one NumPy array of storage elements or
        one scalar per parameter, writes the outputs in place. With an attribute ``shakes`` it also takes a seed
        ``shake``, which changes results as a target may round them; with an attribute ``watches`` also the positions
        of uninitialized arrays, ``unwritten``, to refuse programs that rely on undefined behaviour, and it returns the
        elements of these that are never written.
    export
        Writes the artefact of a kernel to a path.
    runtimes
        Loads the same kernel by another runtime of that name, for ``verify(runtime=...)``.
    """

    target: str = ""
    source: str | Callable[[], str] = ""
    program: Program | None = None
    explain: Callable[[], Any] | None = None
    reference: Callable[..., object] | None = None
    export: Callable[[Kernel, Path], object] | None = None
    runtimes: RuntimeLoader | None = None


class Kernel(LoadedKernel):
    """A kernel compiled for one target and loaded by one runtime; call it with arrays.

    Parameters
    ----------
    signature
        The kernel's signature.
    launch
        The result of the adapter's ``load``.
    adapter
        The adapter; host memory by default.
    hidden
        Symbols that the launch takes after the parameters, see `Binder`.
    wide
        The version for arrays that 32-bit offsets do not reach, see `Binder`.
    origin
        Its origin.

    Examples
    --------
    >>> from tile_core.abi.signature import Param, Signature
    >>> import numpy as np
    >>> copy = Signature("copy", (Param("A", "tensor", "float32", ("n",)),
    ...                           Param("B", "tensor", "float32", ("n",), access="write")), out_idx=(1,))
    >>> kernel = Kernel(copy, lambda a, b: b.__setitem__(slice(None), a))
    >>> kernel(np.arange(3, dtype="float32"))
    array([0., 1., 2.], dtype=float32)
    >>> kernel
    <tile.Kernel copy(A: float32(n,)) -> B: float32(n,)>
    """

    def __init__(
        self,
        signature: Signature,
        launch: Callable[..., object],
        *,
        adapter: AdapterFacts | None = None,
        hidden: Sequence[str] | None = None,
        wide: WideVersion | None = None,
        origin: Origin | None = None,
    ) -> None:
        self._origin = origin or Origin()
        super().__init__(signature, launch, adapter=adapter, hidden=hidden, wide=wide, target=self._origin.target)
        self._launch, self._hidden, self._wide = launch, hidden, wide

    @property
    def program(self) -> Program | None:
        """The traced tile program; ``None`` if it was loaded without it."""
        return self._origin.program

    @property
    def source(self) -> str:
        """The text that was emitted for the target."""
        return self._text

    @functools.cached_property
    def _text(self) -> str:
        source = self._origin.source
        return source() if callable(source) else source

    @short_traces
    def explain(self) -> str:
        """For each op the instruction chosen and why, layouts, stages, memory: the compiler's report.

        Raises
        ------
        NotProvided
            The kernel was loaded without its program.
        """
        return self._need(self._origin.explain, "explain()", "it was made without its program")()

    @property
    def hidden(self) -> tuple[str, ...]:
        """Symbols whose values a launch takes after the parameters."""
        return self._binder.hidden

    @property
    def wide(self) -> WideVersion | None:
        """The version for arrays that 32-bit offsets do not reach."""
        return self._wide

    def machine_code(self, *, wide: bool = False) -> tuple[MachineCode, ...]:
        """Return the launches as functions of tvm-ffi, which check no arguments.

        Parameters
        ----------
        wide
            Whether the version for arrays that 32-bit offsets do not reach is meant, where there is one.

        Returns
        -------
        tuple
            In order of execution; empty if a launch needs Python.
        """
        return machine_code_of(self.launch_of(wide), len(self.signature.params) + len(self.hidden), self.adapter)

    def launch_of(self, wide: bool) -> Callable[..., object]:
        """Return the adapter's launch, see ``RuntimeAdapter.load``, of one of the two versions of a kernel."""
        return self._wide.by(None).load(None) if wide and self._wide is not None else self._launch

    @short_traces
    def verify(
        self,
        *args: Array,
        rtol: float | None = None,
        atol: float | None = None,
        seed: int = 0,
        runtime: str | None = None,
        reference: Any = None,
        allow: str | Sequence[str] = (),
        **kwargs: Argument,
    ) -> VerifyReport:
        """Run the kernel and its reference on the same inputs, and compare every output.

        Parameters
        ----------
        *args, **kwargs
            As for a call. Arrays that the kernel writes are filled with NaN (or -1) before, unless it also reads them,
            and hold its results afterwards. Without arguments, random ones are made where all shapes are constant, on
            the device if the runtime can copy arrays to it.
        rtol, atol
            Tolerances; by default those of each output's element type, exact for integers. The default ones leave
            margin for other roundings: another order of additions, fused multiplications, functions. The reference
            shows how far each element depends on them, also by way of narrower storage and integers.
        seed
            Seed of the random inputs.
        runtime
            Name of another runtime to verify instead of this kernel's own.
        reference
            What else the outputs are compared with: arrays (one, several in the order of the written parameters, or a
            dict by name), or a function of NumPy or torch that returns them, called with all arguments that the kernel
            does not only write. Tolerances are then those of the coarsest type that the program rounds to, and grow
            with the length of its reductions.
        allow
            ``"unwritten"`` or ``"nonfinite"``, or both: report such elements, and accept them.

        Raises
        ------
        VerifyMismatch
            Naming the worst element.
        SuspectResults
            Elements of outputs (that a call allocates, or that the kernel only writes) are never written, or they are
            NaN or infinite although all inputs are finite, and the program has no such constants.
        ReadUnwritten, DataRace, BlockRace
            The program itself relies on undefined behaviour: uninitialized memory, or an order of threads or blocks.
        NotProvided
            The kernel has no reference, or no such runtime, or takes addresses from a table (``tile.pointers``).
        """
        meaning = self._origin.reference
        if reference is None:
            self._need(meaning, "verify()", "it was made without a reference meaning")
        self._refuse_tables()
        rtol, atol = tolerance_of("verify", "rtol", rtol), tolerance_of("verify", "atol", atol)
        seed = count_of("verify", "seed", seed, 0)
        binder = self._binder_for(runtime)
        args = args if args or kwargs else self._random(binder, seed)
        request = Request(rtol, atol, reference, allowed(allow))
        return Verification(binder, binder.bind(*args, **kwargs), self.program, meaning, request).report()

    @short_traces
    def observe(self, observer: Observer, *args: Argument, **kwargs: Argument) -> None:
        """Execute the kernel's reference on copies of arguments, and call an observer at each statement.

        Nothing is launched, and no argument is written. Memory is watched, see ``verify``.

        Parameters
        ----------
        observer
            See ``tile_core.reference.observe``.
        *args, **kwargs
            As for a call. Without arguments, random ones are made where all shapes are constant.

        Raises
        ------
        KernelError
            The program relies on undefined behaviour, or an assertion of it fails.
        NotProvided
            The kernel has no reference, or takes addresses.
        """
        meaning = self._need(self._origin.reference, "observe()", "it was made without a reference meaning")
        self._refuse_tables()
        bound = self._binder.bind(*(args if args or kwargs else self._random(self._binder, 0)), **kwargs)
        observed_run(self.signature, bound, meaning, observer)

    @short_traces
    def bench(self, *args: Argument, warmup: int = 3, repeat: int = 20, **kwargs: Argument) -> BenchResult:
        """Time launches with these arguments; checking and allocating them is not included.

        A device times its own work where its runtime can, so that the host's part of a launch is not included either.

        Parameters
        ----------
        *args, **kwargs
            As for a call.
        warmup
            Launches before the first sample.
        repeat
            Number of samples; each one repeats the launch until it lasts long enough for the clock.
        """
        warmup, repeat = count_of("bench", "warmup", warmup, 0), count_of("bench", "repeat", repeat, 1)
        return measure([self.stopwatch(*args, **kwargs)], warmup=warmup, repeat=repeat)[0]

    def stopwatch(self, *args: Argument, **kwargs: Argument) -> Stopwatch:
        """Return a stopwatch of launches with these arguments, see ``runtime.bench.measure``."""
        bound = self._binder.bind(*args, **kwargs)
        clock = getattr(self.adapter, "clock", None)
        return Stopwatch(self.name, lambda: self._binder.launch_bound(bound), lambda: wait(self.adapter), clock)

    def export(self, path: str | os.PathLike[str]) -> Path:
        """Write an artefact that ``tile.load`` loads without the compiler; returns its path.

        Raises
        ------
        NotProvided
            It is not made of text: a file can hold only text and its built form.
        CannotWriteArtefact
            The path cannot be written.
        """
        target = path_of("export", "path", path)
        self._need(self._origin.export, "export()", "its target writes no artefacts")(self, target)
        return target

    def _refuse_tables(self) -> None:
        table = next((p.name for p in self.signature.params if p.addresses), None)
        if table is not None:
            reason, advice = (
                f"what is at the addresses in {table} cannot be compared",
                "call it, and compare the memory",
            )
            raise NotProvided(kernel=self.name, action="verify()", target=self.target, reason=reason, advice=advice)

    def _random(self, binder: Binder, seed: int) -> tuple[Array, ...]:
        from tile_core.ops.held_codes import held_codes

        made = random_arguments(self.signature, seed, held_codes(self.program))
        return tuple(there(binder.adapter, value) for value in made)

    def _need(self, hook: Provided | None, action: str, reason: str) -> Provided:
        check_thread()
        if hook is None:
            advice = "compile the kernel with tile.compile in this process"
            raise NotProvided(kernel=self.name, action=action, target=self.target, reason=reason, advice=advice)
        return hook

    def _binder_for(self, runtime: str | None) -> Binder:
        if runtime is not None:
            runtime = text_of("verify", "runtime", runtime)
        if runtime is None or runtime == self.adapter.name:
            return self._binder
        loader = self._need(self._origin.runtimes, f"verify(runtime={runtime!r})", "it has its own runtime only")
        launch, adapter = loader(runtime)
        return Binder(self.signature, launch, adapter, self._hidden, self._wide and self._wide.by(runtime))


def there(adapter: AdapterFacts, value: Array) -> Array:
    """Return an argument in memory that kernels can access; unchanged if it cannot be copied.

    Arrays of other libraries than NumPy are where their library has placed them.
    """
    move = getattr(adapter, "from_host", None)
    if move is None or HOST_DEVICE in adapter.devices or not hasattr(value, "__array_interface__"):
        return value
    return move(value)
