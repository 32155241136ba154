"""Who may import whom, read off the syntax trees."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYER = ["equation", "functional", "fused", "rms_normalization", "recurrent", "recurrent_layers", "centring", "convert"]
# `errors` holds one exception; everybody may raise it.
NMT = {
    "errors": set(),
    "files": {"errors"},
    "interruption": set(),
    "progress": {"errors"},
    "text": {"errors"},
    "normalization": set(),
    "search": set(),
    "metrics": {"errors", "text"},
    "corpora": {"errors", "files"},
    "vocab": {"errors", "files", "text"},
    "checkpoints": {"errors", "files"},
    "config": {"errors", "files", "normalization"},
    "costs": set(),
    "data": {"errors", "text", "vocab"},
    "affine": set(),
    "recurrence": {"affine"},
    "layers": {"affine", "normalization"},
    "rnnsearch": {"affine", "costs", "layers", "recurrence"},
    "scoring": {"data", "vocab"},
    "training": {"checkpoints", "config", "data", "errors", "files", "interruption", "metrics", "progress", "update"},
    "update": {"affine", "config", "data"},
    "export": {"data", "errors", "files", "search", "vocab"},
    "streams": {"errors", "files"},
    "nematus": {"checkpoints", "config", "errors"},
    "system": {"checkpoints", "config", "errors", "export", "files", "rnnsearch", "vocab"},
}

# The experiments know nmt as commands. They share with it errors, files, and how translations are compared.
SHARED = {"nmt.errors", "nmt.files", "nmt.metrics", "nmt.text"}
# Runs in the patched copy of the baseline, and so may import all of it.
INSIDE = "experiments/translation/inside"
# Which other folders of experiments each of them may import. A new task may import `reporting`.
EXPERIMENTS = {"reporting": set(), "invariance": {"reporting"}, "translation": {"reporting", "invariance"}}


def imports(path):
    """Yields (level, module, names) of every import of a file; level 0 is absolute."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.level, node.module or "", [alias.name for alias in node.names]


def siblings(path):
    """Returns the modules of its own package that a file imports, relatively or by the package's name."""
    package = path.parent.name
    found = set()
    for level, module, names in imports(path):
        if level == 0 and module.partition(".")[0] == package:
            module = module.partition(".")[2]
        elif level == 0:
            continue
        found |= {module.partition(".")[0]} if module else set(names)
    return found


@pytest.mark.parametrize("path", sorted((ROOT / "nmt").glob("*.py")), ids=lambda path: path.stem)
def test_nmt(path):
    absolute = {module.partition(".")[0] for level, module, _ in imports(path) if level == 0}
    assert "nmt" not in absolute
    assert "rmsnorm_tf" not in absolute or path.stem == "normalization"
    if path.stem not in ("__init__", "__main__"):
        assert siblings(path) <= NMT[path.stem]


@pytest.mark.parametrize("path", sorted((ROOT / "rmsnorm_tf").glob("*.py")), ids=lambda path: path.stem)
def test_rmsnorm_tf(path):
    absolute = {module.partition(".")[0] for level, module, _ in imports(path) if level == 0}
    assert not absolute & {"nmt", "patches"}
    if path.stem in LAYER:
        assert siblings(path) <= set(LAYER[: LAYER.index(path.stem)])


def files_of_experiments():
    return sorted(path for path in (ROOT / "experiments").rglob("*.py") if "logs" not in path.parts)


def absolute_imports(path):
    """Returns the full names of all modules that a file imports, relative imports resolved."""
    package = path.relative_to(ROOT).parent.parts
    found = set()
    for level, module, names in imports(path):
        above = package[: len(package) - level + 1] if level else ()
        found.add(".".join([*above, *([module] if module else names[:1])]))
    return found


def test_every_folder_of_experiments_is_seen():
    folders = {path.relative_to(ROOT / "experiments").parts[0] for path in files_of_experiments()}
    assert EXPERIMENTS.keys() <= folders
    assert any(path.is_relative_to(ROOT / INSIDE) for path in files_of_experiments())


@pytest.mark.parametrize("path", files_of_experiments(), ids=lambda path: str(path.relative_to(ROOT)))
def test_experiments(path):
    imported = absolute_imports(path)
    of_nmt = {module for module in imported if module.partition(".")[0] == "nmt"}
    assert of_nmt <= SHARED or path.is_relative_to(ROOT / INSIDE)
    folder = path.relative_to(ROOT / "experiments").parts[0]
    if not folder.endswith(".py"):
        others = {module.split(".")[1] for module in imported if module.startswith("experiments.")} - {folder}
        assert others <= EXPERIMENTS.get(folder, {"reporting"})


@pytest.mark.parametrize(
    "path",
    [path for path in files_of_experiments() if {"sections", "section.py", "reporting"} & set(path.parts)],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_sections(path):
    """They read measurements and measure nothing. Plots are drawn without the global state of pyplot."""
    imported = absolute_imports(path)
    assert not {module.partition(".")[0] for module in imported} & {"nmt", "keras", "tensorflow"}
    assert "matplotlib.pyplot" not in imported


@pytest.mark.parametrize("folder", ["nmt", "rmsnorm_tf", "patches", "experiments"])
def test_nothing_private_of_tensorflow_or_keras(folder):
    for path in (ROOT / folder).rglob("*.py"):
        modules = [module for level, module, _ in imports(path) if level == 0]
        private = [m for m in modules if m.startswith(("tensorflow.python", "keras.src", "tensorflow.compat"))]
        assert not private, path
        assert "compat.v1" not in path.read_text(encoding="utf-8"), path
