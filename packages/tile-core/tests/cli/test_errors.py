"""Test errors of the command line: code and text of every S3xx."""

from __future__ import annotations

import pytest

from tile_core.abi.signature import Param, Signature
from tile_core.cli.inputs import make_inputs
from tile_core.errors import cli as errors
from tile_core.pairs import pairs


def shown(result, code, *texts):
    assert result.status == 1, result.out
    assert f"error[{code}]: " in result.err
    for text in texts:
        assert text in result.err
    assert "= help: " in result.err
    assert "Traceback" not in result.err


class TestFile:
    def test_missing_names_the_nearest(self, tile, scale):
        missing = scale.with_name("kernel_fil.py")
        result = tile("compile", missing)
        shown(result, "S301", f"cannot read {missing}: there is no such file", f"did you mean {scale}?")

    def test_folder(self, tile, tmp_path):
        shown(tile("compile", tmp_path), "S301", "it is a folder", "give the path of a Python file")

    def test_no_python(self, tile, kernel_file):
        shown(tile("compile", kernel_file("x = 1\n", "kernel.txt")), "S301", "its name does not end in .py")

    def test_not_text(self, tile, tmp_path):
        path = tmp_path / "a.py"
        path.write_bytes(b"x = 1\0")
        assert tile("compile", path).status == 1

    def test_syntax(self, tile, kernel_file):
        path = kernel_file("x = 1\ndef f(:\n    pass\n")
        shown(tile("compile", path), "S302", "is not valid Python: ", f"--> {path}:2", "2 | def f(:")

    def test_raises(self, tile, kernel_file):
        path = kernel_file("def helper():\n    raise ValueError('no good')\n\nhelper()\n")
        result = tile("compile", path)
        shown(result, "S303", f"{path} raised ValueError while it was imported: no good", f"--> {path}:2")
        assert "--verbose shows the traceback" in result.err

    def test_exits(self, tile, kernel_file):
        shown(tile("compile", kernel_file("raise SystemExit(3)")), "S303", "raised SystemExit", "imported: 3")

    def test_verbose_shows_the_traceback(self, tile, kernel_file):
        result = tile("compile", kernel_file("1 / 0"), "--verbose")
        assert result.status == 1
        assert "Traceback" in result.err
        assert "ZeroDivisionError" in result.err

    def test_main_block_does_not_run(self, tile, kernel_file):
        path = kernel_file("if __name__ == '__main__':\n    raise SystemExit(3)\n")
        shown(tile("compile", path), "S304")


class TestKernel:
    two = """
        import tile_core.language as T

        @T.prim_func
        def first(A: T.Tensor((4,), "float32")):
            with T.Kernel(1, threads=1) as bx:
                T.clear(A)

        @T.prim_func
        def second(A: T.Tensor((4,), "float32")):
            with T.Kernel(1, threads=1) as bx:
                T.fill(A, 1)

        number = 3

        def silent(N: int = 4):
            return N
    """

    def test_none(self, tile, kernel_file):
        path = kernel_file("def f():\n    return 1\n")
        shown(tile("compile", path), "S304", f"{path} defines no kernel", "@T.prim_func")

    def test_several(self, tile, kernel_file):
        path = kernel_file(self.two)
        shown(tile("compile", path), "S305", "defines several kernels: first, second", f"name one: {path}:first")

    def test_one_is_named(self, tile, kernel_file):
        assert tile("compile", f"{kernel_file(self.two)}:second").status == 0

    def test_unknown(self, tile, kernel_file):
        path = kernel_file(self.two)
        result = tile("compile", f"{path}:secnd")
        shown(result, "S306", f"{path} has no kernel 'secnd'; it has: first, second", f"did you mean {path}:second?")

    @pytest.mark.parametrize(("name", "found"), [("number", "is int"), ("silent", "returned int")])
    def test_no_kernel_after_all(self, tile, kernel_file, name, found):
        path = kernel_file(self.two)
        shown(tile("compile", f"{path}:{name}"), "S307", f"{name} of {path} {found}; expected a kernel")

    def test_eager_kernel(self, tile, kernel_file):
        path = kernel_file(
            """
            import tile_core as tile
            import tile_core.language as T

            @tile.jit
            def double(A):
                N = T.const("N")
                A: T.Tensor[(N,), "float32"]
                B = T.empty((N,), "float32")
                with T.Kernel(T.ceildiv(N, 16)) as bx:
                    for i in T.Parallel(16):
                        B[bx * 16 + i] = A[bx * 16 + i] * 2
                return B
            """
        )
        shown(tile("compile", path), "S307", "is an eager kernel, whose shapes come from its arguments")

    def test_an_error_of_the_kernel_has_its_line(self, tile, kernel_file):
        path = kernel_file(self.two.replace("T.fill(A, 1)", "A[0, 0] = 1"))
        result = tile("compile", f"{path}:first")
        assert result.status == 1
        assert f"--> {path}:12" in result.err
        assert "12 | A[0, 0] = 1" in result.err

    def test_an_unknown_target(self, tile, scale):
        shown(tile("compile", scale, "-a", "N=4", "-t", "cpuu"), "S104", "'cpuu'", "did you mean 'cpu'?")


