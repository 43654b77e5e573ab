import pytest

import tile_core as tile
from tile_core import renamed_options as renaming
from tile_core.errors.plugins import InvalidOptions
from tile_core.plugins.contexts import make_options
from tile_core.plugins.manager import installed
from tile_core.renamed_options import RenamedOption, renamed_of
from tile_cuda.options import CudaOptions
from tile_cuda.plugin import tile_backend

MANIFEST = tile_backend()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"numerics": "exact"}, "numerics is 'strict', 'standard', 'fast'"),
        ({"line_info": None}, "line_info is True, False or 'text'"),
        ({"line_info": "python"}, "line_info is True, False or 'text'"),
        ({"opt": 4}, "opt is 0, 1, 2 or 3"),
        ({"opt": True}, "opt is 0, 1, 2 or 3"),
        ({"max_registers": 15}, "max_registers is None or a number from 16 to 255"),
        ({"max_registers": 256}, "max_registers is None or a number from 16 to 255"),
        ({"max_registers": 32.0}, "max_registers is None or a number from 16 to 255"),
        ({"tma": "often"}, "tma is one of 'never', 'auto', 'always'"),
        ({"rasterization": True}, "rasterization is one of 'never', 'auto', 'always'"),
        ({"epilogue": "yes"}, "epilogue is one of 'never', 'auto', 'lanes', 'always'"),
        ({"persistent": 0}, "persistent is one of 'never', 'auto', 'always', or a number of blocks"),
        ({"persistent": True}, "or a number of blocks"),
        ({"clusters": 3}, "clusters is one of 'never', 'auto', 'always', 'pairs', or 2 or 4 blocks"),
        ({"clusters": True}, "or 2 or 4 blocks"),
        ({"numeric": "fast"}, "'numerics'"),
    ],
)
def test_nonsense_is_refused(given, expected):
    with pytest.raises(InvalidOptions, match="S1") as caught:
        make_options(MANIFEST, given)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        CudaOptions(),
        CudaOptions(numerics="fast"),
        CudaOptions(max_registers=255, line_info=True, opt=0, numerics="strict"),
    ],
)
def test_travel_in_the_attributes_of_a_text(options):
    attributes = {**options.attributes(), "cluster": 2}
    assert CudaOptions.from_attributes(attributes) == options
    assert all(isinstance(v, (bool, int, float, str)) for v in attributes.values())


def test_defaults_report_nothing():
    assert CudaOptions().attributes() == {}


def test_the_manifest():
    assert MANIFEST.name == "cuda"
    assert MANIFEST.target_kinds == ("cuda",)
    assert MANIFEST.fingerprint.startswith("tile_cuda ")


def test_fast_math_of_another_dialect_is_a_level_of_numerics():
    key = tile.PassConfigKey.TL_ENABLE_FAST_MATH
    cpu, gpu = (installed().resolve_target(text) for text in ("cpu", "cuda:sm_80"))
    faster = tile.jit(pass_configs={key: True})(lambda: None)
    assert faster.options_for(cpu) == {"numerics": "fast"}
    assert faster.options_for(gpu) == {"numerics": "fast"}
    asked = tile.jit(pass_configs={key: True}, options={"line_info": True})(lambda: None)
    assert asked.options_for(gpu) == {"numerics": "fast", "line_info": True}
    given = tile.jit(pass_configs={key: True}, options={"numerics": "standard"})(lambda: None)
    assert given.options_for(gpu) == {"numerics": "standard"}
    assert tile.jit(pass_configs={key: False})(lambda: None).options_for(gpu) is None


@pytest.mark.parametrize(("old", "new"), [p for p in renamed_of(CudaOptions).items() if isinstance(p[1], str)])
def test_old_names_are_options_of_the_new_names(old, new, monkeypatch):
    monkeypatch.setattr(renaming, "_warned", set())
    with pytest.warns(RenamedOption, match=f"^option {old} is now {new}$"):
        found = make_options(MANIFEST, {old: "never"})
    assert found == CudaOptions(**{new: "never"})
    with pytest.raises(InvalidOptions, match=f"option {old} is now {new}"):
        make_options(MANIFEST, {old: "never", new: "never"})
    assert CudaOptions.from_attributes({f"cuda.{old}": "never"}) == found


@pytest.mark.parametrize(
    ("given", "level", "stated"),
    [
        ({"fast_math": True}, "fast", "numerics='fast'"),
        ({"fast_math": False}, "standard", "numerics"),
        ({"fast_accum": True}, "fast", "numerics='fast'"),
        ({"fmad": True}, "standard", "numerics"),
        ({"fmad": False}, "strict", "numerics='strict'"),
        ({"promote": 128}, "standard", "numerics='standard'"),
        ({"promote": 0}, "standard", "numerics"),
        ({"promote": 256}, "fast", "numerics='fast'"),
    ],
)
def test_old_options_of_numerics_are_levels(given, level, stated, monkeypatch):
    monkeypatch.setattr(renaming, "_warned", set())
    (old,) = given
    with pytest.warns(RenamedOption, match=f"^option {old} is now {stated}$"):
        assert make_options(MANIFEST, given) == CudaOptions(numerics=level)
    with pytest.raises(InvalidOptions, match="numerics only"):
        make_options(MANIFEST, {**given, "numerics": "fast"})
    assert CudaOptions.from_attributes({f"cuda.{name}": value for name, value in given.items()}).numerics == level


def test_of_several_old_options_one_level_applies(monkeypatch):
    monkeypatch.setattr(renaming, "_warned", {(CudaOptions, name) for name in renamed_of(CudaOptions)})
    assert CudaOptions(fmad=False, fast_math=True).numerics == "fast"
    assert CudaOptions(fast_accum=True, promote=128).numerics == "standard"
    assert CudaOptions(fmad=False, fast_math=False).numerics == "strict"
    with pytest.raises(TypeError, match="fast_math is True or False"):
        CudaOptions(fast_math=1)
    for given in ({"fast_math": 1}, {"promote": 100}, {"promote": "x"}, {"numerics": [1]}):
        with pytest.raises(InvalidOptions):
            make_options(MANIFEST, given)
