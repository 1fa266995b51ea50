"""Chromium without a window: opens a page of a folder, runs scripts in it, takes pictures of it.

Commands go over two pipes by the DevTools protocol, which is JSON with a zero byte after each
message. WebGPU runs on a software driver that Chromium includes, so no GPU is needed.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PROGRAM = shutil.which("chromium") or shutil.which("google-chrome")
# A container's root has no sandbox and a small /dev/shm. On a busy machine, a software driver may
# take long over a shader without hanging.
HEADLESS = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu-watchdog",
            "--no-first-run", "--hide-scrollbars")  # fmt: skip
WEBGPU = ("--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader")
# The compositor uses the same driver, because any other leaves WebGPU's canvases blank.
COMPOSITOR = ("--enable-gpu", "--ignore-gpu-blocklist", "--enable-features=Vulkan",
              "--use-vulkan=swiftshader", "--use-angle=swiftshader",
              "--enable-unsafe-swiftshader")  # fmt: skip
PATIENCE = 300.0
"""Seconds after which a tab is closed in any case."""

Message = Mapping[str, Any]


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without a log."""

    def log_request(self, *_: object) -> None:
        pass

    log_error = log_request


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of `folder`."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class Tab:
    """The single page of a Chromium, whose profile is removed when it closes."""

    def __init__(
        self, size: tuple[int, int] = (800, 600), flags: Sequence[str] = WEBGPU + COMPOSITOR
    ) -> None:
        if PROGRAM is None:
            raise SystemExit("no chromium here (Debian: apt-get install chromium)")
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        profile = f"--user-data-dir={self._profile.name}"
        self._start([PROGRAM, *HEADLESS, *flags, "--remote-debugging-pipe", profile])
        self._watchdog = threading.Timer(PATIENCE, self._process.kill)
        self._watchdog.start()
        self._count = 0
        self._session: Message = {}
        target = self.tell("Target.createTarget", url="about:blank")["targetId"]
        session = self.tell("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._session = {"sessionId": session}
        screen = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
        self.tell("Emulation.setDeviceMetricsOverride", **screen)
        self.tell("Page.enable")

    def _start(self, command: list[str]) -> None:
        read_commands, write_commands = os.pipe()
        read_answers, write_answers = os.pipe()
        # Chromium reads from descriptor 3 and writes to 4.
        pipes = f'exec "$@" 3<&{read_commands} 4>&{write_answers}'
        self._process = subprocess.Popen(
            ["bash", "-c", pipes, "bash", *command],
            pass_fds=(read_commands, write_answers),
            stderr=subprocess.DEVNULL,
        )
        os.close(read_commands)
        os.close(write_answers)
        self._commands = os.fdopen(write_commands, "wb")
        self._answers = os.fdopen(read_answers, "rb")

    def tell(self, method: str, **parameters: object) -> Message:
        """The answer to a command."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters, **self._session}
        self._commands.write(json.dumps(message).encode() + b"\0")
        self._commands.flush()
        return self._first(lambda found: found.get("id") == self._count)["result"]

    def _first(self, is_wanted: Callable[[Message], bool]) -> Message:
        while True:
            text = bytearray()
            while (byte := self._answers.read(1)) != b"\0":
                if not byte:
                    raise RuntimeError(f"chromium ended; it has {PATIENCE:.0f} seconds")
                text += byte
            found = json.loads(text)
            if is_wanted(found):
                return found

    def open(self, address: str) -> None:
        self.tell("Page.navigate", url=address)
        self._first(lambda found: found.get("method") == "Page.loadEventFired")

    def value(self, script: str) -> Any:
        """The value of an expression, which may be a promise."""
        how = {"awaitPromise": True, "returnByValue": True}
        found = self.tell("Runtime.evaluate", expression=script, **how)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"])
        return found["result"].get("value")

    def picture(self) -> bytes:
        """A screenshot of the page, as PNG."""
        return base64.b64decode(self.tell("Page.captureScreenshot", format="png")["data"])

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Moves the pointer with its button down."""
        places = [("mousePressed", start), ("mouseMoved", end), ("mouseReleased", end)]
        for kind, (x, y) in places:
            button = {"button": "left", "buttons": 1, "clickCount": 1}
            self.tell("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)

    def __enter__(self) -> Tab:
        return self

    def __exit__(self, *_: object) -> None:
        self._watchdog.cancel()
        self._process.terminate()
        self._process.wait(PATIENCE)
        self._commands.close()
        self._answers.close()
        self._profile.cleanup()
