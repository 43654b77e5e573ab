"""The part of ``mlx.core`` that launches use: lazy values and ``mx.fast.metal_kernel``.

The head of a kernel is made as MLX makes it (``metal_kernel.cpp``): parameters follow from words in the body. Work is
ordered as MLX orders it: a kernel waits for those whose *outputs* are among its inputs, and for no other.
"""

import re
import types

import numpy as np

from tile_metal.runtime.source import ATTRIBUTES
from tile_metal.versions import compiled_language, version_of
from tile_runtime.calls.dlpack import contiguous_strides, export

from . import machine
from .machine import Buffer, Violation, need, numpy_kind

NAMES = {
    "bool": "bool", "int8": "int8_t", "uint8": "uint8_t", "int16": "int16_t", "uint16": "uint16_t",
    "int32": "int32_t", "uint32": "uint32_t", "int64": "int64_t", "uint64": "uint64_t", "float16": "float16_t",
    "bfloat16": "bfloat16_t", "float32": "float",
}  # fmt: skip
#: What the text of MLX's utils.h adds, as far as generated heads use it.
UTILS = "typedef half float16_t;\ntypedef bfloat bfloat16_t;\n"


class Dtype:
    """An element type."""

    __module__ = "mlx.core"

    def __init__(self, name):
        self.name, self.kind = name, numpy_kind(name)
        self.size = self.kind.itemsize

    def __repr__(self):
        return f"mlx.core.{self.name}"


class Lazy:
    """A value that is computed when it is needed."""

    def __init__(self, compute):
        self.compute, self.done = compute, None

    def get(self):
        if self.done is None:
            self.done = self.compute()
        return self.done


