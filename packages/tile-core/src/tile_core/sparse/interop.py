"""torch's semi-structured sparse tensors, the ones that keep values and metadata apart."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from tile_core.compat.types import Array, DTypeLike, Torch, TorchTensor
from tile_core.errors.sparse import ForeignSparseTensor, TorchMissing
from tile_core.sparse.format import NATURAL, check_pair, default_meta_dtype
from tile_core.sparse.host import read_matrix, read_metadata
from tile_core.sparse.layouts import SEMI_STRUCTURED, layout_meta_type
from tile_core.sparse.metadata import convert

if TYPE_CHECKING:
    from tile_core.dtypes import DType


_APART = "SparseSemiStructuredTensorCUTLASS"


def from_torch(
    tensor: TorchTensor, *, layout: str = NATURAL, meta_dtype: DTypeLike = None, block_k: int | None = None
) -> Any:
    """Return values and metadata of a torch semi-structured tensor, as ``compress`` would return them.

    The metadata holds torch's choice of indices for groups with fewer than two non-zeros, which differs from ours;
    ``decompress`` gives the same matrix.

    Parameters
    ----------
    tensor
        A tensor of torch's class that keeps values (``packed``) and metadata (``meta``) apart, in host memory.
    layout, meta_dtype, block_k
        The order and the type of the metadata to return.

    Raises
    ------
    ForeignSparseTensor
        For any other tensor. The other class keeps one opaque buffer.
    """
    name = type(tensor).__name__
    if not hasattr(tensor, "packed") or not hasattr(tensor, "meta"):
        cure = "use compress(A) for a dense tensor"
        raise ForeignSparseTensor(found=f"a {name}", reason="it is not a semi-structured tensor of torch", cure=cure)
    if tensor.packed is None or tensor.meta is None:
        cure = "compress(tensor.to_dense().cpu()), or make the tensor with torch's other class"
        reason = "it does not keep values and metadata of itself apart"
        raise ForeignSparseTensor(found=f"a {name}", reason=reason, cure=cure)
    values, meta = tensor.packed, tensor.meta
    bits, operand, _ = read_matrix(values, None, "tensor.packed")
    stored, source = read_metadata(meta)
    check_pair(bits.shape, stored.shape, operand, layout_meta_type(SEMI_STRUCTURED, operand, source.element))
    return values, convert(meta, SEMI_STRUCTURED, layout, dtype=operand, meta_dtype=meta_dtype, block_k=block_k)


def to_torch(
    A_sparse: Array, E: Array, *, layout: str = NATURAL, block_k: int | None = None, dtype: DTypeLike = None
) -> Any:
    """Return a torch semi-structured tensor of values and metadata.

    Parameters
    ----------
    A_sparse, E
        Values ``(M, K // 2)`` and metadata, as ``compress`` returned them.
    layout, block_k, dtype
        The parameters of their compression.

    Raises
    ------
    ForeignSparseTensor
        If torch has no semi-structured tensors of this type or shape.
    TorchMissing
        If torch is not installed.
    """
    try:
        torch = importlib.import_module("torch")
        module = importlib.import_module("torch.sparse")
    except ImportError as error:
        raise TorchMissing(reason=str(error)) from error
    bits, operand, _ = read_matrix(A_sparse, dtype, "A_sparse")
    stored, held = read_metadata(E)
    check_pair(bits.shape, stored.shape, operand, layout_meta_type(layout, operand, held.element))
    kind = getattr(module, _APART)
    rows, columns = bits.shape[0], 2 * bits.shape[1]
    _check_torch(kind, getattr(torch, operand.container, None), operand, (rows, columns))
    signed = default_meta_dtype(operand)  # torch has signed metadata only
    meta = convert(E, layout, SEMI_STRUCTURED, dtype=operand, meta_dtype=signed, block_k=block_k)
    return kind(
        shape=torch.Size((rows, columns)),
        packed=_as_torch(torch, bits, operand.container),
        meta=_as_torch(torch, read_metadata(meta)[0], signed),
        packed_t=None,
        meta_t=None,
        compressed_swizzled_bitmask=None,
    )


def _check_torch(kind: Any, element: Any, operand: DType, shape: tuple[int, int]) -> None:
    limits = kind._DTYPE_SHAPE_CONSTRAINTS
    if element not in limits:
        known = ", ".join(str(d).rpartition(".")[2] for d in limits)
        reason = f"torch's semi-structured tensors hold {known}"
        raise ForeignSparseTensor(found=f"a matrix of {operand}", reason=reason, cure="keep the values and metadata")
    multiples = limits[element].sparse_min_rows, limits[element].sparse_min_cols
    if any(n % m or n < m for n, m in zip(shape, multiples, strict=True)):
        reason = f"torch wants multiples of {multiples}"
        cure = "pad the matrix with zeros before compressing it"
        raise ForeignSparseTensor(found=f"a {shape} matrix of {operand}", reason=reason, cure=cure)


def _as_torch(torch: Torch, bits: Array, name: str) -> TorchTensor:
    signed = np.ascontiguousarray(bits).view(f"int{8 * bits.itemsize}")
    return torch.from_numpy(signed).view(getattr(torch, name))
