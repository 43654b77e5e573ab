"""Wheels in fresh environments, in every combination: what is missing is rejected readably.

Nothing of the workspace is seen: the environments have our packages from wheels only, and run away from the repository.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import zipfile
from pathlib import Path

import pytest
from distribution import (
    CORE,
    Built,
    Environment,
    combinations,
    copy_with,
    folders,
    outside,
    readme_kernel,
    run_uv,
    total,
)
from packaging.requirements import Requirement
from repository import ROOT

from tile_core.compat.known_packages import KINDS, folders_of

pytestmark = pytest.mark.registry

COMBINATIONS = combinations()

# Compiles README's kernel for every target that a published or an installed package has, and runs it on emulated ones.
PROBE = """
import json, runpy, sys
import numpy as np
import tile_core as tile
from tile_core.compiler import lower, source_text
from tile_core.errors import TileError
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed

kernel = runpy.run_path("kernel.py")["matmul"](200, 136, 192)
backends = {b.name: b for b in tile.targets()}
targets = {k: (backends[k].architectures or (k,))[0] if k in backends else k for k in {*sys.argv[1:], *backends}}
rng = np.random.default_rng()
a, b = (rng.standard_normal(shape).astype("float16") for shape in ((200, 192), (192, 136)))

def attempt(action, target):
    try:
        return {"text": action(target)}
    except TileError as error:
        return {"code": error.code, "message": error.message, "help": error.help}

def text(target):
    return source_text(lower(kernel, make_context(target, plugins=installed()), installed()))

def emulated(target):
    c = tile.compile(kernel, target, runtime="emulator", out_idx=-1)(a, b)
    np.testing.assert_allclose(c, a.astype("float64") @ b.astype("float64"), rtol=1e-4, atol=1e-3)
    return "right"

print(json.dumps({
    "core": tile.__file__,
    "backends": {b.name: [b.distribution, b.version, b.status, b.reason] for b in backends.values()},
    "texts": {k: attempt(text, t) for k, t in targets.items()},
    "emulated": {k: attempt(emulated, t) for k, t in targets.items() if k != "cpu" and k in backends},
    "modules": sorted({m.partition(".")[0] for m in sys.modules}),
}))
"""


def write_kernel(env: Environment) -> None:
    """Write README's kernel to a file, without what README does with it."""
    (env.folder / "kernel.py").write_text(readme_kernel().partition("\nkernel = ")[0], encoding="utf-8")


@pytest.fixture(scope="module")
def probed(environment):
    """A function from the name of a combination to what the probe found there."""
    found: dict[str, dict] = {}

    def probe(combination: str) -> dict:
        if combination not in found:
            env: Environment = environment(combination)
            write_kernel(env)
            done = env.run("-c", PROBE, *KINDS)
            assert done.returncode == 0, done.stdout + done.stderr
            found[combination] = json.loads(done.stdout.splitlines()[-1])
        return found[combination]

    return probe


@pytest.mark.parametrize("combination", [pytest.param(c, marks=pytest.mark.xdist_group(c)) for c in COMBINATIONS])
class TestCombinations:
    def test_what_is_installed_is_what_was_built(self, environment, built: dict[str, Built], combination: str) -> None:
        env: Environment = environment(combination)
        (site,) = {path.parent for path in env.folder.glob("**/tile_core")}
        for name in COMBINATIONS[combination]:
            with zipfile.ZipFile(built[name].wheel) as archive:
                files = {n: archive.read(n) for n in archive.namelist() if ".dist-info/" not in n}
            assert {n: (site / n).read_bytes() for n in files} == files

    @pytest.mark.sweep(0.25)
    def test_the_demo_runs(self, environment, combination: str) -> None:
        done = environment(combination).tile("demo")
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count("against a float64 reference, largest relative error") == 2
        assert "Traceback" not in done.stderr

    def test_its_backends_load_from_their_wheels(self, environment, probed, combination: str) -> None:
        found = probed(combination)
        assert Path(found["core"]).is_relative_to(environment(combination).folder)
        assert {info[2] for info in found["backends"].values()} == {"ok"}, found["backends"]
        named = {info[0] for info in found["backends"].values()}
        assert named == {CORE, *COMBINATIONS[combination]} - {"tile-emulator", "tile-tilelang"}

    def test_readmes_kernel_has_a_text_for_every_backend_and_a_readable_refusal_for_others(
        self, probed, combination: str
    ) -> None:
        found = probed(combination)
        for kind, answer in found["texts"].items():
            if kind in found["backends"]:
                assert len(answer.get("text", "")) > 1000 or answer["code"].startswith("U"), (kind, answer)
            else:
                assert answer["code"] == "S104", (kind, answer)
                assert (
                    answer["help"]
                    == f"it is provided by {KINDS[kind]}: pip install {folders_of(KINDS[kind])} in a checkout of tile"
                )

    def test_the_emulator_runs_it_or_is_asked_for_by_name(self, probed, combination: str) -> None:
        with_it = "tile-emulator" in COMBINATIONS[combination]
        for kind, answer in probed(combination)["emulated"].items():
            if with_it and f"tile-{kind}" not in outside():
                assert answer == {"text": "right"}, (kind, answer)
            elif not with_it:
                assert "emulator (of tile-emulator, not installed)" in answer["help"], (kind, answer)

    def test_no_library_of_arrays_of_a_vendor_is_imported(self, probed, combination: str) -> None:
        assert not {"torch", "cupy", "jax", "mlx"} & set(probed(combination)["modules"])


