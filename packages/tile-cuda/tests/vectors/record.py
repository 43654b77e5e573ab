"""Run the one-instruction kernels on a device and record their outputs.

::

    python record.py build OUT sm_90a     # anywhere: needs NVRTC and this package, no GPU
    python record.py run OUT RESULTS      # with a GPU: needs Python, NumPy and the driver

``build`` writes a cubin and the inputs of each group; ``run`` launches them and writes ``RESULTS/sm_90a.npz``
with inputs and outputs. A test compares the models with the files in ``recorded`` beside this one.
"""

import argparse
import ctypes
import json
import sys
from pathlib import Path

import numpy as np

ARRAYS = ("in", "plan", "out", "memory")
SEED = 2024


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description="Record what one-instruction kernels do on a device.")
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build")
    building.add_argument("directory", type=Path)
    building.add_argument("arch")
    running = commands.add_parser("run")
    running.add_argument("directory", type=Path)
    running.add_argument("results", type=Path)
    given = parser.parse_args(arguments)
    if given.command == "build":
        build(given.directory, given.arch)
    else:
        run(given.directory, given.results, Driver())


def build(directory: Path, arch: str) -> None:
    """Compile the groups that an architecture can run, and draw their inputs."""
    if not __package__:
        sys.path.insert(0, str(Path(__file__).parent.parent))
    from tile_cuda.emulation.opcodes import Arch

    if __package__:
        from . import groups, table
    else:
        from vectors import groups, table

    directory.mkdir(parents=True, exist_ok=True)
    manifest = {"arch": arch, "entry": table.ENTRY, "lanes": table.LANES, "shared": table.SHARED_BYTES, "groups": {}}
    for name, vectors in groups.groups(Arch.of(arch)).items():
        plan = table.plan_of(vectors, SEED)
        (directory / f"{name}.cubin").write_bytes(compiled(table.text_of(vectors), arch))
        np.savez_compressed(directory / f"{name}.npz", **plan.arrays)
        manifest["groups"][name] = {"blocks": plan.blocks, "vectors": [v.name for v in vectors]}
        print(f"{name}: {len(vectors)} instructions, {plan.blocks} blocks")
    (directory / "manifest.json").write_text(json.dumps(manifest, indent=1))


def compiled(text: str, arch: str) -> bytes:
    """The cubin of a text."""
    from cuda.bindings import nvrtc

    def done(result, *values):
        if int(result):
            raise SystemExit(f"NVRTC: {nvrtc.nvrtcGetErrorString(result)[1].decode()}\n{log()}")
        return values[0] if values else None

    def log():
        size = nvrtc.nvrtcGetProgramLogSize(program)[1]
        buffer = bytearray(size)
        nvrtc.nvrtcGetProgramLog(program, buffer)
        return buffer.decode(errors="replace")

    program = nvrtc.nvrtcCreateProgram(text.encode(), b"vectors.cu", 0, [], [])[1]
    options = [f"--gpu-architecture={arch}".encode(), b"--std=c++17", b"-default-device"]
    done(*nvrtc.nvrtcCompileProgram(program, len(options), options))
    image = bytearray(done(*nvrtc.nvrtcGetCUBINSize(program)))
    done(*nvrtc.nvrtcGetCUBIN(program, image))
    nvrtc.nvrtcDestroyProgram(program)
    return bytes(image)


def run(directory: Path, results: Path, driver) -> Path:
    """Launch every group, and write its outputs."""
    manifest = json.loads((directory / "manifest.json").read_text())
    driver.open(manifest["arch"])
    results.mkdir(parents=True, exist_ok=True)
    recorded = {"device": np.array(driver.name), "arch": np.array(manifest["arch"])}
    failed = []
    for name, group in manifest["groups"].items():
        with np.load(directory / f"{name}.npz") as given:
            arrays = {key: given[key] for key in ARRAYS}
        launch = (manifest["entry"], group["blocks"], manifest["lanes"], manifest["shared"])
        try:
            out = driver.launch((directory / f"{name}.cubin").read_bytes(), *launch, arrays)
        except DriverError as error:
            failed.append(f"{name}: {error}")
            continue
        recorded[f"{name}/names"] = np.array(group["vectors"])
        recorded |= {f"{name}/{key}": value for key, value in arrays.items() if key != "out"}
        recorded |= {f"{name}/out": out["out"], f"{name}/memory_after": out["memory"]}
        print(f"{name}: recorded")
    path = results / f"{manifest['arch']}.npz"
    np.savez_compressed(path, **recorded)
    if failed:
        raise SystemExit("not recorded:\n" + "\n".join(failed))
    return path


