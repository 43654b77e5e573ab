"""The repository's examples as they stand, at sizes of a model's layers, beside the best library for each.

    python benchmarks/examples.py [--only attention,gemm] [--rounds 10] [--most 1] [--json FILE]

Tiles are the first-ranked ones of ``tile.tilings``, as in the examples, or those of the table below, where an example
ranks none. ``--most`` tries more of the ranking. Results are checked first, and all sides of a line take turns in one
run. Shares of peak are those of an H200's data sheet.
"""

from __future__ import annotations

import functools
import multiprocessing
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import example_rows
import example_setups
from cuda_sides import device_of
from day import Kernels, measured
from day_peers import Setup
from guarded import each, guard, spoken
from sides import Row, example, run

import tile_core as tile

#: Dense TFLOP/s by operand, sparse ones, and TB/s: NVIDIA H200 SXM, data sheet.
_PEAKS = {"16": 989.0, "8": 1979.0, "sparse 16": 1979.0, "sparse 8": 3958.0, "memory": 4.8}


@dataclass(frozen=True)
class Example:
    """An example at one size.

    Attributes
    ----------
    name
        In tables.
    function
        ``"module.function"`` of ``examples/``.
    given
        The arguments of its problem.
    setup, sizes
        The function of its data and its arguments.
    peak
        The entry of `_PEAKS`.
    tiles
        The rest of its arguments where it ranks none.
    dynamic
        Typical sizes of dynamic dimensions, for ranking.
    named
        Named arguments of the setup.
    """

    name: str
    function: str
    given: Mapping[str, Any]
    setup: str
    sizes: tuple[int, ...]
    peak: str = "memory"
    tiles: Mapping[str, Any] | None = None
    dynamic: Mapping[str, int] = field(default_factory=dict)
    named: Mapping[str, Any] = field(default_factory=dict)

    def configurations(self, most: int) -> list[dict[str, Any]] | str:
        """Compile it into the cache; return its tiles, or the reason if that is refused."""
        try:
            found = [dict(self.tiles)] if self.tiles is not None else [
                dict(x)
                for x in tile.tilings(
                    self.factory, self.given, target="cuda", sizes=dict(self.dynamic) or None, most=most
                )
            ]  # fmt: skip
            for tiles in found:
                self.compiled(tiles)
        except tile.TileError as error:
            return str(error).splitlines()[0]
        return found

    @property
    def factory(self) -> Any:
        """The function of the example."""
        module, _, function = self.function.partition(".")
        return getattr(example(module), function)

    def compiled(self, tiles: Mapping[str, Any]) -> Any:
        """Return a kernel."""
        return tile.compile(self.factory(**self.given, **tiles), target="cuda")

    def data(self, torch: Any) -> Setup:
        """Return its data and libraries."""
        module = example_setups if hasattr(example_setups, self.setup) else example_rows
        found: Setup = getattr(module, self.setup)(torch, *self.sizes, **self.named)
        return found


def _square(n: int) -> dict[str, int]:
    return {"M": n, "N": n, "K": n}


def products() -> list[Example]:
    """Return examples with products."""
    n, half = 8192, {"dtype": "float16"}
    few = {"M": 16, "N": n, "K": n}
    three = (n, n, n)
    grouped, dynamic = {"groups": 8, "K": 4096, "N": 14336, "dtype": "bfloat16"}, {"rows": n}
    moe = {"tokens": n, "experts": 8, "K": 4096, "N": 14336, "dtype": "bfloat16", "tiles": 72, "block_M": 128}
    sparse8 = {**_square(n), "meta_dtype": "int32", "accum": "int32", "dtype": "int8", "trans_B": True}
    stream = {"M": 1536, "N": 4096, "K": n, "blocks": 132, **half}
    fp8, int8 = {**_square(n), "fmt": "float8_e4m3fn"}, {**_square(n), "types": ("int8", "int8", "int32")}
    return [
        Example("gemm", "gemm.matmul", {**_square(n), **half}, "gemm", three, "16"),
        Example("gemm, B as (N, K)", "gemm.matmul", {**_square(n), **half, "trans_b": True}, "gemm", three, "16",
                named={"turned": True}),
        Example("fused_epilogue, GELU", "fused_epilogue.linear", {**_square(n), "activation": "gelu"}, "linear", three,
                "16"),
        Example("mixed_gemm, int8", "mixed_gemm.matmul", int8, "mixed", three, "8"),
        Example("sparse_gemm, float16", "sparse_gemm.matmul_sp", _square(n), "sparse", (n,), "sparse 16", named=half),
        Example("sparse_gemm, int8, B as (N, K)", "sparse_gemm.matmul_sp", sparse8, "sparse", (n,), "sparse 8",
                named={"dtype": "int8"}),
        Example("fp8_gemm, rows", "fp8_gemm.row_scaled_matmul", fp8, "fp8_rows", three, "8"),
        *(Example(f"dequant_gemm, {m} rows", "dequant_gemm.dequant_matmul", {"M": m, "N": n, "K": n, "group": 128},
                  "dequantized", (m, n, n, 128), "16") for m in (16, 256)),
        Example("grouped_gemm", "grouped_gemm.grouped_matmul", grouped, "grouped", (8, 14336, 4096, n), "16",
                dynamic=dynamic),
        Example("moe", "moe.grouped_matmul", moe, "experts", (n, 8, 4096, 14336, 72, 128), "16",
                tiles={"block_N": 256, "block_K": 64, "threads": 256, "num_stages": 4}),
        Example("split_k, 16 rows", "split_k.matmul", {**few, **half}, "gemm", (16, n, n), "16",
                tiles={"splits": 4, "block_M": 16, "block_N": 128, "block_K": 128, "sum_N": 256}),
        Example("stream_k", "stream_k.matmul", stream, "gemm", (1536, 4096, n), "16",
                tiles={"block_M": 128, "block_N": 192, "block_K": 64, "threads": 256}),
        *(Example(f"attention, d = {d}{', causal' * causal}", "flash_attention.attention",
                  {"batch": 4, "heads": 32, "queries": 4096, "keys": 4096, "dim": d, "causal": causal}, "attention",
                  (4, 32, 4096, d), "16", named={"causal": causal}) for d in (128, 64) for causal in (True, False)),
        *(Example(f"attention_backward, d = {d}, causal", "attention_backward.backward",
                  {"batch": 2, "heads": 32, "queries": 4096, "keys": 4096, "dim": d, "causal": True}, "backward",
                  (2, 32, 4096, d), "16") for d in (128, 64)),
        Example("sparse_attention", "sparse_attention.attention", {"queries": 4096, "keys": 16384, "D": 128,
                "chosen": 2048}, "chosen_keys", (4096, 16384, 128, 2048), "16"),
    ]  # fmt: skip


