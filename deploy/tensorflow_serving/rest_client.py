"""Translates standard input, one sentence a line, through TensorFlow's REST API.

    python rest_client.py http://HOST:8501/v1/models/NAME < text

Works with TensorFlow Serving and with `python -m nmt serve`. Needs Python's standard library alone.
"""

import contextlib
import http.client
import json
import sys
import time
import urllib.error
import urllib.request

BATCH = 32  # Lines in a request.
TRIES = 20  # While the server says in Retry-After when to come back.


def translate(address, lines):
    """Returns the translations of lines."""
    body = json.dumps({"inputs": {"sources": lines}}).encode()
    request = urllib.request.Request(
        f"{address}:predict", body, {"Content-Type": "application/json"}
    )
    for left in reversed(range(TRIES)):
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return json.load(response)["outputs"]["translations"]
        except urllib.error.HTTPError as error:
            seconds = error.headers.get("Retry-After", "")
            if not (left and error.code in (429, 503) and seconds.isdecimal()):
                raise
            error.close()
            time.sleep(int(seconds))


def reason(error):
    """Returns what a server says of an error, in one line.

    A proxy may answer with text that is not JSON.
    """
    text = error.read(10_000).decode(errors="replace")
    with contextlib.suppress(ValueError, KeyError, TypeError):
        text = json.loads(text)["error"]
    return " ".join(str(text).split()) or error.reason


def main():
    if len(sys.argv) != 2:
        return "give the address of a model, such as http://127.0.0.1:8501/v1/models/en-de"
    lines = [line.rstrip(b"\r\n").decode(errors="replace") for line in sys.stdin.buffer]
    for start in range(0, len(lines), BATCH):
        try:
            print("\n".join(translate(sys.argv[1], lines[start : start + BATCH])), flush=True)
        except urllib.error.HTTPError as error:
            return f"the server says {error.code}: {reason(error)}"
        except (OSError, ValueError, http.client.HTTPException) as error:
            return f"no answer from {sys.argv[1]}: {error}"
    return None


if __name__ == "__main__":
    if error := main():
        print(f"rest_client.py: {error}", file=sys.stderr)
        sys.exit(2)
