"""Processors by LLVM's names: which are known to compile, and which this machine can run."""

from __future__ import annotations

from tile_core.compat.tvm import tvm
from tile_core.cpu.isa import INSTRUCTIONS, Isa, features_of, hidden_here

__all__ = ["is_64_bit", "is_swept", "missing_here", "needed"]

#: LLVM's version, and its names of the processors for which a sweep of tests compiles each vector form.
_LLVM = 22
_SWEPT = frozenset(
    """
    alderlake amdfam10 arrowlake arrowlake-s arrowlake_s athlon-fx athlon64 athlon64-sse3 atom atom_sse4_2
    atom_sse4_2_movbe barcelona bdver1 bdver2 bdver3 bdver4 bonnell broadwell btver1 btver2 cannonlake
    cascadelake clearwaterforest cooperlake core-avx-i core-avx2 core2 core_2_duo_sse4_1 core_2_duo_ssse3
    core_2nd_gen_avx core_3rd_gen_avx core_4th_gen_avx core_4th_gen_avx_tsx core_5th_gen_avx
    core_5th_gen_avx_tsx core_aes_pclmulqdq core_i7_sse4_2 corei7 corei7-avx diamondrapids emeraldrapids generic
    goldmont goldmont-plus goldmont_plus gracemont grandridge graniterapids graniterapids-d graniterapids_d
    haswell icelake-client icelake-server icelake_client icelake_server ivybridge k8 k8-sse3 knl knm lunarlake
    meteorlake mic_avx512 nehalem nocona novalake opteron opteron-sse3 pantherlake penryn raptorlake rocketlake
    sandybridge sapphirerapids sierraforest silvermont skx skylake skylake-avx512 skylake_avx512 slm tigerlake
    tremont westmere wildcatlake x86-64 x86-64-v2 x86-64-v3 x86-64-v4 znver1 znver2 znver3 znver4 znver5
    a64fx ampere1 ampere1a ampere1b ampere1c apple-a10 apple-a11 apple-a12 apple-a13 apple-a14 apple-a15
    apple-a16 apple-a17 apple-a7 apple-m4 apple-m5 c1-nano c1-premium c1-pro c1-ultra carmel cortex-a320
    cortex-a34 cortex-a35 cortex-a510 cortex-a520 cortex-a520ae cortex-a53 cortex-a55 cortex-a57 cortex-a65
    cortex-a65ae cortex-a710 cortex-a715 cortex-a72 cortex-a720 cortex-a720ae cortex-a725 cortex-a73 cortex-a75
    cortex-a76 cortex-a76ae cortex-a77 cortex-a78 cortex-a78ae cortex-a78c cortex-r82 cortex-r82ae cortex-x1
    cortex-x1c cortex-x2 cortex-x3 cortex-x4 cortex-x925 exynos-m3 exynos-m4 exynos-m5 falkor fujitsu-monaka
    gb10 generic grace kryo neoverse-512tvb neoverse-e1 neoverse-n1 neoverse-n2 neoverse-n3 neoverse-v1
    neoverse-v2 neoverse-v3 neoverse-v3ae olympus oryon-1 saphira thunderx thunderx2t99 thunderx3t110
    thunderxt81 thunderxt83 thunderxt88 tsv110
    """.split()
)


def is_64_bit(mcpu: str) -> bool:
    """Whether a processor runs 64-bit code: LLVM ends the process over any other."""
    features = features_of(mcpu)
    return "64bit-mode" not in features or "64bit" in features


def is_swept(mcpu: str) -> bool:
    """Whether vector code is known to compile for a processor."""
    return tvm.target.codegen.llvm_version_major() == _LLVM and mcpu in _SWEPT


def missing_here(isa: Isa) -> list[str]:
    """Return the features that code for a processor may need and this machine may lack."""
    host = str(tvm.target.codegen.llvm_get_system_cpu())
    have = features_of(host).difference(hidden_here(host))
    return [f for f in needed(isa) if f not in have]


def needed(isa: Isa) -> list[str]:
    """Return the features whose instructions code for a processor may have, sorted."""
    off = {name[1:] for name in isa.mattr if name.startswith("-")}
    return sorted(f for f in features_of(isa.mcpu) - off if INSTRUCTIONS.fullmatch(f))
