"""Test functions specialised for one form of calls: they match that form only."""

import pytest

from tile_core.abi.signature import Param, Signature
from tile_core.errors import launch as errors
from tile_core.errors.setup import RuntimeBroken
from tile_core.runtime.kernel import Kernel
from tile_runtime.calls import guards
from tile_runtime.calls.binder import Binder
from tile_runtime.calls.repeat import PreparedLaunches, Repeat

torch = pytest.importorskip("torch")


class Addresses:
    """An adapter and its launch: takes addresses, and counts the launches of both ways."""

    name, convention, devices = "addresses", "pointers", frozenset({1})

    def __init__(self, masks=(), refuse=False):
        self.masks, self.refuse, self.long, self.short, self.fail = masks, refuse, [], [], None

    def allocate(self, *output):
        return None

    def __call__(self, values, location):
        self.long.append(tuple(values))

    def repeat(self, values, location, moving):
        given = list(values)

        def launch(*now):
            if self.fail:
                raise self.fail
            for i, value in zip(moving, now, strict=True):
                given[i] = value
            self.short.append(tuple(given))

        return None if self.refuse else Repeat(launch, self.masks)

    @property
    def counts(self):
        return len(self.long), len(self.short)


def tensor(name, *shape, dtype="float32", access="read", **more):
    return Param(name, "tensor", dtype, shape, access=access, **more)


def binder(launch, *params, out_idx=(), hidden=None):
    return Binder(Signature("f", params, out_idx), launch, launch, hidden)


ABC = (tensor("A", "m", "k"), tensor("B", "k", "n"), tensor("C", "m", "n", access="write"))


def abc(m=3, n=5, k=7):
    return torch.rand(m, k), torch.rand(k, n), torch.rand(m, n)


def test_the_third_call_takes_it():
    launch = Addresses()
    call = binder(launch, *ABC)
    for _ in range(5):
        args = abc()
        call(*args)
    assert launch.counts == (2, 3)
    symbols = launch.long[0][3:]
    assert sorted(symbols) == [3, 5, 7]
    assert launch.short[-1] == (*(a.data_ptr() for a in args), *symbols)


def ready(launch, call, *args):
    """Make calls until the function of the form launches the short way; forget them."""
    for _ in range(3):
        call(*args)
    assert launch.counts == (2, 1)
    launch.long, launch.short = [], []


@pytest.mark.parametrize(
    "change",
    [
        lambda a, b, c: (a.double(), b, c),
        lambda a, b, c: (a.to(torch.int32), b, c),
        lambda a, b, c: (a.half(), b, c),
        lambda a, b, c: (a[:2], b, c),
        lambda a, b, c: (a, b, c[:, :4]),
        lambda a, b, c: (a.t().contiguous().t(), b, c),
        lambda a, b, c: (a[None], b, c),
        lambda a, b, c: (torch._neg_view(a), b, c),
        lambda a, b, c: (a.to_sparse(), b, c),
        lambda a, b, c: (a.to("meta"), b, c),
        lambda a, b, c: (a, b, c.requires_grad_()),
        lambda a, b, c: (a.numpy(), b, c.double()),
        lambda a, b, c: (1, b, c),
        lambda a, b, c: (None, b, c),
        lambda a, b, c: (a, b),
        lambda a, b, c: (a, b, c, c),
        lambda a, b, c: (a, b, a[:, :5].as_strided((3, 5), (5, 1))),
        lambda a, b, c: (a, b, b.flatten()[-15:].view(3, 5)),
    ],
)
def test_what_is_wrong_is_still_refused(change):
    launch = Addresses()
    call = binder(launch, *ABC)
    ready(launch, call, *abc())
    with pytest.raises(errors.LaunchError):
        call(*change(*abc()))
    assert launch.counts == (0, 0)
    call(*abc())
    assert launch.counts == (0, 1)


def test_other_forms_have_their_own():
    launch = Addresses()
    call = binder(launch, *ABC)
    forms = [abc(m, m + 1, m + 2) for m in range(1, 4)]
    for _ in range(4):
        for args in forms:
            call(*args)
    assert launch.counts == (6, 6)
    for a, _, c in forms:
        assert {a.data_ptr(), c.data_ptr(), *a.shape, *c.shape} <= set(
            next(found for found in launch.short if found[0] == a.data_ptr())
        )


