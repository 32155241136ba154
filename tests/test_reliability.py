"""Code that reads untrusted files runs nothing from them."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
ALLOWED = {
    "nmt/__main__.py": {"import_module"},  # of a command that the parser knows
    "nmt/model/registry.py": {"import_module"},  # of an architecture that the registry knows
    "nmt/concurrency.py": {
        "pickle"
    },  # between a process and those that it starts, over pipes that no other has
}


def test_no_function_runs_or_unpickles_what_it_reads():
    """Names that run or unpickle a file; `allow_pickle` may be given as False only."""
    refused = {
        "pickle",
        "marshal",
        "shelve",
        "dill",
        "joblib",
        "eval",
        "exec",
        "__import__",
        "import_module",
    }
    refused |= {
        "load_model",
        "model_from_json",
        "enable_unsafe_deserialization",
        "py_function",
        "numpy_function",
    }
    folders = [list((ROOT / folder).rglob("*.py")) for folder in ("nmt", "rmsnorm_tf")]
    assert all(folders)
    for path in [path for paths in folders for path in paths]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = {getattr(node, field, None) for field in ("id", "attr", "name")}
            if isinstance(node, ast.ImportFrom):
                names.add(node.module)
            found = {str(name).partition(".")[0] for name in names} & refused
            assert found <= ALLOWED.get(path.relative_to(ROOT).as_posix(), set()), (
                path,
                node.lineno,
            )
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                assert ast.unparse(node.value) == "False", path
