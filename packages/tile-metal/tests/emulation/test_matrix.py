"""Matrices of a simdgroup and the tensor operations, against products by NumPy."""

import ml_dtypes
import numpy as np
import pytest

from .launches import kinds, poison, report_text, right, run

LANE = np.arange(32)
Q = LANE // 4
ROW, COLUMN = (Q & 4) + LANE // 2 % 4, 2 * (Q & 2) + 2 * (LANE % 2)
TYPES = {"half": np.dtype("float16"), "bfloat": np.dtype(ml_dtypes.bfloat16), "float": np.dtype("float32")}

# Loads of all forms, their elements, and stores of all forms.
MOVES = """
kernel void moves(device const KIND* x [[buffer(0)]], device KIND* out [[buffer(1)]], device KIND* out_e [[buffer(2)]],
                  uint t [[thread_index_in_simdgroup]]) {
  alignas(16) threadgroup uchar smem[1024];
  threadgroup KIND* const s = (threadgroup KIND*)smem;
  for (int i = t; i < 240; i += 32) s[i] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_matrix<KIND, 8, 8> m[5];
  simdgroup_load(m[0], x);
  simdgroup_load(m[1], s + 3, 12);
  simdgroup_load(m[2], x, 20, ulong2(4, 2));
  simdgroup_load(m[3], s, 20, 0, true);
  m[4] = simdgroup_matrix<KIND, 8, 8>((KIND)3.0f);
  for (int i = 0; i < 5; ++i) {
    thread auto& e = m[i].thread_elements();
    out_e[(i * 32 + t) * 2] = e[0];
    out_e[(i * 32 + t) * 2 + 1] = e[1];
  }
  simdgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_store(m[0], out);
  simdgroup_store(m[1], out + 64, 8, ulong2(0, 0), true);
  simdgroup_store(m[2], s, 16);
  simdgroup_store(m[4], s + 8, 16);
  simdgroup_store(make_filled_simdgroup_matrix<KIND, 8, 8>((KIND)5.0f), out + 256);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  for (int i = t; i < 128; i += 32) out[128 + i] = s[i];
}
"""


@pytest.mark.sweep(1)
@pytest.mark.parametrize("kind", TYPES)
def test_moves(kind):
    dtype = TYPES[kind]
    x = np.arange(240).astype(dtype)
    found = right(
        MOVES.replace("KIND", kind), [x, np.zeros(320, dtype), np.zeros((5, 32, 2), dtype)], shared_bytes=1024
    )
    v = x.astype("float32")
    diagonal = 3 * np.eye(8)
    matrices = [
        v[:64].reshape(8, 8),
        v[3 : 3 + 96].reshape(8, 12)[:, :8],
        v.reshape(12, 20)[2:10, 4:12],
        v[:160].reshape(8, 20)[:, :8].T,
        diagonal,
    ]
    elements, out = found["out_e"].astype("float32"), found["out"].astype("float32")
    for i, matrix in enumerate(matrices):
        assert np.array_equal(elements[i], np.stack([matrix[ROW, COLUMN], matrix[ROW, COLUMN + 1]], axis=1)), i
    assert np.array_equal(out[:64], matrices[0].ravel())
    assert np.array_equal(out[64:128], matrices[1].T.ravel())
    assert np.array_equal(out[128:256].reshape(8, 16), np.concatenate([matrices[2], diagonal], axis=1))
    assert np.array_equal(out[256:], np.full(64, 5))


PRODUCTS = [("float", "float"), ("float", "half"), ("half", "half"), ("float", "bfloat"), ("bfloat", "bfloat")]
MULTIPLY = """
kernel void multiply(device const A* a [[buffer(0)]], device const A* b [[buffer(1)]], device const D* c [[buffer(2)]],
                     device D* out [[buffer(3)]]) {
  simdgroup_matrix<A, 8, 8> x, y;
  simdgroup_matrix<D, 8, 8> z, w;
  simdgroup_load(x, a);
  simdgroup_load(y, b);
  simdgroup_load(z, c);
  simdgroup_multiply(w, x, y);
  simdgroup_multiply_accumulate(z, x, y, z);
  simdgroup_store(z, out);
  simdgroup_store(w, out + 64);
}
"""


def in_order(a, b, c):
    """Accumulate in the order of k, rounding each step to float once."""
    total = c.astype("float32")
    for k in range(a.shape[1]):
        step = a[:, k, None].astype("float64") * b[None, k].astype("float64") + total
        total = step.astype("float32")
    return total


@pytest.mark.sweep(1)
@pytest.mark.parametrize(("d", "a"), PRODUCTS)
def test_products(d, a):
    rng = np.random.default_rng(12)
    x, y = (rng.normal(size=(8, 8)).astype(TYPES[a]) for _ in range(2))
    c = rng.normal(size=(8, 8)).astype(TYPES[d])
    text = MULTIPLY.replace("A*", f"{a}*").replace("D*", f"{d}*").replace("<A", f"<{a}").replace("<D", f"<{d}")
    out = right(text, [x, y, c, np.zeros((2, 8, 8), TYPES[d])])["out"].astype("float32")
    x, y, c = (v.astype("float32") for v in (x, y, c))
    for found, start in zip(out, (c, np.zeros((8, 8), "float32")), strict=True):
        expected = in_order(x, y, start).astype(TYPES[d]).astype("float32")
        tolerance = {"float": 1e-6, "half": 1e-3, "bfloat": 8e-3}[
            d
        ]  # the model rounds a sum of products once more rarely
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


