# Kernels bind names that only the trace looks at, and call an output O.
# ruff: noqa: F841, E741, B015
"""Assignment: when things are computed, variables, scopes, rebinding."""

import numpy as np
import pytest

import tile_core.language as T
from tile_core.errors.language import (
    BadBreak,
    BadStore,
    NoEffect,
    ReboundInBranch,
    RuntimeElse,
    RuntimeReturn,
    StatementInExpression,
    UsedAfterScope,
)


def ints(n):
    return np.full(n, -1, dtype="int32")


def test_a_name_means_what_it_meant_when_it_was_assigned(execute):
    # peer bug #2594
    @T.prim_func
    def k(A: T.Tensor((4,), "int32"), O: T.Tensor((4,), "int32")):
        with T.Kernel(1) as bx:
            if bx == 0:
                v = A[0]
                A[0] = A[0] + 5
                O[0] = v
                O[1] = A[0]

    a, out = np.array([1, 2, 3, 4], "int32"), ints(4)
    execute(k, a, out)
    assert list(out[:2]) == [1, 6]


def test_values_without_a_name_keep_their_meaning(execute):
    @T.prim_func
    def k(A: T.Tensor((4,), "int32"), O: T.Tensor((4,), "int32")):
        with T.Kernel(1) as bx:
            old = [A[i] for i in range(3)]
            A[0] = 10
            for i in T.serial(3):
                O[1] = old[1] + i
                A[1] = A[1] + 100
            O[0] = old[0]
            O[2] = old[2]

    a, out = np.array([1, 2, 3, 4], "int32"), ints(4)
    execute(k, a, out)
    assert list(out) == [1, 4, 3, -1]


def test_unused_values_are_not_bound():
    @T.prim_func
    def k(A: T.Tensor((4,), "int32")):
        with T.Kernel(1) as bx:
            for i in range(4):
                A[i] = A[i] + 1

    assert "let" not in k.script()
    assert "A[i] = A[i] + 1" in k.script()


def test_tuples_swaps_stars_and_multiple_targets(execute):
    @T.prim_func
    def k(O: T.Tensor((12,), "int32")):
        with T.Kernel(1) as bx:
            a = T.alloc_var("int32", init=1)
            b = T.alloc_var("int32", 2)
            a, b = b, a
            O[0], O[1] = a, b
            (x, y), *rest = (a + 10, 4), 5, 6
            O[2] = x
            O[3] = y + rest[1]
            c = d = a + b
            O[4] = c + d
            O[5] = O[6] = 7
            m, n = T.alloc_var("int32"), T.alloc_var("int32", init=9)
            m += 1
            O[7] = m + n
            z = a
            a = 50
            O[8] = z
            a += 1
            O[9] = a

    out = ints(12)
    execute(k, out)
    assert list(out[:10]) == [2, 1, 12, 10, 6, 7, 7, 10, 2, 51]


def test_augmented_assignment_evaluates_its_target_once(execute):
    seen = []

    def at(i):
        seen.append(i)
        return i

    @T.prim_func
    def k(O: T.Tensor((8,), "int32")):
        with T.Kernel(1) as bx:
            O[at(1)] += 3
            O[2] -= 3
            O[3] *= 3
            O[4] //= 2
            O[5] %= 4
            O[6] <<= 2
            O[7] |= 8

    out = np.full(8, 7, "int32")
    execute(k, out)
    assert list(out) == [7, 10, 4, 21, 3, 3, 28, 15]
    assert seen == [1]


def test_python_objects_are_pythons(execute):
    class Config:
        width = 2

    @T.prim_func
    def k(O: T.Tensor((8,), "int32")):
        with T.Kernel(1) as bx:
            config = Config()
            config.width += 1
            table = {"a": 1}
            table["b"] = config.width
            items = [1]
            items += [5]
            items[0] += 1
            O[0] = table["b"]
            O[1] = items[0] + items[1]
            O[2] = sum(items)
            O[3] = len(items)
            text = f"{config.width}"
            O[4] = int(text)

    out = ints(8)
    execute(k, out)
    assert list(out[:5]) == [3, 7, 7, 2, 3]


