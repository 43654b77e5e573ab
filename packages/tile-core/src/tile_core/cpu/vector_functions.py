"""Functions of vectors by instructions of their own: a conversion, and tables in registers.

Until vectors exist such a function is an operator. A vector that fills a register calls a text in LLVM's language,
which ``build`` links into the module; any other number of lanes gets the expression of the processors without it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Call, Expr, Stmt, UnaryNode
from tile_core.cpu.isa import Isa
from tile_core.cpu.tile2d import vector_dtype
from tile_core.ir import nodes
from tile_core.ir.visit import collect, map_expr
from tile_core.numerics import standard_math
from tile_core.numerics.build import as_type, lanes_of
from tile_core.numerics.exprs import encode_expr
from tile_core.records import dataclass

__all__ = ["encoders", "function_texts", "lower_functions", "vector_math"]

_LANES = 16
_PREFIX = "tile_vector_"
_FLOATS, _WORDS, _CODES, _BITS = "<16 x float>", "<16 x i32>", "<16 x i16>", "<16 x i1>"


@dataclass(frozen=True)
class VectorFunction:
    """A function of one ``float32``.

    Attributes
    ----------
    name
        Of its operator and its text.
    features
        LLVM's features, all of which the text needs.
    result
        Type of its value.
    expand
        Returns the same as an expression, for any number of lanes.
    text
        A function of 16 lanes in LLVM's language.
    """

    name: str
    features: frozenset[str]
    result: str
    expand: UnaryNode
    text: str

    @property
    def operator(self) -> str:
        """Name of the operator."""
        return f"{nodes.FLOAT_PREFIX}{self.name}"

    def __call__(self, value: Expr) -> Call:
        """Return the function of a ``float32`` of any number of lanes."""
        return ir.Call(nodes.register_scalar_op(self.operator), [value], ret_ty=as_type(self.result, value))

    def is_available(self, isa: Isa) -> bool:
        """Whether a processor has the text's instructions."""
        off = {f.removeprefix("-") for f in isa.mattr if f.startswith("-")}
        return isa.name == "avx512" and self.features <= {*isa.features, "avx512bw"} - off


def encoders(isa: Isa) -> Mapping[str, UnaryNode]:
    """Return the conversions from ``float32`` that a processor has, by type of the result."""
    return {"bfloat16": _BFLOAT16} if _BFLOAT16.is_available(isa) else {}


def vector_math(isa: Isa) -> Mapping[str, UnaryNode]:
    """Return functions by operator, which levels other than ``"strict"`` prefer."""
    return {"tirx.erf": _ERF} if _ERF.is_available(isa) else {}


def lower_functions(body: Stmt, isa: Isa) -> Stmt:
    """Return the statement with calls of texts, or expressions, in place of the operators."""

    def lowered(e: Call) -> Expr:
        function = _OPERATORS.get(str(getattr(e.op, "name", "")))
        if function is None:
            return e
        if lanes_of(e) == _LANES and function.is_available(isa):
            return tirx.call_pure_extern(vector_dtype(function.result, _LANES), _PREFIX + function.name, *e.args)
        return function.expand(e.args[0])

    return map_expr(body, lowered, ir.Call)


def function_texts(body: Stmt, isa: Isa) -> list[str]:
    """Return the texts of the functions that a statement calls."""
    names = {str(getattr(c.op, "name", "")) for c in collect(body, ir.Call)}
    return [f.text for name, f in _OPERATORS.items() if name in names and f.is_available(isa)]


def _function(name: str, result: str, lines: Iterator[str], *declared: str) -> str:
    body = "\n".join(f"  {line}" if not line.endswith(":") else line for line in lines)
    head = f"define linkonce_odr {result} @{_PREFIX}{name}({_FLOATS} %x) alwaysinline nounwind memory(none) {{"
    return "\n".join([*(f"declare {line}" for line in declared), head, body, "}"]) + "\n"


