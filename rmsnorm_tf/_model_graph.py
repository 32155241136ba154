"""The calls of a functional model as a graph: which tensors each call takes, and who consumes them."""

import functools
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import keras


class Call(NamedTuple):
    """One call of an operation in a model."""

    operation: str
    index: int


class Tensor(NamedTuple):
    """One output of a call."""

    call: Call
    index: int


class Graph:
    """The calls of a functional or sequential model, read from its config.

    Attributes:
        operations: Layers and operations by name.
        outputs: The tensors that the model returns.
        inputs: The tensors that each call takes.
        consumers: The calls that take each tensor.
        sizes: The shape of each tensor.
        constants: How many arguments of each call are not tensors.
    """

    def __init__(self, model: keras.Model) -> None:
        view = keras.Model(model.inputs, model.outputs)
        config = view.get_config()
        self.operations = {operation.name: operation for operation in view.operations}
        self.outputs = set(_histories(config["output_layers"]))
        self.inputs: dict[Call, list[Tensor]] = {}
        self.consumers: dict[Tensor, list[Call]] = defaultdict(list)
        self.sizes: dict[Tensor, tuple[int | None, ...]] = {}
        self.constants: dict[Call, int] = {}
        for layer in config["layers"]:
            for index, node in enumerate(layer["inbound_nodes"] or [{}]):
                self._add_call(Call(layer["name"], index), node)

    def _add_call(self, call, node):
        leaves = list(_leaves((node.get("args", ()), node.get("kwargs", {}))))
        tensors = [leaf for leaf in leaves if isinstance(leaf, dict)]
        self.inputs[call] = [next(_histories(tensor["config"]["keras_history"])) for tensor in tensors]
        self.constants[call] = len(leaves) - len(tensors)
        for tensor, leaf in zip(self.inputs[call], tensors, strict=True):
            self.consumers[tensor].append(call)
            self.sizes[tensor] = tuple(leaf["config"]["shape"])

    def tensors(self) -> list[Tensor]:
        """Returns the first output of every call, and every other output that a call takes."""
        return [Tensor(call, 0) for call in self.inputs] + [t for t in self.consumers if t.index > 0]

    def calls_of(self, name: str) -> Iterator[Call]:
        """Yields the calls of an operation."""
        return (call for call in self.inputs if call.operation == name)

    def operation(self, call: Call) -> keras.Operation:
        """Returns what is called."""
        return self.operations[call.operation]


@functools.cache
def functional_class() -> type:
    """Returns the class of plain functional models, which has no public name."""
    return type(_sum_of_one_input())


@functools.cache
def operator_add() -> type:
    """Returns the class of the operation that `+` adds to a model, which has no public name."""
    return type(_sum_of_one_input().operations[-1])


def _sum_of_one_input():
    x = keras.Input((1,))
    return keras.Model(x, x + x)


def _histories(structure: Any) -> Iterator[Tensor]:
    """Yields the tensors in a structure of `[operation, call, output]`."""
    if isinstance(structure, dict):
        structure = list(structure.values())
    if len(structure) == 3 and isinstance(structure[0], str):
        operation, call, output = structure
        yield Tensor(Call(operation, call), output)
    else:
        for element in structure:
            yield from _histories(element)


def _leaves(structure: Any) -> Iterator[Any]:
    """Yields the arguments of a call: a dictionary for a tensor, anything else for a constant."""
    if isinstance(structure, dict) and structure.get("class_name") == "__keras_tensor__":
        yield structure
    elif isinstance(structure, dict):
        for element in structure.values():
            yield from _leaves(element)
    elif isinstance(structure, (list, tuple)):
        for element in structure:
            yield from _leaves(element)
    elif structure is not None:
        yield structure
