"""Each fixed class of defects is found again, by a strategy and seed."""

from __future__ import annotations

import dataclasses
import importlib.util
from pathlib import Path
from typing import Any

import pytest

import tile_core as tile
from tile_core.cpu.dots import dot_of
from tile_core.cpu.isa import detect
from tile_core.cpu.vector_functions import encoders
from tile_core.errors.lowering import UnknownProcessor
from tile_core.testing import search as searching
from tile_core.testing.compile_only import TEXT
from tile_core.testing.run import Session
from tile_core.testing.search import Chunk, WrongProgram, search


def _module(name: str) -> Any:
    """Return a module of this folder, which is not a package."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


DEFECTS = {name: x for module in ("defects", "index_defects") for name, x in vars(_module(module)).items()}
_SEEDS = 12
#: The family of processors that looks 4-bit codes up in tables.
TABLES = "cpu with AVX-512"
#: The family that converts to bfloat16.
CONVERSIONS = "cpu with AVX-512 BF16"
#: The family that multiplies four integers at a time.
INTEGERS = "cpu with dot products of integers"
#: What was wrong, how it is put back, the target, and the chunk of the search that finds it.
FINDS = {
    "indices of the CPU": ("indices_by_tvm", "cpu", Chunk("programs", 0, 10, "nibbles")),
    "index expressions of the CPU": ("indices_by_tvm", "cpu", Chunk("indices", 3, 60)),
    "overflow that a guard excludes for one form alone": (
        "guards_cover_moved_terms",
        "cuda:sm_80",
        Chunk("indices", 11403280210538, 80),
    ),
    "overflow in index expressions": ("indices_never_overflow", "cpu", Chunk("indices", 1, 200)),
    "trip counts that wrap": ("trip_counts_wrap", "cpu", Chunk("indices", 6, 20)),
    "a wrong reference": ("reference_truncates", "cpu", Chunk("programs", 0, 10, "divisions")),
    "padding in reducers": ("padding_takes_part", "cuda:sm_80", Chunk("programs", 0, 10, "reducers")),
    "T.ceildiv of signs and limits": ("ceildiv_by_addition", "cpu", Chunk("programs", 0, 10, "divisions")),
    "limits in the wrong order": ("clamp_by_choices", "cpu", Chunk("programs", 0, 40, "parameters")),
    "tiles that nothing uses": ("unused_fragments_stay", "cuda:sm_80", Chunk("programs", 0, 10, "parameters")),
    "reads of what other iterations write": ("races_are_accepted", "cpu", Chunk("programs", 0, 40, "illegal")),
    "floats out of range": ("conversions_by_the_processor", "cpu", Chunk("programs", 2, 20, "casts")),
    "unwritten memory": ("unwritten_is_read", "cpu", Chunk("programs", 0, 40, "illegal")),
    "negative indices that are known": ("negative_indices", "cpu", Chunk("programs", 4, 40, "illegal")),
    "halves of bytes": ("halves_are_stored_alone", "cuda:sm_80", Chunk("programs", 0, 10, "nibbles")),
    "layouts that nothing follows": ("layouts_are_ignored", "cpu", Chunk("programs", 5, 40, "illegal")),
    "fragments that users lay out": (
        "fragments_of_users_are_not_proved",
        "cuda:sm_80",
        Chunk("programs", 2, 20, "layouts"),
    ),
    "numbers that are rounded twice": (
        "wide_numbers_are_rounded_twice",
        "cpu",
        Chunk("programs", 7, 20, "casts"),
    ),
    "constants that their type does not hold": (
        "constants_keep_their_digits",
        "cpu",
        Chunk("programs", 5, 20, "casts"),
    ),
    "elements of a group of iterations": (
        "groups_read_their_first_iteration",
        "cuda:sm_80",
        Chunk("programs", 17, 10, "converted-operands"),
    ),
    "scales of several groups": (
        "groups_of_scales_are_one",
        "cuda:sm_80",
        Chunk("programs", 0, 10, "converted-operands"),
    ),
    "products of scales": ("scales_are_multiplied", "cuda:sm_80", Chunk("programs", 3, 10, "scaled-products")),
    "divisors that become zero": ("zero_divisors_are_divided_by", "cpu", Chunk("programs", 3, 10, "folding")),
    "divisors that become zero in texts": (
        "zero_divisors_are_divided_by",
        "cuda:sm_80",
        Chunk("programs", 1, 10, "folding"),
    ),
    "choices inside of choices": ("choices_of_divisors_are_dropped", "cuda:sm_80", Chunk("programs", 9, 10, "folding")),
    "operations that read memory and share a name": ("reads_are_shared", "cpu", Chunk("programs", 0, 30, "names")),
    "names outside of loops that change them": (
        "names_leave_changing_loops",
        "cpu",
        Chunk("programs", 0, 10, "names"),
    ),
    "loads at remainders in vectors": ("counters_are_seen", "cpu", Chunk("programs", 0, 20, "lanes")),
    "choices in vectors": ("choices_ignore_their_condition", "cpu", Chunk("programs", 0, 20, "lanes")),
    "conditions of vectors": ("lengths_of_rows_are_rounded", "cpu", Chunk("programs", 0, 20, "lanes")),
    "stores of one element by two names": (
        "stores_by_two_names_lose_their_order",
        "cuda:sm_80",
        Chunk("programs", 1000078, 10, "guards"),
    ),
    "rows computed from values that change": (
        "changes_are_not_seen",
        "cuda:sm_80",
        Chunk("programs", 0, 10, "long-rows"),
    ),
    "strict operations that are fused": ("strict_operations_are_fused", "cpu", Chunk("programs", 0, 10, "regions")),
    "more accumulators than lanes": (
        "all_accumulators_are_added_up_at_once",
        "cpu:alderlake",
        Chunk("programs", 11, 15, "odd-products"),
    ),
    "conditions on blocks": ("blocks_are_iterations", "cuda:sm_80", Chunk("programs", 0, 10, "block-races")),
    "loops over other elements": ("loops_are_fused_by_their_extents", "cpu", Chunk("programs", 0, 20)),
    "arrays of threads": ("arrays_of_the_block", "cpu", Chunk("programs", 1, 10, "threads")),
    "pairs of dependent iterations": (
        "dependent_iterations_are_packed",
        "cuda:sm_80",
        Chunk("programs", 0, 30, "packed"),
    ),
    "scans of more than a vector": ("scans_restart_at_each_vector", "cpu", Chunk("programs", 0, 10, "reductions")),
    "scales of tables": ("tables_have_the_first_scale", TABLES, Chunk("programs", 0, 10, "converted-operands")),
    "codes of tables": ("tables_ignore_the_sign_of_codes", TABLES, Chunk("programs", 2, 10, "converted-operands")),
    "codes of bytes": ("codes_of_a_byte_are_exchanged", TABLES, Chunk("programs", 0, 10, "converted-operands")),
    "rows that change": ("changed_rows_are_read_again", "cpu", Chunk("programs", 0, 20, "long-rows")),
    "conversions of tiny numbers": ("tiny_numbers_become_zero", CONVERSIONS, Chunk("programs", 0, 40, "vector-casts")),
    "signs of packed numbers": (
        "packed_numbers_have_no_sign",
        "cuda:sm_80",
        Chunk("programs", 0, 10, "converted-operands"),
    ),
    "nibbles of packed weights": (
        "lanes_have_the_next_nibbles",
        "cuda:sm_80",
        Chunk("programs", 0, 10, "converted-operands"),
    ),
    "the order of packed weights": (
        "packed_weights_have_another_order",
        "cpu",
        Chunk("programs", 0, 10, "converted-operands"),
    ),
    "kept integers": ("kept_integers_move", INTEGERS, Chunk("programs", 0, 10, "tall-products")),
    "rows that do not exist": ("rows_outside_are_gathered", "cuda:sm_80", Chunk("programs", 0, 10, "gathered-loops")),
    "numbers of rows that do not exist": (
        "numbers_of_rows_are_not_guarded",
        "cuda:sm_80",
        Chunk("programs", 0, 10, "gathered-loops"),
    ),
    "corners of staged words": (
        "corners_of_words_are_elements",
        "cuda:sm_80",
        Chunk("programs", 29, 10, "converted-operands"),
    ),
    "rows of other iterations": (
        "rows_of_other_iterations_are_trimmed",
        "cpu",
        Chunk("programs", 0, 20, "padded-rows"),
    ),
    "scales of blocks of products": ("blocks_have_the_first_scale", "cpu", Chunk("programs", 0, 10, "scaled-products")),
}


def find(name, patch):
    """Put a defect back and search; the report of what was found."""
    defect, target, chunk = FINDS[name]
    DEFECTS[defect](patch)
    patch.setattr(searching, "SHRINKING", 0.0)
    for made_smaller in ("guilty", "smallest"):
        patch.setattr(searching.indices, made_smaller, lambda kernel, fails: kernel)
    if target == TABLES and detect().name != "avx512":
        pytest.skip("no permutation of this width here")
    if target == CONVERSIONS and not encoders(detect()):
        pytest.skip("no conversion to bfloat16 here")
    if target == INTEGERS and dot_of(detect(), "int8", "int8", "int32") is None:
        pytest.skip("no dot products of int8 here")
    target = "cpu" if target in (TABLES, CONVERSIONS, INTEGERS) else target
    runtime = {"cpu": None, "cpu:alderlake": TEXT}.get(target, "emulator")
    try:
        session = Session(target, runtime)
    except UnknownProcessor:
        pytest.skip("another family of processors")
    # A strategy that draws something new draws other programs from each seed: the next seeds find the defect then.
    for seed in range(chunk.seed, chunk.seed + _SEEDS):
        try:
            with tile.disable_cache():
                search(dataclasses.replace(chunk, seed=seed), session, lambda kind, count: None)
        except WrongProgram as found:
            return str(found)
    pytest.fail(f"none of {_SEEDS} seeds finds it")


@pytest.mark.sweep(12)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FINDS)
def test_a_defect_that_comes_back_is_found(monkeypatch, name):
    report = find(name, monkeypatch)
    assert "def main(" in report
    ways = ("wrong", "did not compile", "but the kernel compiled", "differ", "emulation found")
    assert any(way in report for way in ways)
