"""Test that user-named files are written atomically, and nothing else is replaced."""

import builtins
import errno
import os
import socket
import stat
import subprocess
import sys

import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.cli import app
from tile_core.errors import TileError
from tile_core.errors.cli import CannotWrite
from tile_core.errors.launch import BadSetting
from tile_core.runtime import cache
from tile_core.runtime.files import write_named
from tile_core.runtime.results import Measured, Measurements, ResultsWarning

KERNEL = """
import tile_core.language as T

@T.prim_func
def add(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(2, threads=32) as bx:
        for i in T.Parallel(32):
            B[bx * 32 + i] = A[bx * 32 + i] + 1
"""


@T.prim_func
def add(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(2, threads=32) as bx:
        for i in T.Parallel(32):
            B[bx * 32 + i] = A[bx * 32 + i] + 1


@pytest.fixture(scope="module")
def kernel():
    return tile.compile(add, "metal", runtime="emulator")


def store(path):
    Measurements(path).store("key", Measured(1.0, "", "device"), config="", kernel="k", target="t")


def on_command_line(*given):
    def write(path, folder):
        source = folder / "kernel.py"
        source.write_text(KERNEL)
        shown = [str(path) if x is None else str(source) if x == "FILE" else x for x in given]
        status = app.run(shown)
        if status:
            raise SystemExit(status)

    return write


#: Everything that writes a file whose name a user gives.
WRITERS = {
    "export": lambda path, kernel: kernel.export(path),
    "--export": on_command_line("compile", "FILE", "--target", "metal", "--export", None),
    "--output": on_command_line("compile", "FILE", "--target", "metal", "--output", None),
    "results": lambda path, folder: store(path),
    "write_named": lambda path, folder: write_named(path, b"content"),
}


def write(how, path, folder, kernel):
    WRITERS[how](path, kernel if how == "export" else folder)


def identity(path):
    found = os.lstat(path)
    return found.st_ino, found.st_dev, found.st_mode, found.st_rdev


def make(kind, path):
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))
    elif kind == "link to a device":
        path.symlink_to("/dev/null")
    elif kind == "link to a folder":
        (path.parent / "below").mkdir()
        path.symlink_to("below")
    else:  # a loop of links
        path.symlink_to(path.name)


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("how", WRITERS)
@pytest.mark.parametrize("kind", ["folder", "pipe", "socket", "link to a device", "link to a folder", "loop"])
def test_other_things_than_files_stay(how, kind, tmp_path, kernel):
    path = tmp_path / "name"
    make(kind, path)
    before = identity(path)
    with pytest.raises((TileError, OSError, SystemExit, ResultsWarning)):
        write(how, path, tmp_path, kernel)
    assert identity(path) == before
    assert {p.name for p in tmp_path.iterdir()} <= {"name", "below", "kernel.py", "__pycache__"}


@pytest.mark.parametrize("how", WRITERS)
@pytest.mark.parametrize("there", [False, True])
def test_links_stay_and_their_file_is_written(how, there, tmp_path, kernel):
    path, real = tmp_path / "link", tmp_path / "real"
    path.symlink_to("real")
    if there and how != "results":
        real.write_text("old")
        real.chmod(0o640)
    write(how, path, tmp_path, kernel)
    assert path.is_symlink()
    assert real.stat().st_size > 3
    assert not there or how == "results" or stat.S_IMODE(real.stat().st_mode) == 0o640


@pytest.mark.parametrize("how", ["export", "--export", "--output", "write_named"])
def test_a_full_disk_leaves_the_old_file(how, tmp_path, kernel, monkeypatch):
    path = tmp_path / "file"
    path.write_text("old")

    class Full:
        def __init__(self, file):
            self.file = file

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

        def write(self, content):
            self.file.write(content[: len(content) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(cache, "open", lambda *how: Full(builtins.open(*how)), raising=False)  # noqa: SIM115
    with pytest.raises((TileError, OSError, SystemExit)):
        write(how, path, tmp_path, kernel)
    assert path.read_text() == "old"
    assert {p.name for p in tmp_path.iterdir()} <= {"file", "kernel.py", "__pycache__"}


LIMITED = """
import resource, sys
from tile_core.runtime.files import write_named
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_named(sys.argv[1], b"x" * 5000)
except OSError as error:
    print(error.strerror)
"""


def test_a_limit_of_the_system_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    done = subprocess.run([sys.executable, "-c", LIMITED, path], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == os.strerror(errno.EFBIG)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    assert path.read_text() == "old"


def test_dumps_are_refused_by_name(tmp_path):
    (tmp_path / "file").write_text("old")
    with pytest.raises(CannotWrite):
        tile.compile(add, "cpu", dump=tmp_path / "file" / "folder")
    with pytest.raises(CannotWrite):
        tile.compile(add, "cpu", dump="a" * 5000)


@pytest.mark.parametrize("call", [tile.load, lambda path: tile.compile(add, "cpu", dump=path)])
def test_a_name_with_a_null_character(call):
    with pytest.raises(BadSetting, match="null character"):
        call("a\0b")


@pytest.mark.parametrize("given", [
    ("run", "a" * 20_000), ("explain", "a" * 20_000), ("compile", "FILE", "--output", "a" * 20_000),
    ("compile", "FILE", "--dump", "a" * 20_000), ("compile", "FILE", "--target", "metal", "--export", "a" * 20_000),
    ("run", "FILE", "--target", "a" * 20_000), ("run", "FILE", "--arg", f"{'a' * 20_000}=1"),
    ("run", "FILE", "--runtime", "a" * 20_000), ("run", "FILE", "--seed", "-1"), ("run", "FILE", "--seed", "10" * 9),
])  # fmt: skip
def test_odd_command_lines(given, tmp_path, capsys):
    with pytest.raises(SystemExit):
        on_command_line(*given)(None, tmp_path)
    assert "I000" not in capsys.readouterr().err
