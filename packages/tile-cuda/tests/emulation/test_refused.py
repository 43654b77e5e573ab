# ruff: noqa: E501 - texts of kernels
"""Unsupported or undefined operations of devices and PTX: each report and its words."""

import numpy as np
import pytest

from tile_core.target import Capabilities, Target
from tile_cuda.emulation import dialect, dialect_of
from tile_cuda.emulation.opcodes import Arch
from tile_emulator.errors import LaunchRefused, NotModelled

from .launches import kinds, poison, report_text, run

pytestmark = pytest.mark.sweep(2)

ADDRESS = "(unsigned)__cvta_generic_to_shared(smem + {})"
LDMATRIX = 'asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {{%0,%1}}, [%2];" : "=r"(d), "=r"(e) : "r"({}));'
SHUFFLE = 'asm volatile("shfl.sync.idx.b32 %0, %1, {}, 0x1f, {};" : "=r"(d) : "r"(t));'
COPY = (
    'asm volatile("cp.async.{} [%0], [%1], {};" : : "r"({}), "l"({}) : "memory"); asm volatile("cp.async.wait_all;");'
)


def shared(offset):
    return ADDRESS.format(offset)


# Name: code, kind, words. `t` is the thread, `smem` and `x` are memory, d to g are registers.
CASES = {
    "ldmatrix of misaligned rows": (LDMATRIX.format(shared("t * 16 + 8")), "misaligned", "16"),
    "ldmatrix out of shared memory": (LDMATRIX.format(shared("(t + 128) * 16")), "bounds", ""),
    "ldmatrix of unwritten memory": (LDMATRIX.format(shared("1024 + t * 16")), "uninitialised", ""),
    "ldmatrix by half of a warp": (f"if (t < 16) {{ {LDMATRIX.format(shared('t * 16'))} }}", "deadlock", "ldmatrix"),
    "an address of global memory": (LDMATRIX.replace("{}", "(unsigned)__cvta_generic_to_shared(x)").replace("{{", "{").replace("}}", "}"),
                                    "shared", "not in shared memory"),
    "address 0": (LDMATRIX.format("0"), "bounds", ""),
    "stmatrix over what others read": (
        f'd = smem[t * 16]; asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {{%1,%1,%1,%1}};" : : "r"({shared("(31 - t) * 16")}), "r"(d));',
        "race", ""),
    "cp.async of 3 bytes": (COPY.format("ca.shared.global", 3, shared("t * 16"), "x"), "async", "4, 8 and 16"),
    "cp.async.cg of 8 bytes": (COPY.format("cg.shared.global", 8, shared("t * 16"), "x"), "async", "only 16"),
    "cp.async of more than its size": (COPY.format("ca.shared.global", "8, 9", shared("t * 16"), "x"), "async", "takes 9"),
    "cp.async to a misaligned address": (COPY.format("ca.shared.global", 8, shared("t * 16 + 4"), "x"), "misaligned", "8"),
    "cp.async from a misaligned address": (COPY.format("ca.shared.global", 8, shared("t * 16"), "x + 1"), "misaligned", "8"),
    "cp.async from behind an array": (COPY.format("ca.shared.global", 4, shared("t * 16"), "x + 64"), "bounds", ""),
    "a shuffle from a lane that takes no part": (f"if (t < 8) {{ {SHUFFLE.format(9, '0xff')} }}", "collective", "lane 9"),
    "a shuffle by a lane that is not in its mask": (SHUFFLE.format(0, "0x7fffffff"), "collective", "not in its mask"),
    "a shuffle with a lane missing": (f"if (t < 7) {{ {SHUFFLE.format(0, '0xff')} }}", "deadlock", "shfl"),
    "a shuffle of width 12": ("d = __shfl_sync(~0u, t, 1, 12);", "collective", "width 12"),
    "a named barrier of 40 threads": ('asm volatile("bar.sync 1, 40;" ::: "memory");', "barrier", "no whole warps"),
    "barrier 16": ('asm volatile("bar.sync 16;" ::: "memory");', "barrier", "no barrier 16"),
    "a barrier of more threads than there are": ('asm volatile("bar.sync 1, 64;" ::: "memory");', "barrier", "has 32"),
    "tf32 metadata 1101": (
                           'float p, q, r, s; p = q = r = s = 0; asm volatile("mma.sp::ordered_metadata.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 '
                           '{%0,%1,%2,%3}, {%4,%4}, {%4,%4}, {%0,%1,%2,%3}, %5, 0;" : "+f"(p), "+f"(q), "+f"(r), "+f"(s) : "r"(0), "r"(0xdddddddd));',
                           "metadata", "only 0, 1 and 2, 3"),
    "an atomic at a misaligned address": ('asm volatile("red.global.add.u64 [%0], %1;" : : "l"(x + 1), "l"(1ull) : "memory");',
                                          "misaligned", "8"),
    "a vector load at a misaligned address": ('asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(d), "=r"(e), "=r"(f), "=r"(g) : "l"(x + 2));',
                                              "misaligned", "16"),
    "an access of a vector type at a misaligned address": ("uint4 v = *(const uint4*)(x + 2); d = v.x;", "misaligned", ""),
    "an assertion": ("assert(t < 31);", "assert", "t < 31"),
    "a trap": ("if (t == 3) __trap();", "trap", ""),
    "a store to what others read": ('asm volatile("st.global.u32 [%0], %1;" : : "l"(x), "r"(t) : "memory");', "race", ""),
}  # fmt: skip
for nibble in (0, 1, 2, 3, 5, 6, 7, 10, 11, 15):
    code = ('asm volatile("mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s8.u8.s32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, '
            '{%4,%4,%4,%4}, {%4,%4,%4,%4}, %5, 0;" : "=r"(d), "=r"(e), "=r"(f), "=r"(g) : "r"(0), "r"(t == 13 ? 0x44444044u | '
            f'0x{nibble:x}00u : 0x44444444u));')  # fmt: skip
    CASES[f"metadata {nibble:04b}"] = (
        code,
        "metadata",
        f"lane 13 describes row 11 from k = 8 on by {nibble & 3}, {nibble >> 2}",
    )
