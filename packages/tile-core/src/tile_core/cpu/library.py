"""A lowered function as a shared library, which is loaded without TVM (`tile_runtime.cpu.loader`)."""

from __future__ import annotations

import functools
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tile_core.abi.adapter import Built
from tile_core.abi.kernel_text import KernelText, LaunchFacts, ParamFact
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Expr, Var
from tile_core.cpu.attributes import CODED
from tile_core.cpu.build import ENTRY, build
from tile_core.cpu.isa import Isa
from tile_core.cpu.micro_tiles import tile_features
from tile_core.cpu.pipeline import on_a_device
from tile_core.cpu.processors import needed
from tile_core.errors.setup import NoToolchain
from tile_core.ir import nodes
from tile_core.ir.visit import collect, substitute
from tile_runtime.cpu.loader import ENDLESS, KIND, NEEDS, LibraryAdapter


def library_text(func: Expr, isa: Isa, symbols: Mapping[str, Var], target: str) -> KernelText:
    """Return a function as a text with a shared library.

    Parameters
    ----------
    func
        What the CPU's pipeline leaves as ``lowered``; it calls no function of this process.
    isa
        The processor to compile for.
    symbols
        The variables of the program's symbols, by name.
    target
        The target's text, for messages.

    Raises
    ------
    NoToolchain
        There is no linker.
    """
    plain, names = _plain(func, symbols)
    module = build(plain, isa, plain=True)
    coded = {int(str(i)): str(d) for i, d in (func.attrs.get(CODED) or {}).items()}
    params = tuple(_fact(n, p, coded.get(i)) for i, (n, p) in enumerate(zip(names, plain.params, strict=True)))
    facts: dict[str, bool | str] = {
        NEEDS: " ".join([*needed(isa), *tile_features(func.body)]),
        ENDLESS: bool(collect(func.body, tirx.While)),
    }
    built = Built(LibraryAdapter.name, KIND, _linked(module, target), LibraryAdapter.platform, facts)
    return KernelText(str(func.script()), LaunchFacts(ENTRY, params, (1, 1, 1), (1, 1, 1)), built=built)


def _plain(func: Expr, symbols: Mapping[str, Var]) -> tuple[Expr, list[str]]:
    """Return a function of addresses, numbers and symbols, with their names."""
    params, names, views = [], [], []
    scalars = {str(p.name): p for p in func.params if not tirx.is_buffer_var(p)}
    free = [v for v in _of_shapes(func) if not any(v.same_as(p) for p in func.params)]
    of_symbol = {v: next(name for name, var in symbols.items() if var.same_as(v)) for v in free}
    # A scalar parameter with the name of a symbol has its value.
    new = {v: nodes.cast(scalars[name], nodes.dtype_of(v)) for v, name in of_symbol.items() if name in scalars}
    free = [v for v in free if v not in new]
    for p in func.params:
        names.append(next((name for name, var in symbols.items() if var.same_as(p)), str(p.name)))
        if tirx.is_buffer_var(p):
            dtype = nodes.element_type(p)
            address = tirx.Var(p.name, ir.PointerType(ir.PrimType(dtype), "global"))
            shape, strides = ([substitute(d, new) for d in dims] for dims in (p.shape, p.ty.strides or []))
            new[p] = tirx.decl_buffer(
                shape, dtype, p.name, data=address, strides=strides, data_alignment=p.ty.data_alignment, layout=None
            )
            views.append(tirx.DeclBuffer(new[p], data=address))
            params.append(address)
        elif nodes.dtype_of(p) == "float16":  # which C functions take in several ways
            params.append(tirx.Var(p.name, "float32"))
            new[p] = nodes.cast(params[-1], "float16")
        else:
            params.append(p)
    names += [of_symbol[v] for v in free]
    body = nodes.seq([*views, substitute(func.body, new), tirx.Return(nodes.int_const(0))])
    made = tirx.PrimFunc([*params, *free], on_a_device(body), ret_type=ir.PrimType("int32"))
    return made.with_attr("tirx.noalias", True), names


def _of_shapes(func: Expr) -> list[Var]:
    """Return the variables in extents and strides of a function's tensors."""
    found: list[Var] = []
    for p in filter(tirx.is_buffer_var, func.params):
        for dim in (*p.shape, *(p.ty.strides or [])):
            found += [v for v in collect(dim, tirx.Var) if not any(v.same_as(other) for other in found)]
    return found


def _fact(name: str, param: Var, code: str | None) -> ParamFact:
    if isinstance(param.ty, ir.PointerType):
        element = getattr(param.ty.element_type, "dtype", "uint8")
        return ParamFact(name, "pointer", str(element))
    return ParamFact(name, "scalar", code or nodes.dtype_of(param))


def _linked(module: Expr, target: str) -> bytes:
    """Return a module's shared library, without names of this machine's files."""
    with tempfile.TemporaryDirectory(prefix="tile-") as folder:
        code, out = Path(folder, "kernel.o"), Path(folder, "kernel.so")
        module.write_to_file(str(code), "o")
        command = [*_linker(target), "-shared", "-Wl,-s", "-o", out.name, code.name, "-lm"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode or not out.exists():
            raise NoToolchain(target=target, reason=f"{shlex.join(command)} failed: {done.stderr.strip()[-500:]}")
        return out.read_bytes()


@functools.cache
def _linker(target: str) -> Sequence[str]:
    """Return the command of a C compiler, which links: CC, one on PATH, or ziglang."""
    if chosen := os.environ.get("CC"):
        return shlex.split(chosen)
    for name in ("cc", "gcc", "clang"):
        if found := shutil.which(name):
            return [found]
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc"]
    raise NoToolchain(target=target, reason="a library is linked by CC, cc, gcc, clang, or the package ziglang")
