"""Recognize the tile parameters of a factory by tracing it with changed values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from tile_core.errors import TileError
from tile_core.errors.launch import NoProducts, NoTileParameters
from tile_core.ir.program import Program
from tile_core.lowering.tilings import ROLES, TileShape, Workload
from tile_core.records import dataclass
from tile_core.tiling.factory import CONVENTION, Factory, Leaf, leaves_of
from tile_core.tiling.workload import workload_of
from tile_runtime.errors.guess import nearest
from tile_runtime.errors.interrupts import passed_on

_MOST_LEAVES = 48
_DERIVED = ("threads", "stages", "splits")
"""Roles that a parameter of another role may determine as well."""


@dataclass(frozen=True)
class Control:
    """A parameter that determines a role, whose value is linear in it.

    Attributes
    ----------
    leaf
        The parameter.
    found
        The role's value at the parameter's default.
    slope
        How much the role grows with the parameter.
    """

    leaf: Leaf
    found: int
    slope: Fraction

    def value(self, wanted: int) -> int | None:
        """Return the parameter for a value of the role, if it is a positive int."""
        value = self.leaf.value + (wanted - self.found) / self.slope
        return int(value) if value.denominator == 1 and value > 0 else None


@dataclass(frozen=True)
class Traced:
    """A configuration with its program."""

    config: Mapping[str, Any]
    program: Program
    workload: Workload


class Parameters:
    """The tile parameters of a factory for one problem.

    Attributes
    ----------
    base
        The program with the factory's defaults.
    controls
        The parameter of each role that has one.

    Raises
    ------
    NoProducts
        If the program has no product.
    NoTileParameters
        If no parameter changes its tiles.
    """

    def __init__(self, factory: Factory, given: Mapping[str, Any], sizes: Mapping[str, int]) -> None:
        self._factory, self._given, self._sizes = factory, given, sizes
        self._arguments = factory.arguments(given)
        program = factory.program(self._arguments)
        found = workload_of(program, sizes)
        if found is None:
            raise NoProducts(function=factory.name, where=program.where)
        self._interface = _interface(program)
        self.controls: dict[str, Control] = {}
        names = {name for name in self._arguments if name not in given}
        leaves = leaves_of(self._arguments, given)[:_MOST_LEAVES]
        for leaf in sorted(leaves, key=lambda leaf: _role_of(str(leaf)) is None):
            for role, control in self._effects(leaf, found).items():
                self.controls.setdefault(role, control)
        if not self.controls:
            self._refuse(leaves, program)
        varied = {c.leaf.name for c in self.controls.values()}
        required = {p.name for p in factory.signature.parameters.values() if p.default is p.empty}
        self._names = [name for name in self._arguments if name in varied | (required & names)]
        self.base = Traced(self._config(self._arguments), program, found)

    @property
    def fixed(self) -> dict[str, int]:
        """Values of the roles that no parameter changes."""
        return {role: n for role, n in _roles(self.base.workload).items() if role not in self.controls}

    def traced(self, shapes: Sequence[TileShape]) -> list[Traced]:
        """Return the distinct configurations for tile shapes, traced; the defaults are the last."""
        found: list[Traced] = []
        seen: list[Mapping[str, Any]] = []
        for shape in shapes:
            arguments = self._with(shape)
            config = None if arguments is None else self._config(arguments)
            if arguments is None or config is None or config in seen:
                continue
            seen.append(config)
            one = self._try(arguments)
            found += [Traced(config, *one)] if one is not None else []
        return found if self.base.config in seen else [*found, self.base]

    def _with(self, shape: TileShape) -> dict[str, Any] | None:
        """Return the arguments for a tile shape, or ``None`` if parameters cannot express it."""
        chosen: dict[str, tuple[Leaf, int]] = {}
        for role in ROLES:
            control = self.controls.get(role)
            if control is None:
                continue
            value = control.value(getattr(shape, role))
            known = chosen.get(str(control.leaf))
            if known is not None and (known[1] == value or role in _DERIVED):
                continue
            if value is None or known is not None:
                return None
            chosen[str(control.leaf)] = control.leaf, value
        arguments = dict(self._arguments)
        for leaf, value in chosen.values():
            arguments = leaf.changed(arguments, value)
        return arguments

    def _config(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {name: arguments[name] for name in self._names}

    def _effects(self, leaf: Leaf, base: Workload) -> dict[str, Control]:
        """Return the roles that a parameter changes."""
        old = _roles(base)
        for value in dict.fromkeys((2 * leaf.value, leaf.value // 2, leaf.value + 1, leaf.value - 1)):
            one = self._try(leaf.changed(dict(self._arguments), value)) if value > 0 else None
            if one is None or one[1] is None:
                continue
            new = _roles(one[1])
            found = {
                role: Control(leaf, old[role], Fraction(new[role] - old[role], value - leaf.value))
                for role in ROLES
                if new[role] != old[role]
            }
            if not found and _is_split(base, one[1]):
                found = {"splits": Control(leaf, leaf.value, Fraction(1))}
            if found:
                return found
        return {}

    def _try(self, arguments: dict[str, Any]) -> tuple[Program, Workload] | None:
        """Return a traced program of the same interface, or ``None`` if refused."""
        try:
            program = self._factory.program(arguments)
        except TileError:
            return None
        except Exception as error:  # an assertion of the user's, or arithmetic that such a value does not allow
            passed_on(error)
            return None
        found = workload_of(program, self._sizes) if _interface(program) == self._interface else None
        return None if found is None else (program, found)

    def _refuse(self, leaves: Sequence[Leaf], program: Program) -> None:
        usual = [names[0] for role, (_, names) in CONVENTION.items() if role != "warps"]
        near = [n for leaf in leaves for n in nearest(str(leaf).lower(), usual)][:1]
        shown = ", ".join(map(str, leaves)) or "none"
        hint = f"use {near[0]!r} in its body" if near else f"add parameters such as {usual[0]}=128 and {usual[1]}=128"
        raise NoTileParameters(function=self._factory.name, found=shown, hint=hint, where=program.where)


def _interface(program: Program) -> tuple[Any, ...]:
    """Return the parameters that a caller passes: a tile parameter changes none of them."""
    own = len(program.params) - len(program.workspaces)
    return tuple((p.name, p.kind, p.dtype, p.shape, p.strides) for p in program.params[:own])


def _roles(found: Workload) -> dict[str, int]:
    p = found.first
    return {"m": p.m, "n": p.n, "k": p.k, "threads": found.threads, "stages": p.stages, "splits": 1}


def _is_split(old: Workload, new: Workload) -> bool:
    """Whether more blocks share the iterations of a tile."""
    more, fewer = new.blocks / old.blocks, old.first.trips / new.first.trips
    return more != 1 and 0.7 < fewer / more < 1.4


def _role_of(name: str) -> str | None:
    """Return the role that a name conventionally has."""
    last = name.lower().rpartition(".")[2]
    return next((role for role, (_, names) in CONVENTION.items() if last in names), None)
