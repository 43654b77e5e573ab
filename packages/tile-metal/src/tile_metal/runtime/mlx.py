"""One kernel launched through ``mx.fast.metal_kernel``.

Arrays of MLX are values. A kernel's inputs are passed as they are, without a copy; those of fewer than 8 elements are
copied into arrays of 8, because MLX declares smaller ones in another address space. What a call allocates (``out_idx``)
is an output of MLX. An array that the caller passes to be written is renewed in three steps that MLX orders by their
data: a copy is made, the kernel changes the copy, and when it has run the copy's content becomes that of the caller's
object, as ``array[...] = content`` does. So elements that the kernel does not write keep their value, and arrays that
were derived from the object before keep theirs.

A call adds nodes to MLX's graph and computes nothing: neither its inputs nor its outputs. MLX compiles a text when a
result is computed. It passes contiguous memory, which it copies if necessary; the address is not known before, so that
a text that assumes an alignment is either joined with a more general one, see ``source.guarded``, or gets a copy.

MLX keeps one library per name of a kernel, and before 0.32.1 discards it when the same name comes with another text,
while queued work may still use it. The text has the element types of arrays and whether they are small, so every name
encodes these too.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Container, Sequence
from typing import Any

from tile_core.abi.adapter import NewArray
from tile_core.abi.kernel_text import KernelText
from tile_core.compat.types import Argument
from tile_core.errors.base import TileError
from tile_core.errors.launch import DeviceFault
from tile_core.records import dataclass
from tile_metal.errors import LibraryTooOld, NotPassed, TooManyBuffers, TooManyThreadsPerGroup
from tile_metal.options import MetalOptions
from tile_metal.runtime.lazy import PendingResults
from tile_metal.runtime.limits import text_refused, threads_of
from tile_metal.runtime.memory import Guarded
from tile_metal.runtime.pack import StructPacker, words_of
from tile_metal.runtime.source import CONSTANT_BELOW, ArraySlot, MlxSource, TextParts, mlx_source

MOST_THREADS_OF_A_GRID = 2**31 - 1
"""Maximum along one axis: MLX takes the grid as ints."""
MOST_BUFFERS = 31

_MOST_FORMS = 64
_MOST_ARGUMENTS = 256
_TOO_LARGE = re.compile(r"[Tt]hread ?group size \((\d+)\).*maximum allowed.*\((\d+)\)", re.DOTALL)
_NOT_BUILT = re.compile(r"build metal library|compil|program_source|error:", re.IGNORECASE)

# Both counts are those of the arrays: `origin` has at least one element, `destination` one per thread.
_COPY = """
  const uint i = thread_position_in_grid.x;
  destination[i] = origin[min(i, (uint)origin_shape[0] - 1u)];
