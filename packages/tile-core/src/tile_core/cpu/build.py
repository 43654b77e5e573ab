"""From a lowered plan to a function in this process: TVM's last passes, then LLVM."""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable
from typing import Any

from tile_core.compat.tvm import ir, reason_of, tirx, tvm
from tile_core.compat.types import Expr, PrimFunc
from tile_core.cpu.code_tables import looked_up
from tile_core.cpu.counters import hide_counters
from tile_core.cpu.dots import imported
from tile_core.cpu.flatten import flatten
from tile_core.cpu.floor_division import lower_floors
from tile_core.cpu.heap import use_heap
from tile_core.cpu.intrinsics import lower_intrinsics
from tile_core.cpu.isa import Isa, without
from tile_core.cpu.long_code import cut_long_code
from tile_core.cpu.micro_tiles import tile_features
from tile_core.cpu.nibble_loads import lower_nibbles
from tile_core.cpu.products import reveal_products
from tile_core.cpu.ramps import restore_ramps
from tile_core.cpu.spill import spill, spill_bindings
from tile_core.cpu.unroll import bound_unrolling, statements_of
from tile_core.cpu.vector_functions import function_texts, lower_functions
from tile_core.errors import InternalError, TileError
from tile_core.ir.visit import collect, map_expr
from tile_core.passes import wrapping
from tile_core.passes.float_rules import reveal
from tile_core.passes.scalars import PARTIAL, require_defined
from tile_runtime.compat.exits import check_thread
from tile_runtime.errors.interrupts import passed_on

ENTRY = "main"
#: Statement counts above which LLVM optimises at a lower level: its time grows superlinearly.
EFFORTS = ((8_000, 0), (2_000, 1))
#: LLVM 22 ends the process when it selects instructions for comparisons and choices of what this returns. Its passes
#: make such vectors of single numbers: only the text of the module shows them.
_FATAL = "@llvm.canonicalize.v2f32("
#: TVM's message about a module that LLVM's passes made invalid. They do where 32 values are loaded that two vectors of
#: conversions stored, the second half first; without optimisation the module stays valid.
_REFUSED = "LLVM module verification failed"
#: Forms that LLVM 22 compiles wrongly or fails on, and the instructions without which it does not: see isa.py.
_UNSOUND = (
    # Masks of bytes' signs, whose instruction LLVM deletes while it is in use.
    (
        re.compile(
            r"icmp s[lg][te] <\d+ x i8> .*, (zeroinitializer|splat \(i8 -1\))"
            r"|trunc (nuw |nsw )*<\d+ x i\d+> .* to <\d+ x i1>"
        ),
        "-avx512bw",
    ),
)


def build(func: Expr, isa: Isa, steps: list[tuple[str, float]] | None = None, *, plain: bool = False) -> Any:
    """Compile a lowered function.

    Parameters
    ----------
    func
        A tirx function of loops, loads and stores.
    isa
        The processor to compile for.
    steps
        Receives the name of each step and the seconds that it took.
    plain
        Keep the function's parameters as those of a C function, which needs nothing of TVM but the parallel launch.

    Returns
    -------
    object
        The module, whose function ``main`` takes the parameters in order.

    Raises
    ------
    InternalError
        If TVM refuses the function, which earlier passes must prevent.
    """
    module = _built(func, isa, isa.fma, steps, plain)
    text = module.inspect_source("ll") if isa.fma or isa.name == "avx512" else ""
    while off := unsound(text, isa):
        isa = without(isa, off)
        module = _built(func, isa, isa.fma, steps, plain)
        text = module.inspect_source("ll")
    if isa.fma and _FATAL in text:
        module = _built(func, isa, False, steps, plain)
    return module


def unsound(text: str, isa: Isa) -> tuple[str, ...]:
    """Return the features to disable for forms in a module's text, besides those already disabled."""
    if isa.name != "avx512":
        return ()
    return tuple(off for form, off in _UNSOUND if off not in isa.mattr and form.search(text))


def _built(func: Expr, isa: Isa, canonicalize: bool, steps: list[tuple[str, float]] | None, plain: bool) -> Any:
    isa = without(isa, (f"+{feature}" for feature in tile_features(func.body)))
    effort = _effort(statements_of(func.body))
    try:
        return _compiled(func, {**isa.target(), **effort}, isa, canonicalize, steps, plain)
    except InternalError as error:
        if effort.get("opt-level") == 0 or _REFUSED not in str(error.facts["detail"]):
            raise
        return _compiled(func, {**isa.target(), "opt-level": 0}, isa, canonicalize, steps, plain)


