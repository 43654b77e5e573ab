"""The dialect model: a backend's description of its text's language for the emulator.

The answer of the hook ``tile_emulation``. It consists of data and functions on text, so that a backend provides it
without importing the emulator. Its C++ headers model the device language on the interface of the emulator's engine,
``#include "simt.h"``, which is on their include path when they are compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from tile_core.abi.kernel_text import LaunchFacts, ParamFact
from tile_core.errors.base import InternalError
from tile_core.errors.launch import TextRefused
from tile_core.records import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits of the device, which the emulator enforces too.

    Attributes
    ----------
    max_threads
        Threads of a block.
    max_shared_bytes
        Bytes of shared memory of a block.
    max_cluster
        Blocks of a cluster; 1 where the language has no clusters, or no model of them.
    """

    max_threads: int = 1024
    max_shared_bytes: int = 1 << 20
    max_cluster: int = 1


def same_text(text: str) -> str:
    """Return the text as it is."""
    return text


def no_refusals(text: str) -> tuple[tuple[int, str], ...]:
    """Return no lines."""
    return ()


def plain_call(facts: LaunchFacts) -> str:
    """Return the statement that calls a function whose parameters are those of the facts."""
    return f"simt::invoke(&{facts.entry}, args);"


@dataclass(frozen=True)
class Dialect:
    """How text of one device language is compiled and executed on the host.

    Attributes
    ----------
    name
        Its name in messages.
    headers
        Files that are included before the text, in order. They model the language's types, built-in variables and
        instructions. An instruction that has no model must be a compile error.
    warp
        Threads that execute together.
    prepare
        Rewrites what no header can: it must preserve the number of lines.
    call
        C++ statements that call the kernel, in a function ``void (void** args)``: one address per parameter, of the
        array or of the value. The default serves functions that take exactly the parameters of the facts.
    opaque
        For a parameter of kind ``"opaque"``: given the fact and the values of the call by name, its bytes and the
        addresses in them as pairs of offset and parameter name. One with a descriptor has no value of its own:
        ``param.descriptor.at(...)`` with the source at address 0 gives the rest of its bytes.
    limits
        The limits of the device.
    proxies
        Whether asynchronous operations of the other proxy see writes of threads only after a fence.
    flags
        More flags for the compiler.
    refusals
        Lines of a text that the device's compiler refuses although the models accept them, with reasons.
    """

    name: str
    headers: tuple[Path, ...]
    warp: int = 32
    prepare: Callable[[str], str] = same_text
    call: Callable[[LaunchFacts], str] = plain_call
    opaque: Callable[[ParamFact, Mapping[str, object]], tuple[bytes, tuple[tuple[int, str], ...]]] | None = None
    limits: Limits = field(default_factory=Limits)
    proxies: bool = False
    flags: tuple[str, ...] = ()
    refusals: Callable[[str], Sequence[tuple[int, str]]] = no_refusals

    def check(self, text: str, launch: LaunchFacts) -> None:
        """Refuse a text that breaks a rule of the device's compiler.

        Raises
        ------
        TextRefused
            With the line.
        """
        for line, reason in self.refusals(text):
            where = launch.line_map.where(line) or launch.where
            facts = {"compiler": f"a rule of {self.name}", "part": f"line {line} of the text", "reason": reason}
            raise TextRefused(kernel=launch.kernel, where=where, **facts)

    def __post_init__(self) -> None:
        for header in self.headers:
            if not header.is_file():
                raise InternalError(stage=f"dialect {self.name}", detail=f"no header {header.name}")
        if self.warp not in (1, 2, 4, 8, 16, 32, 64):
            raise InternalError(stage=f"dialect {self.name}", detail=f"a warp of {self.warp} threads")
