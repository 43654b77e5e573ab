"""A known product by tensor operations, checked before their first use.

Kernels keep operands and accumulators of ``matmul2d`` in registers, as the lanes of a simdgroup hold them, which Apple
does not specify. It differs between generations of GPUs, so each machine is probed once: one product of small integers
by the functions that kernels call, all of whose elements must agree. A text launched by other programs relies on the
layout that the tensors report; where that differs, its results are NaN.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tile_core.abi.kernel_text import KernelText, LaunchFacts, ParamFact
from tile_core.dtypes import DTYPES
from tile_metal.emit.matrices import HELPERS, NAMES, TYPES, lanes_name
from tile_metal.options import FAST_MATH
from tile_metal.runtime.source import BODY, HEAD

if TYPE_CHECKING:
    from tile_core.runtime.guarded import Array

ROWS, COLUMNS, DEPTH, LANES = 16, 32, 16, 32

Run = Callable[[KernelText, list["Array"]], "Array"]
"""Launches a text with three inputs and an output of float32, all flat; returns the output."""

_ANSWERS: weakref.WeakKeyDictionary[Any, dict[tuple[str, str], int]] = weakref.WeakKeyDictionary()
_FUNCTION = re.compile(rf"\bmatmul2d_{ROWS}x{COLUMNS}x{DEPTH}_([a-z0-9]+)_([a-z0-9]+)\(")


def probes(text: str) -> Iterator[tuple[str, str]]:
    """Yield accumulator and operand types of a text's products, as helper names spell them."""
    yield from sorted(set(_FUNCTION.findall(text)))


def wrong_elements(product: tuple[str, str], module: Any, run: Run) -> int:
    """Return the number of wrong elements of a product on a machine.

    It is 0 if the lanes hold the layout that kernels assume.

    Parameters
    ----------
    product
        Types of the accumulator and of the operands, as `probes` yields them.
    module
        The library that launches, which is probed once.
    run
        Launches the product.
    """
    answers = _ANSWERS.setdefault(module, {})
    if product not in answers:
        total, operand = product
        kind = next(np.dtype(DTYPES[name].numpy()) for name, short in NAMES.items() if short == operand)
        rng = np.random.default_rng(26)
        a, b, c = (rng.integers(-8, 9, shape) for shape in ((ROWS, DEPTH), (DEPTH, COLUMNS), (ROWS, COLUMNS)))
        given = [held(a).astype(kind), held(b).astype(kind), held(c).astype(np.float32)]
        found = run(product_text(total, operand), [x.reshape(-1) for x in given])
        answers[product] = int(np.count_nonzero(found.reshape(LANES, -1) != held(a @ b + c)))
    return answers[product]


def held(matrix: Array) -> Array:
    """Return a matrix in lane layout: an array of lanes and registers."""
    lane, register = np.arange(LANES)[:, None], np.arange(matrix.size // LANES)
    quarter, block, element = lane // 4, register // 8, register % 8
    row = (quarter & 4 | lane // 2 & 3) + 8 * (element // 4)
    column = 4 * (quarter & 2 | lane & 1) + element % 4 + 16 * block
    return np.ascontiguousarray(matrix[row, column])


def product_text(total: str, operand: str) -> KernelText:
    """Return a kernel of one simdgroup that multiplies given registers."""
    product = f"matmul2d_{ROWS}x{COLUMNS}x{DEPTH}_{total}_{operand}"
    asked, function = (next(h for h in HELPERS if h.name == n) for n in (lanes_name(product), product))
    result, kind = TYPES[total], TYPES[operand]
    rows = [("a", kind, "read", 8), ("b", kind, "read", 16), ("c", result, "read", 16), ("out", result, "write", 16)]
    before = [*(f"#include <{h}>" for h in ("metal_stdlib", *function.headers)), "using namespace metal;", ""]
    before += [*asked.text.splitlines(), "", *function.text.splitlines(), ""]
    head = [f"[[kernel, max_total_threads_per_threadgroup({LANES})]] void tile_probe_{total}_{operand}("]
    for i, (name, element, access, _) in enumerate(rows):
        head.append(f"    device {'const ' if access == 'read' else ''}{element}* {name} [[buffer({i})]],")
    position = "thread_position_in_threadgroup"
    head += [f"    uint3 {position} [[{position}]]", ") {"]
    body = [f"  const int lane = (int){position}.x;"]
    for name, element, access, count in rows:
        body.append(f"  {element} {name}_values[{count}];" if access == "read" else "")
        body.append(f"  for (int i = 0; i < {count}; ++i) {name}_values[i] = {name}[lane * {count} + i];")
    body = [line for line in body[:-2] if line]
    body += [f"  {product}({asked.name}(lane), c_values, a_values, b_values);"]
    body += ["  for (int i = 0; i < 16; ++i) out[lane * 16 + i] = c_values[i];"]
    names = {short: name for name, short in NAMES.items()}
    kinds = [names[operand], names[operand], names[total], names[total]]
    params = tuple(ParamFact(r[0], "pointer", k, r[2]) for r, k in zip(rows, kinds, strict=True))  # type: ignore[arg-type]
    # Integers are exact in any math mode, so that the environment may select one.
    at = {HEAD: len(before) + 1, BODY: len(before) + len(head) + 1, FAST_MATH: True}
    facts = LaunchFacts(f"tile_probe_{total}_{operand}", params, (1, 1, 1), (LANES, 1, 1), attributes=at)
    return KernelText("".join(f"{line}\n" for line in [*before, *head, *body, "}"]), facts)
