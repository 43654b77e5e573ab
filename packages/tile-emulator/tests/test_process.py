"""Permitted actions of a kernel in its process, and their reports to the caller."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from expected_errors import raises_error

import tile_emulator
from tile_core.abi.kernel_text import LaunchFacts, ParamFact
from tile_core.emit.dialect import Dialect
from tile_emulator import RunLimits
from tile_emulator.errors import BadArguments, FaultFound, LaunchRefused, NotModelled

from .dialects.mini import HERE, MINI, facts_of, floats, run

ONE = {"block": (1, 1, 1)}


def test_a_kernel_that_never_ends_is_ended():
    text = "__global__ void k(int* out, int n) {\n  volatile int i = 0;\n  while (n == 1) i = i + 1;\n}"
    (report,) = run(text, [np.zeros(1, "int32"), 1], limits=RunLimits(seconds=0.3), **ONE).reports
    assert report.kind == "timeout"
    assert report.line == 3
    assert report.thread == (0, 0, 0)


def test_a_kernel_that_uses_too_much_memory_is_ended():
    result = run(
        "__global__ void k(float* out) { out[0] = 1; }", [floats(1 << 22)], limits=RunLimits(memory_bytes=1 << 27)
    )
    (report,) = result.reports
    assert report.kind in ("memory", "crash")


@pytest.mark.sweep(1)
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("out[0] = 7 / n;", "arithmetic"),
        ("__builtin_trap();", "crash"),
        ("*(volatile int*)(long)n = 1;", "bounds"),
        ("volatile char own[1 << 20]; for (int i = (1 << 20) - 1; i > 0; i -= 64) own[i] = n;", "stack"),
    ],
)
@pytest.mark.parametrize("checks", [(), tile_emulator.CHECKS])
def test_a_crash_is_a_report(body, kind, checks):
    text = f"__global__ void k(int* out, int n) {{\n  {body}\n}}"
    (report,) = run(text, [np.zeros(1, "int32"), 0], checks=checks, **ONE).reports
    assert report.kind == (kind if checks or kind != "bounds" else "crash")
    assert report.line == (1 if kind == "stack" else 2)  # a function's head makes its frame


def test_what_was_written_before_a_fault_is_there():
    text = "__global__ void k(int* out) { out[threadIdx.x] = 5; __syncthreads(); out[99] = 1; }"
    result = run(text, [np.zeros(32, "int32")])
    assert [r.kind for r in result.reports] == ["bounds"]
    np.testing.assert_array_equal(result.outputs["out"], np.full(32, 5))


def test_printed_text_comes_back_up_to_the_limit():
    text = '__global__ void k(int n) { for (int i = 0; i < n; i++) printf("%d of %d\\n", i, n); }'
    assert run(text, [2], **ONE).printed == "0 of 2\n1 of 2\n"
    assert len(run(text, [1000], limits=RunLimits(output_bytes=100), **ONE).printed) == 100


@pytest.mark.parametrize(
    ("before", "kind", "detail"),
    [
        ("", "trap", "the kernel ends itself by a trap"),
        ('printf("n is %d\\n", n);', "trap", "the kernel ends itself by a trap"),
        ('printf("device assertion failed: n is %d\\n", n);', "assertion", "n is 3"),
    ],
)
def test_a_trap_is_an_assertion_if_its_thread_prints_one(before, kind, detail):
    text = f"__global__ void k(int n) {{ {before} simt::trap(); }}"
    (report,) = run(text, [3], **ONE).reports
    assert (report.kind, report.detail) == (kind, detail)


def test_a_trap_of_another_thread_is_no_assertion():
    body = (
        'if (threadIdx.x == 0) printf("device assertion failed: n\\n"); __syncthreads(); if (threadIdx.x) simt::trap();'
    )
    (report,) = run(f"__global__ void k(int n) {{ {body} }}", [3], block=(2, 1, 1)).reports
    assert report.kind == "trap"


def test_the_number_of_reports_is_limited():
    body = "\n".join(f"  out[{i}] = threadIdx.x;" for i in range(8))
    text = f"__global__ void k(int* out) {{\n{body}\n}}"
    assert len(run(text, [np.zeros(8, "int32")]).reports) == 8
    result = run(text, [np.zeros(8, "int32")], limits=RunLimits(reports=3))
    assert len(result.reports) == 3
    assert result.stats.counters["accesses"] > 0


class TestArguments:
    TEXT = "__global__ void k(const float* a, float* out, int n) { for (int i = 0; i < n; i++) out[i] = a[i * 2]; }"

    def test_by_name_and_by_position(self):
        a = np.arange(6, dtype="float32")
        for args in ([a, floats(3), 3], {"n": 3, "out": floats(3), "a": a}):
            np.testing.assert_array_equal(run(self.TEXT, args, **ONE).outputs["out"], a[::2])

    def test_strided_arrays_keep_what_lies_between(self):
        text = "__global__ void k(int* out, int n) { for (int i = 0; i < n; i++) out[i * 3] = -i; }"
        whole = np.arange(12, dtype="int32")
        result = run(text, [whole[::3], 4], **ONE)
        assert result.ok
        np.testing.assert_array_equal(result.outputs["out"], -np.arange(4))
        np.testing.assert_array_equal(whole, np.arange(12))

    def test_element_types_that_c_does_not_have_are_passed_as_bits(self):
        import ml_dtypes

        text = "__global__ void k(const unsigned short* a, unsigned short* out, double x) { out[0] = a[0] + (int)x; }"
        params = (
            ParamFact("a", "pointer", "bfloat16", "read"), ParamFact("out", "pointer", "bfloat16", "write"),
            ParamFact("x", "scalar", "float64"),
        )  # fmt: skip
        facts = LaunchFacts("k", params, (1, 1, 1), (1, 1, 1))
        a = np.array([1.5], ml_dtypes.bfloat16)
        out = run(text, [a, np.zeros_like(a), 1.0], facts=facts).outputs["out"]
        assert out.dtype == a.dtype
        assert out.view("uint16")[0] == a.view("uint16")[0] + 1

    def test_an_empty_array_has_no_element(self):
        text = "__global__ void k(float* out, int n) { if (n) out[0] = 1; }"
        assert run(text, [floats(0), 0], **ONE).ok
        (report,) = run(text, [floats(0), 1], **ONE).reports
        assert report.kind == "bounds"

    def test_opaque_parameters_hold_bytes_and_addresses(self):
        body = "for (int i = 0; i < v.n; i++) v.at[i] = i;"
        text = f"struct View {{ float* at; int n; }};\n__global__ void k(float* out, View v) {{ {body} }}"
        facts = LaunchFacts(
            "k", (ParamFact("out", "pointer", "float32"), ParamFact("v", "opaque", bytes=16)), (1, 1, 1), (1, 1, 1)
        )

        def encode(param, values):
            return bytes(8) + np.int32(values["v"]).tobytes() + bytes(4), ((0, "out"),)

        dialect = Dialect("mini", (HERE / "mini.h",), prepare=MINI.prepare, opaque=encode)
        result = run(text, [floats(5), 5], facts=facts, dialect=dialect)
        assert result.ok
        np.testing.assert_array_equal(result.outputs["out"], np.arange(5))
        with pytest.raises(BadArguments, match="makes no values for parameter 'v'"):
            run(text, [floats(5), 5], facts=facts)

    @pytest.mark.parametrize(
        ("args", "detail"),
        [
            ([floats(1)], "1 arguments for 3 parameters"),
            ({"a": floats(1), "n": 1, "m": 1}, "missing out; unknown m"),
            ([np.zeros(1, "int32"), floats(1), 1], "'a' must be an array of float32, found int32"),
            ([floats(1), floats(1), "x"], "'n' must be a number, found 'x'"),
        ],
    )
    def test_others_are_refused(self, args, detail):
        with raises_error(BadArguments, kernel="k") as caught:
            tile_emulator.run(self.TEXT, facts_of(self.TEXT), args, MINI)
        assert detail in str(caught.value)
        assert "pass one value for each of: a, out, n" in str(caught.value)


class TestRefused:
    TEXT = "__global__ void k(float* out) {\n  out[0] = 1;\n}"

    @pytest.mark.parametrize(
        ("facts", "text"),
        [
            ({"block": (2048, 1, 1)}, "the threads of a block of a launch must be at most 1024, found 2048"),
            ({"shared_bytes": 1 << 21}, "shared bytes of a block of a launch must be at most 1048576, found 2097152"),
        ],
    )
    def test_launches_that_the_device_refuses(self, facts, text):
        with raises_error(LaunchRefused, kernel="k") as caught:
            run(self.TEXT, [floats(1)], facts=facts_of(self.TEXT, **facts))
        assert text in str(caught.value)

    def test_text_without_a_model(self):
        with raises_error(NotModelled, kernel="k", dialect="mini", line=2) as caught:
            run(self.TEXT.replace("out[0] = 1", "out[0] = __fancy(1)"), [floats(1)])
        assert "__fancy" in str(caught.value)
        assert caught.value.where.line == 102

    @pytest.mark.parametrize("how", [{"checks": ("bound",)}, {"order": "backward"}, {"completion": "never"}])
    def test_unknown_settings(self, how):
        with pytest.raises(ValueError, match=r"is not an? "):
            run(self.TEXT, [floats(1)], **how)

    def test_faults_can_be_raised(self):
        result = run(self.TEXT.replace("[0]", "[1]"), [floats(1)], **ONE)
        with pytest.raises(
            FaultFound, match=r"\[K480\] k: emulation found 1 fault\(s\):\naccess out of bounds"
        ) as caught:
            result.check("k")
        assert caught.value.where.line == 102
        assert run(self.TEXT, [floats(1)], **ONE).check("k").ok


class TestLocations:
    def test_of_inlined_and_of_called_functions(self):
        text = """\
