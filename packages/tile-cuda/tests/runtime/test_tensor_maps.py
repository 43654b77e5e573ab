"""Tensor maps of launches: cached by address, packed behind the values, refused like the driver."""

import struct
import sys
import types

import pytest

from tile_core.abi.adapter import Location
from tile_core.abi.descriptor import TensorDescriptor
from tile_core.abi.kernel_text import KernelText, LaunchFacts, ParamFact
from tile_cuda.runtime import CudaAdapter
from tile_cuda.target import make_target
from tile_cuda_runtime.errors import TensorMapRefused
from tile_cuda_runtime.tensor_map import RULES, TensorMap, broken_rules

from .fake import FakeDriver

HERE = Location((2, 0), "some")
TEXT = """struct __align__(64) CUtensorMap { unsigned long long opaque[16]; };
extern "C" __global__ void f(const float* A, int n, const __grid_constant__ CUtensorMap map) { }
"""


def load(driver, **fields):
    """Load a kernel with an array, a number of rows and a map of both."""
    shape, strides = fields.pop("shape", ("n", 64)), fields.pop("strides", (64, 1))
    of = TensorDescriptor("A", "float32", shape, strides, (8, 32), **fields)
    given = (ParamFact("A", "pointer", "float32", "read", 4), ParamFact("n", "scalar", "int32", "read", 4))
    facts = LaunchFacts("f", (*given, ParamFact("map", "opaque", "", "read", 64, 128, of)), (3, 1, 1), (32, 1, 1))
    return CudaAdapter(make_target("sm_90a"), lambda: driver).load(KernelText(TEXT, facts))


def map_of(values):
    return struct.unpack_from("<QQ", values, 16)


def test_a_map_is_made_once_for_an_address_and_a_size():
    driver = FakeDriver(parameters=2, maps=1)
    launch = load(driver)
    for values in ((4096, 7), (4096, 7), (8192, 7), (4096, 9), (8192, 7)):
        launch(values, HERE)
        assert map_of(driver.launches[-1].values) == values
        assert struct.unpack_from("<Qi", driver.launches[-1].values) == values
    made = [fields for call, *rest in driver.calls if call == "encode_map" for fields in rest]
    assert [(m.address, m.extents) for m in made] == [(4096, (64, 7)), (8192, (64, 7)), (4096, (64, 9))]
    assert made[0] == TensorMap(4096, "float32", (64, 7), (256,), (32, 8))


def test_a_map_is_made_where_its_device_is_current():
    driver = FakeDriver(parameters=2, maps=1, context=None)
    load(driver)((4096, 7), HERE)
    calls = [call for call, *_ in driver.calls]
    assert "entered" in calls[: calls.index("encode_map")]
    assert map_of(driver.launches[-1].values) == (4096, 7)


def test_the_short_form_remakes_maps_of_changed_arguments(monkeypatch):
    module = types.ModuleType("torch")
    module.cuda = types.SimpleNamespace(current_stream=lambda device: types.SimpleNamespace(cuda_stream=500))
    module._C = types.SimpleNamespace(_cuda_getCurrentRawStream=lambda device: 500)
    monkeypatch.setitem(sys.modules, "torch", module)
    driver = FakeDriver(parameters=2, maps=1)
    launch = load(driver)
    location = Location((2, 0), "torch")
    launch((4096, 7), location)
    repeat = launch.repeat((4096, 7), location, (0,))
    for address in (4096, 8192, 12288, 8192):
        repeat.launch(address)
        assert map_of(driver.launches[-1].values) == (address, 7)
    assert driver.short == 4
    assert sum(call == "encode_map" for call, *_ in driver.calls) == 3
    still = launch.repeat((4096, 7), location, ())
    still.launch()
    assert map_of(driver.launches[-1].values) == (4096, 7)
    assert launch.repeat((4096, 7), location, (0, 1)) is None


@pytest.mark.parametrize(
    ("fields", "values", "says"),
    [
        ({}, (4100, 7), "the address 4100"),
        ({"strides": (66, 1)}, (4096, 7), "strides in bytes"),
    ],
)
def test_driver_refusals_are_reported_by_name(fields, values, says):
    driver = FakeDriver(parameters=2, maps=1)
    with pytest.raises(TensorMapRefused, match=f"U703.*f: .*'A': {says}"):
        load(driver, **fields)(values, HERE)
    assert not driver.launches


def test_an_array_without_elements_is_one_zero():
    driver = FakeDriver(parameters=2, maps=1)
    launch = load(driver)
    launch((0, 0), HERE)
    (made,) = [fields for call, *rest in driver.calls if call == "encode_map" for fields in rest]
    assert made == TensorMap(driver.zeros(0), "float32", (1, 1), (16,), (32, 8))
    assert not list(broken_rules(made))
    launch((4096, 3), HERE)
    assert map_of(driver.launches[-1].values) == (4096, 3)


RIGHT = TensorMap(4096, "float16", (128, 100, 3), (256, 25600), (64, 8, 2), 128)


@pytest.mark.parametrize(
    ("changes", "rule", "nearest"),
    [
        ({"extents": (1,) * 6, "strides": (16,) * 5}, "dimensions", {"extents": (1,) * 5, "strides": (16,) * 4}),
        ({"dtype": "float4_e2m1fn"}, "the element type", {"dtype": "float8_e4m3fn", "box": (128, 8, 2)}),
        ({"swizzle": 256}, "the swizzle", {"swizzle": 0}),
        ({"address": 4104}, "the address", {"address": 4112}),
        ({"extents": (128, 0, 3)}, "extents", {"extents": (128, 1, 3)}),
        ({"extents": (128, 2**32 + 1, 3)}, "extents", {"extents": (128, 2**32, 3)}),
        ({"strides": (264, 25600)}, "strides in bytes", {"strides": (272, 25600)}),
        ({"strides": (256, 2**40)}, "strides in bytes", {"strides": (256, 2**40 - 16)}),
        ({"box": (64, 257, 2)}, "the box", {"box": (64, 256, 2)}),
        ({"box": (4, 8, 2)}, "bytes of a row of the box", {"box": (8, 8, 2), "swizzle": 0}),
        ({"box": (72, 8, 2)}, "bytes of a row of the box", {"box": (72, 8, 2), "swizzle": 0}),
        ({"nan": True, "dtype": "uint16"}, "fill", {"nan": True}),
    ],
)
def test_each_rule_has_two_sides(changes, rule, nearest):
    def of(given):
        rank = len(given.get("extents", RIGHT.extents))
        sizes = {"box": (64, 8, 2, 1, 1, 1)[:rank]}
        return TensorMap(**{**vars(RIGHT), **sizes, **given})

    assert rule in [r.what for r in broken_rules(of(changes))]
    assert not list(broken_rules(of(nearest)))


def test_every_rule_is_tested():
    assert len({r.what for r in RULES}) == 9


@pytest.mark.parametrize(("address", "strides", "sector_bytes"), [
    (4096, (256, 25600), 3), (4096, (128,), 3), (4096, (), 3), (4096, (272, 25600), 2), (4096, (256, 25616), 2),
    (4112, (256,), 2), (4160, (), 2),
])  # fmt: skip
def test_rows_inside_of_lines_promote_small_sectors(address, strides, sector_bytes):
    extents = (64,) * (len(strides) + 1)
    assert TensorMap(address, "float16", extents, strides, (8,) * len(extents)).promotion == sector_bytes
