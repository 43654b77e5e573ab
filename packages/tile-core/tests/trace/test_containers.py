# Kernels bind names that only the trace looks at, and call an output O.
# ruff: noqa: F841, E741
"""Python containers in blocks that are traced once."""

from collections import deque

import numpy as np
import pytest

import tile_core.language as T
from tile_core.errors.language import ChangedInBlock

CHANGES = {
    "append": ("list", lambda c, x: c.append(x)),
    "extend": ("list", lambda c, x: c.extend([x, x])),
    "store": ("list", lambda c, x: c.__setitem__(0, x)),
    "pop": ("list", lambda c, x: c.pop()),
    "insert": ("list", lambda c, x: c.insert(0, x)),
    "key": ("dict", lambda c, x: c.update(new=x)),
    "value": ("dict", lambda c, x: c.update(old=x)),
    "clear": ("dict", lambda c, x: c.clear()),
    "add": ("set", lambda c, x: c.add(7)),
    "left": ("deque", lambda c, x: c.appendleft(x)),
    "nested": ("list", lambda c, x: c[1].append(x)),
}


def held(kind):
    return {"list": [1, [2]], "dict": {"old": 1}, "set": {1}, "deque": deque([1])}[kind]


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("block", ["range", "Parallel", "if", "else", "while", "closure", "nest"])
def test_a_container_that_a_block_changes_is_refused(name, block):
    kind, change = CHANGES[name]
    outside = held(kind)

    def kernel():
        @T.prim_func
        def k(A: T.Tensor((4,), "int32"), n: T.int32):
            with T.Kernel(1) as bx:
                c = held(kind)
                if block == "range":
                    for i in range(4):
                        change(c, A[i])
                elif block == "Parallel":
                    for i in T.Parallel(4):
                        change(c, A[i])
                elif block == "if":
                    if n > 0:
                        change(c, A[0])
                elif block == "else":
                    if n > 0:
                        A[0] = 1
                    else:
                        change(c, A[0])
                elif block == "while":
                    while A[bx] > 0:
                        change(c, A[0])
                elif block == "closure":
                    for i in T.serial(n):
                        change(outside, A[i])
                else:
                    for i in range(4):
                        for j in T.static_range(2):
                            change(c, A[i + j])
                        A[i] = 1

        k.script()

    with pytest.raises(ChangedInBlock) as found:
        kernel()
    assert found.value.code == "K150"
    assert found.value.where.file == __file__
    assert found.value.facts["type"] in ("list", kind)
    assert found.value.facts["kind"] == ("branch" if block in ("if", "else") else "loop")


def test_containers_that_stay_as_they_are_or_belong_to_the_block(execute):
    @T.prim_func
    def k(A: T.Tensor((4,), "int32"), O: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            table, seen = [A[1], A[2]], {}
            for q in T.static_range(2):
                seen[q] = table[q] * 2
                table.append(A[q])
            for i in range(4):
                mine = [A[i], A[i] + 1]
                mine.append(seen[0])
                table.append(mine[0])
                dropped = table.pop()
                O[i] = mine[-1] + mine[1] + table[3]
            stack = [3, 2]
            while stack:
                O[stack.pop()] = 1
                if A[0] > 0:
                    O[0] = 2

    a, out = np.array([1, 2, 3, 4], "int32"), np.zeros(4, "int32")
    execute(k, a, out)
    assert list(out) == [2, 9, 1, 1]
