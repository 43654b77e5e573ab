# Written by tools/editor_stubs.py from the vocabulary; `python tools/editor_stubs.py` writes it anew.
"""The names of ``T`` that are no element types or declarations."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar, overload
from tile_core.language._dtypes import PrimFunc, ptr
from tile_core.language._types import BlockIndex, Buffer, DTypeLike, Index, Number, Scalar, Tile, Value
from tile_core.layout.base import LayoutMap

_Function = TypeVar("_Function", bound=Callable[..., object])

@overload
def prim_func(fn: Callable[..., object], **options: object) -> PrimFunc:
    """Trace a kernel function.

    Parameters
    ----------
    fn
        A plain function whose parameters are annotated with ``T.Tensor(...)``, element types or ``T.ptr``.
    **options
        ``private`` and similar options of other dialects; no effect.

    Returns
    -------
    Program
        The program, to be passed to ``tile.compile``.

    Raises
    ------
    KernelError
        K1xx and K2xx, each with the file and line of the statement.
    """

@overload
def prim_func(fn: None = None, **options: object) -> Callable[[Callable[..., object]], PrimFunc]: ...
@overload
def macro(fn: _Function, **options: object) -> _Function:
    """Make a function part of the kernel language, with its control flow and assignments.

    Parameters
    ----------
    fn
        A plain function. It may return values and tuples, and may call itself under conditions that are known while
        tracing.
    **options
        ``hygienic`` of other dialects; macros are always hygienic.
    """

@overload
def macro(fn: None = None, **options: object) -> Callable[[_Function], _Function]: ...
def dynamic(name: str, dtype: DTypeLike = "int32") -> Any:
    """Return a symbolic dimension that arguments determine at the call: ``m = T.dynamic("m")``.

    Parameters
    ----------
    name
        Its name, or several: ``m, n = T.dynamic("m, n")``. The same name is the same symbol.
    dtype
        ``"int32"`` or ``"int64"``.
    """

symbolic = dynamic

def make_tensor(
    pointer: ptr | Value,
    shape: Sequence[Index],
    dtype: DTypeLike = None,
    strides: Sequence[Index] | None = None,
    *,
    align: int | None = None,
) -> Buffer:
    """Return a tensor at an address: ``A = T.make_tensor(p, (n, 64), "float16")``.

    Parameters
    ----------
    pointer
        A parameter annotated with ``T.ptr``, or an element of a table of them, ``T.Tensor((n,), T.ptr)``. The address
        is a multiple of an element's size.
    shape, strides
        Ints or runtime integers; contiguous without strides.
    dtype
        Element type; default: that of the pointer.
    align
        What the address of an element of a table is a multiple of, in bytes, by your word: with 16, threads may use
        wide accesses.

    Raises
    ------
    BadArgument
        If ``pointer`` is not one, the shape is not made of integers, or ``align`` is no power of two that holds an
        element.

    Notes
    -----
    Nothing checks that there is as much memory. Tensors at different pointers and elements must not overlap where one
    of them is written, as the tensors of a call must not.
    """

def const(names: str) -> Any:
    """Return dimensions that the arguments' shapes determine: ``M, N = T.const("M, N")``.

    They are Python ints: the kernel is compiled for each set of shapes that it is called with.

    Raises
    ------
    UndeterminedConst
        If a name is not a dimension of a declared tensor.
    """

def empty(shape: Sequence[Index], dtype: DTypeLike = "float32") -> Buffer:
    """Return an output of an eager kernel, allocated at the call like the inputs."""

@overload
def Kernel(
    x: Index, /, *, threads: int | Sequence[int] | None = None, is_cpu: bool = False
) -> AbstractContextManager[BlockIndex]:
    """The launch of a kernel: ``with T.Kernel(gx, gy, threads=128) as (bx, by):``.

    Parameters
    ----------
    *grid
        At most three extents, Python ints or runtime integers; the first is the fastest axis. An extent of 0 launches
        nothing; without extents there is one block.
    threads
        Threads of a block: an int, or up to three of them. Default: 128, or 1 with ``is_cpu``.
    is_cpu
        Whether the kernel was written for one thread per block.

    Raises
    ------
    OutsideKernel, BadLaunch, SecondLaunch
        Outside a kernel function; for other grids and threads; inside of another launch.

    Notes
    -----
    A function may launch several times. The launches run one after the other: what one wrote, the next one reads.

    Blocks of a launch have no order. A block may not read or write an element that another block writes, except by an
    atomic, behind ``T.sync_grid`` or with the same value. Launches that provably do are refused (K214).
    """

@overload
def Kernel(
    x: Index, y: Index, /, *, threads: int | Sequence[int] | None = None, is_cpu: bool = False
) -> AbstractContextManager[tuple[Value, Value]]: ...
@overload
def Kernel(
    x: Index, y: Index, z: Index, /, *, threads: int | Sequence[int] | None = None, is_cpu: bool = False
) -> AbstractContextManager[tuple[Value, Value, Value]]: ...
@overload
def Kernel(
    *extents: Index | Sequence[Index], threads: int | Sequence[int] | None = None, is_cpu: bool = False
) -> AbstractContextManager[Any]: ...
def Persistent(domain: Sequence[Index], wave_size: Index, index: Index, group_size: int = 8) -> Iterable[Any]:
    """Iterate over tiles with persistent blocks: ``for bx, by in T.Persistent((gx, gy), wave, block)``.

    Parameters
    ----------
    domain
        Extents; the last one is the fastest.
    wave_size
        Number of blocks that sweep together.
    index
        Index of this block, from 0 to ``wave_size - 1``.
    group_size
        Accepted for other dialects' kernels: the order of the tiles is not part of the meaning.
    """

def sync_grid() -> None:
    """Wait for all blocks of the launch, and make their writes visible to all.

    The launch ends here, and another one of the same grid and threads goes on with the statements behind it. So it
    works on every target, and any number of blocks may wait. Scratch memory, variables and values that are read from
    memory do not live on.

    Raises
    ------
    NoGridBarrier
        In a loop or a branch; where something that would have to live on is used behind it; outside of a launch.
    """

class PersistentTileScheduler:
    """The tiles of a domain that one persistent block computes, as in ``T.Persistent``.

    Parameters
    ----------
    m_tiles, n_tiles
        Extents of the domain.
    wave_size, index
        The number of blocks that share the tiles, and the index of this one; by default those of the first axis of the
        launch.
    group_size
        Accepted for other dialects' kernels: the order of the tiles is not part of the meaning.

    Attributes
    ----------
    m_idx, n_idx
        Of the current tile.

    Raises
    ------
    BadLoop
        For extents that are no integers, or negative constants.

    Notes
    -----
    A block has the tiles ``index``, ``index + wave_size`` and so on, counted row by row::

        tiles = T.PersistentTileScheduler(T.ceildiv(M, 64), T.ceildiv(N, 64))
        while tiles.valid():
            T.copy(A[tiles.m_idx * 64, tiles.n_idx * 64], S)
            ...
            tiles.next_tile()

    Loops of ``T.Persistent`` are equivalent, and easier to analyse for the compiler.
    """

    def __init__(
        self,
        m_tiles: Index,
        n_tiles: Index,
        wave_size: Index | None = None,
        index: Index | None = None,
        group_size: int = 8,
    ) -> None: ...
    def valid(self) -> Value:
        """Return whether there is a current tile."""

    @property
    def m_idx(self) -> Value:
        """The row of the current tile."""

    @property
    def n_idx(self) -> Value:
        """The column of the current tile."""

    def next_tile(self) -> None:
        """Go on to the next tile of this block."""

def annotate_layout(layouts: Mapping[Buffer, LayoutMap | Callable[..., object]]) -> None:
    """Give buffers a layout: ``T.annotate_layout({A_shared: make_swizzled_layout(A_shared)})``.

    Raises
    ------
    BadAnnotation
        If a key is not a buffer, a buffer already has a layout or has runtime extents, the shapes differ, or a
        tensor's layout gives anything but places in memory.
    LayoutError
        If two elements would share an address, or a function cannot locate an element at run time.
    LayoutUnsupported
        If a tensor's layout has gaps.
    """

def annotate_safe_value(values: Mapping[Buffer, Scalar]) -> None:
    """Set the value of out-of-range reads of tensors instead of 0: ``T.annotate_safe_value({A: -1.0})``.

    Values are Python numbers, or constants of the language such as ``-T.infinity("float32")``.
    """

def annotate_l2_hit_ratio(ratios: Mapping[Buffer, float]) -> None:
    """Set the fraction of a tensor to keep in the last-level cache; a hint."""

def use_swizzle(panel_size: int, order: str = "row", enable: bool = True) -> None:
    """Rasterize blocks in panels for better cache use; a hint without effect on results.

    Parameters
    ----------
    panel_size
        Blocks per panel, at least 1.
    order
        ``"row"`` or ``"column"``.
    enable
        ``False``: no effect.
    """

def alloc_shared(shape: Sequence[int], dtype: DTypeLike, scope: str = "shared.dyn") -> Buffer:
    """Allocate a buffer that the threads of a block share.

    Parameters
    ----------
    shape
        Positive Python ints.
    dtype
        Element type.
    scope
        ``"shared"`` or ``"shared.dyn"``, which mean the same.

    Raises
    ------
    BadShape
        If an extent is not static and positive.
    """

def alloc_fragment(shape: Sequence[int], dtype: DTypeLike, scope: str = "local.fragment") -> Buffer:
    """Allocate a tile in registers, distributed over a block's threads by its layout."""

