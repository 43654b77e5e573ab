"""The table of instructions: each function assembles on every architecture that the table claims."""

from __future__ import annotations

import pytest

from tile_cuda.ptx import TABLE, Instruction, has, instruction, prelude
from tile_cuda.ptx.errors import InstructionMissing

from .nvrtc import ARCHITECTURES, assemble

pytestmark = pytest.mark.sweep(6)

TYPES = [
    "typedef unsigned short f16;", "typedef unsigned short bf16;",
    "struct __align__(64) CUtensorMap { unsigned long long opaque[16]; };",
]  # fmt: skip


def call(found: Instruction, number: int) -> str:
    """A kernel that calls a function with given addresses and values."""
    pointers = [f"void* p{i}" for i, p in enumerate(found.parameters) if p.parameter.endswith("*")]
    values = [
        f"({p.parameter})p{i}" if p.parameter.endswith("*") else f"({p.parameter})x"
        for i, p in enumerate(found.parameters)
    ]
    text = f"{found.name}({', '.join(values)})"
    statement = f"{text};" if found.result == "void" else f"*({found.result}*)out = {text};"
    if found.opcode.startswith("wgmma.commit_group"):
        # The assembler adds a wait where a kernel ends with a group in flight, and reports it.
        statement += " wgmma_wait_group_sync_aligned_0();"
    # The assembler requires the initial number of registers of a thread that changes it.
    head = "__launch_bounds__(128, 1) " if found.opcode.startswith("setmaxnreg") else ""
    parameters = ", ".join([*pointers, "void* out", "int x"])
    return f'extern "C" __global__ void {head}k{number}({parameters}) {{ {statement} }}'


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_function_assembles_on_every_architecture_that_has_it(arch: str) -> None:
    names = [n for n, found in TABLE.items() if has(found, arch)]
    # The logical operations of three operands differ in one number.
    names = [n for n in names if not n.startswith("lop3") or n[-2:] in ("00", "ea", "96", "ff")]
    text = [*TYPES, *prelude(names, arch), *(call(TABLE[n], i) for i, n in enumerate(names))]
    assert assemble("\n".join(text), arch) == ""


@pytest.mark.parametrize(
    "name",
    [
        "stmatrix_sync_aligned_m8n8_x4_shared_b16",
        "mma_sync_aligned_m16n8k32_row_col_f32_e4m3_e4m3_f32",
        "atom_global_add_noftz_bf16",
        "cvt_rn_f16x2_e4m3x2",
    ],
)
def test_unsupported_instructions_are_refused_by_the_assembler_too(name: str) -> None:
    found = TABLE[name]
    with pytest.raises(InstructionMissing) as refused:
        instruction(name, "sm_80")
    assert refused.value.code == "U710"
    assert name in str(refused.value)
    assert found.arch in str(refused.value)
    text = [*TYPES, *TABLE["shared_address"].lines(), *found.lines(), call(found, 0)]
    assert assemble("\n".join(text), "sm_80") != ""


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(InstructionMissing, match="has no instruction mma_sync_nothing"):
        instruction("mma_sync_nothing", "sm_90a")


def test_only_used_functions_are_printed_once_and_in_table_order() -> None:
    lines = prelude(["ldmatrix_sync_aligned_m8n8_x4_shared_b16", "cvt_f32_f16", "cvt_f32_f16"], "sm_80")
    heads = [line.split("(")[0].split()[-1] for line in lines if line.startswith("__device__")]
    assert heads == ["shared_address", "cvt_f32_f16", "ldmatrix_sync_aligned_m8n8_x4_shared_b16"]


def test_a_function_includes_its_callees() -> None:
    text = "\n".join(prelude(["atomic_global_max_bf16"], "sm_80"))
    for name in ("ld_relaxed_gpu_global_b16", "atom_global_cas_b16", "cvt_rn_bf16_f32", "cvt_f32_bf16"):
        assert f"{name}(" in text
    assert text.index("cvt_f32_bf16(") < text.index("atom_global_cas_b16(") < text.index("atomic_global_max_bf16(")


def test_one_asm_statement_per_instruction_named_like_it() -> None:
    for name, found in TABLE.items():
        text = "\n".join(found.lines())
        assert text.count("asm") == (1 if found.opcode else 0), name
        if found.opcode:
            assert found.opcode in text
            assert name.startswith("".join(c if c.isalnum() else "_" for c in found.opcode.replace("::", ".")))


def test_memory_and_order_are_never_lost() -> None:
    for name, found in TABLE.items():
        touches = any(o.role in ("shared", "global") for o in found.operands) or "fence" in name or "cp_async" in name
        if found.opcode and touches:
            assert found.volatile, name
            assert found.memory, name
    assert not TABLE["mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32"].volatile
