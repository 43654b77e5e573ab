"""Products of a warpgroup: results, legal accesses, and detected mistakes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tile_emulator
from tile_cuda.emulation import dialect_of
from tile_cuda.emulation.opcodes import model_of
from tile_cuda.emulation.wgmma_opcodes import has_columns
from tile_cuda.ptx import TABLE
from tile_cuda.ptx.wgmma import COMMIT, FENCE

from ..emit.nvrtc import assemble
from ..vectors.warpgroups import Product
from .launches import SM90, kinds, report_text

pytestmark = pytest.mark.sweep(4)


def run(product, **how):
    kernel, arrays = product.kernel()
    return tile_emulator.run(kernel.text, kernel.facts, arrays, dialect_of(SM90), **how)


def right(product, **how):
    result = run(product, **how)
    assert result.ok, report_text(result)
    assert np.array_equal(product.gathered(result.outputs["out"]), product.expected())


FORMS = {
    "f16": Product(64),
    "f16 across": Product(64, trans=(True, True), swizzles=(64, 128)),
    "f16 A across": Product(16, trans=(True, False), swizzles=(128, 64)),
    "f16 B across, 32 bytes": Product(48, trans=(False, True), swizzles=(32, 32)),
    "f16 without swizzle": Product(24, swizzles=(0, 0)),
    "f16 across without swizzle": Product(24, trans=(True, True), swizzles=(0, 0)),
    "f16 fragments": Product(40, form="rs", trans=(False, True), swizzles=(0, 0)),
    "f16 into f16": Product(256, ("f16", "f16", "f16"), steps=4),
    "bf16": Product(8, ("bf16", "bf16", "f32"), swizzles=(64, 32)),
    "tf32": Product(16, ("tf32", "tf32", "f32"), swizzles=(32, 64)),
    "s8 u8": Product(24, ("s8", "u8", "s32"), swizzles=(64, 128)),
    "u8 s8 fragments": Product(16, ("u8", "s8", "s32"), form="rs"),
    "e4m3 e5m2": Product(32, ("e4m3", "e5m2", "f32")),
    "e5m2 e4m3 into f16": Product(8, ("e5m2", "e4m3", "f16"), swizzles=(0, 0)),
    "sparse f16": Product(24, sparse=True, select=1, swizzles=(64, 128)),
    "sparse f16 across": Product(64, sparse=True, trans=(True, True), swizzles=(64, 64)),
    "sparse bf16 fragments": Product(8, ("bf16", "bf16", "f32"), form="rs", sparse=True),
    "sparse tf32": Product(16, ("tf32", "tf32", "f32"), sparse=True, select=1, swizzles=(64, 128)),
    "sparse s8": Product(32, ("s8", "s8", "s32"), sparse=True, swizzles=(64, 128)),
    "sparse e5m2 fragments": Product(8, ("e5m2", "e5m2", "f32"), form="rs", sparse=True),
}


@pytest.mark.parametrize("completion", ["early", "late"])
@pytest.mark.parametrize("form", FORMS)
def test_numbers(form, completion):
    right(FORMS[form], completion=completion)


PLAIN, ACROSS = Product(16), Product(128, trans=(True, True))
SPARSE = Product(16, sparse=True, select=0, swizzles=(128, 128))
RS = Product(16, form="rs")
#: Mistakes, each with the reports it may cause; "wrong" without a report but with wrong results.
MISTAKES = {
    "no fence of registers": (PLAIN, {"FENCE": ""}, "race"),
    "the fence before the last write of A's fragments": (RS, {"FENCE": "{FENCE} ra[1] *= 3u;"}, "race"),
    "accumulator cleared behind the fence": (PLAIN, {"FENCE": "{FENCE} d[3] = 0.0f;"}, "race"),
    "no fence between the proxies": (PLAIN, {"PROXY": ""}, "race"),
    "a fence of proxies by one warp": (PLAIN, {"PROXY": "if (threadIdx.x < 32) { {PROXY} }"}, "race"),
    "no barrier before": (PLAIN, {"SYNC": ""}, "race uninitialised"),
    "no wait": (PLAIN, {"WAIT": ""}, "race async"),
    "no commit": (PLAIN, {"COMMIT": ""}, "race async"),
    "a wait for all but one group": (PLAIN, {"WAIT": "wgmma_wait_group_sync_aligned_1();"}, "race async"),
    "accumulator read before the wait": (PLAIN, {"ISSUED": "out[threadIdx.x] = d[0];"}, "race"),
    "accumulator read between two": (PLAIN, {"BETWEEN": "out[threadIdx.x] = d[1];"}, "race"),
    "accumulator written before the wait": (PLAIN, {"ISSUED": "d[7] = 1.0f;"}, "race"),
    "fragments rewritten before the wait": (RS, {"ISSUED": "ra[5] = 0;"}, "race"),
    "metadata rewritten before the wait": (SPARSE, {"BETWEEN": "e[0] = e[0] * 3;"}, "race"),
    "shared memory rewritten before the wait": (PLAIN, {"ISSUED": "a[threadIdx.x] = 0;"}, "race"),
    "B rewritten after one warp's wait": (
        PLAIN, {"WAIT": "{WAIT} if (threadIdx.x < 32) b[threadIdx.x] = 0;"}, "race"),
    "a divergent product": (PLAIN, {"PRODUCTS": "if (threadIdx.x < 64) { {PRODUCTS} }"}, "deadlock"),
    "a divergent wait": (PLAIN, {"WAIT": "if (threadIdx.x % 32 < 16) { {WAIT} }"}, "deadlock race async"),
    "another swizzle of A": (PLAIN, {"PRODUCTS": PLAIN.calls(a_swizzle=2)}, "descriptor wrong"),
    "no swizzle of B": (PLAIN, {"PRODUCTS": PLAIN.calls(b_swizzle=0)}, "wrong"),
    "stride of A": (PLAIN, {"PRODUCTS": PLAIN.calls(a_stride=512)}, "wrong"),
    "stride of B beyond it": (PLAIN, {"PRODUCTS": PLAIN.calls(b_stride=4096)}, "bounds uninitialised"),
    "leading offset across": (ACROSS, {"PRODUCTS": ACROSS.calls(b_leading=1024)}, "wrong"),
    "stride across": (ACROSS, {"PRODUCTS": ACROSS.calls(a_stride=2048)}, "bounds wrong"),
    "A not turned": (ACROSS, {"PRODUCTS": ACROSS.calls(function=Product(128, trans=(False, True)).name())}, "wrong"),
    "B turned": (PLAIN, {"PRODUCTS": PLAIN.calls(function=Product(16, trans=(False, True)).name())}, "wrong"),
    "K does not advance": (PLAIN, {"PRODUCTS": " ".join([PLAIN.call(0)] * 4)}, "wrong"),
    "the first one adds to what is there": (PLAIN, {"BEFORE": "for (int i = 0; i < 8; i++) d[i] = 1.0f;"}, "wrong"),
    "the last one does not add": (PLAIN, {"PRODUCTS": PLAIN.call(0) + PLAIN.call(1, adds=0)}, "wrong"),
    "threads with other descriptors": (
        PLAIN, {"PRODUCTS": PLAIN.calls(a="(char*)a + threadIdx.x / 64 * 1024")}, "descriptor"),
    "threads with other predicates": (PLAIN, {"PRODUCTS": PLAIN.calls(adds="threadIdx.x < 64")}, "descriptor"),
    "the other selector": (
        SPARSE, {"PRODUCTS": SPARSE.calls(function=Product(16, sparse=True, select=1).name())}, "metadata"),
    "metadata of the next step": (SPARSE, {"PRODUCTS": SPARSE.calls(e="e + 1")}, "wrong"),
    "metadata of other rows": (SPARSE, {"BEFORE": "e[0] = __shfl_xor_sync(~0u, e[0], 16);"}, "wrong metadata"),
    "a row that crosses its swizzle": (PLAIN, {"PRODUCTS": PLAIN.call(0, a="(char*)a + 112")}, "descriptor"),
    "accumulator of another shape": (
        PLAIN, {"PRODUCTS": PLAIN.call(0) + PLAIN.call(1, function=Product(8).name())}, "race"),
    "accumulator shifted by a register": (PLAIN, {"PRODUCTS": PLAIN.call(0) + PLAIN.call(1, d="d + 1")}, "race"),
}  # fmt: skip


OTHERS = tuple(
    p.name() for p in (Product(8), Product(16, trans=(False, True)), Product(128, trans=(False, True)),
                       Product(16, sparse=True, select=1))
)  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_found(name):
    correct, parts, found = MISTAKES[name]
    mistaken = replace(correct, parts=parts, also=OTHERS)
    result = run(mistaken)
    reported = kinds(result)
    if "wrong" in found.split() and not reported:
        assert not np.array_equal(mistaken.gathered(result.outputs["out"]), correct.expected())
        return
    assert reported & set(found.split()), report_text(result)


def test_a_race_of_registers_names_both_lines():
    mistaken = replace(PLAIN, steps=4, parts={"ISSUED": "d[7] = 1.0f;"})
    text = mistaken.kernel()[0].text.splitlines()
    said = report_text(run(mistaken))
    assert "write of a register that an asynchronous instruction writes until it is waited for" in said
    for part in ("d[7] = 1", "wgmma.mma_async"):
        assert f"line {next(n for n, line in enumerate(text, 1) if part in line)} of the text" in said


def test_same_shape_products_need_no_second_fence():
    """Order instructions of one shape on the same registers; other registers are free."""
    right(replace(PLAIN, parts={"BETWEEN": "ra[0] = 1; e[0] = 2;"}))
    right(replace(PLAIN, parts={"PRODUCTS": PLAIN.calls().replace("BETWEEN", f"{FENCE}(); {COMMIT}();")}))


def test_the_table_of_functions_and_the_models_agree():
    for form in FORMS.values():
        found = TABLE[form.name()]
        assert model_of(found.opcode) is not None, found.opcode
    assert [n for n in range(8, 264, 8) if has_columns(n, True)] == [8, 16, 24, *range(32, 257, 16)]
    for form in (
        "n40k32.s32.s8.s8",
        "n12k16.f32.f16.f16",
        "n8k16.f32.f16.bf16",
        "n8k8.f16.tf32.tf32",
        "n264k16.f32.f16.f16",
    ):
        opcode = f"wgmma.mma_async.sync.aligned.m64{form}"
        assert model_of(opcode) is None


@pytest.mark.parametrize("form", FORMS)
def test_the_assembler_takes_it_without_a_word(form):
    kernel, _ = FORMS[form].kernel()
    assert assemble(kernel.text, "sm_90a") == ""
