"""``tile tune``: searches from the command line, and what they leave behind."""

from __future__ import annotations

import json
import sys

import pytest

from tile_core import tasks

TUNED = """
    import tile_core as tile
    import tile_core.language as T


    @tile.autotune([{"block": 16}, {"block": -1}, {"block": 32}], warmup=0, repeat=1)
    @tile.jit(out_idx=[-1], target="cpu")
    def scaled(n, block=64, factor=2.0):
        @T.prim_func
        def scale(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
            with T.Kernel(T.ceildiv(n, block), threads=32) as bx:
                B[bx * block : bx * block + block] = A[bx * block : bx * block + block] * factor

        return scale


    def plain(n, block=64):
        return scaled.function.program(n, block)
"""

EAGER = """
    import tile_core as tile
    import tile_core.language as T


    @tile.jit(target="cpu")
    def doubled(A, block: int = 32):
        n = T.const("n")
        A: T.Tensor[(n,), "float32"]
        B = T.empty((n,), "float32")
        with T.Kernel(T.ceildiv(n, block), threads=32) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] * 2
        return B
"""


SYMBOLIC = """
    import tile_core.language as T


    def scale(N, block: int = 16):
        m = T.dynamic("m")

        @T.prim_func
        def scaled(A: T.Tensor((m, N), "float32"), B: T.Tensor((m, N), "float32"), s: T.float32):
            with T.Kernel(T.ceildiv(m, block), threads=32) as bx:
                for i, j in T.Parallel(block, N):
                    B[bx * block + i, j] = A[bx * block + i, j] * s

        return scaled
"""


@pytest.fixture
def tuned(kernel_file):
    return kernel_file(TUNED)


@pytest.fixture
def database(tmp_path):
    return tmp_path / "results.sqlite"


