"""`python -m nmt vocab`."""

import argparse
import itertools

from ..errors import UserError
from ..messages import log
from ..storage.files import atomic_write
from ..text.sentencepiece_training import changed_characters, train_sentencepiece
from ..text.vocabulary import load_vocabulary

# Options that are not `train_sentencepiece`'s.
_OTHERS = ("to", "source_dataset", "target_dataset", "size", "joint")
_NAMED = 5  # characters that a warning names


def run(arguments: argparse.Namespace) -> None:
    source = arguments.source_dataset
    target = arguments.target_dataset
    options = {name: value for name, value in vars(arguments).items() if name not in _OTHERS}
    is_new = not arguments.to.exists()
    arguments.to.mkdir(parents=True, exist_ok=True)
    # Both are trained before one is written: a training that fails replaces neither.
    texts = [[source, target]] if arguments.joint else [[source], [target]]
    try:
        models = [train_sentencepiece(text, arguments.size, **options) for text in texts]
    except UserError:
        if is_new:
            arguments.to.rmdir()
        raise
    if arguments.joint:
        texts *= 2
        models *= 2
    for side, text, model in zip(("source", "target"), texts, models, strict=True):
        path = arguments.to / f"{side}.model"
        with atomic_write(path, "wb") as file:
            file.write(model)
        log.info(
            f"{path}: {load_vocabulary(path).size} units of {' and '.join(itertools.chain(*text))}"
        )
    rule = arguments.normalization_rule
    changed = changed_characters(target, rule, arguments.sample_lines)
    if changed:
        named = ", ".join(
            each if each.isprintable() else f"U+{ord(each):04X}" for each in list(changed)[:_NAMED]
        )
        log.warning(
            f"--normalization_rule {rule} changes {sum(changed.values())} characters of the target "
            f"side ({named}{', ...' * (len(changed) > _NAMED)}), so no translation has them; "
            "--normalization_rule identity keeps them"
        )
