"""Legality tables: what is legal passes, and each refusal names the nearest legal value."""

import random

import pytest

from tile_core.errors.lowering import VariantCrashed
from tile_core.errors.plugins import InvalidDeclaration
from tile_core.lowering.legality import Alignment, Asked, Atom, Extent, Legality

HALF = ("float16", "float16", "float32")
BYTE = ("int8", "int8", "int32")
TABLE = Legality(
    operands=("A", "B", "C"),
    dtypes={HALF, BYTE},
    atoms=(
        Atom({"M": 64, "N": Extent(8, high=256), "K": 16}, {HALF}),
        Atom({"M": 64, "N": Extent(8, high=256), "K": 32}, {BYTE}),
    ),
    scopes={"A": ("shared", "local.fragment"), "C": ("local.fragment",)},
    alignments=(Alignment("A", "offset", 16),),
    threads=Extent(128, high=512),
)
GOOD = {
    "sizes": {"M": 128, "N": 96, "K": 32},
    "dtypes": dict(zip("ABC", HALF, strict=True)),
    "scopes": {"A": "shared", "B": "global", "C": "local.fragment"},
    "alignments": {("A", "offset"): 32},
    "threads": 256,
}


def check(table=TABLE, **changes):
    return list(table.check(Asked(**{**GOOD, **changes}), "x.y"))


def sizes(**changes):
    return {"sizes": {**GOOD["sizes"], **changes}}


def test_legal():
    assert check() == []
    assert check(dtypes=dict(zip("ABC", BYTE, strict=True))) == []
    assert check(alignments={("A", "offset"): 0}) == []  # an offset of zero is a multiple of everything
    assert Legality().check(Asked()) == ()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (sizes(K=24), "K=24 is not a multiple of the atom 16; nearest legal: 16 or 32"),
        (sizes(M=65), "M=65 is not a multiple of the atom 64; nearest legal: 64 or 128"),
        (sizes(M=1), "M=1 is not a multiple of the atom 64; nearest legal: 64"),
        (sizes(N=264), "N=264 is above the limit 256; nearest legal: 256"),
        (sizes(N=None), "N is not known at compile time; it must be a multiple of 8 up to 256"),
        (
            {"dtypes": {"A": "float16", "B": "float16", "C": "float64"}},
            "no instruction for the types A float16, B float16, C float64; "
            "nearest legal: A float16, B float16, C float32",
        ),
        (
            {"scopes": {**GOOD["scopes"], "A": "global"}},
            "A is in global; legal: shared or local.fragment",
        ),
        (
            {"alignments": {("A", "offset"): 8}},
            "the offset of A is a multiple of 8 bytes; nearest legal: a multiple of 16",
        ),
        ({"threads": 96}, "threads=96 is not a multiple of 128; nearest legal: 128"),
        ({"threads": 640}, "threads=640 is above the limit 512; nearest legal: 512"),
        (
            {"threads": None},
            "the number of threads is not known at compile time; it must be a multiple of 128 up to 512",
        ),
    ],
)
def test_one_reason(changes, reason):
    assert check(**changes) == [reason]


def test_all_reasons_are_told():
    reasons = check(**sizes(M=3, K=5), threads=1, scopes={"A": "global", "C": "global"})
    assert [r.split()[0] for r in reasons] == ["A", "C", "M=3", "K=5", "threads=1"]


def test_the_shape_depends_on_the_types():
    assert check(dtypes=dict(zip("ABC", BYTE, strict=True)), **sizes(K=48)) == [
        "K=48 is not a multiple of the atom 32; nearest legal: 32 or 64"
    ]


def test_no_shape_for_a_legal_combination():
    table = Legality(operands=("A",), dtypes={("int8",), ("int4",)}, atoms=(Atom({"K": 16}, {("int8",)}),))
    asked = Asked(sizes={"K": 16}, dtypes={"A": "int4"})
    assert table.check(asked) == ("no shape for the types A int4",)


def test_the_atom_that_needs_least_change_is_told():
    table = Legality(atoms=(Atom({"M": 64, "N": 64}), Atom({"M": 16, "N": 64})))
    assert table.check(Asked(sizes={"M": 32, "N": 40})) == ("N=40 is not a multiple of the atom 64; nearest legal: 64",)


def test_a_tail_takes_remainders_and_unknown_sizes():
    table = Legality(atoms=(Atom({"M": 64, "N": Extent(8, high=256)}),), tails={"M", "N"})
    assert table.check(Asked(sizes={"M": 65, "N": 7})) == ()
    assert table.check(Asked(sizes={"M": None, "N": None})) == ()
    assert table.check(Asked(sizes={"M": 65, "N": 264})) == ("N=264 is above the limit 256; nearest legal: 256",)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"sizes": {"M": 64}}, "the size N"),
        ({"dtypes": {}}, "the type of A"),
        ({"scopes": {}}, "the scope of A"),
        ({"alignments": {}}, "the alignment of the offset of A"),
    ],
)
def test_a_fact_that_is_constrained_must_be_stated(changes, what):
    with pytest.raises(VariantCrashed) as caught:
        check(**changes)
    assert str(caught.value) == (
        f"[I101] variant x.y has a table that constrains {what}, but does not state it\n"
        "   = help: this is a defect of the backend that owns the variant, "
        "please report it to its authors with the kernel"
    )


@pytest.mark.parametrize("seed", range(20))
def test_nearest_values_are_legal_and_nothing_legal_is_nearer(seed):
    rng = random.Random(seed)
    step = rng.randint(1, 9)
    low = step * rng.randint(1, 4)
    high = rng.choice([None, low + rng.randint(0, 40)])
    extent = Extent(step, low, high)
    legal = [v for v in range(1, 200) if v % step == 0 and v >= low and (high is None or v <= high)]
    for value in range(1, 100):
        assert (value in extent) == (value in legal)
        nearest = extent.nearest(value)
        assert set(nearest) <= set(legal)
        below, above = [v for v in legal if v <= value][-1:], [v for v in legal if v >= value][:1]
        assert list(nearest) == sorted({*below, *above})


def test_rows():
    assert TABLE.rows() == [
        ("types", "A float16, B float16, C float32"),
        ("types", "A int8, B int8, C int32"),
        ("atom", "M x N x K = 64 x (a multiple of 8 up to 256) x 16"),
        ("atom", "M x N x K = 64 x (a multiple of 8 up to 256) x 32"),
        ("scope of A", "shared, local.fragment"),
        ("scope of C", "local.fragment"),
        ("offset of A", "a multiple of 16 bytes"),
        ("threads", "a multiple of 128 up to 512"),
    ]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Extent(0),
        lambda: Extent(4, low=6),
        lambda: Extent(4, low=8, high=7),
        lambda: Alignment("A", "colour", 16),
        lambda: Alignment("A", "base", 0),
        lambda: Legality(operands=("A",), dtypes={HALF}),
        lambda: Legality(operands=("A",), atoms=(Atom({"M": 1}, {HALF}),)),
    ],
)
def test_a_table_that_contradicts_itself(make):
    with pytest.raises(InvalidDeclaration, match="S101"):
        make()


def test_an_atom_says_what_it_computes_in():
    narrow = Atom({"M": 16, "K": 8}, {BYTE}, ("float16", "float16", "float32"))
    assert Legality(operands=("A", "B", "C"), atoms=(narrow,)).rows() == [
        ("atom", "M x K = 16 x 8 of float16, float16, float32")
    ]