def alloc_local(shape: Sequence[int], dtype: DTypeLike, scope: str = "local") -> Buffer:
    """Allocate a small array private to each thread (or iteration of a parallel loop)."""

def alloc_var(dtype: DTypeLike, *args: Scalar | str, init: Scalar | None = None, scope: str = "local.var") -> Any:
    """Allocate a scalar variable: assigning to its name stores to it.

    Parameters
    ----------
    dtype
        Element type.
    *args, init
        The first value: ``T.alloc_var("float32", 0)`` or ``init=0``. Without it the variable starts at zero.
    scope
        Accepted for other dialects' kernels.
    """

def alloc_global(shape: Sequence[Index], dtype: DTypeLike, scope: str = "global") -> Buffer:
    """Allocate a workspace: a tensor that the runtime allocates for every call, beside the arguments.

    Parameters
    ----------
    shape
        Extents, as those of ``T.Tensor``: Python ints, sizes of the parameters, arithmetic on them.
    dtype
        Element type.
    scope
        Accepted for other dialects' kernels.

    Raises
    ------
    WorkspaceInside
        Inside a launch: all its blocks share the workspace.

    Notes
    -----
    It holds nothing at first, lives until the last launch of the call has finished, and is not shared between calls.
    """

def serial(
    start: Index, stop: Index | None = None, step: int = 1, *, annotations: Mapping[str, object] | None = None
) -> Iterable[Value]:
    """Iterate sequentially: ``for i in T.serial(n)``, ``T.serial(start, stop, step)``.

    Parameters
    ----------
    start, stop
        Bounds as for ``range``: Python ints or runtime integers.
    step
        A Python int other than 0; negative steps count down.
    annotations
        A dict of hints of other dialects, without effect.

    Raises
    ------
    BadLoop
        If a bound is not an integer, or the step not a Python int.
    """

@overload
def Parallel(
    x: Index, /, *, coalesced_width: int | None = None, loop_layout: None = None, **hints: object
) -> Iterable[Value]:
    """Iterate over a domain of independent iterations, in any order or in parallel.

    Parameters
    ----------
    *extents
        One per dimension: Python ints or runtime integers.
    coalesced_width
        Elements per vector access that the lowering should try; a hint.
    loop_layout
        Refused: loops follow the layouts of the tiles that they access (`T.annotate_layout`).
    **hints
        ``annotations`` and ``prefer_async`` of other dialects; no effect on the meaning.

    Raises
    ------
    BadLoop
        If there are no extents, or one is negative or not an integer.
    BadArgument
        If a loop layout is given, or a hint is invalid.
    """

@overload
def Parallel(
    x: Index, y: Index, /, *, coalesced_width: int | None = None, loop_layout: None = None, **hints: object
) -> Iterable[tuple[Value, Value]]: ...
@overload
def Parallel(
    x: Index, y: Index, z: Index, /, *, coalesced_width: int | None = None, loop_layout: None = None, **hints: object
) -> Iterable[tuple[Value, Value, Value]]: ...
@overload
def Parallel(
    *extents: Index | Sequence[Index], coalesced_width: int | None = None, loop_layout: None = None, **hints: object
) -> Iterable[Any]: ...
def Pipelined(
    start: Index, stop: Index | None = None, num_stages: int = 0, order: Any = None, stage: Any = None, **hints: object
) -> Iterable[Value]:
    """Iterate as a software pipeline: loads of later iterations overlap the work of earlier ones.

    Parameters
    ----------
    start, stop
        Bounds: Python ints or runtime integers.
    num_stages
        Iterations in flight: a Python int of at least 0; 0 and 1 mean no overlap. A loop with barriers of the program
        is serial.
    order, stage
        Schedule per statement of the body; hints.
    **hints
        ``sync`` and ``group`` of other dialects; no effect on the meaning.
    """

def unroll(
    start: Index, stop: Index | None = None, step: int = 1, *, explicit: bool = False, unroll_factor: int | None = None
) -> Iterable[Value]:
    """Iterate sequentially, with the loop unrolled.

    The bounds are Python ints, unless ``unroll_factor`` is given.
    """

def vectorized(
    start: Index, stop: Index | None = None, *, annotations: Mapping[str, object] | None = None
) -> Iterable[Value]:
    """Iterate with vector instructions: the iterations are independent, the bounds Python ints."""

@overload
def grid(x: Index, /) -> Iterable[Value]:
    """Iterate sequentially over several dimensions, the last one fastest."""

@overload
def grid(x: Index, y: Index, /) -> Iterable[tuple[Value, Value]]: ...
@overload
def grid(x: Index, y: Index, z: Index, /) -> Iterable[tuple[Value, Value, Value]]: ...
@overload
def grid(*extents: Index | Sequence[Index]) -> Iterable[Any]: ...
def static_range(*bounds: int) -> range:
    """Return Python's ``range``: the body is traced once per iteration, with Python ints."""

def print(*items: object, msg: str = "", sep: str = " ", end: str = "\n") -> None:
    """Print runtime scalars, text and whole tiles from the device.

    Each text begins with its line, the block, the iterations of the loops around, and on targets with threads, or where
    the kernel names its threads, the thread: ``"gemm.py:31 block (2, 0), k 1, thread 17: "``.

    Parameters
    ----------
    *items
        Text, numbers, scalars, and buffers or slices, which print as their elements.
    msg
        Prefix.
    sep, end
        As in Python; output of different threads is not ordered.
    """

def device_assert(condition: Scalar, msg: str = "") -> None:
    """Stop the kernel with a message if a runtime condition is false.

    The message names the line, the block and the iterations as those of ``T.print`` do.

    Parameters
    ----------
    condition
        A runtime value; a Python condition is checked while tracing.
    msg
        Text of the message.
    """

def assume(condition: Scalar) -> None:
    """Assume that a condition holds; the compiler relies on it without a check."""

def if_then_else(condition: Scalar, yes: Any, no: Any) -> Any:
    """Return ``yes`` or ``no``; only the chosen side is evaluated."""

def Select(condition: Scalar, yes: Any, no: Any) -> Any:
    """Return ``yes`` or ``no``; both sides are evaluated."""

def where(condition: Scalar, yes: Any, no: Any) -> Any:
    """Return elements of ``yes`` where ``condition`` holds, else of ``no``, with broadcasting.

    Both sides are computed everywhere, as in NumPy.
    """

def any_of(*items: object) -> Any:
    """Return whether an element of a buffer, slice or list is true (not zero)."""

def all_of(*items: object) -> Any:
    """Return whether all elements of a buffer, slice or list are true (not zero)."""

