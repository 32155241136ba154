"""Serves the page, with a policy for its script and style."""

import base64
import hashlib
import re
from pathlib import Path

from starlette.responses import HTMLResponse, Response


def page() -> Response:
    """Returns the page, with headers that let it run its own script and style, and nothing else."""
    text = Path(__file__).with_name("page.html").read_text("utf-8")
    policy = (
        f"default-src 'none'; script-src {_hash(text, 'script')}; "
        f"style-src {_hash(text, 'style')}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return HTMLResponse(
        text,
        headers={
            "Content-Security-Policy": policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-cache",
        },
    )


def _hash(text: str, tag: str) -> str:
    """Returns the hash of the content of the only element of a kind, as a policy names it."""
    (content,) = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
