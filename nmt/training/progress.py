"""Where a training stands: all that it carries from one update to the next, besides weights and optimizer."""

from dataclasses import dataclass, fields, replace
from typing import Any, get_origin

from ..errors import UserError


@dataclass(frozen=True)
class Validation:
    """One validation, as it is logged."""

    update: int
    epoch: float
    train_loss: float  # per target token, its end counted, in nats; smoothed labels and dropout included
    valid_loss: float  # per target token, its end counted, in nats
    bleu: float
    seconds: float  # spent training so far, validations included
    counts: bool = True  # for patience: all but one that only the end of a run called for

    def quality(self) -> tuple[float, float]:
        """Returns what is greater for a better model."""
        return self.bleu, -self.valid_loss


@dataclass(frozen=True)
class Progress:
    """Where a training stands."""

    update: int = 0
    seconds: float = 0.0
    loss: float = 0.0  # sum over the target tokens since the last validation that counts, in nats
    tokens: float = 0.0  # their number
    skipped: int = 0  # updates with a loss or a gradient that was not finite
    skipped_in_a_row: int = 0
    bad_validations: int = 0  # in a row
    validations: tuple[Validation, ...] = ()

    @property
    def best(self) -> Validation | None:
        """The first of the validations with the highest BLEU; of equal ones that with the lowest loss."""
        return max(self.validations, key=Validation.quality, default=None)

    @property
    def validated(self) -> bool:
        """Whether there was a validation after the last update."""
        return bool(self.validations) and self.validations[-1].update == self.update

    def after_update(self, loss: float, tokens: float) -> "Progress":
        """Returns the progress with one more update."""
        update, loss, tokens = self.update + 1, self.loss + loss, self.tokens + tokens
        return replace(self, update=update, loss=loss, tokens=tokens, skipped_in_a_row=0)

    def after_skipping(self) -> "Progress":
        """Returns the progress with one more update that was not made."""
        skipped, in_a_row = self.skipped + 1, self.skipped_in_a_row + 1
        return replace(self, update=self.update + 1, skipped=skipped, skipped_in_a_row=in_a_row)

    def after_validation(self, validation: Validation) -> "Progress":
        """Returns the progress with one more validation.

        One that does not count leaves a training that goes on as it would have been without it.
        """
        validations = (*self.validations, validation)
        if not validation.counts:
            return replace(self, seconds=validation.seconds, validations=validations)
        earlier = [each.quality() for each in self.validations if each.counts]
        better = not earlier or validation.quality() > max(earlier)
        bad = 0 if better else self.bad_validations + 1
        return replace(
            self, seconds=validation.seconds, loss=0.0, tokens=0.0, bad_validations=bad, validations=validations
        )

    @classmethod
    def from_json(cls, state: dict[str, Any]) -> "Progress":
        """Reverses `dataclasses.asdict`.

        Raises:
            UserError: Something is missing, too much, or of another type.
        """
        try:
            validations = tuple(_fitting(Validation, each) for each in state.get("validations", ()))
            return _fitting(cls, {**state, "validations": validations})
        except (TypeError, ValueError) as error:
            raise UserError(f"what a training saved of its progress is damaged: {error}") from None


def _fitting(cls: type, values: dict[str, Any]) -> Any:
    """Makes a dataclass of values of the types that it declares."""
    made = cls(**values)
    for field in fields(cls):
        value, kind = getattr(made, field.name), get_origin(field.type) or field.type
        if type(value) is not kind:
            raise TypeError(f"{field.name} is {value!r}")
    return made
