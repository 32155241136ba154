"""Who may import whom, read off the syntax trees."""

import ast
from pathlib import Path

from tests.source_folders import source_folders

ROOT = Path(__file__).parents[1]
# The modules that each room of rmsnorm_tf, or one module, may import besides those of its own
# folder. Users import the package alone.
LAYER = {
    "": {"norm", "recurrent", "conversion", "conversion.model"},
    "norm": set(),
    "norm.backend": {"norm.tensorflow"},
    "norm.tensorflow": {"norm.arguments"},
    "recurrent": {"norm"},
    "conversion": {"norm", "conversion.folding", "conversion.model"},
    "conversion.folding": {"norm", "conversion.model"},
    "conversion.model": {"norm", "recurrent"},
}
# Where TensorFlow may be imported: the rest of the package runs on every backend of Keras.
ON_TENSORFLOW = {
    "norm.tensorflow",
    "conversion.folding",
    "conversion.model",
}  # the last where Keras runs on it
# The modules that each module or folder of nmt may import, besides those of its own folder. The
# longest matching name applies. Of models, only the contract and the registry are known outside of
# their folder.
NMT = {
    "errors": set(),
    "messages": {"errors"},
    "load_tensorflow": set(),
    "normalization": set(),
    "storage": {"errors", "messages"},
    "config": {
        "config_fields",
        "config_model",
        "config_rules",
        "config_training",
        "decoding.options",
        "errors",
        "normalization",
        "storage.files",
    },
    "config_model": {"config_fields", "model.registry", "normalization"},
    "config_training": {"config_fields", "config_rules", "decoding.options"},
    "config_fields": {"errors"},
    "config_rules": {"decoding.options", "errors", "normalization", "storage.files"},
    "concurrency": {"errors"},
    "text": {"concurrency", "errors", "storage.cache", "storage.files"},
    "model": {"normalization"},
    "model.ctranslate2_spec": {"errors", "normalization"},
    "training": {"config", "errors", "messages", "model.contract", "storage", "text"},
    "training.interruption": {"storage.cache"},
    "training.replicas": {"errors"},
    "decoding": {"concurrency", "errors", "model.contract", "storage.files", "text"},
    "decoding.options": {"config_fields", "errors"},
    "decoding.search": {"model.contract", "text.vocabulary"},
    "serving": {
        "decoding.options",
        "decoding.scoring",
        "decoding.translator",
        "errors",
        "model.contract",
        "storage.files",
        "text",
    },
    "serving.service": {"errors"},
    "bulk": {
        "commands.arguments",
        "concurrency",
        "config_fields",
        "errors",
        "load_tensorflow",
        "text.long_lines",
    },  # its environment lacks what the others need
    "nematus_models": {
        "config",
        "config_fields",
        "errors",
        "model.transformer_layers",  # the sinusoids, to compare those of others with
        "normalization",
        "storage",
        "system",
        "text.vocabulary",
    },
    "system": {
        "config",
        "config_rules",
        "decoding.ensemble",
        "decoding.options",
        "decoding.translator",
        "errors",
        "model.contract",
        "model.registry",
        "normalization",
        "storage",
        "text.lines",
        "text.parallel_text",
        "text.vocabulary",
    },
    "commands": {
        "concurrency",
        "config",
        "config_fields",
        "config_rules",
        "decoding",
        "errors",
        "messages",
        "nematus_models",
        "serving",
        "storage",
        "system",
        "text",
        "training",
    },
}
# Modules of TensorFlow and Keras that are not for users.
PRIVATE = (
    "tensorflow.python.",
    "tensorflow.compiler.",
    "tensorflow.compat.",
    "tensorflow.tsl.",
    "tsl.",
    "keras.src.",
)
FREE = {"", "__main__"}  # not checked: the package, which imports nothing, and the entry point

# The experiments run nmt as commands. They import only these modules of it.
SHARED = {
    "nmt.errors",
    "nmt.load_tensorflow",
    "nmt.storage.files",
    "nmt.text.lines",
    "nmt.text.parallel_text",
}
# Runs in the patched copy of the baseline, so it may import all of nmt.
INSIDE = "experiments/translation/inside"
# The folders that each folder of experiments may import. Tasks that are not named may import
# SHARED_BY_TASKS.
SHARED_BY_TASKS = {"data_sets", "reporting", "runs"}
EXPERIMENTS = {
    "data_sets": set(),
    "reporting": set(),
    "runs": {"reporting"},
    "invariance": {"reporting"},
    "translation": {"data_sets", "reporting", "runs", "invariance"},
}