class TestTune:
    def test_the_fastest_and_why_others_failed(self, tile, tuned, database):
        result = tile("tune", tuned, "-a", "n=100", "--results", database)
        assert result.status == 0, result.err
        assert "scale(A: float32(100,)) -> B: float32(100,) for cpu" in result.out
        assert "the fastest of 3: block=" in result.out
        assert "[K1" in result.out
        assert f"0 of 3 known before; in {database}" in result.out
        again = tile("tune", tuned, "-a", "n=100", "--results", database)
        assert f"2 of 3 known before; in {database}" in again.out

    def test_the_best_are_measured_again_and_again_measures_all(self, tile, tuned, database, monkeypatch):
        from tile_core import tuning

        compared = []

        def compare(found):
            compared.append(len(found))
            return tasks.compare(found)

        monkeypatch.setattr(tuning, "compare", compare)
        arguments = ("-a", "n=100", "--vary", "block=8,16,24,32", "--results", database, "--json")
        first = json.loads(tile("tune", tuned, *arguments).out)["trials"]
        assert compared == [3]
        assert all(t["low"] <= t["seconds"] <= t["high"] or t["low"] <= t["high"] for t in first)
        known = json.loads(tile("tune", tuned, *arguments).out)["trials"]
        assert compared == [3]
        assert [t["low"] for t in known] == [t["low"] for t in first]
        again = json.loads(tile("tune", tuned, *arguments, "--again").out)["trials"]
        assert not any(t["known"] for t in again)
        assert compared == [3, 3]

    def test_rates_and_ties(self, tile, tuned, database):
        result = tile("tune", tuned, "-a", "n=100", "--vary", "block=8,16", "--results", database)
        for text in ("min to third quartile", "share of peak", "B/s", "FLOP/s"):
            assert text in result.out

    def test_combinations_replace_those_of_the_file(self, tile, tuned, database):
        arguments = ("--vary", "block=8,16,24", "--vary", "factor=1.5", "--json", "--results", database)
        result = tile("tune", tuned, "-a", "n=33", "--repeat", "1", *arguments)
        assert result.status == 0, result.err
        found = json.loads(result.out)
        assert [t["config"] for t in found["trials"]] == [{"block": b, "factor": 1.5} for b in (8, 16, 24)]
        assert all(t["seconds"] > 0 and not t["known"] for t in found["trials"])
        assert found["config"] in [t["config"] for t in found["trials"]]
        assert found["results"] == str(database)

    @pytest.mark.sweep(1)
    @pytest.mark.parametrize("given", [(), ("-a", "m=70")])
    def test_symbolic_sizes_and_scalars(self, tile, kernel_file, database, given):
        file = kernel_file(SYMBOLIC)
        arguments = ("-a", "N=33", "-a", "s=2.5", *given, "--vary", "block=16,32", "--repeat", "1", "-t", "cpu")
        result = tile("tune", f"{file}:scale", *arguments, "--results", database)
        assert result.status == 0, result.err
        assert f"inputs: random, m = {70 if given else 131}" in result.out
        assert "0 of 2 known before" in result.out
        assert "2 of 2 known" in tile("tune", f"{file}:scale", *arguments, "--results", database).out
        other = tile("tune", f"{file}:scale", *arguments, "-a", "m=71", "--results", database)
        assert "0 of 2 known" in other.out, other.err

    def test_a_scalar_without_value_and_a_wrong_name(self, tile, kernel_file, database):
        file = kernel_file(SYMBOLIC)
        arguments = ("-a", "N=33", "--vary", "block=16,32", "-t", "cpu", "--results", database)
        result = tile("tune", f"{file}:scale", *arguments)
        assert result.status == 1
        assert result.err.lstrip().startswith("error[S310]: scaled needs a value for s, a float32\n")
        assert "add --arg s=VALUE" in result.err
        assert "K433" not in result.err
        result = tile("tune", f"{file}:scale", *arguments, "-a", "s=wide")
        assert result.err.lstrip().startswith("error[S311]: --arg s=wide: expected a float32\n"), result.err
        result = tile("tune", f"{file}:scale", *arguments, "-a", "s=1.5", "-a", "m=-3")
        assert result.err.lstrip().startswith("error[S311]: --arg m=-3: expected a size"), result.err
        result = tile("tune", f"{file}:scale", *arguments, "-a", "q=3")
        assert "error[S309]: --arg q: scale has no such argument" in result.err
        assert "m" in result.err

    def test_inputs_that_no_configuration_can_be_given(self, tile, kernel_file, database):
        file = kernel_file(
            SYMBOLIC.replace("s: T.float32", "s: T.StridedTensor((2,), (3,), 'float32')").replace("* s", "* s[0]")
        )
        result = tile(
            "tune", f"{file}:scale", "-a", "N=33", "--vary", "block=16,32", "-t", "cpu", "--results", database
        )
        assert "it is declared with strides" in result.err
        assert "K433" not in result.err

    def test_a_function_that_returns_a_kernel(self, tile, kernel_file, database):
        path = kernel_file(TUNED.replace("@tile", "#"))
        result = tile("tune", path, "-a", "n=9", "--vary", "block=8,16", "-t", "cpu", "--results", database)
        assert result.status == 0, result.err
        assert "the fastest of 2: block=" in result.out

    def test_an_eager_kernel_by_its_sizes(self, tile, kernel_file, database):
        path = kernel_file(EAGER)
        result = tile("tune", path, "-a", "n=70", "--vary", "block=16,32", "--repeat", "1", "--results", database)
        assert result.status == 0, result.err
        assert "A: float32(70,)" in result.out

    def test_values_may_be_texts(self):
        from tile_core.cli.arguments import combinations

        found = combinations("--vary", ["dtype=float16,float32", "on=true,false", "n=3"])
        assert found == [{"dtype": d, "on": o, "n": 3} for d in ("float16", "float32") for o in (True, False)]

    @pytest.mark.sweep(1)
    def test_processes(self, tile, tuned, database):
        result = tile("tune", tuned, "-a", "n=50", "--workers", "2", "--results", database)
        assert result.status == 0, result.err
        assert "the fastest of 3" in result.out

    def test_the_database_is_beside_the_cache(self, tile, tuned, monkeypatch, tmp_path):
        monkeypatch.setenv("TILE_CACHE_DIR", str(tmp_path / "cache"))
        assert str(tmp_path / "cache" / "tuning.sqlite") in tile("tune", tuned, "-a", "n=5").out
        monkeypatch.setenv("TILE_DISABLE_CACHE", "1")
        monkeypatch.setenv("TILE_CACHE_DIR", str(tmp_path / "other"))
        result = tile("tune", tuned, "-a", "n=5")
        assert result.status == 0, result.err
        assert "known before" not in result.out
        assert not (tmp_path / "other").exists()

    def test_an_interrupted_search_goes_on(self, tile, tuned, database, monkeypatch):
        real, measured = tasks.measure, []

        def interrupted(task):
            if measured:
                raise KeyboardInterrupt
            measured.append(task.key)
            return real(task)

        monkeypatch.setattr(tasks, "measure", interrupted)
        first = tile("tune", tuned, "-a", "n=100", "--results", database)
        assert first.status == 130
        assert "interrupted after 2 configurations" in first.err
        assert "the same command goes on" in first.err
        monkeypatch.setattr(tasks, "measure", real)
        result = tile("tune", tuned, "-a", "n=100", "--results", database)
        assert "1 of 3 known before" in result.out

    @pytest.mark.sweep(1)
    def test_a_chart(self, tile, tuned, database, tmp_path):
        pytest.importorskip("matplotlib")
        path = tmp_path / "chart.svg"
        result = tile("tune", tuned, "-a", "n=100", "--results", database, "--plot", path)
        assert result.status == 0, result.err
        assert path.read_text(encoding="utf-8").startswith("<?xml")

    @pytest.mark.sweep(1)
    def test_a_cluster(self, tile, tuned, database):
        distributed = pytest.importorskip("distributed")
        with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
            address = cluster.scheduler_address
            result = tile("tune", tuned, "-a", "n=100", "--results", database, "--scheduler", address)
        assert result.status == 0, result.err
        assert "the fastest of 3: block=" in result.out


