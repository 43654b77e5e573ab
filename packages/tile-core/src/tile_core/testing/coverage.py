"""Names of ``T`` that the strategies emit, and reasons for those not drawn.

``emitted`` draws programs and reads their texts; nothing runs. A name that no strategy emits must stand in ``UNDRAWN``
with a reason, a name that stands there must not be emitted.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable

import hypothesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis.strategies import SearchStrategy

from tile_core.target import Target
from tile_core.testing.case import Unit
from tile_core.testing.strategies import STRATEGIES, strategies_of

#: Names of the core that no strategy draws.
_ROUNDING = "most targets have one rounding; tests/language compares all of them with exact arithmetic"
UNDRAWN = {
    "Buffer": "another name of T.Tensor; the kit has it",
    "StridedTensor": "arrays with strides are cases of the kit, in copies and arguments",
    "PrimFunc": "the type of a program in annotations; tests/trace has it",
    "const": "eager factories: their arguments are arrays, not a text; tests/trace has them",
    "empty": "eager factories: their arguments are arrays, not a text; tests/trace has them",
    "ieee_add": _ROUNDING,
    "ieee_fdiv": _ROUNDING,
    "ieee_fma": _ROUNDING,
    "ieee_fmaf": _ROUNDING,
    "ieee_frcp": _ROUNDING,
    "ieee_frsqrt": _ROUNDING,
    "ieee_fsqrt": _ROUNDING,
    "ieee_mul": _ROUNDING,
    "ieee_sub": _ROUNDING,
    "logsumexp": "is a maximum, a parallel loop and a sum, which are drawn; the kit compares its values",
    "print": "writes to the standard output; tests/cpu compares what it writes",
    "im2col": "another name of T.c2d_im2col; tests/trace has it",
    "symbolic": "another name of T.dynamic; tests/trace has it",
}


def emitted(
    count: int, only: Iterable[str] = STRATEGIES, seed: int = 0, target: Target | None = None
) -> dict[str, Counter[str]]:
    """Count the names of ``T`` in ``count`` programs of each strategy."""
    table = strategies_of(target)
    return {name: _of_strategy(table[name][0], count, seed) for name in only}


def names_in(text: str) -> Counter[str]:
    """Return how often a kernel's text uses each name of ``T``."""
    nodes = ast.walk(ast.parse(text))
    return Counter(
        n.attr for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "T"
    )


def _of_strategy(strategy: SearchStrategy[Unit], count: int, seed: int) -> Counter[str]:
    found: Counter[str] = Counter()
    # Small searches: a long one repeats variations of earlier programs.
    for start in range(0, count, 10):

        @hypothesis.seed(seed * 1_000_003 + start)
        @settings(
            max_examples=min(10, count - start), deadline=None, database=None, phases=(Phase.generate,),
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @hypothesis.given(strategy)
        def draw(unit: Unit) -> None:
            found.update(names_in(unit.text()))

        draw()
    return found
