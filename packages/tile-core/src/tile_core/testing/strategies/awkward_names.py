"""Reserved names of languages, libraries, attributes and the emulator, in every role of a program."""

from __future__ import annotations

from hypothesis import strategies as st

from tile_core.emit.c_family import CPP_WORDS, LIMITS, CFamilyEmitter
from tile_core.testing.case import VALUE, Unit, output, scalar, tensor
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import randoms, themed

_OTHERS = """
    abs aligned alloc args atan2 barrier bfloat block buffer char4 clamp clock cos cross device dim3 dot double2
    entry erf exp expf extent fabs float4 floor fma fmax fmin fmod grid half half2 image index int4 kernel lane
    length local log main malloc max memcpy memset min mix mod naked norm out packed pipe pow printf ptr quad rand
    read rint round rsqrt sampler select self shared shuffle sign simd simt sin sqrt step swap sync tan
    texture thread trunc uint uint4 unused vec vote warp weak write y0 y1 yn
""".split()
#: Names that are no words of Python, and none that the programs below have.
AWKWARD = sorted(
    name
    for name in {*_OTHERS, *LIMITS, *CPP_WORDS, *CFamilyEmitter.reserved}
    if name
    not in ("and", "assert", "break", "class", "continue", "else", "for", "if", "not", "or", "return", "try", "while")
)


@st.composite
def awkward_names(draw: Draw) -> Unit:
    """Draw a program whose tensors, scalars, tiles, variables and loops have awkward names."""
    a, b, n, tile, total, i, k = draw(st.lists(st.sampled_from(AWKWARD), min_size=7, max_size=7, unique=True))
    body = f"""
{tile} = T.alloc_shared((32,), "float32")
T.copy({a}, {tile})
for {i} in T.Parallel(32):
    {total} = T.alloc_var("float32", init=0)
    for {k} in T.serial({n}):
        {total} = {total} + T.max({tile}[({i} + {k}) % 32], T.floor({tile}[{i}])) + T.min({tile}[{i}], 1)
    {b}[{i}] = {total} + T.abs({tile}[31 - {i}])
"""
    params = [tensor(a, "float32", 32), scalar(n), output(b, "float32", 32)]
    data = {a: randoms(draw, (32,), "float32"), n: draw(st.integers(0, 3))}
    return themed("awkward-names", draw, params, body, {"": data}, VALUE)