class Array:
    """``mlx.core.array``."""

    __module__ = "mlx.core"
    __hash__ = object.__hash__

    def __init__(self, mx, shape, dtype, compute):
        self._mx, self.shape, self.dtype, self._value = mx, tuple(shape), dtype, Lazy(compute)

    size = property(lambda self: int(np.prod(self.shape, dtype=np.int64)))
    ndim = property(lambda self: len(self.shape))
    evaluated = property(lambda self: self._value.done is not None)

    def data(self):
        """Return buffer, offset in bytes, strides in elements."""
        return self._value.get()

    def now(self):
        """Return the value that the object stands for now, as an array of its own."""
        return Array(self._mx, self.shape, self.dtype, self._value.get)

    def contiguous(self):
        """Return buffer and offset of row-contiguous memory; a view that is contiguous keeps its offset."""
        buffer, offset, strides = self.data()
        moving = [n for n, extent in enumerate(self.shape) if extent != 1]
        expected = contiguous_strides(self.shape)
        if not self.size or all(strides[n] == expected[n] for n in moving):
            return buffer, offset
        self._mx.copies += 1
        made = Buffer(self.size * self.dtype.size)
        made.elements(self.dtype.kind, 0, self.shape, expected)[...] = self.numpy()
        return made, 0

    def astype(self, dtype):
        now = self.now()

        def compute():
            made = Buffer(now.size * dtype.size)
            made.elements(dtype.kind, 0, now.shape, contiguous_strides(now.shape))[...] = now.numpy().astype(dtype.kind)
            return made, 0, contiguous_strides(now.shape)

        return Array(self._mx, self.shape, dtype, compute)

    def numpy(self):
        buffer, offset, strides = self.data()
        return buffer.elements(self.dtype.kind, offset, self.shape, strides)

    def __array__(self, dtype=None, copy=None):
        need(self.dtype.name != "bfloat16", "bfloat16 cannot go to NumPy")
        self._mx.eval(self)
        return np.array(self.numpy(), dtype)

    def __dlpack_device__(self):
        return self._mx.device

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        self._mx.eval(self)
        buffer, offset, strides = self.data()
        how = {"max_version": max_version, "byte_offset": offset}
        start = buffer.handle if self._mx.device[0] == 8 else buffer.bytes.ctypes.data
        return export(start, self._mx.device, self.shape, strides, self.dtype.name, buffer, **how)

    def __setitem__(self, where, value):
        need(where is Ellipsis, "only array[...] = value is known here")
        need((value.shape, value.dtype) == (self.shape, self.dtype), "content of another kind")
        self._value = value._value  # the object stands for another value; arrays derived before keep theirs

    def __getitem__(self, rows):
        now = self.now()

        def compute():
            buffer, offset, strides = now.data()
            start, _, step = rows.indices(self.shape[0])
            return buffer, offset + start * strides[0] * self.dtype.size, (strides[0] * step, *strides[1:])

        shape = (len(range(*rows.indices(self.shape[0]))), *self.shape[1:])
        return Array(self._mx, shape, self.dtype, compute)

    @property
    def T(self):
        now = self.now()
        return Array(self._mx, self.shape[::-1], self.dtype, lambda: (*now.data()[:2], now.data()[2][::-1]))

    def reshape(self, *shape):
        shape = shape[0] if isinstance(shape[0], (tuple, list)) else shape
        rest = -int(np.prod(shape)) or 1
        shape = tuple(self.size // rest if n == -1 else n for n in shape)
        need(int(np.prod(shape)) == self.size, "reshape keeps the number of elements")

        now = self.now()

        def compute():
            if shape == now.shape:
                return now.data()
            buffer, offset = now.contiguous()
            return buffer, offset, contiguous_strides(shape)

        return Array(self._mx, shape, self.dtype, compute)


class Mlx:
    """The module. ``launches`` are the kernels that ran; ``run=False`` only records them.

    ``device`` is the name in DLPack; ``limit`` the threads that every pipeline allows; ``system`` the version of macOS.
    ``actual`` is the generation of GPU that executes, if the architecture names another one.
    """

    def __init__(self, *, device=(8, 0), run=True, limit=1024, refuse="", version="0.32.4", system=(15, 1),
                 architecture="applegpu_g13d", actual=None):  # fmt: skip
        self.device, self.run, self.limit, self.refuse = device, run, limit, refuse
        self.__version__, self.system, self.architecture = version, system, architecture
        self.number = version_of(version)
        self.generation = actual or int(re.search(r"_g(\d+)", architecture)[1])
        self._libraries = {}
        self.array, self.Dtype = self._make, Dtype
        for name in NAMES:
            setattr(self, "bool_" if name == "bool" else name, Dtype(name))
        self.gpu, self.cpu = "gpu", "cpu"
        self.metal = types.SimpleNamespace(is_available=lambda: device[0] == 8)
        self.fast = types.SimpleNamespace(metal_kernel=self._metal_kernel)
        self.launches, self.kernels, self.waits, self.queued, self.copies = [], [], 0, 0, 0
        self._outputs, self._changed, self._read = set(), set(), set()

    def device_info(self, device="cpu"):
        if device != "gpu":
            return {"device_name": "Double"}
        return {"device_name": "Double", "architecture": self.architecture, "max_buffer_length": 1 << 34}

    def default_stream(self, device):
        return device

    def synchronize(self, stream):
        need(stream == "gpu", "the stream of the GPU")
        self._wait()

    def eval(self, *arrays):
        for array in arrays:
            array.data()
        self._wait()

    def async_eval(self, *arrays):
        self.queued += 1
        for array in arrays:
            array.data()

    def zeros(self, shape, dtype=None):
        dtype = dtype or self.float32
        need(isinstance(dtype, Dtype), f"{dtype!r} is no element type")
        return self._new(np.zeros(shape, dtype.kind), dtype)

    def _make(self, data, dtype=None):
        need(isinstance(data, (list, np.ndarray)), "an array of a list or of NumPy")
        if dtype is None:
            dtype = getattr(self, {"bool": "bool_"}.get(data.dtype.name, data.dtype.name))
        for x in np.ravel(data) if dtype.kind.kind in "iu" else ():
            need(np.iinfo(dtype.kind).min <= x <= np.iinfo(dtype.kind).max, f"{x} does not fit in {dtype}")
        return self._new(np.array(data, dtype.kind), dtype)

    def _new(self, content, dtype):
        def compute():
            buffer = Buffer(content.nbytes)
            buffer.elements(dtype.kind, 0, content.shape, contiguous_strides(content.shape))[...] = content
            return buffer, 0, contiguous_strides(content.shape)

        return Array(self, content.shape, dtype, compute)

    def _wait(self):
        self.waits += 1
        self._outputs, self._changed, self._read = set(), set(), set()

    def _metal_kernel(self, name, input_names, output_names, source, header="", ensure_row_contiguous=True,
                      atomic_outputs=False, **more):  # fmt: skip
        if set(more) - {"compile_options"} or (more and self.number < (0, 32)):
            raise TypeError("metal_kernel(): incompatible function arguments")
        need(output_names, "[metal_kernel] Must specify at least one output.")
        need(re.fullmatch(r"\w+", name), f"{name!r} is no name")
        known = {("math_mode", m) for m in ("safe", "relaxed", "fast")}
        need(not set((more.get("compile_options") or {}).items()) - known, "a known option")
        kernel = Kernel(self, name, input_names, output_names, source, header, ensure_row_contiguous, more)
        self.kernels.append(kernel)
        return kernel


class Kernel:
    """The result of ``mx.fast.metal_kernel``."""

    def __init__(self, mx, name, inputs, outputs, source, header, row_contiguous, options):
        self.mx, self.name, self.inputs, self.outputs = mx, name, inputs, outputs
        self.source, self.header, self.row_contiguous, self.options = source, header, row_contiguous, options

    def __call__(self, *, inputs, output_shapes, output_dtypes, grid, threadgroup, template=None, init_value=None,
                 verbose=False, stream=None):  # fmt: skip
        need(len(inputs) == len(self.inputs), "the same number of inputs and names")
        need(len(output_shapes) == len(output_dtypes) == len(self.outputs), "the same number of outputs and names")
        need(all(isinstance(a, Array) for a in inputs), "inputs are arrays")
        need(all(a.dtype.name != "float64" for a in inputs), "no double on a GPU")
        need(stream == "gpu", "[metal_kernel] Only supports the GPU.")
        for extents in (grid, threadgroup):
            need(len(extents) == 3 and all(type(n) is int and 0 < n < 2**31 for n in extents), f"{extents} are no ints")
        need(all(n < 2**31 for s in output_shapes for n in s), "extents are ints")
        given = [a.now() for a in inputs]
        lazy = Lazy(lambda: self._run(given, output_shapes, output_dtypes, grid, threadgroup))
        rows = enumerate(zip(output_shapes, output_dtypes, strict=True))
        return [Array(self.mx, s, d, lambda i=i: lazy.get()[i]) for i, (s, d) in rows]

    def head(self, arrays, dtypes):
        """Return MLX's kernel head, and rows of parameter name, space and const."""
        rows, lines = [], []
        for name, array in zip(self.inputs, arrays, strict=True):
            space = "constant" if array.size < 8 else "device"
            lines.append(f"const {space} {NAMES[array.dtype.name]}{'*' if array.ndim else '&'} {name}")
            rows.append(name)
            for word, kind in (("shape", "int*"), ("strides", "int64_t*"), ("ndim", "int&")):
                if array.ndim and f"{name}_{word}" in self.source:
                    lines.append(f"const constant {kind} {name}_{word}")
                    rows.append(f"{name}_{word}")
        for name, dtype in zip(self.outputs, dtypes, strict=True):
            lines.append(f"device {NAMES[dtype.name]}* {name}")
            rows.append(name)
        lines = [f"  {line} [[buffer({i})]]" for i, line in enumerate(lines)]
        need(len(lines) <= 31, "31 buffers")
        builtins = [a for a in ATTRIBUTES if a in self.source]
        need(set(builtins) <= set(machine.BUILTINS), f"a parameter by accident: {builtins}")
        need(len(set(rows)) == len(rows) and not set(rows) & set(builtins), "every name once")
        return ",\n".join([*lines, *(f"  {ATTRIBUTES[a]} {a} [[{a}]]" for a in builtins)]), rows

    def keep_library(self, entry, text):
        """Refuse to discard a library in use: before 0.32.1 MLX keeps one per name."""
        number = self.mx.number
        name = (entry, self.source, str(self.options)) if number >= (0, 32, 1) else entry
        kept = self.mx._libraries.setdefault(name, text)
        need(kept == text, f"{entry} with another text: the library is thrown away while its pipelines are in use")

    def entry(self, arrays, dtypes):
        """Return the name that MLX gives the function."""
        if self.mx.number < (0, 32):
            return f"custom_kernel_{self.name}"
        kinds = [NAMES[a.dtype.name] + ("s" if not a.ndim else "c" if a.size < 8 else "") for a in arrays]
        return "_".join(["custom_kernel", self.name, *kinds, *(NAMES[d.name] for d in dtypes)])

    def text(self, arrays, dtypes):
        """Return the text as MLX makes it."""
        head, _ = self.head(arrays, dtypes)
        return f"{self.header}[[kernel]] void {self.entry(arrays, dtypes)}(\n{head}) {{\n{self.source}\n}}\n"

    def _run(self, inputs, shapes, dtypes, grid, group):
        mx = self.mx
        data = [a.data() for a in inputs]
        entry = self.entry(inputs, dtypes)
        text = UTILS + self.text(inputs, dtypes)
        self._check_spaces(inputs)
        self.keep_library(entry, text)
        try:
            machine.compiles(text, "mlx", mx.__version__, mx.system)
        except machine.Refused as refused:
            raise RuntimeError(f"[metal::Device] Unable to build metal library from source\n{refused}") from refused
        if mx.refuse:
            raise RuntimeError(f"[metal::Device] Unable to build metal library from source\n{mx.refuse}")
        if (size := int(np.prod(group))) > mx.limit:
            raise ValueError(f"Thread group size ({size}) is greater than  the maximum allowed threads per "
                             f"threadgroup ({mx.limit}).")  # fmt: skip
        if self.row_contiguous:
            data = [(*a.contiguous(), contiguous_strides(a.shape)) for a in inputs]
        outputs = [Buffer(int(np.prod(s)) * d.size) for s, d in zip(shapes, dtypes, strict=True)]
        self._order({buffer.handle for buffer, _, _ in data}, {b.handle for b in outputs})
        group = tuple(map(min, group, grid))  # MLX does
        mx.launches.append(types.SimpleNamespace(kernel=self, text=text, entry=entry, grid=grid, group=group))
        if mx.run:
            self._execute(text, entry, inputs, data, dtypes, outputs, grid, group)
        return [(b, 0, contiguous_strides(s)) for b, s in zip(outputs, shapes, strict=True)]

    def _order(self, inputs, outputs):
        """Insert a barrier if an input is the output of a running kernel; reject races."""
        mx = self.mx
        if inputs & mx._outputs:
            mx._outputs, mx._changed, mx._read = set(), set(), set()
        if (inputs | outputs) & mx._changed:
            raise Violation("a kernel uses what another one, which may still run, changed through its inputs")
        mx._outputs |= outputs

    def _check_spaces(self, arrays):
        """A cast from one address space to another does not compile."""
        for name, array in zip(self.inputs, arrays, strict=True):
            space = "constant" if array.size < 8 else "device"
            for cast in re.findall(rf"\((\w+)[^()]*\)\s*{name}\b", self.source):
                need(cast == space, f"{name} is in {space} and cast to {cast}")
            for use in re.findall(rf"\b{name}\s*\[", self.source):
                need(array.ndim, f"{use}...] of a reference")

    def _execute(self, text, entry, inputs, data, dtypes, outputs, grid, group):
        plain = "#define const\n" in self.header and "#undef const\n" in self.source
        given, before = [], []
        for name, array, (buffer, offset, strides) in zip(self.inputs, inputs, data, strict=True):
            span = 1 + sum((n - 1) * s for n, s in zip(array.shape, strides, strict=True))
            flat = buffer.bytes[offset : offset + span * array.dtype.size].view(array.dtype.kind)
            writes = plain and array.size >= 8
            given.append((name, flat, "readwrite" if writes else "read"))
            before.append((buffer, flat, flat.copy()))
            for word, value in (("shape", array.shape), ("strides", strides)):
                if array.ndim and f"{name}_{word}" in self.source:
                    kind = np.int32 if word == "shape" else np.int64
                    given.append((f"{name}_{word}", np.array(value, kind), "read"))
        for name, dtype, buffer in zip(self.outputs, dtypes, outputs, strict=True):
            given.append((name, buffer.bytes.view(dtype.kind), "write"))
        blocks, ragged = tuple(g // t for g, t in zip(grid, group, strict=True)), any(map(int.__mod__, grid, group))
        if ragged:  # the same threads, one to a group: only right if that does not matter
            need(not re.search("threadgroup|simd", self.source), "full threadgroups")
            blocks, group = grid, (1, 1, 1)
        mx, slab = self.mx, machine.slab(self.source)
        language = compiled_language("mlx", mx.number, mx.system)
        machine.execute(text, entry, given, [], blocks, group, slab, mx.generation, language)
        for buffer, now, then in before:
            if now.tobytes() != then.tobytes():
                need(buffer.handle not in self.mx._read, "a kernel changes what another one reads, which may still run")
                self.mx._changed.add(buffer.handle)
        self.mx._read |= {buffer.handle for buffer, _, _ in before}
