# One row per line of the tables.
# ruff: noqa: E501
"""Arguments of every kind of object, in every place of every function of the language.

Each program has one call, with one argument replaced. It is refused by the catalogue at that line. Calls of tile ops
are the examples of their docstrings; the annotations say what each argument is.
"""

import ast
import inspect
import re
from functools import cache

import pytest
from pages.examples import FRAMES, example_of

from tile_core.vocabulary import NAMES, word

#: What may stand in a call, by name.
PLACEMENT = {
    "X": 'X: T.Tensor((32, 32), "float32")', "I": 'I: T.Tensor((32,), "int32")', "m": "m: T.int32", "x": "x: T.float32",
    "c": "c: T.bool", "P": "P: T.ptr",
}  # fmt: skip
SCRATCH = {
    "S": 'T.alloc_shared((32, 32), "float32")', "F": 'T.alloc_fragment((32, 32), "float32")',
    "V": 'T.alloc_fragment((32,), "float32")', "A": 'T.alloc_shared((32, 16), "float16")',
    "E": 'T.alloc_shared((32, 2), "int16")', "B": 'T.alloc_shared((32, 32), "float16")',
    "Q": 'T.alloc_shared((32, 32), "float8_e4m3fn")', "O": 'T.alloc_shared((32, 1), "float8_e8m0fnu")', "J": 'T.alloc_shared((4,), "int8")',
    "K": 'T.alloc_local((1,), "int32")', "R": 'T.alloc_reducer((32,), "float32", "sum")',
    "M": 'T.make_tensor(P, (2, 8, 8, 4), "float32")', "v": 'T.alloc_var("float32", 0)',
    "G": 'T.alloc_fragment((32,), "int32")',
}  # fmt: skip

#: Calls of functions that are not ops, as (function, arguments); an argument is (its text, what it is).
CALLS = """
finalize_reducer(R:tile)  alloc_shared((4, 4):shape, "float32":dtype, "shared":word)
alloc_fragment((4, 4):shape, "float32":dtype)  alloc_local((4,):shape, "float32":dtype)  alloc_var("float32":dtype, 0.0:scalar)
alloc_reducer((4,):shape, "float32":dtype, "max":word, "all":word)  annotate_layout({S: lambda i, j: i * 32 + j}:map)
annotate_safe_value({X: 1.0}:map)  annotate_l2_hit_ratio({X: 0.5}:map)  use_swizzle(4:int, "row":word, True:flag)
cast(x:scalar, "float16":dtype)  reinterpret(x:scalar, "int32":dtype)  exp(x:scalar)  floor(x:scalar)  isnan(x:scalar)
abs(x:scalar)  max(x:scalar, 1.0:scalar)  min(x:scalar, m:scalar)  clamp(x:scalar, 0.0:scalar, 1.0:scalar)
pow(x:scalar, 2:scalar)  if_then_else(c:condition, x:scalar, 1.0:scalar)  Select(c:condition, x:scalar, 1.0:scalar)
ceildiv(m:scalar, 2:scalar)  floordiv(m:scalar, 2:scalar)  truncmod(m:scalar, 2:scalar)  shift_left(m:scalar, 2:scalar)
bitwise_and(m:scalar, 2:scalar)  bitwise_not(m:scalar)  popcount(m:scalar)  infinity("float32":dtype)  max_value("float32":dtype)
any_of(V[0:4]:condition)  get_thread_binding(0:int)  get_block_binding(0:int)  shfl_sync(x:scalar, 0:scalar, 32:int)
shfl_down(x:scalar, 1:scalar)  ballot(c:condition)  all_sync(c:condition)  warp_reduce_sum(x:scalar)
device_assert(c:condition, "text":text)  assume(c:condition)
make_tensor(P:pointer, (4, 4):extents, "float32":dtype, (4, 1):extents)  dynamic("q":name, "int32":dtype)
Tensor((4, 4):any, "float32":dtype)  serial(0:bound, 4:bound, 1:int)  Parallel(4:bound, 4:bound)
Pipelined(0:bound, 4:bound, 2:int)  unroll(0:bound, 4:bound, 1:int)  vectorized(0:bound, 4:bound)  grid(2:bound, 3:bound)
Persistent((4, 4):domain, 2:bound, 0:bound)  Layout((4, 4):shape, lambda i, j: i * 4 + j:index_map)  const("N":name)
empty((4,):any)
"""

