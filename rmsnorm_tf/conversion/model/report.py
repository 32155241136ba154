"""What a conversion did, in words."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Conversion:
    """What happened to one norm, or to one recurrent cell with LayerNorm inside.

    >>> Conversion("norm", True, "centring folded into dense").converted
    True

    Attributes:
        name: Of the layer, after the names of the models and layers that contain it.
        converted: Whether it is another norm now.
        reason: Where the centring and the gain went, or why the layer stays.
    """

    name: str
    converted: bool
    reason: str


def listed(names: list[str], most: int = 3) -> str:
    """Returns the first of some names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