def rows() -> list[Example]:
    """Return memory-bound examples."""
    wide, half, bf16 = {"M": 8192, "N": 4096}, {"dtype": "float16"}, {"dtype": "bfloat16"}
    return [
        Example("decode, 16 heads of one cache", "decode.decode", {"heads": 16, "width": 128, "splits": 132}, "decode",
                (16, 131072, 128), dynamic={"n": 131072}),
        Example("vector_matrix, int4", "vector_matrix.vector_matrix", {"N": 28672, "K": 8192, "dtype": "int4"},
                "vector", (28672, 8192), tiles={"block_K": 512}),
        Example("rms_norm", "rms_norm.rms_norm", {**wide, **bf16}, "rms_norm", (8192, 4096), tiles={}),
        Example("softmax", "softmax.softmax", {**wide, **bf16}, "softmax", (8192, 4096), tiles={}),
        Example("softmax, online", "softmax.online_softmax", {"M": 4096, "N": 32768, **bf16}, "softmax", (4096, 32768),
                tiles={"block_N": 2048}),
        Example("cumsum", "cumsum.cumsum", {"M": 8192, "N": 8192}, "cumsum", (8192, 8192), tiles={"block_N": 256}),
        Example("top_k", "top_k.route", {"M": 65536, "N": 256, "K": 8}, "route", (65536, 256, 8), tiles={}),
        Example("elementwise, scaled add", "elementwise.scaled_add", {}, "scaled_add", (1 << 27,), tiles={}),
        Example("elementwise, swish gate", "elementwise.swish_gate", {}, "swish_gate", (8192, 14336), tiles={}),
        Example("dropout", "dropout.dropout", {"N": 1 << 27, "rate": 0.25}, "dropout", (1 << 27,), tiles={}),
        Example("stochastic_quantization", "stochastic_quantization.quantize", {"M": 32768, "N": 1024}, "stochastic",
                (32768, 1024), tiles={}),
        Example("kv_cache, gather", "kv_cache.gather_pages", {"slots": 131072, "width": 1024, "length": 65536, **half},
                "gather_pages", (131072, 1024, 65536), tiles={}),
    ]  # fmt: skip


def measure(arguments: Any) -> list[Row]:
    """Return one row per example."""
    every = [x for x in (*products(), *rows()) if any(o in x.name for o in arguments.only.split(","))]
    begin = time.perf_counter()
    with ProcessPoolExecutor(arguments.processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        ranked = spoken(pool.map(functools.partial(Example.configurations, most=arguments.most), every))
    print(f"{len(every)} examples after {time.perf_counter() - begin:.0f} s", flush=True)
    import torch

    print(device_of(torch))

    def row(x: Example, found: list[dict[str, Any]] | str) -> Row | None:
        if isinstance(found, str):
            print(f"refused: {x.name}: {found}", flush=True)
            return None
        kernels: Kernels = {_short(tiles): (x.compiled(tiles), ()) for tiles in found}
        line = measured(torch, x.name, x.data(torch), kernels, arguments.rounds)
        if line is not None:
            rate = line.get("TFLOP/s") or line.get("TB/s")
            line["peak"] = f"{100 * rate / _PEAKS[x.peak]:.0f} %"
        return line

    return each(torch, {x.name: functools.partial(row, x, found) for x, found in zip(every, ranked, strict=True)})


def own_options(parser: Any) -> None:
    """Add this benchmark's options."""
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--processes", type=int, default=16, help="that compile")
    parser.add_argument("--only", default="", help="only names that contain one of these, separated by commas")
    parser.add_argument("--most", type=int, default=1, help="tiles of each ranking that are tried")


def _short(tiles: Mapping[str, Any]) -> str:
    return "x".join(str(v).replace(" ", "") for v in tiles.values()) or "as it is"


if __name__ == "__main__":
    guard(lambda: run("the examples on a GPU", measure, own_options))
