"""``T.set_max_nreg``: legal scopes, register budgets of roles, and the instruction."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.lowering import RoleUnsupported, VariantMissing, VariantRefused
from tile_core.errors.ops import BadAttribute
from tile_cuda.ops.registers import first_registers

from ..emit.nvrtc import assemble

TARGET = "cuda:sm_90a"
FITS = ((40, False), (232, True), (232, True))


def roles(requests=FITS, *, after=False, trips=0, condition=False, twice=False, size=128):
    """A role for each request; all double a row of the output."""
    count = len(requests)

    @T.prim_func
    def main(A: T.Tensor((count, 64), "float32"), n: T.int32, B: T.Tensor((count, 64), "float32")):
        with T.Kernel(1, threads=count * size):
            s = T.alloc_shared((count, 64), "float32")
            T.copy(A, s)
            for i in T.static_range(count):
                if trips:
                    for _ in T.serial(trips):
                        with T.ws(i, size=size):
                            T.set_max_nreg(*requests[i])
                if condition and n > 0:
                    with T.ws(i, size=size):
                        T.set_max_nreg(*requests[i])
                with T.ws(i, size=size):
                    if after:
                        s[i, 0] = s[i, 0] + 1
                    if not trips and not condition:
                        T.set_max_nreg(*requests[i])
                    for j in T.Parallel(64):
                        s[i, j] = s[i, j] * 2
            if twice:
                with T.ws(0, size=size):
                    T.set_max_nreg(*requests[0])
            T.copy(s, B)

    return main


def text_of(program):
    return tile.compile(program, TARGET).source


def test_the_roles_of_a_block_change_their_registers():
    kernel = tile.compile(roles(), TARGET, runtime="emulator")
    found = re.findall(r"setmaxnreg_(dec|inc)_sync_aligned_u32_(\d+)\(\);", kernel.source)
    assert found == [("dec", "40"), ("inc", "232"), ("inc", "232")]
    assert "__launch_bounds__(384, 1)" in kernel.source
    a = np.random.default_rng().standard_normal((3, 64)).astype("float32")
    b = np.full((3, 64), np.nan, "float32")
    kernel(a, 1, b)
    assert np.array_equal(b, a * 2)


def test_the_assembler_takes_it():
    assert "setmaxnreg" not in assemble(text_of(roles()), "sm_90a")


def test_other_kernels_leave_registers_for_several_blocks():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=128):
            T.fill(A, 1)

    assert "__launch_bounds__(128) " in text_of(main)


@pytest.mark.parametrize(
    ("threads", "registers"), [(128, 256), (256, 256), (384, 168), (512, 128), (640, 96), (1024, 64)]
)
def test_initial_registers_of_a_thread(threads, registers):
    assert first_registers(threads) == registers


NOT_FIRST = "it is not the first statement of a `with T.ws(...):` that every block executes once"
REFUSED = {
    "too many": ({"requests": ((40, False), (240, True), (240, True))},
                 "no more than 224 are left for each of its 128 threads"),
    "none gives": ({"requests": ((176, True), (168, True))}, "176 are fewer than the 256 with which its threads begin"),
    "more by dec": ({"requests": ((176, False), (168, True), (168, True))}, "176 are more than the 168"),
    "fewer by inc": ({"requests": ((40, True), (168, True), (168, True))}, "40 are fewer than the 168"),
    "not first": ({"after": True}, NOT_FIRST),
    "in a loop": ({"trips": 2}, NOT_FIRST),
    "under a condition": ({"condition": True}, NOT_FIRST),
    "twice": ({"twice": True}, "its role has another request before it"),
    "half a warpgroup": ({"requests": ((40, False), (40, False)), "size": 64},
                         "64 threads are not whole warpgroups of 128"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_deadlocks_are_refused(name):
    how, reason = REFUSED[name]
    with pytest.raises(VariantRefused) as refused:
        tile.compile(roles(**how), TARGET)
    assert refused.value.code == "U104"
    assert reason in str(refused.value)
    assert refused.value.where is not None


def test_outside_of_a_role_it_is_refused():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=128):
            T.set_max_nreg(240, True)
            T.fill(A, 1)

    with pytest.raises(VariantRefused, match="first statement of a"):
        tile.compile(main, TARGET)


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80", "cuda:sm_90", "metal"])
def test_other_targets_refuse_it(target):
    if target == "metal":
        pytest.importorskip("tile_metal")
    with pytest.raises(RoleUnsupported if target == "metal" else VariantMissing):
        tile.compile(roles(), target)


@pytest.mark.parametrize("name", REFUSED)
def test_an_unsupported_target_is_reported_first(name):
    """Report the target first, whether or not the limits would fit elsewhere."""
    with pytest.raises(VariantMissing, match=r"cuda:sm_80 has no T\.set_max_nreg"):
        tile.compile(roles(**REFUSED[name][0]), "cuda:sm_80")


def test_max_registers_excludes_set_max_nreg():
    with pytest.raises(VariantRefused, match="the option max_registers gives all threads the same number"):
        tile.compile(roles(), TARGET, options={"max_registers": 128})


@pytest.mark.parametrize(
    ("count", "legal"), [(100, "a multiple of 8, such as 96"), (16, "24"), (264, "256"), (0, "24")]
)
def test_other_numbers(count, legal):
    with pytest.raises(BadAttribute) as refused:
        roles(((count, False), *FITS[1:]))
    assert legal in str(refused.value)