def copy(
    src: Tile, dst: Tile, *, coalesced_width: int | None = None, variant: str | None = None, **hints: object
) -> None:
    """Copy a tile: ``dst[...] = src[...]``, converted to the element type of ``dst``.

    Parameters
    ----------
    src, dst
        A buffer, a slice, or one element, which is the corner of a tile whose extents come from the other side.
        Any two scopes. Extents of 1 are left out when shapes are compared.
    coalesced_width
        Elements per vector access that the lowering should try; a hint, never an error.
    variant
        Name of the lowering variant to force.
    **hints
        ``disable_tma``, ``eviction_policy``: hints that a target may follow. ``loop_layout`` is refused.

    Raises
    ------
    NotATile, RuntimeExtent, ShapesDiffer, BadAttribute
        If the operands do not describe two tiles of one static shape; for a variant that is no name.

    Notes
    -----
    Elements of ``src`` outside its buffer read as zero (or the buffer's safe value); writes outside are dropped. Where
    both sides overlap, all of ``src`` is read before ``dst`` is written.

    Examples
    --------
    >>> T.copy(A[0, 0], S)
    """

def fill(dst: Tile, value: Scalar) -> None:
    """Set every element of a tile.

    Parameters
    ----------
    dst
        A buffer, a slice or an element, in any scope.
    value
        A number or a runtime scalar; it is converted to the element type of ``dst``.

    Raises
    ------
    NotATile, RuntimeExtent, ConstantDoesNotFit
        If ``dst`` is not a tile of static extents, or its type cannot hold the constant.

    Examples
    --------
    >>> T.fill(F, 1.0)
    """

def clear(dst: Tile) -> None:
    """Set every element of a tile to zero (see ``fill``).

    Examples
    --------
    >>> T.clear(F)
    """

def transpose(src: Tile, dst: Tile) -> None:
    """Transpose the last two dimensions: ``dst[..., j, i] = src[..., i, j]``.

    Parameters
    ----------
    src, dst
        Tiles of at least two dimensions; leading dimensions are batches and must be equal.

    Raises
    ------
    ShapesDiffer
        If the shapes do not fit. Extents of 1 count here.

    Examples
    --------
    >>> T.transpose(S, F)
    """

def reshape(buffer: Buffer, shape: Sequence[int] | int) -> Buffer:
    """Return the buffer with another shape and the same row-major order of elements (see ``view``).

    Examples
    --------
    >>> R = T.reshape(S, (32, 128))
    """

def view(buffer: Buffer, shape: Sequence[int] | int | None = None, dtype: DTypeLike = None) -> Buffer:
    """Return a buffer that shares storage with another.

    Parameters
    ----------
    buffer
        A whole buffer in any scope; a tensor parameter must be contiguous.
    shape
        New extents; the default keeps all but the last, which is rescaled to the new element width.
    dtype
        New element type; the bytes keep their values.

    Returns
    -------
    Buffer
        Writing through either name is seen by the other.

    Raises
    ------
    ViewSize
        If the storage sizes differ.
    ViewOfPart
        If ``buffer`` is a slice, a variable, a strided tensor, or has elements smaller than a byte.

    Examples
    --------
    >>> bits = T.view(S, dtype="uint32")
    """

def gather(src: Tile, rows: Tile | Sequence[int], dst: Tile) -> None:
    """Copy rows: ``dst[i, ...] = src[rows[i], ...]``.

    Parameters
    ----------
    src
        Buffer or slice of at least two dimensions whose first is the row; or a corner ``src[0, column]``, whose
        columns come from ``dst``.
    rows
        Row numbers, relative to ``src``: a 1-D buffer or slice of integers of any length, or a list of Python ints.
    dst
        Tile of shape (len(rows), columns...).

    Raises
    ------
    RowsOperand, ShapesDiffer, NotATile, RuntimeExtent
        If the operands do not fit together.

    Notes
    -----
    A row outside ``src`` (negative ones too) reads as zero.

    Examples
    --------
    >>> T.gather(A, n, F)
    """

def scatter(src: Tile, dst: Tile, rows: Tile | Sequence[int]) -> None:
    """Write rows: ``dst[rows[i], ...] = src[i, ...]`` (see ``gather``).

    Notes
    -----
    A row outside ``dst`` is dropped. Rows are written in the order of ``rows``: the last of equal ones in one call
    wins; a constant list with equal ones is refused.

    Examples
    --------
    >>> T.scatter(F, B, n)
    """

def c2d_im2col(
    img: Tile,
    col: Tile,
    nhw_step: Index,
    c_step: Index,
    kernel: int,
    stride: int,
    dilation: int,
    pad: int,
    **hints: object,
) -> None:
    """Gather a tile of convolution windows.

    ``col[i, j]`` is the input that output pixel ``m = nhw_step * rows + i`` multiplies with filter element
    ``k = c_step * cols + j``, where (rows, cols) is the shape of ``col``, output pixels are numbered in (n, oh, ow)
    order and filter elements in (kh, kw, c) order; zero outside the image.

    Parameters
    ----------
    img
        Input of shape (N, H, W, C).
    col
        Tile of two dimensions.
    nhw_step, c_step
        Tile coordinates, ints or runtime ints.
    kernel, stride, dilation, pad
        Of a square filter, in pixels.

    Raises
    ------
    BadAttribute
        If the parameters do not describe a convolution.

    Examples
    --------
    >>> T.c2d_im2col(image, S, 0, 0, kernel=2, stride=1, dilation=1, pad=0)
    """

im2col = c2d_im2col

def gemm(
    A: Tile,
    B: Tile,
    C: Tile,
    transpose_A: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square,
    clear_accum: Scalar = False,
    k_pack: int = 1,
    wg_wait: int = 0,
    *,
    variant: str | None = None,
    **hints: object,
) -> None:
    """Multiply tiles: ``C += A @ B``, or ``C = A @ B`` with ``clear_accum``.

    Parameters
    ----------
    A
        Tile of shape (M, K), or (K, M) with ``transpose_A``.
    B
        Tile of shape (K, N), or (N, K) with ``transpose_B``.
    C
        Accumulator tile of shape (M, N) in a fragment or in shared memory.
    policy, k_pack, wg_wait
        Scheduling hints; they never change the result.
    clear_accum
        A bool or a runtime ``bool``: start from zero instead of ``C``.
    variant
        Name of the lowering variant to force.

    Raises
    ------
    GemmShape, GemmTypes, NotATile, RuntimeExtent
        If shapes or element types do not fit together.

    Notes
    -----
    Products and accumulators are computed in the element type of ``C`` or wider, in any order. Types: floats of any
    width (mixed too) into ``float16``, ``bfloat16``, ``float32`` or ``float64``; integers (signs mixed too) into
    integers of 32 or 64 bits, which wrap. ``float64`` inputs need a ``float64`` accumulator.

    Examples
    --------
    >>> T.gemm(H, H, F, transpose_B=True)
    """

gemm_v2 = gemm

from tile_core.ops.gemm import GemmWarpPolicy as GemmWarpPolicy

def gemm_sp(
    A_sparse: Tile,
    E: Tile,
    B: Tile,
    C: Tile,
    transpose_A: bool = False,
    transpose_E: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square,
    clear_accum: Scalar = False,
    k_pack: int = 1,
    wg_wait: int = 0,
    *,
    variant: str | None = None,
    **hints: object,
) -> None:
    """Multiply a 2:4 sparse tile by a dense one: ``C += decompress(A_sparse, E) @ B``.

    Parameters
    ----------
    A_sparse
        Kept values, of shape (M, K / 2), or (K / 2, M) with ``transpose_A``.
    E
        Metadata of ``int8``, ``int16`` or ``int32`` (signed or not), of shape (M, K / e), or (K / e, M) with
        ``transpose_E``, where one element describes ``e`` elements of K: ``bits / 4`` groups of 4 elements (of 2 for
        32-bit types), lowest group in the lowest nibble. ``T.annotate_layout`` gives the positions of elements if not
        in row-major order.
    B
        Dense tile of shape (K, N), or (N, K) with ``transpose_B``.
    C
        Accumulator tile of shape (M, N).
    policy, clear_accum, k_pack, wg_wait, variant
        As for ``T.gemm``.

    Raises
    ------
    SparseShape, BadElementType, GemmTypes, NotATile, RuntimeExtent
        If shapes or element types do not fit together.

    Examples
    --------
    >>> T.gemm_sp(values, meta, H, F)
    """

gemm_sp_v2 = gemm_sp

