"""Element types by torch's names, and the 8-bit floats of this machine's device."""

from __future__ import annotations

import sys
from typing import Any, Literal

from tile_core.dtypes import DTYPES, dtype

__all__ = ["TORCH_NAMES", "determine_fp8_type", "determine_torch_fp8_type"]


def determine_fp8_type(fp8_format: Literal["e4m3", "e5m2"] = "e4m3") -> str:
    """Return the 8-bit float of a format that this machine's device multiplies.

    AMD's before gfx950 multiply types without infinities and with one zero only.
    """
    torch: Any = sys.modules.get("torch")
    on_amd = torch is not None and torch.version.hip is not None
    older = on_amd and "gfx95" not in getattr(torch.cuda.get_device_properties(0), "gcnArchName", "")
    if fp8_format == "e4m3":
        return "float8_e4m3fnuz" if older else "float8_e4m3fn"
    return "float8_e5m2fnuz" if older else "float8_e5m2"


def determine_torch_fp8_type(fp8_format: Literal["e4m3", "e5m2"] = "e4m3") -> Any:
    """Return the same as a type of torch."""
    return dtype(determine_fp8_type(fp8_format)).as_torch()


#: Names of all element types.
NAMES = list(DTYPES)
#: Annotated here, and made in ``__getattr__``, since torch may be imported later.
TORCH_NAMES: dict[Any, str]


def __getattr__(name: str) -> Any:
    if name != "TORCH_NAMES":
        raise AttributeError(name)
    torch = sys.modules.get("torch")
    kinds = [] if torch is None else [v for v in vars(torch).values() if isinstance(v, torch.dtype)]
    return {kind: str(kind).removeprefix("torch.") for kind in kinds}
