"""K5xx: errors of the 2:4 format."""

from __future__ import annotations

from tile_core.errors.base import KernelError
from tile_runtime.errors.dtypes import TorchMissing as TorchMissing


class SparseError(KernelError):
    """Base of the errors of the 2:4 format."""

    code = "K500"


class TooManyNonZeros(SparseError):
    """A group holds more values than its slots."""

    code = "K501"
    template = (
        "A is not {kept}:{group} sparse along K: row {row}, columns {column} to {last} hold {found} non-zeros, "
        "expected at most {kept}"
    )
    remedy = "prune(A) keeps the {kept} largest of every {group}"


class BadSparseDType(SparseError):
    """An element type that has no 2:4 form, or that the stored elements cannot have."""

    code = "K502"
    template = "no 2:4 form of {found}, expected one of: {expected}"
    remedy = "convert the array, or pass dtype= for codes stored as unsigned integers of the same width"


class BadMetadataDType(SparseError):
    """An element type that the metadata of this operand cannot have in this layout."""

    code = "K503"
    template = "metadata of {operand} in layout {layout!r} cannot be {found}, expected one of: {expected}"
    remedy = "pass meta_dtype={nearest!r}"


class BadSparseExtent(SparseError):
    """K does not fill whole elements of the metadata."""

    code = "K504"
    template = "K = {found} of {operand} is not a multiple of {multiple}, {why}"
    remedy = "pad K with zeros, nearest: {nearest}"


class UnknownMetadataLayout(SparseError):
    """A layout or an architecture without a known metadata order."""

    code = "K505"
    template = "no metadata layout for {what} {found!r}, expected one of: {expected}"
    remedy = "use layout='natural', the row-major order that T.gemm_sp takes on every target"


class MetadataShapeRefused(SparseError):
    """A shape on which a layout is not a bijection."""

    code = "K506"
    template = (
        "layout {layout!r} of {meta} metadata {shape}: {axis} = {found} is not a multiple of {multiple}, "
        "so that positions would be shared, empty or outside the matrix"
    )
    remedy = "pad {axis}, nearest: {nearest}"


class BadBlockK(SparseError):
    """A layout that depends on the tile's K got no K, or an unsupported one."""

    code = "K507"
    template = (
        "layout {layout!r} of {operand} needs block_k, the K of the kernel's tile, as a multiple of {multiple}; "
        "found {found}"
    )
    remedy = "pass the kernel's block_k, {multiple} to 128 (above 128 the order is that of 128)"


class NotAMatrix(SparseError):
    """An argument that is not a matrix in host memory."""

    code = "K508"
    template = "{name} must be a matrix in host memory, found {found}"
    remedy = "pass a two-dimensional NumPy array, or one of a library that exports DLPack, copied to the host"


class SparseShapeMismatch(SparseError):
    """The values and the metadata do not describe one matrix."""

    code = "K509"
    template = "metadata {meta} of shape {found} does not fit values {values}, expected shape {expected}"
    remedy = "pass the pair as compress returned it, with the same dtype, transposed and layout"


class IllegalMetadata(SparseError):
    """Two values with one index, or an index that the type does not have."""

    code = "K510"
    template = (
        "metadata of row {row}, columns {column} to {last} is 0b{found:04b} for non-zero values, expected {expected}"
    )
    remedy = "check the metadata's layout and block_k: they must equal those of the compression"


class ForeignSparseTensor(SparseError):
    """A sparse tensor of another library whose storage is not known."""

    code = "K511"
    template = "{found} cannot be read: {reason}"
    remedy = "{cure}"


class BadMetadataRank(SparseError):
    """Metadata that is not an array of integers with a row axis."""

    code = "K512"
    template = "metadata must be an array of 8-, 16- or 32-bit integers, found {found}"
    remedy = "pass E as compress returned it"
