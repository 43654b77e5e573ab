"""Defects that were mended, put back by hand: what the fuzzer must find again."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from tile_core.compat.tvm import tirx
from tile_core.ir import nodes
from tile_core.ir.visit import substitute
from tile_core.numerics.build import lanes_of

Patch = Callable[[Any], None]


def strict_operations_are_fused(patch: Any) -> None:
    """CPU: operations with a named rounding are LLVM's own, which it may fuse."""
    from tile_core.cpu import pipeline

    nodes_of = {"add": tirx.Add, "sub": tirx.Sub, "mul": tirx.Mul, "fdiv": tirx.Div}
    table = {f"tirx.ieee_{n}_rn_{d}": node for n, node in nodes_of.items() for d in ("float32", "float64")}
    legalize = pipeline.legalize_math
    patch.setattr(pipeline, "legalize_math", lambda func, level: legalize(func, rounded=table, level=level))


def reference_truncates(patch: Any) -> None:
    """The reference rounds quotients of integers towards zero."""
    from tile_core.reference import arithmetic

    table = dict(arithmetic._INTEGERS)
    table["FloorDiv"] = lambda a, b: np.trunc(a / b).astype(np.result_type(a, b))
    patch.setattr(arithmetic, "_INTEGERS", table)


def padding_takes_part(patch: Any) -> None:
    """Targets with threads: no guard for padding in stores without a loop variable."""
    from tile_core.compat.tvm import ir
    from tile_core.simt.threads import parallel_nest

    def covers(self: Any, own: Any) -> bool:
        at = {v: d for d, v in enumerate(self.nest.variables)}
        stores = [(x.buffer, x.indices, True) for x in parallel_nest.collect(self.nest.body, tirx.BufferStore)]
        loads = [(x.source, x.indices, False) for x in parallel_nest.collect(self.nest.body, ir.TensorLoad)]
        for buffer, indices, is_store in [*stores, *loads]:
            known = self.placement.fragments.get(buffer)
            if known is None or buffer not in self.placement.arrays:
                continue
            for d, index in enumerate(indices):
                mine = at.get(index) if isinstance(index, tirx.Var) else None
                if mine is None and (is_store or parallel_nest.nodes.as_int(index) != 0):
                    if known.shape[d] != 1:
                        return False
                elif mine is not None:
                    other = is_store and known.shape[d] != own.shape[mine]
                    if known.padded[d] < own.padded[mine] or other:
                        return False
        return True

    patch.setattr(parallel_nest.NestWriter, "covers", covers)


def clamp_by_choices(patch: Any) -> None:
    """With crossed limits of ``T.clamp``, each limit wins over values beyond it."""
    from tile_core.numerics import minmax

    def clamped(value: Any, low: Any, high: Any) -> Any:
        below = value if high is None else tirx.Select(value > high, high, value)
        return below if low is None else tirx.Select(value < low, low, below)

    patch.setattr(minmax, "clamp_expr", clamped)


