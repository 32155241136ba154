"""Parses and writes the JSON of TensorFlow Serving's REST API.

Row form has a list `instances` and gives `predictions`. Column form has `inputs` and gives
`outputs`. Bytes that are not UTF-8 are written as `{"b64": "..."}`.
"""

import base64
import contextlib
import json
import reprlib
import zlib
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, NoReturn

import numpy as np
import tensorflow as tf

from .limits import CLOSE, Limits, Refused
from .loaded_model import Arrays, LoadedModel, ServedFunction

_PIECE = 5000  # values that `json` writes at once
# Types of values in JSON of an input: flags, whole numbers, numbers.
_KINDS = {(False, False): (bool,), (True, False): (int,), (False, True): (int, float)}
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Prediction(NamedTuple):
    """A request, parsed."""

    signature: ServedFunction
    inputs: Arrays
    rows: int  # 1 if the signature has no rows
    by_row: bool


def unpack(body: bytes, most: int) -> bytes:
    """Returns the content of a gzip file, which may have this many bytes."""
    stream = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    found = b""
    with contextlib.suppress(zlib.error):
        found = stream.decompress(body, most + 1)
    if len(found) > most:
        raise too_large(most)
    if not stream.eof or stream.unused_data:
        _refuse("the body is not one gzip file, as its Content-Encoding says")
    return found


def parse(body: bytes, model: LoadedModel, limits: Limits) -> Prediction:
    """Parses the body of a request to predict. What is too much is refused before it costs much."""
    values = sum(map(body.count, (b",", b":", b"[", b"{")))
    if values > limits.values:
        raise Refused(
            413,
            f"a request may have {limits.values} commas, colons and opening brackets, "
            f"this one has {values}; send several",
        )
    request = _read(body)
    by_row = "instances" in request
    if by_row == ("inputs" in request):
        _refuse("give either instances or inputs")
    name = request.get("signature_name", "")
    signature = model.signatures.get(name or "serving_default") if isinstance(name, str) else None
    if signature is None:
        _refuse(
            f"there is no signature {reprlib.repr(name)}; the model has "
            f"{', '.join(sorted(model.signatures))}"
        )
    if signature.unusable:
        _refuse(f"this signature cannot be served: {signature.unusable}, which JSON does not have")
    read = _columns if by_row else _named
    columns = read(request["instances" if by_row else "inputs"], signature)
    rows = max(len(column) if isinstance(column, list) else 0 for column in columns.values())
    # What is computed at once is no more than a batch, so that others do not wait for many.
    most = min(limits.rows if signature.joinable else limits.batch, limits.queue)
    if signature.has_rows and rows > most:
        raise Refused(413, f"a request may have {most} rows, this one has {rows}; send several")
    inputs = {name: _array(columns[name], spec, name) for name, spec in signature.inputs.items()}
    counts = {len(array) for array in inputs.values()} if signature.has_rows else {1}
    if len(counts) > 1:
        _refuse("the inputs must be lists of the same length")
    return Prediction(signature, inputs, counts.pop(), by_row)


def render(outputs: Arrays, rows: int | None) -> bytes:
    """Returns the body of a response: by row if a number of rows is given, else by column."""
    if rows is None:
        columns = [_json(array, name) for name, array in outputs.items()]
        return f'{{"outputs":{_object(outputs, columns)}}}'.encode()
    for name, array in outputs.items():
        if array.shape[:1] != (rows,):
            _refuse(
                f"the output {reprlib.repr(name)} has no rows; give inputs instead of instances"
            )
    found = []
    for i in range(rows):
        cells = [_json(np.asarray(x[i], x.dtype), name) for name, x in outputs.items()]
        found.append(_object(outputs, cells))
    return f'{{"predictions":[{",".join(found)}]}}'.encode()


def too_large(most: int) -> Refused:
    """Returns the refusal of a body that is too large."""
    return Refused(
        413,
        f"the body of a request may have {most} bytes; send several requests",
        CLOSE,
    )