class DriverError(Exception):
    """A call of the driver failed."""


class Driver:
    """The CUDA driver by ctypes: nothing else need be installed."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise SystemExit(f"there is no CUDA driver here: {error}") from error
        self._device = ctypes.c_int()
        self.name = ""

    def open(self, arch: str) -> None:
        """Take the first device, which must be of the architecture."""
        self._call("cuInit", ctypes.c_uint(0))
        self._call("cuDeviceGet", ctypes.byref(self._device), ctypes.c_int(0))
        name = ctypes.create_string_buffer(256)
        self._call("cuDeviceGetName", name, ctypes.c_int(256), self._device)
        version = ctypes.c_int()
        self._call("cuDriverGetVersion", ctypes.byref(version))
        major, minor = (self._attribute(number) for number in (75, 76))
        self.name = f"{name.value.decode()}, compute capability {major}.{minor}, driver {version.value}"
        print(self.name)
        wanted = int(arch.removeprefix("sm_").rstrip("af"))
        if wanted // 10 != major or wanted % 10 > minor:
            raise SystemExit(f"code for {arch} does not run on {self.name}")

    def launch(self, image, entry, blocks, threads, shared, arrays) -> dict:
        """Run a kernel of an image on copies of arrays; return the copies."""
        context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._device)
        try:
            self._call("cuCtxSetCurrent", context)
            return self._launch(image, entry, blocks, threads, shared, arrays)
        finally:  # an error of a kernel stays with its context
            self._library.cuDevicePrimaryCtxRelease_v2(self._device)
            self._library.cuDevicePrimaryCtxReset_v2(self._device)

    def _launch(self, image, entry, blocks, threads, shared, arrays) -> dict:
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(image))
        self._call("cuModuleGetFunction", ctypes.byref(function), module, ctypes.c_char_p(entry.encode()))
        addresses = []
        for key in ARRAYS:
            array = np.ascontiguousarray(arrays[key])
            address = ctypes.c_uint64()
            self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(array.nbytes))
            self._call("cuMemcpyHtoD_v2", address, array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes))
            addresses.append(address)
        pointers = (ctypes.c_void_p * len(addresses))(*(ctypes.addressof(address) for address in addresses))
        sizes = [ctypes.c_uint(n) for n in (blocks, 1, 1, threads, 1, 1, shared)]
        self._call("cuLaunchKernel", function, *sizes, None, pointers, None)
        self._call("cuCtxSynchronize")
        out = {}
        for key, address in zip(ARRAYS, addresses, strict=True):
            out[key] = np.empty_like(np.ascontiguousarray(arrays[key]))
            size = ctypes.c_size_t(out[key].nbytes)
            self._call("cuMemcpyDtoH_v2", out[key].ctypes.data_as(ctypes.c_void_p), address, size)
            self._call("cuMemFree_v2", address)
        self._call("cuModuleUnload", module)
        return out

    def _attribute(self, number: int) -> int:
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), ctypes.c_int(number), self._device)
        return value.value

    def _call(self, name: str, *arguments) -> None:
        result = getattr(self._library, name)(*arguments)
        if result:
            text = ctypes.c_char_p()
            self._library.cuGetErrorString(result, ctypes.byref(text))
            raise DriverError(f"{name}: {(text.value or b'error').decode()} ({result})")


if __name__ == "__main__":
    main(sys.argv[1:])
