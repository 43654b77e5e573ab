"""Names of other tile dialects that kernels may keep when they move here; none has an effect."""

from __future__ import annotations


class _AnyName(type):
    def __getattr__(cls, name: str) -> str:
        if name.startswith("_"):
            raise AttributeError(name)
        return name.lower()


class PassConfigKey(metaclass=_AnyName):
    """Keys of ``tile.jit(pass_configs={...})``: every name exists, since none steers anything here."""
