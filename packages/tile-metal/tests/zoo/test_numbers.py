"""Every kernel of the zoo computes what NumPy computes, and no check finds a fault in it."""

from __future__ import annotations

import pytest
from zoo.launch import wrong

from .launch import METAL, METAL4, ORDERS, case_of, run, text_of
from .table import ZOO

#: With tensor operations, some of the products; the rest with ``-m slow``.
TENSOR = ("gemm_f16_small", "gemm_f16_nt", "gemm_fp8", "attention")
KERNELS = [
    pytest.param(
        e.name,
        target,
        marks=[pytest.mark.slow] if e.slow or (target == METAL4 and e.name not in TENSOR) else [],
        id=f"{e.name}-{target[6:]}",
    )
    for e in ZOO
    for target in (METAL, METAL4)
]


@pytest.mark.parametrize(("name", "target"), KERNELS)
def test_numbers_and_no_fault(name, target):
    case, text = case_of(name), text_of(name, target)
    for how in ORDERS:
        result = run(case, text, target, **how)
        assert not result.reports, "\n".join(map(str, result.reports))
        assert not wrong(case, text, result)
