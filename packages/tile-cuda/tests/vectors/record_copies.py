"""Record outputs of the kernels of ``copies.py`` on a device, for the models.

::

    python record_copies.py RESULTS      # with a GPU: needs this package, torch and the driver

Inputs follow from seeds, so only outputs are kept.
"""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

if not __package__:
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from vectors import copies
else:
    from . import copies

FILE = "copies_sm_90a.npz"
SHAPES = {
    "1d": ((100,), (96,), (32,)),
    "2d": ((37, 64), (8, 16), (16, 32)),
    "2d_outside": ((37, 64), (30, 48), (16, 32)),
    "2d_before": ((37, 64), (-3, -16), (16, 32)),
    "2d_far": ((37, 64), (64, 128), (16, 32)),
    "3d": ((5, 7, 32), (1, 6, 16), (2, 3, 16)),
    "4d": ((3, 4, 5, 16), (2, -1, 3, 0), (2, 2, 4, 16)),
    "5d": ((2, 3, 2, 5, 16), (1, 1, 1, 2, 0), (2, 2, 1, 4, 16)),
}
KINDS = {
    "uint8": "uint8", "uint16": "uint16", "uint32": "uint32", "int32": "int32", "uint64": "uint64", "int64": "int64",
    "float16": "uint16", "bfloat16": "uint16", "float32": "float32", "float64": "float64",
}  # fmt: skip
#: Operations of reductions, and the types that PTX gives them.
REDUCTIONS = {
    "add": ("uint32", "int32", "uint64", "float16", "bfloat16", "float32"),
    "min": ("uint32", "int32", "uint64", "int64", "float16", "bfloat16"),
    "max": ("uint32", "int32", "uint64", "int64", "float16", "bfloat16"),
    "and": ("uint32", "uint64"), "or": ("uint32", "uint64"), "xor": ("uint32", "uint64"),
}  # fmt: skip
#: Where nothing can be stored: the device ends the kernel.
FAULTS = {"row": (-3, 16), "column": (8, -16), "row_and_column": (-3, -16), "whole": (-64, 0)}


