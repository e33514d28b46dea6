"""Debian's Chromium, driven through its own protocol over a pipe.

Real keys, real rendering, the tree that screen readers get, and nothing to install for Python.
"""

import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from patience import HANG

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
    None,
)
needs_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium here: apt-get install chromium"
)
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars --remote-debugging-pipe"
)
#: Keys that are no character: their code for the browser, and the text that they type.
NAMED = {
    "Enter": (13, "\r"),
    "Escape": (27, ""),
    "Tab": (9, ""),
    "Backspace": (8, ""),
    "Delete": (46, ""),
    "End": (35, ""),
    "Home": (36, ""),
    "ArrowLeft": (37, ""),
    "ArrowUp": (38, ""),
    "ArrowRight": (39, ""),
    "ArrowDown": (40, ""),
}


class Browser:
    """A running Chromium. What its pages write to their console as errors is kept in `errors`."""

    def __init__(self, profile: Path) -> None:
        read, theirs_out = os.pipe()
        theirs_in, self._write = os.pipe()
        os.set_inheritable(theirs_in, True)
        os.set_inheritable(theirs_out, True)
        self._read, self._rest, self._last = read, b"", 0
        self.errors: list[str] = []

        def wire() -> None:  # the protocol's own numbers
            first, second = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(first, 3)
            os.dup2(second, 4)

        assert CHROMIUM is not None
        self.process = subprocess.Popen(
            [CHROMIUM, *FLAGS.split(), f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=wire,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)

    def call(self, method: str, session: str | None = None, **given: Any) -> Any:
        self._last += 1
        number = self._last
        message = {"id": number, "method": method, "params": given} | (
            {"sessionId": session} if session else {}
        )
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            said = self._message()
            if said.get("id") == number:
                assert "error" not in said, (method, said["error"])
                return said["result"]
            self._event(said)

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            there, _, _ = select.select([self._read], [], [], HANG)
            part = os.read(self._read, 1 << 20) if there else b""
            assert part, "the browser is gone, or hangs"
            self._rest += part
        whole, self._rest = self._rest.split(b"\0", 1)
        made: dict[str, Any] = json.loads(whole)
        return made

    def _event(self, said: dict[str, Any]) -> None:
        told, method = said.get("params", {}), said.get("method")
        levels = {
            "Log.entryAdded": told.get("entry", {}).get("level"),
            "Runtime.consoleAPICalled": told.get("type"),
        }
        if (
            method in ("Runtime.exceptionThrown", "Page.javascriptDialogOpening")
            or levels.get(method) == "error"
        ):
            self.errors.append(
                json.dumps(told)[:500]
            )  # the log only where it is asked for

    def tab(self, address: str) -> "Tab":
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        tab = Tab(self, session)
        for domain in ("Page", "Runtime", "Accessibility"):
            tab.call(f"{domain}.enable")
        tab.call(
            "Emulation.setFocusEmulationEnabled", enabled=True
        )  # as if every tab had a window of its own
        tab.call("Page.navigate", url=address)
        return tab

    def close(self) -> None:
        self.process.kill()
        self.process.wait(HANG)
        os.close(self._read)
        os.close(self._write)


class Tab:
    """A tab of the browser."""

    def __init__(self, browser: Browser, session: str) -> None:
        self.browser, self.session = browser, session

    def call(self, method: str, **given: Any) -> Any:
        return self.browser.call(method, self.session, **given)

    def js(self, expression: str) -> Any:
        """The value of an expression, awaited."""
        found = self.call(
            "Runtime.evaluate",
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
        )
        assert "exceptionDetails" not in found, (expression, found["exceptionDetails"])
        return found["result"].get("value")

    def until(self, expression: str) -> None:
        end = time.monotonic() + HANG
        while True:
            # A page that is just being left has nothing to evaluate in.
            with contextlib.suppress(AssertionError):
                if self.js(expression):
                    return
            assert time.monotonic() < end, (
                expression,
                self.text(),
                self.browser.errors,
            )
            time.sleep(0.03)

    def reload(self) -> None:
        self.js("window.before = true")
        self.call("Page.reload")
        self.until("!window.before && document.readyState === 'complete'")

    def text(self) -> str:
        """All that is shown."""
        return str(self.js("document.body.innerText"))

    def press(self, *keys: str, shift: bool = False) -> None:
        """Keys one after the other, each as somebody presses it."""
        self.call("Page.bringToFront")
        for key in keys:
            code, text = NAMED.get(key, (ord(key[0].upper()), key))
            event = {"key": key, "windowsVirtualKeyCode": code, "modifiers": 8 * shift}
            self.call(
                "Input.dispatchKeyEvent",
                type="keyDown" if text else "rawKeyDown",
                text=text,
                **event,
            )
            self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def type(self, words: str) -> None:
        self.call("Input.insertText", text=words)

    def look(self, *, dark: bool = False, width: int = 1200, height: int = 800) -> None:
        """How the page is looked at."""
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        ]
        self.call("Emulation.setEmulatedMedia", features=features)
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def names(self) -> list[tuple[str, str]]:
        """(role, name) of everything that a screen reader is told of."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [
            (node["role"]["value"], node.get("name", {}).get("value", ""))
            for node in nodes
            if not node.get("ignored") and "role" in node
        ]


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    made = Browser(tmp_path / "profile")
    yield made
    made.close()
