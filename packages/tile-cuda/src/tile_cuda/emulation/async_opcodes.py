"""Opcodes of barriers with transactions, of bulk copies and of clusters, and their models.

PTX writes the same instruction in several ways: the state space ``shared`` is ``shared::cta``, and the default order
may be named. All of them have one model.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

Row = tuple[str, str]
OWN = ("shared::cta", "shared")


def rows() -> Iterator[Row]:
    """Return opcodes and their model functions, for sm_90 and later."""
    yield from _barriers()
    yield from _bulk()
    yield from _tensors()
    yield from _clusters()


def sm_80_rows() -> Iterator[Row]:
    """Return the opcodes of sm_80: barriers that count arrivals, and cp.async arrivals."""
    for space in OWN:
        yield f"mbarrier.init.{space}.b64", "mbarrier_init"
        yield f"mbarrier.inval.{space}.b64", "mbarrier_inval"
        yield f"mbarrier.arrive.{space}.b64", "mbarrier_arrive"
        yield f"mbarrier.test_wait.{space}.b64", "mbarrier_test"
        yield f"mbarrier.test_wait.parity.{space}.b64", "mbarrier_test_parity"
        yield f"cp.async.mbarrier.arrive.noinc.{space}.b64", "mbarrier_arrive_after_copies"


def sm_100_rows() -> Iterator[Row]:
    """Return the copies of four rows that sm_100 and all later architectures have."""
    for hint, suffix in _HINTS:
        opcode = f"cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.{_COMPLETION}{hint}"
        yield opcode, f"tensor_load{suffix}<ptx::FourRows>"


def four_rows() -> Iterator[Row]:
    """Return the other copies of four rows, which only architectures with tensor memory have."""
    head, cluster = "cp.async.bulk.tensor.2d", "shared::cluster.global.tile::gather4"
    for hint, suffix in _HINTS:
        yield f"{head}.{cluster}.{_COMPLETION}{hint}", f"tensor_load{suffix}<ptx::FourRows>"
        multicast = f"{head}.{cluster}.{_COMPLETION}.multicast::cluster{hint}"
        yield multicast, f"tensor_load_multicast{suffix}<ptx::FourRows>"
        yield f"{head}.global.shared::cta.tile::scatter4.bulk_group{hint}", f"tensor_store{suffix}<ptx::FourRows>"


_COMPLETION = "mbarrier::complete_tx::bytes"
_HINTS = (("", ""), (".L2::cache_hint", "_hint"))


def _barriers() -> Iterator[Row]:
    releases = ("", ".release.cta", ".release.cluster")
    for space, order in product(OWN, releases):
        yield f"mbarrier.arrive.expect_tx{order}.{space}.b64", "mbarrier_arrive_expect_tx"
        if order:
            yield f"mbarrier.arrive{order}.{space}.b64", "mbarrier_arrive"
    for order in releases:
        yield f"mbarrier.arrive{order}.shared::cluster.b64", "mbarrier_arrive_cluster"
        yield f"mbarrier.arrive.expect_tx{order}.shared::cluster.b64", "mbarrier_arrive_expect_tx_cluster"
    for scope in ("cta", "cluster"):
        for space in OWN:
            yield f"mbarrier.expect_tx.relaxed.{scope}.{space}.b64", "mbarrier_expect_tx"
        yield f"mbarrier.expect_tx.relaxed.{scope}.shared::cluster.b64", "mbarrier_expect_tx_cluster"
    for wait, order, space in product(("test_wait", "try_wait"), ("", ".acquire.cta", ".acquire.cluster"), OWN):
        if (wait, order) != ("test_wait", ""):
            yield f"mbarrier.{wait}.parity{order}.{space}.b64", "mbarrier_test_parity"
    yield "fence.mbarrier_init.release.cluster", "fence_mbarrier_init"
    for space in ("", ".shared::cta", ".shared::cluster", ".global"):
        yield f"fence.proxy.async{space}", "fence_proxy_async"


def _bulk() -> Iterator[Row]:
    head, completion = "cp.async.bulk", "mbarrier::complete_tx::bytes"
    for hint, suffix in (("", ""), (".L2::cache_hint", "_hint")):
        for space in ("shared::cta", "shared::cluster"):
            yield f"{head}.{space}.global.{completion}{hint}", f"bulk_load{suffix}"
        multicast = f"{head}.shared::cluster.global.{completion}.multicast::cluster"
        yield f"{multicast}{hint}", f"bulk_load_multicast{suffix}"
        yield f"{head}.global.shared::cta.bulk_group{hint}", f"bulk_store{suffix}"
    yield f"{head}.shared::cluster.shared::cta.{completion}", "bulk_to_block"
    for (operation, name), kinds in _REDUCTIONS.items():
        for kind, element in kinds.items():
            opcode = f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation}.{kind}"
            yield opcode, f"bulk_reduce<ptx::{name}, {element}>"
    yield f"{head}.commit_group", "bulk_commit"
    yield f"{head}.wait_group", "bulk_wait"
    yield f"{head}.wait_group.read", "bulk_wait_read"
    yield f"{head}.prefetch.L2.global", "prefetch_bulk"


_INTEGERS = {kind: f"ptx::{kind}" for kind in ("u32", "s32", "u64")}
_BITS = {kind: f"ptx::{kind}" for kind in ("b32", "b64")}
# PTX ISA, "cp.reduce.async.bulk": the operations and their types. Additions of 16-bit floats need `noftz`.
_REDUCTIONS = {
    ("add", "Add"): {**_INTEGERS, "f32": "float", "f64": "double"},
    ("add.noftz", "Add"): {"f16": "ptx::F16", "bf16": "ptx::Bf16"},
    ("min", "Min"): {**_INTEGERS, "s64": "ptx::s64"},
    ("max", "Max"): {**_INTEGERS, "s64": "ptx::s64"},
    ("and", "And"): _BITS, ("or", "Or"): _BITS, ("xor", "Xor"): _BITS,
    ("inc", "Inc"): {"u32": "ptx::u32"}, ("dec", "Dec"): {"u32": "ptx::u32"},
}  # fmt: skip


def _tensors() -> Iterator[Row]:
    completion = "mbarrier::complete_tx::bytes"
    for n, tile in product(range(1, 6), ("", ".tile")):
        head = f"cp.async.bulk.tensor.{n}d"
        for hint, suffix in (("", ""), (".L2::cache_hint", "_hint")):
            for space in ("shared::cta", "shared::cluster"):
                yield f"{head}.{space}.global{tile}.{completion}{hint}", f"tensor_load{suffix}"
            multicast = f"{head}.shared::cluster.global{tile}.{completion}.multicast::cluster"
            yield f"{multicast}{hint}", f"tensor_load_multicast{suffix}"
            yield f"{head}.global.shared::cta{tile}.bulk_group{hint}", f"tensor_store{suffix}"
        for operation in ("add", "min", "max", "and", "or", "xor"):
            opcode = f"cp.reduce.async.bulk.tensor.{n}d.global.shared::cta.{operation}{tile}.bulk_group"
            yield opcode, f"tensor_{operation}"
        yield f"cp.async.bulk.prefetch.tensor.{n}d.L2.global{tile}", "prefetch_tensor"
    yield "prefetch.tensormap", "prefetch_map"


def _clusters() -> Iterator[Row]:
    yield "mapa.shared::cluster.u32", "mapa_shared_cluster_u32"
    for aligned in ("", ".aligned"):
        for order in ("", ".release"):
            yield f"barrier.cluster.arrive{order}{aligned}", "barrier_cluster_arrive"
        yield f"barrier.cluster.arrive.relaxed{aligned}", "barrier_cluster_arrive_relaxed"
        for order in ("", ".acquire"):
            yield f"barrier.cluster.wait{order}{aligned}", "barrier_cluster_wait"
    for order in ("acq_rel", "sc"):
        yield f"fence.{order}.cluster", "fence_cluster"
    yield "elect.sync", "elect_sync"
    for change in ("inc", "dec"):
        yield f"setmaxnreg.{change}.sync.aligned.u32", "setmaxnreg"
    for name in ("wait", "launch_dependents"):
        yield f"griddepcontrol.{name}", "griddepcontrol"
