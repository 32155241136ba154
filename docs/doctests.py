"""Griffe extension: fences the doctests in docstrings, which Markdown would take for quotations."""

import re

import griffe

BLOCK = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class FenceDoctests(griffe.Extension):
    def on_object(self, *, obj, **kwargs):
        if obj.docstring:
            obj.docstring.value = BLOCK.sub(lambda block: f"```pycon\n{block[0]}\n```", obj.docstring.value)
