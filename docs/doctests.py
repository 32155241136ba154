"""Griffe extension: puts doctests in docstrings into code blocks, because Markdown would show them as quotations."""

import re

import griffe

BLOCK = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class FenceDoctests(griffe.Extension):
    def on_object(self, *, obj, **kwargs):
        if obj.docstring:
            obj.docstring.value = BLOCK.sub(lambda block: f"```pycon\n{block[0]}\n```", obj.docstring.value)
