"""Chromium driven over a pipe: its own protocol, one JSON message after the other, no package and no port.

The browser starts with an empty profile and everything that could talk to a network of its own switched off.
What the page asks for, what it logs and what it throws is collected.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def find_chromium():
    """The program, null if there is none on PATH."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Chromium:
    """A running browser with one page. Use as a context manager."""

    def __init__(self, program):
        self._folder = tempfile.TemporaryDirectory(prefix="oakledger-chromium-", ignore_cleanup_errors=True)
        read_in, self._write = os.pipe()
        self._read, write_out = os.pipe()

        # The browser reads descriptor 3 and writes descriptor 4.
        def descriptors():
            a, b = os.dup(read_in), os.dup(write_out)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self._process = subprocess.Popen(
            [
                program,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--no-default-browser-check",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--remote-debugging-pipe",
                f"--user-data-dir={self._folder.name}",
                "about:blank",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=descriptors,
            start_new_session=True,
        )
        os.close(read_in)
        os.close(write_out)
        self._buffer = b""
        self._number = 0
        self._session = None
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)
        self._folder.cleanup()

    def _message(self, deadline):
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(deadline - time.monotonic(), 0))
            if not ready:
                raise TimeoutError("the browser did not answer in time")
            data = os.read(self._read, 1 << 20)
            if not data:
                raise EOFError("the browser has gone")
            self._buffer += data
        one, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(one)

    def call(self, method, timeout=120, **params):
        """Call a method of the protocol and return its result; events on the way are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        deadline = time.monotonic() + timeout
        while True:
            answer = self._message(deadline)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, path, timeout=120):
        """Open a file and wait until it is loaded."""
        self.events.clear()
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        deadline = time.monotonic() + timeout
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self._message(deadline))

    def run(self, script, timeout=120):
        """Evaluate a script, wait for a promise, return its value."""
        result = self.call(
            "Runtime.evaluate",
            timeout=timeout,
            expression=script,
            returnByValue=True,
            awaitPromise=True,
        )
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"])[:2000])
        return result["result"].get("value")

    def width(self, width, height=900, mobile=False):
        """Set the size of the window in CSS pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=mobile,
        )

    def media(self, scheme="light", kind=""):
        """Set prefers-color-scheme, and print or screen."""
        self.call(
            "Emulation.setEmulatedMedia",
            media=kind,
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )

    def screenshot(self, path, clip=None):
        """Write a PNG of the window, or of a rectangle (x, y, width, height) of the page."""
        params = {}
        if clip:
            x, y, width, height = clip
            params = {
                "captureBeyondViewport": True,
                "clip": {"x": x, "y": y, "width": width, "height": height, "scale": 1},
            }
        data = self.call("Page.captureScreenshot", format="png", **params)["data"]
        with open(path, "wb") as stream:
            stream.write(base64.b64decode(data))

    def pdf(self):
        """The page as it prints."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=False)["data"])

    def requests(self):
        """The addresses that were asked for since the page was opened."""
        return [
            e["params"]["request"]["url"]
            for e in self.events
            if e.get("method") == "Network.requestWillBeSent"
        ]

    def complaints(self):
        """What was thrown or logged as a warning or an error since the page was opened."""
        found = []
        for e in self.events:
            if e.get("method") == "Runtime.exceptionThrown":
                found.append(str(e["params"]["exceptionDetails"]))
            elif e.get("method") == "Log.entryAdded" and e["params"]["entry"]["level"] in (
                "warning",
                "error",
            ):
                found.append(e["params"]["entry"]["text"])
            elif e.get("method") == "Runtime.consoleAPICalled":
                found.append(str(e["params"].get("args")))
        return found