def ceildiv_by_addition(patch: Any) -> None:
    """Quotients rounded up are ``(a + b - 1) // b``."""
    from tile_core.language import integers

    def ceildiv(a: Any, b: Any) -> Any:
        if isinstance(a, int) and isinstance(b, int):
            return -(-a // b)
        x, y = integers._integers("ceildiv", a, b)
        return integers.derive(tirx.ceildiv(x.expr, y.expr), x.dtype, x, y)

    import tile_core.language as language

    patch.setattr(language, "ceildiv", ceildiv, raising=False)


def races_are_accepted(patch: Any) -> None:
    """Parallel loops may read what other iterations write."""
    from tile_core.passes import spine

    patch.setattr(spine, "check_parallel", lambda *args: None)


def conversions_by_the_processor(patch: Any) -> None:
    """CPU: floats out of range become whatever integers the processor makes of them."""
    from tile_core.passes import scalars

    patch.setattr(scalars, "total_conversions", lambda body, *rest: body)


def unwritten_is_read(patch: Any) -> None:
    """Unwritten memory may be read."""
    from tile_core.passes import spine

    patch.setattr(spine, "check_written", lambda *args: None)


def arrays_of_the_block(patch: Any) -> None:
    """CPU: a tile op on a thread's own array is done once for the block."""
    from tile_core.passes import spine

    patch.setattr(spine, "private_ops", lambda body: body)


def halves_are_stored_alone(patch: Any) -> None:
    """Targets with threads: each half-byte store is a read-modify-write without synchronization."""
    from tile_core.simt.threads import distribute

    kinds = [x for x in vars(distribute).values() if isinstance(x, type) and "stored" in vars(x)]
    assert len(kinds) == 1
    patch.setattr(kinds[0], "stored", lambda self, s: s)


def scales_are_multiplied(patch: Any) -> None:
    """The product of two scales is float32, so it may overflow or underflow."""
    from tile_core.ops import gemm_scaled

    patch.setattr(gemm_scaled, "scaled", lambda value, scales, dtype: value * (scales[0] * scales[1]))


def layouts_are_ignored(patch: Any) -> None:
    """A layout that nothing can follow is accepted."""
    from tile_core.passes import spine

    patch.setattr(spine, "check_layouts", lambda *args: None)


def fragments_of_users_are_not_proved(patch: Any) -> None:
    """Targets with threads: a user's fragment layout is used without checking its loops."""
    from tile_core.simt.placement import layout_inference

    real = layout_inference.agrees

    def lenient(a: Any, nest: Any, own: Any, known: Any) -> str:
        return real(a, nest, own, known) if str(a.buffer.name) not in ("f", "g") else ""

    patch.setattr(layout_inference, "agrees", lenient)


def wide_numbers_are_rounded_twice(patch: Any) -> None:
    """Conversions to tfloat32 pass through float32."""
    from tile_core.numerics import exprs
    from tile_core.numerics.build import cast

    once = exprs.round_tfloat32_expr
    patch.setattr(exprs, "round_tfloat32_expr", lambda value: once(cast("float32", value)))


def constants_keep_their_digits(patch: Any) -> None:
    """Python's numbers become constants of a type that does not hold them."""
    from tile_core.values import constants, scalar

    patch.setattr(scalar, "rounded", lambda number, dtype: number)
    patch.setattr(constants, "round_number", lambda number, dtype: number)


def zero_divisors_are_divided_by(patch: Any) -> None:
    """A divisor that becomes the constant 0 after tracing reaches the target's compiler."""
    from tile_core.cpu import build
    from tile_core.emit import expressions
    from tile_core.passes import divisions

    patch.setattr(divisions, "_by_constant", lambda e: e)
    for module in (build, expressions):
        patch.setattr(module, "require_defined", lambda e: None)


def choices_of_divisors_are_dropped(patch: Any) -> None:
    """Targets with threads: TVM drops a divisor's choice nested in one of equal condition."""
    from tile_core.analysis import analyzer

    patch.setattr(analyzer, "_is_guarded", lambda e: False)


def counters_are_seen(patch: Any) -> None:
    """CPU: LLVM analyzes remainders of loop variables and assumes no wrap."""
    from tile_core.cpu import build

    patch.setattr(build, "hide_counters", lambda body: body)


def reads_are_shared(patch: Any) -> None:
    """An operation on memory reuses an equal one's name from before a write."""
    from tile_core.passes import share

    patch.setattr(share, "_is_pure", lambda e: nodes.dtype_of(e).startswith("int"))


def names_leave_changing_loops(patch: Any) -> None:
    """A named value is computed with the least counter of the loop around it."""
    from tile_core.trace import assign

    made = assign._bound

    def bound(name: str, expr: Any, hoisted: bool = False) -> Any:
        counters = {v: tirx.IntImm(v.ty, 0) for v in assign.current().scope.counters} if hoisted else {}
        return made(name, substitute(expr, counters), hoisted)

    patch.setattr(assign, "_bound", bound)


def stores_by_two_names_lose_their_order(patch: Any) -> None:
    """Targets with threads: stores of one element under two names are written back by name."""
    from tile_core.simt.memory import vectorize

    patch.setattr(vectorize._VectorizeAccesses, "are_disjoint", lambda self, runs, trips: True)


def dependent_iterations_are_packed(patch: Any) -> None:
    """Targets with packed arithmetic: iterations that read what others write are computed two at a time."""
    from tile_core.passes import packed_loop

    patch.setattr(packed_loop.PackedLoop, "_is_own", lambda self, indices: True)


def changes_are_not_seen(patch: Any) -> None:
    """Targets with threads: long rows are computed again from values that changed."""
    from tile_core.simt.memory import rematerialization

    patch.setattr(rematerialization._Scope, "source", lambda self, buffer, *_: buffer)


def choices_ignore_their_condition(patch: Any) -> None:
    """CPU: a choice whose values both may be computed takes the first one where its condition differs."""
    from tile_core.cpu import lane_selects

    choose = lane_selects._Reached.choose

    def first(self: Any, e: Any) -> Any:
        new = choose(self, e)
        return new.true_value if isinstance(new, tirx.Select) else new

    patch.setattr(lane_selects._Reached, "choose", first)


def lengths_of_rows_are_rounded(patch: Any) -> None:
    """CPU: a vector whose first lane is inside of a row is taken to be all inside."""
    from tile_core.cpu import guarded_vectors

    def every(self: Any, condition: Any) -> Any:
        return self.at(condition, 0)

    patch.setattr(guarded_vectors.LaneConditions, "every", every)


def unused_fragments_stay(patch: Any) -> None:
    """Targets with threads: an unused fragment keeps its scope where one thread executes the block."""
    from tile_core.ir.visit import StmtRewriter
    from tile_core.simt.threads import distribute

    patch.setattr(distribute._Plain, "visit_AllocBuffer", StmtRewriter.visit_AllocBuffer)


def all_accumulators_are_added_up_at_once(patch: Any) -> None:
    """CPU: the lanes of all accumulators are added up in one step, also of more than a vector has lanes."""
    from tile_core.cpu import row_dots
    from tile_core.cpu.micro_rows import added_up

    def every(rows: Any, lanes: int, acc: str, add: Any) -> Any:
        return added_up(list(rows) * (row_dots.ROWS if len(rows) == lanes else 1), lanes, acc, add)

    patch.setattr(row_dots, "added_up", every)


def blocks_are_iterations(patch: Any) -> None:
    """Targets with threads: loops over the grid are split like a thread's loops."""
    from tile_core.simt.threads import interior

    patch.setattr(interior, "role", lambda loop: "serial")


def loops_are_fused_by_their_extents(patch: Any) -> None:
    """CPU: parallel loops are fused if an index of theirs is the loop's variable, whatever is added to it."""
    from tile_core.cpu import fuse_loops

    def width(first: Any, second: Any, pair: Any) -> int | None:
        for mine, theirs in zip(pair[0].indices, pair[1].indices, strict=True):
            one = fuse_loops.linear_form(mine, [first.loop_var])
            other = fuse_loops.linear_form(theirs, [second.loop_var])
            if one is not None and other is not None and one.steps == other.steps == (1,):
                return 1
        return None

    patch.setattr(fuse_loops, "_width", width)


def scans_restart_at_each_vector(patch: Any) -> None:
    """CPU: a scan of vectors does not keep the last lane for the next one."""
    from tile_core.cpu.ops import scan

    vectors = scan._ScannedRow.vectors
    patch.setattr(scan._ScannedRow, "vectors", lambda self, part, carry: vectors(self, part, carry)[:-1])


def tables_have_the_first_scale(patch: Any) -> None:
    """CPU: a table of 4-bit codes has the scale of its first element, whichever others its run has."""
    from tile_core.cpu import code_tables

    class First:
        def bind(self, lane: Any, *_: Any) -> None:
            self.lane = lane

        def simplify(self, index: Any) -> Any:
            return substitute(index, {self.lane: tirx.IntImm(self.lane.ty, 0)})

    patch.setattr(code_tables, "Analyzer", First)


def packed_numbers_have_no_sign(patch: Any) -> None:
    """Targets with threads: the mask of two small integers does not flip the sign of 4 bits."""
    from tile_core.passes import packed_integers

    flipped = packed_integers._flipped
    patch.setattr(packed_integers, "_flipped", lambda numbers, bits, packed: flipped(numbers, bits & ~8, packed))


def lanes_have_the_next_nibbles(patch: Any) -> None:
    """Targets with threads: a shift takes the wrong two nibbles out of a word of packed weights."""
    from tile_core.passes import packed_integers

    of_word = packed_integers._of_word

    def next_one(word: Any, first: Any, mask: int) -> Any:
        return of_word(word, tirx.bitwise_xor(first, tirx.IntImm(nodes.dtype_of(first), 4)), mask)

    patch.setattr(packed_integers, "_of_word", next_one)


def packed_weights_have_another_order(patch: Any) -> None:
    """All targets: programs expect an order of packed weights that arrays do not have."""
    from tile_core.weights import program

    ordered = program.word_and_shift

    def exchanged(index: Any) -> Any:
        return ordered(tirx.bitwise_xor(index, tirx.IntImm(nodes.dtype_of(index), 8)))

    patch.setattr(program, "word_and_shift", exchanged)


def kept_integers_move(patch: Any) -> None:
    """CPU: the second kept integer of a group takes the place after the first one."""
    from dataclasses import replace

    from tile_core.cpu import micro_dots_sp

    expanded = micro_dots_sp._expanded

    def changed(a: Any, *rest: Any) -> Any:
        return expanded(replace(a, kept=lambda code: [low := a.kept(code)[0], low + 1]), *rest)

    patch.setattr(micro_dots_sp, "_expanded", changed)


def tables_ignore_the_sign_of_codes(patch: Any) -> None:
    """CPU: a permutation looks the lower three bits of a 4-bit code up."""
    from tile_core.cpu import build

    look = build.looked_up

    def looked_up(e: Any) -> Any:
        new = look(e)
        if new is e:
            return e
        index = e.indices[0]
        bits = tirx.Broadcast(tirx.IntImm(nodes.dtype_of(index).partition("x")[0], 7), lanes_of(index))
        return look(tirx.BufferLoad(e.source, [tirx.bitwise_and(index, bits)]))

    patch.setattr(build, "looked_up", looked_up)


def codes_of_a_byte_are_exchanged(patch: Any) -> None:
    """CPU: words of two codes have the upper one of a byte first."""
    from tile_core.cpu import code_tables

    words = code_tables._code_words

    def exchanged(index: Any) -> Any:
        made = words(index)
        if made is None:
            return None
        half = tirx.Broadcast(tirx.IntImm("uint32", 16), lanes_of(made))
        return (made << half) | (made >> half)

    patch.setattr(code_tables, "_code_words", exchanged)


def changed_rows_are_read_again(patch: Any) -> None:
    """CPU: a loop that changes some elements of a copied row is taken to replace all of them."""
    from tile_core.cpu import read_again

    patch.setattr(read_again, "_replaces", lambda s, tile: True)


def tiny_numbers_become_zero(patch: Any) -> None:
    """CPU: the conversion to bfloat16 is one instruction, which flushes subnormal numbers."""
    from tile_core.cpu import vector_functions

    function = vector_functions._BFLOAT16
    text = function.text.replace("br i1 %rare_least, label %zeros, label %end", "br i1 false, label %zeros, label %end")
    other = dataclasses.replace(function, text=text)
    patch.setattr(vector_functions, "_BFLOAT16", other)
    patch.setattr(vector_functions, "_OPERATORS", {**vector_functions._OPERATORS, other.operator: other})


def blocks_have_the_first_scale(patch: Any) -> None:
    """CPU: block-scaled products have the scales of the first block of K in all blocks."""
    from tile_core.cpu import micro_scaled

    half = micro_scaled._half

    def first(*given: Any) -> Any:
        read = half(*given)
        return lambda i, j: read(i, nodes.int_const(0))

    patch.setattr(micro_scaled, "_half", first)


def groups_read_their_first_iteration(patch: Any) -> None:
    """Targets with threads: all iterations of a group use the elements that were loaded for its first one."""
    from dataclasses import replace

    from tile_core.simt.threads import load_prefetch

    widened = load_prefetch._LoadsOfLoop.widened

    def changed(self: Any, a: Any, group: int) -> Any:
        found = widened(self, a, group)
        return None if found is None else replace(found, grouped=False)

    patch.setattr(load_prefetch._LoadsOfLoop, "widened", changed)


def groups_of_scales_are_one(patch: Any) -> None:
    """Targets with threads: all iterations of an unrolled loop use the element of its first one."""
    from tile_core.simt.threads import load_prefetch

    patch.setattr(load_prefetch, "_shared", lambda loop, used: int(loop.extent))


def rows_outside_are_gathered(patch: Any) -> None:
    """CUDA: a prefetched gather takes the first row where a number is negative."""
    from tile_core.ops.gather import row_number
    from tile_cuda.ops import copy_async

    patch.setattr(copy_async, "row_number", lambda rows, i: tirx.max(row_number(rows, i), tirx.IntImm("int64", 0)))


def rows_of_other_iterations_are_trimmed(patch: Any) -> None:
    """CPU: rows that an iteration reads at another number than its own are not computed."""
    from tile_core.cpu import trim_tiles

    need, read = trim_tiles._Needs.need, trim_tiles._Needs.read

    def reading(self: Any, e: Any) -> None:
        with patch.context() as inner:
            inner.setattr(
                self_type, "need", lambda self, tile, rows=None: need(self, tile, 1 if rows is None else rows)
            )
            read(self, e)

    self_type = trim_tiles._Needs
    patch.setattr(self_type, "read", reading)


def numbers_of_rows_are_not_guarded(patch: Any) -> None:
    """CUDA: a prefetched gather reads numbers of rows beyond their tensor."""
    from tile_core.simt.memory import contiguity
    from tile_cuda.ops import copy_async

    inside = contiguity.inside

    def without(view: Any, indices: Any, ranges: Any) -> Any:
        return [] if "int" in view.dtype and len(indices) == 1 else inside(view, indices, ranges)

    patch.setattr(copy_async.contiguity, "inside", without)


def corners_of_words_are_elements(patch: Any) -> None:
    """CUDA: the corner of a staged tile of words is that of their elements."""
    from tile_core.simt.placement import staged_tiles

    divided = staged_tiles._divided
    patch.setattr(staged_tiles, "_divided", lambda e, by: divided(e, by) if isinstance(e, tirx.Var) else e)
