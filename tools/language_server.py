"""pyright's language server, asked as an editor asks it: completions, and the text over a name."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

#: Kinds of completions that are no names of the module (keywords of Python, snippets).
_NO_NAMES = (14, 15)


class LanguageServer:
    """A running server for the files of a folder.

    Parameters
    ----------
    folder
        Where the files that are asked about stand.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        command = [sys.executable, "-m", "pyright.langserver", "--stdio"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder)
        self._number = 0
        settings = {"workspace": {"configuration": True}, "textDocument": {"hover": {"contentFormat": ["plaintext"]}}}
        root = {"uri": folder.as_uri(), "name": "pages"}
        self.ask(
            "initialize", {"processId": None, "rootUri": None, "capabilities": settings, "workspaceFolders": [root]}
        )
        self._send({"method": "initialized", "params": {}})

    def __enter__(self) -> LanguageServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.ask("shutdown", None)
        self._send({"method": "exit"})
        self._process.wait(timeout=20)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def completions(self, text: str) -> list[str]:
        """Return the names that are offered at the end of a text."""
        found = self.ask("textDocument/completion", self._at_end(text))
        return sorted(item["label"] for item in found["items"] if item.get("kind") not in _NO_NAMES)

    def hover(self, text: str) -> str:
        """Return what is shown over the last name of a text."""
        found = self.ask("textDocument/hover", self._at_end(text))
        return str(found["contents"]["value"]) if found else ""

    def ask(self, method: str, params: Mapping[str, Any] | None) -> Any:
        """Send a request and return its result; questions of the server get its settings."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        while True:
            message = self._read()
            if "method" in message and "id" in message:
                python = {"pythonPath": sys.executable, "analysis": {}}
                items = message.get("params", {}).get("items", [])
                sections = [python if item.get("section") == "python" else {} for item in items]
                self._send({"id": message["id"], "result": sections})
            elif message.get("id") == self._number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]

    def _at_end(self, text: str) -> dict[str, Any]:
        """Open a text as a new file, and return the position behind its last character."""
        uri = (self._folder / f"page_{self._number}.py").as_uri()
        document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self._send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        lines = text.split("\n")
        return {"textDocument": {"uri": uri}, "position": {"line": len(lines) - 1, "character": len(lines[-1])}}

    def _send(self, message: Mapping[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        stream: IO[bytes] = self._process.stdin  # type: ignore[assignment]
        stream.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        stream.flush()

    def _read(self) -> Any:
        stream: IO[bytes] = self._process.stdout  # type: ignore[assignment]
        length = 0
        while (line := stream.readline().strip()) or not length:
            if not line and not length:
                raise RuntimeError("the language server ended")
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        return json.loads(stream.read(length))
