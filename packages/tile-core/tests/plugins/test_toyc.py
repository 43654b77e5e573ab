"""Toy C: the backend that docs/backends.md makes from an empty folder, on the emulator."""

from __future__ import annotations

import ast
import io
import re
import shlex
import tokenize

import pytest

from .conftest import PACKAGES, REPOSITORY

TOYC = PACKAGES / "toyc"
MOST_LINES = 300
#: Parts of the conformance kit, of which about one runs in each turn.
PARTS = 48

_FILE = re.compile(
    r"<!-- example: skip, the file (?P<path>\S+) -->\n```\w+\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)
_RUN = re.compile(r"<!-- page: run -->\n```bash\npython (?P<command>.*?)\n```", re.DOTALL)


def page():
    return (REPOSITORY / "docs" / "backends.md").read_text(encoding="utf-8")


def sources(folder):
    return {
        p.relative_to(folder).as_posix(): p for p in sorted(folder.rglob("*")) if p.suffix in (".py", ".toml", ".h")
    }


def lines_of_code(path):
    """Lines that are no comment, docstring or blank."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith("//"))
    strings = {
        n
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for n in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    blank = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    tokens = [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type not in blank]
    return len({n for t in tokens for n in range(t.start[0], t.end[0] + 1)} - strings)


def test_it_is_small():
    found = {name: lines_of_code(path) for name, path in sources(TOYC).items()}
    assert sum(found.values()) <= MOST_LINES, found


def test_the_page_shows_the_files_as_they_are():
    shown = {m["path"]: m["text"] for m in _FILE.finditer(page())}
    del shown["matmul.py"]
    assert shown == {name: path.read_text(encoding="utf-8") for name, path in sources(TOYC).items()}


@pytest.fixture
def followed(tmp_path, site):
    """The folder of a reader who has written the page's files and installed them, and the commands that come then."""
    folder = tmp_path / "empty"
    for found in _FILE.finditer(page()):
        path = folder / found["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found["text"], encoding="utf-8")
    assert "<!-- page: install -->\n```bash\npip install -e .\n```" in page()
    site.install(folder)
    return folder, [shlex.split(m["command"]) for m in _RUN.finditer(page())]


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


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ('T.print("here")', "U107"),
        ("T.device_assert(A[0] > 0)", "U107"),
        ('T.atomic_add(A[0], 1, memory_order="seq_cst")', "U1"),
    ],
)
def test_what_the_language_lacks_is_refused(toyc, statement, code):
    out = toyc(f"""
try:
    compiled(kernel('''
@T.prim_func
def main(A: T.Tensor((4,), "int32")):
    with T.Kernel(1, threads=32):
        {statement}
'''))
except TileError as error:
    print(error.code, "line 5" in str(error) or ":5" in str(error), "toy C" in str(error))
""")
    assert out.startswith(code)
    assert out.split()[1:] == ["True", "True"]


def test_the_backend_is_listed_without_being_imported(site):
    out = site.install("toyc").run("""
print([info.name for info in p.targets() if info.name == "toyc"], [m for m in sys.modules if m.startswith("tile_toyc")])
print(p.resolve_target("toyc").capabilities.execution_width)
""")
    assert out == "['toyc'] []\n32\n"
