"""Collect names of Metal's headers, which kernels' variables must avoid: ``library_names.txt``.

::

    python tools/metal_names.py SPIRV-Cross wgpu mlx clang-headers > .../tile_metal/emit/library_names.txt

The arguments are folders: clones of KhronosGroup/SPIRV-Cross, gfx-rs/wgpu and ml-explore/mlx (bare ones too), and
clang's folder of headers. Apple publishes no headers of ``metal_stdlib``, so the names come from indirect sources:
lists of words that translators to MSL avoid, functions that MLX's kernels call, macros of C's headers, which Metal's
headers include, and names of the Metal Shading Language Specification: families made by a rule, and names in the
emulator's model of the language. Only names are kept. Names with a leading underscore are left out: no variable of a
text has one.
"""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from tile_metal.lint.words import ATTRIBUTES, LIBRARY, OTHERS, WORDS

_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)
_QUOTED = re.compile(r'"([A-Za-z]\w*)"', re.ASCII)
_MACRO = re.compile(r"#\s*define\s+([A-Za-z]\w*)", re.ASCII)
_CALLED = re.compile(
    r"metal::(?:precise::|fast::)?([a-z]\w*)|\b((?:simd|simdgroup|quad|atomic|threadgroup|mem_flags|memory_order|"
    r"thread_scope|make_filled)_\w+)", re.ASCII
)  # fmt: skip

_BEFORE = frozenset({"bf16.h", "bf16_math.h", "complex.h", "defines.h", "logging.h", "utils.h"})
"""Headers of MLX whose text stands before that of every kernel it compiles."""

SCALARS = "bool char uchar short ushort int uint long ulong half bfloat float".split()


def families() -> Iterator[str]:
    """Yield the specification's name families: types, constants, lane functions, atomics."""
    yield from (*SCALARS, "size_t", "ptrdiff_t", "void")
    for kind, n in product(SCALARS, "234"):
        yield from (f"{kind}{n}", f"packed_{kind}{n}")
    for kind, m, n in product(("half", "float", "bfloat"), "234", "234"):
        yield f"{kind}{m}x{n}"
    yield from (f"simdgroup_{kind}8x8" for kind in ("half", "float", "bfloat"))
    yield from (f"{sign}int{bits}_t" for sign, bits in product(("", "u"), (8, 16, 32, 64)))
    constants = "E LOG2E LOG10E LN2 LN10 PI PI_2 PI_4 1_PI 2_PI 2_SQRTPI SQRT2 SQRT1_2".split()
    yield from (f"M_{name}{suffix}" for name, suffix in product(constants, ("", "_F", "_H", "_BF")))
    limits = "DIG MANT_DIG MAX_10_EXP MAX_EXP MIN_10_EXP MIN_EXP RADIX MAX MIN EPSILON DECIMAL_DIG".split()
    yield from (f"{kind}_{name}" for kind, name in product(("FLT", "HALF", "BFLT", "DBL"), limits))
    yield from (f"MAX{kind}" for kind in ("FLOAT", "HALF", "BFLOAT", "DOUBLE"))
    yield from (f"HUGE_VAL{suffix}" for suffix in ("", "F", "H", "BF"))
    reduced = "sum product min max and or xor".split()
    prefixes = [f"prefix_{how}_{op}" for how, op in product(("inclusive", "exclusive"), ("sum", "product"))]
    moves = [f"shuffle{way}" for way in ("", "_up", "_down", "_xor", "_rotate_up", "_rotate_down", "_and_fill_up",
                                         "_and_fill_down")]  # fmt: skip
    others = "all any ballot vote broadcast broadcast_first is_first is_helper_thread active_threads_mask".split()
    yield from (f"{group}_{name}" for group, name in product(("simd", "quad"), [*reduced, *prefixes, *moves, *others]))
    fetched = [f"fetch_{op}" for op in ("add", "sub", "and", "or", "xor", "min", "max")]
    whole = ["load", "store", "exchange", "compare_exchange_weak", "compare_exchange_strong", "init", "max", "min"]
    yield from (f"atomic_{name}{suffix}" for name, suffix in product([*fetched, *whole], ("", "_explicit")))
    yield from (f"atomic_{kind}" for kind in ("bool", "int", "uint", "float", "long", "ulong", "flag", "thread_fence"))
    orders = "relaxed acquire release acq_rel seq_cst consume".split()
    yield from (f"memory_order_{name}" for name in orders)
    yield from (f"thread_scope_{name}" for name in ("thread", "simdgroup", "threadgroup", "device"))
    barriers = "threadgroup_barrier simdgroup_barrier mem_flags memory_order thread_scope".split()
    matrices = [f"simdgroup_{name}" for name in ("load", "store", "multiply", "multiply_accumulate", "matrix", "event",
                                                 "async_copy")]  # fmt: skip
    tensors = """
        tensor tensor_handle tensor_inline tensor_offset cooperative_tensor extents dextents dynamic_extent
        execution_thread execution_simdgroup execution_simdgroups remove_addrspace_t remove_addrspace mpp tensor_ops
        matmul2d matmul2d_descriptor
    """.split()
    yield from (*barriers, *matrices, *tensors, "make_filled_simdgroup_matrix", "as_type", "numeric_limits")
    yield from "NULL nil Nil YES NO TRUE FALSE true false offsetof metal simd precise fast std".split()
    yield from LIBRARY | WORDS | ATTRIBUTES | OTHERS


