"""The table of instruction sets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tile_core.cpu.dots import dot_of
from tile_core.cpu.isa import INSTRUCTIONS, MATRICES, Isa, detect, features_of, hidden_here
from tile_core.cpu.processors import missing_here, needed
from tile_runtime.abi.adapter import Built
from tile_runtime.cpu import processor
from tile_runtime.cpu.loader import KIND, NEEDS, make


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


def test_dot_products_of_named_cpus() -> None:
    x86, arm = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"
    types = (("bfloat16", "bfloat16", "float32"), ("int8", "int8", "int32"))
    named = {
        "znver5": x86,
        "sapphirerapids": x86,
        "x86-64-v3": x86,
        "lunarlake": x86,
        "generic": arm,
        "neoverse-v1": arm,
    }
    found = {}
    for name, triple in named.items():
        products = [dot_of(Isa.for_cpu(name, triple), *row) for row in types]
        found[name] = [None if p is None else p.dot.name for p in products]
    assert found == {
        "znver5": ["vdpbf16ps", "vpdpbusd"], "sapphirerapids": [None, "vpdpbusd"], "x86-64-v3": [None, None],
        "lunarlake": [None, "vpdpbssd"], "generic": [None, None], "neoverse-v1": [None, "sdot"],
    }  # fmt: skip


def test_detection_is_stable() -> None:
    assert detect() is detect()
    named = Isa.for_cpu(detect().mcpu)
    if not hidden_here(named.mcpu):
        assert replace(named, features=detect().features) == detect()
    # A virtual machine may have tile registers that the processor of its name lacks.
    assert {*detect().features} <= {*named.features} | MATRICES


@pytest.mark.skipif(detect().name != "avx512", reason="no such instructions here")
@pytest.mark.parametrize(("system", "left"), [("avx512", "avx2"), ("avx512_vnni", "avx512")])
def test_instructions_that_the_system_disables(system: str, left: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = processor._features()
    named = {processor._plain(processor._NAMES.get(f, f)) for f in features_of(detect().mcpu)}
    off = {name for name in shown if name.startswith(processor._plain(system))}
    monkeypatch.setattr(processor, "_features", lambda: shown - off)
    isa = detect.__wrapped__()
    assert isa.name == left
    assert "avx512vnni" not in isa.features
    off &= named
    assert {f"-{name}" for name in off} <= {*isa.mattr}
    assert not off & {*needed(isa)}
    assert missing_here(isa) == []
    assert missing_here(replace(isa, mattr=())) == sorted(off)
    assert make("cpu").refuses(Built("library", KIND, b"", make("cpu").platform, {NEEDS: " ".join(needed(isa))})) == ""


def test_processors_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "_features", frozenset)
    isa = detect.__wrapped__()
    assert replace(isa, features=()) == replace(Isa.for_cpu(isa.mcpu), features=())
    assert isa.features == ()


def test_names_of_features_of_arm_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Linux lists them on Neoverse V1."""
    listed = (
        "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm jscvt fcma lrcpc dcpop sha3 "
        "sm3 sm4 asimddp sha512 sve asimdfhm dit uscat ilrcpc flagm ssbs paca pacg dcpodp svei8mm svebf16 i8mm bf16 dgh"
    )
    monkeypatch.setattr(processor, "_features", lambda: frozenset(listed.split()))
    named = [f for f in features_of("neoverse-v1", "aarch64-unknown-linux-gnu") if INSTRUCTIONS.fullmatch(f)]
    assert len(named) > 10
    assert processor.lacking(named) == []
