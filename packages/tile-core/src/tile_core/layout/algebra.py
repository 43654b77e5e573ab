"""Operations on layouts. All return new layouts; digits stay digits where that is possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

from tile_core.errors.layout import BadSlice, LayoutMismatch, LayoutTooLarge, NotInvertible
from tile_core.layout.base import MAX_ENUMERATION, ChainLayout, LayoutMap
from tile_core.layout.digits import Digit, as_shape, merge, row_major_strides
from tile_core.layout.layout import DigitLayout
from tile_core.layout.proof import prove
from tile_core.layout.table import TableLayout, unwrap


def inverse(layout: LayoutMap, partial: bool = False) -> LayoutMap:
    """Return the map from places to elements.

    Its shape has one dimension per axis of ``layout``, in the order of ``layout.axes``; it gives the row-major index
    of the element on ``memory`` and, if there are copies, which of them on ``replica``.

    Parameters
    ----------
    partial
        Allow places that hold nothing; they give -1. The result is then a table.

    Raises
    ------
    LayoutCollision
        If two elements share a place.
    NotInvertible
        If places are empty and ``partial`` is not set.
    """
    layout = unwrap(layout)
    proof = prove(layout)
    if proof.collision is not None:
        raise proof.collision.error(layout.shape)
    places = prod(layout.size(a) for a in layout.axes)
    if not proof.bijective and not partial:
        raise NotInvertible(shape=layout.shape, found=layout.numel * layout.replicas, expected=places)
    if isinstance(layout, DigitLayout) and proof.bijective:
        digits = _inverse_digits(layout)
        if digits is not None:
            plain = DigitLayout([layout.size(a) for a in layout.axes], digits)
            return plain if not layout.swizzles else ChainLayout(plain, _unswizzle(layout))
    return _inverse_table(layout, places)


def compose(outer: LayoutMap, inner: LayoutMap) -> LayoutMap:
    """Return ``outer`` after ``inner``: ``inner`` gives the row-major index of ``outer``.

    ``inner`` has one axis besides ``replica``, which is dropped: ``compose(b, inverse(a))`` tells for each place of
    layout ``a`` where layout ``b`` has the same element.

    Raises
    ------
    LayoutMismatch
        If ``inner`` has several axes or copies, or reaches beyond the elements of ``outer``.
    """
    outer, inner = unwrap(outer), _without_replica(unwrap(inner))
    if isinstance(inner, ChainLayout):
        return compose(compose(outer, inner.outer), inner.inner)
    chain = ChainLayout(outer, inner)
    if isinstance(outer, DigitLayout) and isinstance(inner, DigitLayout) and not inner.swizzles:
        found = _compose_digits(outer, inner)
        if found is not None:
            return found
    return chain


def reshape(layout: LayoutMap, shape: Any) -> LayoutMap:
    """Return the same places for the same row-major elements under another shape."""
    layout, extents = unwrap(layout), as_shape(shape)
    if prod(extents) != layout.numel:
        expected = f"{layout.numel} as in {layout.shape}"
        raise LayoutMismatch(operation="reshape", found=f"{prod(extents)} elements in {extents}", expected=expected)
    if isinstance(layout, DigitLayout):
        return replaced(layout, shape=extents)
    return ChainLayout(layout, DigitLayout(extents, [Digit(n, s) for n, s in _row_major(extents)]))


def permute(layout: LayoutMap, dims: Sequence[int]) -> LayoutMap:
    """Return the layout with its dimensions reordered: dimension i is dimension ``dims[i]`` of ``layout``."""
    layout = unwrap(layout)
    if sorted(dims) != list(range(len(layout.shape))):
        expected = f"each of 0 … {len(layout.shape) - 1} once"
        raise LayoutMismatch(operation="permute", found=f"dimensions {tuple(dims)}", expected=expected)
    pairs = _row_major(layout.shape)
    return compose(layout, DigitLayout([layout.shape[d] for d in dims], [Digit(*pairs[d]) for d in dims]))


def slice_layout(layout: LayoutMap, key: Any) -> LayoutMap:
    """Return the layout of a region.

    Parameters
    ----------
    key
        A slice with compile-time bounds (step 1 or more) or an integer per dimension; integers drop their dimension,
        missing dimensions are taken whole.

    Raises
    ------
    BadSlice
        If the region is empty or leaves the shape.
    """
    layout = unwrap(layout)
    keys = key if isinstance(key, tuple) else (key,)
    if len(keys) > len(layout.shape):
        expected = f"at most {len(layout.shape)}, as in shape {layout.shape}"
        raise LayoutMismatch(operation="slice", found=f"{len(keys)} indices", expected=expected)
    keys += (slice(None),) * (len(layout.shape) - len(keys))
    shape, digits, offset = [], [], 0
    for dim, (k, (extent, stride)) in enumerate(zip(keys, _row_major(layout.shape), strict=True)):
        start, stop, step = (k.start or 0, k.stop, k.step or 1) if isinstance(k, slice) else (k, k + 1, 1)
        stop = extent if stop is None else stop
        if not 0 <= start < stop <= extent or step < 1:
            raise BadSlice(start=start, stop=stop, dim=dim, shape=layout.shape, extent=extent)
        offset += start * stride
        if isinstance(k, slice):
            shape.append(-(-(stop - start) // step))
            digits.append(Digit(shape[-1], stride * step))
    return compose(layout, DigitLayout(shape, digits, offset={"memory": offset}))


def tile(atom: LayoutMap, repetition: LayoutMap) -> LayoutMap:
    """Return ``atom`` repeated over the grid ``repetition``, dimension by dimension.

    Element (r * a + i) of a dimension is element i of copy r of the atom, where a is the atom's extent. The index on
    each axis is that of the atom plus the repetition's index times the size of the atom on that axis.

    Raises
    ------
    LayoutMismatch
        If the ranks differ, a dimension does not end at a digit, or the repetition breaks the atom's swizzle.
    """
    atom, repetition = unwrap(atom), unwrap(repetition)
    inner, outer = _groups(atom, "tile"), _groups(repetition, "tile")
    if len(inner) != len(outer):
        expected = f"rank {len(inner)} of the atom {atom.shape}"
        raise LayoutMismatch(operation="tile", found=f"a repetition of shape {repetition.shape}", expected=expected)
    digits = [d for o, i in zip(outer, inner, strict=True) for d in (*_scaled(o, atom), *i)]
    shape = [r * a for r, a in zip(repetition.shape, atom.shape, strict=True)]
    return _product(shape, digits, repetition, atom, "tile")


def direct_product(outer: LayoutMap, inner: LayoutMap) -> LayoutMap:
    """Return the layout of shape ``outer.shape + inner.shape``: a whole ``inner`` per element of ``outer``."""
    outer, inner = unwrap(outer), unwrap(inner)
    if not isinstance(outer, DigitLayout) or not isinstance(inner, DigitLayout):
        raise LayoutMismatch(operation="direct_product", found="a layout without digits", expected="digits")
    digits = [*_scaled(outer.digits, inner), *inner.digits]
    return _product(outer.shape + inner.shape, digits, outer, inner, "direct_product")


def replicate(layout: LayoutMap, *copies: Digit) -> LayoutMap:
    """Return the layout with copies of each element: ``extent`` of them, ``stride`` further on ``axis`` each."""
    layout = unwrap(layout)
    if not isinstance(layout, DigitLayout):
        raise LayoutMismatch(operation="replicate", found="a layout without digits", expected="digits")
    return replaced(layout, replica=(*copies, *layout.replica))


def group(layout: LayoutMap, shape: Any = None) -> tuple[tuple[Digit, ...], ...]:
    """Return the digits of each dimension of ``shape`` (the layout's own by default), outermost first.

    Raises
    ------
    LayoutMismatch
        If a dimension does not end where a digit can be split.
    """
    return _groups(unwrap(layout if shape is None else reshape(layout, shape)), "group")


def equivalent(a: LayoutMap, b: LayoutMap) -> bool:
    """Whether both put the same element in the same place, also where their descriptions differ in kind.

    Raises
    ------
    LayoutTooLarge
        If only trying every element could tell, and there are too many.
    """
    a, b = unwrap(a), unwrap(b)
    if a.shape != b.shape or a.replicas != b.replicas:
        return False
    if a == b:
        return True
    if a.numel * a.replicas > MAX_ENUMERATION:
        if _plain(a) and _plain(b) and a.axes == b.axes:
            return False
        raise LayoutTooLarge(what="equality", found=a.numel * a.replicas, bound=MAX_ENUMERATION)
    return _places(a) == _places(b)


def replaced(layout: DigitLayout, **changes: Any) -> DigitLayout:
    """Return ``layout`` with some parts replaced; the names are those of the constructor."""
    parts: dict[str, Any] = {
        "shape": layout.shape, "digits": layout.digits, "swizzles": layout.swizzles, "replica": layout.replica,
        "offset": layout.offset, "note": layout.note,
    }  # fmt: skip
    return DigitLayout(**{**parts, **changes})


def _row_major(shape: Sequence[int]) -> list[tuple[int, int]]:
    return list(zip(shape, row_major_strides(shape), strict=True))


def _plain(layout: LayoutMap) -> bool:
    """Whether digits that differ are different maps."""
    if not isinstance(layout, DigitLayout) or layout.swizzles or layout.replicas > 1:
        return False
    return all(d.stride for d in merge(layout.digits))


def _places(layout: LayoutMap) -> list[frozenset[tuple[Any, ...]]]:
    tables = layout.tables()
    # An axis on which everything is 0 says nothing.
    axes = [a for a in layout.axes if any(tables[a])]
    rows = list(zip(*(tables[a] for a in axes), strict=True)) or [()] * (layout.numel * layout.replicas)
    r = layout.replicas
    return [frozenset((*axes, *row) for row in rows[i : i + r]) for i in range(0, len(rows), r)]


def _groups(layout: LayoutMap, operation: str) -> tuple[tuple[Digit, ...], ...]:
    groups = layout.grouped() if isinstance(layout, DigitLayout) else None
    if groups is None:
        found = f"the digits of {layout!r} do not split at the dimensions of {layout.shape}"
        raise LayoutMismatch(operation=operation, found=found, expected="digits of its own for each dimension")
    return groups


def _scaled(digits: Sequence[Digit], atom: LayoutMap) -> list[Digit]:
    return [Digit(d.extent, d.stride * atom.size(d.axis), d.axis) for d in digits]


def _product(
    shape: Sequence[int], digits: Sequence[Digit], outer: LayoutMap, inner: LayoutMap, operation: str
) -> LayoutMap:
    """The result of ``tile`` and ``direct_product``; the swizzles stay only if the outer part does not disturb them."""
    assert isinstance(outer, DigitLayout)
    assert isinstance(inner, DigitLayout)
    copies = (*_scaled(outer.replica, inner), *inner.replica)
    offset = {a: inner.offset.get(a, 0) + outer.offset.get(a, 0) * inner.size(a) for a in {*inner.axes, *outer.axes}}
    steps = [d.stride * inner.span for d in (*outer.digits, *outer.replica) if d.axis == "memory"]
    steps.append(outer.offset.get("memory", 0) * inner.span)
    for swizzle in inner.swizzles:
        bad = [s for s in steps if s % swizzle.period]
        if bad:
            found = f"copies {bad[0]} elements apart"
            raise LayoutMismatch(operation=operation, found=found, expected=f"a multiple of the period of {swizzle}")
    if outer.swizzles:
        raise LayoutMismatch(operation=operation, found="a swizzled outer layout", expected="one without a swizzle")
    axes = {d.axis for d in (*digits, *copies)}
    kept = [Digit(1, 0, a) for a in {**dict.fromkeys(outer.axes), **dict.fromkeys(inner.axes)} if a not in axes]
    return DigitLayout(shape, [*kept, *digits], swizzles=inner.swizzles, replica=copies, offset=offset)


def _inverse_digits(layout: DigitLayout) -> list[Digit] | None:
    """Digits of the inverse, if on each axis the sorted strides are the radix of the extents."""
    sources = [*zip(layout.digits, row_major_strides([d.extent for d in layout.digits]), strict=True)]
    copies = [*zip(layout.replica, row_major_strides([d.extent for d in layout.replica]), strict=True)]
    tagged = [(d, s, "memory") for d, s in sources] + [(d, s, "replica") for d, s in copies]
    result: list[Digit] = []
    for axis in layout.axes:
        on_axis = sorted((t for t in tagged if t[0].axis == axis and t[0].extent > 1), key=lambda t: t[0].stride)
        reach, digits = 1, []
        for digit, stride, kind in on_axis:
            if digit.stride != reach:
                return None
            digits.append(Digit(digit.extent, stride, kind))
            reach *= digit.extent
        if layout.offset.get(axis, 0):
            return None
        result += reversed(digits) if digits else [Digit(1, 0)]
    return result if any(d.axis == "memory" for d in result) else [Digit(1, 0), *result]


def _unswizzle(layout: DigitLayout) -> LayoutMap:
    """Undo the swizzles, on the row-major index of the axes' sizes. The memory axis comes first there."""
    sizes = [layout.size(a) for a in layout.axes]
    strides = row_major_strides(sizes)
    lower = strides[0].bit_length() - 1
    if strides[0] == 1 << lower:
        # The same bits of an index that counts strides[0] times finer.
        moved = [replace(s, base=s.base + lower) for s in reversed(layout.swizzles)]
        return DigitLayout(sizes, [Digit(n, s) for n, s in zip(sizes, strides, strict=True)], swizzles=moved)
    table = list(range(sizes[0]))
    for swizzle in reversed(layout.swizzles):
        table = [swizzle.apply(i) for i in table]
    flat = [i * strides[0] + low for i in table for low in range(strides[0])]
    return TableLayout(sizes, {"memory": flat})


def _inverse_table(layout: LayoutMap, places: int) -> LayoutMap:
    if max(places, layout.numel * layout.replicas) > MAX_ENUMERATION:
        raise LayoutTooLarge(what="the inverse", found=places, bound=MAX_ENUMERATION)
    sizes = [layout.size(a) for a in layout.axes]
    tables, strides = layout.tables(), row_major_strides(sizes)
    element, copy = [-1] * places, [-1] * places
    r = layout.replicas
    for i, place in enumerate(zip(*(tables[a] for a in layout.axes), strict=True)):
        flat = sum(p * s for p, s in zip(place, strides, strict=True))
        element[flat], copy[flat] = divmod(i, r)
    return TableLayout(sizes, {"memory": element, "replica": copy} if r > 1 else {"memory": element})


def _without_replica(layout: LayoutMap) -> LayoutMap:
    if "replica" not in layout.axes or len(layout.axes) == 1:
        return layout
    if isinstance(layout, DigitLayout):
        kept = [Digit(d.extent, 0, "memory") if d.axis == "replica" else d for d in layout.digits]
        return replaced(layout, digits=kept)
    if isinstance(layout, ChainLayout):
        return ChainLayout(_without_replica(layout.outer), layout.inner)
    return TableLayout(layout.shape, {a: t for a, t in layout.tables().items() if a != "replica"})


def _compose_digits(outer: DigitLayout, inner: DigitLayout) -> DigitLayout | None:
    """Digits of the composition, or ``None`` where an addition in the inner index carries over between outer digits."""
    radix = merge(outer.digits)
    steps = row_major_strides([d.extent for d in radix])
    (axis,) = inner.axes
    start = inner.offset.get(axis, 0)
    offset = dict(outer.offset)
    used = []
    for digit, step in zip(radix, steps, strict=True):
        used.append(start // step % digit.extent)
        offset[digit.axis] = offset.get(digit.axis, 0) + used[-1] * digit.stride
    digits: list[Digit] = []
    for extent, stride, _ in merge(inner.digits):
        parts = _split(extent, stride, [(d.extent, s) for d, s in zip(radix, steps, strict=True)])
        if parts is None:
            return None
        for count, times, position in parts:
            axis = radix[position].axis if radix else outer.axes[0]
            digits.append(Digit(count, times * radix[position].stride if radix else 0, axis))
            if radix:
                used[position] += (count - 1) * times
    if any(u >= d.extent for u, d in zip(used, radix, strict=True)):
        return None
    present = {d.axis for d in (*digits, *outer.replica)} | {a for a, o in offset.items() if o}
    digits += [Digit(1, 0, a) for a in outer.axes if a not in present]
    return replaced(outer, shape=inner.shape, digits=digits, offset=offset)


def _split(extent: int, stride: int, radix: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]] | None:
    """Split one digit at the boundaries of ``radix``, pairs of (extent, step): (count, multiple, position) each."""
    if not stride or not radix:
        return [(extent, 0, 0)]
    if stride < 0:
        return None
    parts: list[tuple[int, int, int]] = []
    while extent > 1:
        position = next(p for p, (_, step) in enumerate(radix) if step <= stride)
        count, step = radix[position]
        if stride % step:
            return None
        times = stride // step
        if times + 1 > count:
            return None
        room = count // times if count % times == 0 else extent
        taken = min(extent, room)
        if extent % taken:
            return None
        parts.append((taken, times, position))
        extent, stride = extent // taken, stride * taken
    parts.reverse()
    return parts
