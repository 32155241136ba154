"""A line of code does one thing, in at most 100 columns."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("rmsnorm_tf", "nmt", "patches", "experiments", "benchmarks", "docs", "examples", "tests")
# Beginnings of paths that do not follow the rules yet.
UNCLEAN = ()
LOOPS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def inner(node, kinds):
    """Returns the nodes of these kinds inside a node."""
    return [each for each in ast.walk(node) if isinstance(each, kinds) and each is not node]


def texts(nodes):
    return sorted(map(ast.unparse, nodes))


def is_packed(node):
    """Returns whether an assignment has several values, and is no swap."""
    both = (node.targets[0], node.value)
    return all(isinstance(each, ast.Tuple) for each in both) and texts(both[0].elts) != texts(
        both[1].elts
    )


def is_nested(node):
    """Returns whether a comprehension has several loops, and is no plain flattening."""
    first, *others = node.generators
    flattens = [each for each in others if texts([first.target])[0] in texts(inner(each, ast.Name))]
    return len(flattens) < len(others) or len(others) > 1 or bool(inner(node, LOOPS))


def faults(text):
    """Yields the number and the fault of each line that breaks a rule."""
    allowed = set()
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > 100:
            yield number, f"{len(line)} columns"
    for node in ast.walk(ast.parse(text)):  # parents come before what is inside them
        if isinstance(node, (ast.If, ast.IfExp, ast.While)):
            allowed.update(inner(ast.Expr(node.test), ast.NamedExpr))
        if isinstance(node, ast.comprehension):
            allowed.update(inner(node, ast.NamedExpr))
        if isinstance(node, ast.Assign) and is_packed(node):
            yield node.lineno, "several assignments"
        if isinstance(node, ast.NamedExpr) and node not in allowed:
            yield node.lineno, "a walrus outside a condition"
        if isinstance(node, ast.IfExp) and inner(node, ast.IfExp):
            yield node.lineno, "nested conditional expressions"
        if isinstance(node, LOOPS) and is_nested(node):
            yield node.lineno, "a comprehension with several loops"


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_line_does_one_thing(folder):
    found = []
    for path in sorted(ROOT.glob(f"{folder}/**/*.py")):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(UNCLEAN):
            found += [f"{name}:{line}: {fault}" for line, fault in faults(path.read_text("utf-8"))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "a, b = 1, 2",
        "f(a := 1)",
        "1 if a else 2 if b else 3",
        "[a for a in b for c in d]",
        "[[a for a in c] for c in d]",
        "[a for b in c for d in b for a in d]",
        "#" * 101,
    ],
)
def test_a_fault_is_found(text):
    assert len(list(faults(text))) == 1


@pytest.mark.parametrize(
    "text",
    ["a, b = b, a", "a, b = c", "while a := f(): pass", "[a for b in c for a in b]", "#" * 100],
)
def test_what_is_allowed_is_no_fault(text):
    assert not list(faults(text))
