"""Copies of boxes of tensors: results, byte order, and detected mistakes."""

import numpy as np
import pytest

from ..vectors.copies import load_of, random_array, store_of
from .launches import kinds, report_text, run_copy

pytestmark = pytest.mark.sweep(8)


def run_load(*args, parts=None, fields=None, **how):
    copy, expected = load_of(*args, parts=parts, fields=fields)
    return run_copy(copy, **how), expected


def run_store(*args, operation="", parts=None, fields=None, **how):
    copy, expected = store_of(*args, operation=operation, parts=parts, fields=fields)
    return run_copy(copy, **how), expected


SHAPES = {
    "1d": ((100,), (96,), (32,)),
    "2d": ((37, 64), (8, 0), (16, 32)),
    "2d outside": ((37, 64), (30, 48), (16, 32)),
    "2d before the start": ((37, 64), (-3, -16), (16, 32)),
    "3d": ((5, 7, 32), (1, 6, 16), (2, 3, 16)),
    "4d": ((3, 4, 5, 16), (2, -1, 3, 0), (2, 2, 4, 16)),
    "5d": ((2, 3, 2, 5, 16), (1, 1, 1, 2, 0), (2, 2, 1, 4, 16)),
}


@pytest.mark.parametrize("completion", ["early", "late"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64"])
@pytest.mark.parametrize("name", SHAPES)
def test_a_box_arrives_with_zeros_outside(name, dtype, completion):
    shape, at, box = SHAPES[name]
    size = 16 // np.dtype(dtype).itemsize
    shape, box, at = (*shape[:-1], -(-shape[-1] // size) * size), (*box[:-1], max(box[-1], size)), at
    if (at[-1] * np.dtype(dtype).itemsize) % 16:
        at = (*at[:-1], 0)
    result, expected = run_load(random_array(shape, dtype), at, box, completion=completion)
    assert result.ok, report_text(result)
    assert np.array_equal(result.outputs["out"], expected)


@pytest.mark.parametrize("swizzle", [32, 64, 128])
def test_a_swizzle_exchanges_chunks_by_their_address(swizzle):
    result, expected = run_load(random_array((40, 256), "uint8"), (3, 16), (24, swizzle), fields={"swizzle": swizzle})
    assert result.ok, report_text(result)
    assert np.array_equal(result.outputs["out"], expected)


def test_the_start_of_a_view_counts():
    whole = random_array((20, 64), "float32")
    array = whole[3:19, 16:48]
    result, expected = run_load(array, (2, 8), (8, 16))
    assert result.ok, report_text(result)
    assert np.array_equal(result.outputs["out"], expected)


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        ({"EXPECT": "expect(full, BYTES - 16);"}, {"race", "deadlock", "phase", "uninitialised"}),
        ({"EXPECT": "expect(full, BYTES + 16);"}, {"deadlock"}),
        ({"EXPECT": "arrive(full);"}, {"race", "phase", "uninitialised", "async"}),
        ({"EXPECT": ""}, {"deadlock"}),
        ({"EXPECT": "expect(full, BYTES); arrive(full);"}, {"phase", "race", "uninitialised"}),
        ({"WAIT": ""}, {"race", "uninitialised", "async"}),
        ({"WAIT": "wait(full, 1);"}, {"race", "uninitialised", "async", "deadlock"}),
        ({"WAIT": "__syncthreads();"}, {"race", "uninitialised", "async"}),
        ({"WAIT": "if (threadIdx.x == 0) wait(full, 0);"}, {"race", "uninitialised"}),
        ({"INIT": "init(full, 2); fence_init();"}, {"deadlock"}),
        ({"INIT": "fence_init();"}, {"phase"}),
        ({"INIT": "init(full, 0); fence_init();"}, {"phase"}),
        # The fence of initialisations is of these alone, and of those before it that its own thread has made.
        ({"INIT": "to[5] = 1; init(full, 1); fence_init();"}, {"race"}),
        ({"INIT": "to[5] = 1; init(full, 1); fence_init(); fence_proxy();"}, None),
        ({"INIT": "to[5] = 1; init(full, 1); fence_proxy();"}, None),
        ({"INIT": "to[5] = 1; fence_proxy(); init(full, 1); fence_init();"}, None),
        ({"INIT": "fence_init(); init(full, 1);"}, {"phase"}),
        ({"INIT": "init(full, 1); } if (threadIdx.x == 1) { fence_init();"}, {"phase", "race"}),
        ({"INIT": "to[5] = 1; init(full, 1);"}, {"race", "phase"}),
        ({"AFTER": "to[0] = 1;"}, {"race"}),
    ],
)
@pytest.mark.parametrize("completion", ["early", "late"])
def test_mistakes_around_a_copy_are_found(parts, kind, completion):
    result, _ = run_load(random_array((64, 64), "uint8"), (16, 16), (16, 32), parts=parts, completion=completion)
    assert not kind if result.ok else kinds(result) <= (kind or set()), report_text(result)


@pytest.mark.parametrize("completion", ["early", "late"])
@pytest.mark.parametrize("name", SHAPES)
def test_a_box_is_stored_inside_the_tensor_only(name, completion):
    shape, at, box = SHAPES[name]
    at = tuple(max(a, 0) for a in at)
    result, expected = run_store(shape, "int32", at, box, completion=completion)
    assert result.ok, report_text(result)
    assert np.array_equal(result.outputs["out"], expected)


@pytest.mark.parametrize("at", [(-1, 0), (0, -4)])
def test_nothing_is_stored_at_negative_coordinates(at):
    result, _ = run_store((40, 64), "int32", at, (16, 32))
    assert kinds(result) == {"async"}, report_text(result)


@pytest.mark.parametrize("operation", ["add", "max", "xor"])
def test_a_box_is_reduced_into_the_tensor(operation):
    result, expected = run_store((40, 64), "int32", (30, 48), (16, 32), operation=operation, fields={"swizzle": 128})
    assert result.ok, report_text(result)
    assert np.array_equal(result.outputs["out"], expected)


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        ({"PROXY": ""}, {"race"}),
        ({"COMMIT": ""}, {"async"}),
        ({"WAIT": ""}, {"async"}),
        ({"WAIT": "from[3] = 1; wait_read();"}, {"race"}),
        ({"WAIT": "if (out[8 * 64] == 77) from[0] = 1; wait_group();"}, {"race"}),
        ({"WAIT": "wait_read(); if (out[8 * 64] == 77) from[0] = 1;"}, {"race"}),
        ({"WAIT": "wait_group(); if (out[8 * 64] == 77) from[0] = 1;"}, None),
        ({"AFTER": "from[threadIdx.x] = 1;"}, {"race"}),
        ({"AFTER": "__syncthreads(); from[threadIdx.x] = 1;"}, None),
    ],
)
@pytest.mark.parametrize("completion", ["early", "late"])
def test_mistakes_around_a_store_are_found(parts, kind, completion):
    result, _ = run_store((40, 64), "int32", (8, 0), (16, 32), parts=parts, completion=completion)
    assert (kind is None) if result.ok else kinds(result) == kind, report_text(result)


@pytest.mark.parametrize(
    ("array", "box", "fields", "says"),
    [
        (np.zeros((8, 60), "uint8"), (8, 16), {}, "strides"),
        (np.zeros((8, 64), "uint8"), (8, 8), {}, "row of the box"),
        (np.zeros((8, 64), "uint8"), (300, 16), {}, "the box"),
        (np.zeros((8, 256), "uint8"), (8, 256), {"swizzle": 128}, "those of the swizzle"),
        (np.zeros((8, 256), "uint8"), (8, 64), {"swizzle": 128}, "those of the swizzle"),
    ],
)
def test_maps_that_the_driver_refuses(array, box, fields, says):
    with pytest.raises(Exception, match=says):
        run_load(array, (0, 0), box, fields=fields)