class TestRefusals:
    @pytest.mark.sweep(0.25)
    @pytest.mark.parametrize(
        ("code", "arguments", "text"),
        [
            ("S309", ("-a", "n=4", "--vary", "blok=3"), "--vary blok: scaled has no such argument"),
            ("S309", ("-a", "m=4"), "--arg m: scaled has no such argument"),
            ("S310", (), "add --arg n=VALUE"),
            ("S308", ("--vary", "block"), "write for example --vary block_M=64,128"),
            (
                "S320",
                ("-a", "n=4", "--scheduler", "nonsense://here"),
                "no dask scheduler responds at nonsense://here",
            ),
            ("S312", ("-a", "n=4", "--plot", "chart.docx"), "its name ends in none of"),
            ("S312", ("-a", "n=4", "--plot", "no/such/chart.png"), "there is no folder"),
            ("K433", ("-a", "n=4", "--vary", "block=0,-1"), "none of the 2 configurations"),
        ],
    )
    def test_with_code(self, tile, tuned, database, code, arguments, text):
        if "--scheduler" in arguments:
            pytest.importorskip("distributed")
        if "--plot" in arguments:
            pytest.importorskip("matplotlib")
        result = tile("tune", tuned, "--results", database, *arguments)
        assert result.status == 1, result.out
        assert f"error[{code}]: " in result.err
        assert text in result.err

    def test_nothing_to_vary(self, tile, kernel_file):
        result = tile("tune", kernel_file(EAGER))
        assert result.status == 1
        assert "error[S319]: doubled has no configurations" in result.err
        assert "--vary NAME=VALUE,VALUE for one or more of its arguments: A, block" in result.err

    def test_not_a_function(self, tile, kernel_file):
        path = kernel_file(TUNED + "\n\n    other = 3\n")
        assert "error[S307]: other of" in tile("tune", f"{path}:other").err

    def test_two_executors(self, tile, tuned):
        assert tile("tune", tuned, "--workers", "2", "--scheduler", "tcp://x:1").status == 2

    @pytest.mark.parametrize(
        ("option", "module", "extra"), [("--plot", "matplotlib", "plot"), ("--scheduler", "distributed", "dask")]
    )
    def test_without_the_package(self, tile, tuned, database, monkeypatch, option, module, extra):
        monkeypatch.setitem(sys.modules, module, None)
        result = tile("tune", tuned, "-a", "n=4", "--results", database, option, "x.png")
        assert "error[S318]" in result.err
        assert f"pip install packages/tile-runtime 'packages/tile-core[{extra}]'" in result.err

    def test_a_file_that_is_no_database(self, tile, tuned, tmp_path):
        (tmp_path / "text").write_text("this is not a database, but it is long enough to look like one" * 20)
        for path in ("text", "text/below"):
            result = tile("tune", tuned, "-a", "n=4", "--results", tmp_path / path)
            assert result.status == 1
            assert "error[S207]: cannot store tuning results in" in result.err