def gemm_scaled(
    A: Tile,
    A_scale: Tile,
    B: Tile,
    B_scale: Tile,
    C: Tile,
    transpose_A: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square,
    clear_accum: Scalar = False,
    *,
    A_format: str | None = None,
    B_format: str | None = None,
    variant: str | None = None,
    **hints: object,
) -> None:
    """Multiply tiles with block scales: ``C += (A * A_scale) @ (B * B_scale)``.

    Parameters
    ----------
    A
        Tile of shape (M, K), or (K, M) with ``transpose_A``, of 8-bit floats, ``float4_e2m1fn``, or ``A_format``.
    A_scale
        Tile of shape (M, K / block), or (K / block, M) with ``transpose_A``, of ``float8_e8m0fnu`` or
        ``float8_e4m3fn``: element (i, b) multiplies the elements b * block to (b + 1) * block - 1 of row i of A.
    B
        Tile of shape (K, N), or (N, K) with ``transpose_B``, of such a type.
    B_scale
        Tile of shape (K / block, N), or (N, K / block) with ``transpose_B``, of the type and the block of ``A_scale``.
    C
        Accumulator tile of shape (M, N) of ``float32``, ``float16`` or ``bfloat16``.
    policy, clear_accum, variant
        As for ``T.gemm``.
    A_format, B_format
        The type of elements that ``uint8`` holds. Two of ``float4_e2m1fn`` share a byte along the last dimension, the
        first in its low half.

    Raises
    ------
    ScaleShape
        If the scales have no such shape, or blocks of different length, or K is no multiple of a block.
    BadElementType, GemmTypes, GemmShape, NotATile, RuntimeExtent
        If element types or shapes do not fit.

    Notes
    -----
    A scale is a magnitude: its sign does not count. A NaN scale makes the results of its row or column NaN.
    Accumulators are ``float32`` or wider, added in any order. The product of two scales is exact, beyond ``float32``.

    Examples
    --------
    >>> x, s = T.alloc_shared((64, 64), "float8_e4m3fn"), T.alloc_shared((64, 2), "float8_e8m0fnu")
    >>> T.copy(A, x)
    >>> T.fill(s, 0.5)
    >>> T.gemm_scaled(x, s, x, s, F, transpose_B=True)  # a scale for 32 elements
    """

def fp8_scaled_matmul(
    A: Tile,
    A_scale: Tile | float,
    B: Tile,
    B_scale: Tile | float,
    C: Tile,
    transpose_B: bool = False,
    *,
    A_format: str | None = None,
    B_format: str | None = None,
) -> None:
    """Multiply scaled 8-bit floats: ``C[i,j] = sum_k A[i,k] * B[k,j] * sA * sB``.

    Parameters
    ----------
    A
        Tile of shape (M, K) of an 8-bit float type, in any scope; or of ``uint8`` with ``A_format``.
    A_scale
        One scale (a tile of one element), one per row (M), or one per row and block of K, of shape (M, K / block).
    B
        Tile of shape (K, N), or (N, K) with ``transpose_B``; or of ``uint8`` with ``B_format``.
    B_scale
        One scale, one per column (N), or one per block of K and column: (K / block, N), or (N, K / block) with
        ``transpose_B``.
    C
        Destination of shape (M, N) of ``float32``, ``float16`` or ``bfloat16``.
    A_format, B_format
        The 8-bit float type that ``uint8`` storage holds.

    Raises
    ------
    Fp8Operand
        If A, B or C has another element type, or a format is missing. Also a ``TypeError``.
    ScaleShape
        If a scale has none of the shapes above, or both have blocks of different length.
    GemmShape, NotATile, RuntimeExtent
        If shapes do not fit together.

    Notes
    -----
    Accumulators are ``float32``. A scale of 0, Inf or NaN acts as in ``float32``: 0 times a finite value is 0, 0 times
    Inf is NaN. The product of two scales of ``float8_e8m0fnu`` is exact. The result is rounded once to the type of C.

    Examples
    --------
    >>> T.fp8_scaled_matmul(codes, scale, codes, scale, B, A_format="float8_e4m3fn", B_format="float8_e5m2")
    """

def dp4a(A: Tile, B: Tile, C: Tile) -> None:
    """Accumulate ``C[0] += A[0] * B[0] + … + A[3] * B[3]``.

    Parameters
    ----------
    A, B
        ``int8`` or ``uint8`` buffers or elements: four adjacent elements from there are used.
    C
        An ``int32`` (or ``uint32``) element.

    Raises
    ------
    BadElementType
        For other element types.

    Examples
    --------
    >>> T.dp4a(bytes[0, 0:4], bytes[1, 0:4], n[0:1])
    """

def alloc_reducer(shape: Sequence[int], dtype: DTypeLike, op: str = "sum", replication: str | None = None) -> Buffer:
    """Allocate a tile that threads combine into; ``T.finalize_reducer`` completes it.

    Parameters
    ----------
    shape, dtype
        As for ``alloc_fragment``.
    op
        How partial results are combined: ``"sum"``, ``"max"``, ``"min"``; of integers ``"bitand"``, ``"bitor"``,
        ``"bitxor"``. Elements start at its neutral value.
    replication
        ``"all"``, ``"none"`` or ``None``: whether every thread keeps partial results; a hint.
    """

def reducer_init(reducer: Buffer) -> None:
    """Begin an epoch: every element becomes the neutral value of the reducer's operation.

    Raises
    ------
    BadAttribute
        For anything else than a ``T.alloc_reducer`` buffer.
    """

def reducer_update(element: Value, value: Scalar) -> None:
    """Combine an element of a reducer with a value, by the reducer's operation.

    Parameters
    ----------
    element
        One element: ``total[i]``.
    value
        A scalar, converted to the reducer's type; a sum is computed as ``total[i] += value`` is.

    Raises
    ------
    BadAttribute
        For anything else than an element of a ``T.alloc_reducer`` buffer.
    """

def finalize_reducer(reducer: Tile, dst: Tile | int | None = None, batch: int = 1) -> None:
    """End an epoch: combine the partial results, so that the reducer holds the whole result.

    Parameters
    ----------
    reducer
        The ``alloc_reducer`` buffer.
    dst
        A tile that the result is copied to as well.
    batch
        How many elements the threads exchange at a time: a hint, an int of at least 1.

    Raises
    ------
    BadAttribute
        For anything else than a ``T.alloc_reducer`` buffer.
    """

def reduce_sum(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, **hints: object) -> None:
    """Sum a tile along a dimension: ``out[i] = sum_k buffer[i, k]``; ``clear=False`` adds to ``out``.

    Parameters
    ----------
    buffer
        Source tile, any scope and width.
    out
        Destination without the dimension, or with extent 1 there.
    dim
        The dimension to reduce; negative ones count from the end.
    clear
        Start from the neutral element instead of from ``out``.

    Raises
    ------
    BadDim, BadDestination, BadElementType, NotATile, RuntimeExtent
        If operands and dimension do not fit together.

    Notes
    -----
    The order of additions is not specified; ``float16`` and ``bfloat16`` accumulate in ``float32``, integers wrap.

    Examples
    --------
    >>> T.reduce_sum(F, v, dim=1)
    """

def reduce_max(
    buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, nan_propagate: bool = False, **hints: object
) -> None:
    """Largest element along a dimension; NaN is left out, or wins with ``nan_propagate`` (see ``reduce_sum``)."""

def reduce_min(
    buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, nan_propagate: bool = False, **hints: object
) -> None:
    """Smallest element along a dimension; NaN is left out, or wins with ``nan_propagate`` (see ``reduce_sum``)."""

def reduce_abssum(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, **hints: object) -> None:
    """Sum of absolute values along a dimension (see ``reduce_sum``)."""

def reduce_absmax(
    buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, nan_propagate: bool = False, **hints: object
) -> None:
    """Largest absolute value along a dimension (see ``reduce_max``)."""

def reduce_bitand(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, **hints: object) -> None:
    """Bitwise and along a dimension of integers or bools (see ``reduce_sum``).

    Examples
    --------
    >>> T.reduce_bitand(n, n[0:1])
    """

def reduce_bitor(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, **hints: object) -> None:
    """Bitwise or along a dimension of integers or bools (see ``reduce_sum``).

    Examples
    --------
    >>> T.reduce_bitor(n, n[0:1])
    """

