"""Vector code for every processor in LLVM's list, run where this machine can."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from expected_errors import raises_error

import tile_core as tile
import tile_core.language as T
from tile_core.compat.tvm import tvm
from tile_core.cpu import processors, trial
from tile_core.cpu import target as targets
from tile_core.cpu.isa import Isa, detect
from tile_core.errors.lowering import CodeGenerationEnded, UnknownProcessor
from tile_core.errors.setup import ProcessorLacksInstructions

_spec = importlib.util.spec_from_file_location("forms", Path(__file__).with_name("forms.py"))
forms = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(forms)

TRIPLES = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
HOST = str(tvm.target.codegen.llvm_get_system_triple()).split("-")[0]
#: Processors of one test.
PER_TEST = 6


def _names(triple: str) -> list[str]:
    """Return LLVM's names of a family's 64-bit processors."""
    whole = tvm.target.codegen.llvm_get_cpu_archlist(tvm.target.Target({"kind": "llvm", "mtriple": triple}))
    return [str(name) for name in whole if str(name) in processors._SWEPT]


def _shares() -> list[tuple[str, list[str]]]:
    found = []
    for triple in TRIPLES:
        names = _names(triple)
        shares = -(-len(names) // PER_TEST)
        found += [("" if triple.startswith(HOST) else triple, names[n::shares]) for n in range(shares)]
    return found


def _failed(group: str, triple: str, rotation: int, names: list[str]) -> dict[str, str]:
    """Return the failures of processors by name."""
    command = [sys.executable, forms.__file__, group, triple, str(rotation), *names]
    done = subprocess.run(command, env={**os.environ, "TVM_NUM_THREADS": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.sweep(18)
@pytest.mark.parametrize("group", ["conversions", "quotients", "indices"])
@pytest.mark.parametrize(("triple", "names"), _shares(), ids=lambda value: value[0] if isinstance(value, list) else "")
def test_vector_forms_compile_and_compute(group, triple, names):
    rotation = os.environ.get("SWEEP_TURN", "0")
    assert _failed(group, triple, int(rotation) if rotation.isdigit() else 0, names) == {}


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("group", ["conversions", "quotients", "indices"])
def test_vector_forms_compute_here(group):
    assert _failed(group, "", np.random.default_rng().integers(99), [detect().mcpu]) == {}


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(("triple", "name"), [(TRIPLES[0], "sapphirerapids"), (TRIPLES[1], "neoverse-v2")])
@pytest.mark.parametrize("dtype", ["uint64", "float64"])
def test_conversions_compile_for_wide_vectors(triple, name, dtype):
    """Some processors with FP16 but not DQ, and with SVE, crash LLVM: both off."""
    number = (*forms.INTEGERS, *forms.FLOATS).index(dtype)
    assert _failed("conversions", "" if triple.startswith(HOST) else triple, number, [name]) == {}


def test_every_64_bit_processor_is_swept():
    for triple in TRIPLES:
        target = {"kind": "llvm", "mtriple": triple}
        for name in map(str, tvm.target.codegen.llvm_get_cpu_archlist(tvm.target.Target(target))):
            described = tvm.target.Target({**target, "mcpu": name})
            features = {str(f) for f in tvm.target.codegen.llvm_get_cpu_features(described)}
            assert processors.is_swept(name) == ("64bit-mode" not in features or "64bit" in features), name


@pytest.mark.skipif(HOST != "x86_64", reason="LLVM has names of 32-bit processors for x86")
def test_processors_of_32_bits_are_refused():
    with raises_error(UnknownProcessor, found="i686"):
        targets.make_target("i686")


@T.prim_func
def _twice(A: T.Tensor((21,), "float32"), B: T.Tensor((21,), "float32")):
    with T.Kernel(1):
        for i in T.Parallel(21):
            B[i] = A[i] * 2.0


def test_launches_without_the_instructions_are_refused(monkeypatch):
    monkeypatch.setattr(processors, "missing_here", lambda isa: ["avx9"])
    kernel = tile.compile(_twice, "cpu")
    with pytest.raises(ProcessorLacksInstructions, match=r"lacks avx9(.|\n)*target='cpu'"):
        kernel(np.ones(21, "float32"), np.ones(21, "float32"))


def test_tuning_features_are_no_instructions():
    assert processors.missing_here(detect()) == []
    assert processors.INSTRUCTIONS.fullmatch("prefer-256-bit") is None
    assert processors.INSTRUCTIONS.fullmatch("avx512fp16")


def _lowered(monkeypatch):
    from tile_core.cpu.runtime.host import HostAdapter

    found = []
    with monkeypatch.context() as patch:
        patch.setattr(HostAdapter, "load", lambda self, artefact: (found.append(artefact), lambda *values: None)[1])
        with tile.disable_cache():
            tile.compile(_twice, "cpu")
    return found[0]


def test_unknown_processors_are_tried_in_another_process(monkeypatch):
    monkeypatch.setattr(processors, "is_swept", lambda mcpu: False)
    tried = []
    whole = trial._ended
    monkeypatch.setattr(trial, "_ended", lambda job: (tried.append(job), whole(job))[1])
    a, b = np.arange(21, dtype="float32"), np.zeros(21, "float32")
    with tile.disable_cache():
        tile.compile(_twice, "cpu")(a, b)
    np.testing.assert_array_equal(b, a * 2)
    assert len(tried) == 1


@pytest.mark.skipif(HOST != "x86_64", reason="LLVM ends the process over 32-bit processors of x86")
def test_a_processor_that_ends_llvm_is_an_error(monkeypatch):
    isa = Isa("sse2", 128, 16, False, False, "i686")
    with pytest.raises(CodeGenerationEnded, match=r"for cpu:i686: LLVM ERROR: 64-bit code(.|\n)*similar processor"):
        trial.try_to_compile(_lowered(monkeypatch), isa, "cpu:i686")


def test_a_signal_is_named(monkeypatch):
    monkeypatch.setattr(trial.sys, "executable", "/bin/sh")
    monkeypatch.setattr(trial.subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], -11, "", ""))
    assert trial._ended("") == "SIGSEGV"


@T.prim_func
def _counted(B: T.Tensor((16, 24), "bfloat16")):
    with T.Kernel(1, threads=32):
        t = T.alloc_fragment((16, 24), "bfloat16")
        T.clear(t)
        for i, j in T.Parallel(16, 24):
            if t[i, j] > 1:
                t[i, j] = T.min(t[i, j], T.cast(i + j, "bfloat16"))
        T.copy(t, B)


@pytest.mark.sweep(0.25)
@pytest.mark.skipif(HOST != "x86_64", reason="the processors are of x86")
@pytest.mark.parametrize("name", ["sapphirerapids", "graniterapids"])
def test_conversions_that_code_generation_widens(name):
    """They crash LLVM with FP16 and without DQ, also for modules without 64-bit code."""
    isa = Isa.for_cpu(name, TRIPLES[0])
    assert {"-avx512dq", "-avx512fp16"} <= set(isa.mattr)
    func = forms.lowered(_counted, dataclasses.replace(isa, mcpu="", mattr=()))
    with tile.disable_cache():
        trial.try_to_compile(func, isa, f"cpu:{name}")
        on = dataclasses.replace(isa, mattr=tuple(x for x in isa.mattr if x != "-avx512fp16"))
        with raises_error(CodeGenerationEnded, reason="SIGSEGV"):
            trial.try_to_compile(func, on, f"cpu:{name}")
