"""Call a user's factory by the names of its parameters, whatever its form."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from tile_core.errors.language import BadArgument, BadReturn
from tile_core.errors.launch import UnboundParameter
from tile_core.ir.program import Program
from tile_core.records import dataclass
from tile_runtime.errors.guess import nearest

#: Usual names of tile parameters and their starting values, by role. A name is compared in lower case.
CONVENTION: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "m": (64, ("block_m", "bm", "tile_m", "blk_m", "block_size_m", "m_block", "m_tile")),
    "n": (64, ("block_n", "bn", "tile_n", "blk_n", "block_size_n", "n_block", "n_tile")),
    "k": (64, ("block_k", "bk", "tile_k", "blk_k", "block_size_k", "k_block", "k_tile")),
    "threads": (128, ("threads", "num_threads", "n_threads", "block_threads")),
    "stages": (2, ("num_stages", "stages", "n_stages", "num_buffers")),
    "splits": (1, ("splits", "split_k", "splitk", "num_splits", "k_splits")),
    "warps": (4, ("num_warps", "warps", "n_warps")),
}


@dataclass(frozen=True)
class Factory:
    """A function from arguments by name to a traced program.

    Attributes
    ----------
    name
        The user's name of the function.
    signature
        Its parameters.
    call
        From bound arguments to its result.
    """

    name: str
    signature: inspect.Signature
    call: Callable[[inspect.BoundArguments], Any]

    @staticmethod
    def of(function: Any) -> Factory:
        """Return the factory behind a function, a partial, or an object of ``tile.jit`` or ``tile.autotune``.

        Raises
        ------
        BadArgument
            If it is not callable or already a program.
        """
        from tile_core.decorators import JitFunction
        from tile_core.tuning import AutotunedFunction

        if isinstance(function, AutotunedFunction):
            function = function.function
        if isinstance(function, JitFunction):
            program = function.program
            return Factory(
                function.function.__name__, inspect.signature(function.function),
                lambda bound: program(*bound.args, **bound.kwargs),
            )  # fmt: skip
        if isinstance(function, Program) or not callable(function):
            _refuse(function)
        inner = getattr(function, "func", function)
        name = getattr(inner, "__name__", type(inner).__name__)
        return Factory(name, inspect.signature(function), lambda bound: function(*bound.args, **bound.kwargs))

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return all arguments by name: given ones, defaults, and starting values of conventional names.

        Raises
        ------
        BadArgument
            If the factory has no parameter of a given name.
        UnboundParameter
            If a parameter has neither a value nor a conventional name.
        """
        params = self.signature.parameters.values()
        self._check_names(given)
        found: dict[str, Any] = {}
        for p in params:
            if p.name in given:
                found[p.name] = given[p.name]
            elif p.default is not p.empty:
                found[p.name] = p.default
            elif p.kind is p.VAR_KEYWORD:
                found |= {name: value for name, value in given.items() if name not in self.signature.parameters}
            elif p.kind is not p.VAR_POSITIONAL:
                found[p.name] = self._start(p.name)
        return found

    def program(self, arguments: Mapping[str, Any]) -> Program:
        """Return the traced program for arguments by name.

        Raises
        ------
        BadReturn
            If the factory returns something else.
        """
        own = self.signature.parameters
        bound = self.signature.bind_partial()
        bound.arguments.update({name: value for name, value in arguments.items() if name in own})
        rest = next((p.name for p in own.values() if p.kind is p.VAR_KEYWORD), None)
        if rest is not None:
            bound.arguments[rest] = {name: value for name, value in arguments.items() if name not in own}
        found = self.call(bound)
        if not isinstance(found, Program):
            shown, expected = f"an object of type {type(found).__name__}", "a function decorated with @T.prim_func"
            raise BadReturn(kernel=f"the factory {self.name}", found=shown, expected=expected)
        return found

    def _check_names(self, given: Mapping[str, Any]) -> None:
        params = self.signature.parameters
        if any(p.kind is p.VAR_KEYWORD for p in params.values()):
            return
        for name in given:
            if name not in params:
                near = nearest(str(name), list(params))
                instead = f"did you mean {near[0]!r}?" if near else f"parameters of {self.name}: {', '.join(params)}"
                expected = f"the name of a parameter of {self.name}"
                raise BadArgument(
                    function="tilings", name="shapes", found=repr(name), expected=expected, instead=instead
                )

    def _start(self, name: str) -> int:
        for value, names in CONVENTION.values():
            if name.lower() in names:
                return value
        usual = [names[0] for _, names in CONVENTION.values()]
        near = nearest(name.lower(), [n for _, names in CONVENTION.values() for n in names])
        hint = f", or rename it to {near[0]!r} if it is a tile parameter" if near else ""
        raise UnboundParameter(function=self.name, name=name, known=", ".join(usual), hint=hint)


def _refuse(function: object) -> NoReturn:
    found, expected = f"an object of type {type(function).__name__}", "a function that returns a T.prim_func"
    instead = "pass the factory itself, with its sizes in shapes: tile.tilings(matmul, dict(M=4096, N=4096, K=4096))"
    raise BadArgument(function="tilings", name="factory", found=found, expected=expected, instead=instead)


@dataclass(frozen=True)
class Leaf:
    """An int that a factory takes: an argument, or an element or field of one.

    Attributes
    ----------
    name
        The parameter.
    part
        Index, key or field inside of its value; ``None`` for the value itself.
    value
        The default.
    """

    name: str
    part: Any
    value: int

    def changed(self, arguments: dict[str, Any], value: int) -> dict[str, Any]:
        """Return the arguments with another value here."""
        old = arguments[self.name]
        if self.part is None:
            new: Any = value
        elif dataclasses.is_dataclass(old) and not isinstance(old, type):
            new = dataclasses.replace(old, **{self.part: value})
        elif isinstance(old, Mapping):
            new = {**old, self.part: value}
        else:
            items = [value if i == self.part else item for i, item in enumerate(old)]
            new = type(old)(*items) if hasattr(old, "_fields") else type(old)(items)
        return {**arguments, self.name: new}

    def __str__(self) -> str:
        if self.part is None:
            return self.name
        return f"{self.name}.{self.part}" if isinstance(self.part, str) else f"{self.name}[{self.part}]"


def leaves_of(arguments: Mapping[str, Any], given: Mapping[str, Any]) -> list[Leaf]:
    """Return the positive ints among the arguments that the caller did not give."""
    found: list[Leaf] = []
    for name, value in arguments.items():
        if name not in given:
            found += [Leaf(name, part, n) for part, n in _parts(value) if type(n) is int and n > 0]
    return found


def _parts(value: Any) -> list[tuple[Any, Any]]:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(f.name, getattr(value, f.name)) for f in dataclasses.fields(value) if f.init]
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, (tuple, list)):
        return list(enumerate(value))
    return [(None, value)]
