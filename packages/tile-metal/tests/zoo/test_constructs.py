"""The page of known constructs covers all that texts and helper functions use.

Which is names of the library and words of C++, members, attributes, directives, and casts to pointers by address space.
"""

import re
from pathlib import Path

import pytest

from tile_core.emit.c_family import CPP_WORDS, CFamilyEmitter
from tile_metal.emit.helpers import HELPER_NAMES, helper
from tile_metal.emit.names import FUNCTIONS, LIBRARY_NAMES
from tile_metal.emulation.tokens import tokenize

#: What the printer writes besides: types of scalars, votes, exchanges, barriers.
PRINTED = frozenset(
    """
    args buffer constant fast fmin namespace simd_all simd_and simd_ballot simd_max simd_min simd_or simd_shuffle
    simd_vote uchar2 simdgroup_barrier smem struct thread_index_in_simdgroup
    """.split()
)
C_WORDS = (CPP_WORDS | CFamilyEmitter.reserved) - LIBRARY_NAMES
GOLDEN = Path(__file__).parent / "golden"
PAGES = Path(__file__).parents[4] / "docs" / "evidence"
TEXTS = {
    f"{path.parent.name}/{path.stem}": path.read_text(encoding="utf-8")
    for folder in (GOLDEN, GOLDEN.parent / "golden_metal4")
    for path in folder.glob("*.metal")
}


#: Members that are components of vectors.
COMPONENTS = frozenset("xyzw")


@pytest.fixture(scope="module")
def forms():
    """Return the code spans in the first column of the newest page."""
    pages = sorted(PAGES.glob("metal-source-*.md"))
    if not pages:
        pytest.skip("the pages are not here")
    rows = re.findall(r"^\| (.*?) \| ", pages[-1].read_text(encoding="utf-8"), re.MULTILINE)
    return [code for row in rows for code in re.findall(r"`([^`]*)`", row)]


@pytest.fixture(scope="module")
def known(forms):
    return set(re.findall(r"\w+", " ".join(forms)))


def words(text):
    """Names of the library in a text; members are their types' own."""
    tokens = tokenize(text)
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.kind == "name" and token.text in LIBRARY_NAMES and (before is None or before.text not in (".", "->")):
            yield token.text


def other_words(text):
    """Words of C++, members, and words of attributes."""
    tokens = tokenize(text)
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.kind != "name":
            continue
        member = before is not None and before.text in (".", "->")
        if token.text in C_WORDS if not member else not set(token.text) <= COMPONENTS and before.text != "args":
            yield token.text
    for attribute in re.findall(r"\[\[(.*?)\]\]", text):
        yield from re.findall(r"[a-z_]+", attribute)


def whole_forms(text):
    """Directives, and casts to pointers with ``T`` for the type of what they point to."""
    yield from (token.text.strip() for token in tokenize(text) if token.kind == "directive")
    for space, const in re.findall(r"\((device|thread|threadgroup|constant) (const )?\w+\*\)", text):
        yield f"({space} {const}T*)"


@pytest.mark.parametrize("kept", sorted(TEXTS))
def test_a_kept_text(kept, known, forms):
    assert {*words(TEXTS[kept]), *other_words(TEXTS[kept])} - known == set()
    assert set(whole_forms(TEXTS[kept])) - set(forms) == set()


def test_helper_functions(known, forms):
    texts = {name: helper(name).text for name in HELPER_NAMES}
    missing = {name: {*words(text), *other_words(text)} - known for name, text in texts.items()}
    missing |= {f"{name}, whole": set(whole_forms(text)) - set(forms) for name, text in texts.items()}
    assert {name: found for name, found in missing.items() if found} == {}


@pytest.mark.parametrize(
    "line",
    [
        "threadgroup int* p = (constant int*)x;",
        "goto end;",
        "#pragma METAL fp math_mode(relaxed)",
        "#include <metal_atomic>",
        "x.unknown_member();",
        "device int* x [[function_constant(0)]];",
    ],
)
def test_what_no_page_has_is_found(line, known, forms):
    assert {*words(line), *other_words(line)} - known or set(whole_forms(line)) - set(forms)


def test_the_page_has_nothing_that_no_text_uses(known):
    """Or could use: functions are printed as kernels call them."""
    used = {w for text in TEXTS.values() for w in words(text)}
    used |= {w for name in HELPER_NAMES for w in words(helper(name).text)}
    used |= {f.name for f in FUNCTIONS.values()} | PRINTED
    assert (known & LIBRARY_NAMES) - used == set()
