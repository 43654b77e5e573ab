"""Record products of a warpgroup on a device, for the models.

::

    python record_warpgroups.py RESULTS            # with an sm_90a device: needs this package, torch and the driver
    python record_warpgroups.py RESULTS compare    # without one: runs the models, and lists differences

Inputs follow from seeds, so only outputs are kept. Outputs of small integers show where elements lie, and have to
agree bit by bit; values of many exponents show how accumulators are rounded.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

if not __package__:
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from vectors.warpgroups import Product
else:
    from .warpgroups import Product

FILE = "warpgroups_sm_90a.npz"
_TYPES = (
    ("f16", "f16", "f32"), ("f16", "f16", "f16"), ("bf16", "bf16", "f32"), ("tf32", "tf32", "f32"),
    *((a, b, "s32") for a in ("s8", "u8") for b in ("s8", "u8")),
    *((a, b, d) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2") for d in ("f32", "f16")),
)  # fmt: skip
_SWIZZLES = (128, 64, 32, 0)


def cases() -> Iterator[tuple[str, Product]]:
    """Return products by name: every type, form, orientation, swizzle, selector and number of columns."""
    for types, sparse, form, wide in product(_TYPES, (False, True), ("ss", "rs"), (False, True)):
        for select in (0, 1) if sparse and types[0] in ("f16", "bf16", "tf32") else (0,):
            yield _named(Product(32, types, form, sparse=sparse, select=select, wide=wide))
    for trans, a, b in product(product((False, True), repeat=2), _SWIZZLES, _SWIZZLES):
        yield _named(Product(64, trans=trans, swizzles=(a, b)))
    for a, b, types in product(_SWIZZLES, _SWIZZLES, (("tf32", "tf32", "f32"), ("s8", "s8", "s32"))):
        yield _named(Product(16, types, swizzles=(a, b)))
    for a, b, tb in product((128, 64, 32), (128, 64), (False, True)):
        yield _named(Product(64, sparse=True, trans=(False, tb), swizzles=(a, b), select=1))
    for n in range(8, 257, 8):
        yield _named(Product(n))
        yield _named(Product(n, sparse=True, swizzles=(64, 128)))
        if n % 16 == 0 or n in (8, 24):
            yield _named(Product(n, ("s8", "s8", "s32")))


def record(results: Path) -> None:
    """Run all cases on the current device."""
    kept, failed = {}, []
    for name, one in cases():
        try:
            kept[name] = launched(one)
        except Exception as error:
            failed.append(f"{name}: {error}")
    results.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(results / FILE, **kept)
    print(f"{len(kept)} recorded, {len(failed)} failed")
    print("\n".join(failed))


def compare(results: Path) -> None:
    """Run the models on the recorded cases."""
    recorded, same = np.load(results / FILE), 0
    for name, one in dict(cases()).items():
        if name not in recorded:
            continue
        mine, theirs = one.gathered(emulated(one)), one.gathered(recorded[name])
        if np.array_equal(mine, theirs, equal_nan=True):
            same += 1
        else:
            scale = np.abs(one.expected()) + 1
            print(f"{name}: {np.sum(mine != theirs)} differ, by up to {np.max(np.abs(mine - theirs) / scale):.2e}")
    print(f"{same} of {len(recorded)} agree bit by bit")


def launched(one: Product) -> Any:
    """Return the output of a kernel on the current device."""
    import torch

    from tile_core.abi.adapter import Location
    from tile_cuda.runtime import CudaAdapter
    from tile_cuda.target import make_target

    text, given = one.kernel()
    arrays = {n: torch.from_numpy(np.ascontiguousarray(a).view(np.uint8)).cuda() for n, a in given.items()}
    launch = CudaAdapter(make_target("sm_90a")).load(text)
    launch(tuple(a.data_ptr() for a in arrays.values()), Location((2, 0), "torch"))
    torch.cuda.synchronize()
    return arrays["out"].cpu().numpy().view(given["out"].dtype).reshape(given["out"].shape)


def emulated(one: Product) -> Any:
    """Return the output of the models."""
    import tile_emulator
    from tile_cuda.emulation import dialect_of
    from tile_cuda.emulation.opcodes import Arch

    text, given = one.kernel()
    return tile_emulator.run(text.text, text.facts, given, dialect_of(Arch(90, "a")), checks=()).outputs["out"]


def _named(one: Product) -> tuple[str, Product]:
    style = "wide" if one.wide else "integers"
    return f"{one.name()}_{one.swizzles[0]}_{one.swizzles[1]}_{style}", one


if __name__ == "__main__":
    compare(Path(sys.argv[1])) if sys.argv[2:] == ["compare"] else record(Path(sys.argv[1]))
