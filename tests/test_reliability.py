"""docs/reliability.md names tests that exist, and says truly which are slow."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_test_that_is_named_exists():
    tests = {}
    for path in (ROOT / "tests" / "nmt").glob("test_*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                tests[node.name] = any("slow" in ast.unparse(decorator) for decorator in node.decorator_list)
    named = re.findall(r"`(test_\w+)`(\*?)", (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8"))
    assert len(named) > 40
    assert not [name for name, star in named if tests.get(name) != (star == "*")]
