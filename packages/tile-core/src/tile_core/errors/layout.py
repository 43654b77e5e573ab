"""K3xx: errors of layouts and views."""

from __future__ import annotations

from tile_core.errors.base import KernelError


class LayoutError(KernelError):
    """Base of the errors of layouts."""

    code = "K300"


class BadLayoutShape(LayoutError):
    """A shape has an extent that is not a positive compile-time integer."""

    code = "K301"
    template = "a layout needs positive compile-time extents, found shape {found}"
    remedy = "give every dimension an integer extent of at least 1"


class BadDigits(LayoutError):
    """The digits of a layout do not describe a map of its shape."""

    code = "K302"
    template = "the digits {digits} are not a layout of shape {shape}: {reason}"
    remedy = "the extents multiply to the number of elements, and each axis is one of: {axes}"


class LayoutCollision(LayoutError):
    """Two coordinates map to one address."""

    code = "K303"
    template = "the layout of shape {shape} is many-to-one: {first} and {second} both map to {image}"
    remedy = "change the layout so that every coordinate maps to a distinct location"


class LayoutOutOfRange(LayoutError):
    """A coordinate maps outside the storage."""

    code = "K304"
    template = "the layout of shape {shape} maps {coordinate} to {image}, expected 0 <= {axis} < {size}"
    remedy = "keep every index inside [0, {size}), or reserve more storage: {reserve}"


class BadLayoutFunction(LayoutError):
    """A user's index function failed or did not return integers."""

    code = "K305"
    template = "the layout function at {coordinate}: {reason}"
    remedy = "return one integer, or a fixed number of integers, computed with + - * // % ^ & << >>"


class LayoutTooLarge(LayoutError):
    """A property that the digits do not decide, of a layout too large to enumerate."""

    code = "K306"
    template = "{what} of a layout of {found} elements cannot be decided: at most {bound} are enumerated"
    remedy = (
        "use + - * // % of the indices by ints that divide the extents evenly, or describe the layout by digits, or "
        "lay out a tile of at most {bound} elements and repeat it"
    )


class BadSwizzle(LayoutError):
    """Parameters that do not describe an XOR swizzle."""

    code = "K308"
    template = "Swizzle({bits}, {base}, {shift}) is not a bijection of addresses: {reason}"
    remedy = "use bits >= 0, base >= 0 and |shift| >= bits; nearest: Swizzle({near_bits}, {near_base}, {near_shift})"


class BadCoordinate(LayoutError):
    """A coordinate has the wrong number of indices or lies outside the shape."""

    code = "K309"
    template = "coordinate {found} is outside a layout of shape {shape}"
    remedy = "give one index per dimension, each from 0 to its extent - 1"


class LayoutMismatch(LayoutError):
    """Two layouts, or a layout and a shape, do not fit together."""

    code = "K311"
    template = "{operation}: {found}, expected {expected}"
    remedy = "make both describe the same elements"


class TableNotSymbolic(LayoutError):
    """A layout known only by its table, applied to a symbolic index."""

    code = "K313"
    template = "the layout of shape {shape} is a table or a function of known integers only: {reason}"
    remedy = "describe it by digits, or by a function that uses only + - * // % ^ & << >>"
