"""``Kernel.verify`` agrees with kernels that the emulator executes."""

import numpy as np
import pytest
from zoo.table import KERNELS

import tile_core as tile

NAMES = ("softmax", "cumsum_columns", "histogram", "split_k")


@pytest.mark.parametrize("entry", [e for e in KERNELS if e.name in NAMES], ids=lambda e: e.name)
def test_verify_agrees(entry):
    case = entry.make()
    kernel = tile.compile(case.program, "cuda:sm_80", runtime="emulator")
    args = [kernel.adapter.from_host(np.array(a)) if isinstance(a, np.ndarray) else a for a in case.args]
    report = kernel.verify(*args)
    assert {o.name for o in report.outputs} >= {kernel.signature.params[w.index].name for w in case.wanted}
