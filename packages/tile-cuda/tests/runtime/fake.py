"""A driver that launches nothing and remembers everything; its memory is the host's."""

import contextlib
import ctypes
import struct
from dataclasses import dataclass, field

from tile_cuda_runtime.api import Device, Failed

H100 = Device(0, "Fake 90", (9, 0), 227 << 10)


@dataclass
class Launch:
    function: int
    grid: tuple
    block: tuple
    shared: int
    stream: int
    values: bytes
    device: int


@dataclass
class FakeDriver:
    """Made like the driver in `tile_cuda_runtime.api`; ``context`` is the device of the current context."""

    devices: list = field(default_factory=lambda: [H100])
    context: int | None = 0
    fail: dict = field(default_factory=dict)  # call -> number of the error
    calls: list = field(default_factory=list)
    launches: list = field(default_factory=list)
    parameters: int = 4
    maps: int = 0  # parameters behind them
    memory: dict = field(default_factory=dict)  # address -> the host's memory that stands for it
    pause: object = None
    thread: object = None
    short: int = 0  # launches in the short form
    attributes: int = 0  # of the last launch with space for attributes

    def version(self):
        return "13.0"

    def count(self):
        return len(self.devices)

    def current(self):
        return self.context or 0

    def device(self, ordinal):
        return self.devices[ordinal]

    @contextlib.contextmanager
    def entered(self, ordinal):
        before, self.context = self.context, ordinal
        self.calls.append(("entered", ordinal))
        yield
        self.context = before

    def synchronize(self, ordinal):
        self._do("synchronize", ordinal)

    def allocate(self, size):
        self._do("allocate", size)
        buffer = ctypes.create_string_buffer(size + 256)
        address = -(-ctypes.addressof(buffer) // 256) * 256
        self.memory[address] = buffer
        return address

    def release(self, address):
        self._do("release", address)
        del self.memory[address]

    def upload(self, address, source, size):
        self._do("upload", size)
        ctypes.memmove(address, source, size)

    def download(self, target, address, size):
        self._do("download", size)
        ctypes.memmove(target, address, size)

    def load(self, code):
        self._do("load", code[:4])
        return code

    def function(self, library, name):
        self._do("function", name)
        return 1000 + len([c for c in self.calls if c[0] == "function"])

    def prepare(self, function, ordinal, shared_bytes):
        self._do("prepare", function, ordinal, shared_bytes)

    def zeros(self, ordinal):
        self._do("zeros", ordinal)
        return 0x7E000

    def encode_map(self, fields):
        self._do("encode_map", fields)
        if self.context is None:
            raise self.failure("cuTensorMapEncodeTiled", 201)
        return fields.address.to_bytes(8, "little") + fields.extents[-1].to_bytes(8, "little") + bytes(112)

    @contextlib.contextmanager
    def stream(self):
        yield 99

    @contextlib.contextmanager
    def recorded(self, stream, queue):
        before = len(self.launches)
        queue()
        yield len(self.launches) - before

    def seconds(self, stream, graph, times):
        self._do("seconds", graph, times)
        return graph * times * 1e-6

    def launch(self, function, gx, gy, gz, bx, by, bz, shared, stream, addresses, extra):
        assert extra == 0
        table = (ctypes.c_void_p * (self.parameters + self.maps)).from_address(addresses)
        if self.pause is not None:
            self.pause.wait()
        sizes = [8] * self.parameters + [128] * self.maps
        values = b"".join(ctypes.string_at(table[i], size) for i, size in enumerate(sizes))
        self.launches.append(Launch(function, (gx, gy, gz), (bx, by, bz), shared, stream, values, self.context))
        return (self.fail.get("launch", 0),)

    def launch_config(self, config, function, values, extra):
        """Return the short form for arguments from ``ctypes.byref``."""
        assert extra is None
        if self.context is None and not self.stream_of(config):
            return 201
        numbers = struct.unpack_from("<7I4xQQI4x", bytes(config._obj))
        assert numbers[8:] in ((0, 0), (self.early(), 1))
        self.attributes = numbers[9]
        function = ctypes.addressof(function._obj)
        self.short += 1
        return self.launch(function, *numbers[:8], ctypes.addressof(values._obj), 0)[0]

    def early(self):
        return 0xEA51

    def launch_early(self, function, *shape):
        self.attributes = 1
        return self.launch(function, *shape)

    @staticmethod
    def stream_of(config):
        return struct.unpack_from("<Q", bytes(config._obj), 32)[0]

    def read_current(self):
        return (201, None) if self.context is None else (0, self.context)

    def failure(self, call, code):
        return Failed(call, code, self.reason(code))

    def reason(self, code):
        return f"CUDA_ERROR_{code}"

    def _do(self, call, *arguments):
        self.calls.append((call, *arguments))
        if call in self.fail:
            raise self.failure(call, self.fail[call])
