"""The table of instruction sets."""

from __future__ import annotations

import pytest

from tile_core.cpu.isa import Isa, detect


@pytest.mark.parametrize(
    ("features", "name", "bits", "registers", "fma"),
    [
        ((), "scalar", 64, 16, False),
        (("sse2",), "sse2", 128, 16, False),
        (("sse2", "avx"), "avx", 256, 16, False),
        (("sse2", "avx", "avx2", "fma", "f16c"), "avx2", 256, 16, True),
        (("avx2", "avx512f"), "avx2", 256, 16, False),
        (("avx2", "fma", "avx512f", "avx512vl", "avx512bw", "avx512dq"), "avx512", 512, 32, True),
        (("neon",), "neon", 128, 32, True),
    ],
)
def test_the_best_level_that_fits(features: tuple[str, ...], name: str, bits: int, registers: int, fma: bool) -> None:
    isa = Isa.from_features("some-cpu", reversed(features))
    assert (isa.name, isa.vector_bits, isa.registers, isa.fma, isa.mcpu) == (name, bits, registers, fma, "some-cpu")


def test_wide_vectors_are_asked_for_where_llvm_would_split_them() -> None:
    wide = ["avx2", "fma", "avx512f", "avx512vl", "avx512bw", "avx512dq"]
    assert Isa.from_features("x", wide).target() == {"kind": "llvm", "mcpu": "x", "mattr": ["-avx512dq"]}
    tuned = Isa.from_features("x", [*wide, "prefer-256-bit"])
    assert tuned.target() == {"kind": "llvm", "mcpu": "x", "mattr": ["-prefer-256-bit", "-avx512dq"]}


def test_llvm_knows_the_features_of_named_cpus() -> None:
    assert Isa.for_cpu("x86-64-v3", "x86_64-unknown-linux-gnu").name == "avx2"
    assert Isa.for_cpu("generic", "aarch64-unknown-linux-gnu").name == "neon"


def test_lanes_never_vanish() -> None:
    assert Isa.from_features("x", ["avx2"]).lanes(32) == 8
    assert Isa.from_features("x", []).lanes(64) == 1


def test_detection_is_stable() -> None:
    assert detect() is detect()
    assert detect() == Isa.for_cpu(detect().mcpu)
