"""Translates standard input, one sentence a line, through TensorFlow's REST API.

    python rest_client.py http://HOST:8501/v1/models/NAME < text

Works with TensorFlow Serving and with `python -m nmt serve`. Needs Python's standard library alone.
"""

import json
import sys
import urllib.error
import urllib.request

BATCH = 32  # Lines in a request.


def main():
    if len(sys.argv) != 2:
        return "give the address of a model, such as http://127.0.0.1:8501/v1/models/en-de"
    lines = [line.rstrip("\r\n") for line in sys.stdin]
    for start in range(0, len(lines), BATCH):
        body = json.dumps({"inputs": {"sources": lines[start : start + BATCH]}}).encode()
        request = urllib.request.Request(f"{sys.argv[1]}:predict", body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                print("\n".join(json.load(response)["outputs"]["translations"]), flush=True)
        except urllib.error.HTTPError as error:
            return f"the server says {error.code}: {json.load(error)['error']}"
        except OSError as error:
            return f"no answer from {sys.argv[1]}: {error}"
    return None


if __name__ == "__main__":
    if error := main():
        print(f"rest_client.py: {error}", file=sys.stderr)
        sys.exit(2)
