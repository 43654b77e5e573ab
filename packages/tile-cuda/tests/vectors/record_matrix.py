"""Runs the kernels of ``matrix.py`` on a device and keeps digests of what comes out, for the models to agree with.

::

    python record_matrix.py RESULTS      # with a GPU: needs this package, torch and the driver

Inputs follow from seeds. A case whose expected bytes are known is compared with them on the device already.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import numpy as np

if not __package__:
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from vectors import matrix
else:
    from . import matrix

FILE = "matrix_sm_90a.npz"


def record(results: Path) -> None:
    """Run all cases on the current device."""
    import torch

    from tile_core.abi.adapter import Place
    from tile_cuda.runtime.driver import CudaAdapter
    from tile_cuda.target import make_target

    adapter, built, kept, wrong = CudaAdapter(make_target("sm_90a")), {}, {}, []
    for case in (*matrix.cases(), *matrix.unrecorded()):
        kernel = case.copy.kernel()
        if kernel.text not in built:
            built[kernel.text] = adapter.build(kernel)
        arrays = {n: torch.from_numpy(a.copy()).cuda() for n, a in case.copy.arrays.items()}
        launch = adapter.load(dataclasses.replace(kernel, built=built[kernel.text]))
        launch(tuple(a.data_ptr() for a in arrays.values()), Place((2, 0), "torch"))
        torch.cuda.synchronize()
        out = arrays["out"].cpu().numpy()
        if case.is_known and not (out.reshape(-1, case.held.shape[-1]) == case.held).all():
            wrong.append(case.name)
        kept[case.name] = matrix.digest(out)
    results.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(results / FILE, names=np.array(list(kept)), digests=np.stack(list(kept.values())))
    print(f"{len(kept)} recorded from {len(built)} texts, {len(wrong)} not as expected")
    print("\n".join(wrong))


if __name__ == "__main__":
    record(Path(sys.argv[1]))
