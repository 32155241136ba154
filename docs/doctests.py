"""Griffe extension: shows doctests in docstrings as docs/site.py does on pages."""

import importlib.util
import re
from pathlib import Path

import griffe

BLOCK = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)
_SPEC = importlib.util.spec_from_file_location("docs_site", Path(__file__).with_name("site.py"))
SITE = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(SITE)


class FenceDoctests(griffe.Extension):
    def on_object(self, *, obj, **kwargs):
        if obj.docstring:
            obj.docstring.value = BLOCK.sub(
                lambda block: SITE.plain_blocks(block[0]), obj.docstring.value
            )
