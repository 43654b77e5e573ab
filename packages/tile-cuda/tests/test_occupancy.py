"""Blocks per multiprocessor, against NVIDIA's occupancy calculator by hand."""

from __future__ import annotations

import pytest

from tile_cuda.occupancy import blocks_that_fit, most_registers
from tile_cuda_runtime.architectures import RECORDS


@pytest.mark.parametrize(
    ("threads", "registers", "expected"),
    [
        (128, 32, 16),
        (128, 211, 2),
        (256, 128, 2),
        (256, 129, 1),
        (1024, 64, 1),
        (1024, 65, 0),
        (96, 255, 2),
        (1, 1, 256),
    ],
)
def test_registers(threads, registers, expected):
    assert blocks_that_fit(RECORDS["sm_90a"], threads, registers, 0)["blocks_by_registers"] == expected


@pytest.mark.parametrize(
    ("arch", "shared", "expected"),
    [("sm_90", 227 * 1024, 1), ("sm_90", 113 * 1024, 2), ("sm_90", 113 * 1024 + 1, 1), ("sm_80", 49152, 3),
     ("sm_86", 49152, 2), ("sm_120", 99 * 1024, 1), ("sm_80", 0, 164)],
)  # fmt: skip
def test_shared_memory(arch, shared, expected):
    assert blocks_that_fit(RECORDS[arch], 128, 32, shared)["blocks_by_shared_memory"] == expected


@pytest.mark.parametrize("threads", [1, 32, 96, 128, 160, 256, 288, 384, 416, 512, 544, 1024])
def test_a_block_fits_with_the_most_registers_and_not_with_more(threads):
    most = most_registers(threads)
    assert blocks_that_fit(RECORDS["sm_90a"], threads, most, 0)["blocks_by_registers"] >= 1
    more = blocks_that_fit(RECORDS["sm_90a"], threads, most + 8, 0)["blocks_by_registers"]
    assert most == 255 or more == 0
