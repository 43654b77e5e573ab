"""The tests of a backend's zoo: right numbers, mistakes that are found, kept texts, ``verify``.

A package derives ``class TestZoo(ZooTests): zoo = Zoo(...)`` and provides its own parts: its kernels, its mutants, how
its texts are run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_emulator
from tile_core.abi.kernel_text import KernelText
from tile_core.plugins.contexts import make_context
from tile_runtime import knobs

from . import launch
from .case import Case
from .mutant import Mutant
from .table import KERNELS, Entry

#: Kernels that ``Kernel.verify`` checks too.
VERIFIED = ("softmax", "cumsum_columns", "histogram", "split_k")


@dataclass(frozen=True)
class Zoo:
    """The backend's own parts of the zoo.

    Attributes
    ----------
    entries
        Its kernels.
    targets
        The targets whose texts are run; mutants and kept texts are those of the first.
    dialect
        From a target to what the emulator runs its texts by.
    orders
        In which orders threads run, and when asynchronous copies complete; a fault must show in one of them.
    mutants
        Mistakes in its texts.
    barrier
        A barrier in its texts, as a regular expression.
    needless
        By kernel whose barriers are left out one by one those that order nothing, counted from the end.
    golden, suffix, kept
        The folder of golden texts, their file extension, and their kernels.
    options
        Fields of the backend's options.
    """

    entries: tuple[Entry, ...]
    targets: tuple[str, ...]
    dialect: Callable[[str], Any]
    orders: tuple[Mapping[str, Any], ...]
    mutants: tuple[Mutant, ...]
    barrier: str
    needless: Mapping[str, Collection[int]]
    golden: Path
    suffix: str
    kept: tuple[str, ...]
    options: Mapping[str, object] = field(default_factory=dict)
    _cases: dict[str, Case] = field(default_factory=dict)
    _texts: dict[tuple[str, str], KernelText] = field(default_factory=dict)

    def case_of(self, name: str) -> Case:
        """Return the case of a kernel; its arguments are copied for every run."""
        if name not in self._cases:
            (entry,) = (e for e in self.entries if e.name == name)
            self._cases[name] = entry.make()
        return self._cases[name]

    def text_of(self, name: str, target: str = "") -> KernelText:
        """Return the text that a call with a case's arguments takes."""
        key = name, target or self.targets[0]
        if key not in self._texts:
            self._texts[key] = launch.text_for(self.case_of(name), make_context(key[1], self.options))
        return self._texts[key]

    def run(self, case: Case, text: KernelText, target: str = "", **how: Any) -> tile_emulator.RunResult:
        """Run a text on copies of a case's arguments."""
        values, dialect = launch.values_of(case, text), self.dialect(target or self.targets[0])
        return tile_emulator.run(text.text, text.facts, values, dialect, **how)

    def finds(self, name: str, changed: str) -> bool:
        """Whether a run of a kernel's changed text shows that it is wrong."""
        case, text = self.case_of(name), self.text_of(name)
        for how in self.orders:
            result = self.run(case, launch.edited(text, changed), **how)
            if result.reports or launch.wrong(case, text, result):
                return True
        return False


class ZooTests:
    """The tests; those that run kernels are swept."""

    zoo: Zoo

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Take the cases from the zoo."""
        zoo = self.zoo
        cases: dict[str, list[Any]] = {
            "target": list(zoo.targets),
            "name": [e.name for e in zoo.entries],
            "mutant": [pytest.param(m, id=f"{m.kernel}-{m.name.replace(' ', '-')}") for m in zoo.mutants],
            "ordered": list(zoo.needless),
            "kept": list(zoo.kept),
            "verified": [pytest.param(e, id=e.name) for e in KERNELS if e.name in VERIFIED],
        }
        for argument, values in cases.items():
            if argument in metafunc.fixturenames:
                metafunc.parametrize(argument, values)

    @pytest.mark.sweep(8)
    def test_numbers_and_no_fault(self, name: str, target: str) -> None:
        """Every kernel computes what NumPy computes, and no check finds a fault in it."""
        case, text = self.zoo.case_of(name), self.zoo.text_of(name, target)
        for how in self.zoo.orders:
            result = self.zoo.run(case, text, target, **how)
            assert not result.reports, "\n".join(map(str, result.reports))
            assert not launch.wrong(case, text, result)

    @pytest.mark.sweep(1)
    def test_mutants_change_texts(self) -> None:
        """Each applies to the current text: only some of them run with a commit."""
        stale = [m for m in self.zoo.mutants if not m.changes(self.zoo.text_of(m.kernel).text)]
        assert not stale, "\n".join(f"{m.kernel}: {m.name}: {m.pattern}" for m in stale)

    @pytest.mark.sweep(8)
    def test_mutant(self, mutant: Mutant) -> None:
        """An undetected mutant is either not a mistake, or a gap in the emulator."""
        assert self.zoo.finds(mutant.kernel, mutant.apply(self.zoo.text_of(mutant.kernel).text))

    @pytest.mark.sweep(4)
    def test_every_barrier_is_needed(self, ordered: str) -> None:
        """Without any one barrier a kernel is wrong."""
        text, barrier = self.zoo.text_of(ordered).text, self.zoo.barrier
        count = len(re.findall(barrier, text))
        without = [Mutant(ordered, "no barrier", barrier, "", at).apply(text) for at in range(count)]
        assert count
        missed = {at - count for at in range(count) if not self.zoo.finds(ordered, without[at])}
        assert missed == set(self.zoo.needless[ordered])

    def test_no_text_is_left_over(self) -> None:
        """Every kept text is of a kernel that is kept."""
        assert sorted(p.stem for p in self.zoo.golden.glob(f"*{self.zoo.suffix}")) == sorted(self.zoo.kept)

    @pytest.mark.sweep(4)
    def test_grammar(self, name: str, target: str) -> None:
        """Check the nodes and attributes of the IR after each pass."""
        with knobs.override(verify_ir=True):
            launch.lowered(self.zoo.case_of(name).program, make_context(target, self.zoo.options))

    def test_golden(self, kept: str, request: pytest.FixtureRequest) -> None:
        """Compare emitted texts with golden files; ``--update-golden`` rewrites them."""
        path, text = self.zoo.golden / f"{kept}{self.zoo.suffix}", self.zoo.text_of(kept).text
        if request.config.getoption("update_golden", default=False):
            path.write_text(text, encoding="utf-8")
        found = path.read_text(encoding="utf-8") if path.exists() else ""
        assert text.splitlines() == found.splitlines(), f"{kept}: run with --update-golden if this change is wanted"

    @pytest.mark.sweep(2)
    def test_verify_agrees(self, verified: Entry) -> None:
        """``Kernel.verify`` agrees with kernels that the emulator executes."""
        case = verified.make()
        kernel = tile.compile(case.program, self.zoo.targets[0], runtime="emulator", options=self.zoo.options)
        adapter: Any = kernel.adapter
        args = [adapter.from_host(np.array(a)) if isinstance(a, np.ndarray) else a for a in case.args]
        report = kernel.verify(*args)
        assert {o.name for o in report.outputs} >= {kernel.signature.params[w.index].name for w in case.wanted}
