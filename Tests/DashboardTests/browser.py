"""Headless Chromium over its debugging pipe: opens a page, asks it, pictures it."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome")
     if (path := shutil.which(name))), None)

# Far from what any call takes.
ANSWER_SECONDS = 60


class Browser:
    """One page of one browser."""

    def __init__(self, width=1280, height=900):
        self.profile = tempfile.mkdtemp(prefix="tapline-browser-")
        self.log_path = self.profile + "/log"
        to_child, self.output = os.pipe()
        self.input, from_child = os.pipe()
        # The program reads commands from 3 and writes answers to 4.
        program = f'exec "$@" 3<&{to_child} 4>&{from_child}'
        with open(self.log_path, "wb") as log:
            self.child = subprocess.Popen(
                ["bash", "-c", program, "bash", PROGRAM, "--headless=new", "--no-sandbox",
                 "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage",
                 "--no-first-run", "--disable-crash-reporter", "--remote-debugging-pipe",
                 f"--user-data-dir={self.profile}/user", f"--window-size={width},{height}",
                 "about:blank"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                pass_fds=(to_child, from_child))
        os.close(to_child)
        os.close(from_child)
        self.buffer, self.count, self.session = b"", 0, None
        try:
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            self.session = self.call(
                "Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            self.size(width, height)
        except BaseException:
            self.close()
            raise

    def close(self):
        self.child.kill()
        self.child.wait()
        os.close(self.input)
        os.close(self.output)
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, **parameters):
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.output, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            while b"\0" not in self.buffer:
                self.buffer += self.read(method, deadline)
            line, self.buffer = self.buffer.split(b"\0", 1)
            answer = json.loads(line)
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]

    def read(self, method, deadline):
        """What the browser says next; a browser that says nothing may be waited for for ever."""
        ready, _, _ = select.select([self.input], [], [], max(0, deadline - time.monotonic()))
        data = os.read(self.input, 1 << 16) if ready else b""
        if not data:
            what = "has ended" if ready else f"says nothing for {ANSWER_SECONDS} s"
            raise AssertionError(f"{method}: the browser {what}\n{self.log()}")
        return data

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()[-4000:]

    def size(self, width, height):
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
            mobile=False)

    def scheme(self, name):
        """`light` or `dark`."""
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": name}])

    def open(self, url):
        self.call("Page.navigate", url=url)

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise AssertionError(result["exceptionDetails"])
        return result["result"].get("value")

    def text(self):
        """What a person reads."""
        return self.evaluate("document.body ? document.body.innerText : ''")

    def wait(self, condition, seconds=30):
        """Waits until a condition of the page holds."""
        deadline = time.monotonic() + seconds
        while not self.evaluate(condition):
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {seconds} s: {condition}\n{self.text()}")
            time.sleep(0.05)

    def picture(self, path):
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
