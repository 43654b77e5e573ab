"""Clusters: multicast copies, remote arrivals, distributed shared memory, and bulk copies of bytes."""

from dataclasses import replace

import numpy as np
import pytest

from ..vectors.copies import bulk_of, multicast_of
from ..vectors.matrix import handed
from .launches import kinds, report_text, run_copy

pytestmark = pytest.mark.sweep(4)


def run_multicast(parts=None, **how):
    copy, expected = multicast_of(parts)
    return run_copy(copy, **how), expected


def run_bulk(*args, completion="early", **how):
    copy, expected = bulk_of(*args, **how)
    return run_copy(copy, completion=completion), expected


@pytest.mark.parametrize("order", ["forward", "reverse", "random"])
@pytest.mark.parametrize("completion", ["early", "late"])
def test_boxes_go_to_all_blocks_of_a_cluster(order, completion):
    result, expected = run_multicast(order=order, completion=completion)
    assert result.ok, report_text(result)
    assert np.array_equal(result.outputs["out"], expected)


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        ({"JOIN": "__syncthreads();"}, {"phase", "race", "cluster"}),
        ({"BLOCKS": "1 << rank"}, {"deadlock"}),
        ({"BLOCKS": "7"}, {"async"}),
        ({"EMPTY": "1"}, {"phase", "race", "deadlock"}),
        ({"EMPTY": "3"}, {"deadlock"}),
        ({"REUSE": ""}, {"race", "phase", "deadlock"}),
        ({"REUSE": "wait(empty, trip & 1);"}, {"deadlock"}),
        ({"RELEASE": "arrive(empty);"}, {"race", "phase", "deadlock"}),
        ({"RELEASE": "if (threadIdx.x == 0) arrive(empty);"}, {"deadlock"}),
        ({"LEAVE": ""}, {"cluster", "async"}),
        (
            {"JOIN": 'asm volatile("barrier.cluster.arrive.relaxed;\\nbarrier.cluster.wait;" ::: "memory");'},
            {"race", "phase"},
        ),
        ({"JOIN": 'asm volatile("barrier.cluster.wait;" ::: "memory");'}, {"cluster"}),
    ],
)
@pytest.mark.parametrize("completion", ["early", "late"])
def test_mistakes_of_a_cluster_are_found(parts, found, completion):
    orders = [run_multicast(parts, completion=completion, order=order)[0] for order in ("forward", "reverse", "random")]
    bad = [result for result in orders if not result.ok]
    assert bad, "no fault was found in any order"
    for result in bad:
        assert kinds(result) <= found, report_text(result)


@pytest.mark.parametrize("completion", ["early", "late"])
@pytest.mark.parametrize("size", [16, 240, 256])
def test_bytes_are_copied_in_bulk(size, completion):
    result, expected = run_bulk(size, completion=completion)
    assert result.ok, report_text(result)
    assert np.array_equal(result.outputs["out"], expected)


def test_a_bulk_copy_adds():
    result, expected = run_bulk(opcode="cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32")
    assert result.ok, report_text(result)
    assert np.array_equal(result.outputs["out"], expected)


@pytest.mark.parametrize(
    ("how", "kind"),
    [({"size": 24}, "async"), ({"start": 3}, "misaligned"), ({"proxy": ""}, "race"), ({"start": 252}, "bounds")],
)
def test_mistakes_of_a_bulk_copy_are_found(how, kind):
    result, _ = run_bulk(**how)
    assert kind in kinds(result), report_text(result)


@pytest.mark.parametrize("completion", ["early", "late"])
def test_a_copy_from_block_to_block_is_illegal_in_a_launch_without_clusters(completion):
    """Refuse block-to-block copies in a launch without clusters, like an H100."""
    case = handed(1, 0, 48, "bulk")
    assert run_copy(case.copy, completion=completion).ok
    alone = replace(case.copy, text=case.copy.text.replace("__cluster_dims__(1, 1, 1) ", ""))
    assert alone.text != case.copy.text
    result = run_copy(alone, completion=completion)
    assert kinds(result) == {"cluster"}
    assert "in a launch without clusters: an illegal instruction" in report_text(result)


def test_a_block_alone_reaches_itself_as_one_of_a_cluster():
    """``mapa``, ``st.shared::cluster`` and the barrier of the cluster, which an H100 ran without clusters."""
    case = handed(1, 0, 48, "b32")
    assert "__cluster_dims__" not in case.copy.kernel().text
    result = run_copy(case.copy)
    assert result.ok, report_text(result)
    assert np.array_equal(result.outputs["out"].reshape(case.held.shape), case.held)
