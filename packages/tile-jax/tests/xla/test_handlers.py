"""The handler of devices, with a double in the place of a device; processes with several devices, and forks."""

import ctypes
import os
import subprocess
import sys

import pytest

jax = pytest.importorskip("jax")

import numpy as np  # noqa: E402

import tile_core as tile  # noqa: E402
import tile_core.language as T  # noqa: E402
import tile_jax  # noqa: E402
from tile_core.abi.adapter import HostMemory  # noqa: E402

from . import programs  # noqa: E402
from .programs import close  # noqa: E402

jnp = jax.numpy


class Addresses(HostMemory):
    """A runtime of the convention of devices, on host memory."""

    convention = "pointers"


def view(address, shape, dtype="float32"):
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * count).from_address(address), dtype).reshape(shape)


def test_a_launch_by_addresses():
    m = T.dynamic("m")

    @T.prim_func
    def scaled_add(
        X: T.Tensor((m, 4), "float32"), a: T.float32, n: T.uint64, b: T.bfloat16, Y: T.Tensor((m, 4), "float32")
    ):
        with T.Kernel(T.ceildiv(m, 8), threads=32) as bx:
            for i, j in T.Parallel(8, 4):
                Y[bx * 8 + i, j] = Y[bx * 8 + i, j] + a * X[bx * 8 + i, j]

    seen = []

    def launch(values, location):
        seen.append((values[1:4], values[5:], location))
        rows = values[5]
        view(values[4], (rows, 4))[:] += values[1] * view(values[0], (rows, 4))

    f = tile_jax.op(programs.name("double"), scaled_add)
    f.kernel._kernels["cpu"] = tile.Kernel(f.kernel.signature, launch, adapter=Addresses())
    step = jax.jit(lambda x, y: f(x, 0.5, (1 << 64) - 1, 0.25, y))
    for rows in (3, 3, 7):
        x, y = jnp.ones((rows, 4)), jnp.full((rows, 4), 2.0)
        close(step(x, y), jnp.full((rows, 4), 2.5))
    assert [symbols for _, symbols, _ in seen] == [(3,), (3,), (7,)]
    assert {numbers for numbers, _, _ in seen} == {(0.5, (1 << 64) - 1, 0.25)}
    assert {(location.device, location.library) for *_, location in seen} == {((1, 0), "tvm_ffi")}


def test_errors_of_a_launch_by_addresses_arrive():
    f = tile_jax.op(programs.name("fails"), programs.square(16))

    def launch(values, location):
        raise tile.errors.InternalError(stage="launch", detail="the device is gone")

    f.kernel._kernels["cpu"] = tile.Kernel(f.kernel.signature, launch, adapter=Addresses())
    with pytest.raises(jax.errors.JaxRuntimeError, match="the device is gone"):
        jax.block_until_ready(jax.jit(f)(*programs.inputs(3)))


HEAD = """
import os, sys, warnings
import jax, jax.numpy as jnp, numpy as np
import tile_core.language as T, tile_jax

jax.config.update("jax_cpu_enable_async_dispatch", False)  # the main thread launches
m = T.dynamic("m")

@T.prim_func
def double(X: T.Tensor((m, 64), "float32"), Y: T.Tensor((m, 64), "float32")):
    with T.Kernel(T.ceildiv(m, 8), threads=32) as bx:
        for i, j in T.Parallel(8, 64):
            Y[bx * 8 + i, j] = X[bx * 8 + i, j] * 2.0

f = tile_jax.op("tests::double", double)
x = np.random.rand(4096, 64).astype("float32")
"""

SHARDED = """
mesh = jax.make_mesh((2,), ("rows",))
spec = jax.sharding.PartitionSpec("rows")
whole = jax.device_put(x, jax.sharding.NamedSharding(mesh, spec))
assert (np.asarray(jax.jit(f)(whole)) == 2 * x).all()
local = jax.jit(jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec))
found = local(whole)
assert (np.asarray(found) == 2 * x).all() and len(found.addressable_shards) == 2
assert "all-gather" not in local.lower(whole).compile().as_text()
"""

FORKED = """
import tile_core as tile
warnings.simplefilter("ignore")
kernel = tile.compile(double, "cpu", out_idx=-1)
call = jax.jit(f)
assert (np.asarray(call(x)) == 2 * x).all()
pid = os.fork()
if pid == 0:
    assert (kernel(x) == 2 * x).all()
    os._exit(7)  # XLA's own exit fails after a fork
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
assert (np.asarray(call(x)) == 2 * x).all()
"""


def test_a_process_with_two_devices_that_forks(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(HEAD + SHARDED + FORKED, encoding="utf-8")
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "TVM_NUM_THREADS": "2"}
    subprocess.run([sys.executable, str(script)], check=True, timeout=120, env={**os.environ, **flags})