def reduce_bitxor(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, **hints: object) -> None:
    """Bitwise exclusive or along a dimension of integers or bools (see ``reduce_sum``).

    Examples
    --------
    >>> T.reduce_bitxor(n, n[0:1])
    """

def reduce_prod(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, **hints: object) -> None:
    """Product along a dimension, of no particular order; accumulates as ``reduce_sum`` does, which see.

    Examples
    --------
    >>> T.reduce_prod(F, v, dim=1)
    """

def reduce_any(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, **hints: object) -> None:
    """Whether any element along a dimension is non-zero: bool, or 1 and 0 of integers.

    A NaN is not zero, and -0 is zero. With ``clear=False`` the destination takes part, as one more element.

    Examples
    --------
    >>> T.reduce_any(F, n, dim=1)
    """

def reduce_all(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, **hints: object) -> None:
    """Whether all elements along a dimension are non-zero: bool, or 1 and 0 of integers.

    See ``reduce_any``.
    """

def reduce(buffer: Tile, out: Tile, kind: str, dim: int = -1, clear: bool = True, nan_propagate: bool = False) -> None:
    """Reduce with the kind given by name (``"sum"``, ``"max"``, …; see ``reduce_sum``).

    Examples
    --------
    >>> T.reduce(F, v, "max", dim=1)
    """

def reduce_with(
    function: Callable[..., object],
    src: Tile | Sequence[Tile],
    dst: Tile | Sequence[Tile],
    dim: int = -1,
    *,
    identity: Scalar | Sequence[Scalar],
) -> None:
    """Reduce along a dimension with a function: ``dst[i] = function(function(src[i, 0], src[i, 1]), …)``.

    Parameters
    ----------
    function
        Of two values, which returns one. With several tiles, of two tuples of values, and it returns a tuple. It is
        associative and commutative: elements are combined in any order. It may use values of the kernel, such as scalar
        parameters; it stores nothing.
    src
        A tile, or a tuple of tiles of one shape.
    dst
        A tile without the dimension, or with extent 1 there, or a tuple of them. An element of ``src`` is converted to
        the element type of its destination, which has at least 16 bits if it is a float.
    dim
        The dimension to reduce; negative ones count from the end.
    identity
        A number, or a tuple of them, with ``function(identity, x) == x`` for all ``x``: what parts of a tile that are
        empty count as. It is not checked.

    Raises
    ------
    BadFunction, BadDim, BadDestination, BadElementType, BadAttribute, ShapesDiffer, NotATile, RuntimeExtent
        If function and operands do not fit together.

    Examples
    --------
    >>> T.reduce_with(lambda a, b: T.max(T.abs(a), T.abs(b)), F, v, dim=1, identity=0)
    """

def scan_with(
    function: Callable[..., object],
    src: Tile | Sequence[Tile],
    dst: Tile | Sequence[Tile] | None = None,
    dim: int = 0,
    reverse: bool = False,
    *,
    identity: Scalar | Sequence[Scalar],
) -> None:
    """Inclusive scan with a function along a dimension.

    ``dst[.., i, ..]`` combines ``src[.., 0, ..]`` to ``src[.., i, ..]``.

    The function must be associative; it need not be commutative, its first argument is what comes first. See
    ``reduce_with`` for it and for ``identity``, and ``cumsum`` for the other parameters.

    Examples
    --------
    >>> T.scan_with(lambda a, b: T.if_then_else(b != 0, b, a), S, dim=1, identity=0)
    """

def argmax(src: Tile, dst: Tile, dim: int = -1) -> None:
    """Index of the largest element along a dimension, the lowest of equal ones.

    Parameters
    ----------
    src
        Source tile, of any element type.
    dst
        Destination of integers of 32 or 64 bits, without the dimension or with extent 1 there.
    dim
        The dimension; negative ones count from the end.

    Raises
    ------
    BadDim, BadDestination, BadElementType, NotATile, RuntimeExtent
        If the operands do not fit together.

    Notes
    -----
    As in NumPy, the first NaN wins over all numbers, and -0 and +0 are equal.

    Examples
    --------
    >>> T.argmax(F, n, dim=1)
    """

def argmin(src: Tile, dst: Tile, dim: int = -1) -> None:
    """Index of the smallest element along a dimension, ties resolved as in ``argmax``.

    Examples
    --------
    >>> T.argmin(F, n, dim=1)
    """

def topk(src: Tile, values: Tile, indices: Tile, dim: int = -1, largest: bool = True) -> None:
    """Find the ``k`` largest elements along a dimension, the largest first, and their indices.

    Parameters
    ----------
    src
        Source tile, of any element type.
    values
        Destination for the elements, of the type of ``src`` and of its shape but for ``dim``, which has extent ``k``.
    indices
        Destination for their indices along ``dim``: integers of 32 or 64 bits, in the shape of ``values``.
    dim
        The dimension; negative ones count from the end.
    largest
        Find the smallest elements instead, the smallest first, if ``False``.

    Raises
    ------
    BadDim, BadAttribute, BadElementType, ShapesDiffer, NotATile, RuntimeExtent
        If the operands do not fit together.

    Notes
    -----
    Of equal elements those with the lowest indices come first; -0 and +0 are equal. NaN is larger than all numbers, as
    in sorted arrays of NumPy. The source is looked through ``k`` times.

    Examples
    --------
    >>> T.topk(v, scale[0:8], n[0:8])
    """

def sort(src: Tile, dst: Tile | None = None, dim: int = -1, descending: bool = False) -> None:
    """Sort along one dimension.

    Parameters
    ----------
    src, dst
        Tiles of one shape and element type; ``dst`` defaults to ``src``.
    dim
        The dimension; negative ones count from the end.
    descending
        Put the largest element first.

    Raises
    ------
    BadDim, BadElementType, ShapesDiffer, ScopeNotAllowed, NotATile, RuntimeExtent
        If the operands do not fit together, are private to a thread, or the statement is in a parallel loop.

    Notes
    -----
    NaN is larger than all numbers, as in NumPy, and -0 is smaller than +0. Of a NaN, sign and payload are lost. The
    tile is also held in shared memory, its extent along ``dim`` rounded up to a power of two.

    Examples
    --------
    >>> T.sort(S, dim=1)
    """

def logsumexp(src: Tile, dst: Tile, dim: int = -1) -> None:
    """Logarithm of the sum of exponentials along a dimension: ``dst[i] = log(sum_k exp(src[i, k]))``.

    Parameters
    ----------
    src
        Source tile of floats of 16 bits or more.
    dst
        Destination of such floats, without the dimension or with extent 1 there.
    dim
        The dimension; negative ones count from the end.

    Raises
    ------
    BadDim, BadDestination, BadElementType, NotATile, RuntimeExtent
        If the operands do not fit together.

    Notes
    -----
    The largest element is taken out of the sum first, so that nothing overflows. A line of -infinity gives -infinity,
    one with +infinity +infinity, one with NaN NaN. It is computed in ``float32``, in ``float64`` where an operand is.

    Examples
    --------
    >>> T.logsumexp(F, v, dim=1)
    """

def cumsum(src: Tile, dst: Tile | None = None, dim: int = 0, reverse: bool = False) -> None:
    """Inclusive prefix sum along ``dim``.

    ``dst[.., i, ..] = src[.., 0, ..] + … + src[.., i, ..]``.

    Parameters
    ----------
    src, dst
        Tiles of one shape, in any scopes; ``dst`` defaults to ``src``.
    dim
        The dimension to scan; negative ones count from the end.
    reverse
        Sum from the end instead.

    Raises
    ------
    BadDim, BadElementType, ShapesDiffer, NotATile, RuntimeExtent
        If operands and dimension do not fit together.

    Examples
    --------
    >>> T.cumsum(S, dim=1)
    """

def cumprod(src: Tile, dst: Tile | None = None, dim: int = 0, reverse: bool = False) -> None:
    """Inclusive prefix product along ``dim`` (see ``cumsum``)."""

def cummax(
    src: Tile, dst: Tile | None = None, dim: int = 0, reverse: bool = False, nan_propagate: bool = False
) -> None:
    """Inclusive prefix maximum along ``dim`` (see ``cumsum``); NaN is left out, or stays with ``nan_propagate``."""

