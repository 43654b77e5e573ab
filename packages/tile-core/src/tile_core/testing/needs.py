"""Cases to skip: features that a target declares absent.

A target declares what it does not have in its capabilities: ``max_threads``, ``shared_bytes`` and ``atomics`` are
read directly, anything else is named in the fact ``ABSENT``::

    Capabilities(..., extra=ABSENT.value(("float64", "int4", "gemm_sp", "warps")))
"""

from __future__ import annotations

from tile_core.target import ABSENT, Capabilities

#: Element types that every target has; a target may refuse kernels with others.
COMMON = frozenset({"bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "bfloat16", "float32"})
#: Ops that every target has.
REQUIRED = frozenset(
    {"copy", "fill", "transpose", "cast", "gemm", "reduce", "parallel", "pipelined", "control", "arithmetic", "compare",
     "math", "regions", "shapes", "view"}
)  # fmt: skip


def excuse(features: frozenset[str], threads: int, capabilities: Capabilities) -> str:
    """Return why a target need not run a case; empty if it must.

    Parameters
    ----------
    features
        The needs of the case, see ``Unit.needs``.
    threads
        Threads of a block.
    capabilities
        The target's declarations.
    """
    absent = sorted(features & set(map(str, capabilities.fact(ABSENT))))  # type: ignore[arg-type]
    if absent:
        return f"the target declares that it has no {', '.join(absent)}"
    if threads > capabilities.max_threads:
        return f"{threads} threads, the target declares at most {capabilities.max_threads}"
    for feature in sorted(features):
        kind, _, rest = feature.partition(":")
        if kind == "shared" and rest and 0 < capabilities.shared_bytes < int(rest):
            return f"{rest} bytes of shared memory, the target declares {capabilities.shared_bytes}"
        if kind == "clusters" and capabilities.max_cluster == 1:
            return "the target declares no clusters of blocks"
        if kind == "name" and not _is_offered(rest):
            return f"no installed package adds T.{rest}"
        if kind == "atomic" and rest and not capabilities.supports_atomic(*rest.split(":")):
            return f"the target declares no atomic {rest.replace(':', ' of ')}"
    return ""


def optional(features: frozenset[str]) -> str:
    """Return why a target may refuse a case; empty if every target must compute it."""
    types = sorted(f for f in features if _is_type(f) and f not in COMMON)
    if types:
        return f"element types that not every target has: {', '.join(types)}"
    known = {f for f in features if ":" not in f and not _is_type(f)}
    rest = sorted(known - REQUIRED)
    return f"not every target has: {', '.join(rest)}" if rest else ""


def _is_offered(name: str) -> bool:
    from tile_core.plugins.manager import installed

    return name in installed().language_names()


def _is_type(feature: str) -> bool:
    from tile_core.dtypes import DTYPES

    return feature in DTYPES