def test_readmes_program_runs_as_it_stands(environment) -> None:
    env: Environment = environment("all")
    (env.folder / "readme.py").write_text(readme_kernel(), encoding="utf-8")
    done = env.run("readme.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[K411] gemm: argument 'B' must be float16" in done.stdout


class TestWeight:
    """``pip install tile-core tile-metal`` installs neither torch nor CUDA.

    It installs nothing heavy that TVM does not need.
    """

    #: What we need and TVM does not: the plugin manager, and the command line with its colours.
    OURS = frozenset(
        {
            *("pluggy", "typer", "shellingham", "annotated-doc", "rich", "pygments", "markdown-it-py", "mdurl"),
            *("pydantic", "pydantic-core", "annotated-types", "typing-inspection"),  # typer's
        }
    )
    NUMBERS = frozenset({"numpy", "ml-dtypes"})

    @pytest.fixture
    def weights(self, environment) -> dict[str, int]:
        found: dict[str, int] = environment("core + metal").weights()
        return found

    def test_has_nothing_of_torch_or_cuda(self, weights: dict[str, int]) -> None:
        assert [n for n in weights if re.match(r"torch|triton|nvidia|cuda|cupy|jax|pyopencl", n)] == []

    def test_is_tvm_and_little_more(self, weights: dict[str, int]) -> None:
        tvm = self._closure("apache-tvm")
        assert weights.keys() - tvm - self.NUMBERS - self.OURS == {CORE, "tile-runtime", "tile-metal"}
        assert total(weights, weights.keys() - tvm - self.NUMBERS) < 20e6

    def test_is_the_same_without_tile_metal(self, environment, weights: dict[str, int]) -> None:
        alone = environment("core alone").weights()
        assert weights.keys() - alone.keys() == {"tile-metal"}

    def test_the_demo_of_a_checkout_fits(self, environment) -> None:
        assert total(environment("all").weights()) < 420e6

    @staticmethod
    def _closure(name: str) -> set[str]:
        """Return a distribution and its requirements as installed here, with the same versions."""
        found: set[str] = set()
        open_ = [name]
        while open_:
            found.add(name := open_.pop())
            required = [Requirement(line) for line in importlib.metadata.requires(name) or ()]
            needed = [r.name for r in required if r.marker is None or r.marker.evaluate({"extra": ""})]
            open_ += [n for n in (re.sub(r"[-_.]+", "-", n).lower() for n in needed) if n not in found]
        return found


NEXT_VERSION = "0.2.0"


@pytest.fixture(scope="module")
def next_wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the core and the Metal backend of a later release."""
    scratch, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("later")
    here = folders()
    version = {'version = "0.1.0"': f'version = "{NEXT_VERSION}"'}
    needs = {"tile-core>=0.1.0,<0.2": "tile-core>=0.2.0,<0.3"}
    metal = copy_with(here["tile-metal"], scratch, {"pyproject.toml": {**version, **needs}})
    init = {'__version__ = "0.1.0"': f'__version__ = "{NEXT_VERSION}"'}
    core = copy_with(here[CORE], scratch, {"pyproject.toml": version, "src/tile_core/__init__.py": init})
    for folder in (metal, core):
        run_uv("build", "--quiet", "--wheel", "--out-dir", out, folder)
    return out


class TestOutOfStep:
    """A core and a backend of different releases: rejected by the installer, else by us."""

    def test_the_installer_refuses(self, built, wheels: Path, next_wheels: Path, tmp_path: Path) -> None:
        metal = next(next_wheels.glob("tile_metal-*.whl"))
        output = Environment(tmp_path / "env").install(f"{CORE}==0.1.0", metal, links=wheels, check=False)
        output = " ".join(output.split())
        assert "No solution found" in output
        assert f"tile-metal=={NEXT_VERSION} depends on tile-core>=0.2.0,<0.3" in output

    @pytest.mark.sweep(0.25)
    @pytest.mark.parametrize("newer", ["tile-metal", "tile-core"])
    def test_we_refuse_naming_both_versions_and_the_remedy(
        self, built, wheels: Path, next_wheels: Path, tmp_path: Path, newer: str
    ) -> None:
        env = Environment(tmp_path / "env")
        env.install(CORE, "tile-metal", links=wheels)
        wheel = next(next_wheels.glob(f"{newer.replace('-', '_')}-*.whl"))
        env.install(wheel, links=wheels, dependencies=False)
        metal, core = ("0.2.0", "0.1.0") if newer == "tile-metal" else ("0.1.0", "0.2.0")
        needs = ">=0.2.0,<0.3" if newer == "tile-metal" else ">=0.1.0,<0.2"
        reason = (
            f"backend 'metal' comes from tile-metal {metal}, which requires tile-core {needs}; this is tile-core {core}"
        )
        self._refused(env, reason)

    def _refused(self, env: Environment, reason: str) -> None:
        write_kernel(env)
        arguments = [text for size in ("M", "N", "K") for text in ("--arg", f"{size}=256")]
        compiled = env.tile("compile", "kernel.py:matmul", "--target", "metal", *arguments)
        remedy = "update both: tile-core and tile-metal must be of one release"
        assert compiled.returncode == 1
        assert compiled.stderr.splitlines() == [
            f"error[S122]: {reason}",
            f"  = help: {remedy}",
            "  = more: tile why S122",
        ]
        doctor = env.tile("doctor", "--json")
        assert doctor.returncode == 1
        bad = {c["name"]: c for c in json.loads(doctor.stdout) if c["status"] == "missing"}
        assert bad.keys() == {"backend metal", "package metal"}
        assert bad["backend metal"]["detail"].replace("\n", " ") == reason
        assert bad["backend metal"]["remedy"] == remedy
        assert env.tile("compile", "kernel.py:matmul", "--target", "cpu", *arguments).returncode == 0


def test_pages_name_every_combination() -> None:
    page = (ROOT / "docs" / "packaging.md").read_text(encoding="utf-8")
    assert [name for name in folders() if f"`{name}`" not in page] == []
