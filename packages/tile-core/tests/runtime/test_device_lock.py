"""Turns on a device: who times is alone, who compiles makes way."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path

import pytest

from tile_core.runtime import device_lock


@pytest.fixture
def device(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return uuid.uuid4().hex


def run_threads(*works):
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def test_who_times_is_alone(device):
    inside, most = [], []

    def work(kind):
        def run():
            for _ in range(5):
                with kind(device):
                    inside.append(kind)
                    time.sleep(0.005)
                    if device_lock.alone in inside:
                        most.append(len(inside))
                    inside.remove(kind)

        return run

    run_threads(*(work(device_lock.alone) for _ in range(3)), *(work(device_lock.among_others) for _ in range(3)))
    assert set(most) == {1}
    assert len(most) >= 15


def test_who_compiles_need_not_be_alone(device):
    met = threading.Barrier(3, timeout=30)

    def work():
        with device_lock.among_others(device):
            met.wait()

    run_threads(work, work, work)


def test_devices_have_separate_locks(device):
    with device_lock.alone(device), device_lock.alone(f"{device} again"):
        pass


def test_a_process_that_ends_releases_its_lock(device, tmp_path):
    code = (
        "import os, sys, tempfile; from tile_core.runtime import device_lock; tempfile.tempdir = sys.argv[2]\n"
        "held = device_lock.alone(sys.argv[1]); held.__enter__(); print('held', flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, device, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    assert list(Path(tmp_path).glob("tile-turns-*.db"))
    process.kill()
    process.communicate()

    def take():
        with device_lock.alone(device):
            pass

    run_threads(take)


def test_without_a_folder_work_goes_on(monkeypatch, device):
    monkeypatch.setattr(tempfile, "tempdir", "/proc/nothing")
    with device_lock.alone(device), device_lock.among_others(device), device_lock.alone(device):
        pass
