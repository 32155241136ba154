"""Reports what a conversion did to each norm."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Conversion:
    """Tells what happened to one norm, or to one recurrent cell with LayerNorm inside.

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
class Stays:
    """Tells why something cannot be converted, or not be centred."""

    reason: str


@dataclass(frozen=True)
class ConversionReport:
    """Lists what happened to each norm of a model. `print` shows a line for each.

    >>> print(ConversionReport([Conversion("norm", True, "centring folded into dense")]))
    norm: converted, centring folded into dense

    Attributes:
        entries: One for each norm, in the order of the model's layers.
        remark: What is left to do, printed last. Default: nothing.
    """

    entries: list[Conversion]
    remark: str = ""

    def __str__(self) -> str:
        lines = [
            f"{entry.name}: {'converted' if entry.converted else 'stays'}, {entry.reason}"
            for entry in self.entries
        ]
        return (
            "\n".join([*lines, self.remark] if self.remark else lines) or "No such norm was found."
        )


def listed(names: list[str], most: int = 3) -> str:
    """Returns the first of some names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
