"""The dispatcher: priorities, reasons, one error that shows them all, and forced variants."""

from dataclasses import dataclass, field

import pytest

from tile_core.context import Context
from tile_core.errors import KernelError, Where
from tile_core.errors.lowering import (
    NoVariant,
    OpUnavailable,
    UnknownProcessor,
    VariantCrashed,
    VariantMissing,
    VariantRefused,
)
from tile_core.lowering.dispatch import Rejection, select
from tile_core.lowering.legality import Asked, Atom, Legality
from tile_core.lowering.variant import Accept, Reject, Variant, Withdrawn
from tile_core.manifest import BackendManifest
from tile_core.target import Capabilities, Target

CTX = Context(Target("one:x", "one", "one", Capabilities()), BackendManifest("one", ">=1", ("one",), "1"))
HERE = Where("kernel.py", 12)


@dataclass(frozen=True)
class Call:
    name: str = "gemm"
    args: tuple = ()
    attrs: dict = field(default_factory=dict)
    where: Where | None = HERE


class Made(Variant):
    def __init__(self, name, priority, answer, op="gemm", fallback=False):
        self.name, self.priority, self.op, self.fallback = name, priority, op, fallback
        self._answer = answer

    def accepts(self, call, ctx):
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    def lower(self, call, ctx):
        return call


FAST = Made("one.fast", 20, Reject("K=24 is not a multiple of the atom 16; nearest legal: 16 or 32"))
GOOD = Made("one.good", 10, Accept("16 wide", {"width": 16}))
SLOW = Made("one.slow", 0, Accept(), fallback=True)
NEVER = Made("one.never", 5, ZeroDivisionError("asked"))


def test_the_first_that_accepts_in_the_order_of_priorities():
    selection = select(Call(), [SLOW, NEVER, GOOD, FAST], CTX)
    assert selection.variant is GOOD
    assert selection.accepted.note == "16 wide"
    assert selection.accepted.facts["width"] == 16
    assert selection.rejected == (Rejection("one.fast", FAST._answer.reason),)
    assert not selection.forced


def test_falling_back_while_better_ones_refuse_is_reported():
    selection = select(Call(), [SLOW, FAST], CTX)
    assert selection.variant.fallback
    assert selection.rejected == (
        Rejection("one.fast", "K=24 is not a multiple of the atom 16; nearest legal: 16 or 32"),
    )
    assert select(Call(), [SLOW], CTX).rejected == ()


def test_none_fits():
    other = Made("one.other_way", 3, Reject("A is in global; legal: shared"))
    with pytest.raises(NoVariant) as caught:
        select(Call(), [other, FAST, Made("one.copy", 99, Accept(), op="copy")], CTX)
    assert str(caught.value) == (
        "[U101] no variant of gemm fits on one:x:\n"
        "  one.fast       K=24 is not a multiple of the atom 16; nearest legal: 16 or 32\n"
        "  one.other_way  A is in global; legal: shared\n"
        "  --> kernel.py:12\n"
        "   = help: change the call so that one row is satisfied, or choose another target"
    )


@pytest.mark.parametrize(
    ("variants", "hint"),
    [
        ([Made("one.copy", 0, Accept(), op="copy")], "it has variants of: copy"),
        ([], "the target has no variants"),
    ],
)
def test_no_variant_of_the_op(variants, hint):
    with pytest.raises(OpUnavailable) as caught:
        select(Call(), variants, CTX)
    assert str(caught.value) == f"[U102] one:x has no variant of gemm\n  --> kernel.py:12\n   = help: {hint}"


def test_forced():
    selection = select(Call(), [SLOW, GOOD], CTX, forced="one.slow")
    assert selection.variant is SLOW
    assert selection.forced
    assert selection.rejected == ()


def test_forced_but_refused_is_never_replaced():
    with pytest.raises(VariantRefused) as caught:
        select(Call(), [SLOW, GOOD, FAST], CTX, forced="one.fast")
    assert str(caught.value) == (
        "[U104] requested variant one.fast of gemm does not fit on one:x: "
        "K=24 is not a multiple of the atom 16; nearest legal: 16 or 32\n"
        "  --> kernel.py:12\n   = help: change the call, or do not force the variant"
    )