def _compiled(
    func: Expr, described: dict[str, Any], isa: Isa, canonicalize: bool, steps: list[tuple[str, float]] | None,
    plain: bool,
) -> Any:  # fmt: skip
    target = tvm.target.Target(described, host=described)
    try:
        with tvm.transform.PassContext(opt_level=3), target:
            func = func.with_body(imported(func.body, isa, function_texts(func.body, isa)))
            module = ir.IRModule({ENTRY: func.with_attr("target", target).with_attr("global_symbol", ENTRY)})
            llvm = tvm.get_global_func("target.build.llvm")
            for name, step in [
                *((str(p.info.name), p) for p in _passes(isa, canonicalize, plain)),
                ("LLVM", lambda m: llvm(m, target)),
            ]:
                check_thread()
                begin = time.perf_counter()
                module = step(module)
                if steps is not None:
                    steps.append((name, time.perf_counter() - begin))
            return module
    except TileError:
        raise
    except Exception as error:
        passed_on(error)
        raise InternalError(stage="code generation", detail=reason_of(error)) from error


def _effort(statements: int) -> dict[str, int]:
    """Return LLVM's optimisation level if it is not the highest."""
    return next(({"opt-level": level} for most, level in EFFORTS if statements > most), {})


def index_passes() -> list[Any]:
    """Return the passes that rewrite indices and loops, in order; tests sample each of them."""
    t = tirx.transform
    return [
        _own("flatten", flatten),
        t.VectorizeLoop(True),
        _own("restore_ramps", lambda f: f.with_body(restore_ramps(f.body))),
        _own("cut_long_code", lambda f: f.with_body(cut_long_code(f.body))),
        _own("bound_unrolling", lambda f: f.with_body(bound_unrolling(f.body))),
        t.UnrollLoop(),
        _own("lower_floors", lower_floors),
        _own("spill_bindings", lambda f: f.with_body(spill_bindings(f.body))),
    ]


def _passes(isa: Isa, canonicalize: bool, plain: bool) -> list[Any]:
    # No StmtSimplify: it folds x * 0, x - x and x + 0 of floats, which are not those constants for NaN, Inf and -0.
    # Integer arithmetic is simplified by LLVM all the same. No FlattenBuffer, which is wrong on indices, and no
    # LowerIntrin, which fails or takes minutes on some: docs/tvm.md.
    t = tirx.transform
    products = functools.partial(reveal_products, canonicalize=canonicalize)
    lookups = isa.name == "avx512" and "-avx512bw" not in isa.mattr
    return [
        *index_passes(),
        *([_own("look_up", lambda f: f.with_body(map_expr(f.body, looked_up, ir.TensorLoad)))] if lookups else []),
        _own("lower_nibbles", lambda f: f.with_body(lower_nibbles(f.body))),
        *([] if plain else [t.AnnotateEntryFunc(), t.SplitHostDevice(), t.MakePackedAPI()]),
        t.LowerTVMBuiltin(),
        *([_own("use_heap", lambda f: f.with_body(use_heap(f.body)))] if plain else []),
        _own("lower_intrinsics", _lowered),
        _own("lower_functions", lambda f: f.with_body(lower_functions(f.body, isa))),
        _own("reveal", lambda f: f.with_body(spill(wrapping.reveal(products(reveal(f.body)))))),
        _own("hide_counters", lambda f: f.with_body(hide_counters(f.body))),
        _own("require_defined", _defined),
    ]


def _defined(func: Expr) -> Expr:
    for e in collect(func.body, PARTIAL):
        require_defined(e)
    return func


def _lowered(func: Expr) -> Expr:
    """Also lower the checks of MakePackedAPI: extents such as ``m // 2`` against arrays' extents."""
    return lower_floors(func.with_body(lower_intrinsics(func.body)))


def _own(name: str, rewrite: Callable[[PrimFunc], PrimFunc]) -> Any:
    return tirx.transform.prim_func_pass(lambda f, _m, _c: rewrite(f), opt_level=0, name=name)
