"""K65x, S65x: unsupported names of TileLang, and results that differ from a reference."""

from __future__ import annotations

from tile_core.errors import KernelError, SetupError


class NotInLanguage(KernelError, AttributeError):
    """A name of TileLang's language that tile does not have."""

    code = "K651"
    template = "T.{name} of TileLang is not a name of tile: {reason}"
    remedy = "{instead}"


class NotOnHost(KernelError, AttributeError):
    """A name of TileLang's host interface that has no counterpart."""

    code = "K652"
    template = "{name} is not answered by tile-tilelang"
    remedy = "{instead}"


class NotOfFloats(KernelError, TypeError):
    """An operand of a fast function is not a float of at least 16 bits."""

    code = "K655"
    template = "T.{name} only supports floating-point inputs, but got {found}"
    remedy = 'convert it first, T.cast(x, "float32")'


class BadCall(KernelError):
    """A host call with an argument that it cannot use."""

    code = "K653"
    template = "{function}: {name} is {found}, expected {expected}"
    remedy = "{instead}"


class Differs(KernelError, AssertionError):
    """A kernel's result and that of the program's own reference differ."""

    code = "K654"
    template = "{kernel}: result {index} differs from the reference: {found}"
    remedy = "kernel.verify() compares with the meaning of the program; if that holds, the two references differ"


class NotAnswered(SetupError, ImportError):
    """A script imports a module of TileLang that has no counterpart."""

    code = "S651"
    template = "{module} is not answered by tile-tilelang"
    remedy = "{instead}"


class NoScript(SetupError):
    """The script to run cannot be read."""

    code = "S652"
    template = "{path} cannot be run: {reason}"
    remedy = "python -m tile_tilelang SCRIPT [ARGUMENTS]"
