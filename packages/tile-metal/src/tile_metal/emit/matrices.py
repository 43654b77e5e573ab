"""Functions on simdgroup matrices: 8 x 8, two elements of a row per lane.

Lane ``t`` holds row ``4 * (t / 16) + t % 8 / 2`` and columns ``4 * (t / 8 % 2) + 2 * (t % 2)`` and the next. Apple does
not document it, but MLX, tinygrad and others rely on it on every Apple GPU so far; ``tile_metal.selftest``
checks it. Fragments can therefore be ordinary registers: a product moves them into matrices and back, which costs no
instruction. Sources: MSL specification, "SIMD-Group Matrix Data Types" and "SIMD-Group Matrix Functions"; for the
tensor operations "Metal Performance Primitives", ``MPPTensorOpsMatMul2d.h`` and the kernels of MLX.
"""

from __future__ import annotations

from tile_metal.emit.helper import Helper

NAMES = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "int8": "i8", "int32": "i32"}
"""Element types of matrices, as names of functions have them."""

TYPES = {"f16": "half", "bf16": "bfloat", "f32": "float", "i8": "char", "i32": "int"}
"""Their types in MSL, by these names."""

_HEADER = "metal_simdgroup_matrix"
_TENSOR = ("metal_tensor", "MetalPerformancePrimitives/MetalPerformancePrimitives.h")

Turned = tuple[bool, bool]
"""Whether the rows of A, and of B, are those of its transpose."""

PRODUCTS = (("f32", "f16"), ("f32", "bf16"), ("f32", "f32"), ("f16", "f16"), ("bf16", "bf16"))
"""Types of accumulators and of operands that multiply."""

TENSOR_PRODUCTS = (*(p for p in PRODUCTS if p[0] == "f32"), ("i32", "i8"))
"""The same of tensor operations."""


def load_name(dtype: str, space: str, turned: bool) -> str:
    """Return the function that reads a matrix from ``space``, transposed if ``turned``."""
    return f"simdgroup_load_{NAMES[dtype]}_{space}{'_transposed' if turned else ''}"


def multiply_name(accumulator: str, operand: str) -> str:
    """Return the function that adds a product of two matrices to a third."""
    return f"simdgroup_multiply_accumulate_{NAMES[accumulator]}_{NAMES[operand]}"


def tensor_name(accumulator: str, operand: str, turned: Turned = (False, False)) -> str:
    """Return the function that accumulates a 16 x 16 by 16 x 32 product."""
    return _tensor_name(NAMES[accumulator], NAMES[operand], turned)


def _tensor_name(d: str, t: str, turned: Turned) -> str:
    return f"matmul2d_16x32x16_{d}_{t}{'_ta' if turned[0] else ''}{'_tb' if turned[1] else ''}"


def _load(t: str, space: str, turned: bool) -> Helper:
    kind, name = TYPES[t], f"simdgroup_load_{t}_{space}{'_transposed' if turned else ''}"
    origin = ", ulong2(0, 0), true" if turned else ""
    text = f"""static inline void {name}(thread {kind}* to, {space} const {kind}* from, int pitch) {{
  simdgroup_matrix<{kind}, 8, 8> m;
  simdgroup_load(m, from, (ulong)pitch{origin});
  to[0] = m.thread_elements()[0];
  to[1] = m.thread_elements()[1];
}}"""
    return Helper(name, text, (), (_HEADER,))


def _multiply(d: str, t: str) -> Helper:
    name = f"simdgroup_multiply_accumulate_{d}_{t}"
    total, kind = TYPES[d], TYPES[t]
    text = f"""static inline void {name}(thread {total}* c, thread const {kind}* a, thread const {kind}* b) {{
  simdgroup_matrix<{total}, 8, 8> sum;
  simdgroup_matrix<{kind}, 8, 8> left, right;
  sum.thread_elements()[0] = c[0];
  sum.thread_elements()[1] = c[1];
  left.thread_elements()[0] = a[0];
  left.thread_elements()[1] = a[1];
  right.thread_elements()[0] = b[0];
  right.thread_elements()[1] = b[1];
  simdgroup_multiply_accumulate(sum, left, right, sum);
  c[0] = sum.thread_elements()[0];
  c[1] = sum.thread_elements()[1];
}}"""
    return Helper(name, text, (), (_HEADER,))


def lanes_name(product: str) -> str:
    """Return the function that checks the lane layout which a ``tensor_name`` function assumes."""
    return f"{product}_lanes"


def poison_name(product: str) -> str:
    """Return the function that replaces accumulators of a ``tensor_name`` function if that check failed."""
    return f"{product}_poison"


def is_tensor_product(name: str) -> bool:
    """Return whether a function is one of ``tensor_name``."""
    return name.startswith("matmul2d_") and not name.endswith(("_lanes", "_poison"))


