"""Texts for MLX, which look at the addresses of their inputs: each with the more general one that it is joined to."""

import re

import pytest
from metal_lint import lint

from tile_metal.runtime.source import ArraySlot, guarded, mlx_source, split
from tile_runtime.texts.choose import Assumptions

from ..runtime.fake_mlx import UTILS, Mlx
from .launch import APPLE, METAL, METAL4, text_of

PAIRS = [(name, target) for target in (METAL, METAL4) for name in (e.name for e in APPLE.entries)]


def joined(name, target):
    """Return the text of a case with its most general one, and both."""
    fast = plain = text_of(name, target)
    while plain.general is not None and (other := plain.general()) is not None:
        plain = other
    read = {i: p.name for i, p in enumerate(fast.facts.params) if p.kind == "pointer" and p.access == "read"}
    masks = [(read[i], mask) for i, mask in Assumptions(fast.facts).masks if i in read]
    if plain is fast or not masks or (fast.facts.grid, fast.facts.block) != (plain.facts.grid, plain.facts.block):
        return None, fast, plain
    return guarded(split(fast), split(plain), masks), fast, plain


@pytest.mark.sweep(4)
@pytest.mark.parametrize(("name", "target"), PAIRS)
def test_both_branches_compile(name, target):
    parts, fast, plain = joined(name, target)
    if parts is None:
        assert plain is fast or plain.facts.block
        return
    slots = [ArraySlot("output" if p.access == "write" else "input") for p in fast.facts.params if p.kind == "pointer"]
    source = mlx_source(parts, slots, 9, fast.facts.threads)
    mx = Mlx(architecture="applegpu_g17s", system=(26, 2))
    made = mx.fast.metal_kernel(
        name=name, input_names=list(source.inputs), output_names=list(source.outputs), source=source.source,
        header=source.header,
    )  # fmt: skip
    kinds = [mx.uint8] * 99
    text = UTILS + made.text([mx.zeros((9,), mx.uint8) for _ in source.inputs], kinds[: len(source.outputs)])
    assert [str(f) for f in lint(text) if f.rule not in ("metal-kernel-name",)] == []
    assert len(re.findall(r"threadgroup uchar smem", text)) <= 1
