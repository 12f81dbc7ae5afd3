"""A server of its own process, as a user starts it, and a way to ask it."""

import http.client
import json
import os
import re
import subprocess
import sys
import time
from urllib.parse import urlencode


class Server:
    """`prune4rel review` in a process that can be killed and started again."""

    def __init__(self, folder, home, *flags, port=0, kilobytes=None):
        self.folder, self.flags, self.home, self.kilobytes = folder, flags, home, kilobytes
        self.start(port)

    def start(self, port=0):
        limit = [] if self.kilobytes is None else ["bash", "-c", f'ulimit -f {self.kilobytes}; exec "$@"', "bash"]
        command = [
            *limit,
            sys.executable,
            "-m",
            "prune4rel",
            "review",
            str(self.folder),
            "--no-browser",
            "--port",
            str(port),
        ]
        self.process = subprocess.Popen(
            [*command, *self.flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "XDG_CACHE_HOME": str(self.home), "PYTHONUNBUFFERED": "1"},
        )
        self.said = ""
        while not (found := re.search(r"http://(\S+):(\d+)/\?token=(\S+)\n", self.said)):
            line = self.process.stdout.readline()
            assert line, self.said
            self.said += line
        self.url = found[0].strip()
        self.port, self.token = int(found[2]), found[3]
        until = time.monotonic() + 30
        while True:
            try:
                self.ask("GET", "/review.css")
            except ConnectionRefusedError:
                assert time.monotonic() < until
                time.sleep(0.02)
            else:
                return

    def ask(self, method, path, body=None, *, headers=None, token=True, **query):
        """Status, headers and body of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        carried = {"X-Token": self.token} if token else {}
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        address = path + (f"?{urlencode(query)}" if query else "")
        connection.request(method, address, data, {**carried, **(headers or {})})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, content

    def get(self, path, **query):
        return json.loads(self.ask("GET", path, **query)[2])

    def post(self, path, **body):
        status, _, content = self.ask("POST", path, {"who": "ann", **body})
        return status, json.loads(content)

    def kill(self):
        self.process.kill()
        self.process.wait(30)
        self.process.stdout.close()