def of_each(paths):
    """Makes one test of a check of many files, which names the files that fail."""
    paths = list(paths)

    def decorate(check):
        def test():
            assert paths
            failed = {}
            for path in paths:
                try:
                    check(path)
                except AssertionError as error:
                    failed[str(path.relative_to(ROOT))] = str(error)
            assert not failed

        test.__doc__ = check.__doc__
        return test

    return decorate


def imports(path):
    """Yields (level, module, names) of every import of a file; level 0 is absolute."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.level, node.module or "", [alias.name for alias in node.names]


def absolute_imports(path):
    """Returns the full names of all modules that a file imports, relative imports resolved."""
    package = path.relative_to(ROOT).parent.parts
    found = set()
    for level, module, names in imports(path):
        above = package[: len(package) - level + 1] if level else ()
        found |= {".".join([*above, name]) for name in ([module] if module else names)}
    return found


def module_name(path):
    """Returns the name of a file's module below its top package:

    `model.layers`, or `model` for the package itself.
    """
    return (
        ".".join(path.relative_to(ROOT).with_suffix("").parts[1:])
        .removesuffix("__init__")
        .rstrip(".")
    )


def allowed(name, rules):
    """Returns the modules that the longest matching rule allows, its own folder included."""
    parents = [name.rsplit(".", depth)[0] for depth in range(name.count(".") + 1)]
    rule = next(parent for parent in parents if parent in rules)
    return rules[rule] | {parents[-1]}


@of_each(sorted((ROOT / "nmt").rglob("*.py")))
def test_imports_of_nmt(path):
    absolute = {module.partition(".")[0] for level, module, _ in imports(path) if level == 0}
    name = module_name(path)
    assert "nmt" not in absolute
    assert "rmsnorm_tf" not in absolute or name == "normalization"
    if name not in FREE:
        imported = {
            module.removeprefix("nmt.")
            for module in absolute_imports(path)
            if module.startswith("nmt.")
        }
        wanted = allowed(name, NMT)
        assert not [module for module in imported if not wanted & {module, *module.split(".")[:1]}]


def test_every_rule_names_a_module_of_nmt():
    names = {module_name(path) for path in (ROOT / "nmt").rglob("*.py")}
    assert NMT.keys() <= names


@of_each(sorted((ROOT / "rmsnorm_tf").rglob("*.py")))
def test_imports_of_rmsnorm_tf(path):
    absolute = {module.partition(".")[0] for level, module, _ in imports(path) if level == 0}
    assert not absolute & {"nmt", "patches"}
    folder = ".".join(path.relative_to(ROOT / "rmsnorm_tf").parent.parts)
    own = module_name(path)
    assert "tensorflow" not in absolute or folder in ON_TENSORFLOW
    wanted = LAYER[own if own in LAYER else folder] | {folder}
    for module in absolute_imports(path):
        package, _, name = module.partition(".")
        if package == "rmsnorm_tf":
            assert {name, name.rpartition(".")[0]} & wanted, module


def files_of_experiments():
    return sorted(path for path in (ROOT / "experiments").rglob("*.py") if "logs" not in path.parts)


def test_every_folder_of_experiments_is_checked():
    folders = {path.relative_to(ROOT / "experiments").parts[0] for path in files_of_experiments()}
    assert EXPERIMENTS.keys() <= folders
    assert any(path.is_relative_to(ROOT / INSIDE) for path in files_of_experiments())


@of_each(files_of_experiments())
def test_imports_of_experiments(path):
    imported = absolute_imports(path)
    of_nmt = {module for module in imported if module.partition(".")[0] == "nmt"}
    assert of_nmt <= SHARED or path.is_relative_to(ROOT / INSIDE)
    folder = path.relative_to(ROOT / "experiments").parts[0]
    if not folder.endswith(".py"):
        others = {
            module.split(".")[1] for module in imported if module.startswith("experiments.")
        } - {folder}
        assert others <= EXPERIMENTS.get(folder, SHARED_BY_TASKS)


@of_each(
    path
    for path in files_of_experiments()
    if {"sections", "sections.py", "section.py", "reporting"} & set(path.parts)
)
def test_sections_measure_nothing(path):
    """They read measurements and measure nothing.

    Plots are drawn without the global state of pyplot.
    """
    imported = absolute_imports(path)
    assert not {module.partition(".")[0] for module in imported} & {"nmt", "keras", "tensorflow"}
    assert "matplotlib.pyplot" not in imported


def test_private_modules_of_tensorflow_and_keras_are_not_imported():
    paths = {path for folder in source_folders(ROOT) for path in folder.rglob("*.py")}
    assert len(paths) > 200
    for path in paths:
        modules = set()
        for level, module, names in imports(path):
            if not level:
                modules |= {module, *(f"{module}.{name}" for name in names)}
        assert not [module for module in modules if f"{module}.".startswith(PRIVATE)], path
        assert "compat.v1" not in path.read_text(encoding="utf-8"), path
