"""Arrays of other libraries come back as they came, and torch's semi-structured tensors both ways."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tile_core import sparse
from tile_core.errors.sparse import ForeignSparseTensor

# torch says once that its semi-structured tensors are a prototype.
pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of SparseSemiStructuredTensor")

NARROW = ["float16", "bfloat16", "int8", "uint8", "float8_e4m3fn", "float8_e5m2", "float32"]


def test_import_loads_no_library() -> None:
    code = "import tile_core.sparse, sys; print([m for m in ('tvm', 'torch', 'jax', 'ml_dtypes') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def bits(array: Any) -> Any:
    return array.view(f"uint{8 * array.itemsize}")


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("transposed", [False, True])
def test_torch_arrays(name: str, transposed: bool) -> None:
    torch = pytest.importorskip("torch")
    matrix = sparse.randn_semi_sparse((64, 96), name, seed=1, transposed=transposed)
    width = 8 * matrix.itemsize
    tensor = torch.from_numpy(matrix.view(f"int{width}")).view(getattr(torch, name))
    values, metadata = sparse.compress(tensor, transposed)
    expected = sparse.compress(matrix, transposed)
    assert values.dtype == tensor.dtype
    assert (values.view(getattr(torch, f"int{width}")).numpy() == expected[0].view(f"int{width}")).all()
    assert (metadata.numpy() == expected[1]).all()
    dense = sparse.decompress(values, metadata, transposed)
    whole = getattr(torch, f"int{width}")
    assert dense.dtype == tensor.dtype
    assert (dense.view(whole) == tensor.view(whole)).all()
    assert (sparse.prune(tensor, transposed).view(whole) == tensor.view(whole)).all()
    assert sparse.decode_metadata(metadata).dtype == metadata.dtype
    assert sparse.compress(tensor, transposed, meta_dtype="uint16")[1].dtype == torch.uint16
    sparse.validate(tensor.t().contiguous().t(), transposed)


def test_tensors_that_torch_cannot_export() -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(4, 32, dtype=torch.float16, requires_grad=True)
    assert sparse.compress(tensor)[0].shape == (4, 16)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "int8", "float32"])
def test_jax_arrays(name: str) -> None:
    jax = pytest.importorskip("jax")
    matrix = sparse.randn_semi_sparse((64, 96), name, seed=2)
    array = jax.numpy.asarray(matrix)
    values, metadata = sparse.compress(array)
    assert isinstance(values, jax.Array)
    assert isinstance(metadata, jax.Array)
    assert values.dtype == matrix.dtype
    assert (bits(np.asarray(sparse.decompress(values, metadata))) == bits(matrix)).all()


@pytest.mark.parametrize(("name", "rows", "extent"), [("float16", 64, 192), ("bfloat16", 96, 64), ("int8", 32, 384)])
def test_semi_structured_tensors_both_ways(name: str, rows: int, extent: int) -> None:
    torch = pytest.importorskip("torch")
    conversions = pytest.importorskip("torch.sparse._semi_structured_conversions")
    matrix = sparse.randn_semi_sparse((rows, extent), name, seed=3)
    bits_ = matrix.view(f"int{8 * matrix.itemsize}")
    tensor = torch.from_numpy(bits_).view(getattr(torch, name))
    values, metadata = sparse.compress(tensor)
    made = sparse.to_torch(values, metadata)
    assert tuple(made.shape) == (rows, extent)
    theirs = conversions.sparse_semi_structured_from_dense_cutlass(tensor)
    # Every group holds two values, so that there is one choice of indices only.
    assert (made.packed == theirs[0]).all()
    assert (made.meta == theirs[1]).all()
    assert (conversions.sparse_semi_structured_to_dense_cutlass(made.packed, made.meta) == tensor).all()
    back = sparse.from_torch(made)
    assert (back[0] == values).all()
    assert (back[1] == metadata).all()
    atoms = sparse.from_torch(made, layout="cutlass_sm80")
    assert (atoms[1] == made.meta).all()


@pytest.mark.parametrize("name", ["float16", "int8", "float32"])
def test_torch_chooses_other_indices_for_sparser_groups(name: str) -> None:
    torch = pytest.importorskip("torch")
    conversions = pytest.importorskip("torch.sparse._semi_structured_conversions")
    rng = np.random.default_rng(4)
    matrix = sparse.randn_semi_sparse((64, 256), name, rng=rng) * (rng.random((64, 256)) < 0.5).astype(name)
    # torch 2.13 moves float32 as halves that it reads as numbers, and changes those that are signalling NaNs.
    matrix = np.rint(matrix)
    tensor = torch.from_numpy(matrix)
    packed, meta = conversions.sparse_semi_structured_from_dense_cutlass(tensor)
    dense = sparse.decompress(packed, meta, layout="cutlass_sm80")
    assert (dense == tensor).all()
    ours = sparse.compress(tensor, layout="cutlass_sm80")
    assert (conversions.sparse_semi_structured_to_dense_cutlass(*ours) == tensor).all()
    kind = torch.sparse.SparseSemiStructuredTensorCUTLASS
    wrapped = kind(tensor.shape, packed, meta, None, None, None)
    values, natural = sparse.from_torch(wrapped)
    assert (sparse.decompress(values, natural) == tensor).all()


def test_to_torch_refuses_what_torch_has_not() -> None:
    pytest.importorskip("torch")
    pair = sparse.compress(sparse.randn_semi_sparse((64, 128), "float8_e5m2", seed=5))
    with pytest.raises(ForeignSparseTensor, match=r"K511.*a matrix of float8_e5m2"):
        sparse.to_torch(*pair)
    pair = sparse.compress(sparse.randn_semi_sparse((64, 96), "float16", seed=5))
    with pytest.raises(ForeignSparseTensor, match=r"K511.*a \(64, 96\) matrix of float16.*multiples of \(32, 64\)"):
        sparse.to_torch(*pair)
