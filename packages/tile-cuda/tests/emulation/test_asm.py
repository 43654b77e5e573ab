# ruff: noqa: E501 - texts of kernels
"""The translation of ``asm`` statements: its output, and complete refusal of other statements."""

import pytest

from tile_cuda.emulation import shared_memory
from tile_cuda.emulation.asm import Refused, translate
from tile_cuda.emulation.opcodes import Arch, finder, model_of


def printed(text, arch="sm_90a"):
    return translate(text, finder(Arch.of(arch)))


def body(template, operands=': "=r"(d) : "r"(a)'):
    return printed(f'asm volatile("{template}" {operands});')


def test_a_statement_becomes_a_call():
    code = body(
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];", ': "=r"(d[0]) : "r"(shared_address(p)) : "memory"'
    )
    assert "ptx::ldmatrix_sync_aligned_m8n8_x1_shared_b16(__LINE__, ptx::v(r0), r1);" in code
    assert "auto& to0 = (d[0]);" in code
    assert "ptx::take<ptx::reg_r>(shared_address(p))" in code
    assert code.endswith(";")


def test_colons_and_dots_become_underscores():
    opcode = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
    assert model_of(opcode).call == opcode.replace("::", "_").replace(".", "_")


def test_orders_scopes_and_parts_of_memory_become_template_arguments():
    assert (
        model_of("atom.acq_rel.gpu.shared::cta.add.u32").call == "atom<ptx::ACQ_REL, ptx::SHARED, ptx::Add, ptx::u32>"
    )
    assert model_of("ld.volatile.global.v2.f32").call == "ld<ptx::VOLATILE, ptx::GLOBAL, float>"


def test_line_numbers_are_kept():
    text = 'int a;\nasm volatile("cp.async"\n  ".commit_group;" // why\n  ::: "memory");\nint b; // asm("x")\nconst char* s = "asm(1)";\n'
    code = printed(text)
    assert code.count("\n") == text.count("\n")
    assert code.splitlines()[4:] == text.splitlines()[4:]
    assert "ptx::cp_async_commit_group(__LINE__);" in code


@pytest.mark.parametrize("head", ["asm", "asm volatile", "__asm__ __volatile__", "asm  volatile\t"])
def test_every_spelling(head):
    assert "ptx::membar_gl" in printed(f'{head}("membar.gl;");')


def test_other_code_is_unchanged():
    text = 'int plasma(int asm_count) { return asm_count; } /* asm("bar") */ char c = \'"\'; // asm volatile("x")\n'
    assert printed(text) == text


def test_blocks_registers_predicates_labels():
    code = body(
        "{ .reg .pred p, q; .reg .b32 t; again: setp.ne.u32 p, %1, 0; @p bra done; @!p mov.b32 %0, 1; bra again; done: }"
    )
    assert "__label__ at_again, at_done;" in code
    assert "bool reg_p" in code
    assert "ptx::reg_r reg_t" in code
    assert "if (reg_p) { goto at_done; }" in code
    assert "if (!reg_p) { ptx::mov_b32(__LINE__, r0, 1); }" in code


def test_operands():
    assert "ptx::both(r0, reg_p)" in body("{ .reg .pred p; shfl.sync.idx.b32 %0|p, %1, 0, 0x1f, -1; }")
    assert "(r1 + 16)" in body("ld.shared.b32 %0, [%1+16];")
    assert "ptx::bits_f(0x3f800000u)" in body("mov.f32 %0, 0f3f800000;", ': "=f"(x)')
    assert "ptx::sink" in body("atom.global.add.u32 _, [%0], 1;", ': : "l"(p)')
    assert "ptx::special_tid_x()" in body("mov.u32 %0, %%tid.x;")
    assert "constexpr long long r0 = (2);" in body("cp.async.wait_group %0;", ': : "n"(2)')
    assert "ptx::take<ptx::reg_f>(to0)" in body("mov.f32 %0, %1;", ': "+f"(x) : "f"(y)')


