"""The part of ``torch`` that launches on ``mps`` use: tensors and ``compile_shader``."""

import re
import types
from typing import NamedTuple

import numpy as np

import tile_core.compat.tvm  # noqa: F401 - before a fake stands in torch's place: TVM reads element types of the real one
from tile_metal.versions import compiled_language, machine_with, version_of
from tile_runtime.calls.dlpack import contiguous_strides

from . import machine
from .machine import Buffer, need, numpy_kind

TYPES = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "int64", "float16", "bfloat16", "float32", "float8_e4m3fn",
    "float8_e5m2",
)  # fmt: skip


class Dtype:
    """An element type."""

    def __init__(self, name):
        self.name, self.kind = name, numpy_kind(name)
        self.itemsize = self.kind.itemsize

    def __str__(self):
        return f"torch.{self.name}"


class Device(NamedTuple):
    """``torch.device``."""

    type: str
    index: int | None


class Tensor:
    """``torch.Tensor``."""

    __module__ = "torch"
    layout, is_quantized, is_nested, requires_grad = "strided", False, False, False

    def __init__(self, torch, buffer, offset, shape, strides, dtype, device="mps"):
        self._torch, self.buffer, self._offset = torch, buffer, offset  # offset in elements
        self.shape, self._strides, self.dtype = tuple(shape), tuple(strides), dtype
        self.device = Device(device, None if device == "cpu" else 0)

    def is_neg(self):
        return False

    is_conj = is_neg

    def stride(self):
        return self._strides

    def storage_offset(self):
        return self._offset

    def element_size(self):
        return self.dtype.itemsize

    def numel(self):
        return int(np.prod(self.shape, dtype=np.int64))

    def dim(self):
        return len(self.shape)

    def is_contiguous(self):
        return self.numel() <= 1 or self._strides == contiguous_strides(self.shape)

    def untyped_storage(self):
        size = self.buffer.bytes.nbytes
        return types.SimpleNamespace(data_ptr=lambda: self._start(), nbytes=lambda: size, device=self.device)

    def data_ptr(self):
        return self._start() + self._offset * self.dtype.itemsize

    def __dlpack_device__(self):
        return (1, 0) if self.device.type == "cpu" else (8, 0)

    def detach(self):
        return self

    def view(self, dtype):
        need(dtype.itemsize == self.dtype.itemsize, "a view of the same size")
        return Tensor(self._torch, self.buffer, self._offset, self.shape, self._strides, dtype, self.device.type)

    def __getitem__(self, rows):
        start, _, step = rows.indices(self.shape[0])
        shape = (len(range(*rows.indices(self.shape[0]))), *self.shape[1:])
        offset, strides = self._offset + start * self._strides[0], (self._strides[0] * step, *self._strides[1:])
        return Tensor(self._torch, self.buffer, offset, shape, strides, self.dtype, self.device.type)

    def cpu(self):
        self._torch.mps.synchronize()
        return self._torch.from_numpy(self.array().copy())

    def numpy(self):
        need(self.device.type == "cpu", "NumPy reads host memory")
        return self.array()

    def to(self, device):
        return self._torch.tensor(self.array(), device=device)

    def array(self):
        """Return the elements, wherever they are."""
        return self.buffer.elements(self.dtype.kind, self._offset * self.dtype.itemsize, self.shape, self._strides)

    def _start(self):
        return self.buffer.bytes.ctypes.data if self.device.type == "cpu" else self.buffer.handle


