"""Producer warps for loops of several products and dynamic sizes: conditions, reasons, results."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from zoo.case import example, from_example
from zoo.launch import lowered as lowered_unit
from zoo.table import F16, NT, gemm

import tile_core as tile
import tile_core.language as T
from tile_core.compiler import lower
from tile_core.errors import TileError
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_core.reports import report_json
from tile_core.testing.run import load
from tile_core.testing.strategies import STRATEGIES
from tile_core.testing.tables import products

from ..emit.nvrtc import assemble
from .test_overlap import TARGET, attention, check, is_right

pytestmark = pytest.mark.sweep(6)

ALWAYS = {"wgmma": "always", "overlap": "always", "tma": "always", "persistent": "always", "numerics": "fast"}
_COPIER = re.compile(r"const int slot_ahead = ")


def copies(source: str) -> bool:
    """Whether a producer warp copies, without persistent blocks."""
    return "_free" in source and bool(_COPIER.search(source)) and "const int worker" not in source


#: How iterations of attention are executed: threads, storage of the weights, options.
WAYS: dict[str, tuple[int, str, dict[str, Any]]] = {
    "turns": (256, "fragment", {}),
    "one group": (128, "fragment", {}),
    "trips apart": (256, "fragment", {"overlap": "never"}),
    "weights in shared memory": (128, "shared", {}),
    "registers of the option": (256, "fragment", {"max_registers": 128}),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stages", [2, 3])
def test_any_trip_count(stages: int, way: str) -> None:
    threads, held, options = WAYS[way]
    program = attention(T.dynamic("keys"), stages=stages, threads=threads, held=held)
    kernel = tile.compile(program, TARGET, runtime="emulator", options={**ALWAYS, **options})
    # Blocks of a loop whose products complete in their own iteration are persistent.
    persistent = "persistent blocks process" in str(kernel.explain())
    assert persistent == (way == "trips apart")
    assert persistent or copies(kernel.source)
    assert "_free" in kernel.source
    assert ("k_turn" in kernel.source) == (way in ("turns", "registers of the option"))
    moves = threads > 128 and "max_registers" not in options
    number = 72 if persistent else 40  # threads of persistent blocks that compute bounds keep more
    assert (f"setmaxnreg_dec_sync_aligned_u32_{number}();" in kernel.source) == moves
    for keys in (0, 1, 32, 33, 77, 129, 200):
        check(kernel, keys, 64, threads // 2)


@pytest.mark.parametrize("causal", [False, True])
def test_the_example(causal: bool) -> None:
    """Four dimensions, several heads, trip counts by block, keys beyond the last."""
    case = from_example("flash_attention", 1, 2, 77, 133, 40, causal)()
    kernel = tile.compile(case.program, TARGET, runtime="emulator", options={**ALWAYS, "numerics": "standard"})
    args = [a.copy() for a in case.args]
    kernel(*args)
    assert all(w.holds(args[w.index]) for w in case.wanted)
    # Rows of 80 bytes have no swizzle for a product: copies are unswizzled then, or in chunks.
    case = from_example("flash_attention", 1, 2, 100, 200, 64, causal)()
    kernel = tile.compile(case.program, TARGET, runtime="emulator", options={**ALWAYS, "numerics": "standard"})
    args = [a.copy() for a in case.args]
    kernel(*args)
    assert copies(kernel.source)
    assert all(w.holds(args[w.index]) for w in case.wanted)


DYNAMIC = {
    "one group": ((67, 72, 56), {"block": (64, 64, 32)}),
    "two groups": ((260, 136, 200), {"block": (128, 64, 32), "threads": 256, "stages": 3}),
    "one trip": ((65, 72, 8), {"block": (64, 64, 32)}),
    "four stages": ((64, 64, 328), {"block": (64, 64, 32), "stages": 4, "trans": NT}),
}


@pytest.mark.parametrize("name", DYNAMIC)
def test_sizes_known_at_run_time(name: str) -> None:
    sizes, how = DYNAMIC[name]
    case = gemm("dynamic", *sizes, F16, dynamic=True, **how).make()
    kernel = tile.compile(case.program, TARGET, runtime="emulator", options=ALWAYS)
    args = [a.copy() for a in case.args]
    kernel(*args)
    assert copies(kernel.source)
    assert all(w.holds(args[w.index]) for w in case.wanted)


@pytest.mark.sweep(1)
def test_the_default_has_one_where_iterations_of_two_warpgroups_overlap() -> None:
    wide, narrow = attention(500, 64, 192, 2, 256), attention(500, 64, 64, 2, 128)
    texts = {o: [tile.compile(p, TARGET, options={"persistent": o}).source for p in (wide, narrow)] for o in _DEFAULTS}
    assert copies(texts["auto"][0])
    assert texts["auto"][1] == texts["never"][1]
    reason = "a producer warp without persistence is faster only where two warpgroups overlap iterations"
    assert reason in _said(narrow, {"persistent": "auto"})


#: Heads and tiles of attention's gradients, further options, and why their blocks have no producer warp by default.
GRADIENTS: dict[str, tuple[tuple[int, int, int, int], dict[str, Any], str]] = {
    "registers suffice": ((128, 64, 128, 256), {}, ""),
    "other tiles": ((64, 96, 128, 256), {}, ""),
    "too many registers": ((64, 128, 128, 256), {}, "its consumers need about 248 of 232 registers"),
    "two blocks": ((64, 32, 128, 256), {}, "two blocks of about 128 registers a thread run beside each other"),
    "registers of the option": ((128, 64, 128, 256), {"max_registers": 224}, "the option max_registers gives all"),
    "one warpgroup": ((64, 64, 64, 128), {}, "compute more than 2 products in each"),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_the_default_of_loops_of_five_products_depends_on_registers(name: str) -> None:
    (dim, *tiles), options, reason = GRADIENTS[name]
    program = example("attention_backward").backward(4, 2, 4096, 4096, dim, True, "float16", *tiles)
    found = report_json(program, TARGET, options=options)
    said = str(found["block"]["loops"])
    assert ("a producer warp issues its copies" in said) == (not reason)
    assert reason in said
    if not reason:
        assert not found["warnings"]  # nothing spills


@pytest.mark.parametrize("sizes", [(68, 75, False), (132, 133, True), (40, 300, True), (200, 7, False)])
def test_gradients_have_a_producer_warp_by_default(sizes: tuple[int, int, bool]) -> None:
    queries, keys, causal = sizes
    module, dim = example("attention_backward"), 96
    rng = np.random.default_rng()
    q, k, v, g = (rng.standard_normal((1, 1, n, dim)).astype("float16") for n in (queries, keys, keys, queries))
    out, logs, *wanted = module.reference(q, k, v, g, causal)
    products = (out * g.astype("float64")).sum(-1).astype("float32")
    program = module.backward(1, 1, queries, keys, dim, causal, "float16", 64, 128, 256)
    kernel = tile.compile(program, TARGET, runtime="emulator")
    assert copies(kernel.source)
    found = [np.zeros(q.shape, "float32"), np.full(k.shape, np.nan, "float16"), np.full(k.shape, np.nan, "float16")]
    kernel(q, k, v, g, logs.astype("float32"), products, *found)
    for got, want in zip(found, wanted, strict=True):
        assert np.max(np.abs(got - want) / (1 + np.abs(want))) <= 2.0**-7


_DEFAULTS = ("auto", "never")


def _said(program: Any, options: dict[str, Any]) -> str:
    return str(report_json(program, TARGET, options={**ALWAYS, **options})["block"]["loops"])


def taller(threads: int) -> Any:
    return attention(500, 64, 64, 2, threads)


#: Why a block copies for itself, and the nearest program or option for which another thread does.
RULES: dict[str, tuple[Any, dict[str, Any], str, Any, dict[str, Any]]] = {
    "the option": (
        taller(256), {"persistent": "never"}, 'the option persistent is "never"', taller(256), {"persistent": 2},
    ),
    "threads": (taller(384), {}, "its block has 384 threads", taller(256), {}),
    "no boxes": (taller(256), {"tma": "never"}, "its copies do not complete on transaction barriers", taller(256), {}),
    "no stages": (attention(500, stages=1), {}, "num_stages is 1", attention(500, stages=2), {}),
    "no product that lasts": (taller(256), {"wgmma": "never"}, "", taller(256), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_each_rule_has_two_sides(name: str) -> None:
    program, options, reason, nearest, others = RULES[name]
    said = [_said(program, options), _said(nearest, others)]
    assert "a producer warp issues its copies" not in said[0]
    assert "a producer warp issues its copies" in said[1]
    assert reason in said[0] or reason in str(tile.explain(program, TARGET, options={**ALWAYS, **options}))


def test_the_report_shows_both_schedules() -> None:
    said = " ".join(str(tile.explain(taller(256), TARGET, options=ALWAYS)).split())
    assert "the producer, each iteration: wait for k_free, 1 phase earlier; expect 8192 bytes at k_arrived" in said
    assert "arrive at k_free, one a warp; arrive at k_free_1 of iteration -1, one a warp" in said
    assert "group 1, before: arrive at k_turn, one a thread" in said


@pytest.mark.parametrize("threads", [128, 256])
def test_the_assembler_keeps_products_in_flight_and_registers(threads: int) -> None:
    program = attention(500, 128, 128 if threads == 256 else 64, 2, threads)
    kernel = tile.compile(program, TARGET, options=ALWAYS)
    assert copies(kernel.source)
    assert "(C7" not in assemble(kernel.source, "sm_90a")
    assert not report_json(program, TARGET, options=ALWAYS)["warnings"]


@pytest.fixture(scope="module")
def lowered() -> Any:
    program = attention(100, 48, threads=256)
    return lower(program, make_context(TARGET, ALWAYS), installed()).lowered


@pytest.mark.sweep(0.25)
def test_whenever_copies_and_products_complete(lowered: Any) -> None:
    assert is_right(lowered.text, lowered, 128)


_FREED = r"if \(\(number & 31\) == 0\) \{\n *mbarrier_arrive_shared_cta_b64\(&k_free%s\[[^;]*;\n *\}"
_K, _V = _FREED % "", _FREED % "_1"
MISTAKES = {
    "no wait for a free slot of K": (r"\n *mbarrier_wait_parity\(&k_free\[slot_ahead\][^;]*;", "", 0),
    "no wait for a free slot of V": (r"\n *mbarrier_wait_parity\(&k_free_1\[slot_ahead\][^;]*;", "", 0),
    "the other parity": (r"(&k_free\[slot_ahead\], )([^;]*)\);", r"\1(\2) ^ 1);", 0),
    "K is never free": (_K, "", 0),
    "V is never free": (_V, "", 0),
    "V is free when K is": (rf"({_K})(\s*){_V}", r"\1\2\1", 0),
    "every lane says so": (r"if \(\(number & 31\) == 0\)", "if (true)", 0),
    "fewer say so": (r"(mbarrier_init_\w+\(&k_free\[0\], )8", r"\g<1>4", 0),
    "every thread copies": (r"if \(beside == 0\)", "if (beside >= 0)", 0),
    "a trip is not copied": (r"k_ahead = 0; k_ahead <", "k_ahead = 0; k_ahead + 1 <", 0),
    "another slot": (r"(const int slot_ahead = )([^;]*);", r"\1(\2) ^ 1;", 0),
    "the first turn is not given": (r"mbarrier_arrive_shared_cta_b64\(&k_turn\[0\]\);", "", 1),
}  # fmt: skip


@pytest.mark.sweep(8)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_in_the_text_are_found(mistake: str, lowered: Any) -> None:
    pattern, new, count = MISTAKES[mistake]
    wrong, changed = re.subn(pattern, new, lowered.text, count=count)
    assert changed
    assert not is_right(wrong, lowered, 128)


def _producer(unit: Any, options: dict[str, Any] = ALWAYS) -> bool:
    made = lowered_unit(load(unit.text()), make_context(TARGET, options))
    return copies(made.text)


@pytest.mark.sweep(1)
def test_the_kit_reaches_it() -> None:
    units = [u for u in products.units() if "chained-loop" in u.name]
    assert sum(map(_producer, units)) >= 3


@pytest.mark.parametrize("options", [ALWAYS, {}], ids=["always", "default"])
@pytest.mark.parametrize("strategy", ["product-loops"])
def test_the_fuzzer_reaches_it(strategy: str, options: dict[str, Any]) -> None:
    found: list[bool] = []

    @hypothesis.seed(1)
    @settings(max_examples=20 if options else 60, deadline=None, database=None, phases=(Phase.generate,),
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @hypothesis.given(STRATEGIES[strategy][0])
    def draw(unit: Any) -> None:
        with contextlib.suppress(TileError):
            found.append(_producer(unit, options))

    draw()
    assert sum(found) >= 2
    assert np.any(found)
