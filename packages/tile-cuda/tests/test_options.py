import pytest

from tile_core.errors.plugins import InvalidOptions
from tile_core.plugins.contexts import make_options
from tile_cuda.options import CudaOptions
from tile_cuda.plugin import tile_backend

MANIFEST = tile_backend()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"fast_math": 1}, "fast_math is True or False"),
        ({"line_info": None}, "line_info is True or False"),
        ({"fmad": "yes"}, "fmad is True or False"),
        ({"opt": 4}, "opt is 0, 1, 2 or 3"),
        ({"opt": True}, "opt is 0, 1, 2 or 3"),
        ({"max_registers": 15}, "max_registers is None or a number from 16 to 255"),
        ({"max_registers": 256}, "max_registers is None or a number from 16 to 255"),
        ({"max_registers": 32.0}, "max_registers is None or a number from 16 to 255"),
        ({"fastmath": True}, "'fast_math'"),
    ],
)
def test_nonsense_is_refused(given, expected):
    with pytest.raises(InvalidOptions, match="S1") as caught:
        make_options(MANIFEST, given)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [CudaOptions(), CudaOptions(fast_math=True), CudaOptions(max_registers=255, line_info=True, opt=0, fmad=True)],
)
def test_travel_in_the_attributes_of_a_text(options):
    attributes = {**options.attributes(), "cluster": 2}
    assert CudaOptions.from_attributes(attributes) == options
    assert all(isinstance(v, (bool, int, float, str)) for v in attributes.values())


def test_defaults_say_nothing():
    assert CudaOptions().attributes() == {}


def test_the_manifest():
    assert MANIFEST.name == "cuda"
    assert MANIFEST.target_kinds == ("cuda",)
    assert MANIFEST.fingerprint.startswith("tile_cuda ")
