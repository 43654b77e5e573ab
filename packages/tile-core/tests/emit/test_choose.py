"""A call runs the first text whose assumptions hold."""

import dataclasses
import threading

import pytest
from expected_errors import raises_error

from tile_core.abi.kernel_text import KernelText, LaunchFacts, ParamFact
from tile_core.errors import InternalError, Where
from tile_core.errors.launch import TextDoesNotServe
from tile_runtime.texts.choose import Assumptions, TextChoice

HERE = Where("kernel.py", 3)


def facts(align=16, divides=None, **changes):
    base = LaunchFacts(
        entry="gemm",
        params=(
            ParamFact("a", "pointer", "float16", "read", align),
            ParamFact("c", "pointer", "float32", "write"),
            ParamFact("m", "scalar", "int32"),
            ParamFact("n", "scalar", "int64"),
            ParamFact("x", "scalar", "float32"),
        ),
        grid=("m", 1, 1),
        block=(32, 1, 1),
        where=HERE,
        divides={"m": 8, "n": 3} if divides is None else divides,
    )
    return dataclasses.replace(base, **changes)


GOOD = (4096, 100, 16, -9, 0.5)


class Texts:
    """Texts of two, one and no assumptions, and lists of those made and loaded."""

    def __init__(self):
        self.made, self.loaded = [], []
        self.plain = KernelText("plain", facts(0, {}))
        middle = KernelText("middle", facts(4, {"n": 3}), lambda: self.make(self.plain))
        self.first = KernelText("first", facts(), lambda: self.make(middle))
        self.choice = TextChoice(self.first, self.load)

    def make(self, kernel):
        self.made.append(kernel.text)
        return kernel

    def load(self, kernel):
        self.loaded.append(kernel.text)
        return kernel.text


@pytest.mark.parametrize(
    ("change", "holds"),
    [
        ({}, True),
        ({0: 4096 + 8}, False),
        ({0: 0}, True),
        ({1: 101}, True),
        ({2: 0}, True),
        ({2: 17}, False),
        ({2: -8}, True),
        ({3: 10}, False),
        ({3: -10}, False),
        ({3: 0}, True),
    ],
)
def test_assumptions(change, holds):
    values = [change.get(i, v) for i, v in enumerate(GOOD)]
    assert Assumptions(facts()).hold(values) is holds
    assert Assumptions(facts(0, {})).hold(values)


def test_what_the_binder_has_checked_is_no_assumption():
    assert not Assumptions(facts(2, {"m": 1}))
    assert Assumptions(facts(4, {}))


def test_the_preferred_text_is_the_only_one_made():
    texts = Texts()
    assert [texts.choice(GOOD), texts.choice(GOOD)] == ["first", "first"]
    assert texts.choice.loaded() == "first"
    assert (texts.made, texts.loaded) == ([], ["first"])


def test_more_general_texts_are_made_once_as_needed():
    texts = Texts()
    off = (4096 + 4, 100, 16, -9, 0.5)
    assert texts.choice(off) == "middle"
    assert texts.choice(GOOD) == "first"
    assert texts.choice((1, 100, 16, 7, 0.5)) == "plain"
    assert texts.choice((1, 100, 16, 7, 0.5)) == "plain"
    assert texts.choice(off) == "middle"
    assert (texts.made, texts.loaded) == (["middle", "plain"], ["middle", "first", "plain"])


def test_threads_share_what_is_made():
    texts = Texts()
    values = [(1 << i, 100, 16 + i % 2, i, 0.5) for i in range(40)]
    found = [None] * len(values)

    def work(start):
        for i in range(start, len(values), 4):
            found[i] = texts.choice(values[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(texts.loaded) == ["first", "middle", "plain"]
    assert found == [Texts().choice(v) for v in values]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {0: 0x1008},
            "'a' is the address 0x1008; the kernel was compiled for addresses that are a multiple of 16 bytes",
        ),
        ({2: 17}, "'m' is 17; the kernel was compiled for multiples of 8 only"),
        ({3: 7}, "'n' is 7; the kernel was compiled for multiples of 3 only"),
    ],
)
def test_without_a_general_text_a_call_is_refused(change, message):
    choice = TextChoice(KernelText("first", facts()), lambda kernel: kernel.text)
    with raises_error(TextDoesNotServe, kernel="gemm") as caught:
        choice([change.get(i, v) for i, v in enumerate(GOOD)])
    assert message in str(caught.value)
    assert caught.value.where == HERE


def test_a_general_text_that_does_not_exist_is_a_refusal_too():
    asked = []
    choice = TextChoice(KernelText("first", facts(), lambda: asked.append(1)), lambda kernel: kernel.text)
    for _ in range(2):
        with raises_error(TextDoesNotServe, name="m", found=17):
            choice([{2: 17}.get(i, v) for i, v in enumerate(GOOD)])
    assert choice(GOOD) == "first"


def test_a_load_that_fails_is_tried_again():
    results = iter([OSError("no driver"), "loaded"])

    def load(kernel):
        result = next(results)
        if isinstance(result, Exception):
            raise result
        return result

    choice = TextChoice(KernelText("first", facts()), load)
    with pytest.raises(OSError, match="no driver"):
        choice(GOOD)
    assert choice(GOOD) == "loaded"


def test_the_general_text_is_called_alike():
    other = KernelText("other", facts(0, {}, params=facts().params[:-1]))
    choice = TextChoice(KernelText("first", facts(), lambda: other), lambda kernel: kernel.text)
    with pytest.raises(InternalError, match="other parameters"):
        choice((1, 100, 16, 7, 0.5))
