"""What a conversion did, in words."""

from dataclasses import dataclass
from typing import NoReturn


@dataclass(frozen=True)
class Conversion:
    """What happened to one norm, or to one recurrent cell with LayerNorm inside.

    >>> Conversion("norm", True, "centring folded into dense").converted
    True

    Attributes:
        name: Of the layer, after the names of the models and layers that contain it.
        converted: Whether it is another norm now.
        reason: Where the centring went, what the norm is now, or why the layer stays.
    """

    name: str
    converted: bool
    reason: str


@dataclass(frozen=True)
class ConversionReport:
    """What happened to each norm of a model. `print` shows a line for each.

    >>> print(ConversionReport([Conversion("norm", True, "centring folded into dense")]))
    norm: converted, centring folded into dense

    Attributes:
        entries: One for each norm, in the order of the model's layers.
    """

    entries: list[Conversion]

    def __str__(self) -> str:
        return "\n".join(
            f"{entry.name}: {'converted' if entry.converted else 'stays'}, {entry.reason}"
            for entry in self.entries
        )

    def __iter__(self) -> NoReturn:
        """Raises a TypeError: a report of two entries must not be taken for a model and its report."""
        raise TypeError(
            "A conversion changes the model that it is given and returns a report alone. Write `report = ...` instead "
            "of `model, report = ...`, and read report.entries."
        )


def listed(names: list[str], most: int = 3) -> str:
    """Returns the first of some names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
