"""Models of the emitter's instruction functions: same types, same architectures."""

import subprocess

import pytest

from tile_cuda.emulation import dialect_of
from tile_cuda.emulation.opcodes import Arch, model_of
from tile_cuda.ptx import TABLE, has, prelude
from tile_emulator.build import ENGINE
from tile_emulator.compilers import find_compiler
from tile_emulator.flags import FLAGS

TYPES = """typedef unsigned short f16;
typedef unsigned short bf16;
struct __align__(64) CUtensorMap { unsigned long long opaque[16]; };
"""
SPARE_TABLES = ("00", "ea", "96", "ff")  # the logical operations of three operands differ in one number


def test_every_instruction_has_a_model_for_its_architectures():
    for name, found in TABLE.items():
        if found.opcode:
            model = model_of(found.opcode)
            assert model is not None, name
            assert model.where() == ", ".join(found.arch.split()), name


@pytest.mark.sweep(1)
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_every_function_is_cpp_to_the_models(arch, tmp_path):
    names = [n for n, found in TABLE.items() if has(found, arch) and (n[:4] != "lop3" or n[-2:] in SPARE_TABLES)]
    dialect = dialect_of(Arch.of(arch))
    text = dialect.prepare(TYPES + "\n".join(prelude(names, arch)))
    assert "GCC error" not in text
    includes = "".join(f'#include "{header.name}"\n' for header in dialect.headers)
    source = tmp_path / "prelude.cpp"
    source.write_text(f'#include "simt.h"\n{includes}{text}\n')
    folders = [f"-I{folder}" for folder in (ENGINE, *(header.parent for header in dialect.headers))]
    command = [*find_compiler().command, *FLAGS, *dialect.flags, *folders, "-w", "-fsyntax-only", str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]
