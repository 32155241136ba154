"""Keeps the state of a training apart from weights and optimizer, and ranks its validations."""

from dataclasses import dataclass, field, fields, replace
from typing import Any, get_origin

from ..errors import UserError


@dataclass(frozen=True)
class Validation:
    update: int
    epoch: float
    train_loss: float  # since the last one; with smoothed labels and dropout; 0 without an update
    valid_loss: float  # nats per target token, ends included
    bleu: float
    seconds: float  # of training so far, validations included
    counts: bool = True  # for patience; False for the extra validation at the end of a run
    chrf: float = 0.0
    # bleu and chrf of each, if there are several
    sets: dict[str, dict[str, float]] = field(default_factory=dict)

    def __str__(self) -> str:
        """Formats the validation for the terminal."""
        trained = f"train loss {self.train_loss:.3f}  " if self.train_loss else ""
        lines = [
            f"update {self.update}  {trained}valid loss {self.valid_loss:.3f}  "
            f"BLEU {self.bleu:.2f}  chrF {self.chrf:.2f}  {self.seconds:.0f} s"
        ]
        lines += [
            f"  {name}  BLEU {each['bleu']:.2f}  chrF {each['chrf']:.2f}"
            for name, each in self.sets.items()
        ]
        return "\n".join(lines)

    def quality(self, metric: str) -> tuple[float, float]:
        """Returns a key that is greater for a better model: metric as printed, then loss."""
        return 0.0 if metric == "loss" else round(getattr(self, metric), 2), -self.valid_loss


@dataclass(frozen=True)
class Progress:
    update: int = 0  # also the number of the next batch
    begin: int = 0  # updates of another training, which this one continues
    seconds: float = 0.0
    loss: float = 0.0  # in nats, summed over the tokens since the last validation that counts
    tokens: float = 0.0  # number of these target tokens
    skipped: int = 0  # updates whose loss or gradient was not finite
    skipped_in_a_row: int = 0
    bad_validations: int = 0  # in a row without improvement
    validations: tuple[Validation, ...] = ()
    metric: str = "bleu"  # ranks the validations: bleu, chrf or loss
    tokenizer: str = ""  # of BLEU
    search: str = ""  # how the validation text is translated
    ranked_from: int = 0  # number of the first validation that is ranked so

    @property
    def best(self) -> Validation | None:
        """The best ranked validation by the metric, then by the loss; the first of equals."""
        return next(iter(self.ranking), None)

    @property
    def ranking(self) -> list[Validation]:
        """The ranked validations, the best first."""
        return sorted(
            self.validations[self.ranked_from :],
            key=lambda each: each.quality(self.metric),
            reverse=True,
        )

    @property
    def validated(self) -> bool:
        """Whether the last update was followed by a validation."""
        return bool(self.validations) and self.validations[-1].update == self.update

    def plateaus(self, length: int) -> int:
        """Counts plateaus: `length` validations in a row whose loss is not below the minimum."""
        found = 0
        waited = 0
        least = float("inf")
        for loss in [each.valid_loss for each in self.validations if each.counts]:
            waited = 0 if loss < least else waited + 1
            least = min(least, loss)
            if waited == length:
                found = found + 1
                waited = 0
        return found

    def after_update(self, loss: float, tokens: float) -> "Progress":
        return replace(
            self,
            update=self.update + 1,
            loss=self.loss + loss,
            tokens=self.tokens + tokens,
            skipped_in_a_row=0,
        )

    def after_skipping(self) -> "Progress":
        return replace(
            self,
            update=self.update + 1,
            skipped=self.skipped + 1,
            skipped_in_a_row=self.skipped_in_a_row + 1,
        )

    def ranked_by(self, metric: str, tokenizer: str, search: str) -> "Progress":
        """Returns the progress ranked by this metric, tokenizer and search.

        If they differ from those so far, earlier validations are not ranked any more, and bad ones
        are counted anew. The loss depends neither on the tokenizer nor on the search, and chrF not
        on the tokenizer.
        """
        same = {
            "bleu": (self.tokenizer, self.search) == (tokenizer, search),
            "chrf": self.search == search,
            "loss": True,
        }
        ranked = replace(self, metric=metric, tokenizer=tokenizer, search=search)
        if metric == self.metric and same[metric]:
            return ranked
        return replace(ranked, ranked_from=len(self.validations), bad_validations=0)

    def after_validation(self, validation: Validation) -> "Progress":
        """Returns the progress with one more validation.

        A validation that does not count changes nothing else, so a resumed training continues as
        without it.
        """
        after = replace(
            self, seconds=validation.seconds, validations=(*self.validations, validation)
        )
        if not validation.counts:
            return after
        best = next((each for each in self.ranking if each.counts), None)
        better = not best or validation.quality(self.metric) > best.quality(self.metric)
        bad = 0 if better else self.bad_validations + 1
        return replace(after, loss=0.0, tokens=0.0, bad_validations=bad)

    @classmethod
    def from_json(cls, state: dict[str, Any]) -> "Progress":
        """Reverses `dataclasses.asdict`."""
        try:
            validations = tuple(_checked(Validation, each) for each in state.get("validations", ()))
            state = {**state, "validations": validations}
            return _checked(cls, state)
        except (TypeError, ValueError) as error:
            raise UserError(f"the saved progress of the training is damaged: {error}") from None


def _checked(cls: type, values: dict[str, Any]) -> Any:
    """Makes an instance of a dataclass and checks that the values have the declared types."""
    made = cls(**values)
    for each in fields(cls):
        value = getattr(made, each.name)
        kind = get_origin(each.type) or each.type
        if type(value) is not kind or (kind is int and not 0 <= value < 2**53):
            raise TypeError(f"{each.name} is {str(value)[:100]!r}")
    return made
