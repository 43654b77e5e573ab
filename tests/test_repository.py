"""The repository itself: files for newcomers, and check scripts that can fail."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import check_budgets
import check_examples
import check_words
import pytest
from repository import ROOT, files

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CORE = Path("packages", "tile-core", "src", "tile_core")


def project(folder: Path = ROOT) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


def packages() -> list[str]:
    return sorted(path.parent.name for path in ROOT.glob("packages/*/src/*/__init__.py"))


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


class TestClone:
    @pytest.mark.parametrize("command", ["pip install uv\nuv run tile demo", "uv run --group dev pytest"])
    def test_readme_shows_the_command_and_ci_runs_it(self, command: str) -> None:
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        assert f"<!-- ci: run -->\n```bash\n{command}\n```" in readme

    def test_license_is_complete(self) -> None:
        text = (ROOT / "LICENSE").read_text(encoding="utf-8")
        assert "Apache License" in text
        assert "END OF TERMS AND CONDITIONS" in text

    def test_uv_lock_is_not_part_of_the_repository(self) -> None:
        assert ROOT / "uv.lock" not in set(files(ROOT))
        assert "uv.lock" in (ROOT / ".gitignore").read_text(encoding="utf-8").split()

    def test_no_path_of_a_machine_and_no_registry_address(self) -> None:
        assert check_words.check_machine(ROOT) == []


class TestRequirementsLock:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    requirements = re.findall(r"^([a-z0-9-]+)==(\S+)", text, re.MULTILINE)

    def test_has_no_address(self) -> None:
        assert "://" not in self.text
        assert "index" not in self.text

    def test_every_requirement_has_a_hash(self) -> None:
        blocks = re.split(r"^(?=[a-z])", self.text, flags=re.MULTILINE)[1:]
        assert len(blocks) == len(self.requirements)
        assert all("--hash=sha256:" in block for block in blocks)

    def test_has_the_exact_pins_of_tvm(self) -> None:
        assert ("apache-tvm", "0.27.0.post1") in self.requirements
        assert ("apache-tvm-ffi", "0.1.14.post1") in self.requirements

    def test_never_pulls_in_torch_or_jax(self) -> None:
        assert not {"jax", "jaxlib", "torch", "triton"} & {name for name, _ in self.requirements}

    def test_uv_resolves_to_the_same_versions(self) -> None:
        pins = {pin.partition(" ")[0] for pin in project()["tool"]["uv"]["constraint-dependencies"]}
        assert {f"{name}=={version}" for name, version in self.requirements} <= pins


class TestPackages:
    def test_each_is_known_to_import_linter(self) -> None:
        linter = project()["tool"]["importlinter"]
        (apart,) = (contract for contract in linter["contracts"] if contract["type"] == "independence")
        assert sorted(linter["root_packages"]) == packages()
        assert sorted(["tile_core", "tile_cuda_runtime", "tile_runtime", *apart["modules"]]) == packages()

    @pytest.mark.parametrize("folder", sorted(ROOT.glob("packages/[!.]*")), ids=lambda folder: folder.name)
    def test_each_has_what_a_package_needs(self, folder: Path) -> None:
        (source,) = (folder / "src").glob("*/")
        assert (source / "py.typed").exists()
        assert (folder / "README.md").exists()
        assert project(folder)["project"]["name"] == folder.name == source.name.replace("_", "-")
        assert folder.name in project()["project"]["dependencies"]

    @pytest.mark.parametrize("package", packages())
    def test_contributing_says_what_each_folder_is(self, package: str) -> None:
        page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Where things live")[2]
        (source,) = ROOT.glob(f"packages/*/src/{package}")
        folders = [path.parent.relative_to(source).as_posix() for path in source.glob("**/*.py")]
        assert not {f for f in folders if f != "." and f"`{f}/`" not in page}

    def test_folders_of_tests_do_not_take_each_others_names(self) -> None:
        """A folder with ``__init__.py`` is a module below its last parent with one."""
        inits = [path.parent for path in ROOT.glob("packages/*/tests/**/__init__.py")]
        top = [folder.name for folder in inits if folder.parent not in inits]
        assert len(set(top)) == len(top)
        assert "tests" not in top

    def test_the_cpu_backend_enters_through_the_door(self) -> None:
        declared = project(ROOT / "packages/tile-core")["project"]["entry-points"]
        assert declared["tile.backends"]["cpu"] == "tile_core.cpu.plugin"


class TestCoreImport:
    def test_works_without_torch_and_vendor_packages(self) -> None:
        hidden = ["torch", "cupy", "jax", "mlx", "cuda", "pyopencl"]
        code = f"import sys; sys.modules.update(dict.fromkeys({hidden})); import tile_core, tile_core.language"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def test_loads_neither_tvm_nor_a_backend(self) -> None:
        assert check_budgets.check_loaded() == []


class TestBudgets:
    @pytest.mark.sweep(1)
    def test_hold(self) -> None:
        assert check_budgets.check_lengths(ROOT) == []

    def test_catches_a_long_file(self, tmp_path: Path) -> None:
        write(tmp_path / "a.py", "x = 1\n" * 501)
        assert check_budgets.check_lengths(tmp_path) == ["a.py: 501 lines, the budget is 500: split it"]

    def test_catches_a_long_nested_function(self, tmp_path: Path) -> None:
        body = "            x = 1\n" * 60
        write(tmp_path / "a.py", f"class A:\n    def f(self):\n        def g():\n{body}")
        assert check_budgets.check_lengths(tmp_path) == [
            "a.py:A.f: 62 lines, the budget is 60: split it",
            "a.py:A.f.g: 61 lines, the budget is 60: split it",
        ]

    def test_an_exception_is_exact(self, tmp_path: Path) -> None:
        write(tmp_path / "a.py", "x = 1\n" * 510)
        write(tmp_path / check_budgets.EXCEPTIONS, "# comment\na.py 510  # why\n")
        assert check_budgets.check_lengths(tmp_path) == []
        write(tmp_path / "a.py", "x = 1\n" * 505)
        (problem,) = check_budgets.check_lengths(tmp_path)
        assert problem == "a.py: 505 lines, the exception allows 510: it may only shrink"

    def test_an_exception_is_needed(self, tmp_path: Path) -> None:
        write(tmp_path / "a.py", "x = 1\n")
        write(tmp_path / check_budgets.EXCEPTIONS, "a.py 510\nb.py 510\n")
        assert check_budgets.check_lengths(tmp_path) == [
            "a.py: 1 lines are within the budget of 500: remove the exception",
            "b.py: no such file or function: remove the exception",
        ]

    def test_expected_texts_are_free(self, tmp_path: Path) -> None:
        write(tmp_path / "tests" / "golden" / "gemm.cu", "x\n" * 501)
        assert check_budgets.check_lengths(tmp_path) == []

    @pytest.mark.parametrize(
        ("module", "lazy"),
        [("tvm", True), ("tvm.ir", True), ("tile_core.cpu.plugin", True), ("tvmx", False), ("tile_core.ir", False)],
    )
    def test_knows_what_is_lazy(self, module: str, lazy: bool) -> None:
        assert check_budgets.is_lazy(module) is lazy


class TestWords:
    def test_the_core_names_no_vendor(self) -> None:
        assert check_words.check_vendor_words(ROOT) == []

    @pytest.mark.parametrize(
        "line",
        ["# for NVIDIA", "import tile_cuda", "tile-metal", "is_hip = 1", "a = 'sm_90a'", "ldmatrix.x4", "gfx942"],
    )
    def test_catches_a_vendor(self, tmp_path: Path, line: str) -> None:
        write(tmp_path / CORE / "ops" / "copy.py", f"x = 1\n{line}\n")
        (problem,) = check_words.check_vendor_words(tmp_path)
        assert problem.startswith(f"{(CORE / 'ops' / 'copy.py').as_posix()}:2: the core names a vendor: ")

    @pytest.mark.parametrize("line", ["amd64", "ship chip", "metallic", "small", "warp_reduce", "execute"])
    def test_passes_other_words(self, tmp_path: Path, line: str) -> None:
        write(tmp_path / CORE / "ops" / "copy.py", line)
        assert check_words.check_vendor_words(tmp_path) == []

    def test_the_doors_may_name_vendors(self, tmp_path: Path) -> None:
        write(tmp_path / CORE / "compat" / "arrays.py", "cuda")
        assert check_words.check_vendor_words(tmp_path) == []

    def test_an_exception_holds_where_it_says_and_is_needed(self, tmp_path: Path) -> None:
        write(tmp_path / check_words.EXCEPTIONS, "sparse cutlass_sm80\nsparse cutlass_sm90\n")
        write(tmp_path / CORE / "sparse" / "convert.py", "layout = 'cutlass_sm80'\n")
        write(tmp_path / CORE / "layout.py", "layout = 'cutlass_sm80'\n")
        found, unused = check_words.check_vendor_words(tmp_path)
        assert "layout.py:1: the core names a vendor: cutlass" in found
        assert unused == "tools/word_exceptions.txt: not needed: sparse cutlass_sm90"

    @pytest.mark.parametrize(
        ("text", "what"),
        [
            ("see {}root/notes", "a path of one machine"),
            ("'{}work/main'", "a path of one machine"),
            ("{}home/somebody/x", "a path of one machine"),
            ("--index-url https:{0}{0}host.example", "a registry address"),
            ("https:{0}{0}host.example/simple", "a registry address"),
            ('registry = "https:{0}{0}host.example"', "a registry address"),
        ],
    )
    def test_catches_a_machine(self, tmp_path: Path, text: str, what: str) -> None:
        write(tmp_path / "docs" / "a.md", "fine\n" + text.format("/"))
        (problem,) = check_words.check_machine(tmp_path)
        assert problem.startswith(f"docs/a.md:2: {what}: ")

    @pytest.mark.parametrize(
        "text", ["https:{0}{0}github.com{0}a{0}work{0}tree", "src{0}root", "a{0}home{0}b", "pip config get index-url"]
    )
    def test_passes_other_paths(self, tmp_path: Path, text: str) -> None:
        write(tmp_path / "docs" / "a.md", text.format("/"))
        assert check_words.check_machine(tmp_path) == []


class TestExamples:
    def test_blocks_of_a_page_share_a_process_and_keep_their_lines(self, tmp_path: Path) -> None:
        page = write(tmp_path / "a.md", "# A\n```python\nx = 2\n```\ntext\n```python\nassert x == 3, x\n```\n")
        problem = check_examples.check(page)
        assert problem is not None
        assert "line 7" in problem
        assert "AssertionError: 2" in problem

    def test_an_indented_block_runs(self, tmp_path: Path) -> None:
        page = write(tmp_path / "a.md", "- item\n\n    ```python\n    if True:\n        raise SystemExit(3)\n    ```\n")
        problem = check_examples.check(page)
        assert problem is not None
        assert "exit code 3" in problem

    def test_a_block_is_left_out_with_a_reason_only(self, tmp_path: Path) -> None:
        block = "```python\nraise SystemExit(3)\n```\n"
        skipped = write(tmp_path / "a.md", "<!-- example: skip, needs a device -->\n" + block)
        assert check_examples.documents(tmp_path) == []
        assert check_examples.check(skipped) is None
        assert check_examples.check(write(tmp_path / "b.md", "<!-- example: skip -->\n" + block)) is not None

    def test_what_a_page_says_is_printed_is_printed(self, tmp_path: Path) -> None:
        block = (
            "```python\nprint('a 1 \\n  at /some/where/x.py:7\\nb')\n```\n<!-- example: printed -->\n```text\n%s\n```\n"
        )
        assert check_examples.check(write(tmp_path / "a.md", block % "a 1\n  at kernel.py:12")) is None
        problem = check_examples.check(write(tmp_path / "b.md", block % "a 2"))
        assert problem is not None
        assert "expected output is missing:\na 2" in problem

    def test_other_languages_do_not_run(self, tmp_path: Path) -> None:
        write(tmp_path / "a.md", "```bash\nfalse\n```\n\n```\nnot python\n```\n")
        assert check_examples.documents(tmp_path) == []

    def test_an_example_file_fails_by_its_exit_code(self, tmp_path: Path) -> None:
        good = write(tmp_path / "examples" / "good.py", "print(1)")
        bad = write(tmp_path / "examples" / "bad.py", "raise ValueError('seeded')")
        assert sorted(check_examples.documents(tmp_path)) == [bad, good]
        assert check_examples.check(good) is None
        problem = check_examples.check(bad)
        assert problem is not None
        assert "ValueError: seeded" in problem

    def test_an_example_may_require_a_package(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        example = write(tmp_path / "examples" / "a.py", "# requires: no_such_package\nimport no_such_package")
        assert check_examples.check(example) is None
        assert "a.py: left out, needs no_such_package" in capsys.readouterr().out
