"""Headless Chromium, driven by the W3C WebDriver protocol with Python's standard library."""

import contextlib
import json
import shutil
import socket
import subprocess
import time
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key of an element, from the standard
AVAILABLE = bool(shutil.which("chromedriver") and shutil.which("chromium"))


class Browser:
    """A page in a browser."""

    def __init__(self, port):
        self._base = f"http://127.0.0.1:{port}/session"
        options = {
            "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1100,1000"]
        }
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        self._base += "/" + self._post("", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]

    def _send(self, method, path, value=None):
        data = None if value is None else json.dumps(value).encode()
        request = urllib.request.Request(
            self._base + path, data, {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=120) as response:
            return json.load(response)["value"]

    def _post(self, path, value):
        return self._send("POST", path, value)

    def open(self, address):
        self._post("/url", {"url": address})

    def run(self, script):
        return self._post("/execute/sync", {"script": script, "args": []})

    def type(self, selector, text):
        element = self._post("/element", {"using": "css selector", "value": selector})[ELEMENT]
        self._post(f"/element/{element}/value", {"text": text})

    def press(self, key):
        """Presses a key in the element that has the focus."""
        keys = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self._post("/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": keys}]})

    def command(self, name, **parameters):
        """Sends a command of the Chrome DevTools Protocol."""
        return self._post("/goog/cdp/execute", {"cmd": name, "params": parameters})

    def until(self, script, seconds=60):
        """Waits for a script to return something true, and returns it."""
        end = time.monotonic() + seconds
        while not (found := self.run(script)):
            assert time.monotonic() < end, self.run("return document.body.innerText")
            time.sleep(0.1)
        return found

    def messages(self):
        """Returns what the browser complained of."""
        return [entry["message"] for entry in self._post("/se/log", {"type": "browser"})]

    def close(self):
        self._send("DELETE", "")


@contextlib.contextmanager
def chromium():
    """A browser, closed at the end."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    driver = subprocess.Popen(
        ["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        end = time.monotonic() + 60
        while True:
            try:
                browser = Browser(port)
                break
            except OSError:
                assert driver.poll() is None and time.monotonic() < end
                time.sleep(0.2)
        yield browser
        browser.close()
    finally:
        driver.kill()
        driver.wait()
