"""Machine code of products by dot products for other processors, in a process of its own: LLVM may end it.

python dot_texts.py    prints, as JSON, processors, names of instructions, whether B is stored transposed, and counts
"""

from __future__ import annotations

import json
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.cpu.build import build
from tile_core.cpu.dots import DOTS, TILES, products_of, tiles_of
from tile_core.cpu.isa import Isa
from tile_core.cpu.micro_dots import micro_dots
from tile_core.cpu.micro_tiles import micro_tiles
from tile_core.cpu.tile2d import Tile2D
from tile_core.passes.legalize_floats import legalize_floats

X86, ARM = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"
#: A processor for each row of DOTS and TILES.
PROCESSORS = (
    ("znver4", X86), ("icelake-server", X86), ("arrowlake", X86),
    ("arrowlake", X86), ("alderlake", X86), ("neoverse-n1", ARM), ("neoverse-n1", ARM), ("neoverse-v2", ARM),
    *[("sapphirerapids", X86)] * len(TILES),
)  # fmt: skip
EXCHANGED = {"tdpbusd": "tdpbsud", "tdpbsud": "tdpbusd"}


def product(types: tuple[str, str, str], isa: Isa, m: int, n: int, k: int, flipped: bool = False) -> Any:
    """Return the function of a product of whole matrices, of which B may be stored transposed."""
    tiles = []
    for name, shape, dtype in zip("ABC", ((m, k), (n, k) if flipped else (k, n), (m, n)), types, strict=True):
        buffer = tirx.decl_buffer(shape, dtype, name, layout=None, data_alignment=1)
        tiles.append(Tile2D(buffer, (), 0, 0, flipped and name == "B", dtype))
    kernel = micro_dots if tiles_of(isa, *types) is None else micro_tiles
    body = kernel(*tiles, m, n, k, isa=isa, clear=True)
    func = tirx.PrimFunc([t.buffer for t in tiles], body).with_attr("tirx.noalias", True)
    return legalize_floats(func, frozenset({"float32", "float16"}))


def main() -> None:
    """Print the instructions of each processor."""
    found = []
    whole = Isa.target
    for dot, (name, triple) in zip((*DOTS, *TILES), PROCESSORS, strict=True):
        Isa.target = lambda self, triple=triple: {**whole(self), "mtriple": triple}
        isa = Isa.for_cpu(name, triple)
        chosen = products_of(isa, *dot.types)
        assert chosen is not None
        assert chosen.dot == dot, (dot, chosen)
        for flipped, k in ((False, 23), (True, 520)):
            text = build(product(dot.types, isa, 7, 37, k, flipped), isa).inspect_source("asm")
            # Of few rows and a B that is stored transposed, tiles multiply the transposed matrices.
            names = {dot.name, EXCHANGED.get(dot.name, dot.name) if flipped else dot.name}
            found.append((name, dot.name, flipped, sum(text.count(f"\t{n}\t") for n in names)))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
