"""Compile the kernel of a command line, and make random inputs for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tile_core.abi.signature import Param
from tile_core.cli.console import waiting
from tile_core.compat.types import Argument
from tile_core.dtypes import dtype
from tile_core.errors.cli import TargetWithoutDevice
from tile_core.records import dataclass

#: One of this number of elements is replaced, so that most results stay finite.
_SPECIAL_SHARE = 1024

if TYPE_CHECKING:
    from tile_core.cli.inputs import Inputs
    from tile_core.ir.program import Program
    from tile_core.runtime.kernel import Kernel


@dataclass(frozen=True)
class Prepared:
    """A compiled kernel.

    Attributes
    ----------
    kernel
        The kernel.
    program
        What it was compiled from.
    given
        Values of symbolic sizes and scalars by name.
    """

    kernel: Kernel
    program: Program
    given: Mapping[str, Any]

    def inputs(self, seed: int, special: bool = False) -> Inputs:
        """Return random inputs where the kernel's runtime reaches them.

        Parameters
        ----------
        seed
            Of the random numbers.
        special
            Replace some elements of floats by zeros, subnormals, large numbers, infinities and NaN.

        Raises
        ------
        TargetWithoutDevice
            This machine has no device that runs the kernel.
        """
        from tile_core.cli.inputs import make_inputs
        from tile_core.ops.held_codes import held_codes

        inputs = make_inputs(self.kernel.signature, self.given, seed, held_codes(self.program))
        values = inputs.values
        if special:
            params = [self.kernel.signature.params[i] for i in self.kernel.signature.inputs]
            values = tuple(_with_special(v, p, seed + n) for n, (v, p) in enumerate(zip(values, params, strict=True)))
        return replace(inputs, values=moved(self.kernel, values))


def prepare(
    file: str,
    target: str,
    arguments: Mapping[str, object],
    options: Mapping[str, object] | None,
    runtime: str | None,
) -> Prepared:
    """Import a file and compile its kernel.

    Parameters
    ----------
    file
        ``FILE`` or ``FILE:NAME``.
    target, options, runtime
        As of ``tile.compile``; options default to those of the file's decorator.
    arguments
        Arguments of a function that makes the kernel, and sizes and scalars of the kernel.
    """
    import tile_core as tile
    from tile_core.cli.source import find
    from tile_core.plugins.manager import installed

    found = find(file, arguments, keep_rest=True)
    chosen = options or found.options_for(installed().resolve_target(target))
    with waiting("compiling"):
        kernel = tile.compile(found.program, target, out_idx=found.out_idx, options=chosen, runtime=runtime)
    return Prepared(kernel, found.program, found.rest or {})


def _with_special(value: Argument, param: Param, seed: int) -> Argument:
    """Replace random elements of an array of floats by special values that its type has."""
    import ml_dtypes
    import numpy as np

    kind = dtype(param.dtype)
    if param.kind != "tensor" or not kind.is_float or kind.is_packed or not kind.has_zero or not value.size:
        return value
    made = np.array(value)
    limits = ml_dtypes.finfo(made.dtype)
    # Not the largest numbers: whether their products overflow depends on fusing and on the order of additions.
    large = 2.0 ** (limits.maxexp // 4)
    special = [0.0, -0.0, limits.smallest_subnormal, limits.tiny, large, -large, np.inf, -np.inf, np.nan]
    with np.errstate(all="ignore"):
        cast = np.array([float(x) for x in special]).astype(made.dtype)
    rng = np.random.default_rng(seed)
    count = min(made.size, max(len(special), made.size // _SPECIAL_SHARE))
    chosen = rng.choice(made.size, count, replace=False)
    made.reshape(-1)[chosen] = np.resize(cast, count)
    return made


def moved(kernel: Kernel, values: tuple[Argument, ...]) -> tuple[Argument, ...]:
    """Return inputs where the kernel's runtime reaches them.

    Raises
    ------
    TargetWithoutDevice
        This machine has no device that runs the kernel.
    """
    from tile_core.abi.adapter import HOST_DEVICE
    from tile_core.errors import SetupError, UnsupportedError
    from tile_core.runtime.kernel import there

    if HOST_DEVICE in kernel.adapter.devices:
        return values
    reason = f"its runtime {kernel.adapter.name!r} cannot put arrays on one"
    if getattr(kernel.adapter, "from_host", None) is not None:
        try:
            return tuple(there(kernel.adapter, value) for value in values)
        except (SetupError, UnsupportedError) as error:
            reason = error.message
    raise TargetWithoutDevice(kernel=kernel.name, target=kernel.target, reason=reason)
