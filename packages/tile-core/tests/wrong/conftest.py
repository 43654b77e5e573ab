"""Build wrong programs as modules, so that errors have a file and a line."""

import pytest

from tile_core.errors import InternalError, TileError

HEAD = "import math\nimport numpy as np\nimport tile_core as tile\nimport tile_core.language as T\n"


class Refusals:
    """Runs modules and looks at what they raise."""

    def __init__(self, folder):
        self.folder = folder
        self.count = 0

    def run(self, text, then=None):
        """Execute a module; returns the error of the catalogue that it raises (or ``then`` of its names), or None."""
        self.count += 1
        path = self.folder / f"program_{self.count}.py"
        path.write_text(HEAD + text)
        names = {"__name__": path.stem}
        try:
            exec(compile(HEAD + text, str(path), "exec"), names)
            if then is not None:
                then(names)
        except TileError as error:
            return error, path
        return None, path

    def wrong(self, text, line, code=None, then=None, optional=False):
        """Assert that a module is refused as it should be; ``line`` is the text of a line, or None for no matter."""
        error, path = self.run(text, then)
        if error is None and optional:
            return None
        assert error is not None, f"nothing was refused:\n{text}"
        assert not isinstance(error, InternalError), f"{error}\n{text}"
        shown = str(error)
        assert error.code == code or code is None, f"{shown}\nexpected {code}\n{text}"
        assert shown.startswith(f"[{error.code}] ")
        assert error.message
        assert error.help, shown
        assert "\n   = help: " in shown
        if line is not None:
            assert error.where is not None, shown
            assert error.where.file == str(path), shown
            assert line in error.where.source, f"{shown}\nexpected line {line!r}\n{text}"
            assert f"  --> {path}:{error.where.line}\n   |  {error.where.source}" in shown
        return error


@pytest.fixture(scope="session")
def refusals(tmp_path_factory):
    return Refusals(tmp_path_factory.mktemp("wrong"))