def test_more_forms_than_are_kept():
    launch = Addresses()
    call = binder(launch, *ABC)
    forms = [abc(m, m + 1, m + 2) for m in range(1, 12)]
    for _ in range(4):
        for args in forms:
            call(*args)
    assert sum(launch.counts) == 44
    for found in (*launch.long, *launch.short):
        assert found in [(a.data_ptr(), b.data_ptr(), c.data_ptr(), *launch_symbols(call, a, c)) for a, b, c in forms]


def launch_symbols(call, a, c):
    values = {"m": a.shape[0], "k": a.shape[1], "n": c.shape[1]}
    return tuple(values[s] for s in call.hidden)


def test_alignment():
    memory = torch.zeros(64, dtype=torch.uint8)
    start = -memory.data_ptr() % 16
    at = lambda offset: memory[start + offset : start + offset + 8]  # noqa: E731
    launch = Addresses(masks=((0, 15),))
    call = binder(launch, tensor("A", 8, dtype="uint8", align=4))
    ready(launch, call, at(0))
    call(at(8))  # right, but not for the text that the short way launches
    assert launch.counts == (1, 0)
    call(at(32))
    assert launch.counts == (1, 1)
    with pytest.raises(errors.Misaligned):
        call(at(1))


def test_overlap_up_to_the_last_byte():
    memory = torch.zeros(64)
    launch = Addresses()
    call = binder(launch, tensor("A", 8), tensor("C", 8, access="write"))
    ready(launch, call, torch.zeros(8), torch.zeros(8))
    a = memory[16:24]
    for low in (8, 24):
        call(a, memory[low : low + 8])
    assert launch.counts == (0, 2)
    for low in (9, 15, 16, 17, 23):
        with pytest.raises(errors.Overlap):
            call(a, memory[low : low + 8])


def test_the_same_tensor_twice_goes_the_long_way():
    launch = Addresses()
    call = binder(launch, tensor("A", 8), tensor("B", 8))
    ready(launch, call, torch.zeros(8), torch.zeros(8))
    a = torch.zeros(8)
    call(a, a)
    assert launch.long == [(a.data_ptr(), a.data_ptr())]


def test_numbers():
    launch = Addresses()
    params = (
        tensor("A", 8),
        Param("s", "scalar", "float32"),
        Param("n", "scalar", "int8"),
        Param("b", "scalar", "bool"),
    )
    call = binder(launch, *params)
    a = torch.zeros(8)
    ready(launch, call, a, 2, 3, True)
    call(a, 5, -128, False)
    assert launch.short == [(a.data_ptr(), 5.0, -128, False)]
    assert [type(v) for v in launch.short[0]] == [int, float, int, bool]
    call(a, 0.5, 1, False)  # another form
    assert launch.long == [(a.data_ptr(), 0.5, 1, False)]
    for bad in ((1, 128, True), (1, 1, 1), (1, 1.0, True), (10**40, 1, True), (1, True, True), ("1", 1, True)):
        with pytest.raises(errors.LaunchError):
            call(a, *bad)
    call(a, 1, 127, b=True)
    assert launch.short[-1] == (a.data_ptr(), 1.0, 127, True)


def test_numbers_that_define_symbols():
    launch = Addresses()
    call = binder(launch, Param("n", "scalar", "int32"), tensor("A", "n"))
    a, b = torch.zeros(8), torch.zeros(9)
    ready(launch, call, 8, a)
    call(9, b)
    assert launch.long == [(9, b.data_ptr(), 9)]
    for n, array in ((9, a), (8, b)):
        with pytest.raises(errors.LaunchError):
            call(n, array)
    call(8, a)
    assert launch.short == [(8, a.data_ptr(), 8)]


def test_outputs():
    launch = Addresses()
    params = (tensor("X", "n", access="write"), tensor("A", "n"), tensor("Y", "n", dtype="bfloat16", access="write"))
    call = binder(launch, *params, out_idx=(2, 0))
    for n in range(4):
        y, x = call(torch.zeros(5))
        assert (x.dtype, x.shape, y.dtype, y.shape) == (torch.float32, (5,), torch.bfloat16, (5,))
        found = (launch.short if n > 1 else launch.long)[-1]
        assert (found[0], found[2], found[3]) == (x.data_ptr(), y.data_ptr(), 5)
    assert launch.counts == (2, 2)


