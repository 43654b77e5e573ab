"""The host compiler is tried on forms that compilers were found to miscompile."""

import json
import shutil
import subprocess

import pytest

from tile_emulator import compilers, doctor, sound
from tile_emulator.errors import CompilerRefused
from tile_emulator.flags import LEVELS

GCC_12 = pytest.mark.skipif(
    not shutil.which("g++") or not subprocess.check_output(["g++", "-dumpversion"], text=True).startswith("12"),
    reason="the defect is one of g++ 12",
)


def test_the_compiler_that_is_used_is_right():
    found = compilers.find_compiler()
    command = (*found.command, *found.own_flags)
    for level in LEVELS:
        assert sound.wrong_forms(command, found.link_command, (level, *found.repairs)) == []


@pytest.mark.sweep(0.25)
@GCC_12
def test_quotients_of_negations_are_found_and_repaired():
    wrong = sound.wrong_forms(("g++",), ("g++", "-shared"), ("-O1",))
    assert {"-x / 10", "-x / 10 of int64"} <= set(wrong)
    assert sound.flags_for(("g++",), ("g++", "-shared"), "a test", "gcc") == sound.REPAIRS[1]


@pytest.mark.parametrize(
    "form", ["x / 10", "-x / 8", "-x % 3", "int8(x)", "x + 1 > x", "1 / (x + 0)", "loads at remainders"]
)
def test_each_form_is_judged(monkeypatch, capsys, form):
    wrong = [(name, x + 1 if name == form else x) for name, x in sound.expected()]
    monkeypatch.setattr(sound, "computed", lambda library: wrong)
    monkeypatch.setattr(sound.sys, "argv", ["sound", "forms.so"])
    sound._main()
    assert json.loads(capsys.readouterr().out) == [form]


def test_a_compiler_that_is_wrong_with_all_flags_is_refused(monkeypatch):
    monkeypatch.setattr(compilers, "flags_for", lambda *_: "-x / 10")
    monkeypatch.setenv("CXX", shutil.which("g++") or shutil.which("clang++") or "c++")
    compilers._find.cache_clear()
    with pytest.raises(CompilerRefused, match=r"it miscompiles -x / 10"):
        compilers.find_compiler()
    (check,) = doctor.checks()
    assert check.status == "missing"
    assert "miscompiles" in check.detail
    compilers._find.cache_clear()


def test_the_doctor_names_the_compiler():
    (check,) = doctor.checks()
    assert check.status == "OK"
    assert str(compilers.find_compiler()) in check.detail


def test_the_verdict_is_kept(monkeypatch):
    tried = []
    monkeypatch.setattr(sound, "wrong_forms", lambda *given: tried.append(given) or [])
    for _ in range(2):
        assert sound.flags_for(("mine",), ("mine",), "kept once", "clang") == ()
    assert len(tried) == len(LEVELS)
