"""The loaders of exported kernels, which import no compiler."""

import importlib
import subprocess
import sys

import pytest

from tile_runtime.loaders import loader

#: Package of the loader and of its runtime, backend, target, and modules that neither imports.
LOADERS = [
    ("tile_cuda_runtime", "tile_cuda_runtime", "cuda", "cuda:sm_90a", ("tvm", "tvm_ffi", "tile_core", "tile_cuda")),
    ("tile_metal", "tile_metal.runtime", "metal", "metal", ("tvm", "tvm_ffi", "tile_core.compiler")),
]
loaders = pytest.mark.parametrize(("package", "module", "backend", "target", "absent"), LOADERS)


@loaders
def test_tile_runtime_finds_it_without_the_compiler(package, module, backend, target, absent):
    code = (
        f"import sys; from tile_runtime.loaders import loader; adapter = loader({backend!r}, {target!r})\n"
        f"assert not set({absent}) & set(sys.modules), sorted(sys.modules)\n"
        "print(type(adapter).__module__, adapter.target.text)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.startswith(f"{module}."), done.stderr
    assert done.stdout.endswith(f" {target}\n")


@loaders
def test_it_is_made_once(package, module, backend, target, absent):
    assert loader(backend, target) is loader(backend, target)


@loaders
def test_targets_of_other_backends(package, module, backend, target, absent):
    make = importlib.import_module(f"{package}.loading").make
    with pytest.raises(ValueError, match=f"cpu:x86-64 is not a target of {package.replace('_', '-')}$"):
        make("cpu:x86-64")