REFUSED = {
    "there is no model of the PTX instruction foo.bar::x": ("foo.bar::x %0, %1;", ': "=r"(d) : "r"(a)'),
    "does not end with a semicolon": ("membar.gl", ""),
    "no register for the output constraint '=q'": ("mov.b32 %0, 1;", ': "=q"(d)'),
    "no register for the input constraint 'C'": ("mov.b32 %0, 1;", ': "=r"(d) : "C"(a)'),
    "cannot be read": ("mov.b32 %0, 1;", ": =r(d)"),
    "has no operand %3": ("mov.b32 %0, %3;", ': "=r"(d) : "r"(a)'),
    "not a register of the asm statement": ("mov.b32 %0, t;", ': "=r"(d)'),
    "the label out is not in": ("bra out;", ""),
    "two labels of one name": ("x: x: membar.gl;", ""),
    "the registers .b8 t cannot be read": (".reg .b8 t;", ""),
    "the operand '%%clock' cannot be read": ("mov.u32 %0, %%clock;", ': "=r"(d)'),
    "more than four sections": ("membar.gl;", ": : : : lost"),
}


@pytest.mark.parametrize("message", REFUSED)
def test_an_unreadable_statement_is_a_compile_error(message):
    template, operands = REFUSED[message]
    code = printed(f'asm volatile("{template}" {operands});')
    assert code.startswith('_Pragma("GCC error')
    assert message in code


def test_text_that_is_no_literal_is_refused():
    assert "must be string literals" in printed("asm(NAME);")


@pytest.mark.parametrize(("arch", "opcode", "need"), [
    ("sm_80", "stmatrix.sync.aligned.m8n8.x1.shared.b16", "sm_90"),
    ("sm_86", "cvt.rn.satfinite.e4m3x2.f32", "sm_89"),
    ("sm_80", "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.e4m3.e5m2.f32", "sm_89"),
    ("sm_89", "atom.global.add.noftz.bf16x2", "sm_90"),
])  # fmt: skip
def test_an_architecture_lacks_newer_instructions(arch, opcode, need):
    with pytest.raises(Refused, match=f"{arch} does not have .* needs {need}"):
        finder(Arch.of(arch))(opcode)
    assert finder(Arch.of(need))(opcode)
    assert finder(Arch.of("sm_120a"))(opcode)


@pytest.mark.parametrize("opcode", [
    "atom.global.add.s64", "atom.global.min.f32", "red.global.exch.b32", "red.acquire.gpu.global.add.u32", "atom.acquire.global.add.u32",
    "ld.acquire.gpu.global.v2.u32", "ld.global.v4.u64", "st.acquire.gpu.global.u32", "ld.shared.nc.u32", "ld.global", "atom",
    "mma.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
    "ldmatrix.sync.aligned.m8n8.x3.shared.b16", "cp.async.cg.shared.global.L2::64K",
])  # fmt: skip
def test_forms_that_do_not_exist_have_no_model(opcode):
    assert model_of(opcode) is None


def test_a_text_that_is_no_architecture():
    with pytest.raises(ValueError, match="not an architecture"):
        Arch.of("ampere")
    assert Arch.of("90a") == Arch(90, "a")
    assert not Arch(100, "a").has(Arch(90, "a"))


def test_shared_memory():
    text = (
        "extern __shared__ __align__(1024) unsigned char smem[];\n__shared__ float s[4];\nextern\n__shared__ float t[];"
    )
    code = shared_memory(text)
    assert code.splitlines() == [
        "unsigned char* const smem = (unsigned char*)simt::block->shared;", "SIMT_SHARED float s[4];",
        "float* const t = (float*)simt::block->shared;",
    ]  # fmt: skip
    assert code.count("\n") == text.count("\n") or code.endswith("\n")
    assert "GCC error" in shared_memory("extern __shared__ alignas(4096) char smem[];")