CASES["a selector of 8-bit metadata"] = (code.replace("%5, 0;", "%5, 1;"), "selector", "less than 1")

NAMES = list(CASES)
TEXT = (
    'extern "C" __global__ void __launch_bounds__(32) cases(int which, unsigned* x) {\n'
    "  extern __shared__ __align__(1024) unsigned char smem[];\n  unsigned t = threadIdx.x, d = 0, e = 0, f = 0, g = 0;\n"
    "  for (int i = 0; i < 32; i++) smem[t * 32 + i] = i;\n  __syncthreads();\n  switch (which) {\n"
    + "".join(f"    case {i}: {{ {CASES[name][0]} break; }}\n" for i, name in enumerate(NAMES))
    + "  }\n  if (d + e + f + g == 123456789u) x[t] = 0;\n}\n"
)


@pytest.mark.parametrize("name", NAMES, ids=lambda name: name.replace(" ", "_"))
def test_is_reported(name):
    _, kind, words = CASES[name]
    result = run(TEXT, [NAMES.index(name), np.zeros(64, "uint32")], shared_bytes=2048)
    assert kind in kinds(result), report_text(result) or "nothing was reported"
    assert words in report_text(result)


def test_the_cases_alone_are_at_fault():
    assert run(TEXT, [-1, np.zeros(64, "uint32")], shared_bytes=2048).ok


def test_a_warp_that_is_not_full():
    text = (
        'extern "C" __global__ void part(unsigned* out) {\n  unsigned d;\n'
        '  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(d) : "r"(threadIdx.x));\n  out[threadIdx.x] = d;\n}\n'
    )
    result = run(text, [poison(40, dtype="uint32")], block=(40, 1, 1))
    assert "8 of 32 threads" in report_text(result)


@pytest.mark.parametrize(("code", "arch", "words"), [
    ('asm volatile("tcgen05.shift.cta_group::1.down [%0];" :: "r"(0u));', "100a", "there is no model of the PTX instruction tcgen05.shift"),
    ('asm volatile("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(x) : "h"(h));', "86", "sm_86 does not have the PTX instruction cvt.rn.f16x2.e4m3x2: it needs sm_89"),
    ('asm volatile("membar.gl %0;" : : "r"(x));', "90a", "too many arguments"),
    ('asm volatile("mov.b32 %0, %1;" : "=r"(h) : "r"(x));', "90a", "size of its constraint"),
    ('asm volatile("mov.f32 %0, %0;" : "+f"(x));', "90a", "type of its constraint"),
    ("x = __no_such_function(x);", "90a", "__no_such_function"),
])  # fmt: skip
def test_a_text_without_a_model_is_refused(code, arch, words):
    text = f'extern "C" __global__ void refused(unsigned* out) {{\n  unsigned x = 1; unsigned short h = 1;\n\n  {code}\n  *out = x + h;\n}}\n'
    with pytest.raises(NotModelled) as found:
        run(text, [poison(1, dtype="uint32")], arch=Arch.of(arch))
    assert words in str(found.value)
    assert "line 4" in str(found.value)


def test_limits_match_the_target():
    capabilities = Capabilities(execution_width=32, max_threads=64, shared_bytes=100)
    found = dialect(Target("cuda:sm_80", "cuda", "cuda", capabilities, "sm_80"))
    assert (found.warp, found.limits.max_threads, found.limits.max_shared_bytes) == (32, 64, 100)
    assert "sm_80" in found.name
    assert dialect_of(Arch(80)).limits.max_threads == 1024
    text = 'extern "C" __global__ void one(int* out) {\n}\n'
    with pytest.raises(LaunchRefused):
        run(text, [poison(1, dtype="int32")], block=(2048, 1, 1))
