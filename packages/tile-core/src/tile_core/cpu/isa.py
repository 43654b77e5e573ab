"""Facts about CPUs that code generation uses: a small table, derived from LLVM's feature lists."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import replace

from tile_core.compat.tvm import tvm
from tile_core.records import dataclass
from tile_runtime.cpu.processor import hidden, lacking


@dataclass(frozen=True)
class Isa:
    """The vector unit of a CPU, as data.

    Attributes
    ----------
    name
        ``"avx512"``, ``"avx2"``, ``"avx"``, ``"sse2"``, ``"neon"`` or ``"scalar"``.
    vector_bits
        Width of one vector register in bits.
    registers
        Number of vector registers.
    fma
        Whether a fused multiply-add instruction exists (else a product needs a register of its own).
    fp16_conversion
        Whether float16 and float32 convert into each other by vector instructions.
    mcpu
        LLVM's name of the CPU.
    mattr
        LLVM feature flags to add to those of ``mcpu``.
    features
        LLVM's features that stand for instructions of products.
    """

    name: str
    vector_bits: int
    registers: int
    fma: bool
    fp16_conversion: bool
    mcpu: str
    mattr: tuple[str, ...] = ()
    features: tuple[str, ...] = ()

    def lanes(self, bits: int) -> int:
        """Elements of ``bits`` bits that one vector register holds (at least one)."""
        return max(1, self.vector_bits // bits)

    def target(self) -> dict[str, object]:
        """The TVM target dictionary that generates code for this CPU."""
        described: dict[str, object] = {"kind": "llvm", "mcpu": self.mcpu}
        return {**described, "mattr": list(self.mattr)} if self.mattr else described

    @classmethod
    def for_cpu(cls, mcpu: str, triple: str | None = None) -> Isa:
        """The facts about the CPU that LLVM calls ``mcpu``.

        Parameters
        ----------
        mcpu
            LLVM's name, such as ``"x86-64-v3"``, ``"znver4"`` or ``"neoverse-n1"``.
        triple
            LLVM target triple; this machine's own when not given.
        """
        return cls.from_features(mcpu, features_of(mcpu, triple))

    @classmethod
    def from_features(cls, mcpu: str, features: Iterable[str]) -> Isa:
        """The same from LLVM's feature names; pure, and independent of their order."""
        have = frozenset(features)
        name, bits, registers = next((row[1:] for row in _LEVELS if row[0] <= have), ("scalar", 64, 16))
        is_arm = name == "neon"
        # With this tuning LLVM splits every 512-bit vector in two, and a tile planned for 512 bits would spill.
        widen = ("-prefer-256-bit",) if name == "avx512" and "prefer-256-bit" in have else ()
        off = {"avx512": ("avx512dq", "avx512fp16"), "neon": ("sve",)}.get(name, ())
        unsound = tuple(f"-{feature}" for feature in off if feature in have)
        return cls(
            name=name,
            vector_bits=bits,
            registers=registers,
            fma=is_arm or "fma" in have or name == "avx512",
            fp16_conversion=is_arm or "f16c" in have or name == "avx512",
            mcpu=mcpu,
            mattr=widen + unsound,
            features=tuple(sorted(have & PRODUCTS)),
        )


def without(isa: Isa, features: Iterable[str]) -> Isa:
    """The same CPU with more features off, such as ``-avx512bw``."""
    return replace(isa, mattr=(*isa.mattr, *features))


@functools.lru_cache(maxsize=1)
def detect() -> Isa:
    """The facts about the CPU of this machine, without instructions that its system disables."""
    host = str(tvm.target.codegen.llvm_get_system_cpu())
    off = hidden_here(host)
    isa = without(Isa.from_features(host, features_of(host).difference(off)), (f"-{f}" for f in off))
    # A virtual machine may have tile registers and the number of a processor without them.
    named = MATRICES.union(isa.features) if isa.name == "avx512" else frozenset(isa.features)
    return replace(isa, features=tuple(sorted(named.difference(lacking(named)))))


@functools.lru_cache(maxsize=256)
def features_of(mcpu: str, triple: str | None = None) -> frozenset[str]:
    """Return LLVM's features of a processor, of this machine's family without a triple."""
    described = {"kind": "llvm", "mcpu": mcpu}
    target = tvm.target.Target(described if triple is None else {**described, "mtriple": triple})
    return frozenset(str(feature) for feature in tvm.target.codegen.llvm_get_cpu_features(target))


def hidden_here(host: str) -> list[str]:
    """Return the features of this machine's processor whose instructions its system disables, sorted."""
    return hidden([f for f in features_of(host) if INSTRUCTIONS.fullmatch(f)])


#: LLVM's features of the instructions in ``dots``: those with tile registers, and all. LLVM uses none with tile
#: registers by itself.
MATRICES = frozenset({"amx-tile", "amx-bf16", "amx-int8"})
PRODUCTS = MATRICES | {"avx512bf16", "sse4a", "avx512vnni", "avxvnni", "avxvnniint8", "dotprod", "i8mm"}
#: Features whose instructions LLVM uses in code that does not name them; the others are tuning, or intrinsics only.
INSTRUCTIONS = re.compile(
    r"cmov|cx16|sahf|s?sse[\d.]*a?|avx.*|fma4?|xop|f16c|bmi2?|tbm|lzcnt|popcnt|movbe|adx|gfni|vaes|vpclmulqdq"
    r"|movdiri|egpr|ndd|nf|ccmp|cf|ppx|push2pop2|zu|neon|lse\d*|rdm|dotprod|fullfp16|fp16fml|fptoint|jsconv"
    r"|complxnum|rcpc.*|bf16|i8mm|sve.*|cssc|mops"
)


# AVX-512DQ is required and then switched off. LLVM 22's pass x86-compress-evex folds "the sign bits as a mask, and the
# mask as an integer" into one instruction and deletes the mask although a shift of it follows (llvm-project pull
# request 198220), or where its source is one of the registers 16 to 31 (issue 191304). Masks of the signs of 32 and 64
# bits are made by instructions of DQ, those of bytes by BW's: see build.py. With FP16 on and DQ off LLVM ends the
# process over conversions of 8 and more integers of 64 bits to floats, which code generation also makes of narrower
# ones by itself: FP16 is off too, which costs nothing, since float16 is computed as float32.
# With SVE on, LLVM 22 ends the process over guarded conversions of float64 to narrow integers; tiles are planned for
# NEON.
#
# Required features, name, vector bits, vector registers; the first row that fits wins.
_LEVELS: tuple[tuple[frozenset[str], str, int, int], ...] = (
    (frozenset({"avx512f", "avx512vl", "avx512bw", "avx512dq"}), "avx512", 512, 32),
    (frozenset({"avx2"}), "avx2", 256, 16),
    (frozenset({"avx"}), "avx", 256, 16),
    (frozenset({"sse2"}), "sse2", 128, 16),
    (frozenset({"neon"}), "neon", 128, 32),
)