def _tensors(d: str, t: str, turned: Turned) -> str:
    total, kind = TYPES[d], TYPES[t]
    left, right = (str(x).lower() for x in turned)
    return f"""  constexpr auto shape = mpp::tensor_ops::matmul2d_descriptor(
      16, 32, 16, {left}, {right}, false, mpp::tensor_ops::matmul2d_descriptor::mode::multiply_accumulate);
  mpp::tensor_ops::matmul2d<shape, execution_simdgroup> product;
  auto left = product.get_left_input_cooperative_tensor<{kind}, {kind}, {total}>();
  auto right = product.get_right_input_cooperative_tensor<{kind}, {kind}, {total}>();
  auto sum = product.get_destination_cooperative_tensor<
      remove_addrspace_t<decltype(left)>, remove_addrspace_t<decltype(right)>, {total}>();"""


def _matmul2d(d: str, t: str, turned: Turned) -> Helper:
    """A product by tensor operations, on operands that are filled by hand.

    Each 16 x 16 block is 8 elements of a lane: rows ``4 * (q & 4) ...`` as for matrices of 8 rows and the same 8 rows
    further, 4 columns each. B and the result are two blocks side by side; operands lie as they are stored, so that a
    transposed B has two blocks one below the other. Apple does not specify this, so a kernel checks it once
    (``_lanes``), with one answer in all lanes of a simdgroup. If any lane holds other elements, all results are NaN, or
    the smallest integer (``_poison``). Runtimes refuse before, see ``runtime/probe.py``. From MSL 4.1 on a variable's
    type has its address space.
    """
    name = _tensor_name(d, t, turned)
    total, kind = TYPES[d], TYPES[t]
    text = f"""static inline void {name}(thread {total}* c, thread const {kind}* a, thread const {kind}* b) {{
{_tensors(d, t, turned)}
#pragma clang loop unroll(full)
  for (int i = 0; i < 8; ++i) {{
    left[i] = a[i];
  }}
#pragma clang loop unroll(full)
  for (int i = 0; i < 16; ++i) {{
    right[i] = b[i];
    sum[i] = c[i];
  }}
  product.run(left, right, sum);
#pragma clang loop unroll(full)
  for (int i = 0; i < 16; ++i) {{
    c[i] = sum[i];
  }}
}}"""
    return Helper(name, text, (), _TENSOR, exact=True)


def _poison(d: str, t: str, turned: Turned) -> Helper:
    product = _tensor_name(d, t, turned)
    name, nothing = poison_name(product), "NAN" if d == "f32" else "-2147483647 - 1"
    text = f"""static inline void {name}(bool known, thread {TYPES[d]}* c, int count) {{
  if (!known) {{
#pragma clang loop unroll(full)
    for (int i = 0; i < count; ++i) {{
      c[i] = {nothing};
    }}
  }}
}}"""
    return Helper(name, text, (lanes_name(product),), _TENSOR, exact=True)


def _lanes(d: str, t: str, turned: Turned) -> Helper:
    """Whether all lanes hold the elements that ``_matmul2d`` assumes, as the tensors report."""
    name = lanes_name(_tensor_name(d, t, turned))
    right = ("column + (i & 3)", "row + (i & 12) * 2") if turned[1] else ("across", "down")
    text = f"""static inline bool {name}(int lane) {{
{_tensors(d, t, turned)}
  const int row = (lane & 16) / 4 + (lane & 7) / 2, column = (lane & 8) + (lane & 1) * 4;
  bool known = left.get_capacity() == 8 && right.get_capacity() == 16 && sum.get_capacity() == 16;
#pragma clang loop unroll(disable)
  for (int i = 0; i < 16; ++i) {{
    const int down = row + (i & 4) * 2, across = column + (i & 3) + (i & 8) * 2;
    if (i < 8) {{
      const auto at = left.get_multidimensional_index((ushort)i);
      known = known && (int)at[0] == across && (int)at[1] == down;
    }}
    const auto of_right = right.get_multidimensional_index((ushort)i);
    const auto of_sum = sum.get_multidimensional_index((ushort)i);
    known = known && (int)of_right[0] == {right[0]} && (int)of_right[1] == {right[1]};
    known = known && (int)of_sum[0] == across && (int)of_sum[1] == down;
  }}
  return simd_all(known);
}}"""
    return Helper(name, text, (), _TENSOR, exact=True)


HELPERS: tuple[Helper, ...] = (
    *(
        _load(t, space, turned)
        for t in ("f16", "bf16", "f32")
        for space in ("device", "threadgroup")
        for turned in (False, True)
    ),
    *(_multiply(d, t) for d, t in PRODUCTS),
    *(
        make(d, t, (a, b))
        for d, t in TENSOR_PRODUCTS
        for a in (False, True)
        for b in (False, True)
        for make in (_lanes, _matmul2d, _poison)
    ),
)