def test_a_name_is_free_again_after_its_block(execute):
    # the compressor of the seeds: `val` and `i` are bound in one block after another; peer bug #3231
    @T.prim_func
    def k(A: T.Tensor((8,), "int32"), O: T.Tensor((8,), "int32")):
        with T.Kernel(1) as bx:
            i = T.alloc_var("int32", init=3)
            O[7] = i
            for i in range(4):
                val = A[i]
                if val != 0:
                    O[i] = val
            for i in T.serial(2):
                val = i * 2
                O[4 + i] = val
            val = 9
            O[6] = val

    out = ints(8)
    execute(k, np.array([1, 0, 3, 0, 0, 0, 0, 0], "int32"), out)
    assert list(out) == [1, -1, 3, -1, 0, 2, 9, 3]


def test_loop_variable_may_be_rebound(execute):
    @T.prim_func
    def k(O: T.Tensor((8,), "int32")):
        with T.Kernel(1) as bx:
            for i in range(3):
                i = i * 2
                O[i] = i
                i += 1
                O[i] = -i

    out = ints(8)
    execute(k, out)
    assert list(out[:6]) == [0, -1, 2, -3, 4, -5]


def test_typed_assignment(execute):
    @T.prim_func
    def k(O: T.Tensor((4,), "float32")):
        with T.Kernel(1) as bx:
            x: T.int8 = 3
            y: T.float32 = x
            O[0] = y / 2

    out = np.zeros(4, "float32")
    execute(k, out)
    assert out[0] == 1.5


@pytest.mark.parametrize("kind", ["branch", "loop", "while"])
def test_rebinding_inside_of_a_runtime_block_is_refused(kind, refused):
    # peer bug #2977
    def branch():
        @T.prim_func
        def k(O: T.Tensor((4,), "int32"), n: T.int32):
            with T.Kernel(1) as bx:
                x = 1
                if n > 0:
                    x = 2  # here
                O[0] = x

    def loop():
        @T.prim_func
        def k(O: T.Tensor((4,), "int32"), n: T.int32):
            with T.Kernel(1) as bx:
                x = n
                for i in range(n):
                    x = x + i  # here
                O[0] = x

    def while_():
        @T.prim_func
        def k(O: T.Tensor((4,), "int32"), n: T.int32):
            with T.Kernel(1) as bx:
                x = 1
                while O[0] > 0:
                    x += 1  # here

    build = {"branch": branch, "loop": loop, "while": while_}[kind]
    refused(ReboundInBranch, "K111", "declare it with `x = T.alloc_var(dtype, init=...)`", build)


def test_a_loop_variable_that_replaces_a_used_name_is_refused(refused):
    def build():
        @T.prim_func
        def k(O: T.Tensor((4,), "int32")):
            with T.Kernel(1) as bx:
                i = 7
                for k in T.serial(4):
                    O[k] = i
                    for i in T.serial(3):  # here
                        O[i] = i

    refused(ReboundInBranch, "K111", "i is bound outside of this runtime loop", build)
    refused(ReboundInBranch, "K111", "choose another name than i for the variable of the inner loop", build)


@pytest.mark.parametrize(
    ("before", "inside", "fix"),
    [
        (
            "for x in (1, 2):",
            "declared",
            "choose another name for what is declared here, or declare it in front of the",
        ),
        ("once", "declared", "x = ... stores to the variable outside; choose another name for what is declared here"),
        ("once", "allocated", "choose another name than x here: no variable of the kernel holds it"),
        ("for x in (1, 2):", "a text", "choose another name than x here: no variable of the kernel holds it"),
        ("for x in (1, 2):", "a number", "declare it with `x = T.alloc_var(dtype, init=...)`"),
    ],
)
def test_the_remedy_does_not_advise_what_is_there(before, inside, fix):
    def build():
        @T.prim_func
        def k(A: T.Tensor((4,), "int32"), n: T.int32):
            with T.Kernel(1) as bx:
                if before == "once":
                    x = T.alloc_var("int32", init=0)
                else:
                    for x in (1, 2):
                        A[x] = x
                for i in T.serial(n):
                    if inside == "declared":
                        x = T.alloc_var("int32", init=0)
                    elif inside == "allocated":
                        x = T.alloc_local((4,), "int32")
                    elif inside == "a text":
                        x = "text"
                    else:
                        x = 7  # here
                    A[i] = i

    with pytest.raises(ReboundInBranch) as caught:
        build()
    assert fix in caught.value.help


