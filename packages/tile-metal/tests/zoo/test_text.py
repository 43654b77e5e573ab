"""Performance properties of texts: vectors, loop bodies, barriers, memory."""

from __future__ import annotations

import re

import pytest
from metal_lint.clang import clcpp_findings
from zoo import programs
from zoo.launch import lowered
from zoo.table import BF16, F16, FP8, FP32, NT, TN

from .launch import METAL, METAL4, context, text_of
from .table import ZOO

BARRIER = "threadgroup_barrier("
CALL = re.compile(r"simdgroup_(load|multiply_accumulate)\w*\(.*\);")


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", [entry.name for entry in ZOO])
def test_clang_accepts_the_text(name):
    """Address spaces and overloads, where a clang is installed."""
    assert clcpp_findings(text_of(name).text) == ()


def loops(text: str) -> list[tuple[str, list[str]]]:
    """Return the head of each loop and its lines, the outer ones first."""
    lines = text.splitlines()
    found = []
    for at, line in enumerate(lines):
        if re.match(r" *for \(", line):
            depth = len(line) - len(line.lstrip())
            end = next(k for k in range(at + 1, len(lines)) if lines[k] == " " * depth + "}")
            found.append((line.strip(), lines[at + 1 : end]))
    return found


def loop(text: str, name: str) -> list[str]:
    """Return the lines of the first loop over a variable."""
    return next(body for head, body in loops(text) if head.startswith(f"for (int {name} = "))


def statements(body: list[str]) -> list[str]:
    """Return the lines of a loop without nested ones' heads and ends."""
    return [line.strip() for line in body if not re.match(r" *(for \(|\}|#pragma)", line)]


def product(types, stages=2, trans=(False, False), block=(64, 64, 32), size=(256, 256, 256)):
    return lowered(programs.gemm(*size, types, block, stages, trans), context()).text


KINDS = {
    "f16": (F16, {}), "f16_nt": (F16, {"trans": NT}), "f16_tn": (F16, {"trans": TN}), "bf16": (BF16, {}),
    "fp32": (FP32, {"block": (64, 64, 16)}), "fp8": (FP8, {"trans": NT}),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
class TestLoopOverK:
    @pytest.mark.sweep(0.25)
    def test_copies_are_of_16_bytes(self, kind):
        types, how = KINDS[kind]
        for stages, to in ((1, "threadgroup"), (2, "thread")):
            body = loop(product(types, stages, **how), "k")
            moves = [line for line in statements(body) if "device const" in line]
            assert moves
            # Elements of 8 bits are decoded on their way to threadgroup memory.
            to = "thread" if kind == "fp8" else to
            assert all(re.match(rf"\*\({to} uint4\*\)&.* = \*\(device const uint4\*\)&", line) for line in moves)

    @pytest.mark.sweep(0.25)
    def test_steps_divide_nothing(self, kind):
        types, how = KINDS[kind]
        assert not [line for line in loop(product(types, **how), "k_step") if re.search(r" [/%] ", line)]

    @pytest.mark.sweep(0.25)
    def test_innermost_loops_load_and_multiply(self, kind):
        types, how = KINDS[kind]
        body = loop(product(types, **how), "k_step")
        for line in statements(body):
            assert CALL.fullmatch(line), line
        inner = [b for head, b in loops("\n".join(body)) if not any("for (" in line for line in b)]
        assert any("multiply_accumulate" in line for b in inner for line in b)

    @pytest.mark.sweep(1)
    @pytest.mark.parametrize("stages", [1, 2, 3, 4])
    def test_barriers_of_an_iteration(self, kind, stages):
        """Single buffering: reads wait for writes, and writes for reads."""
        types, how = KINDS[kind]
        how = {**how, "block": (32, 32, 16)}
        body = loop(product(types, stages=stages, **how), "k")
        assert sum(BARRIER in line for line in body) == 2


@pytest.mark.sweep(6)
@pytest.mark.parametrize("name", [e.name for e in ZOO])
@pytest.mark.parametrize("target", [METAL, METAL4])
class TestHeads:
    def test_the_slab_is_what_the_launch_gives(self, name, target):
        found = text_of(name, target)
        sizes = re.findall(r"threadgroup uchar smem\[(\d+)\];", found.text)
        assert sizes == ([str(found.facts.shared_bytes)] if found.facts.shared_bytes else [])
        assert found.facts.shared_bytes <= 32768

    def test_buffers_are_numbered(self, name, target):
        found = text_of(name, target)
        numbers = [int(n) for n in re.findall(r"\[\[buffer\((\d+)\)\]\]", found.text)]
        assert numbers == list(range(len(numbers)))
        pointers = sum(p.kind == "pointer" for p in found.facts.params)
        assert len(numbers) == pointers + any(p.kind == "scalar" for p in found.facts.params)

    def test_no_double(self, name, target):
        text = text_of(name, target).text
        assert "double" not in text
        assert set(re.findall(r"\d+\.\d+(?:e[+-]?\d+)?(\w?)", text)) <= {"f"}


def test_products_of_many_sizes_keep_their_rows_apart():
    """Rows of a multiple of 32 bytes are padded by 16 bytes, against bank conflicts."""
    for kind, (types, how) in KINDS.items():
        text = product(types, **how)
        pitches = {int(n) for n in re.findall(r"\w+\], (\d+)\);", text) if "simdgroup_load" in text}
        size = {"fp32": 4}.get(kind, 2)
        assert all(pitch * size % 32 == 16 for pitch in pitches)
        assert pitches
