"""Products of a warpgroup: kernels of a few instructions, with replaceable statements.

The same texts run on the models and on a device. Operands lie in shared memory as the PTX manual draws its canonical
layouts; kernels accumulate small integers, so that every order of additions gives the same values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from tile_core.abi.kernel_text import KernelText, LaunchFacts, ParamFact
from tile_cuda.ptx import prelude
from tile_cuda.ptx.wgmma import COMMIT, FENCE, depth, product_name, wait_name

TYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "s8": np.int8, "u8": np.uint8,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip
CODES = {0: 0, 128: 1, 64: 2, 32: 3}  # of swizzles in descriptors
NIBBLES = np.array([4, 8, 9, 12, 13, 14], np.uint32)
PAIRS = np.array([4, 14], np.uint32)

PARTS = {
    "PROXY": 'asm volatile("fence.proxy.async;" ::: "memory");',
    "SYNC": "__syncthreads();",
    "FENCE": f"{FENCE}();",
    "COMMIT": f"{COMMIT}();",
    "WAIT": f"{wait_name(0)}();",
    "BEFORE": "", "BETWEEN": "", "ISSUED": "", "AFTER": "",
}  # fmt: skip

TEXT = """
#pragma nv_diag_suppress 550
extern "C" __global__ void k(const unsigned* a_image, const unsigned* b_image, const unsigned* fragments,
    const unsigned* metadata, {total}* out) {{
  extern __shared__ __align__(1024) unsigned char smem[];
  unsigned* const a = (unsigned*)smem;
  unsigned* const b = (unsigned*)(smem + {a_bytes});
  for (int i = threadIdx.x; i < {a_bytes} / 4; i += 128) a[i] = a_image[i];
  for (int i = threadIdx.x; i < {b_bytes} / 4; i += 128) b[i] = b_image[i];
  {total} d[{accumulators}];
  unsigned ra[4 * {steps}], e[{steps}];
  for (int i = 0; i < {accumulators}; i++) d[i] = ({total})0;
  for (int i = 0; i < 4 * {steps}; i++) ra[i] = fragments[threadIdx.x * 4 * {steps} + i];
  for (int i = 0; i < {steps}; i++) e[i] = metadata[threadIdx.x * {steps} + i];
  PROXY
  SYNC
  BEFORE
  FENCE
  {products}
  ISSUED
  COMMIT
  WAIT
  AFTER
  for (int i = 0; i < {accumulators}; i++) out[threadIdx.x * {accumulators} + i] = d[i];
}}
"""


@dataclass
class Product:
    """A product of 64 rows.

    Attributes
    ----------
    n, types
        Columns; types of A, B and D as PTX names them.
    form, trans, swizzles
        ``"ss"`` or ``"rs"``; whether elements along M of A, along N of B are adjacent; bytes of their swizzles.
    sparse, select
        Whether A is sparse; the selector of its metadata.
    steps
        Instructions along K.
    seed, wide
        Of the data; whether floats have many exponents, and are no small integers.
    parts
        Code for some of the kernel's parts, in which ``{NAME}`` stands for what a part is otherwise.
    also
        Other functions that the parts call.
    """

    n: int
    types: tuple[str, str, str] = ("f16", "f16", "f32")
    form: str = "ss"
    trans: tuple[bool, bool] = (False, False)
    swizzles: tuple[int, int] = (128, 128)
    sparse: bool = False
    select: int = 0
    steps: int = 4
    seed: int = 0
    wide: bool = False
    parts: dict[str, str] = field(default_factory=dict)
    also: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.size = np.dtype(TYPES[self.types[0]]).itemsize
        self.each = depth(self.types[0], self.sparse)
        self.k = self.each * self.steps
        rng = np.random.default_rng(self.seed)
        stored = self.k // 2 if self.sparse else self.k
        self.a = self._numbers(rng, (64, stored), 0)
        self.b = self._numbers(rng, (self.n, self.k), 1)
        legal = PAIRS if self.types[0] == "tf32" else NIBBLES
        self.group = 2 if self.types[0] == "tf32" else 4
        self.nibbles = rng.choice(legal, (64, self.k // self.group))

    def _numbers(self, rng: Any, shape: tuple[int, ...], which: int) -> Any:
        kind = self.types[which]
        if self.wide and kind not in ("s8", "u8"):
            spread = 3 if kind in ("e4m3", "e5m2") or self.types[2] == "f16" else 10
            return (rng.standard_normal(shape) * 2.0 ** rng.integers(-spread, 4, shape)).astype(TYPES[kind])
        least = 0 if kind == "u8" else -3
        return rng.integers(least, 4, shape).astype(TYPES[kind])

    @property
    def accumulators(self) -> int:
        """Registers of a thread for D."""
        return self.n // 4 if self.types[2] == "f16" else self.n // 2

    @property
    def stored(self) -> int:
        """Elements of A that an instruction takes along K."""
        return self.each // 2 if self.sparse else self.each

    def expected(self) -> Any:
        """Return D as 64 rows."""
        a, b = self.a.astype(np.float64), self.b.astype(np.float64)
        if not self.sparse:
            return a @ b.T
        whole = np.zeros((64, self.k))
        per = self.group // 2
        for row in range(64):
            for g, nibble in enumerate(self.nibbles[row]):
                first, second = int(nibble) & 3, int(nibble) >> 2
                columns = [first // 2] if per == 1 else [first, second]
                for i, column in enumerate(columns):
                    whole[row, g * self.group + column] = a[row, g * per + i]
        return whole @ b.T

    # What lies where

    def image(self, which: int) -> tuple[Any, int, int, Any]:
        """Return an operand's bytes, leading and stride byte offsets, and element offsets of steps."""
        lines, across, swizzle = (self.a, self.b)[which], self.trans[which], self.swizzles[which]
        step = self.stored if which == 0 else self.each
        count, k = lines.shape
        size = lines.itemsize
        if across:
            return self._across(lines, swizzle, step)
        row = swizzle or 16
        panels = k * size // row  # one after another, each of whole rows
        leading = count * 16 if not swizzle else 16
        data = np.zeros(panels * count * row, np.uint8)
        raw = np.ascontiguousarray(lines).view(np.uint8).reshape(count, panels, row)
        for panel in range(panels):
            data[panel * count * row : (panel + 1) * count * row] = raw[:, panel].ravel()
        starts = [s * step * size // row * count * row + s * step * size % row for s in range(self.steps)]
        return _swizzled(data, swizzle), leading, 8 * row, starts

    def _across(self, lines: Any, swizzle: int, step: int) -> tuple[Any, int, int, Any]:
        count, k = lines.shape
        row = swizzle or 16
        panels = count * 2 // row
        raw = np.ascontiguousarray(lines.T).view(np.uint8).reshape(k, panels, row)
        data = np.ascontiguousarray(raw.transpose(1, 0, 2)).ravel()
        starts = [s * step * row for s in range(self.steps)]
        # Between chunks along M or N, and between groups of 8 along K; without a swizzle the other way round.
        offsets = (k * row, 8 * row) if swizzle else (8 * row, k * row)
        return _swizzled(data, swizzle), *offsets, starts

    def fragments(self) -> Any:
        """Return the registers of A, by thread."""
        words = np.ascontiguousarray(self.a).view(np.uint32).reshape(64, self.steps, 8)
        thread = np.arange(128)
        row = thread // 32 * 16 + thread % 32 // 4
        found = [words[row + 8 * (r % 2), s, thread % 4 + 4 * (r // 2)] for s in range(self.steps) for r in range(4)]
        return np.stack(found, 1).astype(np.uint32)

    def metadata(self) -> Any:
        """Return the metadata of each thread; only the selector's lanes count."""
        thread = np.arange(128)
        row, t = thread // 32 * 16 + thread % 32 // 4, thread % 4
        per = self.each // self.group
        found = np.zeros((128, self.steps), np.uint32)
        for s in range(self.steps if self.sparse else 0):
            mine = self.nibbles[:, s * per : (s + 1) * per]
            for i in range(8):
                if self.size == 1:
                    nibble = mine[row + 8 * (t & 1), 8 * (t >> 1) + i]
                else:
                    nibble = mine[row + 8 * (i // 4), 4 * (t & 1) + i % 4]
                    nibble = np.where(t // 2 == self.select, nibble, 0)
                found[:, s] |= nibble.astype(np.uint32) << np.uint32(4 * i)
        return found

    # The kernel

    def name(self) -> str:
        """Return the function of the instruction."""
        select = self.select if self.sparse else None
        return product_name(self.n, self.types, form=self.form, trans=self.trans, selector=select)

    def call(self, step: int, **changed: Any) -> str:
        """Return the call of an instruction, with some of its arguments changed."""
        given = {"d": "d", "adds": "1", "e": f"e + {step}"}
        for which, name in enumerate("ab"):
            _, leading, stride, starts = self.image(which)
            chunks, rest = divmod(starts[step], 16)
            given |= {name: f"(char*){name} + {rest}", f"{name}_leading": leading, f"{name}_stride": stride,
                      f"{name}_swizzle": CODES[self.swizzles[which]], f"{name}_chunks": chunks}  # fmt: skip
        given |= {"ra": f"ra + {4 * step}", **changed}
        a = ["ra"] if self.form == "rs" else ["a", "a_leading", "a_stride", "a_swizzle", "a_chunks"]
        order = [
            "d",
            *a,
            "b",
            "b_leading",
            "b_stride",
            "b_swizzle",
            "b_chunks",
            *(["e"] if self.sparse else []),
            "adds",
        ]
        return f"{changed.get('function', self.name())}({', '.join(str(given[o]) for o in order)});"

    def calls(self, **changed: Any) -> str:
        """Return all calls, with some of their arguments changed."""
        return " BETWEEN ".join(self.call(s, **changed) for s in range(self.steps))

    def kernel(self) -> tuple[KernelText, dict[str, Any]]:
        """Return the text with its facts, and the arguments."""
        images = [self.image(which)[0] for which in (0, 1)]
        total = {"f32": "float", "f16": "unsigned", "s32": "int"}[self.types[2]]
        products = self.calls()
        sizes = [_padded(image.size) for image in images]
        text = TEXT.format(
            total=total,
            a_bytes=sizes[0],
            b_bytes=sizes[1],
            accumulators=self.accumulators,
            steps=self.steps,
            products="PRODUCTS",
        )
        whole = {"PRODUCTS": products, **PARTS}
        for part, code in whole.items():
            text = text.replace(part, self.parts.get(part, code).replace("{" + part + "}", code))
        names = [self.name(), *self.also, FENCE, COMMIT, wait_name(0), wait_name(1)]
        text = "\n".join(prelude(dict.fromkeys(names), "sm_90a")) + text
        arrays = {
            "a_image": _words(images[0]), "b_image": _words(images[1]), "fragments": self.fragments_or_zeros(),
            "metadata": self.metadata(), "out": np.zeros((128, self.accumulators), _held(self.types[2])),
        }  # fmt: skip
        params = [
            ParamFact(name, "pointer", str(a.dtype), "write" if name == "out" else "read", 16)
            for name, a in arrays.items()
        ]
        return KernelText(text, LaunchFacts("k", tuple(params), (1, 1, 1), (128, 1, 1), sum(sizes))), arrays

    def fragments_or_zeros(self) -> Any:
        """Return the registers of A, zeros if the instruction takes it from shared memory."""
        return self.fragments() if self.form == "rs" else np.zeros((128, 4 * self.steps), np.uint32)

    def gathered(self, out: Any) -> Any:
        """Return D from the threads' stored values."""
        found = np.zeros((64, self.n))
        values = out.view(np.float16).astype(np.float64) if self.types[2] == "f16" else out.astype(np.float64)
        for thread in range(128):
            row, t = thread // 32 * 16 + thread % 32 // 4, thread % 4
            for i in range(self.n // 2):
                found[row + 8 * (i % 4 // 2), i // 4 * 8 + 2 * t + i % 2] = values[thread, i]
        return found


def _swizzled(data: Any, swizzle: int) -> Any:
    found = np.zeros_like(data)
    mask = swizzle // 16 - 1 if swizzle else 0
    for at in range(0, data.size, 16):
        to = at ^ ((at >> 7) & mask) << 4
        found[to : to + 16] = data[at : at + 16]
    return found


def _padded(size: int) -> int:
    return -(-size // 1024) * 1024


def _words(data: Any) -> Any:
    whole = np.zeros(_padded(data.size), np.uint8)
    whole[: data.size] = data
    return whole.view(np.uint32)


def _held(kind: str) -> str:
    return {"f32": "float32", "f16": "uint32", "s32": "int32"}[kind]