def atomic_add(
    dst: Tile, value: Scalar | Tile, memory_order: str | None = None, return_prev: bool = False, **hints: object
) -> Any:
    """Add atomically: ``dst += value``.

    Parameters
    ----------
    dst
        An element, or a tile (then ``value`` is a tile of its shape, or a scalar for all elements).
    value
        Converted to the element type of ``dst``.
    memory_order
        One of ``relaxed consume acquire release acq_rel seq_cst`` (default ``relaxed``).
    return_prev
        Return the element's previous value (elements only).

    Raises
    ------
    NotAnElement, BadElementType, BadAttribute, ShapesDiffer
        If the operands do not fit.

    Examples
    --------
    >>> T.atomic_add(n[0], 1)
    """

def atomic_max(dst: Tile, value: Scalar | Tile, memory_order: str | None = None, return_prev: bool = False) -> Any:
    """Atomically replace ``dst`` by the larger of it and ``value``, ignoring NaN.

    See ``atomic_add``.
    """

def atomic_min(dst: Tile, value: Scalar | Tile, memory_order: str | None = None, return_prev: bool = False) -> Any:
    """Atomically replace ``dst`` by the smaller of it and ``value``, ignoring NaN.

    See ``atomic_add``.
    """

def atomic_and(dst: Tile, value: Scalar | Tile, memory_order: str | None = None, return_prev: bool = False) -> Any:
    """Atomically keep the bits of ``dst`` that ``value`` has too; of integers (see ``atomic_add``)."""

def atomic_or(dst: Tile, value: Scalar | Tile, memory_order: str | None = None, return_prev: bool = False) -> Any:
    """Atomically set the bits of ``dst`` that ``value`` has; of integers (see ``atomic_add``)."""

def atomic_xor(dst: Tile, value: Scalar | Tile, memory_order: str | None = None, return_prev: bool = False) -> Any:
    """Atomically turn the bits of ``dst`` that ``value`` has; of integers (see ``atomic_add``)."""

def atomic_addx2(dst: Tile, value: Tile, return_prev: bool = False) -> None:
    """Add two adjacent elements, each atomically: ``dst[..., i + l] += value[..., j + l]``.

    Examples
    --------
    >>> T.atomic_addx2(scale[0:2], v[0:2])
    """

def atomic_addx4(dst: Tile, value: Tile, return_prev: bool = False) -> None:
    """Add four adjacent elements (see ``atomic_addx2``).

    Examples
    --------
    >>> T.atomic_addx4(scale[0:4], v[0:4])
    """

def atomic_load(src: Tile, memory_order: str | None = None) -> Value:
    """Load an element atomically.

    Parameters
    ----------
    src
        An element.
    memory_order
        One of ``relaxed consume acquire seq_cst`` (default ``relaxed``, which every target has). A load that waits for
        data of another block needs ``acquire``.

    Raises
    ------
    NotAnElement, BadElementType, BadAttribute
        If the operands do not fit.

    Examples
    --------
    >>> first = T.atomic_load(n[0], memory_order="relaxed")
    """

def atomic_store(dst: Tile, value: Scalar, memory_order: str | None = None) -> None:
    """Store an element atomically.

    Parameters
    ----------
    dst
        An element.
    value
        Converted to the element type of ``dst``.
    memory_order
        One of ``relaxed release seq_cst`` (default ``relaxed``, which every target has). A store that makes
        earlier writes visible to another block needs ``release``.

    Raises
    ------
    NotAnElement, BadElementType, BadAttribute
        If the operands do not fit.

    Examples
    --------
    >>> T.atomic_store(n[0], 1, memory_order="relaxed")
    """

def cast(
    value: Scalar, dtype: DTypeLike, round: str | None = None, sat: bool | None = None, rbits: Scalar | None = None
) -> Value:
    """Return ``value`` as ``dtype``: rounded to nearest even; integers wrap.

    A float becomes the nearest integer of the type towards zero, NaN becomes 0, for Python's floats too.

    Parameters
    ----------
    round
        ``"rn"`` to nearest, ties to even; ``"rz"`` towards zero; ``"ru"`` up; ``"rd"`` down; ``"rs"`` up or down at
        random, by ``rbits``: the magnitude is rounded up with the probability of the fraction that is dropped. By
        default towards zero to integers, to nearest to floats.
    sat
        Whether values that are too large, infinities too, become the largest number of the type, and integers its
        limits. NaN stays NaN. Floats always saturate in integers.
    rbits
        For ``"rs"`` an integer of 32 random bits, such as ``T.philox(seed, i)[0]``.

    Raises
    ------
    BadArgument
        For an unknown mode; ``"rs"`` without ``rbits`` or of a Python number; a mode between integers; one but
        ``"rn"`` from integers of more than 16 bits to floats; ``sat=False`` from a float to an integer.
    """

def reinterpret(value: Scalar | DTypeLike, dtype: DTypeLike | Scalar) -> Value:
    """Return the bits of ``value`` as ``dtype`` of equal width.

    ``reinterpret(dtype, value)`` works too.

    Raises
    ------
    BadArgument
        If the widths differ, or one of them is ``bool``.
    """

def infinity(dtype: DTypeLike) -> Value:
    """Return the infinity of a float type."""

def max_value(dtype: DTypeLike) -> Value:
    """Return the greatest finite value of a type."""

def min_value(dtype: DTypeLike) -> Value:
    """Return the least finite value of a type: for floats the largest negative one."""

def exp(x: Scalar) -> Any:
    """Return e to the power ``x``, as a float of the type of ``x``; of Python numbers a Python float."""

def exp2(x: Scalar) -> Any:
    """Return 2 to the power ``x``, as a float of the type of ``x``; of Python numbers a Python float."""

def exp10(x: Scalar) -> Any:
    """Return 10 to the power ``x``, as a float of the type of ``x``; of Python numbers a Python float."""

def expm1(x: Scalar) -> Any:
    """Return ``exp(x) - 1``, accurate near 0, as a float of the type of ``x``; of Python numbers a Python float."""

def log(x: Scalar) -> Any:
    """Return the natural logarithm, as a float of the type of ``x``; of Python numbers a Python float."""

def log2(x: Scalar) -> Any:
    """Return the logarithm to base 2, as a float of the type of ``x``; of Python numbers a Python float."""

def log10(x: Scalar) -> Any:
    """Return the logarithm to base 10, as a float of the type of ``x``; of Python numbers a Python float."""

def log1p(x: Scalar) -> Any:
    """Return ``log(1 + x)``, accurate near 0, as a float of the type of ``x``; of Python numbers a Python float."""

def sqrt(x: Scalar) -> Any:
    """Return the square root, as a float of the type of ``x``; of Python numbers a Python float."""

def rsqrt(x: Scalar) -> Any:
    """Return ``1 / sqrt(x)``, as a float of the type of ``x``; of Python numbers a Python float."""

def cbrt(x: Scalar) -> Any:
    """Return the cube root, as a float of the type of ``x``; of Python numbers a Python float."""

def sin(x: Scalar) -> Any:
    """Return the sine of an angle in radians, as a float of the type of ``x``; of Python numbers a Python float."""

def cos(x: Scalar) -> Any:
    """Return the cosine of an angle in radians, as a float of the type of ``x``; of Python numbers a Python float."""

def tan(x: Scalar) -> Any:
    """Return the tangent of an angle in radians, as a float of the type of ``x``; of Python numbers a Python float."""

def asin(x: Scalar) -> Any:
    """Return the angle from -pi/2 to pi/2 whose sine is ``x``, as a float of the type of ``x``; of Python numbers a Python float."""

def acos(x: Scalar) -> Any:
    """Return the angle from 0 to pi whose cosine is ``x``, as a float of the type of ``x``; of Python numbers a Python float."""

def atan(x: Scalar) -> Any:
    """Return the angle from -pi/2 to pi/2 whose tangent is ``x``, as a float of the type of ``x``; of Python numbers a Python float."""

def sinh(x: Scalar) -> Any:
    """Return the hyperbolic sine, as a float of the type of ``x``; of Python numbers a Python float."""

def cosh(x: Scalar) -> Any:
    """Return the hyperbolic cosine, as a float of the type of ``x``; of Python numbers a Python float."""

def tanh(x: Scalar) -> Any:
    """Return the hyperbolic tangent, as a float of the type of ``x``; of Python numbers a Python float."""

