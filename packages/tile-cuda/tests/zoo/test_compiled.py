"""Machine code of the zoo for every architecture; large products without local memory."""

from __future__ import annotations

import functools

import pytest
from zoo import programs
from zoo.table import BF16, F16, INT8, NT, TF32

from tile_core.errors import UnsupportedError
from tile_cuda.build import build

from .launch import lowered, text_of
from .table import ZOO

pytestmark = pytest.mark.sweep(4)

pytest.importorskip("cuda.bindings.nvrtc")

ARCHITECTURES = ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a")

#: Products as they are written for speed: types, block, stages, transposed operands, threads.
LARGE = {
    "f16": (F16, (128, 128, 32), 3, (False, False), 128),
    "f16_nt": (F16, (128, 128, 64), 2, NT, 256),
    "f16_256": (F16, (128, 256, 32), 3, (False, False), 256),
    "bf16": (BF16, (128, 128, 32), 4, NT, 128),
    "tf32": (TF32, (128, 128, 32), 2, NT, 256),
    "int8": (INT8, (128, 128, 64), 3, NT, 128),
}


@pytest.mark.sweep(24)
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", [e.name for e in ZOO])
def test_compiles(name, arch):
    cubin = build(text_of(name, arch), arch)
    assert cubin.data[:4] == b"\x7fELF"
    # Divisions by a value are functions of their own, which save registers.
    assert cubin.spill_bytes == 0 or "attention" in name, cubin


@functools.cache
def large(name, arch):
    types, block, stages, trans, threads = LARGE[name]
    return lowered(programs.gemm(4096, 4096, 4096, types, block, stages, trans, threads), arch)


@pytest.mark.sweep(18)
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", LARGE)
def test_large_products_are_kept_in_registers(name, arch):
    text = large(name, arch)
    assert text.facts.shared_bytes <= 99 * 1024
    cubin = build(text, arch)
    assert cubin.spill_bytes == cubin.stack_bytes == 0, cubin
    # A warp's share of the accumulator, both fragments, and addresses.
    assert cubin.registers <= 255, cubin


def test_a_large_sparse_product_is_kept_in_registers():
    program = programs.gemm_sp(2048, 2048, 2048, "float16", cutlass=True, block=(128, 128, 64))
    cubin = build(lowered(program, "sm_80"), "sm_80")
    assert cubin.spill_bytes == cubin.stack_bytes == 0, cubin


#: Shared memory of the only kernel here that not every architecture can run: 128 KiB.
ROOMY = ("sm_80", "sm_90a", "sm_100a")


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_more_shared_memory_than_a_block_can_have(arch):
    program = programs.gemm(512, 512, 512, F16, (128, 128, 64), 4, (False, False))
    if arch in ROOMY:
        barriers = 4 * 8 if arch == "sm_90a" else 0  # of the slots, which bulk copies fill
        assert lowered(program, arch).facts.shared_bytes == 128 * 1024 + barriers
        return
    with pytest.raises(UnsupportedError) as caught:
        lowered(program, arch)
    assert "131072" in str(caught.value)