class Torch:
    """The module; ``launches`` are the kernels that were dispatched, ``run=False`` only records them."""

    Tensor = Tensor
    strided = "strided"

    def __init__(self, *, run=True, limit=1024, width=32, refuse="", version="2.13.0", system=(15, 1),
                 chip="Apple M1 Ultra", actual=None):  # fmt: skip
        self.run, self.limit, self.width, self.refuse = run, limit, width, refuse
        self.__version__, self.system = version, system
        self.generation = actual or machine_with(chip, system).generation
        self.launches, self.shaders, self.waits = [], [], 0
        for name in TYPES:
            setattr(self, name, Dtype(name))
        self.nn = types.SimpleNamespace(Parameter=type("Parameter", (Tensor,), {}))
        self.mps = types.SimpleNamespace(compile_shader=self._compile, synchronize=self._synchronize)
        self.backends = types.SimpleNamespace(
            mps=types.SimpleNamespace(is_available=lambda: True, get_name=lambda: chip)
        )

    def empty(self, shape, dtype=None, device="cpu"):
        device = getattr(device, "type", device)
        need(device in ("cpu", "mps"), f"a device {device}")
        dtype = dtype or self.float32
        buffer = Buffer(int(np.prod(shape, dtype=np.int64)) * dtype.itemsize)
        return Tensor(self, buffer, 0, shape, contiguous_strides(tuple(shape)), dtype, device)

    def zeros(self, *shape, dtype=None, device="cpu"):
        found = self.empty(shape, dtype, device)
        found.array()[...] = 0
        return found

    def tensor(self, array, device="mps"):
        """Return a tensor with a copy of a NumPy array (unlike torch itself)."""
        found = self.empty(array.shape, getattr(self, array.dtype.name), device)
        found.array()[...] = array
        return found

    def from_numpy(self, array):
        return self.tensor(array, "cpu")

    def _synchronize(self):
        self.waits += 1

    def _compile(self, text):
        need(isinstance(text, str), "the whole text")
        self.shaders.append(text)
        if self.refuse:
            raise SyntaxError(self.refuse)
        try:
            machine.compiles(text, "torch", self.__version__, self.system)
        except machine.Refused as refused:
            raise SyntaxError(str(refused)) from refused
        entries = re.findall(r"\[\[kernel[^\]]*\]\] void (\w+)\(", text)
        return types.SimpleNamespace(**{entry: Function(self, text, entry) for entry in entries})


class Function:
    """A kernel of a library that ``compile_shader`` returned."""

    def __init__(self, torch, text, entry):
        self._torch, self._text, self._entry = torch, text, entry
        (head,) = re.findall(rf"void {entry}\((.*?)\) \{{\n", text, re.DOTALL)
        self._parameters = re.findall(r"([^,]*?)(\w+) \[\[buffer\((\d+)\)\]\]", head)
        self.static_thread_group_memory_length = machine.slab(text)
        self.thread_execution_width = torch.width
        limits = re.findall(r"max_total_threads_per_threadgroup\((\d+)\)", text)
        self.max_threads_per_threadgroup = min([torch.limit, *map(int, limits)])

    def __call__(self, *args, threads=None, group_size=None, arg_casts=None, error_buf_idx=None):
        need(arg_casts is None and error_buf_idx is None, "these tests use plain arguments only")
        need(len(args) == len(self._parameters), f"{len(args)} arguments for {len(self._parameters)} buffers")
        need(len(threads) == len(group_size), "threads and group_size of one rank")
        need(all(type(n) is int and 0 < n < 2**32 for n in (*threads, *group_size)), "extents are positive")
        size = int(np.prod(group_size))
        need(size <= self.max_threads_per_threadgroup, f"{size} threads: Metal ends the process")
        need(not any(map(int.__mod__, threads, group_size)), "full threadgroups")
        arrays, scalars = [], []
        for (kind, name, at), arg in zip(self._parameters, args, strict=True):
            need(int(at) == len(arrays) + bool(scalars), "argument i is buffer i")
            if isinstance(arg, Tensor):
                arrays.append((name, self._flat(kind, arg), "read" if "const " in kind else "readwrite"))
            else:
                scalars = machine.scalars_of(self._text, f"{self._entry}_args", self._bytes(arg))
        launch = types.SimpleNamespace(entry=self._entry, threads=threads, group=group_size, scalars=scalars, args=args)
        self._torch.launches.append(launch)
        if self._torch.run:
            blocks = tuple(n // g for n, g in zip(threads, group_size, strict=True))
            length = self.static_thread_group_memory_length
            torch = self._torch
            language = compiled_language("torch", version_of(torch.__version__), torch.system)
            machine.execute(
                self._text, self._entry, arrays, scalars, blocks, group_size, length, torch.generation, language
            )

    def _flat(self, kind, tensor):
        """Return the memory of a tensor from its offset on: strides are not applied."""
        need(tensor.device.type == "mps", "Passed CPU tensor to MPS op")
        need(tensor.numel(), "a tensor with elements")
        element = machine.MSL[re.search(r"(\w+)\*", kind)[1]]
        need(tensor.dtype.name in TYPES[:10], f"{tensor.dtype} is no type of MPS")
        start = tensor.storage_offset() * tensor.dtype.itemsize
        memory = tensor.buffer.bytes[start:]
        return memory[: memory.size - memory.size % numpy_kind(element).itemsize].view(numpy_kind(element))

    def _bytes(self, arg):
        values = arg if isinstance(arg, list) else [arg]
        need(all(type(v) is int and -(2**63) <= v < 2**63 for v in values), "integers of 64 bits")
        need(8 * len(values) <= 4096, "arguments of 4 KB")
        return machine.bytes_of_longs(values)