def asinh(x: Scalar) -> Any:
    """Return the inverse hyperbolic sine, as a float of the type of ``x``; of Python numbers a Python float."""

def acosh(x: Scalar) -> Any:
    """Return the inverse hyperbolic cosine, as a float of the type of ``x``; of Python numbers a Python float."""

def atanh(x: Scalar) -> Any:
    """Return the inverse hyperbolic tangent, as a float of the type of ``x``; of Python numbers a Python float."""

def sigmoid(x: Scalar) -> Any:
    """Return ``1 / (1 + exp(-x))``, as a float of the type of ``x``; of Python numbers a Python float."""

def erf(x: Scalar) -> Any:
    """Return the error function, as a float of the type of ``x``; of Python numbers a Python float."""

def floor(x: Scalar) -> Any:
    """Return ``x`` rounded down to an integer, as a float of the type of ``x``; of Python numbers a Python float."""

def ceil(x: Scalar) -> Any:
    """Return ``x`` rounded up to an integer, as a float of the type of ``x``; of Python numbers a Python float."""

def trunc(x: Scalar) -> Any:
    """Return ``x`` rounded to an integer towards zero, as a float of the type of ``x``; of Python numbers a Python float."""

def nearbyint(x: Scalar) -> Any:
    """Return ``x`` rounded to the nearest integer, ties to even, as a float of the type of ``x``; of Python numbers a Python float."""

def rint(x: Scalar) -> Any:
    """Return ``x`` rounded to the nearest integer, ties to even, as a float of the type of ``x``; of Python numbers a Python float."""

def round(x: Scalar, mode: str = "rna") -> Any:
    """Return ``x`` rounded to an integer, as a float of its type.

    Parameters
    ----------
    mode
        ``"rna"`` to the nearest, ties away from zero; ``"rn"`` to the nearest, ties to even; ``"rz"`` towards zero;
        ``"ru"`` up; ``"rd"`` down.

    Raises
    ------
    BadArgument
        For another mode.
    """

def isnan(x: Scalar) -> Any:
    """Return whether ``x`` is NaN; integers are finite."""

def isinf(x: Scalar) -> Any:
    """Return whether ``x`` is an infinity; integers are finite."""

def isfinite(x: Scalar) -> Any:
    """Return whether ``x`` is neither NaN nor an infinity; integers are finite."""

def fma(a: Any, b: Any, c: Any) -> Any:
    """Return ``a * b + c`` with two roundings, unless a target option allows one.

    See ``ieee_fma``.
    """

def atan2(y: Scalar, x: Scalar) -> Any:
    """Return the angle of (``x``, ``y``), -pi to pi, with IEEE special cases."""

def hypot(x: Scalar, y: Scalar) -> Any:
    """Return ``sqrt(x**2 + y**2)`` without intermediate overflow.

    It is infinite if a side is, even if the other is NaN.
    """

def fmod(x: Scalar, y: Scalar) -> Any:
    """Return the exact remainder of ``x / y`` with the sign of ``x``.

    It is NaN if ``y`` is 0 or ``x`` is infinite.
    """

def copysign(x: Scalar, y: Scalar) -> Any:
    """Return the magnitude of ``x`` with the sign of ``y``, zeros and NaN included."""

def nextafter(x: Scalar, y: Scalar) -> Any:
    """Return the next number after ``x`` towards ``y`` in their type, subnormals included.

    It is ``y`` if they are equal.

    Raises
    ------
    BadArgument
        If the two are neither Python numbers nor floats of 16 or more bits.
    """

def ieee_add(a: Scalar, b: Scalar, rounding_mode: str = "rn") -> Value:
    """Return ``a + b``, rounded as named."""

def ieee_sub(a: Scalar, b: Scalar, rounding_mode: str = "rn") -> Value:
    """Return ``a - b``, rounded as named."""

def ieee_mul(a: Scalar, b: Scalar, rounding_mode: str = "rn") -> Value:
    """Return ``a * b``, rounded as named."""

def ieee_fma(a: Scalar, b: Scalar, c: Scalar, rounding_mode: str = "rn") -> Value:
    """Return ``a * b + c`` with one rounding, as named."""

ieee_fmaf = ieee_fma

def ieee_fdiv(a: Scalar, b: Scalar, rounding_mode: str = "rn") -> Value:
    """Return ``a / b``, rounded as named."""

def ieee_frcp(a: Scalar, rounding_mode: str = "rn") -> Value:
    """Return ``1 / a``, rounded as named."""

def ieee_fsqrt(a: Scalar, rounding_mode: str = "rn") -> Value:
    """Return the square root of ``a``, rounded as named."""

def ieee_frsqrt(a: Scalar) -> Value:
    """Return ``1 / sqrt(a)`` of a ``float32``, rounded to the nearest."""

def numerics(level: str) -> AbstractContextManager[None]:
    """Operations with a level of numerics of their own: ``with T.numerics("strict"):``.

    The option ``numerics`` of the target is the level of all others. An operation belongs to the innermost region
    around the text that states it, in whatever function of Python or ``T.macro`` that is; its operands keep the level
    of the place where they were computed. So in ``"strict"`` every addition, subtraction, multiplication and division
    of floats rounds once, as written, whatever computed its operands and whatever uses its result; products, reductions
    and scans add in ascending order. ``"standard"`` in a kernel with ``numerics="fast"`` has precise functions and
    quotients; ``"fast"`` has approximate ones, where the target has any.

    Compilers translate a whole text at one level. In a kernel with ``numerics="strict"`` nothing is fused, in looser
    regions neither; a kernel with ``numerics="fast"`` and a stricter region keeps subnormal numbers everywhere.
    ``explain`` says so.

    Parameters
    ----------
    level
        ``"strict"``, ``"standard"`` or ``"fast"``, see ``tile_core.numerics.levels``.

    Raises
    ------
    OutsideKernel, BadArgument
        Outside a kernel; for another level.

    Examples
    --------
    A compensated sum, whose corrections are zero where operations are fused or reordered::

        with T.numerics("strict"):
            y = x - lost[0]
            t = total[0] + y
            lost[0] = (t - total[0]) - y
            total[0] = t
    """

def pow(x: Scalar, y: Scalar) -> Any:
    """Return ``x ** y``: by products for constants up to 64, else by the target.

    Integers to a runtime or negative power are computed in ``float32`` (``float64`` for 64-bit ones).
    """

power = pow

def abs(x: Scalar) -> Any:
    """Return the absolute value; the least integer of a type wraps to itself."""

def max(a: Scalar, b: Scalar, *more: Scalar, nan_propagate: bool = False) -> Any:
    """Return the greatest; a number beats NaN unless ``nan_propagate``, and +0 beats -0."""

def min(a: Scalar, b: Scalar, *more: Scalar, nan_propagate: bool = False) -> Any:
    """Return the least; a number beats NaN unless ``nan_propagate``, and -0 beats +0."""

def clamp(x: Scalar, min_val: Scalar | None = None, max_val: Scalar | None = None) -> Any:
    """Return ``x`` limited to ``min_val`` and ``max_val``, as ``numpy.clip`` computes it.

    Where ``min_val`` is larger than ``max_val``, that is ``max_val``. NaN stays NaN; ``None`` is no limit, nor is NaN.

    Raises
    ------
    BadArgument
        If there is no limit at all.
    """

def ceildiv(a: Index, b: Index) -> int:
    """Return the quotient of integers rounded up; a Python int of Python ints."""

def align_up(a: Index, b: Index) -> int:
    """Return the least multiple of ``b`` not below ``a``: ``ceildiv(a, b) * b``."""

def floordiv(a: Number, b: Number) -> Any:
    """Return the quotient rounded down."""

def floormod(a: Number, b: Number) -> Any:
    """Return the remainder with the sign of ``b``.

    For floats it is ``a - floor(a / b) * b``: inexact for huge quotients.
    """

def truncdiv(a: Scalar, b: Scalar) -> Any:
    """Return the quotient rounded towards zero."""

def truncmod(a: Scalar, b: Scalar) -> Any:
    """Return the remainder with the sign of ``a``."""

def shift_left(a: Scalar, b: Scalar) -> Any:
    """Return ``a << b`` in the type of ``a`` or of a wider runtime count.

    It is 0 when the count is the width or more.
    """

