"""One kernel launched through ``torch.mps.compile_shader``.

Tensors are bound where they are, at their offset. The structure of scalars is passed as a list of 64-bit integers,
which torch copies into the kernel's arguments as they are. Launches go to torch's stream of the device.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from tile_core.abi.kernel_text import KernelText
from tile_core.compat.types import Argument, Torch
from tile_core.errors.launch import DeviceFault
from tile_metal.errors import FastMathForced, LibraryTooOld, TooManyBuffers
from tile_metal.options import MetalOptions
from tile_metal.runtime.limits import check_pipeline, text_refused, threads_of
from tile_metal.runtime.memory import Guarded
from tile_metal.runtime.pack import StructPacker, words_of

MOST_THREADS_OF_A_GRID = 2**32 - 1
"""Maximum along one axis: thread positions are 32-bit numbers."""
MOST_BUFFERS = 31
MOST_BYTES = 4096
"""Maximum size of arguments that are copied into a command."""
FAST_MATH = "PYTORCH_MPS_FAST_MATH"


class TorchLauncher:
    """A text on the device ``mps``, compiled and checked against pipeline limits on creation.

    Parameters
    ----------
    kernel
        The text.
    torch
        The module.
    target
        The target, for messages.
    modes
        Whether the text can mark exact functions whatever the math mode is.

    Raises
    ------
    LibraryTooOld, FastMathForced, TextRefused, TooManyBuffers, TooManyThreadsPerGroup, TooMuchShared, WrongWidth
        It cannot be launched.
    """

    def __init__(self, kernel: KernelText, torch: Torch, target: str, modes: bool = True) -> None:
        facts = self.facts = kernel.facts
        self._torch = torch
        self._threads = threads_of(facts, "torch", MOST_THREADS_OF_A_GRID)
        self._packer = StructPacker(facts)
        self._arrays = [i for i, p in enumerate(facts.params) if p.kind == "pointer"]
        buffers = len(self._arrays) + bool(self._packer.size)
        if buffers > MOST_BUFFERS or self._packer.size > MOST_BYTES:
            raise TooManyBuffers(kernel=facts.kernel, found=buffers, limit=MOST_BUFFERS, where=facts.where)
        compile_shader = getattr(torch.mps, "compile_shader", None)
        if compile_shader is None:
            shown = {"library": "torch", "version": torch.__version__, "function": "mps.compile_shader"}
            raise LibraryTooOld(kernel=facts.kernel, target=target, where=facts.where, **shown)
        fast = os.environ.get(FAST_MATH, "")
        allowed = modes and MetalOptions.from_attributes(facts.attributes).is_fast
        if fast not in ("", "0") and not allowed:
            raise FastMathForced(kernel=facts.kernel, variable=FAST_MATH, found=fast, where=facts.where)
        try:
            self._function = getattr(compile_shader(kernel.text), facts.entry)
        except (SyntaxError, RuntimeError, AttributeError) as error:
            raise text_refused(facts, "torch", str(error)) from error
        check_pipeline(
            facts,
            int(self._function.max_threads_per_threadgroup),
            int(self._function.thread_execution_width),
            int(self._function.static_thread_group_memory_length),
        )

    def __call__(self, values: Sequence[Argument]) -> None:
        """Launch on torch's stream; returns when the work is queued."""
        threads = self._threads(values)
        if threads is None:
            return
        given = [self._bound(values[i]) for i in self._arrays]
        if self._packer.size:
            words = words_of(self._packer.pack(values))
            given.append(words if len(words) > 1 else words[0])
        try:
            self._function(*given, threads=threads, group_size=self.facts.block)
        except (RuntimeError, ValueError) as error:
            facts = self.facts
            raise DeviceFault(kernel=facts.kernel, reporter="torch", reason=str(error), where=facts.where) from error

    def _bound(self, value: Argument) -> Argument:
        """Return the tensor to bind: bytes for 8-bit floats, and never an empty one."""
        torch = self._torch
        if isinstance(value, Guarded):
            return value.memory[value.offset :]
        if not value.numel():
            return torch.zeros(1, dtype=torch.uint8, device=value.device)
        return value.view(torch.uint8) if "float8" in str(value.dtype) else value
