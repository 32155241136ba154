"""Walks through the layers inside a model, and follows the paths that lead to them."""

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import keras

Path = tuple[str, ...]


def is_plain(layer: Any) -> bool:
    """Returns whether the layer is a model that only calls its layers in the order of its graph."""
    # A sequential model, or a functional one, whose class has no public name.
    return isinstance(layer, keras.Model) and type(layer).__module__.startswith("keras.")


def is_reverse(function: Callable, args: tuple, kwargs: dict[str, Any]) -> bool:
    """Returns whether a call of a layer's function asks a reversible embedding for logits."""
    return bool(inspect.signature(function).bind(*args, **kwargs).arguments.get("reverse"))


def walk(
    layer: keras.Layer, leaving_out: Iterable[int] = ()
) -> Iterator[tuple[Path, str, keras.Layer]]:
    """Yields path, name and object of every layer inside a layer, each once, depth first.

    The name comes after the names of the layers that contain it. Layers with ids in `leaving_out`
    are left out.
    """
    seen = {id(layer), *leaving_out}

    def visit(outer, path, prefix):
        for key, inner in _children(outer).items():
            if id(inner) not in seen:
                seen.add(id(inner))
                yield (*path, key), prefix + inner.name, inner
                yield from visit(inner, (*path, key), f"{prefix}{inner.name}/")

    yield from visit(layer, (), "")


def follow(layer: keras.Layer, path: Path) -> keras.Layer:
    """Returns the layer at the end of a path that `walk` yielded."""
    for key in path:
        layer = _children(layer)[key]
    return layer


def _children(layer):
    """Returns the layers directly inside a layer, by where they are found."""
    if isinstance(layer, keras.Model):
        return {str(i): inner for i, inner in enumerate(layer.layers)}
    return dict(_layers_in(vars(layer), ()))


def _layers_in(structure, keys):
    """Yields the layers in nested lists and dictionaries, each with the keys that lead to it."""
    if isinstance(structure, keras.Layer):
        yield ".".join(keys), structure
    elif isinstance(structure, (dict, list, tuple)):
        items = structure.items() if isinstance(structure, dict) else enumerate(structure)
        for key, value in items:
            yield from _layers_in(value, (*keys, str(key)))
