"""``tests/plugins/tile-opencl``: a backend from outside, on a real device: PoCL executes OpenCL on the processor."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from plugin_site import PLUGINS, Page, Site, lines_of_code, sources
from repository import ROOT, files

PLUGIN, PAGE = PLUGINS / "tile-opencl", Page("opencl-backend.md")
MOST_LINES = 300
#: Parts of the conformance suite, one of which runs in about one of five rounds.
PARTS = 96

#: Drivers are found by these files; `.ci/run` installs one.
DRIVERS = Path("/etc/OpenCL/vendors")
_FOUND = importlib.util.find_spec("pyopencl") is not None and any(DRIVERS.glob("*.icd"))
device = pytest.mark.skipif(not _FOUND, reason=f"pyopencl, and a driver in {DRIVERS}")

PRELUDE = """
import linecache, numpy as np, tile_core as tile, tile_core.language as T
from tile_core.errors import TileError
def kernel(source):
    linecache.cache["<kernel>"] = (len(source), None, source.splitlines(keepends=True), "<kernel>")
    scope = {"T": T}
    exec(compile(source, "<kernel>", "exec"), scope)
    return scope["main"]
def compiled(source, target="opencl"):
    return tile.compile(kernel(source), target=target)
"""


@pytest.fixture
def opencl(tmp_path):
    """Run statements with the backend installed; ``compiled(source)`` is the kernel of a program."""
    site = Site(tmp_path / "site").install("tile-opencl")
    return lambda code, **variables: site.run(PRELUDE + code, **variables)


def test_it_is_small():
    found = {name: lines_of_code(path) for name, path in sources(PLUGIN).items()}
    assert sum(found.values()) <= MOST_LINES, found


def test_the_core_does_not_know_it():
    core = [p for p in files(ROOT) if p.is_relative_to(ROOT / "packages" / "tile-core")]
    core = [p for p in core if p.name != "devices.py"]  # DLPack has a number for it
    assert len(core) > 100
    named = [p for p in core if re.search(rb"opencl|pocl", p.read_bytes(), re.IGNORECASE)]
    assert named == []


def test_no_other_code_of_the_repository_imports_it():
    code = [p for p in files(ROOT) if p.suffix in (".py", ".toml") and not p.is_relative_to(PLUGIN)]
    imports = re.compile(r"^ *(from|import) +tile_opencl\b", re.MULTILINE)
    found = {p.relative_to(ROOT).as_posix() for p in code if imports.search(p.read_text(encoding="utf-8"))}
    assert found == {"tests/test_opencl.py"}  # in programs that run where it is installed
    named = [p for p in code if p.is_relative_to(ROOT / "packages") and "tile_opencl" in p.read_text(encoding="utf-8")]
    assert named == []


def test_the_page_shows_the_files_as_they_are():
    shown = {name: text for name, text in PAGE.files.items() if name != "product.py"}
    assert shown == {name: path.read_text(encoding="utf-8") for name, path in sources(PLUGIN).items()}


@pytest.fixture
def followed(tmp_path):
    """The reader's folder with the page's files installed, and the installation."""
    site = Site(tmp_path / "site")
    PAGE.follow(tmp_path / "empty", site)
    return tmp_path / "empty", site


@pytest.mark.sweep(2)
def test_a_reader_who_follows_the_page_hears_that_the_core_takes_it(followed):
    folder, site = followed
    said = site.python(*PAGE.commands[0], cwd=folder)
    assert re.search(r"^OK +backend opencl +tile-opencl 1\.0\.0: opencl; compiles for opencl$", said, re.MULTILINE), (
        said
    )


@pytest.mark.sweep(1)
@device
def test_a_reader_who_follows_the_page_multiplies_matrices(followed):
    folder, site = followed
    said = site.python(*PAGE.commands[1], cwd=folder)
    assert said.startswith("kernel __attribute__((reqd_work_group_size(64, 1, 1))) void product_kernel(")


def test_it_is_listed_without_being_imported(opencl):
    out = opencl("""
print([info.name for info in p.targets() if info.name == "opencl"])
print([m for m in sys.modules if m.startswith(("tile_opencl", "pyopencl"))])
print(p.resolve_target("opencl").capabilities.shared_bytes, "pyopencl" in sys.modules)
""")
    assert out == "['opencl']\n[]\n32768 False\n"


def test_text_needs_no_device(opencl):
    out = opencl("""
