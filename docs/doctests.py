"""Griffe extension: shows docstrings as docs/site.py shows pages, and each default once."""

import importlib.util
import re
from pathlib import Path

import griffe

BLOCK = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)
DEFAULT = re.compile(r" +Default: (?:-?[\w]+(?:\.\d+)?(?:e-\d+)?|\"\w+\")\.$", re.MULTILINE)
_SPEC = importlib.util.spec_from_file_location("docs_site", Path(__file__).with_name("site.py"))
SITE = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(SITE)


class Docstrings(griffe.Extension):
    def on_object(self, *, obj, **kwargs):
        if obj.docstring:
            text = BLOCK.sub(lambda block: SITE.plain_blocks(block[0]), obj.docstring.value)
            obj.docstring.value = DEFAULT.sub("", text)
