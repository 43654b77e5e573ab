"""A kernel may be called like a function of the host's or the device's library."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_cuda.build import build
from tile_cuda.emit.functions import FUNCTIONS, LINKED

from ..texts import kernel

pytestmark = pytest.mark.sweep(6)

HOST = (
    "pipe read write time malloc free exit abort remove unlink system index select div rand random sync send memset "
    "memcpy printf simt_entry simt_launch strlen signal sleep x data"
).split()
DEVICE = (
    "round exp norm clock clock64 rhypot erfinv normcdf sinpi threadIdx max umin atomicAdd lgamma atomicCAS".split()
)


def copy_named(name: str) -> tile.Program:
    """Return a kernel of that name that copies through shared memory."""

    def body(A: T.Tensor((13, 16), "float32"), B: T.Tensor((13, 16), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((13, 16), "float32")
            T.copy(A, s)
            T.copy(s, B)

    body.__name__ = name
    return T.prim_func(body)


@pytest.mark.parametrize("name", HOST + DEVICE)
def test_the_kernel_is_run_whatever_its_name_is(name: str) -> None:
    copy = tile.compile(copy_named(name), target="cuda:sm_80", runtime="emulator")
    values = np.random.default_rng(7).standard_normal((13, 16)).astype(np.float32)
    found = np.zeros_like(values)
    copy(values, found)
    np.testing.assert_array_equal(found, values)


@pytest.mark.sweep(6)
def test_the_device_compiler_takes_every_name() -> None:
    names = sorted({*HOST, *DEVICE, *LINKED, *FUNCTIONS, "_free", "__norm"} - {"main"})
    sources = [tile.compile(copy_named(name), target="cuda:sm_80", runtime="emulator").source for name in names]
    assert build(kernel("".join(dict.fromkeys(sources))), "sm_80").data
