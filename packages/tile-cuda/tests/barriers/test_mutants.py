"""Mistakes in the text of a kernel with explicit barriers, all found by the emulator."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

import tile_emulator
from tile_core.compiler import lower
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_cuda.emulation import dialect_of
from tile_cuda.emulation.opcodes import Arch

from .programs import TARGET, Shape, at, operands
from .programs import product as stored
from .test_copies import product as copied

ORDERS = (
    {"completion": "late"}, {"completion": "early", "order": "random", "seed": 5},
    {"completion": "late", "order": "reverse"},
)  # fmt: skip
ARRIVE, WAIT = r" *mbarrier_arrive_shared_cta_b64\(&{}\[.*\n", r" *mbarrier_wait_parity\(&{}\[.*\n"

#: The mistake -> the program, a pattern, its replacement, and the index of the match; None: all.
MUTANTS = {
    # a role that stores, products that read by themselves
    "arrivals of the copies": ("stored", ARRIVE.format("ready"), "", None),
    "arrivals of the products": ("stored", ARRIVE.format("done"), "", None),
    "no wait for the copies": ("stored", WAIT.format("ready"), "", None),
    "no wait for the products": ("stored", WAIT.format("done"), "", None),
    "no fence for the products": ("stored", r"fence_proxy_async_shared_cta\(\);\n( *mbarrier_arrive)", r"\1", None),
    "parity of the copies": ("stored", r"(wait_parity\(&ready\[k & 1\], )\(k >> 1\) & 1", r"\1k & 1", None),
    "parity of the products": ("stored", r"(wait_parity\(&done\[k & 1\], )\(\(k >> 1\) \+ 1\)", r"\1(k >> 1)", None),
    "one slot for two": ("stored", r"\(k & 1\) \* (\d+)", r"0 * \1", None),
    "an object of another slot": ("stored", r"(arrive_shared_cta_b64\(&ready\[)k & 1", r"\1(k + 1) & 1", None),
    "one arrival too many is counted": ("stored", r"(init_shared_cta_b64\(&ready\[0\], )128", r"\g<1>129", None),
    "one arrival too few is counted": ("stored", r"(init_shared_cta_b64\(&ready\[0\], )128", r"\g<1>127", None),
    "an object that is not made": ("stored", r" *mbarrier_init_shared_cta_b64\(&done\[1\].*\n", "", None),
    "no barrier after objects are made": ("stored", r"\n *__syncthreads\(\);", "", 0),
    "no barrier before objects are dropped": ("stored", r"\n *__syncthreads\(\);", "", -1),
    # a thread that issues copies
    "bytes that are not announced": ("copied", r" *mbarrier_expect_tx_relaxed.*\n", "", 0),
    "other bytes are announced": ("copied", r"(mbarrier_expect_tx_relaxed\w+\([^,]*, )2048", r"\g<1>1024", 0),
    "a copy that is not issued": ("copied", r" *cp_async_bulk_tensor_2d_shared_cluster.*\n", "", 0),
    "a copy that counts elsewhere": ("copied", r"(cp_async_bulk_tensor_2d_sh.*&)full(\[k & 1\]\))", r"\1empty\2", 0),
    "no wait for the bytes": ("copied", WAIT.format("full"), "", None),
    "no wait for the slot": ("copied", WAIT.format("empty"), "", None),
    "no fence of objects": ("copied", r" *fence_mbarrier_init_release_cluster\(\);\n", "", None),
}  # fmt: skip


def text_of(name):
    if name == "stored":
        program, options, shape = stored(Shape(2, 5)), {"wgmma": "always"}, Shape(2, 5)
    else:
        program, options, shape = copied(2, 5), {}, Shape(2, 5)
    return lower(program, make_context(TARGET, options), installed()).lowered, operands(shape, 4)


def found(name, text, changed):
    lowered, (a, b, c, want) = text
    edited = dataclasses.replace(lowered, text=changed, general=None)
    dialect = dialect_of(Arch.of(TARGET.removeprefix("cuda:")))
    names = [p.name for p in lowered.facts.params]
    for how in ORDERS:
        values = dict(zip(names, (a, b, c.copy(), 5), strict=False))
        values = {p.name: values[p.name] for p in lowered.facts.given}
        result = tile_emulator.run(edited.text, edited.facts, values, dialect, **how)
        if result.reports or not np.array_equal(result.outputs["C"].reshape(c.shape), want):
            return True
    return False


@pytest.fixture(scope="module")
def texts():
    return {name: text_of(name) for name in ("stored", "copied")}


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", ["stored", "copied"])
def test_nothing_is_found_in_the_texts_as_they_are(name, texts):
    assert not found(name, texts[name], texts[name][0].text)


@pytest.mark.parametrize("mistake", MUTANTS)
@pytest.mark.sweep(4)
def test_it_is_found(mistake, texts):
    name, pattern, new, nth = MUTANTS[mistake]
    text = texts[name][0].text
    head = text[: text.index('extern "C"')]
    matches = list(re.finditer(pattern, at(text)))
    assert matches, "the text has no such place"
    chosen = matches if nth is None else [matches[nth]]
    changed = at(text)
    for m in reversed(chosen):
        changed = changed[: m.start()] + m.expand(new) + changed[m.end() :]
    assert found(name, texts[name], head + changed)