#: What cannot stand for each kind of argument.
WRONG = {
    "tile": ["None", "3", "'S'", "[S]", "object()", "np.zeros((2, 2))", "print", "m + 1", "S[::2]", "T.float32", "{}"],
    "buffer": ["None", "3", "'S'", "S[0:4]", "S[0, 0]", "object()", "np.zeros((2, 2))", "[S]", "m + 1", "{}", "T.float32"],
    "pointer": ["None", "3", "S", "x"],
    "scalar": ["None", "'x'", "S", "S[0:4]", "[1]", "print", "object()", "1j", "b'1'", "{}", "np.zeros(3)", "T.float32"],
    "condition": ["None", "'x'", "S[0:m, 0]", "print", "object()", "1j", "{}", "T.float32", "...", "range(3)"],
    "flag": ["None", "'yes'", "2", "-1", "S", "m", "c", "[]", "object()", "0.0"],
    "int": ["None", "1.5", "'1'", "m", "S", "[1]", "2**70", "float('nan')", "object()", "int", "np.zeros(3)", "1j"],
    "bound": ["None", "1.5", "'1'", "x", "S", "[1]", "2**70", "10**400", "float('nan')", "object()", "int", "True"],
    "extents": ["'4'", "1.5", "-1", "(4, None)", "(4, 'x')", "(4, -4)", "(4, x)", "object()", "{}", "lambda: 4"],
    "domain": ["None", "'44'", "4", "(4, None)", "(4, 1.5)", "(4, x)", "()", "object()", "{}"],
    "shape": ["None", "'44'", "1.5", "0", "-1", "(4, 0)", "(4, None)", "(4, m)", "(4, 1.5)", "2**40", "object()", "{}"],
    "dtype": ["None", "5", "'float33'", "''", "'complex64'", "np.dtype('complex64')", "S", "[]", "object()"],
    "word": ["'no such'", "''", "5", "S", "[]", "np.zeros(3)", "object()"],
    "text": ["5", "None", "S", "[]", "b'x'"],
    "name": ["5", "None", "S", "''", "'1a'", "'a b-c'", "[]"],
    "map": ["None", "5", "'S'", "[S]", "{1: 2}", "{S: 'x'}", "{S: None}", "{S: S}", "object()"],
    "index_map": ["None", "5", "'(4,4)'", "S", "lambda i: i", "lambda i, j: i / j", "lambda i, j: 'x'", "lambda i, j: 0"],
    "any": ["'4'", "(4, 'x')"],
    "function": ["None", "3", "'S'", "S", "object()", "[]", "m"],
}  # fmt: skip

#: Not wrong: the function takes them in this place.
LEGAL = {
    ("make_tensor", 3, "None"), ("make_tensor", 2, "None"), ("alloc_reducer", 3, "None"),
    ("Pipelined", 1, "None"), ("serial", 1, "None"), ("unroll", 1, "None"), ("vectorized", 1, "None"),
    ("shfl_sync", 2, "None"), ("alloc_var", 1, "None"), ("any_of", 0, "S[0:m, 0]"),
    ("Parallel", 0, "[1]"), ("grid", 0, "[1]"), ("clamp", 1, "None"), ("clamp", 2, "None"),
}  # fmt: skip

#: Functions of scalars that take tiles, element by element.
ELEMENTWISE = frozenset(
    "cast reinterpret exp floor isnan abs max min clamp pow if_then_else Select ceildiv floordiv truncmod shift_left "
    "bitwise_and bitwise_not popcount".split()
)


def table():
    """Yield (function, [(argument, kind)]) of the table."""
    depth, start = 0, 0
    for at, letter in enumerate(CALLS):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == ")" and depth == 0:
            function, _, inside = CALLS[start : at + 1].strip()[:-1].partition("(")
            parts, level, last = [], 0, 0
            for n, one in enumerate(inside + ","):
                level += (one in "([{") - (one in ")]}")
                if one == "," and level == 0 and re.search(r":\w+$", inside[last:n]):
                    parts.append(tuple(inside[last:n].strip().rsplit(":", 1)))
                    last = n + 1
            yield function.strip(), parts
            start = at + 1


def statement(function, arguments):
    call = f"T.{function}({', '.join(arguments)})"
    loops = ("serial", "Parallel", "Pipelined", "unroll", "vectorized", "grid", "Persistent")
    return f"for i in {call}:\n            pass" if function in loops else f"made = {call}"


def program(line):
    """A kernel with a statement and what it names."""
    words = set(re.findall(r"\b[A-Za-z]\b", line))
    used = {name for name in SCRATCH if name in words}
    words |= {"P"} if "M" in used else set()
    params = ", ".join(text for name, text in PLACEMENT.items() if name in words) or PLACEMENT["m"]
    made = "".join(f"        {name} = {SCRATCH[name]}\n" for name in SCRATCH if name in used)
    return f"@T.prim_func\ndef k({params}):\n    with T.Kernel(2, threads=32) as bx:\n{made}        {line}\n"


