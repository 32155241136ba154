"""Serves batches of strings with a SavedModel through TensorFlow's C API, with only Python's
standard library.

python -I -S c_api_client.py TENSORFLOW OPERATIONS SAVED_MODEL SIGNATURES < batches > results

TENSORFLOW is the folder of TensorFlow's shared libraries, OPERATIONS a library of custom
operations. SIGNATURES is a JSON object from names of signatures to {"inputs": NAMES, "outputs":
NAMES}; NAMES is an object from names to names of tensors. Each line of input is a JSON object
{"signature_name": ..., "inputs": ...} with a list of strings for each input; each line of output is
an object from names to lists of values, flattened. Strings are bytes decoded as Latin-1. Four
threads run lines at the same time.
"""

import ctypes
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from ctypes import (
    POINTER,
    byref,
    c_bool,
    c_char_p,
    c_float,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_void_p,
)

FLOAT = 1  # TF_FLOAT, TF_INT32, TF_STRING, TF_BOOL
INT32 = 3
STRING = 7
BOOL = 10
STRING_SIZE = 24  # sizeof(TF_TString), TF_OK
OK = 0


class Output(ctypes.Structure):
    _fields_ = [("operation", c_void_p), ("index", c_int)]


class Session:
    """A session of the SavedModel."""

    def __init__(self, tensorflow: str, operations: str, saved_model: str):
        ctypes.CDLL(f"{tensorflow}/libtensorflow_framework.so.2", ctypes.RTLD_GLOBAL)
        self._library = ctypes.CDLL(f"{tensorflow}/libtensorflow_cc.so.2", ctypes.RTLD_GLOBAL)
        self._checked("TF_LoadLibrary", c_void_p, operations.encode())
        self._graph = self._call("TF_NewGraph", c_void_p)
        options = self._call("TF_NewSessionOptions", c_void_p)
        tags = (c_char_p * 1)(b"serve")
        model = (
            c_void_p(options),
            None,
            saved_model.encode(),
            tags,
            c_int(1),
            c_void_p(self._graph),
            None,
        )
        self._session = self._checked("TF_LoadSessionFromSavedModel", c_void_p, *model)

    def run(self, inputs: dict[str, list[bytes]], targets: list[str]) -> list[list]:
        """Feeds strings to tensors and returns the values of others."""
        sources, targets = (
            (Output * len(names))(*map(self._output, names)) for names in (inputs, targets)
        )
        values = (c_void_p * len(inputs))(*map(self._tensor, inputs.values()))
        found = (c_void_p * len(targets))()
        given = (
            sources,
            values,
            c_int(len(values)),
            targets,
            found,
            c_int(len(found)),
            None,
            c_int(0),
            None,
        )
        self._checked("TF_SessionRun", None, c_void_p(self._session), None, *given)
        return list(map(self._values, found))

    def _output(self, name: str) -> Output:
        operation, _, index = name.partition(":")
        found = self._call(
            "TF_GraphOperationByName", c_void_p, c_void_p(self._graph), operation.encode()
        )
        assert found, name
        return Output(found, int(index))

    def _tensor(self, strings: list[bytes]) -> int:
        size = (c_int64(len(strings)), c_int(1), c_size_t(STRING_SIZE * len(strings)))
        tensor = self._call("TF_AllocateTensor", c_void_p, c_int(STRING), byref(size[0]), *size[1:])
        start = self._call("TF_TensorData", c_void_p, c_void_p(tensor)) or 0
        for i, string in enumerate(strings):
            place = c_void_p(start + i * STRING_SIZE)
            self._call("TF_StringInit", None, place)
            self._call("TF_StringCopy", None, place, string, c_size_t(len(string)))
        return tensor

    def _values(self, tensor: int) -> list:
        count = self._call("TF_TensorElementCount", c_int64, c_void_p(tensor))
        start = self._call("TF_TensorData", c_void_p, c_void_p(tensor)) or 0
        kind = self._call("TF_TensorType", c_int, c_void_p(tensor))
        if kind != STRING:
            return (
                list(
                    ({FLOAT: c_float, INT32: c_int32, BOOL: c_bool}[kind] * count).from_address(
                        start
                    )
                )
                if count
                else []
            )
        places = [c_void_p(start + i * STRING_SIZE) for i in range(count)]
        contents = [
            self._call("TF_StringGetDataPointer", POINTER(ctypes.c_char), place) for place in places
        ]
        sizes = [self._call("TF_StringGetSize", c_size_t, place) for place in places]
        return [
            ctypes.string_at(content, size) for content, size in zip(contents, sizes, strict=True)
        ]

    def _checked(self, name: str, result, *arguments):
        status = self._call("TF_NewStatus", c_void_p)  # one for each call, since threads call
        found = self._call(name, result, *arguments, c_void_p(status))
        if self._call("TF_GetCode", c_int, c_void_p(status)) != OK:
            raise RuntimeError(self._call("TF_Message", c_char_p, c_void_p(status)).decode())
        return found

    def _call(self, name: str, result, *arguments):
        function = getattr(self._library, name)
        function.restype = result
        return function(*arguments)


def decoded(values: list) -> list:
    return [x.decode("latin-1") if isinstance(x, bytes) else x for x in values]


def main() -> None:
    session = Session(*sys.argv[1:4])
    signatures = json.loads(sys.argv[4])

    def serve(line: str) -> dict[str, list]:
        request = json.loads(line)
        inputs, outputs = (
            signatures[request["signature_name"]][side] for side in ("inputs", "outputs")
        )
        given = {}
        for name, tensor in inputs.items():
            given[tensor] = [text.encode("latin-1") for text in request["inputs"][name]]
        found = session.run(given, list(outputs.values()))
        return dict(zip(outputs, map(decoded, found), strict=True))

    with ThreadPoolExecutor(4) as callers:
        for result in callers.map(serve, sys.stdin):
            print(json.dumps(result))


if __name__ == "__main__":
    main()
