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
from tile_metal.emit.matrices import HELPERS, NAMES, TYPES, lanes_name, poison_name, tensor_name
from tile_metal.options import FAST_MATH
from tile_metal.runtime.source import BODY, HEAD

if TYPE_CHECKING:
    from tile_runtime.texts.guarded import Array

ROWS, COLUMNS, DEPTH, LANES = 16, 32, 16, 32

Run = Callable[[KernelText, list["Array"]], "Array"]
"""Launches a text with three inputs and an output like the third, all flat; returns the output."""

Product = tuple[str, str, bool, bool]
"""Element types of the accumulator and of the operands, and whether A and B are stored transposed."""

_ANSWERS: weakref.WeakKeyDictionary[Any, dict[Product, int]] = weakref.WeakKeyDictionary()
_FUNCTION = re.compile(rf"\bmatmul2d_{ROWS}x{COLUMNS}x{DEPTH}_([a-z0-9]+)_([a-z0-9]+)(_ta)?(_tb)?\(")
_LONG = {short: name for name, short in NAMES.items()}


def probes(text: str) -> Iterator[Product]:
    """Yield the products of a text."""
    for total, operand, *turned in sorted(set(_FUNCTION.findall(text))):
        yield _LONG[total], _LONG[operand], bool(turned[0]), bool(turned[1])


def wrong_elements(product: Product, module: Any, run: Run) -> int:
    """Return the number of wrong elements of a product on a machine.

    It is 0 if the lanes hold the layout that kernels assume.

    Parameters
    ----------
    product
        As `probes` yields it.
    module
        The library that launches, which is probed once.
    run
        Launches the product.
    """
    answers = _ANSWERS.setdefault(module, {})
    if product not in answers:
        kind = np.dtype(DTYPES[product[1]].numpy())
        rng = np.random.default_rng(26)
        a, b, c = (rng.integers(-8, 9, shape) for shape in ((ROWS, DEPTH), (DEPTH, COLUMNS), (ROWS, COLUMNS)))
        stored = [x.T if turned else x for x, turned in zip((a, b), product[2:], strict=True)]
        given = [*(held(x).astype(kind) for x in stored), held(c).astype(DTYPES[product[0]].numpy())]
        found = run(product_text(product), [x.reshape(-1) for x in given])
        answers[product] = int(np.count_nonzero(found.reshape(LANES, -1) != held(a @ b + c)))
    return answers[product]


def held(matrix: Array) -> Array:
    """Return a matrix in lane layout, as an array of lanes and registers."""
    lane, register = np.arange(LANES)[:, None], np.arange(matrix.size // LANES)
    quarter, block, element = lane // 4, register // 8, register % 8
    below = matrix.shape[1] == DEPTH  # blocks lie one below the other, else side by side
    row = (quarter & 4 | lane // 2 & 3) + 8 * (element // 4) + (16 * block if below else 0)
    column = 4 * (quarter & 2 | lane & 1) + element % 4 + (0 if below else 16 * block)
    return np.ascontiguousarray(matrix[row, column])


def product_text(product: Product) -> KernelText:
    """Return a kernel of one simdgroup that multiplies given registers."""
    total, operand, *turned = product
    called = tensor_name(total, operand, (turned[0], turned[1]))
    entry = f"tile_probe_{called}"
    names = lanes_name(called), called, poison_name(called)
    asked, function, poison = (next(h for h in HELPERS if h.name == n) for n in names)
    result, kind = TYPES[NAMES[total]], TYPES[NAMES[operand]]
    rows = [("a", kind, "read", 8), ("b", kind, "read", 16), ("c", result, "read", 16), ("out", result, "write", 16)]
    before = [*(f"#include <{h}>" for h in ("metal_stdlib", *function.headers)), "using namespace metal;", ""]
    before += [line for helper in (asked, function, poison) for line in (*helper.text.splitlines(), "")]
    head = [f"[[kernel, max_total_threads_per_threadgroup({LANES})]] void {entry}("]
    for i, (name, element, access, _) in enumerate(rows):
        head.append(f"    device {'const ' if access == 'read' else ''}{element}* {name} [[buffer({i})]],")
    position = "thread_position_in_threadgroup"
    head += [f"    uint3 {position} [[{position}]]", ") {"]
    body = [f"  const int lane = (int){position}.x;"]
    for name, element, access, count in rows:
        body.append(f"  {element} {name}_values[{count}];" if access == "read" else "")
        body.append(f"  for (int i = 0; i < {count}; ++i) {name}_values[i] = {name}[lane * {count} + i];")
    body = [line for line in body[:-2] if line]
    body += [f"  {called}(c_values, a_values, b_values);", f"  {poison.name}({asked.name}(lane), c_values, 16);"]
    body += ["  for (int i = 0; i < 16; ++i) out[lane * 16 + i] = c_values[i];"]
    kinds = [operand, operand, total, total]
    params = tuple(ParamFact(r[0], "pointer", k, r[2]) for r, k in zip(rows, kinds, strict=True))  # type: ignore[arg-type]
    # Integers are exact in any math mode, so that the environment may select one.
    at = {HEAD: len(before) + 1, BODY: len(before) + len(head) + 1, FAST_MATH: True}
    facts = LaunchFacts(entry, params, (1, 1, 1), (LANES, 1, 1), attributes=at)
    return KernelText("".join(f"{line}\n" for line in [*before, *head, *body, "}"]), facts)