"""


@dataclass(frozen=True)
class _Form:
    """A text made callable for one way of passing its arrays."""

    call: Callable[..., list[Argument]]
    source: MlxSource


class MlxLauncher:
    """A text on MLX's device.

    Parameters
    ----------
    kernel
        The text.
    parts
        The text in parts.
    mx
        ``mlx.core``.
    target
        The target, for messages.
    modes
        Whether the text can mark exact functions whatever the math mode is; otherwise all are exact.
    results
        Records the arrays that launches write.
    """

    def __init__(
        self, kernel: KernelText, parts: TextParts, mx: Any, target: str, modes: bool = True, *, results: PendingResults
    ) -> None:
        self.facts, self._parts, self._mx, self._target = kernel.facts, parts, mx, target
        self._threads = threads_of(kernel.facts, "MLX", MOST_THREADS_OF_A_GRID)
        self._packer = StructPacker(kernel.facts)
        self._arrays = [(i, p) for i, p in enumerate(kernel.facts.params) if p.kind == "pointer"]
        self._name = f"{kernel.facts.entry}_{parts.digest}"
        self._results = results
        self._forms: dict[tuple[object, ...], _Form] = {}
        self._copies: dict[str, Callable[..., list[Argument]]] = {}
        self._arguments: dict[bytes, object] = {}
        self._fast_math = modes and MetalOptions.from_attributes(kernel.facts.attributes).is_fast
        if not hasattr(getattr(mx, "fast", None), "metal_kernel"):
            version = getattr(mx, "__version__", "")
            raise LibraryTooOld(
                kernel=kernel.facts.kernel, library="mlx", version=version, function="fast.metal_kernel", target=target
            )

    def __call__(self, values: Sequence[Argument], aligned: Container[int] = ()) -> None:
        """Launch: add the kernel to MLX's graph.

        Parameters
        ----------
        values
            One per parameter of the text; a `NewArray` has no content yet.
        aligned
            Positions of inputs whose address must be a multiple of 16: they are copied.
        """
        threads = self._threads(values)
        if threads is None:
            return
        slots = tuple(_slot(p.access, values[i]) for i, p in self._arrays)
        values = [value.array if isinstance(value, NewArray) else value for value in values]
        try:
            inputs, copies = self._inputs(values, slots, aligned)
            done = self._dispatch(values, slots, inputs, threads)
            content = self._content(values, slots, copies, done)
        except (RuntimeError, ValueError) as error:
            raise self._typed(error) from error
        for target, new in content:
            if isinstance(target, Guarded):
                target.memory = new
            else:
                target[...] = new
            self._results.add(target, new, self._typed)

    def _inputs(
        self, values: Sequence[Argument], slots: Sequence[ArraySlot], aligned: Container[int]
    ) -> tuple[list[Argument], dict[int, Argument]]:
        """Return the kernel's inputs, and the copies it modifies, by position of the array."""
        inputs, copies = [], {}
        for at, ((i, param), slot) in enumerate(zip(self._arrays, slots, strict=True)):
            value = values[i].memory if isinstance(values[i], Guarded) else values[i]
            if slot.role == "output":
                continue
            if slot.role == "renewed":
                copies[at] = self._filled(param.name, value, max(value.size, CONSTANT_BELOW))
                inputs.append(copies[at])
            elif value.size < CONSTANT_BELOW or i in aligned:
                inputs.append(self._filled(param.name, value, max(value.size, CONSTANT_BELOW)))
            else:
                inputs.append(value)
        if self._packer.size:
            inputs.append(self._scalars(self._packer.pack(values)))
        return inputs, copies

    def _dispatch(
        self,
        values: Sequence[Argument],
        slots: tuple[ArraySlot, ...],
        inputs: list[Argument],
        threads: tuple[int, int, int],
    ) -> list[Argument]:
        """Add the kernel to MLX's graph and return its outputs, the token last."""
        mx = self._mx
        outputs = [values[i] for (i, _), slot in zip(self._arrays, slots, strict=True) if slot.role == "output"]
        shapes = [tuple(a.shape) if a.size else (1,) for a in outputs]
        dtypes = [a.dtype for a in outputs]
        form = self._form(slots, (*_kinds(inputs), *dtypes))
        if form.source.token:
            shapes, dtypes = [*shapes, (1,)], [*dtypes, mx.uint8]
        return list(
            form.call(
                inputs=inputs, output_shapes=shapes, output_dtypes=dtypes, grid=threads, threadgroup=self.facts.block,
                stream=mx.gpu,
            )
        )  # fmt: skip

    def _content(
        self,
        values: Sequence[Argument],
        slots: Sequence[ArraySlot],
        copies: dict[int, Argument],
        done: Sequence[Argument],
    ) -> list[tuple[Argument, Argument]]:
        """Return the objects to renew, each with its new content."""
        found, results = [], iter(done)
        for at, ((i, _), slot) in enumerate(zip(self._arrays, slots, strict=True)):
            value = values[i]
            if slot.role == "output":
                result = next(results)
                if value.size:
                    found.append((value, result))
            elif slot.role == "renewed":
                now = value.memory if isinstance(value, Guarded) else value
                if now.size:
                    # The token is an input of this copy, so that it comes after the kernel.
                    new = self._copied(copies[at], done[-1], now.size)
                    found.append((value, new.reshape(now.shape)))
        return found

    def _filled(self, name: str, array: Argument, count: int) -> Argument:
        """Return a new flat array that begins with the elements of another one."""
        mx = self._mx
        if not array.size:
            return mx.zeros((count,), array.dtype)
        if count > MOST_THREADS_OF_A_GRID:
            reason = f"it is copied and has {count} elements, more than {MOST_THREADS_OF_A_GRID}"
            raise NotPassed(kernel=self.facts.kernel, name=name, reason=reason, where=self.facts.where)
        return self._copied(array.reshape(-1), mx.zeros((1,), mx.uint8), count)

    def _copied(self, origin: Argument, after: Argument, count: int) -> Argument:
        kernel = self._copy_of(f"{_named(origin.dtype)}{'_small' if origin.size < CONSTANT_BELOW else ''}")
        (copy,) = kernel(
            inputs=[origin, after], output_shapes=[(count,)], output_dtypes=[origin.dtype], grid=(count, 1, 1),
            threadgroup=(min(count, 256), 1, 1), stream=self._mx.gpu,
        )  # fmt: skip
        return copy

    def _copy_of(self, kind: str) -> Callable[..., list[Argument]]:
        """Return the kernel that copies elements of a kind."""
        if kind not in self._copies:
            self._copies[kind] = self._mx.fast.metal_kernel(
                name=f"tile_copy_{kind}", input_names=["origin", "after"], output_names=["destination"], source=_COPY,
                header="#include <metal_stdlib>\nusing namespace metal;\n",
            )  # fmt: skip
        return self._copies[kind]

    def _scalars(self, data: bytes) -> Argument:
        found = self._arguments.get(data)
        if found is None:
            if len(self._arguments) >= _MOST_ARGUMENTS:
                self._arguments.clear()
            found = self._arguments[data] = self._mx.array(words_of(data), dtype=self._mx.int64)
        return found

    def _form(self, slots: tuple[ArraySlot, ...], kinds: tuple[object, ...]) -> _Form:
        """Return the text for a way of passing arrays of some kinds."""
        form = self._forms.get((slots, kinds))
        if form is None:
            if len(self._forms) >= _MOST_FORMS:
                self._forms.clear()
            form = self._forms[slots, kinds] = self._made(slots, kinds)
        return form

    def _made(self, slots: tuple[ArraySlot, ...], kinds: tuple[object, ...]) -> _Form:
        source = mlx_source(self._parts, slots, self._packer.words, self.facts.threads)
        buffers = len(source.inputs) + len(source.outputs)
        if buffers > MOST_BUFFERS:
            raise TooManyBuffers(kernel=self.facts.kernel, found=buffers, limit=MOST_BUFFERS, where=self.facts.where)
        tag = hashlib.sha256(f"{kinds}{source.source}".encode()).hexdigest()[:8]
        given: dict[str, object] = {
            "name": f"{self._name}_{tag}",
            "input_names": list(source.inputs),
            "output_names": list(source.outputs),
            "source": source.source,
            "header": source.header,
            "ensure_row_contiguous": True,
        }
        if not self._fast_math:
            return _Form(self._mx.fast.metal_kernel(**given), source)
        try:
            return _Form(self._mx.fast.metal_kernel(**given, compile_options={"math_mode": "fast"}), source)
        except TypeError:  # MLX before compile_options: precise, which fast math allows
            return _Form(self._mx.fast.metal_kernel(**given), source)

    def _typed(self, error: Exception) -> TileError:
        text, where = str(error).strip(), self.facts.where
        large = _TOO_LARGE.search(text)
        if large:
            found, limit = map(int, large.groups())
            shown = {"kernel": self.facts.kernel, "found": found, "limit": limit}
            return TooManyThreadsPerGroup(where_from="the compiled kernel", where=where, **shown)
        if _NOT_BUILT.search(text):
            return text_refused(self.facts, "MLX", text)
        return DeviceFault(kernel=self.facts.kernel, reporter="MLX", reason=text, where=where)


def storage_of(mx: Any, dtype: str) -> Any:
    """Return the MLX storage type of an element type; ``None`` without one."""
    from tile_core.dtypes import DTYPES

    kind = DTYPES[dtype]
    if kind.is_narrow or kind.is_packed:
        return mx.uint8
    # MLX has double precision on the processor only.
    return None if dtype == "float64" else getattr(mx, "bool_" if dtype == "bool" else dtype, None)


def _kinds(arrays: Sequence[Argument]) -> tuple[object, ...]:
    """Return the declarations that MLX adds to a kernel's head for its inputs."""
    return tuple((a.dtype, a.size < CONSTANT_BELOW) for a in arrays)


def _named(dtype: object) -> str:
    """Return the name of an element type of MLX, for example ``float32``."""
    return str(dtype).rpartition(".")[2]


def _slot(access: str, value: Argument) -> ArraySlot:
    offset = value.offset if isinstance(value, Guarded) else None
    if access == "read":
        return ArraySlot("input", offset)
    return ArraySlot("output") if isinstance(value, NewArray) else ArraySlot("renewed", offset)
