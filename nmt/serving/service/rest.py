"""The JSON of TensorFlow Serving's REST API: requests to arrays, arrays to responses.

Row form has a list `instances` and gives `predictions`. Column form has `inputs` and gives
`outputs`. Bytes that are not UTF-8 are written as `{"b64": "..."}`.
"""

import base64
import binascii
import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
import tensorflow as tf

from .limits import Refused
from .loaded_model import Arrays, LoadedModel, ServedFunction

_KEYS = {"signature_name", "instances", "inputs"}
_PIECE = 5000  # values that `json` writes at once
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Prediction(NamedTuple):
    """A request, parsed."""

    signature: ServedFunction
    inputs: Arrays
    rows: int  # 1 if the signature has no rows
    by_row: bool


def parse(body: bytes, model: LoadedModel) -> Prediction:
    """Parses the body of a request to predict."""
    request = _read(body)
    if unknown := sorted(set(request) - _KEYS):
        _refuse(
            f"unknown key {_short(unknown[0])}; a request has instances or inputs, and may have signature_name"
        )
    if ("instances" in request) == ("inputs" in request):
        _refuse("give either instances or inputs")
    name = request.get("signature_name", "")
    name = "serving_default" if name == "" else name
    signature = model.signatures.get(name) if isinstance(name, str) else None
    if signature is None:
        _refuse(
            f"there is no signature {_short(name)}; the model has {', '.join(sorted(model.signatures))}"
        )
    if signature.unusable:
        _refuse(
            f"this signature cannot be served, because {signature.unusable}, which JSON does not have"
        )
    by_row = "instances" in request
    columns = (
        _columns(request["instances"], signature)
        if by_row
        else _named(request["inputs"], signature)
    )
    inputs = {name: _array(columns[name], spec, name) for name, spec in signature.inputs.items()}
    counts = {len(array) for array in inputs.values()} if signature.has_rows else {1}
    if len(counts) > 1:
        _refuse("the inputs must be lists of the same length")
    return Prediction(signature, inputs, counts.pop(), by_row)


def render(outputs: Arrays, rows: int | None) -> bytes:
    """Returns the body of the response: in row form with this number of rows, or in column form if `rows` is `None`."""
    if rows is None:
        return f'{{"outputs":{_object(outputs, [_json(array, name) for name, array in outputs.items()])}}}'.encode()
    for name, array in outputs.items():
        if array.shape[:1] != (rows,):
            _refuse(f"the output {_short(name)} has no rows; give inputs instead of instances")
    columns = [
        [_json(np.asarray(x, array.dtype), name) for x in array] for name, array in outputs.items()
    ]
    found = [_object(outputs, row) for row in zip(*columns, strict=True)]
    return f'{{"predictions":[{",".join(found)}]}}'.encode()


def _read(body: bytes) -> dict[str, Any]:
    try:
        request = json.loads(body.decode(), parse_constant=np.float64, object_pairs_hook=_unique)
    except UnicodeDecodeError:
        _refuse("the body is not UTF-8")
    except RecursionError:
        _refuse("the body is nested too deeply")
    except json.JSONDecodeError as error:
        _refuse(f"the body is not JSON: {error}")
    except ValueError:  # Python does not read it
        _refuse("the body has a number with too many digits")
    if not isinstance(request, dict):
        _refuse("the body must be a JSON object with instances or inputs")
    return request


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns an object of JSON.

    Of a key that comes twice, a proxy in front may read the other value.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        _refuse(
            f"an object has the key {_short(next(key for key in keys if keys.count(key) > 1))} twice"
        )
    return found


def _columns(instances: Any, signature: ServedFunction) -> dict[str, list]:
    """Returns the list of each input's values from a list of rows."""
    if not signature.has_rows:
        _refuse("this signature has no rows; give inputs instead of instances")
    if not isinstance(instances, list) or not instances:
        _refuse("instances must be a list that is not empty")
    if len(signature.inputs) == 1:
        (name,) = signature.inputs
        return {
            name: [
                row[name] if isinstance(row, dict) and set(row) == {name} else row
                for row in instances
            ]
        }
    for row in instances:
        if not isinstance(row, dict) or set(row) != set(signature.inputs):
            _refuse(f"each of instances must be an object with {_names(signature)}")
    return {name: [row[name] for row in instances] for name in signature.inputs}


