"""Deliberately broken plugins, with the expected report of ``tile doctor``, for tests.

Each is a correct backend, which compiles for the host under another name, with one thing changed.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path

#: The module of a correct backend; a way to be broken stands behind it, and replaces something.
_CORRECT = '''\
"""A backend."""

import dataclasses

from tile_core.cpu import plugin as cpu
from tile_core.manifest import BackendManifest


def manifest(**fields):
    own = {"name": NAME, "api": ">=1,<2", "target_kinds": (NAME,), "fingerprint": "1"}
    return BackendManifest(**{**own, "options": cpu.tile_backend().options, **fields})


def tile_backend():
    return manifest()


def tile_target(text):
    own = dataclasses.replace(cpu.tile_target("cpu"), text=NAME, kind=NAME, backend=NAME)
    return own if text == NAME else None


tile_lowerings, tile_pipeline, tile_runtimes = cpu.tile_lowerings, cpu.tile_pipeline, cpu.tile_runtimes
'''


@dataclass(frozen=True)
class Broken:
    """A distribution with one entry point, broken in one way.

    Attributes
    ----------
    name
        Name of the entry point.
    says
        The report of ``tile doctor``, as a part of its line; ``{version}`` is the version of tile-core.
    code
        What is wrong in its module.
    before
        What is wrong at the head of its module.
    value
        The text of the entry point instead of the module.
    distribution
        The name of its distribution, if it is not made of the entry point's.
    group
        The entry point's group.
    requires
        Its requirement of tile-core.
    subject
        The subject of the doctor's report, if not ``backend <name>``.
    ends
        Whether it ends a process that loads it, or never lets it go on.
    """

    name: str
    says: str
    code: str = ""
    before: str = ""
    value: str = ""
    distribution: str = ""
    group: str = "tile.backends"
    requires: str = "tile-core"
    subject: str = ""
    ends: bool = False

    @property
    def about(self) -> str:
        """Return the subject of the doctor's report."""
        return self.subject or f"backend {self.name}"

    @property
    def module(self) -> str:
        """The name of its package."""
        return (self.distribution or f"tile-{self.name}").replace("-", "_").replace(".", "_")

    def write(self, folder: Path) -> Path:
        """Write its source tree into a folder of its own, and return the folder."""
        root = folder / self.module
        package = root / "src" / self.module
        package.mkdir(parents=True)
        project = {"name": self.module.replace("_", "-"), "version": "1.0.0"}
        lines = ["[project]", *(f'{key} = "{value}"' for key, value in project.items())]
        lines += [f"dependencies = ['{self.requires}']", f'[project.entry-points."{self.group}"]']
        lines += [f"'{self.name}' = '{self.value or self.module + '.plugin'}'"]
        (root / "pyproject.toml").write_text("\n".join(lines), encoding="utf-8")
        (package / "__init__.py").write_text("", encoding="utf-8")
        text = f"NAME = {self.name!r}\n{textwrap.dedent(self.before)}\n{_CORRECT}\n{textwrap.dedent(self.code)}"
        (package / "plugin.py").write_text(text, encoding="utf-8")
        return root


def raising(hook: str, arguments: str, error: str) -> str:
    """Return the code of a hook that raises."""
    return f"def {hook}({arguments}):\n    raise {error}\n"


_FAILS = "raise OSError('libdriver.so.1: cannot open shared object file')"
_VARIANT = """
    from tile_core.lowering.variant import Accept, Variant

    class Copy(Variant):
        name, op, priority = NAME + ".copy", "copy", 10**6
        {attributes}
        def lower(self, call, ctx):
            {lower}

    def tile_lowerings(target):
        return (Copy(), *cpu.tile_lowerings(target))
"""
_PASS = """
    from tile_core.passes.spine import Pass

    def odd(plan, ctx):
        {body}

    def tile_pipeline(target, spine):
        return cpu.tile_pipeline(target, spine).then(Pass("odd", odd))
"""
_RUNTIME = """
    from tile_core.cpu.runtime.host import HostAdapter

    class Odd(HostAdapter):
        name = "odd"
        {method}

    def tile_runtimes(target):
        return [Odd(target)]
"""