def test_use_after_the_block_is_refused(refused):
    def branch():
        @T.prim_func
        def k(O: T.Tensor((4,), "int32"), n: T.int32):
            with T.Kernel(1) as bx:
                if n > 0:
                    x = 1
                else:
                    x = 2
                O[0] = x  # here

    def loop():
        @T.prim_func
        def k(O: T.Tensor((4,), "int32"), n: T.int32):
            with T.Kernel(1) as bx:
                for i in range(n):
                    O[i] = 0
                O[0] = i  # here

    refused(UsedAfterScope, "K110", "x was bound inside of a runtime branch", branch)
    refused(UsedAfterScope, "K110", "i was bound inside of a runtime loop", loop)


def test_statement_without_effect_is_refused(refused):
    def build():
        @T.prim_func
        def k(A: T.Tensor((4,), "int32")):
            with T.Kernel(1) as bx:
                A[0] == 1  # here

    refused(NoEffect, "K114", "computes a value (A[0] == 1) and drops it", build)


def test_break_where_it_cannot_be(refused):
    def parallel():
        @T.prim_func
        def k(A: T.Tensor((4,), "int32")):
            with T.Kernel(1) as bx:
                for i in T.Parallel(4):
                    if A[i] == 0:
                        break  # here

    def python():
        @T.prim_func
        def k(A: T.Tensor((4,), "int32")):
            with T.Kernel(1) as bx:
                for i in [0, 1, 2]:
                    if A[i] == 0:
                        continue  # here

    def grid():
        @T.prim_func
        def k(A: T.Tensor((4, 4), "int32")):
            with T.Kernel(1) as bx:
                for i, j in T.grid(4, 4):
                    if A[i, j] == 0:
                        break  # here

    refused(BadBreak, "K115", "`break` in T.Parallel", parallel)
    refused(BadBreak, "K115", "`continue` depends on a runtime condition, but its loop", python)
    refused(BadBreak, "K115", "over several dimensions", grid)


def test_else_after_a_runtime_break_is_refused(refused):
    # peer bug #2946
    def loop():
        @T.prim_func
        def k(A: T.Tensor((4,), "int32")):
            with T.Kernel(1) as bx:
                for i in range(4):  # here
                    if A[i] == 0:
                        break
                else:
                    A[0] = 1

    def while_():
        @T.prim_func
        def k(A: T.Tensor((4,), "int32")):
            with T.Kernel(1) as bx:
                while A[0] > 1:  # here
                    if A[1] == 0:
                        break
                else:
                    A[0] = 1

    refused(RuntimeElse, "K117", "depends on a runtime `break`", loop)
    refused(RuntimeElse, "K117", "depends on a runtime `break`", while_)


def test_return_and_raise_under_runtime_conditions_are_refused(refused):
    def return_():
        @T.prim_func
        def k(A: T.Tensor((4,), "int32")):
            with T.Kernel(1) as bx:
                if A[0] > 0:
                    return  # here
                A[0] = 1

    def raise_():
        @T.prim_func
        def k(A: T.Tensor((4,), "int32")):
            with T.Kernel(1) as bx:
                if A[0] > 0:
                    raise ValueError("no")  # here

    refused(RuntimeReturn, "K116", "`return` inside of a runtime branch", return_)
    refused(RuntimeReturn, "K116", "`raise` inside of a runtime branch", raise_)


def test_return_under_a_python_condition(execute):
    early = True

    @T.prim_func
    def k(O: T.Tensor((4,), "int32")):
        with T.Kernel(1) as bx:
            O[0] = 1
            if early:
                return
            O[1] = 2

    out = ints(4)
    execute(k, out)
    assert list(out) == [1, -1, -1, -1]
    assert "parallel(1" in k.script()


def test_statement_in_a_conditional_expression_is_refused(refused):
    @T.macro
    def bump(A):
        A[0] = A[0] + 1
        return A[0]

    def build():
        @T.prim_func
        def k(A: T.Tensor((4,), "int32"), n: T.int32):
            with T.Kernel(1) as bx:
                A[1] = bump(A) if n > 0 else 0  # here

    refused(StatementInExpression, "K118", "one side of `if … else` emits statements", build)


def test_stores_to_what_is_no_element(refused):
    def slice_():
        @T.prim_func
        def k(A: T.Tensor((4, 4), "int32")):
            with T.Kernel(1) as bx:
                A[0] = 0  # here

    def tile():
        @T.prim_func
        def k(A: T.Tensor((4, 4), "int32"), B: T.Tensor((4, 4), "int32")):
            with T.Kernel(1) as bx:
                A[0, 1] = B  # here

    refused(BadStore, "K127", "A has 2 dimensions", slice_)
    refused(BadStore, "K127", "assign to a slice", tile)


# --------------------------------------------------------------------------------------------------------------- macros