def _named(inputs: Any, signature: ServedFunction) -> dict[str, Any]:
    """Returns the values by the names of the inputs. The name of a single input may be left out."""
    if isinstance(inputs, dict) and set(inputs) == set(signature.inputs):
        return inputs
    if len(signature.inputs) != 1 or (isinstance(inputs, dict) and set(inputs) != {"b64"}):
        _refuse(f"inputs must be an object with {_names(signature)}")
    return {next(iter(signature.inputs)): inputs}


def _array(value: Any, spec: tf.TensorSpec, name: str) -> np.ndarray:
    """Returns a value of JSON as an array that fits a shape and a type."""
    if spec.shape.rank is None:
        _refuse(f"{name} has no fixed number of dimensions, which this service does not support")
    sizes = []
    level = [value]
    for size in spec.shape:
        if not all(isinstance(each, list) for each in level):
            _refuse(f"{name} must be {_kind(spec)}")
        lengths = {len(each) for each in level} or {size or 0}
        if len(lengths) > 1 or size not in (None, *lengths):
            _refuse(f"{name} must be {_kind(spec)} with rows of the same length")
        sizes.append(lengths.pop())
        level = [x for each in level for x in each]
    array = np.empty(len(level), object if spec.dtype == tf.string else spec.dtype.as_numpy_dtype)
    is_number = spec.dtype.is_integer or spec.dtype.is_floating
    limits = (
        (spec.dtype.min, spec.dtype.max) if is_number else None
    )  # here once: TensorFlow computes them slowly
    for i, each in enumerate(level):
        array[i] = _scalar(each, spec, name, limits)
    return array.reshape(sizes)


def _scalar(value: Any, spec: tf.TensorSpec, name: str, limits: tuple[Any, Any] | None) -> Any:
    dtype = spec.dtype
    if dtype == tf.string and isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError:
            _refuse(f"{name} has a string with half of a surrogate pair")
    if (
        dtype == tf.string
        and isinstance(value, dict)
        and set(value) == {"b64"}
        and isinstance(value["b64"], str)
    ):
        try:
            return base64.b64decode(value["b64"], validate=True)
        except (binascii.Error, ValueError):
            _refuse(f"{name} has a string that is not base64")
    if dtype == tf.bool and isinstance(value, bool):
        return value
    if dtype.is_integer and type(value) is int and int(limits[0]) <= value <= int(limits[1]):
        return value
    if dtype.is_floating and type(value) in (int, float) and abs(value) <= float(limits[1]):
        return value
    if (
        dtype.is_floating and type(value) is np.float64
    ):  # NaN, Infinity or -Infinity; 1e999 is a float
        return value
    _refuse(f"{name} must be {_kind(spec)}")


def _kind(spec: tf.TensorSpec) -> str:
    return "a list of " * spec.shape.rank + {"string": "strings"}.get(
        spec.dtype.name, f"{spec.dtype.name} values"
    )


def _names(signature: ServedFunction) -> str:
    return " and ".join(sorted(signature.inputs))


def _object(names: Iterable[str], values: Sequence[str]) -> str:
    """Returns the JSON of named values. A single value is written without its name."""
    if len(values) == 1:
        return values[0]
    return f"{{{','.join(f'{_encode(name)}:{value}' for name, value in zip(names, values, strict=True))}}}"


def _json(array: np.ndarray, name: str) -> str:
    """Returns the JSON of an array. Names that end in `_bytes` are written as base64.

    A large array is written in pieces, because no other thread runs while `json` writes one.
    """
    if array.ndim > 1:
        return f"[{','.join(_json(each, name) for each in array)}]"
    if array.size > _PIECE:
        pieces = (array[start : start + _PIECE] for start in range(0, array.size, _PIECE))
        return f"[{','.join(_json(piece, name)[1:-1] for piece in pieces)}]"
    value = array.tolist()
    return _encode(_text(value, name.endswith("_bytes")) if array.dtype == object else value)


def _text(value: Any, always: bool) -> Any:
    if isinstance(value, list):
        return [_text(each, always) for each in value]
    try:
        if not always:
            return value.decode()
    except UnicodeDecodeError:
        pass
    return {"b64": base64.b64encode(value).decode()}


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) < 60 else f"{text[:57]}..."


def _refuse(message: str) -> NoReturn:
    raise Refused(400, message)