k = compiled('''
@T.prim_func
def main(n: T.int64, A: T.Tensor((64,), "int64"), B: T.Tensor((64,), "bool")):
    with T.Kernel(1, threads=64):
        a = T.alloc_shared((64,), "int64")
        T.copy(A, a)
        for i in T.Parallel(64):
            B[i] = a[63 - i] > n + 5000000000
''')
print(k.source, "pyopencl" in sys.modules)
""")
    assert "#pragma OPENCL FP_CONTRACT OFF\n" in out
    assert "kernel __attribute__((reqd_work_group_size(64, 1, 1))) void main_kernel(" in out
    assert "global uchar* restrict B" in out
    assert "  local uchar smem[512] __attribute__((aligned(16)));\n" in out
    assert "5000000000UL" in out
    assert out.endswith(" False\n")


@pytest.mark.sweep(1)
@device
def test_a_machine_without_a_device_is_told_what_to_install(opencl):
    code = """
k = compiled('''
@T.prim_func
def main(A: T.Tensor((64,), "int64")):
    with T.Kernel(1, threads=64):
        T.clear(A)
''')
try:
    k(np.zeros(64, "int64"))
except TileError as error:
    print(error)
"""
    out = opencl(code, OCL_ICD_VENDORS="/nowhere")
    assert out.startswith("[S851] no OpenCL device serves target opencl: ")
    assert "apt-get install pocl-opencl-icd" in out


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("params", "statement", "code"),
    [
        ('A: T.Tensor((4,), "int32")', 'T.print("here")', "U107"),
        ('A: T.Tensor((4,), "int32")', "T.device_assert(A[0] > 0)", "U107"),
        ('A: T.Tensor((4,), "int32")', 'T.atomic_add(A[0], 1, memory_order="seq_cst")', "U1"),
        ('A: T.Tensor((4,), "float16")', "T.atomic_add(A[0], 1)", "U1"),
        ('A: T.Tensor((4,), "int32")', "A[0] = T.shfl_xor(A[0], 1)", "U107"),
        ('A: T.Tensor((4,), "int32")', "A[0] = T.warp_reduce_sum(A[0])", "U107"),
    ],
)
def test_what_the_language_lacks_is_refused(opencl, params, statement, code):
    out = opencl(f"""
try:
    compiled('''
@T.prim_func
def main({params}):
    with T.Kernel(1, threads=32):
        {statement}
''')
except TileError as error:
    print(error.code, ":5" in str(error), "OpenCL C" in str(error))
""")
    assert out.startswith(code)
    assert out.split()[1:] == ["True", "True"]


@pytest.mark.sweep(1)
@device
def test_types_scalars_and_strides(opencl):
    out = opencl("""
import ml_dtypes
k = compiled('''
@T.prim_func
def main(
    x: T.float16, y: T.bool, n: T.int32,
    A: T.StridedTensor((5, 8), (12, 1), "float16"), B: T.Tensor((5, 8), "bfloat16"), C: T.Tensor((5, 8), "float32"),
):
    with T.Kernel(1, threads=32):
        for i, j in T.Parallel(5, 8):
            product = T.cast(A[i, j], "float32") * T.cast(B[i, j], "float32")
            C[i, j] = T.if_then_else(y, product + T.cast(x + n, "float32"), 0)
''')
whole = np.arange(60, dtype="float16").reshape(5, 12)
a, b = whole[:, :8], (np.arange(40) - 20).astype(ml_dtypes.bfloat16).reshape(5, 8)
c = np.full((5, 8), np.nan, "float32")
k(1.5, True, 2, a, b, c)
print(np.array_equal(c, a.astype("float32") * b.astype("float32") + 3.5))
""")
    assert out == "True\n"


@pytest.mark.sweep(2)
@device
def test_atomics_of_every_type_in_both_memories(opencl):
    out = opencl("""
