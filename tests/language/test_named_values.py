"""Named values are computed once: texts grow with uses, not with values."""

from __future__ import annotations

import ast
from collections import Counter

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, settings

import tile_core as tile
import tile_core.language as T
from tile_core.cpu import pipeline
from tile_core.emit import tail
from tile_core.testing.case import Part, Unit, output
from tile_core.testing.run import load
from tile_core.testing.strategies.names import BOOLS, CONDITIONS, INTEGERS, ROWS, USES, names, parameters, use
from tile_core.trace import assign

TARGETS = ("cpu", "cuda:sm_90a", "metal", "rocm:gfx942")
#: Of the text of the same program with variables.
_MORE = 1.3
#: Of the text of one use of a value read from memory: a name may stay a sum of multiples.
_SUM = 1.45


def squares(n, kept):
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                x = A[i]
                for _ in T.static_range(n):
                    x = T.alloc_var("float32", init=x * x + 0.25) if kept else x * x + 0.25
                B[i] = x

    return k


def integers(n, kept):
    @T.prim_func
    def k(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32"), v: T.int32):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                x = i + v
                for _ in T.static_range(n):
                    x = T.alloc_var("int32", init=x * x + 3) if kept else x * x + 3
                B[i] = A[x % 64]

    return k


def stencil(n, kept):
    h, w = T.dynamic("h, w")

    @T.prim_func
    def k(A: T.Tensor((h, w), "float32"), B: T.Tensor((h, w), "float32")):
        with T.Kernel(T.ceildiv(h * w, 128), threads=128) as bx:
            for i in T.Parallel(128):
                y, x = (bx * 128 + i) // w, (bx * 128 + i) % w
                if kept:
                    y, x = T.alloc_var("int32", init=y), T.alloc_var("int32", init=x)
                total = 0.0
                for a in T.static_range(n):
                    for b in T.static_range(n):
                        total = total + A[y + a, x + b]
                if y < h:
                    B[y, x] = total

    return k


def size(program, target):
    with tile.disable_cache():
        return len(tile.compile(program, target).source)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("make", "n"),
    [(squares, 4), (squares, 12), (squares, 40), (integers, 4), (integers, 40), (stencil, 3), (stencil, 7)],
)
def test_names_cost_no_more_than_variables(make, n, target):
    assert size(make(n, False), target) < _MORE * size(make(n, True), target)


def growth(value, forms, target):
    """Return the characters of one use of a name, where ``value`` is its value."""
    sizes = []
    for count in (len(forms), 5 * len(forms)):
        lines = ["p = bx * 8 + i", f"t = {value}"]
        lines += [x for k in range(1, count + 1) for x in use(list(forms)[k % len(forms)], "t", k % 24 + 1)]
        body = "\n".join(["for i in T.Parallel(8):", *("    " + x for x in lines)])
        params = (*parameters(), output("B", "int32", ROWS, 16))
        unit = Unit("names", "growth", params, "", {"": Part((), body, lambda d: {})}, grid="2", symbols=("h", "w"))
        sizes.append(size(load(unit.text()), target))
    return (sizes[1] - sizes[0]) / (4 * len(forms))


FORMS = [(form, USES) for form in INTEGERS] + [(form, CONDITIONS) for form in BOOLS]


@pytest.mark.sweep(8)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("form", "uses"), FORMS)
def test_texts_grow_by_the_uses_of_a_name(form, uses, target):
    value = form.format(a="(p + v)", b="i")
    assert growth(value, uses, target) < _SUM * growth("A[p] > 3" if uses is CONDITIONS else "A[p]", uses, target)


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(
    ("mend", "form"),
    [((assign, "_without_opaque"), INTEGERS[0]), ((tail, "share"), INTEGERS[5])],
)
def test_growth_is_found(monkeypatch, mend, form):
    test_texts_grow_by_the_uses_of_a_name(form, USES, "cuda:sm_90a")
    monkeypatch.setattr(*mend, lambda *given, **more: given[-1])
    monkeypatch.setattr(pipeline, "share", lambda body, **more: body)
    with pytest.raises(AssertionError):
        test_texts_grow_by_the_uses_of_a_name(form, USES, "cuda:sm_90a")


def test_the_fuzzer_uses_names_many_times_everywhere():
    found: Counter[str] = Counter()

    @hypothesis.seed(3)
    @settings(
        max_examples=60, deadline=None, database=None, phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @hypothesis.given(names())
    def draw(unit):
        text = unit.text()
        loop = next((x for x in ("Parallel", "serial", "vectorized", "unroll") if f"T.{x}(" in unit.parts[""].body), "")
        for kind, count in _uses(ast.parse(text)).items():
            found[kind] += 1
            found[f"{kind}, many"] += count > 3
            found[f"{kind} in {loop}"] += 1

    draw()
    for kind in ("index", "guard", "value"):
        assert found[kind] > 10, (kind, found)
        for loop in ("Parallel", "serial", "vectorized"):
            assert found[f"{kind} in {loop}"], (kind, loop)
    assert found["bound"] > 10
    assert found["index, many"] > 10
    assert found["value, many"]


def _uses(tree):
    """Count the places where a kernel uses the names that it gives to values."""
    found: Counter[str] = Counter()
    named = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    named = {n for n in named if n == "ok" or (n[0] == "t" and n[1:].isdigit())}

    def count(kind, *parts):
        found[kind] += sum(isinstance(n, ast.Name) and n.id in named for p in parts for n in ast.walk(p))

    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript):
            count("index", node.slice)
        elif isinstance(node, ast.If):
            count("guard", node.test)
        elif isinstance(node, ast.For):
            count("bound", node.iter)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            count("value", node.value)
    return +found