#: Annotation of a parameter of a tile op, up to its first alternative -> kind.
KINDS = {
    "Tile": "tile", "Buffer": "buffer", "Scalar": "scalar", "Index": "scalar", "bool": "flag", "int": "int", "str": "word",
    "GemmWarpPolicy": "int", "Sequence[int]": "extents", "DTypeLike": "dtype", "Callable[..., object]": "function",
}  # fmt: skip

OPS = [n for n, (module, _) in NAMES.items() if module.startswith("ops.") and not inspect.isclass(word(n))]


@cache
def op_call(name):
    """The example of an op: its lines before the call, and its arguments by the names of parameters."""
    body = ast.parse(example_of(name).line).body
    call = next(x for x in ast.walk(body[-1]) if isinstance(x, ast.Call) and ast.unparse(x.func) == f"T.{name}")
    given = {k.arg: ast.unparse(k.value) for k in call.keywords}
    bound = inspect.signature(word(name)).bind(*map(ast.unparse, call.args), **given)
    return [ast.unparse(x) for x in body[:-1]], bound.arguments


def op_statement(name, arguments):
    return f"made = T.{name}({', '.join(f'{k}={v}' for k, v in arguments.items())})"


def op_program(name, line):
    lines = ["m, x = n[0], scale[0]", "c = x > 0", *op_call(name)[0], line]
    return FRAMES["block"].format(line="\n".join("        " + x for x in "\n".join(lines).split("\n")))


def legal(parameter, bad):
    """Whether an annotation or a default value says that an argument is legal."""
    first, _, others = parameter.annotation.partition(" | ")
    if bad == "None" or parameter.name == "variant":  # variants are looked up when a target is known
        return parameter.default is None and (bad == "None" or bad.startswith("'"))
    return (bad in ("S", "S[0:4]") and "Tile" in others) or (bad[0] == "[" and f"Sequence[{first}]" in others)


def op_arguments(name):
    """Yield (parameter, what cannot stand for it)."""
    for parameter in inspect.signature(word(name)).parameters.values():
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            for bad in WRONG[KINDS[parameter.annotation.partition(" | ")[0]]]:
                if not legal(parameter, bad) and (name, parameter.name, bad) not in LEGAL:
                    yield parameter.name, bad


def wrong_arguments():
    """Yield (function, place, wrong argument, program, line) of each program."""
    for function, arguments in table():
        for at, (_, kind) in enumerate(arguments):
            for bad in WRONG[kind]:
                if function in ELEMENTWISE and kind == "scalar" and bad in ("S", "S[0:4]"):
                    continue
                if (function, at, bad) not in LEGAL:
                    line = statement(function, [bad if n == at else a for n, (a, _) in enumerate(arguments)])
                    yield function, at, bad, program(line), line
    for name in OPS:
        for at, bad in op_arguments(name):
            line = op_statement(name, {**op_call(name)[1], at: bad})
            yield name, at, bad, op_program(name, line), line


def right_calls():
    """Yield (function, program of its correct call), and of its calls with missing and unknown arguments."""
    for function, arguments in table():
        given = [a for a, _ in arguments]
        lines = [statement(function, x) for x in (given, [*given, "nonsense=1"], [])]
        yield function, [(program(line), line) for line in lines]
    for name in OPS:
        given = op_call(name)[1]
        lines = [op_statement(name, x) for x in (given, {**given, "nonsense": "1"}, {})]
        yield name, [(op_program(name, line), line) for line in lines]


RIGHT = dict(right_calls())
NO_ARGUMENTS = ("any_of", "get_thread_binding", "get_block_binding")


def test_every_op_has_an_example():
    assert [name for name in OPS if example_of(name) is None] == []


@pytest.mark.parametrize("function", sorted(RIGHT.keys() - {"const", "empty", "Tensor"}))
def test_the_calls_are_correct(function, refusals):
    text, _ = RIGHT[function][0]
    error, _ = refusals.run(text)
    assert error is None, f"{error}\n{text}"


@pytest.mark.sweep(2)
@pytest.mark.parametrize("function", sorted(RIGHT))
def test_wrong_arguments_are_refused(function, refusals):
    accepted = []
    for name, at, bad, text, line in wrong_arguments():
        if name == function and refusals.wrong(text, line.split("\n")[0], optional=True) is None:
            accepted.append(f"argument {at} = {bad}")
    assert not accepted


@pytest.mark.parametrize("function", sorted(RIGHT))
def test_missing_and_unknown_arguments_are_refused(function, refusals):
    for text, line in RIGHT[function][1 : 2 if function in NO_ARGUMENTS else 3]:
        refusals.wrong(text, line.split("\n")[0])


def test_there_are_enough():
    assert len(list(wrong_arguments())) >= 3000