__device__ __forceinline__ void store(float* p, int i, float v) {
  p[i] = v;
}
__device__ __noinline__ void outer(float* p, int i) {
  store(p, i, 1);
}
__global__ void k(float* out) {
  store(out, 0, 1);
  outer(out, 5);
}
"""
        facts = facts_of(text, block=(1, 1, 1))
        (report,) = run(text, [floats(1)], facts=facts).reports
        assert report.line == 2  # every line of this map has a place
        only_the_kernel = tuple(pair for pair in facts.line_map.lines if pair[0] >= 7)
        facts = LaunchFacts(**{**vars(facts), "line_map": type(facts.line_map)(only_the_kernel)})
        (report,) = run(text, [floats(1)], facts=facts).reports
        assert (report.line, report.where.line, report.location.text) == (9, 109, "outer(out, 5);")

    def test_shared_memory_has_names(self):
        from tile_core.abi.kernel_text import SharedArray

        text = "__global__ void k(float* out) { extern __shared__ float s[]; out[0] = s[5]; }"
        shared = (SharedArray("A_s", 0, 16, "float32"), SharedArray("B_s", 16, 16, "float32"))
        facts = facts_of(text, block=(1, 1, 1), shared_bytes=32, shared=shared)
        (report,) = run(text, [floats(1)], facts=facts).reports
        assert (report.kind, report.array, report.index) == ("uninitialised", "B_s", (1,))


class TestRights:
    """Code before, in and instead of a kernel can only compute."""

    @pytest.mark.sweep(1)
    @pytest.mark.parametrize(
        "call",
        [
            'open("{path}", 0101, 0600)',
            'open("{path}", 02)',
            'rename("{path}", "{path}2")',
            'unlink("{path}")',
            'system("touch {path}2") ? -1 : 0',
            "fork()",
            "socket(2, 1, 0)",
            "kill({parent}, 0)",
            'chmod("{path}", 0777)',
            "ptrace(16, {parent}, 0, 0) ? -1 : 0",
        ],
    )
    def test_it_can_do_nothing_but_compute(self, call, tmp_path):
        path = tmp_path / "file"
        path.write_text("mine")
        names = (
            'extern "C" { int open(const char*, int, ...); int rename(const char*, const char*); '
            "int unlink(const char*); int system(const char*); int fork(); int socket(int, int, int); "
            "int kill(int, int); int chmod(const char*, unsigned); long ptrace(int, ...); }\n"
        )
        call = call.format(path=path, parent=os.getpid())
        text = (
            f"{names}static int before = -7;\n"
            f"__attribute__((constructor)) static void first() {{ before = {call}; }}\n"
            f"__global__ void k(int* out) {{ out[0] = before; out[1] = {call}; }}"
        )
        result = run(text, [np.zeros(2, "int32")], checks=(), **ONE)
        if not result.stats.confined:
            pytest.skip("this system has no seccomp")
        assert result.outputs["out"].tolist() == [-1, -1]
        assert [p.name for p in tmp_path.iterdir()] == ["file"]
        assert path.read_text() == "mine"
        assert path.stat().st_mode & 0o777 != 0o777

    def test_files_are_read_while_a_library_is_loaded_only(self):
        text = (
            'extern "C" int open(const char*, int, ...);\n'
            '__global__ void k(int* out) { out[0] = open("/proc/self/maps", 0); }'
        )
        result = run(text, [np.zeros(1, "int32")], checks=(), **ONE)
        assert not result.stats.confined or result.outputs["out"][0] == -1


WORK = """
import os, resource, sys
import numpy as np
from tests.dialects.mini import run
{before}
out = run("__global__ void k(int* out, int n) {{ out[threadIdx.x] = n; }}", [np.zeros(32, "int32"), 3])
os.write(where, repr((out.ok, int(out.outputs["out"].sum()), [str(r) for r in out.reports])).encode())
"""


@pytest.mark.sweep(1)
@pytest.mark.parametrize(
    "before",
    [
        "resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))",
        "resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 20, 64 << 20))",
        "[os.close(n) for n in (0, 1, 2)]",
        "[os.close(n) for n in (0, 2)]",
        "os.close(1)",
    ],
)
def test_a_process_with_less_than_others(before, tmp_path):
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    said = tmp_path / "said"
    opened = f"where = os.open({str(said)!r}, os.O_WRONLY | os.O_CREAT)\nwhere = os.dup2(where, 100)\n"
    code = WORK.format(before=opened + before)
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, check=True, timeout=200)
    assert said.read_text() == "(True, 96, [])"