types = [f"{s}int{b}" for s in ("", "u") for b in (8, 16, 32, 64)] + ["float32", "float64"]
for dtype in types:
    k = compiled(f'''
@T.prim_func
def main(A: T.Tensor((256,), "{dtype}"), B: T.Tensor((3, 3), "{dtype}"), C: T.Tensor((3, 3), "{dtype}"),
         D: T.Tensor((3, 3), "{dtype}")):
    with T.Kernel(2, threads=128) as bx:
        s = T.alloc_shared((3, 3), "{dtype}")
        T.copy(C, s)
        for i in T.Parallel(128):
            T.atomic_add(B[0, i % 3], A[bx * 128 + i])
            T.atomic_max(B[1, i % 3], A[bx * 128 + i])
            T.atomic_min(B[2, i % 3], A[bx * 128 + i])
        for i in T.Parallel(128):
            T.atomic_add(s[0, i % 3], A[bx * 128 + i])
            T.atomic_max(s[1, i % 3], A[bx * 128 + i])
            T.atomic_min(s[2, i % 3], A[bx * 128 + i])
        if bx == 1:
            T.copy(s, D)
''')
    a = np.random.default_rng(1).integers(0, 100, 256).astype(dtype)
    b, c, d = (np.full((3, 3), 50, dtype) for _ in range(3))
    k(a, b, c, d)
    def want(part):
        place = np.arange(len(part)) % 128 % 3
        with np.errstate(over="ignore"):
            return np.stack([np.array([f(np.append(part[place == i], np.array(50, dtype))) for i in range(3)])
                             for f in (lambda x: x.sum(dtype=dtype), np.max, np.min)])
    print(dtype, np.array_equal(b, want(a)), np.array_equal(d, want(a[128:])))
""")
    assert len(out.splitlines()) == 10
    assert all(line.endswith("True True") for line in out.splitlines()), out


@pytest.mark.sweep(1)
@device
def test_a_barrier_in_a_branch_whose_condition_is_tested_twice(opencl):
    """PoCL 3.1's optimizer produces wrong results for it, or crashes."""
    out = opencl("""
k = compiled('''
m, n = T.dynamic("m, n")
@T.prim_func
def main(A: T.Tensor((m, n), "float32"), B: T.Tensor((m, n), "float32"), C: T.Tensor((m, n), "float32")):
    with T.Kernel(T.ceildiv(m, 2), threads=128) as bx:
        s, t = T.alloc_shared((2, 1), "float32"), T.alloc_shared((2, 1), "float32")
        T.copy(A[bx * 2, 0], s)
        T.clear(t)
        T.fill(t[1:2, :], -2)
        T.copy(s, B[bx * 2, 0])
        T.copy(t, C[bx * 2, 0])
''')
assert k.source.count("barrier(") > 1
a = np.random.default_rng().random((5, 1), "float32")
b, c = (np.full((5, 1), 9, "float32") for _ in range(2))
k(a, b, c)
print(np.array_equal(a, b), c.reshape(-1))
""")
    assert out == "True [ 0. -2.  0. -2.  0.]\n"


@pytest.mark.sweep(2)
@device
def test_no_word_of_the_language_is_in_the_way(opencl):
    out = opencl("""
import keyword
from tile_opencl.words import WORDS
words = sorted(w for w in WORDS if not keyword.iskeyword(w) and not w.startswith(("convert_", "T")))
n = 0
for start in range(0, len(words), 100):
    some = words[start:start + 100]
    body = "".join(f"            {w} = A[i] + {k}\\n            B[i] += {w}\\n" for k, w in enumerate(some))
    k = compiled(f'''
@T.prim_func
def main(A: T.Tensor((32,), "int32"), B: T.Tensor((32,), "int32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(32):
{body}
''')
    a, b = np.arange(32, dtype="int32"), np.zeros(32, "int32")
    k(a, b)
    n += np.array_equal(b, a * len(some) + sum(range(len(some)))) * len(some)
print(n == len(words) > 300)
""")
    assert out == "True\n"


@device
@pytest.mark.sweep(PARTS)
@pytest.mark.parametrize("part", range(1, PARTS + 1))
def test_a_reader_who_runs_the_conformance_kit_finds_nothing_wrong(part, followed):
    folder, site = followed
    kit = PAGE.commands[2]
    assert kit[-2:] == ["--tile-part", f"1/{PARTS}"]
    said = site.python(*kit[:-1], f"{part}/{PARTS}", "-n", "0", "-p", "no:cacheprovider", cwd=folder)
    assert re.search(r"^all ops +\d+ +\S+ +\S+ +-$", said, re.MULTILINE), said
