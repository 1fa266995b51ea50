"""Pages run in headless Chromium, whose WebGPU is SwiftShader's: no GPU, no float atomics."""

from __future__ import annotations

import queue
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

PROGRAM = shutil.which("chromium") or shutil.which("google-chrome")
WEBGPU = ("--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader")
# A container's root has no sandbox and a small /dev/shm.
HEADLESS = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--no-first-run")
PATIENCE = 120.0
"""Seconds; a page takes about five."""
REPORT = b"""
<script type="module">
import "./main.js";
await fetch("/result", { method: "POST", body: document.querySelector("pre").textContent });
</script>
"""
"""Added to each page: waits for its script, then sends what it shows."""

needed = pytest.mark.skipif(PROGRAM is None, reason="no chromium: apt-get install chromium")


class Handler(SimpleHTTPRequestHandler):
    """Serves a folder, and takes what pages send."""

    def __init__(self, *request: Any, results: queue.Queue[str], **options: Any) -> None:
        self.results = results
        super().__init__(*request, **options)

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        super().do_GET()
        if path.endswith(".html"):
            self.wfile.write(REPORT)

    def send_header(self, keyword: str, value: str) -> None:
        # The length is that of the file alone; without it the page ends with the connection.
        if not (keyword == "Content-Length" and ".html" in self.path):
            super().send_header(keyword, value)

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()
        self.results.put(sent.decode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def served(folder: Path, results: queue.Queue[str]) -> Iterator[str]:
    """The address of `folder`."""
    handler = partial(Handler, results=results, directory=folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def shown(folder: Path, page: str, profile: Path, flags: tuple[str, ...] = WEBGPU) -> str:
    """What the script of a page in `folder` leaves in its ``<pre>``."""
    results: queue.Queue[str] = queue.Queue()
    assert PROGRAM
    with served(folder, results) as address, (profile.parent / "chromium.log").open("w") as log:
        command = [PROGRAM, *HEADLESS, *flags, f"--user-data-dir={profile}", f"{address}/{page}"]
        browser = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            return results.get(timeout=PATIENCE)
        finally:
            browser.terminate()
            browser.wait(timeout=PATIENCE)
