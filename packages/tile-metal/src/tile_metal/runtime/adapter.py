"""The runtime ``metal``: kernels launched through the library of the arrays of a call.

Loading works on every machine, so that the source of a kernel can be inspected anywhere; only a launch needs a library
and a device. Alignment assumptions of a text are checked without them: Metal buffers are page-aligned, so the offset of
an array in its buffer determines its alignment. The offset of an array of MLX is not known before MLX computes it, so
that the text checks the address itself.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tile_core.abi.adapter import NewArray
from tile_core.abi.kernel_text import KernelText
from tile_core.dtypes import DTYPES
from tile_core.errors.launch import TextDoesNotServe
from tile_metal import versions
from tile_metal.errors import NoLibrary, WrongLibrary
from tile_metal.runtime.lazy import PendingResults, lazy_facts
from tile_metal.runtime.libraries import FIND, Find, LibraryUnusable
from tile_metal.runtime.limits import check_static
from tile_metal.runtime.machine import check_machine, check_products
from tile_metal.runtime.source import guarded, split
from tile_metal.target import TENSOR_OPS
from tile_metal.versions import Version
from tile_runtime.calls.arrays import facts_of, library_of
from tile_runtime.texts.choose import Assumptions, TextChoice
from tile_runtime.texts.text_adapter import TextAdapter

if TYPE_CHECKING:
    from tile_core.target import Target
    from tile_metal.runtime.memory import Guarded
    from tile_metal.runtime.mlx import MlxLauncher
    from tile_metal.runtime.mps import TorchLauncher
    from tile_metal.runtime.source import TextParts
    from tile_runtime.calls.arrays import ArrayFacts

METAL = 8
"""kDLMetal."""

MATH_PRAGMAS = (3, 2)
"""The version of MSL from which on a pragma sets the math mode."""

_SHOWN = {"mlx": "MLX", "torch": "torch"}


class MetalAdapter(TextAdapter):
    """Launches on the GPU of a Mac.

    Parameters
    ----------
    target
        What kernels are compiled for.
    name
        Of the runtime.
    libraries
        Those that it launches through, in order of preference where the arrays of a call do not decide.
    find
        How each library is found; replaced in tests.
    system
        Returns the version of macOS, by default this machine's; replaced in tests.
    """

    target: Target
    devices = frozenset({METAL})
    convention = "packed"
    library = __name__.partition(".")[0]
    #: Arrays of MLX are values: a launch gives the caller's object new content, see `tile_metal.runtime.mlx`.
    renews = frozenset({"mlx"})

    def __init__(
        self,
        target: Target,
        name: str = "metal",
        *,
        libraries: tuple[str, ...] = ("mlx", "torch"),
        find: Mapping[str, Find] = FIND,
        system: Callable[[], Version] | None = None,
    ) -> None:
        self.target, self.name, self.libraries = target, name, libraries
        self._find, self._system = find, system
        self._used: dict[str, Any] = {}
        self.results = PendingResults()

    def launch_of(self, kernel: KernelText) -> Callable[..., None]:
        """Return the launch of a text.

        Raises
        ------
        TooManyThreadsPerGroup, TooMuchShared
            No device can launch it.
        """
        check_static(kernel.facts)
        return _MetalLaunch(self, kernel)

    def arrays(self) -> type[Guarded]:
        """Return the type of the arrays that `from_host` makes."""
        from tile_metal.runtime.memory import Guarded

        return Guarded

    def describe(self, value: Any) -> ArrayFacts | None:
        """Return the facts of an array of MLX, which a launch does not compute."""
        return lazy_facts(value) if library_of(value) == "mlx" and hasattr(value, "dtype") else None

    def clock(self, launch: Callable[[], object], launches: int) -> float | None:
        """Time the computation of launches through MLX, without the construction of its graph."""
        mx = self._used.get("mlx")
        if mx is None:
            return None
        start = time.perf_counter()
        made = self.results.made_by(launch, launches)
        start = time.perf_counter() if made else start  # those of torch are queued by now
        mx.eval(*made)
        self.synchronize()
        return time.perf_counter() - start

    def synchronize(self) -> None:
        """Compute the results that are still referenced, and wait for the libraries of launches."""
        for library, module in self._used.items():
            if library == "torch":
                module.mps.synchronize()
            else:
                self.results.compute(module)
                module.synchronize(module.default_stream(module.gpu))

    def from_host(self, array: Any) -> Any:
        """Copy a NumPy array to memory of the preferred library, between guards; see `tile_metal.runtime.memory`.

        Raises
        ------
        NoLibrary
            There is no library or no device.
        UnsupportedArray
            The array has no description.
        """
        library, module = self.preferred("from_host")
        return self.arrays()(library, module, array)

    def allocate(self, library: str, shape: tuple[int, ...], dtype: str, device: tuple[int, int]) -> Any:
        """Allocate an output of MLX or among arrays of `from_host`; torch allocates its own.

        An output of MLX is a `NewArray`: the call's first launch with it gives it its content.
        """
        if library == self.library:
            return super().allocate(library, shape, dtype, device)
        module = None
        if library == "numpy":  # there is no array among the arguments
            library, module = self.preferred("an output")
            if library == "torch":
                return module.empty(shape, dtype=getattr(module, dtype), device="mps")
        if library != "mlx":
            return None
        from tile_metal.runtime.mlx import storage_of

        mx = module or self.module("mlx", "an output")
        kind = storage_of(mx, dtype)
        if kind is None:
            return None
        return NewArray(mx.zeros(shape, kind))

    def module(self, library: str, kernel: str) -> Any:
        """Return a library.

        Raises
        ------
        NoLibrary
            It is not here, or sees no device.
        """
        if library not in self._used:
            try:
                self._used[library] = self._find[library]()
            except LibraryUnusable as error:
                raise NoLibrary(kernel=kernel, target=self.target.text, reason=str(error)) from error
        return self._used[library]

    def launcher(self, library: str, kernel: KernelText) -> Any:
        """Return a library that is about to launch a kernel for the first time.

        Raises
        ------
        NoLibrary
            It is not here, or sees no device.
        MachineLacks, LibraryTooOld
            Kernels for this target would be refused or wrong on this machine.
        """
        module, facts = self.module(library, kernel.facts.entry), kernel.facts
        check_machine(facts, self.target, library, module, self.system())
        if self.target.capabilities.fact(TENSOR_OPS):
            from tile_metal.runtime.probe import probes, wrong_elements

            for product in probes(kernel.text):
                check_products(facts, self.target, wrong_elements(product, module, self.runner(library, module)))
        return module

    def chooses_math(self, library: str, module: Any) -> bool:
        """Return whether a text sets the math mode of each function: from MSL 3.2 on."""
        version = versions.version_of(str(getattr(module, "__version__", "")))
        return versions.compiled_language(library, version, self.system()) >= MATH_PRAGMAS

    def system(self) -> Version:
        """Return the version of macOS."""
        return (self._system or versions.system_version)()

    def with_target(self, target: Target) -> MetalAdapter:
        """Return a runtime for another target that launches through the same libraries."""
        return MetalAdapter(target, self.name, libraries=self.libraries, find=self._find, system=self._system)

    def runner(self, library: str, module: Any) -> Callable[[KernelText, list[Any]], Any]:
        """Return a function that launches a text unchecked; its last array is written."""

        def run(text: KernelText, given: list[Any]) -> Any:
            arrays = [self.arrays()(library, module, x) for x in (*given, given[-1])]
            if library == "torch":
                from tile_metal.runtime.mps import TorchLauncher

                TorchLauncher(text, module, self.target.text)(arrays)
            else:
                from tile_metal.runtime.mlx import MlxLauncher

                MlxLauncher(text, split(text), module, self.target.text, results=self.results)(arrays)
            return self.to_host(arrays[-1])

        return run

    def preferred(self, kernel: str) -> tuple[str, Any]:
        """Return the first library that works, and its name.

        Raises
        ------
        NoLibrary
            With the reason for each.
        """
        reasons = []
        for library in self.libraries:
            try:
                return library, self.module(library, kernel)
            except NoLibrary as error:
                reasons.append(str(error.facts["reason"]))
        raise NoLibrary(kernel=kernel, target=self.target.text, reason="; ".join(reasons))


class _LoadedText:
    """Kernel source, loaded into each library on its first call."""

    def __init__(self, adapter: MetalAdapter, kernel: KernelText) -> None:
        self._adapter, self.kernel = adapter, kernel
        self.parts = split(kernel)
        self.masks = dict(Assumptions(kernel.facts).masks)
        self._mlx: dict[TextParts, MlxLauncher] = {}
        self._torch: TorchLauncher | None = None

    def mlx(self, parts: TextParts | None = None) -> MlxLauncher:
        """Return the launch of the text, or of one that it was joined to."""
        parts = parts or self.parts
        if parts not in self._mlx:
            from tile_metal.runtime.mlx import MlxLauncher

            adapter = self._adapter
            mx = adapter.launcher("mlx", self.kernel)
            modes = adapter.chooses_math("mlx", mx)
            made = MlxLauncher(self.kernel, parts, mx, adapter.target.text, modes, results=adapter.results)
            self._mlx[parts] = made
        return self._mlx[parts]

    def torch(self) -> TorchLauncher:
        if self._torch is None:
            from tile_metal.runtime.mps import TorchLauncher

            torch = self._adapter.launcher("torch", self.kernel)
            modes = self._adapter.chooses_math("torch", torch)
            self._torch = TorchLauncher(self.kernel, torch, self._adapter.target.text, modes)
        return self._torch


class _MetalLaunch:
    """The launch of a kernel: dispatches to the arrays' library and source version."""

    def __init__(self, adapter: MetalAdapter, kernel: KernelText) -> None:
        self._adapter, self._facts = adapter, kernel.facts
        self._arrays = [(i, p) for i, p in enumerate(kernel.facts.params) if p.kind == "pointer"]
        self._choice: TextChoice[_LoadedText] = TextChoice(kernel, lambda text: _LoadedText(adapter, text))
        self._choice.loaded()
        self._joined: dict[tuple[int, int], TextParts | None] = {}

    def __call__(self, *values: Any) -> None:
        library, choice = self._library(values), self._choice
        if library == "mlx":
            self._through_mlx(values)
        else:
            text = choice(self._numbers(values)) if choice.assumes else choice.loaded()
            text.torch()(values)

    def _through_mlx(self, values: Sequence[Any]) -> None:
        """Launch the text of the values, for any addresses of the inputs that MLX computes."""
        if not self._choice.assumes:
            self._choice.loaded().mlx()(values)
            return
        numbers = self._numbers(values)
        text = self._choice(numbers)  # new arrays, and copies, are aligned
        lazy = [(i, p) for i, p in self._arrays if p.access == "read" and library_of(values[i]) == "mlx"]
        masks = [(i, p.name, text.masks[i]) for i, p in lazy if i in text.masks]
        if not masks:
            text.mlx()(values)
            return
        for i, p in lazy:
            numbers[i] = max(DTYPES[p.dtype].bits // 8, 1)
        try:
            plain = self._choice(numbers)
        except TextDoesNotServe:
            text.mlx()(values, [i for i, _, _ in masks])
            return
        joined = self._join(text, plain, [(name, mask) for _, name, mask in masks])
        (plain.mlx() if joined is None else text.mlx(joined))(values)

    def _join(self, text: _LoadedText, plain: _LoadedText, masks: Sequence[tuple[str, int]]) -> TextParts | None:
        """Return both texts as one, or ``None`` if their launches differ."""
        key = (id(text), id(plain))
        if key not in self._joined:
            mine, other = text.kernel.facts, plain.kernel.facts
            same = (mine.grid, mine.block) == (other.grid, other.block)
            self._joined[key] = guarded(text.parts, plain.parts, masks) if same else None
        return self._joined[key]

    def _library(self, values: Sequence[Any]) -> str:
        found, adapter = "", self._adapter
        for i, param in self._arrays:
            value, name = values[i], param.name
            if isinstance(value, (int, ctypes.c_void_p)):
                raise self._wrong(name, "an address, which is not a buffer of Metal", found or adapter.libraries[0])
            library = "mlx" if isinstance(value, NewArray) else library_of(value)
            library = value.library if library == adapter.library else library
            if library not in adapter.libraries or (found and library != found):
                raise self._wrong(name, f"an array of {library}", found or " or ".join(adapter.libraries))
            found = library
        return found or adapter.preferred(self._facts.entry)[0]

    def _wrong(self, name: str, found: str, expected: str) -> WrongLibrary:
        expected = _SHOWN.get(expected, expected)
        return WrongLibrary(
            kernel=self._facts.kernel, name=name, found=found, expected=expected, where=self._facts.where
        )

    def _numbers(self, values: Sequence[Any]) -> list[Any]:
        """Return the values with offsets in place of arrays, 0 for those of MLX."""
        numbers = list(values)
        for i, _ in self._arrays:
            value = values[i]
            own = library_of(value) == self._adapter.library
            lazy = isinstance(value, NewArray) or library_of(value) == "mlx"
            numbers[i] = value.offset if own else 0 if lazy else facts_of(value).pointer
        return numbers
