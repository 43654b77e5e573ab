"""The package as the core sees it: cheap, complete, and the same on every machine."""

import subprocess
import sys
from importlib.metadata import entry_points, requires, version
from pathlib import Path

import pytest
from expected_errors import raises_error

import tile_core as tile
import tile_core.language as T
import tile_metal
from tile_core.errors import TileError
from tile_core.plugins.manager import installed
from tile_metal import target
from tile_metal.errors import UnknownFamily
from tile_metal.options import MetalOptions

ROOT = Path(__file__).parents[3]
HIDDEN = ("mlx", "torch", "cuda", "nvidia", "cupy")


def run(code):
    hide = f"import sys; sys.modules.update(dict.fromkeys({HIDDEN}))\n"
    done = subprocess.run([sys.executable, "-c", hide + code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_importing_loads_nothing():
    loaded = run("""
import tile_metal.plugin as p
p.tile_backend(), p.tile_target("metal"), p.tile_language(), p.tile_runtimes(p.tile_target("metal:metal4"))
print(*sorted(m for m in sys.modules if m.partition(".")[0] in ("tvm", "mlx", "torch", "numpy") and sys.modules[m]))
""")
    assert loaded == []


KERNEL = """
import tile_core.language as T

@T.prim_func
def double(X: T.Tensor((70,), "float16"), Y: T.Tensor((70,), "float16")):
    with T.Kernel(2, threads=64) as bx:
        for i in T.Parallel(64):
            Y[bx * 64 + i] = X[bx * 64 + i] * 2
"""


@pytest.mark.sweep(2)
def test_text_needs_no_library_of_a_vendor(tmp_path):
    (tmp_path / "kernel.py").write_text(KERNEL)
    assert run(f"""
sys.path.insert(0, {str(tmp_path)!r})
import kernel, tile_core as tile
print("[[kernel" in tile.compile(kernel.double, target="metal").source)
""") == ["True"]


def test_the_core_finds_it():
    plugins = installed()
    found = plugins.resolve_target("metal")
    assert found is plugins.resolve_target("metal")
    assert plugins.manifest("metal").api == ">=1,<2"
    assert [a.name for a in plugins.runtimes(found)] == ["metal", "mlx", "torch"]
    assert {e.value for e in entry_points(group="tile.checks", name="metal")} == {"tile_metal.doctor:checks"}


def test_the_version_is_that_of_the_distribution():
    assert version("tile-metal") == tile_metal.__version__


def test_on_a_mac_it_brings_mlx_and_elsewhere_nothing_of_a_vendor():
    needs = requires("tile-metal")
    assert [n for n in needs if n.startswith("mlx")] == [
        n for n in needs if "sys_platform == 'darwin'" in n.replace('"', "'")
    ]
    others = [n for n in needs if "darwin" not in n]
    assert [n.partition("<")[0] for n in others] == ["tile-core"]
    core = requires("tile-core")
    assert not any(n.startswith(("torch", "mlx", "cuda", "nvidia")) for n in [*others, *core] if "extra" not in n)


class TestTargets:
    def test_names(self):
        assert target.parse_target("metal").text == "metal"
        assert target.parse_target("metal:metal3").text == "metal"
        assert target.parse_target("metal:metal4").text == "metal:metal4"
        assert target.parse_target("cuda") is None

    def test_only_metal4_has_tensor_operations(self):
        facts = [target.make_target(f).capabilities.fact(target.TENSOR_OPS) for f in ("metal3", "metal4")]
        assert facts == [False, True]
        assert [target.RECORDS[f].language for f in ("metal3", "metal4")] == [(3, 1), (4, 0)]

    def test_an_unknown_family_names_the_known_ones(self):
        with raises_error(UnknownFamily, found="metal9") as found:
            target.parse_target("metal:metal9")
        assert "metal:metal4" in str(found.value)

    def test_what_a_device_has(self):
        found = target.make_target("metal3").capabilities
        assert (found.execution_width, found.max_threads, found.shared_bytes) == (32, 1024, 32768)
        assert "float64" not in found.native_dtypes
        assert not any(dtype.endswith("64") for _, dtype in found.atomics)

    @pytest.mark.parametrize(
        ("system", "machine", "release", "chip", "found"),
        [
            ("linux", "x86_64", "", "", None), ("darwin", "x86_64", "26.1", "", None),
            ("darwin", "arm64", "13.6", "Apple M2", None),
            ("darwin", "arm64", "14.0", "Apple M1", "metal"), ("darwin", "arm64", "26.2", "Apple M4 Pro", "metal"),
            ("darwin", "arm64", "26.2", "Apple M5", "metal:metal4"), ("darwin", "arm64", "26.1", "Apple M5", "metal"),
        ],
    )  # fmt: skip
    def test_detection(self, monkeypatch, system, machine, release, chip, found):
        monkeypatch.setattr(target.sys, "platform", system)
        monkeypatch.setattr(target.platform, "machine", lambda: machine)
        monkeypatch.setattr(target.platform, "mac_ver", lambda: (release, ("", "", ""), ""))
        monkeypatch.setattr(target.versions, "chip", lambda: chip)
        monkeypatch.setattr(target, "_installed", lambda library: None)
        detected = target.detect()
        assert (None if detected is None else detected.text) == found


class TestOptions:
    def test_default(self):
        assert MetalOptions().attributes() == {}
        assert MetalOptions.from_attributes({"metal.fast_math": True, "other": 3}) == MetalOptions(numerics="fast")

    def test_types(self):
        with pytest.raises(TypeError, match="line_info"):
            MetalOptions(line_info=1)
        with pytest.raises(ValueError, match="numerics"):
            MetalOptions(numerics=1)

    def test_fast_math_is_asked_for(self):
        @T.prim_func
        def roots(X: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=64):
                for i in T.Parallel(64):
                    X[i] = T.exp(X[i])

        precise = tile.compile(roots, target="metal").source
        fast = tile.compile(roots, target="metal", options={"numerics": "fast"}).source
        strict = tile.compile(roots, target="metal", options={"numerics": "strict"}).source
        assert "precise::exp" in precise
        assert ["contract(off)" in text for text in (strict, precise, fast)] == [True, False, False]
        assert ["math_mode(safe)" in text for text in (strict, precise, fast)] == [True, True, False]
        assert "fast::exp" in fast

    def test_lines_of_the_user(self):
        @T.prim_func
        def one(X: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=64):
                for i in T.Parallel(64):
                    X[i] = 1.0

        assert "test_plugin.py:" in tile.compile(one, target="metal", options={"line_info": True}).source


class TestRefusals:
    def refused(self, body, code):
        with pytest.raises(TileError) as found:
            tile.compile(body, target="metal")
        assert found.value.code == code
        return str(found.value)

    def test_float64(self):
        @T.prim_func
        def wide(X: T.Tensor((64,), "float64")):
            with T.Kernel(1, threads=64):
                for i in T.Parallel(64):
                    X[i] = X[i] + 1.0

        assert "X holds float64; metal has no such type" in self.refused(wide, "U116")

    def test_float64_in_a_tile(self):
        @T.prim_func
        def wide(X: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=64):
                tile = T.alloc_fragment((64,), "float64")
                T.copy(X, tile)
                T.copy(tile, X)

        message = self.refused(wide, "U116")
        assert "tile holds float64" in message
        assert 'T.alloc_fragment((64,), "float64")' in message
        assert "use float32" in message

    def test_float64_between_operations(self):
        @T.prim_func
        def wide(X: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=64):
                for i in T.Parallel(64):
                    X[i] = T.cast(T.cast(X[i], "float64") * 3, "float32")

        assert "float64" in self.refused(wide, "U107")

    @pytest.mark.parametrize("function", [lambda x: x / 3, T.sqrt, T.erf])
    def test_float64_that_nobody_wrote(self, function):
        def program(cast):
            @T.prim_func
            def wide(X: T.Tensor((64,), "int64"), Y: T.Tensor((64,), "float32")):
                with T.Kernel(1, threads=64):
                    for i in T.Parallel(64):
                        Y[i] = function(T.cast(X[i], "float32") if cast else X[i])

            return wide

        assert "T.cast them to float32 before" in self.refused(program(False), "U107")
        tile.compile(program(True), target="metal")

    def test_print(self):
        @T.prim_func
        def prints(X: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=64):
                T.print("x = {}", X[0])

        assert "T.print" in self.refused(prints, "U107")

    def test_an_atomic_of_64_bits_never_becomes_a_loop(self):
        @T.prim_func
        def count(X: T.Tensor((1,), "int64")):
            with T.Kernel(4, threads=64):
                T.atomic_add(X[0], 1)

        assert "int32" in self.refused(count, "U101")

    def test_an_order_that_metal_has_not(self):
        @T.prim_func
        def look(X: T.Tensor((1,), "int32"), Y: T.Tensor((1,), "int32")):
            with T.Kernel(1, threads=64):
                Y[0] = T.atomic_load(X[0], memory_order="seq_cst")

        assert "'relaxed'" in self.refused(look, "U101")

    def test_too_many_buffers(self, tmp_path):
        names = ", ".join(f"X{i}: T.Tensor((4,), 'float32')" for i in range(32))
        body = "\n".join(f"        X{i}[0] = 1.0" for i in range(32))
        path = tmp_path / "many.py"
        path.write_text(f"@T.prim_func\ndef many({names}):\n    with T.Kernel(1, threads=32):\n{body}\n")
        space = {"T": T}
        exec(compile(path.read_text(), str(path), "exec"), space)
        assert "32 buffers" in self.refused(space["many"], "U802")


@pytest.mark.sweep(2)
def test_the_command_line_prints_msl():
    code = "from tile_core.cli import main; main()"
    command = [sys.executable, "-c", code, "compile", str(ROOT / "examples" / "gemm.py"), "--target", "metal"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("#include <metal_stdlib>")
    assert "simdgroup_multiply_accumulate" in done.stdout
