"""User names that collide with device headers, the text itself, or ASCII."""

import itertools
import keyword
import linecache
import re

import numpy as np
import pytest
from metal_lint import lint

import tile_core as tile
from tile_metal.emit.helpers import HELPER_NAMES, helper
from tile_metal.emit.names import CPP_WORDS, LIBRARY_NAMES, MACROS, RESERVED
from tile_metal.emulation.tokens import tokenize

from .kit import text

TEXT = """
import tile_core.language as T

@T.prim_func
def kernel(A: T.Tensor((8,), "float32"), {name}: T.int32):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(8):
            A[i] = T.float32({name}) + T.float32(i)
"""


@pytest.mark.parametrize("name", ["NULL", "std", "INT_MAX", "M_PI", "INFINITY", "nil", "uint32_t", "FLT_EPSILON"])
@pytest.mark.parametrize("target", ["metal", "cpu"])
def test_a_scalar(name, target):
    text, file = TEXT.format(name=name), f"<reserved {name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space = {}
    exec(compile(text, file, "exec"), space)
    if target == "cpu":
        a = np.zeros(8, "float32")
        tile.compile(space["kernel"], "cpu")(a, 3)
        assert a.tolist() == [3 + i for i in range(8)]
        return
    source = tile.compile(space["kernel"], target, runtime="emulator").source
    assert f" {name};" not in source
    assert f"{name}_1" in source


ALL = sorted(name for name in RESERVED | HELPER_NAMES if not keyword.iskeyword(name))


def compiled(source, name="kernel"):
    """Return the program of a text of Python."""
    file = f"<reserved {hash(source)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    space = {}
    exec(compile(source, file, "exec"), space)
    return space[name]


@pytest.mark.sweep(8)
@pytest.mark.parametrize("begin", range(0, len(ALL), 40))
def test_no_name_of_the_library_is_a_variable(begin):
    """Parameters with the names of called functions: erf, a shuffle, a maximum, a barrier."""
    names = ALL[begin : begin + 40]
    given = ", ".join(f"{name}: T.int32" for name in names)
    total = " + ".join(f"T.float32({name})" for name in names)
    source = f"""
import tile_core.language as T

@T.prim_func
def kernel(A: T.Tensor((64,), "float32"), {given}):
    with T.Kernel(1, threads=64):
        f, r = T.alloc_fragment((64,), "float32"), T.alloc_fragment((1,), "float32")
        for i in T.Parallel(64):
            f[i] = T.erf(A[i]) + {total}
        T.reduce_max(f, r)
        for i in T.Parallel(64):
            A[i] = r[0]
"""
    found = text(compiled(source)).text
    assert not lint(found)
    words = {t.text for t in tokenize(found)}
    assert not words & set(names) & MACROS
    assert {f"{name}_1" for name in names} <= words


def test_the_words_that_the_text_itself_needs():
    """Every name in a helper function is its own, or reserved."""
    for name in sorted(HELPER_NAMES):
        body = re.sub(r"(?m)^#.*$", "", helper(name).text)
        called = set(re.findall(r"(?<![.\w])([A-Za-z]\w*)(?=\s*[(<])", body)) - {name, "if", "for", "while", "return"}
        declared = {second.text for _, second in itertools.pairwise(tokenize(body)) if second.kind == "name"}
        compared = set(re.findall(r"\b(\w+) <<? ", body))  # no list of arguments of a template
        unknown = called - RESERVED - HELPER_NAMES - CPP_WORDS - (declared & compared)
        assert not unknown, (name, unknown)


def test_names_known_to_be_missed():
    for name in ("INT_MAX", "MAXFLOAT", "M_E_F", "NULL", "HALF_MAX", "simd_shuffle_xor", "threadgroup_barrier",
                 "memory_order_relaxed", "simdgroup_matrix", "fmedian3", "uint", "float4x4", "max_f32"):  # fmt: skip
        assert name in RESERVED | HELPER_NAMES
    assert len(LIBRARY_NAMES) > 900


OTHER_LETTERS = """
import tile_core.language as T

@T.prim_func
def größe(Ä: T.Tensor((64,), "float32"), β: T.float32, a\u0308: T.float32):
    with T.Kernel(1, threads=64):
        зум = T.alloc_fragment((64,), "float32")
        for i in T.Parallel(64):
            зум[i] = Ä[i] * β + a\u0308
        T.copy(зум, Ä)
"""


@pytest.mark.parametrize("target", ["metal", "cpu", "cuda:sm_80"])
def test_letters_of_other_alphabets(target, tmp_path):
    folder = tmp_path / "Größe ж"
    folder.mkdir()
    (folder / "kérnel.py").write_text(OTHER_LETTERS, encoding="utf-8")
    space = {}
    exec(compile(OTHER_LETTERS, str(folder / "kérnel.py"), "exec"), space)
    options = {} if target == "cpu" else {"options": {"line_info": True}}
    runtime = {} if target == "cpu" else {"runtime": "emulator"}
    kernel = tile.compile(space["größe"], target, **options, **runtime)
    assert kernel.source.isascii()
    assert target != "metal" or not lint(kernel.source)
    a = np.arange(64, dtype="float32")
    kernel(a, 2.0, 0.5)
    assert a.tolist() == [2 * i + 0.5 for i in range(64)]