def cases() -> Iterator[tuple[str, copies.Copy]]:
    """Return kernels by name."""
    for kind, stored in KINDS.items():
        size = 16 // np.dtype(stored).itemsize
        for name, (shape, at, box) in SHAPES.items():
            wide = (*shape[:-1], -(-shape[-1] // size) * size), (*box[:-1], max(box[-1], size))
            aligned = (*at[:-1], at[-1] // size * size)
            array = bits(wide[0], stored, kind)
            yield f"load_{kind}_{name}", copies.load_of(array, aligned, wide[1], fields={"dtype": kind})[0]
    for swizzle in (32, 64, 128):
        for rows, width in ((24, swizzle), (8, swizzle), (5, swizzle)):
            array = bits((40, 256), "uint8", "uint8")
            fields = {"swizzle": swizzle}
            yield f"load_swizzle_{swizzle}_{rows}", copies.load_of(array, (3, 16), (rows, width), fields=fields)[0]
            yield (
                f"store_swizzle_{swizzle}_{rows}",
                stored_bits((40, 256), "uint8", (3, 16), (rows, width), fields=fields),
            )
    for kind in ("float16", "bfloat16", "float32", "float64"):
        fields = {"dtype": kind, "fill": "nan"}
        array = bits((37, 64), KINDS[kind], kind)
        yield f"nan_{kind}", copies.load_of(array, (30, 48), (16, 32), fields=fields)[0]
    for name, (shape, at, box) in SHAPES.items():
        yield f"store_{name}", stored_bits(shape, "int32", tuple(max(a, 0) for a in at), box)
    for operation, kinds in REDUCTIONS.items():
        for kind in kinds:
            for name in ("2d_outside", "3d"):
                shape, at, box = SHAPES[name]
                copy = stored_bits(shape, KINDS[kind], at, box, operation=operation, fields={"dtype": kind}, kind=kind)
                yield f"reduce_{operation}_{kind}_{name}", copy
    for name, at in FAULTS.items():
        yield f"fault_store_{name}", stored_bits((37, 64), "int32", at, (16, 32))
    yield from edges()
    yield "multicast", copies.multicast_of()[0]
    yield "bulk", copies.bulk_of()[0]
    yield "bulk_add", copies.bulk_of(opcode="cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32")[0]


def edges() -> Iterator[tuple[str, copies.Copy]]:
    """Return kernels whose boxes exceed unaligned rows, into memory of others."""
    for kind, stored in (("uint8", "uint8"), ("float16", "uint16"), ("int32", "int32"), ("uint64", "uint64")):
        chunk = 16 // np.dtype(stored).itemsize
        for extent in sorted({1, chunk - 1, chunk, chunk + 1, 2 * chunk + 1, 3 * chunk - 1}):
            for rank in (1, 2):
                whole, box = ((4 * chunk,), (4 * chunk,)) if rank == 1 else ((6, 4 * chunk), (8, 4 * chunk))
                extents = (extent,) if rank == 1 else (5, extent)
                name = f"{kind}_{rank}d_{extent}"
                load, _ = copies.load_of(bits(whole, stored, kind), (0,) * rank, box, fields={"dtype": kind})
                store = stored_bits(whole, stored, (0,) * rank, box, fields={"dtype": kind}, kind=kind)
                both = [("load", load), ("store", store)]
                if kind != "uint8":
                    fields = {"dtype": "uint32" if kind == "int32" else kind}
                    added = stored_bits(whole, stored, (0,) * rank, box, operation="add", fields=fields, kind=kind)
                    both.append(("reduce", added))
                for how, copy in both:
                    copy.descriptor = replace(copy.descriptor, shape=extents)
                    yield f"edge_{how}_{name}", copy


def bits(shape, stored, kind, seed=3):
    """Return elements with every bit pattern; of floats too."""
    rng = np.random.default_rng([seed, sum(map(ord, kind))])
    size = np.dtype(stored).itemsize
    return rng.integers(0, 256, (*shape, size), np.uint8).view(stored)[..., 0]


def stored_bits(shape, stored, at, box, *, operation="", fields=None, kind=""):
    """Return a kernel that stores or reduces random bits."""
    copy, _ = copies.store_of(shape, stored, at, box, operation=operation and "add", fields=fields)
    copy.text = copy.text.replace(".add.tile", f".{operation}.tile") if operation else copy.text
    copy.arrays["out"] = bits(shape, stored, kind or stored, 5)
    rows = bits(box, stored, kind or stored, 6)
    copy.arrays["given"] = copies.swizzled(rows, (fields or {}).get("swizzle", 0))
    return copy


def record(results: Path) -> None:
    """Run all cases on the current device, possible crashes in separate processes."""
    kept, failed = {}, []
    for name, copy in cases():
        if name.startswith("fault"):
            done = subprocess.run([sys.executable, __file__, str(results), name], capture_output=True, text=True)
            kept[name] = np.array("illegal instruction" in done.stdout)
            continue
        try:
            kept[name] = launched(copy)
        except Exception as error:
            failed.append(f"{name}: {error}")
    results.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(results / FILE, **kept)
    print(f"{len(kept)} recorded, {len(failed)} failed")
    print("\n".join(failed))


def launched(copy: copies.Copy) -> np.ndarray:
    """Return the output of a kernel on the current device."""
    import torch

    from tile_core.abi.adapter import Location
    from tile_cuda.runtime import CudaAdapter
    from tile_cuda.target import make_target

    arrays = {n: torch.from_numpy(np.ascontiguousarray(a).view(np.uint8)).cuda() for n, a in copy.arrays.items()}
    launch = CudaAdapter(make_target("sm_90a")).load(copy.kernel())
    launch(tuple(a.data_ptr() for a in arrays.values()), Location((2, 0), "torch"))
    torch.cuda.synchronize()
    return arrays["out"].cpu().numpy().view(copy.arrays["out"].dtype).reshape(copy.arrays["out"].shape)


def fault(name: str) -> None:
    """Run a case that is expected to end the process; return how it did."""
    try:
        launched(dict(cases())[name])
    except Exception as error:
        print(error)


if __name__ == "__main__":
    fault(sys.argv[2]) if len(sys.argv) > 2 else record(Path(sys.argv[1]))