AT_LOADING = (
    Broken("b-import", "is installed but broken: OSError: libdriver.so.1: cannot open shared object", before=_FAILS),
    Broken("b-gone", "broken: ModuleNotFoundError: No module named 'tile_b_gone.elsewhere'",
           value="tile_b_gone.elsewhere"),
    Broken("b-attribute", "broken: AttributeError: module 'tile_b_attribute.plugin' has no attribute 'nothing'",
           value="tile_b_attribute.plugin:nothing"),
    Broken("b-value", "broken: ImportError: the entry point's value 'not a module!' names no module",
           value="not a module!"),
    Broken("b-syntax", "broken: SyntaxError: invalid syntax", code="def tile_detect(: pass"),
    Broken("b-exits", "broken: SystemExit: 3", before="raise SystemExit(3)"),
    Broken("b-no-manifest", "does not implement the mandatory hook tile_backend", code="del tile_backend"),
    Broken("b-manifest-raises", "hook tile_backend of backend 'b-manifest-raises' raised KeyError: 'HOME_OF_MINE'",
           code=raising("tile_backend", "", "KeyError('HOME_OF_MINE')")),
    Broken("b-manifest-dict", "hook tile_backend of backend 'b-manifest-dict' returned {'name': 'b'}; expected a",
           code="def tile_backend():\n    return {'name': 'b'}"),
    Broken("b-other-name", "has name='sample'; expected its entry point's name",
           code="def tile_backend():\n    return manifest(name='sample')"),
    Broken("b-api", "is made for plugin API >=2,<3; this is tile-core {version}, which has API 1.0",
           code="def tile_backend():\n    return manifest(api='>=2,<3')\n\ndef tile_of_the_future(weather):\n    pass"),
    Broken("b-old-api", "is made for plugin API >=0.3,<1; this is tile-core {version}, which has API 1.0",
           code="def tile_backend():\n    return manifest(api='>=0.3,<1')"),
    Broken("b-bounds", "which requires tile-core >=99; this is tile-core {version}", requires="tile-core>=99"),
    Broken("b-takes-cpu", "the target kind 'cpu' is provided by tile-b-takes-cpu 1.0.0 and by tile-core",
           code="def tile_backend():\n    return manifest(target_kinds=(NAME, 'cpu'))"),
    Broken("b-lists-text", "has architectures='b-lists-text:a'; expected a tuple of targets of its kinds",
           code="def tile_backend():\n    return manifest(architectures='b-lists-text:a')"),
    Broken("b-lists-others", "has architectures=('cpu:a',); expected a tuple of targets of its kinds",
           code="def tile_backend():\n    return manifest(architectures=('cpu:a',))"),
    Broken("b-misspelt", "there is no hook tile_lowering", code="def tile_lowering(target):\n    return ()"),
    Broken("b-argument", "Argument(s) {'weather'} are declared in the hookimpl but can not be found in the hookspec",
           code="def tile_emulation(target, weather):\n    return None"),
    Broken("sample", "the backend 'sample' is provided by tile-", distribution="tile-b-duplicate"),
)  # fmt: skip