def _read(body: bytes) -> dict[str, Any]:
    try:
        request = json.loads(
            body.decode("utf-8-sig"),  # TensorFlow Serving skips a byte order mark too
            parse_constant=np.float64,
            object_pairs_hook=_unique,
        )
    except UnicodeDecodeError:
        _refuse("the body is not UTF-8")
    except RecursionError:
        _refuse("the body is nested too deeply")
    except ValueError as error:  # also of a number with too many digits
        _refuse(f"the body is not JSON: {str(error).partition(';')[0]}")
    if not isinstance(request, dict):
        _refuse("the body must be a JSON object with instances or inputs")
    return request


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns an object of JSON.

    Of a key that comes twice, a proxy in front may read the other value.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        # A key keeps its first place in `found`, so the first pair out of place repeats one.
        key = next(key for (key, _), own in zip(pairs, (*found, None), strict=False) if key != own)
        _refuse(f"an object has the key {reprlib.repr(key)} twice")
    return found


def _columns(instances: Any, signature: ServedFunction) -> dict[str, list]:
    """Returns the list of each input's values from a list of rows."""
    if not signature.has_rows:
        _refuse("this signature has no rows; give inputs instead of instances")
    if not isinstance(instances, list) or not instances:
        _refuse("instances must be a list that is not empty")
    if len(signature.inputs) == 1:
        (name,) = signature.inputs
        # A row may be the value itself.
        return {
            name: [
                row[name] if isinstance(row, dict) and set(row) == {name} else row
                for row in instances
            ]
        }
    for row in instances:
        if not isinstance(row, dict) or set(row) != set(signature.inputs):
            _refuse(f"each of instances must be an object with {_names(signature)}")
    return {name: list(map(itemgetter(name), instances)) for name in signature.inputs}


def _named(inputs: Any, signature: ServedFunction) -> dict[str, Any]:
    """Returns the values by the names of the inputs. The name of a single input may be left out.

    Other names are ignored, as TensorFlow Serving does.
    """
    if isinstance(inputs, dict) and set(inputs) >= set(signature.inputs):
        return {name: inputs[name] for name in signature.inputs}
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
    dtype = spec.dtype
    array = np.empty(len(level), object if dtype == tf.string else dtype.as_numpy_dtype)
    if dtype == tf.string:
        array[:] = [_bytes(each, spec, name) for each in level]
    else:
        kinds = _KINDS[dtype.is_integer, dtype.is_floating]
        # NaN, Infinity and -Infinity are of type np.float64; 1e999 is a float.
        plain = [each for each in level if not (dtype.is_floating and type(each) is np.float64)]
        fit = all(type(each) in kinds for each in plain)
        if fit and plain and dtype != tf.bool:
            number = kinds[-1]
            fit = number(dtype.min) <= min(plain) and max(plain) <= number(dtype.max)
        if not fit:
            _refuse(f"{name} must be {_kind(spec)}")
        array[:] = level
    return array.reshape(sizes)


def _bytes(value: Any, spec: tf.TensorSpec, name: str) -> bytes:
    """Returns a string, which may be written as base64."""
    try:
        if isinstance(value, str):
            return value.encode()
        if isinstance(value, dict) and set(value) == {"b64"} and isinstance(value["b64"], str):
            return base64.b64decode(value["b64"], validate=True)
    except UnicodeEncodeError:
        _refuse(f"{name} has a string with half of a surrogate pair")
    except ValueError:
        _refuse(f"{name} has a string that is not base64")
    _refuse(f"{name} must be {_kind(spec)}")


def _kind(spec: tf.TensorSpec) -> str:
    values = "strings" if spec.dtype == tf.string else f"{spec.dtype.name} values"
    return "a list of " * spec.shape.rank + values


def _names(signature: ServedFunction) -> str:
    return " and ".join(sorted(signature.inputs))


def _object(names: Iterable[str], values: Sequence[str]) -> str:
    """Returns the JSON of named values. A single value is written without its name."""
    if len(values) == 1:
        return values[0]
    pairs = [f"{_encode(name)}:{value}" for name, value in zip(names, values, strict=True)]
    return f"{{{','.join(pairs)}}}"


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
    if array.dtype == object:
        value = _text(value, name.endswith("_bytes"))
    return _encode(value)


def _text(value: Any, always: bool) -> Any:
    if isinstance(value, list):
        return [_text(each, always) for each in value]
    if not always:
        with contextlib.suppress(UnicodeDecodeError):
            return value.decode()
    return {"b64": base64.b64encode(value).decode()}


def _refuse(message: str) -> NoReturn:
    raise Refused(400, message)