def shift_right(a: Scalar, b: Scalar) -> Any:
    """Return ``a >> b``, arithmetic for signed types.

    The type is that of ``a`` or of a wider runtime count.
    """

def bitwise_and(a: Scalar, b: Scalar) -> Any:
    """Return ``a & b``."""

def bitwise_or(a: Scalar, b: Scalar) -> Any:
    """Return ``a | b``."""

def bitwise_xor(a: Scalar, b: Scalar) -> Any:
    """Return ``a ^ b``."""

def bitwise_not(a: Scalar) -> Any:
    """Return ``~a``."""

def popcount(x: Scalar) -> Any:
    """Return the number of set bits as ``int32``; of Python ints a Python int.

    A negative Python int has the bits of an ``int32``, or of an ``int64`` if it does not fit.
    """

def philox(seed: Scalar, seq: Scalar = 0, off: Scalar = 0) -> tuple[Value, Value, Value, Value]:
    """Return the four random ``uint32`` words from ``4 * off`` on of a sequence.

    Parameters
    ----------
    seed, seq, off
        Integers, modulo ``2**64``: the seed, the number of the sequence, and how many words are before these, by four.

    Raises
    ------
    BadArgument
        If one of them is not an integer.
    """

def uniform_of(word: Scalar) -> Value:
    """Return a ``float32`` strictly between 0 and 1.

    It is ``(k + 1/2) / 2**23`` of the upper 23 bits ``k``.
    """

def normal_of(a: Scalar, b: Scalar) -> tuple[Value, Value]:
    """Return two independent normal ``float32`` (mean 0, variance 1) of two random words.

    Box's and Muller's transformation: a radius up to 5.9 of the first word, an angle of the second.
    """

def rng_init(seed: Scalar, seq: Scalar, off: Scalar = 0, generator: str | None = None) -> None:
    """Begin a random sequence for the following ``rng_rand`` and ``rng_rand_float``.

    Parameters
    ----------
    seed, seq
        Integers, modulo ``2**64``: threads, or iterations of a parallel loop, with the same seed have sequences of
        their own if they have numbers of their own.
    off
        How many words of the sequence come before the first one that is taken.
    generator
        ``None`` or a name that contains ``Philox4_32_10``: there is one generator.

    Raises
    ------
    BadArgument
        If a number is not an integer, or for another generator.

    Notes
    -----
    The count is a variable: in a kernel that names its threads each has its own; inside of a parallel loop each
    iteration has its own, and the sequence must begin there.
    """

def rng_rand() -> Value:
    """Return the next word of the sequence, as ``uint32``.

    Raises
    ------
    NoGenerator
        Without ``rng_init`` before it.
    """

def rng_rand_float(bit: int = 32, dist: str = "uniform") -> Value:
    """Return the next random float of the sequence.

    Parameters
    ----------
    bit
        32 or 64 bits. Of ``float64`` there are uniform ones only: they have 52 random bits of two words.
    dist
        ``"uniform"``: between 0 and 1, neither included. ``"normal"``: mean 0 and variance 1, of two words.

    Raises
    ------
    NoGenerator, BadArgument
        Without ``rng_init`` before it, or for another number of bits or distribution.
    """

def get_thread_binding(dim: int = 0) -> Value:
    """Return this thread's index in its block along an axis (0, 1, 2), as ``int32``."""

def get_thread_bindings() -> tuple[Value, Value, Value]:
    """Return the three indices of this thread in its block."""

def get_block_binding(dim: int = 0) -> Value:
    """Return this block's index in the grid along an axis (0, 1, 2), as ``int32``."""

def get_block_bindings() -> tuple[Value, Value, Value]:
    """Return the three indices of this block in the grid."""

def get_lane_idx() -> Value:
    """Return the index of this thread in its warp."""

def get_warp_idx() -> Value:
    """Return the index of this thread's warp in the block."""

def sync_threads(barrier_id: int | None = None, arrive_count: int | None = None) -> None:
    """Wait for all threads of the block; writes before the barrier are visible after it.

    Parameters
    ----------
    barrier_id
        Number of a barrier of a part of the block, from 1 on: the threads that execute it wait for each other only.
        Threads of one number are always the same ones. Without it all threads of the block wait.
    arrive_count
        How many threads that are, with ``barrier_id``.

    Raises
    ------
    BadArgument
        For other numbers, or one without the other.
    """

def sync_warp() -> None:
    """Wait for all threads of the warp."""

def shfl_sync(value: Scalar, lane: Scalar, width: int | None = None) -> Value:
    """Return ``value`` of another lane.

    Parameters
    ----------
    value
        A scalar of 8 to 64 bits.
    lane
        Lane that is read, from 0; taken modulo ``width``.
    width
        Lanes that exchange with each other: a power of two, or ``None`` for the whole warp.
    """

def shfl_xor(value: Scalar, mask: Scalar, width: int | None = None) -> Value:
    """Return ``value`` of the lane whose index differs by XOR with ``mask``."""

def shfl_up(value: Scalar, delta: Scalar, width: int | None = None) -> Value:
    """Return ``value`` of the lane ``delta`` below; the lowest lanes keep their own."""

def shfl_down(value: Scalar, delta: Scalar, width: int | None = None) -> Value:
    """Return ``value`` of the lane ``delta`` above; the highest lanes keep their own."""

def ballot(condition: Scalar) -> Value:
    """Return a ``uint64`` whose bit ``i`` is the condition of lane ``i``."""

def any_sync(condition: Scalar) -> Value:
    """Return whether the condition holds in some lane of the warp."""

def all_sync(condition: Scalar) -> Value:
    """Return whether the condition holds in all lanes of the warp."""

def warp_reduce_sum(value: Scalar) -> Value:
    """Return the sum over the lanes of the warp that exist, in every lane."""

def warp_reduce_max(value: Scalar) -> Value:
    """Return the greatest value over the lanes of the warp that exist, in every lane."""

def warp_reduce_min(value: Scalar) -> Value:
    """Return the least value over the lanes of the warp that exist, in every lane."""

def warp_reduce_bitand(value: Scalar) -> Value:
    """Return the bitwise and over the lanes of the warp that exist, of integers."""

def warp_reduce_bitor(value: Scalar) -> Value:
    """Return the bitwise or over the lanes of the warp that exist, of integers."""

def activemask() -> Value:
    """Return a ``uint64`` with bit ``i`` set if lane ``i`` exists.

    A block's last warp may have fewer lanes.
    """

def match_any_sync(value: Scalar) -> Value:
    """Return the ``uint64`` mask of the warp's lanes with the same bits of ``value``.

    Parameters
    ----------
    value
        A scalar of 8 to 64 bits. Of floats, the two zeros differ, and a NaN equals one of the same bits.
    """

def match_all_sync(value: Scalar) -> Value:
    """Return ``activemask()`` if ``value`` is equal in all lanes, else 0; as ``uint64``."""

def syncthreads_count(condition: Scalar) -> Value:
    """Wait for the block, and count the threads whose condition holds, as ``int32``.

    What was written before it is visible after it, as with ``sync_threads``; all threads must reach it.
    """

def syncthreads_or(condition: Scalar) -> Value:
    """Wait for the block; return whether the condition holds in any thread.

    See ``syncthreads_count``.
    """

def syncthreads_and(condition: Scalar) -> Value:
    """Wait for the block; return whether the condition holds in all threads.

    See ``syncthreads_count``.
    """

def ws(*groups: int, size: int = 128) -> AbstractContextManager[None]:
    """Statements that a part of the block's threads executes: ``with T.ws(0, 1):``.

    It selects the threads of the work, not its results: these equal the results of the kernel without it. Statements of
    different roles that do not depend on each other run at the same time; where they do, barriers order them, of the
    role's threads inside of it and of the block outside. Tiles in registers belong to the role if nothing else uses
    them.

    Parameters
    ----------
    *groups
        Numbers of groups of threads, ascending without gaps: ``T.ws(1, 2)`` is threads 128 to 383.
    size
        Threads of a group.

    Raises
    ------
    OutsideKernel, BadArgument, BadRole
        Outside a launch; for other numbers, or threads that the block does not have; inside another ``T.ws`` or a
        data-parallel loop.
    """

from tile_core.layout.user import Layout as Layout

from tile_core.layout.user import Fragment as Fragment