TENSORS = """
static inline void product(thread D* c, thread const A* a, thread const A* b) {
  constexpr auto shape = matmul2d_descriptor(16, 32, 16, TL, TR, false, matmul2d_descriptor::mode::MODE);
  matmul2d<shape, execution_simdgroup> op;
  auto left = op.get_left_input_cooperative_tensor<A, A, D>();
  auto right = op.get_right_input_cooperative_tensor<A, A, D>();
  auto sum = op.get_destination_cooperative_tensor<remove_addrspace_t<decltype(left)>,
                                                   remove_addrspace_t<decltype(right)>, D>();
  for (int i = 0; i < left.get_capacity(); ++i) left[i] = a[i];
  for (int i = 0; i < 16; ++i) right[i] = b[i];
  for (int i = 0; i < sum.get_capacity(); ++i) sum[i] = c[i];
  op.run(left, right, sum);
  for (int i = 0; i < 16; ++i) c[i] = sum[i];
}
kernel void tensors(device const A* a [[buffer(0)]], device const A* b [[buffer(1)]], device const D* c [[buffer(2)]],
                    device D* out [[buffer(3)]], uint t [[thread_index_in_simdgroup]]) {
  A x[8], y[16];
  D z[16];
  for (int i = 0; i < 8; ++i) x[i] = a[t * 8 + i];
  for (int i = 0; i < 16; ++i) y[i] = b[t * 16 + i];
  for (int i = 0; i < 16; ++i) z[i] = c[t * 16 + i];
  product(z, x, y);
  for (int i = 0; i < 16; ++i) out[t * 16 + i] = z[i];
}
"""
E = np.arange(8)
FRAGMENT_ROW = ((Q & 4) | (LANE // 2 & 3))[:, None] + 8 * (E // 4)
FRAGMENT_COLUMN = 4 * ((Q & 2) | (LANE & 1))[:, None] + E % 4


def by_lane(matrix):
    """Elements of each lane: fragments of 16 x 16, below or beside each other."""
    parts = [matrix[r : r + 16, c : c + 16] for r in range(0, len(matrix), 16) for c in range(0, matrix.shape[1], 16)]
    return np.ascontiguousarray(np.concatenate([p[FRAGMENT_ROW, FRAGMENT_COLUMN] for p in parts], axis=1))


@pytest.mark.sweep(1)
@pytest.mark.parametrize(("d", "a", "left", "right_", "mode"), [
    ("float", "half", False, False, "multiply_accumulate"), ("float", "bfloat", False, True, "multiply_accumulate"),
    ("half", "half", True, False, "multiply"), ("float", "float", True, True, "multiply"),
    ("int", "char", False, False, "multiply_accumulate"),
])  # fmt: skip
def test_tensor_products(d, a, left, right_, mode):
    types = {**TYPES, "char": np.dtype("int8"), "int": np.dtype("int32")}
    rng = np.random.default_rng(13)
    make = (
        (lambda s, t: rng.integers(-99, 99, s).astype(t))
        if a == "char"
        else (lambda s, t: rng.normal(size=s).astype(t))
    )
    x, y, c = make((16, 16), types[a]), make((16, 32), types[a]), make((16, 32), types[d])
    text = TENSORS.replace("TL", str(left).lower()).replace("TR", str(right_).lower()).replace("MODE", mode)
    for sign in ("*", ",", ">", " x", " z"):
        text = text.replace(f"A{sign}", f"{a}{sign}").replace(f"D{sign}", f"{d}{sign}")
    args = [by_lane(x.T if left else x), by_lane(y.T if right_ else y), by_lane(c), np.zeros((32, 16), types[d])]
    out = right(text, args, tensor_ops=True)["out"]
    exact = np.float64
    expected = x.astype(exact) @ y.astype(exact) + (c.astype(exact) if "accumulate" in mode else 0)
    tolerance = {"float": 1e-5, "half": 4e-3, "int": 0}[d]
    np.testing.assert_allclose(out.astype(exact), by_lane(expected), rtol=tolerance, atol=tolerance)


def test_a_tensor_has_no_more_elements_than_its_capacity():
    text = """
    kernel void over(device float* out [[buffer(0)]], uint t [[thread_index_in_simdgroup]]) {
      matmul2d<matmul2d_descriptor(16, 32, 16), execution_simdgroup> op;
      auto left = op.get_left_input_cooperative_tensor<half, half, float>();
      left[8] = 1.0h;
      out[t] = left[0];
    }
    """
    result = run(text, [poison(32)], tensor_ops=True)
    assert kinds(result) == {"tensor"}, report_text(result)
