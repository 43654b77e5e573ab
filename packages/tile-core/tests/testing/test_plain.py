"""The plain-Python oracle agrees with the suite's expected results."""

from __future__ import annotations

import numpy as np
import pytest

from tile_core.dtypes import DTYPES
from tile_core.testing.case import Unit, output, scalar, tensor
from tile_core.testing.data import different, stored
from tile_core.testing.plain import run
from tile_core.testing.plain.numbers import Illegal, Number
from tile_core.testing.plain.threads import Deadlock
from tile_core.testing.tables import control, fills, launches, scalars, threads, views, whole

#: Barriers that the language inserts between thread statements: the oracle runs only explicit ones.
_IMPLIED = ("#2556-branch", "#2612")


def _units():
    every = [u for table in (control, fills, launches, scalars, threads, views, whole) for u in table.units()]
    stated = [u for u in every if any(part.want is not None for part in u.parts.values())]
    return [u for u in stated if not u.illegal and not u.name.startswith(_IMPLIED)][::3]


@pytest.mark.sweep(1)
@pytest.mark.parametrize("unit", _units(), ids=lambda u: f"{u.op}/{u.name}")
def test_a_unit_of_the_kit(unit):
    for case in unit.cases():
        part = unit.parts[case.part]
        if part.want is None:
            continue
        params = [*unit.params, *part.params]
        data = unit.launches[case.launch].data(np.random.default_rng(1))
        if sum(getattr(x, "size", 1) for x in data.values()) > 4000:
            continue  # element by element in Python: seconds
        with np.errstate(all="ignore"):
            want = part.want({**data, "#lanes": 32})
            found = run(unit.text([case.part]), params, data)
        if not isinstance(want, dict):
            want = {next(p for p in (*part.params, *unit.params) if p.out).name: want}
        for p in params:
            if p.name in want:
                array = stored(found[p.name], p.dtype)
                if (unit.name, p.dtype) == ("#2682-float32-choices", "uint32"):
                    array = _without_payloads(array, np.asarray(want[p.name]))
                if unit.op == "view":
                    array = _without_bits_of_nan(array, np.asarray(want[p.name]), p.dtype)
                assert different(array, want[p.name], p.dtype, part.tolerance) == "", case.id


def _without_payloads(found, want):
    """Replace bits of NaN by those expected: floats of Python keep no signaling NaN."""
    both = np.isnan(found.view("float32")) & np.isnan(want.astype("uint32").view("float32").reshape(found.shape))
    return np.where(both, want.reshape(found.shape), found).astype("uint32")


def _without_bits_of_nan(found, want, dtype):
    """Replace elements by those expected where only bits of NaN differ, of any float whose bits they are."""
    kind = DTYPES[dtype].numpy()
    pair = [np.ascontiguousarray(np.asarray(x).reshape(found.shape).astype(kind)) for x in (found, want)]
    same = np.zeros(found.shape, bool)
    for part in ("float64", "float32", "float16", "bfloat16"):
        size = DTYPES[part].bits // 8
        if kind.itemsize % size == 0 and kind.itemsize >= size:
            a, b = (x.reshape(*x.shape, 1).view(f"uint{8 * size}") for x in pair)
            with np.errstate(invalid="ignore"):
                both = np.isnan(a.view(DTYPES[part].numpy())) & np.isnan(b.view(DTYPES[part].numpy()))
            same |= ((a == b) | both).all(axis=-1)
    return np.where(same, *pair[::-1]).astype(found.dtype)


def _text(params, body, threads=32):
    return Unit("x", "x", tuple(params), body, grid="1", threads=threads).text()


def test_variables_are_boxes_and_loops_count_in_their_type():
    params = [scalar("n"), output("B", "int32", 2)]
    body = "c = T.alloc_var('int8', init=100)\nfor i in T.serial(n):\n    c += i\np = c\nB[0] = p\nB[1], c = c + 1, 0"
    found = run(_text(params, body), params, {"n": 10, "B": np.zeros(2, np.int32)})
    assert found["B"].tolist() == [100 + 45 - 256, 100 + 45 - 256 + 1]


def test_threads_meet_at_barriers():
    params = [tensor("A", "int32", 64), output("B", "int32", 64)]
    body = "t = T.get_thread_binding(0)\ns = T.alloc_shared((64,), 'int32')\ns[t] = A[t]\nT.sync_threads()\nB[t] = s[63 - t]"
    a = np.arange(64, dtype=np.int32)
    assert run(_text(params, body, 64), params, {"A": a})["B"].tolist() == a[::-1].tolist()
    uneven = "t = T.get_thread_binding(0)\nif t < 3:\n    T.sync_threads()\nelse:\n    T.sync_warp()\nB[t] = 1"
    with pytest.raises(Deadlock):
        run(_text(params, uneven, 64), params, {"A": a})


def test_what_the_language_refuses_is_no_number():
    with pytest.raises(Illegal):
        Number(3, "uint8") + 300
    with pytest.raises(Illegal):
        Number(3, "int32") // 0
    assert (Number(-(2**31), "int32") // -1).value == -(2**31)
    assert (Number(-7, "int32") % Number(4, "int64")).dtype == "int64"


def test_running_maxima_propagate_nan_where_asked():
    params = [tensor("A", "float32", 4), output("B", "float32", 4)]
    a = np.array([1, np.nan, 3, 2], np.float32)
    for nan, want in ((False, [1, 1, 3, 3]), (True, [1, np.nan, np.nan, np.nan])):
        found = run(_text(params, f"T.cummax(A, B, nan_propagate={nan})"), params, {"A": a})
        np.testing.assert_array_equal(found["B"], want)
