"""Implement ``Kernel.verify``: compare a launch with its reference and judge its results."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tile_core.compat.types import Argument, Array
from tile_core.dtypes import dtype
from tile_core.errors.base import InternalError
from tile_core.errors.launch import BadSetting, SuspectResults, VerifyMismatch
from tile_core.records import dataclass
from tile_core.runtime.causes import Causes
from tile_core.runtime.own_reference import inputs_of, outputs_of, tolerances
from tile_core.runtime.verify import (
    Compared,
    Comparison,
    RoundingSpread,
    VerifyReport,
    host_copy,
    poison,
    tolerance_for,
    values_of,
)
from tile_runtime.calls.arguments import only_catalogue

if TYPE_CHECKING:
    from tile_core.abi.signature import Signature
    from tile_core.ir.program import Program
    from tile_runtime.calls.binder import Binder
    from tile_runtime.calls.form import Bound

#: What a caller may allow.
ALLOWED = ("unwritten", "nonfinite")
#: Executions with other roundings, and after how many of them an error must be of their size.
_SHAKES, _FEW = 10, 4
_UNPROVED = (
    "if the difference is rounding, pass rtol= or atol=; this reference could not check the program for races and "
    "reads of unwritten memory, so rule them out before you report the kernel"
)
_OTHER = (
    "the kernel matches its program, so the program or the reference is wrong; if the difference is rounding, "
    "pass rtol= or atol="
)
_NOT_COMPARED = "the kernel or the reference is wrong; if the difference is rounding, pass rtol= or atol="


@dataclass(frozen=True)
class Request:
    """The arguments of ``Kernel.verify``.

    Attributes
    ----------
    rtol, atol
        Tolerances, ``None`` for those of the element types.
    reference
        A function or arrays of the user's, or ``None``.
    allow
        Names of ``ALLOWED``.
    """

    rtol: float | None
    atol: float | None
    reference: Any
    allow: frozenset[str]


def allowed(given: str | Sequence[str]) -> frozenset[str]:
    """Return the tolerances of the caller.

    Raises
    ------
    BadSetting
        It is something else.
    """
    names = (
        (given,)
        if isinstance(given, str)
        else tuple(given)
        if isinstance(given, (list, tuple, set, frozenset))
        else None
    )
    if names is None or any(name not in ALLOWED for name in names):
        expected = " or ".join(map(repr, ALLOWED))
        raise BadSetting(
            function="verify", name="allow", found=repr(given), expected=f"{expected}, or a list of them",
            instead="leave it out to refuse both",
        )  # fmt: skip
    return frozenset(names)


class Verification:
    """One launch that is verified.

    Parameters
    ----------
    binder, bound
        The kernel and its arguments.
    program
        The traced program, if it is known.
    meaning
        Executes the program, see ``Origin.reference``; ``None`` to compare with the user's reference only.
    request
        What to compare with, and how.
    """

    def __init__(
        self, binder: Binder, bound: Bound, program: Program | None, meaning: Callable[..., object] | None,
        request: Request,
    ) -> None:  # fmt: skip
        self.bound, self.program, self.meaning, self.request = bound, program, meaning, request
        self.signature = signature = binder.signature
        self.params = params = signature.params
        for param, value in zip(params, bound.arrays, strict=True):
            if param.kind == "tensor" and param.access == "write":
                poison(value, param)
        self.before = self._copies(bound.arrays)
        self.inputs = inputs_of(signature, bound.arrays, self.before)
        binder.launch_bound(bound)
        wait(binder.adapter)
        self.found = self._copies(bound.arrays)
        self.written = [n for n, p in enumerate(params) if p.writes and p.kind == "tensor"]
        self.missing: dict[int, Array] = {}
        self.proved = False

    def report(self) -> VerifyReport:
        """Return the report.

        Raises
        ------
        VerifyMismatch, SuspectResults, KernelError
            See ``Kernel.verify``.
        """
        try:
            return self._report()
        except VerifyMismatch as error:
            raise self._causes.of_mismatch(error) from None

    def _report(self) -> VerifyReport:
        own, reference = self.request.reference, "its reference"
        expected, mismatch = None, None
        if self.meaning is not None:
            outputs = self._against_meaning()
        else:
            outputs = [Compared(self.params[n].name, self.found[n].size, (), 0.0, 0.0, 0.0) for n in self.written]
        if own is not None:
            expected = outputs_of(own, self.signature, {n: self.found[n].shape for n in self.written}, self.inputs)
            reference = (
                getattr(own, "__name__", "the reference that was given") if callable(own) else "the arrays given"
            )
            try:
                outputs = self._against_own(expected)
            except VerifyMismatch as error:
                mismatch = error
        judged = tuple(self._judged(o, n, expected) for o, n in zip(outputs, self.written, strict=True))
        report = VerifyReport(self.signature.name, judged, reference)
        unwritten = [t for o in judged for t in dataclasses.replace(o, nonfinite=0).findings]
        if unwritten and "unwritten" not in self.request.allow:
            self._suspect(report)
        if mismatch is not None:
            raise mismatch
        if len(report.findings) > len(unwritten) and "nonfinite" not in self.request.allow:
            self._suspect(report)
        return report

    def _suspect(self, report: VerifyReport) -> None:
        kinds = [k for k in ALLOWED if any(getattr(o, k) for o in report.outputs) and k not in self.request.allow]
        advice = {
            "unwritten": "write every element: a grid of ceildiv(n, b) blocks also covers the last, partial one",
            "nonfinite": "look for 0 / 0, inf - inf and overflow, or pass inputs for which the result is finite",
        }
        allow = ", ".join(repr(k) for k in kinds)
        fix = f"{'; '.join(advice[k] for k in kinds)}; if it is meant, pass allow=[{allow}]"
        findings, where = list(report.findings), self.signature.where
        if "nonfinite" in kinds:
            made = self._causes.of_nonfinite(any(map(self._has_nan, self.written)))
            if made is not None:
                findings, where = [*findings, str(made)], made.where
        error = SuspectResults(kernel=report.kernel, findings="; ".join(findings), advice=fix, where=where)
        error.report = report
        raise error

    def _judged(self, output: Compared, n: int, expected: Mapping[int, Array] | None) -> Compared:
        """Return a compared output with its unwritten and its unexplained elements."""
        import numpy as np

        missing, x = self.missing.get(n), values_of(self.found[n], self.params[n])
        facts: dict[str, Any] = {}
        if missing is not None:
            facts = {"unwritten": int(missing.sum()), "first_unwritten": _first(missing)}
        if x.dtype.kind != "f" or not self.finite:
            return dataclasses.replace(output, **facts)
        bad = ~np.isfinite(x) if not self.infinities else np.isnan(x)
        if missing is not None:
            bad &= ~missing
        if expected is not None:
            bad &= np.isfinite(expected[n].astype(np.float64))
        if bad.any():
            facts.update(nonfinite=int(bad.sum()), first_nonfinite=_first(bad))
        return dataclasses.replace(output, **facts)

    def _has_nan(self, n: int) -> bool:
        import numpy as np

        x = values_of(self.found[n], self.params[n])
        return x.dtype.kind == "f" and bool(np.isnan(x if n not in self.missing else x[~self.missing[n]]).any())

    @property
    def _causes(self) -> Causes:
        # A second execution changes what pointers point to.
        observes = getattr(self.meaning, "observes", False) and all(p.kind != "pointer" for p in self.params)
        return Causes(self.params, self._executed if observes else None)

    @property
    def finite(self) -> bool:
        """Whether all inputs are finite, and the program has no NaN of its own."""
        import numpy as np

        for param, value in zip(self.params, self.before, strict=True):
            if param.kind == "pointer" or not dtype(param.dtype).is_float or param.access == "write":
                continue
            x = values_of(value, param) if param.kind == "tensor" else np.float64(value)
            if not np.isfinite(x).all():
                return False
        return not any(map(math.isnan, self._constants))

    @property
    def infinities(self) -> bool:
        """Whether the program has infinities of its own."""
        return any(map(math.isinf, self._constants))

    @property
    def _constants(self) -> list[float]:
        from tile_core.compat.tvm import ir, tirx
        from tile_core.ir.visit import collect

        if self.program is None:
            return []
        kinds: Any = getattr(ir, "FloatImm", None) or tirx.FloatImm
        return [float(x.value) for x in collect(self.program.func.body, kinds)]

    def _against_own(self, expected: Mapping[int, Array]) -> list[Compared]:
        advice = _NOT_COMPARED if self.meaning is None else _OTHER
        sizes = {
            dim: extent
            for param, array in zip(self.params, self.before, strict=True)
            if param.kind == "tensor"
            for dim, extent in zip(param.shape, array.shape, strict=False)
            if isinstance(dim, str)
        }
        results = []
        for n in self.written:
            param, y = self.params[n], expected[n]
            tolerance = tolerances(self.program, param, y, self.request.rtol, self.request.atol, sizes)
            skipped = None if param.packed else self.missing.get(n)
            comparison = self._comparison(n, y, tolerance, skipped)
            results.append(comparison.result(advice=advice))
        return results

    def _comparison(
        self, n: int, expected: Array, tolerance: tuple[float, float], skipped: Array | None = None
    ) -> Comparison:
        found = values_of(self.found[n], self.params[n])
        if found.dtype.kind != expected.dtype.kind and "f" in (found.dtype.kind, expected.dtype.kind):
            found, expected = found.astype(float), expected.astype(float)
        return Comparison(self.signature.name, self.params[n], found, expected, tolerance, skipped)

    def _against_meaning(self) -> list[Compared]:
        """Compare all outputs; where rounding may explain a difference, with results of other roundings."""
        expected = self._watched()
        rtol, atol = self.request.rtol, self.request.atol
        comparisons = {
            n: self._comparison(n, values_of(expected[n], self.params[n]), tolerance_for(self.params[n], rtol, atol))
            for n in self.written
        }
        # A second execution changes what pointers point to.
        again = not any(p.kind == "pointer" for p in self.params) and getattr(self.meaning, "shakes", False)
        spreads: dict[int, RoundingSpread] = {}
        if again and rtol is None and atol is None:
            spreads = {n: RoundingSpread(c.expected) for n, c in comparisons.items() if not c.judge()[0].all()}
        for seed in range(_SHAKES if spreads else 0):
            shaken, _ = self._executed(shake=seed)
            bad = {}
            for n, spread in spreads.items():
                spread.add(values_of(shaken[n], self.params[n]))
                good, error = comparisons[n].judge(spread)
                if not good.all():
                    bad[n] = error * ~good if math.isfinite(float(error.max(initial=0))) else error
            if not bad or (seed >= _FEW and not all(spreads[n].explains(error) for n, error in bad.items())):
                break
        advice = None if self.proved else _UNPROVED
        return [c.result(spreads.get(n), advice) for n, c in comparisons.items()]

    def _watched(self) -> list[Array]:
        """Run the reference with checked memory and return the arguments after it.

        Undefined behaviour of the program raises here.
        """
        if getattr(self.meaning, "watches", False):
            writes = {n for n in self.written if self.params[n].access == "write"}
            try:
                copies, missing = self._executed(unwritten=frozenset({*writes, *self.signature.out_idx}))
            except InternalError:
                pass  # the plain execution decides
            else:
                self.missing = {found.position: found.mask for found in missing}
                self.proved = True
                return copies
        return self._executed()[0]

    def _executed(self, **how: object) -> tuple[list[Array], tuple[Any, ...]]:
        copies = self._copies(self.before)
        values = [
            x if param.kind == "tensor" else value
            for x, param, value in zip(copies, self.params, self.bound.values, strict=False)
        ]
        assert self.meaning is not None
        with only_catalogue("the reference", self.signature.where):
            found = self.meaning(*values, *self.bound.values[len(self.params) :], **how)
        return copies, found if isinstance(found, tuple) else ()

    def _copies(self, values: Sequence[Argument]) -> list[Array]:
        return [host_copy(value, param) for param, value in zip(self.params, values, strict=True)]


def observed_run(signature: Signature, bound: Bound, meaning: Callable[..., object], observer: object) -> None:
    """Execute a kernel's reference on copies of bound arguments with an observer."""
    params, copies = signature.params, []
    for n, (param, value) in enumerate(zip(signature.params, bound.arrays, strict=True)):
        copy = host_copy(value, param)
        if param.kind == "tensor" and (param.access == "write" or n in signature.out_idx):
            poison(copy, param)
        copies.append(copy)
    nothing = frozenset({n for n, p in enumerate(params) if p.kind == "tensor" and p.access == "write"})
    values = [x if p.kind == "tensor" else value for x, p, value in zip(copies, params, bound.values, strict=False)]
    meaning(*values, *bound.values[len(params) :], unwritten=nothing | frozenset(signature.out_idx), observer=observer)


def wait(adapter: Any) -> None:
    """Wait for the launches of an adapter."""
    synchronize = getattr(adapter, "synchronize", None)
    if synchronize is not None:
        synchronize()


def _first(mask: Array) -> tuple[int, ...]:
    import numpy as np

    return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))
