"""Undoes an in-place conversion, and detects layers that models share."""

import gc

import keras

from rmsnorm_tf.conversion.model.layers import walk


class Snapshot:
    """Restores the layers and values of a model."""

    def __init__(self, model: keras.Model) -> None:
        layers = [model, *(layer for _, _, layer in walk(model))]
        self._layers = [
            (layer, type(layer), dict(vars(layer)), _containers(layer)) for layer in layers
        ]
        self._values = [(variable, keras.ops.copy(variable)) for variable in model.variables]

    def restore(self) -> None:
        """Gives every layer its class, attributes and weights back, and every weight its value."""
        for layer, kind, attributes, containers in self._layers:
            layer.__class__ = kind
            vars(layer).clear()
            vars(layer).update(attributes)
            for container, content in containers:
                container.clear()
                add = container.extend if isinstance(container, list) else container.update
                add(content)
        for layer, *_ in self._layers:
            _track_parameters(layer)
        for variable, value in self._values:
            variable.assign(value)


def _containers(layer):
    """Returns the collections that a layer keeps, such as its weights, each with its content."""
    values = [*vars(layer).values(), *layer._tracker.stored_ids.values()]
    return [(value, value.copy()) for value in values if type(value) in (list, dict, set)]


class OtherModels:
    """Finds the models in this process that have layers of a model.

    Keras keeps no list of models, so they are looked for among all objects. `shared` says, for
    layers and weights of the model by id, which other model uses them without calling the model,
    or which function keeps what it traced of them.
    """

    def __init__(self, model: keras.Model) -> None:
        own = {id(model): model} | {id(layer): layer for _, _, layer in walk(model)}
        graphs = [_graph(each) for each in own.values() if isinstance(each, keras.Model)]
        gc.collect()  # models have cycles, and one that was deleted is no user of a layer
        models = [
            each
            for each in gc.get_objects()
            if issubclass(type(each), keras.Model) and hasattr(each, "_layers")
        ]
        # A sequential model keeps its graph, and those of what it was before it grew, as models.
        kept = [each._tracker for each in models if isinstance(each, keras.Sequential)]
        same = {id(each) for each in models if id(each) in own or _graph(each) in graphs}
        self.shared: dict[int, str] = {}
        for outer in own.values():
            if hasattr(outer.call, "get_concrete_function"):
                self.shared |= dict.fromkeys(
                    (id(inner) for *_, inner in walk(outer)),
                    f"{outer.name} calls it inside a tf.function, which keeps what it traced",
                )
        self._models = []
        for other in models:
            inside = {id(other), *(id(layer) for _, _, layer in walk(other))}
            if inside & own.keys():
                self._models.append(other)
            if id(other) in same or any(t.is_in_store("layers", other) for t in kept):
                continue
            for _, _, layer in walk(other, leaving_out=same):
                if id(layer) in own:
                    self.shared |= dict.fromkeys(
                        map(id, (layer, *layer.weights)),
                        f"{layer.name} is shared with the model {other.name!r}",
                    )

    def forget_compiled(self) -> None:
        """Drops what all these models compiled, because layers inside them changed."""
        for model in self._models:
            for layer in (model, *(layer for _, _, layer in walk(model))):
                if isinstance(layer, keras.Model):
                    layer.compiled = False
                    layer.train_function = layer.test_function = layer.predict_function = None
                _track_parameters(layer)


def _graph(model):
    """Identifies the graph of a functional model by the ids of its inputs and outputs."""
    tensors = [keras.tree.flatten(getattr(model, name, None)) for name in ("inputs", "outputs")]
    return [list(map(id, each)) for each in tensors] if all(tensors) else [[id(model)]]


def _track_parameters(layer):
    """Renews the list of parameters that a layer keeps for PyTorch."""
    if layer.built and hasattr(layer, "_track_variables"):
        layer._track_variables()
