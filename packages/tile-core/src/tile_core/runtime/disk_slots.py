"""The cache slot on disk of one compilation: lookup and storage.

Only runtimes that have a ``toolchain()`` take part, see `abi.adapter`: the result of the others is not worth
caching, or cannot be.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tile_core.abi.kernel_text import KernelText
from tile_core.errors.artefacts import ArtefactError
from tile_core.errors.base import TileError, Where
from tile_core.runtime import cache
from tile_runtime.loaders import ask_adapter

if TYPE_CHECKING:
    from tile_core.abi.adapter import RuntimeAdapter
    from tile_core.abi.signature import Signature
    from tile_core.context import Context
    from tile_core.ir.program import Program
    from tile_core.plugins.manager import Plugins
    from tile_runtime.files.artefact import Artefact


def slot_of(
    program: Program, signature: Signature, ctx: Context, plugins: Plugins, find: Callable[[], RuntimeAdapter]
) -> DiskSlot | None:
    """Return the slot of a compilation; ``None`` if it is not cached on disk.

    Parameters
    ----------
    program, signature, ctx, plugins
        The compilation.
    find
        Finds the runtime that loads the kernel.
    """
    if not cache.enabled() or ctx.knobs.dump_dir is not None:
        return None
    try:
        adapter = find()
        if not ask_adapter(adapter, "toolchain"):
            return None
    except TileError:
        return None  # reported when the kernel is loaded, after the kernel's own errors
    from tile_core.runtime.cache_key import key_of

    key = key_of(program, signature, ctx, plugins, adapter)
    return None if key is None else DiskSlot(key, signature, ctx, adapter)


@dataclasses.dataclass(frozen=True)
class DiskSlot:
    """A cache slot on disk.

    Attributes
    ----------
    key
        Its key.
    signature, ctx, adapter
        Of the compilation.
    """

    key: str
    signature: Signature
    ctx: Context
    adapter: RuntimeAdapter

    def find(self, lower: Callable[[], KernelText]) -> tuple[KernelText, tuple[str, ...]] | None:
        """Return the text with its built form, and the hidden symbols, if present.

        Parameters
        ----------
        lower
            Makes the text by running the passes, for missing general forms.
        """
        found = self._read(0)
        if found is None:
            cache.STATS.misses += 1
            return None
        cache.STATS.hits += 1
        return self._chained(0, found.text, found.has_general, lower), found.hidden

    def keep(self, lowered: object, hidden: Sequence[str]) -> object:
        """Build and store a text, and return it with its built form.

        Anything other than a text is returned unchanged.
        """
        if not isinstance(lowered, KernelText):
            return lowered
        return self._chained(0, self._build(0, lowered, hidden), lowered.general is not None, lambda: lowered)

    def _general(self, depth: int, make: Callable[[], KernelText | None]) -> KernelText | None:
        """Return the ``depth``-th general form, from disk or built now; ``None`` without one."""
        found = self._read(depth)
        if found is not None:
            return self._chained(depth, found.text, found.has_general, make)
        text = make()
        if text is None:
            return None
        return self._chained(depth, self._build(depth, text, ()), text.general is not None, make)

    def _chained(self, depth: int, text: KernelText, has_general: bool, make: Callable[[], Any]) -> KernelText:
        """Return a text with a general form, from disk if possible.

        ``make`` makes the text without it.
        """
        if not has_general:
            return dataclasses.replace(text, general=None)
        make_next = functools.cache(lambda: make().general())
        return dataclasses.replace(text, general=functools.cache(lambda: self._general(depth + 1, make_next)))

    def _build(self, depth: int, text: KernelText, hidden: Sequence[str]) -> KernelText:
        from tile_runtime.files.artefact import Artefact, to_bytes

        built = ask_adapter(self.adapter, "build", text)
        if built is None:
            return text
        text, target, key = dataclasses.replace(text, built=built), self.ctx.target, self._key_at(depth)
        has = text.general is not None
        made = Artefact(
            self.signature, target.text, target.backend, text, hidden=tuple(hidden), has_general=has, key=key
        )
        cache.write(key, to_bytes(made))
        return text

    def _read(self, depth: int) -> Artefact | None:
        from tile_runtime.files.artefact import from_bytes, moved

        key = self._key_at(depth)
        content = cache.read(key)
        if content is None:
            return None
        try:
            found = from_bytes(content, cache.path_of(key))
        except ArtefactError as error:
            cache.drop(key, str(error.facts.get("reason", error.message)))
            return None
        built = found.text.built
        if found.key != key or built is None or built.runtime != self.adapter.name:
            cache.drop(key, "it is the file of another kernel")
            return None
        return dataclasses.replace(found, text=moved(found.text, self._relocation(found.signature.where)))

    def _key_at(self, depth: int) -> str:
        return self.key if depth == 0 else hashlib.sha256(f"{self.key} general {depth}".encode()).hexdigest()

    def _relocation(self, then: Where | None) -> Callable[[Where], Where]:
        """Return the current location; the kernel's definition may have moved since."""
        now = self.signature.where
        if then is None or now is None or then == now:
            return lambda where: where
        return lambda w: Where(now.file, w.line + now.line - then.line) if w.file == then.file else w
