"""From a lowered plan to a function in this process: TVM's last passes, then LLVM."""

from __future__ import annotations

from typing import Any

from tile_core.compat.tvm import ir, reason_of, tirx, tvm
from tile_core.cpu.isa import Isa
from tile_core.cpu.ramps import restore_ramps
from tile_core.cpu.spill import spill
from tile_core.errors import InternalError
from tile_core.passes import wrapping
from tile_core.passes.float_rules import reveal

ENTRY = "main"


def build(func: Any, isa: Isa) -> Any:
    """Compile a lowered function.

    Parameters
    ----------
    func
        A tirx function of loops, loads and stores.
    isa
        The processor to compile for.

    Returns
    -------
    object
        The module, whose function ``main`` takes the parameters in order.

    Raises
    ------
    InternalError
        If TVM refuses the function: the passes before promise that it does not.
    """
    target = tvm.target.Target(isa.target(), host=isa.target())
    try:
        with tvm.transform.PassContext(opt_level=3), target:
            module = ir.IRModule({ENTRY: func.with_attr("target", target).with_attr("global_symbol", ENTRY)})
            module = ir.transform.Sequential(_passes())(module)
            return tvm.get_global_func("target.build.llvm")(module, target)
    except Exception as error:
        raise InternalError(stage="code generation", detail=reason_of(error)) from error


def _passes() -> list[Any]:
    # No StmtSimplify: it folds x * 0, x - x and x + 0 of floats, which are not those constants for NaN, Inf and -0.
    # Integer arithmetic is simplified by LLVM all the same.
    t = tirx.transform
    return [
        t.FlattenBuffer(),
        t.VectorizeLoop(True),
        t.prim_func_pass(lambda f, _m, _c: f.with_body(restore_ramps(f.body)), opt_level=0, name="restore_ramps"),
        t.UnrollLoop(),
        t.AnnotateEntryFunc(),
        t.SplitHostDevice(),
        t.MakePackedAPI(),
        t.LowerTVMBuiltin(),
        t.LowerIntrin(),
        t.prim_func_pass(
            lambda f, _m, _c: f.with_body(spill(wrapping.reveal(reveal(f.body)))), opt_level=0, name="reveal"
        ),
    ]