def _bfloat16() -> Iterator[str]:
    """Yield the conversion by one instruction; subnormal numbers, which it flushes, by integers."""
    yield f"%c = call <16 x bfloat> @llvm.x86.avx512bf16.cvtneps2bf16.512({_FLOATS} %x)"
    yield f"%fast = bitcast <16 x bfloat> %c to {_CODES}"
    # One test is enough where there are neither zeros nor subnormal numbers.
    yield f"%b = bitcast {_FLOATS} %x to {_WORDS}"
    yield f"%e = and {_WORDS} %b, splat (i32 2139095040)"
    yield f"%least = icmp eq {_WORDS} %e, zeroinitializer"
    yield from _if_any("least", "zeros")
    yield f"%m = and {_WORDS} %b, splat (i32 2147483647)"
    yield f"%some = icmp ne {_WORDS} %m, zeroinitializer"
    yield f"%tiny = select {_BITS} %least, {_BITS} %some, {_BITS} zeroinitializer"
    yield from _if_any("tiny", "slow")
    yield f"%h = lshr {_WORDS} %b, splat (i32 16)"
    yield f"%odd = and {_WORDS} %h, splat (i32 1)"
    yield f"%r = add {_WORDS} %b, splat (i32 32767)"
    yield f"%s = add {_WORDS} %r, %odd"
    yield f"%t = lshr {_WORDS} %s, splat (i32 16)"
    yield f"%w = trunc {_WORDS} %t to {_CODES}"
    yield f"%mixed = select {_BITS} %tiny, {_CODES} %w, {_CODES} %fast"
    yield "br label %end"
    yield "end:"
    yield f"%y = phi {_CODES} [ %fast, %0 ], [ %fast, %zeros ], [ %mixed, %slow ]"
    yield f"ret {_CODES} %y"


def _if_any(lanes: str, block: str) -> Iterator[str]:
    """Yield the beginning of a block for vectors with a true lane, which are rare."""
    yield f"%mask_{lanes} = bitcast {_BITS} %{lanes} to i16"
    yield f"%any_{lanes} = icmp ne i16 %mask_{lanes}, 0"
    yield f"%rare_{lanes} = call i1 @llvm.expect.i1(i1 %any_{lanes}, i1 false)"
    yield f"br i1 %rare_{lanes}, label %{block}, label %end"
    yield f"{block}:"


def _erf() -> Iterator[str]:
    """Yield the error function by polynomials on intervals of 1/4; tables hold their coefficients.

    Up to 5/8 it is a + a p(a^2), above erf(c) + t p(t) from the middle c = a - t of an interval. Error: 1.1 ulp.
    """
    yield f"%b = bitcast {_FLOATS} %x to {_WORDS}"
    yield f"%sign = and {_WORDS} %b, splat (i32 -2147483648)"
    yield f"%size = and {_WORDS} %b, splat (i32 2147483647)"
    yield f"%v = bitcast {_WORDS} %size to {_FLOATS}"
    yield f"%over = fcmp ogt {_FLOATS} %v, {_splat(_ERF_MOST)}"
    yield f"%a = select {_BITS} %over, {_FLOATS} {_splat(_ERF_MOST)}, {_FLOATS} %v"
    # The sum has a unit of 1/4, and the number of the interval in its low bits.
    yield f"%j = fadd {_FLOATS} %a, {_splat(1.5 * 2.0**21)}"
    yield f"%n = fsub {_FLOATS} %j, {_splat(1.5 * 2.0**21)}"
    yield f"%t = fsub {_FLOATS} %a, %n"
    yield f"%i = bitcast {_FLOATS} %j to {_WORDS}"
    yield f"%low = fcmp ole {_FLOATS} %a, {_splat(0.625)}"
    yield f"%z = fmul {_FLOATS} %a, %a"
    yield f"%u = select {_BITS} %low, {_FLOATS} %z, {_FLOATS} %t"
    yield f"%f = select {_BITS} %low, {_FLOATS} %a, {_FLOATS} %t"
    for k, row in enumerate(_ERF_TABLES):
        yield f"%k{k} = call {_FLOATS} @llvm.x86.avx512.permvar.sf.512({_FLOATS} {_vector(row)}, {_WORDS} %i)"
    last = len(_ERF_TABLES) - 1
    total = f"%k{last}"
    for k in reversed(range(1, last)):
        yield f"%p{k} = call {_FLOATS} @llvm.fma.v16f32({_FLOATS} {total}, {_FLOATS} %u, {_FLOATS} %k{k})"
        total = f"%p{k}"
    yield f"%base = select {_BITS} %low, {_FLOATS} %a, {_FLOATS} %k0"
    yield f"%r = call {_FLOATS} @llvm.fma.v16f32({_FLOATS} {total}, {_FLOATS} %f, {_FLOATS} %base)"
    yield f"%rb = bitcast {_FLOATS} %r to {_WORDS}"
    yield f"%y = or {_WORDS} %rb, %sign"
    yield f"%q = bitcast {_WORDS} %y to {_FLOATS}"
    yield f"ret {_FLOATS} %q"