class TestArguments:
    @pytest.mark.parametrize("text", ["N", "=3", "1N=3", ""])
    def test_no_pair(self, tile, scale, text):
        result = tile("compile", scale, "--arg", text)
        shown(result, "S308", f"--arg {text!r}: expected name=value", "write for example --arg block_M=128")

    def test_no_pair_of_an_option(self, tile, scale):
        result = tile("compile", scale, "-a", "N=4", "--option", "parallel")
        shown(result, "S308", "--option 'parallel'", "--option parallel=false")

    def test_unknown(self, tile, scale):
        result = tile("compile", scale, "-a", "N=4", "-a", "blok=3")
        shown(result, "S309", "--arg blok: scale has no such argument; it has: N, factor, block", "did you mean block?")

    def test_unknown_where_sizes_count(self, tile, scale):
        result = tile("run", scale, "-a", "N=4", "-a", "s=1.0", "-a", "z=3")
        shown(result, "S309", "--arg z: scaled has no such argument; it has: m, s", "leave it out")

    def test_missing(self, tile, scale):
        result = tile("compile", scale)
        shown(result, "S310", "scale needs a value for N", f"--> {scale}:5", "add --arg N=VALUE")

    def test_missing_scalar(self, tile, scale):
        result = tile("run", scale, "-a", "N=4")
        shown(result, "S310", "scaled needs a value for s, a float32", "add --arg s=VALUE")

    @pytest.mark.sweep(0.25)
    @pytest.mark.parametrize("value", ["-1", "x", "1.5", "true"])
    def test_bad_size(self, tile, scale, value):
        result = tile("run", scale, "-a", "N=4", "-a", "s=1", "-a", f"m={value}")
        shown(result, "S311", "--arg m=", "expected a size, an integer of 0 or more", "--arg m=131")

    def test_bad_scalar(self, tile, scale):
        result = tile("run", scale, "-a", "N=4", "-a", "s=fast")
        shown(result, "S311", "--arg s=fast: expected a float32", "--arg s=1.5")

    def test_the_function_raises(self, tile, scale):
        result = tile("compile", scale, "-a", "N=4", "-a", "block=none")
        assert result.status == 1
        assert "error[" in result.err
        assert f"--> {scale}:" in result.err

    def test_values(self):
        given = ["a=1", "b=-2.5", "c=TRUE", "d=float16", "e=(1, 2)", "f=None", "g=a=b", "block-M=3", "a=2"]
        expected = {"a": 2, "b": -2.5, "c": True, "d": "float16", "e": (1, 2), "f": None, "g": "a=b", "block_M": 3}
        assert pairs("--arg", given, "x=1") == expected


class TestOutput:
    def test_text(self, tile, scale, tmp_path):
        path = tmp_path / "no" / "out.txt"
        result = tile("compile", scale, "-a", "N=4", "-o", path)
        shown(result, "S312", f"cannot write {path}: ", "choose a file in an existing, writable folder")

    def test_dump(self, tile, scale):
        result = tile("compile", scale, "-a", "N=4", "--dump", scale)
        shown(result, "S312", f"cannot write {scale}: ")


class TestInputs:
    @pytest.mark.parametrize(
        ("param", "reason"),
        [
            (Param("p", "pointer", "float32"), "it is a pointer"),
            (Param("A", "tensor", "float32", (4, 4), (8, 1)), "it is declared with strides"),
            (Param("A", "tensor", "float32", (("sub", 1, "m"),)), r"its shape is \(-130,\)"),
        ],
    )
    def test_what_cannot_be_made_up(self, param, reason):
        with pytest.raises(errors.NoInputs, match=reason) as caught:
            make_inputs(Signature("k", (param,)), {}, 0)
        assert caught.value.code == "S313"
        assert f"cannot generate random values for {param.name}" in caught.value.message
        assert "from Python" in caught.value.help

    @pytest.mark.parametrize(("dtype", "value"), [("int32", 3), ("bool", True), ("float16", 2), ("float64", 1.5)])
    def test_scalars(self, dtype, value):
        signature = Signature("k", (Param("s", "scalar", dtype),))
        (made,) = make_inputs(signature, {"s": value}, 0).values
        assert made == value
        assert isinstance(made, bool if dtype == "bool" else int if dtype == "int32" else float)

    @pytest.mark.parametrize(("dtype", "value"), [("int32", 1.5), ("int32", True), ("bool", 1), ("float32", "x")])
    def test_wrong_scalars(self, dtype, value):
        with pytest.raises(errors.BadValue, match=f"expected a {dtype}"):
            make_inputs(Signature("k", (Param("s", "scalar", dtype),)), {"s": value}, 0)