def test_empty_arrays_and_modes():
    launch = Addresses()
    call = binder(launch, tensor("A", "n"), tensor("C", "n", access="write"))
    ready(launch, call, torch.zeros(0), torch.zeros(0))
    with torch.inference_mode():
        call(torch.zeros(0), torch.zeros(0))
    with torch.no_grad():
        call(torch.zeros(0), torch.zeros(0))
    assert sum(launch.counts) == 2


def test_where_there_is_none():
    for launch in (Addresses(refuse=True), Addresses()):
        call = binder(launch, *ABC)
        if not launch.refuse:
            launch.repeat = None
        for _ in range(4):
            call(*abc())
        assert launch.counts == (4, 0)


def test_a_failure_of_the_launch():
    launch = Addresses()
    kernel = Kernel(Signature("f", ABC), launch, adapter=launch)
    ready(launch, kernel, *abc())
    launch.fail = ZeroDivisionError("no")
    with pytest.raises(RuntimeBroken, match="ZeroDivisionError: no"):
        kernel(*abc())
    launch.fail = errors.Overlap(kernel="f", name="A", other="B")
    with pytest.raises(errors.Overlap):
        kernel(*abc())


def test_tensors_are_not_kept_alive():
    import weakref

    launch = Addresses()
    call = binder(launch, *ABC)
    args = abc()
    seen = [weakref.ref(a) for a in args]
    ready(launch, call, *args)
    del args
    assert [r() for r in seen] == [None] * 3


def test_a_check_that_lets_wrong_tensors_pass_is_not_used():
    class Guards:
        def __init__(self, *tensors, **dynamic):
            self.check = lambda *given: True

    assert guards.tested_guards.__wrapped__(torch) is not None
    import sys
    from unittest import mock

    with mock.patch.object(sys.modules["torch._C._dynamo.guards"], "TensorGuards", Guards):
        assert guards.tested_guards.__wrapped__(torch) is None


class Preparing(Addresses):
    """Launches that are prepared, too."""

    def __init__(self, *args):
        super().__init__(*args)
        self.prepared, self.again = [], []

    def repeat(self, values, location, moving):
        found = super().repeat(values, location, moving)

        def prepare(key):
            self.prepared.append(key)
            return ("prepared", key)

        def again(ready, key):
            assert ready == ("prepared", key)
            self.again.append(key)

        return Repeat(found.launch, found.masks, prepare, again)


def test_addresses_that_come_back_are_prepared():
    launch = Preparing()
    call = binder(launch, *ABC)
    args = abc()
    for _ in range(7):
        call(*args)
    key = tuple(a.data_ptr() for a in args)
    assert launch.counts == (2, 2)
    assert (launch.prepared, launch.again) == ([key], [key] * 3)
    for _ in range(2):  # other addresses are checked
        call(*abc())
    assert launch.counts == (2, 4)
    both = torch.rand(60)
    with pytest.raises(errors.Overlap):
        call(both[:21].view(3, 7), args[1], both[20:35].view(3, 5))


def test_outputs_and_integers_are_part_of_the_key():
    launch = Preparing()
    call = binder(
        launch, tensor("A", "m"), Param("s", "scalar", "int32"), tensor("C", "m", access="write"), out_idx=(2,)
    )
    a, kept = torch.rand(5), []
    for i in range(12):
        kept.append(call(a, i % 2))
    assert len({x.data_ptr() for x in kept}) == 12  # so no launch comes back
    assert not launch.again
    del kept
    for i in range(200):
        call(a, i % 2)
    assert launch.again
    assert all(key[0] == a.data_ptr() and key[1] in (0, 1) for key in launch.again)


def test_floats_are_no_keys():
    """-0.0 equals 0.0, and its bits differ."""
    launch = Preparing()
    call = binder(launch, tensor("A", "m", access="write"), Param("s", "scalar", "float32"))
    a = torch.rand(5)
    for x in (0.0, 0.0, 0.0, 0.0, -0.0):
        call(a, x)
    assert not launch.prepared
    assert str(launch.short[-1][1]) == "-0.0"


def test_what_is_kept_is_bounded():
    made = PreparedLaunches(lambda key: key)
    for i in range(5000):
        made.learn((i,))
        made.learn((i,))
    assert made.get((4999,)) == (4999,)
    assert made.get((0,)) is None
    assert len(made._of) <= 256
    for i in range(5000):
        made.learn((-i,))
    assert len(made._once) <= 1024