def _hex(value: float) -> str:
    (single,) = struct.unpack("<f", struct.pack("<f", value))
    return f"float 0x{struct.unpack('<Q', struct.pack('<d', single))[0]:016X}"


def _splat(value: float) -> str:
    return f"splat ({_hex(value)})"


def _vector(row: list[float]) -> str:
    return f"<{', '.join(map(_hex, row))}>"


#: The end of the last interval, where the result is 1.
_ERF_MOST = 3.875 - 2.0**-22
#: erf(c) of the middles 0, 1/4 … of intervals, then the coefficients from the lowest degree on: of
#: (erf(c + t) - erf(c)) / t in t, error of erf below 2^-27; in the first three intervals of erf(a) / a - 1 in a^2,
#: below 2^-26. The first of the last interval is 2^-22 more, for 1 at its end.
_ERF_TABLES = [
    [0.0, 0.0, 0.0, 0.711155653, 0.842700779, 0.92290014, 0.966105163, 0.986671686, 0.995322287, 0.998537302,
     0.999593019, 0.999899387, 0.999977887, 0.999995708, 0.999999285, 0.999999881],
    [0.128379151, 0.128379151, 0.128379151, 0.642931044, 0.415107489, 0.236521125, 0.118930288, 0.0527749956,
     0.0206669848, 0.00714231888, 0.00217828434, 0.000586277223, 0.000139253054, 2.91890246e-05, 5.39942675e-06,
     1.05736638e-06],
    [-0.37612468, -0.37612468, -0.37612468, -0.482196242, -0.415107846, -0.295653015, -0.17839691, -0.0923569277,
     -0.0413340069, -0.0160699971, -0.00544549758, -0.00161213591, -0.000417702657, -9.48441084e-05, -1.88920112e-05,
     -3.30388366e-06],
    [0.112802945, 0.112802945, 0.112802945, 0.0267873947, 0.138368011, 0.167535514, 0.138752356, 0.0901577473,
     0.0482232235, 0.0217246059, 0.00835004821, 0.00276033953, 0.000789070793, 0.000195796703, 4.22910489e-05,
     7.96836503e-06],
    [-0.0266122073, -0.0266122073, -0.0266122073, 0.150162816, 0.0692732111, -0.00574509893, -0.0442221165,
     -0.0479269288, -0.0344355218, -0.0191398039, -0.00867695361, -0.00329051027, -0.00105885381, -0.000291741308,
     -6.92467293e-05, -1.42210683e-05],
    [0.00445928797, 0.00445928797, 0.00445928797, -0.0528838746, -0.0688891709, -0.0471099503, -0.0149584031,
     0.00650629913, 0.0130230822, 0.0106444722, 0.00612786599, 0.00276840455, 0.00102417986, 0.000317125261,
     8.32575388e-05, 1.869072e-05],
]  # fmt: skip
_BFLOAT16 = VectorFunction(
    "bfloat16", frozenset({"avx512bf16", "avx512bw"}), "uint16", lambda x: encode_expr(x, "bfloat16"),
    _function("bfloat16", _CODES, _bfloat16(), f"<16 x bfloat> @llvm.x86.avx512bf16.cvtneps2bf16.512({_FLOATS})",
              "i1 @llvm.expect.i1(i1, i1)"),
)  # fmt: skip
_ERF = VectorFunction(
    "erf", frozenset(), "float32", standard_math.erf,
    _function(
        "erf", _FLOATS, _erf(), f"{_FLOATS} @llvm.x86.avx512.permvar.sf.512({_FLOATS}, {_WORDS})",
        f"{_FLOATS} @llvm.fma.v16f32({_FLOATS}, {_FLOATS}, {_FLOATS})",
    ),
)  # fmt: skip
_OPERATORS: Mapping[str, VectorFunction] = {f.operator: f for f in (_BFLOAT16, _ERF)}
