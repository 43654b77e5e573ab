"""What a launch reserves for arrays of threads: the count of bytes, the warning, and what is better."""

from __future__ import annotations

import pytest
from expected_errors import raises_error

from tile_core.compat.tvm import tirx
from tile_core.errors.plugins import InvalidDeclaration
from tile_core.ir import nodes
from tile_core.simt.memory.private_arrays import PrivateArrays, private_arrays
from tile_core.target import Capabilities

MANY = Capabilities(shared_bytes=1 << 16, resident_threads=1 << 18)


def alloc(count, dtype="float32", scope="local", name="L"):
    return nodes.alloc([count], dtype, name, scope)[1]


def found(*statements, capabilities=MANY, arrays=None):
    return private_arrays(nodes.seq([*statements]), capabilities, arrays or {})


def loop(*statements):
    return nodes.for_loop(nodes.fresh("i"), 4, nodes.seq([*statements]), "serial")


def test_live_arrays_of_a_block_add_up_and_arrays_of_separate_blocks_do_not():
    assert found(alloc(100), alloc(50, "float16")).bytes == 500
    assert found(alloc(100), loop(alloc(10)), loop(alloc(30))).bytes == 520
    assert found(loop(alloc(10), loop(alloc(5))), alloc(1)).bytes == 64
    branch = tirx.IfThenElse(nodes.const(1, "bool"), alloc(10), alloc(20))
    assert found(branch, alloc(2)).bytes == 88
    assert found(alloc(7, "int4"), alloc(3, "bool")).bytes == 4 + 3
    assert found(alloc(1, scope="local.var"), alloc(100, scope="shared")).bytes == 4
    assert found(alloc(100, scope="shared")) == PrivateArrays()


def test_the_largest_has_the_name_that_the_program_gives_it():
    fragment = tirx.decl_buffer([64, 64], "float32", "C", scope="local.fragment", layout=None)
    made = alloc(4096, name="C_registers")
    one = found(alloc(10), made, arrays={fragment: made.buffer})
    assert (one.name, one.most, one.of_fragment) == ("C", 16384, True)
    other = found(alloc(10), made)
    assert (other.name, other.of_fragment, other.resident) == ("C_registers", False, 1 << 18)


@pytest.mark.parametrize(
    ("facts", "threads", "words"),
    [
        ({"bytes": 1 << 15, "most": 1 << 15}, 1, "9 GB; T.alloc_shared has room for L of all threads of a block"),
        ({"bytes": 1 << 15, "most": 1 << 15}, 4, "a part of a T.alloc_global for each thread of the launch, instead"),
        ({"bytes": 1 << 15, "most": 1 << 15, "of_fragment": True}, 1, "more threads, of which each holds less of L"),
        ({"bytes": (1 << 15) - 4, "most": 1 << 10}, 1, ""),
        ({"bytes": 1 << 30, "most": 1 << 30, "resident": 0}, 1, ""),
    ],
)
def test_much_is_warned_of_with_what_is_better(facts, threads, words):
    note = PrivateArrays(**{"name": "L", "resident": 1 << 18, **facts}).performance_note(threads, 1 << 16)
    assert (note is not None) == bool(words)
    if note is not None:
        assert note.kind == "memory"
        assert note.text.startswith(f"each thread has {facts['bytes']:,} bytes of arrays, and a launch reserves")
        assert words in note.text


def test_targets_declare_how_many_threads():
    assert Capabilities().resident_threads == 0
    with raises_error(InvalidDeclaration, field="resident_threads"):
        Capabilities(resident_threads=-1)