@pytest.mark.parametrize(
    ("forced", "variants", "known", "hint"),
    [
        ("one.fats", [GOOD, FAST], "one.fast, one.good", "did you mean 'one.fast'?"),
        ("qqq", [], "none", "choose one that the target has, or do not force a variant"),
    ],
)
def test_forced_but_missing(forced, variants, known, hint):
    with pytest.raises(VariantMissing) as caught:
        select(Call(), variants, CTX, forced=forced)
    assert str(caught.value) == (
        f"[U103] one:x has no variant {forced!r} of gemm; it has: {known}\n  --> kernel.py:12\n   = help: {hint}"
    )


@pytest.mark.parametrize("forced", [None, "one.never"])
def test_a_crash_is_not_passed_over(forced):
    with pytest.raises(VariantCrashed) as caught:
        select(Call(), [SLOW, NEVER], CTX, forced)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert caught.value.code == "I101"
    assert caught.value.message == "variant one.never raised ZeroDivisionError: asked"
    assert caught.value.where == HERE


def test_lowering_through_the_selection():
    from tile_core.compat.tvm import tirx

    call, statement = Call("unknown"), tirx.Evaluate(0)

    class Right(Made):
        def lower(self, call, ctx):
            return statement

    assert select(call, [Right("one.right", 0, Accept(), op="unknown")], CTX).lower(call, CTX) is statement
    call = Call()

    class Broken(Made):
        def lower(self, call, ctx):
            return call.attrs["x"] if call.attrs else 1 / 0

    selection = select(call, [Broken("one.broken", 0, Accept())], CTX)
    with pytest.raises(VariantCrashed, match=r"variant one\.broken raised ZeroDivisionError: ") as caught:
        selection.lower(call, CTX)
    assert caught.value.where == HERE
    with pytest.raises(VariantCrashed, match=r"variant one\.broken lowered the call to nothing"):
        selection.lower(Call(attrs={"x": None}), CTX)
    with pytest.raises(VariantCrashed, match=r"a value of type int; expected a statement"):
        selection.lower(Call(attrs={"x": 1}), CTX)


def test_an_answer_of_another_type():
    with pytest.raises(VariantCrashed, match=r"one\.bool answered True where Accept or Reject is expected"):
        select(Call(), [Made("one.bool", 0, True)], CTX)


def test_an_error_of_the_catalogue_gets_the_line():
    with pytest.raises(KernelError, match=r"kernel\.py:12"):
        select(Call(), [Made("one.raises", 0, KernelError(message="odd"))], CTX)


def test_unknown_processor():
    with pytest.raises(UnknownProcessor) as caught:
        raise UnknownProcessor(found="znver44", near="znver4, znver3")
    assert str(caught.value) == (
        "[U105] 'znver44' is not the name of a 64-bit processor of LLVM\n"
        "   = help: nearest: znver4, znver3; omit the name to compile for this machine"
    )


class Tabled(Variant):
    name, op, legality = "one.tabled", "gemm", Legality(atoms=(Atom({"K": 16}),))

    def asked(self, call, ctx):
        return Asked(sizes=call.attrs)

    def lower(self, call, ctx):
        return call


def test_a_variant_accepts_what_its_table_allows():
    assert select(Call(attrs={"K": 32}), [Tabled()], CTX).accepted == Accept()
    with pytest.raises(NoVariant, match="K=24 is not a multiple of the atom 16; nearest legal: 16 or 32"):
        select(Call(attrs={"K": 24}), [Tabled()], CTX)
    assert Tabled().layouts(Call(), CTX) == {}
    assert repr(Tabled()) == "<variant one.tabled of gemm, priority 0>"


def test_a_variant_that_does_not_state_its_facts():
    with pytest.raises(VariantCrashed, match=r"one\.tabled has a table that constrains the size K"):
        select(Call(attrs={}), [Tabled()], CTX)


def test_a_variant_that_gave_the_call_back_counts_as_one_that_refused():
    gone = {"one.good": "row-major in shared memory"}
    selection = select(Call(), [SLOW, GOOD], CTX, withdrawn=gone)
    assert selection.variant is SLOW
    assert selection.rejected == (Rejection("one.good", gone["one.good"]),)
    with pytest.raises(VariantRefused, match="row-major in shared memory"):
        select(Call(), [SLOW, GOOD], CTX, "one.good", gone)


class Gives(Made):
    def lower(self, call, ctx):
        raise Withdrawn("row-major in shared memory")


def test_giving_a_call_back_is_no_crash():
    with pytest.raises(Withdrawn, match="row-major"):
        select(Call(), [Gives("one.gives", 1, Accept())], CTX).lower(Call(), CTX)
