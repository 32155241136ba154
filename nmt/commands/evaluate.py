"""`python -m nmt evaluate`."""

import argparse

from ..decoding.metrics import Evaluation, cannot_split, exact_match, read_lines
from .arguments import say


def run(arguments: argparse.Namespace) -> None:
    translations = read_lines(arguments.translations)
    references = [read_lines(path) for path in arguments.references]
    evaluation = Evaluation(references, arguments.tokenizer)
    scores = evaluation.scores(translations)
    if cannot_split(arguments.tokenizer, references[0]):
        say(
            f"warning: --tokenizer {arguments.tokenizer} does not split the references, which have hardly any spaces, "
            "so BLEU counts whole sentences; give --tokenizer char or use chrF"
        )
    for name, (score, signature) in scores.items():
        print(f"{name} {score:.2f} ({signature})")
    print(f"exact match {exact_match(translations, references):.1f}%")
    if arguments.against:
        others = read_lines(arguments.against)
        theirs, p = evaluation.scores(others), evaluation.p_values(others, translations)
        for name, (score, _) in scores.items():
            print(
                f"{name} minus that of {arguments.against}: {score - theirs[name][0]:+.2f}, p = {p[name]:.4f} "
                "(paired bootstrap, 1000 resamples)"
            )
