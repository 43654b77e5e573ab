"""Keywords of other dialects' ``jit`` in ported programs: obeyed, or refused.

Most of them choose how another compiler does what it does; they change no result, so they are checked and otherwise
left alone. Those that request an unsupported behaviour are refused.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

from tile_core.errors.language import BadArgument
from tile_runtime.errors.guess import nearest

#: Names that steer passes of another compiler: whether and how it vectorises, synchronises, specialises, checks.
_PASSES = """
    SIMPLIFY DISABLE_BUFFER_INIT_CHECK DISABLE_DATA_RACE_CHECK DISABLE_PRELOWER_SEMANTIC_CHECK
    DISABLE_WARP_SPECIALIZED ENABLE_AUTO_SCHEDULE ENABLE_AUTO_WARP_SPECIALIZATION ENABLE_FAST_MATH
    PTXAS_REGISTER_USAGE_LEVEL CONFIG_INDEX_BITWIDTH LAYOUT_COST_MODEL REDUCER_FORCE_BASELINE DISABLE_TMA_LOWER
    DISABLE_SAFE_MEMORY_ACCESS DISABLE_VECTORIZE_256 ENABLE_FP32X2_REDUCTION ENABLE_ASYNC_COPY ENABLE_LOWER_LDGSTG
    ENABLE_LOWER_LDGSTG_PREDICATED DISABLE_WGMMA DISABLE_DYNAMIC_TAIL_SPLIT DYNAMIC_ALIGNMENT
    DEBUG_MERGE_SHARED_MEMORY_ALLOCATIONS ENABLE_AGGRESSIVE_SHARED_MEMORY_MERGE DISABLE_SHARED_MEMORY_REUSE
    DISABLE_SHUFFLE_ELECT DISABLE_LOOP_UNSWITCHING LOOP_UNSWITCHING_ALLOW_NON_TRIVIAL_ELSE DISABLE_FAST_MATH
    IF_STMT_BINDING_INLINE_REPLAYABLE_BINDS DISABLE_THREAD_STORAGE_SYNC FORCE_LET_INLINE STORAGE_REWRITE_DETECT_INPLACE
    DISABLE_OUT_OF_BOUND_WARNING
""".split()
_TIR = """
    ENABLE_EQUIV_TERMS_IN_CSE DISABLE_CSE SIMPLIFY DISABLE_STORAGE_REWRITE DISABLE_VECTORIZE USE_ASYNC_COPY ENABLE_DEBUG
    MERGE_STATIC_SMEM NOALIAS
""".split()

#: Requests for unsupported behaviour, and the equivalent here.
_REFUSED = {
    "TL_DEVICE_COMPILE_FLAGS": "pass what the target offers as options={...}",
    "TL_EMIT_LINE_DIRECTIVES": "pass options={'line_info': True} where the target has it",
    "TL_ENABLE_REDUCER_PLAN_VERBOSE": "read kernel.explain()",
    "TL_ENABLE_VECTORIZE_PLANNER_VERBOSE": "read kernel.explain()",
    "TL_ENABLE_PTXAS_VERBOSE_OUTPUT": "read kernel.explain()",
    "TL_AST_PRINT_ENABLE": "set TILE_DUMP_DIR to a folder",
    "TL_LAYOUT_VISUALIZATION_ENABLE": "read kernel.explain(), or draw one with tile.layout",
    "TL_LAYOUT_VISUALIZATION_FORMATS": "read kernel.explain(), or draw one with tile.layout",
    "TIR_ADD_LOWER_PASS": "a backend inserts passes, see docs/backends.md",
    "CUDA_KERNELS_OUTPUT_DIR": "set TILE_DUMP_DIR to a folder, or write kernel.source",
    "TL_ENABLE_DUMP_IR": "set TILE_DUMP_DIR to a folder",
    "TL_DUMP_IR_DIR": "set TILE_DUMP_DIR to a folder",
    "TL_PASS_PROFILE": "read kernel.explain()",
    "TL_PASS_PROFILE_THRESHOLD_MS": "read kernel.explain()",
    "compile_flags": "pass what the target offers as options={...}",
    "debug_root_path": "set TILE_DUMP_DIR to a folder",
}

_NAMES = [*(f"TL_{n}" for n in _PASSES), *(f"TIR_{n}" for n in _TIR), *(n for n in _REFUSED if n.isupper())]
#: Spellings that are not those of the name.
_SPELT = {
    "TL_SIMPLIFY": "tl.Simplify",
    "TIR_SIMPLIFY": "tir.Simplify",
    "TL_DISABLE_SAFE_MEMORY_ACCESS": "tl.disable_safe_memory_legalize",
    "TIR_ENABLE_EQUIV_TERMS_IN_CSE": "tir.enable_equiv_terms_in_cse_tir",
    "TIR_DISABLE_CSE": "tir.disable_cse_tir",
    "TL_DUMP_IR_DIR": "tl.dump_ir_path",
}


def _key(name: str) -> str:
    head, _, rest = name.lower().partition("_")
    return _SPELT.get(name, f"{head}.{rest}")


PassConfigKey = enum.Enum("PassConfigKey", {name: _key(name) for name in _NAMES}, type=str)  # type: ignore[misc]
PassConfigKey.__doc__ = """\
Keys of ``tile.jit(pass_configs={...})``; of those that are accepted only ``TL_ENABLE_FAST_MATH`` has an effect."""

HINTS = frozenset({"pass_configs", "execution_backend", "verbose", "compile_flags", "debug_root_path"})
"""Keywords of other dialects' ``jit``."""


def wants_fast_math(hints: Mapping[str, Any]) -> bool:
    """Check the keywords of other dialects; return whether they allow approximate functions.

    Raises
    ------
    BadArgument
        For an unknown keyword or key, and for requests that have another form here.
    """
    unknown = sorted(set(hints) - HINTS)
    if unknown:
        raise _refusal(unknown[0], "given", "no such keyword", "use out_idx, target and options")
    for name in ("compile_flags", "debug_root_path"):
        if hints.get(name):
            raise _refusal(name, repr(hints[name]), "nothing of the kind", _REFUSED[name])
    given = hints.get("pass_configs")
    if given is not None and not isinstance(given, Mapping):
        raise _refusal("pass_configs", repr(given), "a mapping of PassConfigKey", "see tile.PassConfigKey")
    configs = {_known(key): value for key, value in (given or {}).items()}
    for key, value in configs.items():
        if value and key in _REFUSED:
            raise _refusal(f"pass_configs[{key}]", repr(value), "nothing of the kind", _REFUSED[key])
    return bool(configs.get("TL_ENABLE_FAST_MATH")) and not configs.get("TL_DISABLE_FAST_MATH")


def is_request(key: Any) -> bool:
    """Return whether a key of ``pass_configs`` has another form here: reports, dumps, flags."""
    return _known(key) in _REFUSED


def _known(key: Any) -> str:
    """Return the name of a key, or of its text; TVM's prefix has varied."""
    text = str(key.value if isinstance(key, enum.Enum) else key)
    text = "tir." + text[len("tirx.") :] if text.startswith("tirx.") else text
    for name, member in PassConfigKey.__members__.items():
        if member.value == text:
            return name
    near = nearest(text, [member.value for member in PassConfigKey])
    instead = f"did you mean {near[0]!r}?" if near else "leave it out"
    raise _refusal("pass_configs", f"given with {text!r}", "keys of tile.PassConfigKey", instead)


def _refusal(name: str, found: str, expected: str, instead: str) -> BadArgument:
    return BadArgument(function="jit", name=name, found=found, expected=expected, instead=instead)
