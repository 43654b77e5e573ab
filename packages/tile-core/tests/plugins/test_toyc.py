"""Toy C: the backend that docs/backends.md makes from an empty folder, on the emulator."""

from __future__ import annotations

import re

import pytest
from plugin_site import PLUGINS, Page, lines_of_code, sources

TOYC, PAGE = PLUGINS / "toyc", Page("backends.md")
MOST_LINES = 300
#: Parts of the conformance kit, of which one runs in about one of five turns.
PARTS = 96


def test_it_is_small():
    found = {name: lines_of_code(path) for name, path in sources(TOYC).items()}
    assert sum(found.values()) <= MOST_LINES, found


def test_the_page_shows_the_files_as_they_are():
    shown = {name: text for name, text in PAGE.files.items() if name != "matmul.py"}
    assert shown == {name: path.read_text(encoding="utf-8") for name, path in sources(TOYC).items()}


@pytest.fixture
def followed(tmp_path, site):
    """The folder of a reader who has written the page's files and installed them, and the commands that come then."""
    PAGE.follow(tmp_path / "empty", site)
    return tmp_path / "empty", PAGE.commands


@pytest.mark.sweep(1)
def test_a_reader_who_follows_the_page_multiplies_matrices(followed, site):
    folder, (product, _) = followed
    head = site.python(*product, cwd=folder)
    assert head.startswith("kernel void matmul_kernel(device const f32* restrict A, ")


@pytest.mark.sweep(PARTS)
@pytest.mark.parametrize("part", range(1, PARTS + 1))
def test_a_reader_who_runs_the_conformance_kit_finds_nothing_wrong(part, followed, site):
    folder, (_, kit) = followed
    assert kit[-2:] == ["--tile-part", f"1/{PARTS}"]
    said = site.python(*kit[:-1], f"{part}/{PARTS}", "-p", "no:cacheprovider", cwd=folder)
    assert re.search(r"^all ops +\d+ +\S+ +\S+ +-$", said, re.MULTILINE), said


@pytest.fixture
def toyc(site):
    """Run statements with toy C installed; ``kernel(source)`` is a program, ``compiled(program)`` its kernel."""
    prelude = """
import linecache, numpy as np, tile_core as tile, tile_core.language as T
from tile_core.errors import TileError
def kernel(source):
    linecache.cache["<kernel>"] = (len(source), None, source.splitlines(keepends=True), "<kernel>")
    scope = {"T": T}
    exec(compile(source, "<kernel>", "exec"), scope)
    return scope["main"]
def compiled(program):
    return tile.compile(program, target="toyc", runtime="emulator")
"""
    site.install("toyc")
    return lambda code: site.run(prelude + code)


@pytest.mark.sweep(2)
def test_types_that_the_language_lacks_are_codes_in_the_text_and_themselves_in_a_call(toyc):
    out = toyc("""
k = compiled(kernel('''
@T.prim_func
def main(x: T.float16, A: T.Tensor((40,), "float16"), B: T.Tensor((40,), "bfloat16"), C: T.Tensor((40,), "float32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(40):
            C[i] = T.cast(A[i], "float32") * T.cast(B[i], "float32") + T.cast(x, "float32")
'''))
import ml_dtypes
a, b = np.arange(40, dtype="float16") / 4, (np.arange(40) - 20).astype(ml_dtypes.bfloat16)
c = np.full(40, np.nan, "float32")
k(1.5, a, b, c)
print(np.array_equal(c, a.astype("float32") * b.astype("float32") + 1.5), "device const u16* restrict A" in k.source)
""")
    assert out == "True True\n"


@pytest.mark.sweep(2)
def test_what_the_language_lacks_is_refused(toyc):
    statements = {
        'T.print("here")': "U107",
        "T.device_assert(A[0] > 0)": "U107",
        'T.atomic_add(A[0], 1, memory_order="seq_cst")': "U1",
    }
    out = toyc(f"""
for statement in {list(statements)}:
    try:
        compiled(kernel('''
@T.prim_func
def main(A: T.Tensor((4,), "int32")):
    with T.Kernel(1, threads=32):
        ''' + statement + "\\n"))
    except TileError as error:
        print(error.code, "line 5" in str(error) or ":5" in str(error), "toy C" in str(error))
""")
    rows = [line.split() for line in out.splitlines()]
    assert [row[1:] for row in rows] == [["True", "True"]] * len(statements)
    assert all(row[0].startswith(code) for row, code in zip(rows, statements.values(), strict=True))


def test_the_backend_is_listed_without_being_imported(site):
    out = site.install("toyc").run("""
print([info.name for info in p.targets() if info.name == "toyc"], [m for m in sys.modules if m.startswith("tile_toyc")])
print(p.resolve_target("toyc").capabilities.execution_width)
""")
    assert out == "['toyc'] []\n32\n"
