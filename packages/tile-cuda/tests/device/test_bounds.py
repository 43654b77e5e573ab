"""Functions of one argument keep the table of bounds on a device, over all float32 values; at level fast over parts."""

import numpy as np
import pytest
from float_sweep import NAMES, part_of_all, swept, worst

import tile_core as tile
import tile_core.language as T
from tile_core.numerics.bounds import ErrorBound, bound_of
from tile_core.numerics.levels import FAST, STANDARD, STRICT

torch = pytest.importorskip("torch")

PARTS = 64
COUNT = 2**32 // PARTS
#: Results that NumPy judges again, for each part.
MOST = 1 << 16

pytestmark = [pytest.mark.device, pytest.mark.sweep(1)]


def exact(name, x):
    """Return the exact results as float64, computed on the device."""
    own = {
        "cbrt": lambda: torch.copysign(x.abs() ** (1 / 3), x),
        "exp10": lambda: torch.pow(torch.full_like(x, 10.0), x),
        "round": lambda: torch.copysign((x.abs() + 0.5).floor(), x),
        "rint": x.round,
        "nearbyint": x.round,
    }
    return own[name]() if name in own else getattr(torch, name)(x)


def suspects(name, x, found, bound):
    """Return the arguments and results that may break the bound: few, and all that do."""
    right = exact(name, x.double())
    right = torch.where(right.abs() > 3.4028235678e38, right.sign() * torch.inf, right)  # rounds to infinity
    unit = torch.ldexp(torch.ones_like(right), torch.frexp(right)[1].clamp(-125, 128) - 24)
    error = (found.double() - right).abs()
    same = (found.double() == right) & (torch.signbit(found) == torch.signbit(right))
    same |= found.isnan() & right.isnan()
    # The device's own float64 functions are nearly exact.
    odd = ~same & (~(error <= (bound.ulp * (1 - 1e-6) - 1e-6) * unit) | (right == 0))
    at = odd.nonzero().flatten()
    return x[at[:MOST]].cpu().numpy(), found[at[:MOST]].cpu().numpy(), len(at)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("level", [STRICT, STANDARD])
def test_functions_of_all_values(name, level):
    function = getattr(T, name)

    @T.prim_func
    def main(X: T.Tensor((COUNT,), "float32"), Y: T.Tensor((COUNT,), "float32")):
        with T.Kernel(T.ceildiv(COUNT, 1024), threads=128) as bx:
            for i in T.Parallel(1024):
                Y[bx * 1024 + i] = function(X[bx * 1024 + i])

    kernel = tile.compile(main, target="cuda", options={"numerics": level})
    bound = bound_of(name, level, "float32") or ErrorBound(0)
    for part in range(PARTS):
        bits = torch.arange(part * COUNT, (part + 1) * COUNT, dtype=torch.int64, device="cuda")
        x = torch.where(bits < 2**31, bits, bits - 2**32).to(torch.int32).view(torch.float32)
        y = torch.full_like(x, float("nan"))
        kernel(x, y)
        arguments, found, count = suspects(name, x, y, bound)
        assert count < MOST, count
        if count:
            judged = worst(name, arguments, found, level)
            assert judged.ratio <= 1, judged


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("part", np.random.default_rng().integers(0, 256, 2))
def test_functions_at_level_fast(name, part):
    found = swept(name, part_of_all(int(part), 256), "cuda", None, FAST)
    assert found.ratio <= 1, found
