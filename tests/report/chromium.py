"""A small client for headless Chromium, over the pipes of its DevTools protocol."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections import deque

import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
PATIENCE = 60
VIRTUAL = {"Escape": 27, "Enter": 13}
"""Keys that mean something to the browser itself."""

needs_chromium = pytest.mark.skipif(
    BROWSER is None and not os.environ.get("CI"), reason="no Chromium on this machine"
)  # where CI is set, its absence fails, so that these tests are never skipped for ever
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


class Chromium:
    """One browser; `open` gives pages."""

    def __init__(self, folder):
        assert BROWSER, "there is no Chromium here, and CI is set: install it"
        down, up = os.pipe(), os.pipe()
        # The protocol wants descriptors 3 and 4, whatever numbers the pipes have here.
        start = f'exec "$@" 3<&{down[0]} 4>&{up[1]}'
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", start, "bash", BROWSER, *FLAGS, f"--user-data-dir={folder}", "about:blank"],
            pass_fds=(down[0], up[1]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(down[0])
        os.close(up[1])
        self.into, self.out = down[1], up[0]
        self.left, self.number, self.events = b"", 0, deque()

    def call(self, method, session=None, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.into, data) :]
        until = time.monotonic() + PATIENCE
        while True:
            answer = self._read(until)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def _read(self, until):
        while b"\0" not in self.left:
            if not select.select([self.out], [], [], max(0, until - time.monotonic()))[0]:
                raise TimeoutError("Chromium did not answer")
            piece = os.read(self.out, 1 << 20)
            if not piece:
                raise RuntimeError("Chromium is gone")
            self.left += piece
        message, self.left = self.left.split(b"\0", 1)
        return json.loads(message)

    def open(self, path, **look):
        return Page(self, path, **look)

    def close(self):
        try:
            self.call("Browser.close")
        except (OSError, RuntimeError, TimeoutError):
            self.process.kill()
        self.process.wait(PATIENCE)
        os.close(self.into)
        os.close(self.out)


class Page:
    """A page that is open, what it asked the network for, and what it complained about."""

    def __init__(self, browser, path, *, width=1200, height=900, dark=False, mobile=False):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank", newWindow=True)["targetId"]
        self.target = target
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        self.features(dark=dark)
        browser.events.clear()
        self.call("Page.navigate", url=path if isinstance(path, str) else path.as_uri())
        self.wait("document.readyState === 'complete'")
        self.settle()

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def features(self, *, dark=False, media=""):
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", media=media, features=scheme)

    def run(self, expression):
        """The value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def wait(self, condition):
        """Wait until something is true on the page."""
        until = time.monotonic() + PATIENCE
        while not self.run(condition):
            if time.monotonic() > until:
                raise TimeoutError(condition)
            time.sleep(0.02)

    def settle(self):
        """Let two frames pass."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def press(self, key, text=""):
        self.hit(key, text)
        self.settle()

    def hit(self, key, text=""):
        """Press a key, and wait for nothing."""
        more = {"windowsVirtualKeyCode": VIRTUAL[key]} if key in VIRTUAL else {}
        for kind in ("keyDown", "keyUp"):
            words = text if kind == "keyDown" else ""
            self.call("Input.dispatchKeyEvent", type=kind, key=key, text=words, code=key, **more)

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)
        self.settle()

    def click(self, selector):
        """A real click in the middle of an element."""
        self.run(
            f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center', behavior: 'instant'}})"
        )
        self.settle()
        box = self.run(
            f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])"
            f"(document.querySelector({json.dumps(selector)}).getBoundingClientRect())"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, *box, button="left", buttons=1 if kind == "mousePressed" else 0, clickCount=1)

    def heard(self, *methods):
        """Events of this page so far."""
        self.run("1")
        return [
            event["params"]
            for event in self.browser.events
            if event.get("sessionId") == self.session and event["method"] in methods
        ]

    def complaints(self):
        logged = [event["entry"]["text"] for event in self.heard("Log.entryAdded")]
        said = [event["args"] for event in self.heard("Runtime.consoleAPICalled")]
        thrown = [event["exceptionDetails"]["text"] for event in self.heard("Runtime.exceptionThrown")]
        return logged + said + thrown

    def requests(self):
        """Everything asked for but the page itself and what it carries."""
        asked = [event["request"]["url"] for event in self.heard("Network.requestWillBeSent")]
        return [url for url in asked[1:] if not url.startswith(("data:", "blob:"))]

    def screenshot(self, path, *, full=True):
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=full)
        path.write_bytes(base64.b64decode(shot["data"]))

    def pdf(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True)["data"]))

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)