AT_USE = (
    Broken("b-target", "hook tile_target of backend 'b-target' raised KeyError: 'no such architecture'",
           code="def tile_target(text):\n    return {}['no such architecture']"),
    Broken("b-target-text", "hook tile_target of backend 'b-target-text' returned 'B-TARGET-TEXT'; expected a Target",
           code="def tile_target(text):\n    return text.upper()"),
    Broken("b-target-none", "no installed backend supports target 'b-target-none'",
           code="def tile_target(text):\n    return None"),
    Broken("b-target-other", "returned a target of backend 'cpu'; expected one of its own",
           code="def tile_target(text):\n    return cpu.tile_target('cpu')"),
    Broken("b-detect", "hook tile_detect of backend 'b-detect' raised OSError: driver is too old",
           code=raising("tile_detect", "", "OSError('driver is too old')")),
    Broken("b-language", "hook tile_language of backend 'b-language' returned ['rubbish']; expected a mapping",
           code="def tile_language():\n    return ['rubbish']"),
    Broken("b-lowerings", "hook tile_lowerings of backend 'b-lowerings' returned [<object",
           code="def tile_lowerings(target):\n    return [object()]"),
    Broken("b-table", "[S101] Extent.step, low, high is Extent(step=-16", code="""
        from tile_core.lowering.legality import Atom, Legality

        def tile_lowerings(target):
            return (Legality(atoms=(Atom({"M": -16}, frozenset()),)),)
    """),
    Broken("b-table-rubbish", "variant b-table-rubbish.copy raised AttributeError: 'dict' object has no attribute",
           code=_VARIANT.format(attributes="legality = {'M': 16}", lower="return None")),
    Broken("b-twice", "has two variants named 'cpu.",
           code="def tile_lowerings(target):\n    return [*cpu.tile_lowerings(target)] * 2"),
    Broken("b-variant", "variant b-variant.copy raised ZeroDivisionError: integer division",
           code=_VARIANT.format(attributes="", lower="return 1 // 0")),
    Broken("b-pipeline", "hook tile_pipeline of backend 'b-pipeline' returned 7; expected a Spine",
           code="def tile_pipeline(target, spine):\n    return 7"),
    Broken("b-no-tail", "returned passes that do not set Plan.lowered; expected a last one that does",
           code="def tile_pipeline(target, spine):\n    return spine"),
    Broken("b-name", "ModuleNotFoundError for 'tile_b_nowhere:copy': No module named 'tile_b_nowhere'",
           code="def tile_language():\n    return {'b_copy': 'tile_b_nowhere:copy'}"),
    Broken("b-unanswered", "no installed backend supports target 'b-unanswered:a'",
           code="def tile_backend():\n    return manifest(architectures=(NAME + ':a',))"),
    Broken("b-emitter", "pass 'odd', of backend 'b-emitter' raised RecursionError: of type tensor",
           code=_PASS.format(body="raise RecursionError('of type tensor')")),
    Broken("b-emits-none", "pass 'odd', of backend 'b-emits-none' returned None; expected a Plan",
           code=_PASS.format(body="return None")),
    Broken("b-runtimes", "hook tile_runtimes of backend 'b-runtimes' returned ['driver']; expected a sequence",
           code="def tile_runtimes(target):\n    return ['driver']"),
    Broken("b-probe", "the runtime 'odd' is installed but broken: load raised OSError: no permission for /dev/odd",
           code=_RUNTIME.format(method="def load(self, artefact): raise OSError('no permission for /dev/odd')")),
    Broken("b-emulation", "hook tile_emulation of backend 'b-emulation' returned 'model'; expected a Dialect or None",
           code="def tile_emulation(target):\n    return 'model'"),
    Broken("b-cases", "hook tile_cases of backend 'b-cases' returned ['units']; expected a mapping of names to",
           code="def tile_cases(target):\n    return ['units']"),
    Broken("b-tilings", "hook tile_tilings of backend 'b-tilings' returned 'model'; expected a TilingModel or None",
           code="def tile_tilings(target):\n    return 'model'"),
    Broken("b-prints", "it prints to standard output, where programs read results: 'hello from b'",
           before="print('hello from b')"),
    Broken("cpu.b-extra", "add-on 'cpu.b-extra' is left out: hook tile_lowerings of backend 'cpu.b-extra' raised",
           code="del tile_target, tile_pipeline, tile_runtimes\n\ndef tile_backend():\n"
                "    return manifest(target_kinds=(), options=None)\n\n"
                "def tile_lowerings(target):\n    return 1 // 0"),
    Broken("b-runtime", "the runtime 'b-runtime' is installed but broken: AttributeError: module 'tile_b_runtime",
           group="tile.runtimes", subject="runtime b-runtime", value="tile_b_runtime.plugin:make"),
    Broken("b-runtime-makes", "is installed but broken: ZeroDivisionError", group="tile.runtimes",
           subject="runtime b-runtime-makes", value="tile_b_runtime_makes.plugin:make",
           code="def make(target, dialect):\n    return 1 // 0"),
    Broken("b-checks", "its checks do not run: SystemExit: 4", group="tile.checks", subject="package b-checks",
           value="tile_b_checks.plugin:checks", code="def checks():\n    raise SystemExit(4)"),
    Broken("b-checks-text", "its checks answer 'all is well'; expected a Check", group="tile.checks",
           subject="package b-checks-text", value="tile_b_checks_text.plugin:checks",
           code="def checks():\n    yield 'all is well'"),
)  # fmt: skip

ENDING = (
    Broken("b-crash", "the process that tried it was ended by signal 11", ends=True,
           before="import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)"),
    Broken("b-leaves", "the process that tried it ended with status 7", ends=True, before="import os\nos._exit(7)"),
    Broken("b-interrupts", "the process that tried it", ends=True, before="raise KeyboardInterrupt"),
)  # fmt: skip

HANGING = Broken("b-hangs", "it hangs: it did not come back within", before="import time\ntime.sleep(1e6)", ends=True)

ALL = (*AT_LOADING, *AT_USE, *ENDING)
"""All but the one that hangs, whose line takes time."""