def text_of(folder: Path, path: str) -> str:
    """Return a file of a clone, whether its files are checked out or not."""
    return _git(folder, "show", f"HEAD:{path}")


def of_spirv_cross(folder: Path) -> Iterator[str]:
    """Yield the words and functions that SPIRV-Cross gives to no variable of MSL."""
    text = text_of(folder, "spirv_msl.cpp")
    begin = text.index("CompilerMSL::get_reserved_keyword_set()")
    yield from _QUOTED.findall(text[begin : text.index("return illegal_func_names", begin)])


def of_naga(folder: Path) -> Iterator[str]:
    """Yield the words that naga gives to no variable of MSL."""
    yield from _QUOTED.findall(text_of(folder, "naga/src/back/msl/keywords.rs"))


def of_mlx(folder: Path) -> Iterator[str]:
    """Yield ``metal`` functions and types named by MLX's kernels, and their preceding macros."""
    for path in _git(folder, "ls-tree", "-r", "--name-only", "HEAD", "mlx/backend/metal/kernels").split():
        if path.endswith((".h", ".metal")):
            text = text_of(folder, path)
            yield from (a or b for a, b in _CALLED.findall(text))
            yield from _MACRO.findall(text) if path.rpartition("/")[2] in _BEFORE else ()


def of_clang(folder: Path) -> Iterator[str]:
    """Yield the macros of C's headers for limits, floats, integers and alternative words."""
    for name in ("limits.h", "float.h", "stdint.h", "stddef.h", "stdbool.h", "iso646.h"):
        yield from _MACRO.findall((folder / name).read_text(encoding="utf-8"))


def main() -> None:
    """Print the file."""
    spirv_cross, wgpu, mlx, clang = map(Path, sys.argv[1:])
    found = {*families(), *of_spirv_cross(spirv_cross), *of_naga(wgpu), *of_mlx(mlx), *of_clang(clang)}
    kept = sorted(name for name in found if _NAME.fullmatch(name))
    clones = (("SPIRV-Cross", spirv_cross), ("wgpu", wgpu), ("MLX", mlx))
    heads = [f"{name} {_git(folder, 'rev-parse', '--short=10', 'HEAD').strip()}" for name, folder in clones]
    print(f"# {len(kept)} names. Written by tools/metal_names.py from {', '.join(heads)}, and clang's headers.")
    print(textwrap.fill(" ".join(kept), 120, break_on_hyphens=False))


def _git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
