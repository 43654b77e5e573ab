"""Programs that every target must refuse: races, out-of-bounds accesses, uninitialized reads, divergence."""

from __future__ import annotations

from hypothesis import strategies as st

from tile_core.testing.case import Data, Launch, Part, Unit, output, tensor
from tile_core.testing.strategies.draws import Draw


@st.composite
def illegal(draw: Draw) -> Unit:
    """Draw a program with one construct that the language rejects, and its error codes."""
    n = draw(st.integers(2, 40))
    c = draw(st.integers(1, n - 1))
    scope = draw(st.sampled_from(("shared", "fragment")))
    alloc = f"f = T.alloc_{scope}(({n},), 'float32')\n"
    body, codes = draw(st.sampled_from((*_FORMS, *((form, ("K214",)) for form in _BLOCKS))))
    grid = str(n + 1) if body in _BLOCKS else "1"
    text = body.format(n=n, c=c, scope=scope, alloc=alloc)
    params = (tensor("A", "float32", n), tensor("U", "uint8", n), output("B", "float32", n))
    part = Part((), text, _nothing)
    name = f"illegal-{draw(st.integers(0, 10**6))}"
    needs = frozenset({"threads", "warps"}) if "tx" in text else frozenset[str]()
    return Unit(
        "fuzz", name, params, "", {"": part}, {"": Launch(lambda rng: {})}, grid=grid, threads=64, needs=needs,
        illegal=codes,
    )  # fmt: skip


def _nothing(d: Data) -> Data:
    return {}


_FORMS: tuple[tuple[str, tuple[str, ...]], ...] = (
    # Iterations are independent: what one writes no other one touches.
    ("{alloc}T.copy(A, f)\nfor i in T.Parallel({n}):\n    f[i] = f[(i + {c}) % {n}]\nT.copy(f, B)", ("K214",)),
    ("for i in T.Parallel({n}):\n    B[i // {n}] = A[i]", ("K214",)),
    ("for i, j in T.Parallel({n}, 2):\n    B[i] = A[i] + j", ("K214",)),
    ("{alloc}T.copy(A, f)\nfor i in T.Parallel({n}):\n    f[i] = f[0] + 1\nT.copy(f, B)", ("K214",)),
    # A known negative index is not an index.
    ("B[0] = A[-{c}]", ("K139", "K106")),
    ("for i in T.static_range({n}):\n    B[i] = A[i - {c}]", ("K139", "K106")),
    ("for i in T.static_range({n}):\n    B[i - {c}] = 1.0", ("K139", "K106")),
    ("for i in T.unroll({n}):\n    B[i] = A[i - {c}]", ("K139",)),
    ("for i in T.unroll({n}):\n    B[i - {c}] = 1.0", ("K139",)),
    ("B[0] = A[{n}]", ("K106",)),
    # A loop past the end of scratch memory.
    ("{alloc}for i in T.Parallel({n} + {c}):\n    f[i] = 0.0\nT.copy(f, B)", ("K226",)),
    ("{alloc}T.copy(A, f)\nfor i in T.Parallel({n}):\n    B[i] = f[i + {c}]", ("K226",)),
    ("{alloc}T.clear(f)\nfor k in T.serial({n}):\n    B[k] = f[k - {c}]", ("K226",)),
    ("{alloc}for i in T.Parallel({n} * 2):\n    if i <= {n}:\n        f[i] = 0.0\nT.copy(f, B)", ("K226",)),
    # Uninitialized reads.
    ("{alloc}for i in T.Parallel({n}):\n    B[i] = f[i]", ("K225",)),
    ("{alloc}for i in T.Parallel({n}):\n    f[i] += A[i]\nT.copy(f, B)", ("K225",)),
    ("{alloc}T.copy(f, B)", ("K225",)),
    # Barriers and warp operations that not all reach.
    ("tx = T.get_thread_binding(0)\nif tx < {c}:\n    T.sync_threads()\nB[tx] = 1.0", ("K218",)),
    ("tx = T.get_thread_binding(0)\nif tx % 2 == 0:\n    B[tx] = T.shfl_xor(A[tx], 1)", ("K224",)),
    # Layouts that nothing could follow.
    (
        "r = T.alloc_local(({n},), 'float32')\nT.annotate_layout({{r: lambda i: i}})\nT.fill(r, 1)\nB[0] = r[0]",
        ("K134",),
    ),
    (
        "r = T.alloc_reducer(({n},), 'float32')\nT.annotate_layout({{r: lambda i: i}})\n"
        "for i in T.Parallel({n}):\n    r[i] += A[i]\nT.finalize_reducer(r)\nT.copy(r, B)",
        ("K134",),
    ),
    # Numbers that do not fit, extents below zero, operands that do not go together.
    ("for i in T.Parallel({n}):\n    B[i] = T.cast(U[i] + 300, 'float32')", ("K104",)),
    ("for i in T.Parallel({n}):\n    B[i] = T.cast(U[i] // 0, 'float32')", ("K103",)),
    ("for i in T.Parallel(-{c}):\n    B[i] = A[i]", ("K119",)),
    ("for i in T.serial(-{c}):\n    B[i] = A[i]", ("K119",)),
    ("f = T.alloc_{scope}(({n}, 2), 'float32')\nT.copy(A, f)\nT.copy(f, B)", ("K203",)),
    ("B[0] = T.log('x')", ("K103",)),
)

#: Blocks have no order: programs of several.
_BLOCKS = (
    "B[0] = A[bx]",
    "B[bx // (1 + {c})] = 1.0 * bx",
    "for i in T.Parallel({n}):\n    B[i] += 1.0",
    "{alloc}T.fill(f, bx)\nT.copy(f, B)",
    "B[bx] = A[bx]\nB[bx + 1] = 1.0 * bx",
    "T.atomic_add(B[0], A[bx])\nB[1] = B[0]",
)
