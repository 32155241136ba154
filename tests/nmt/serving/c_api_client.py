"""Serves batches of strings with a SavedModel through TensorFlow's C API, with only Python's standard library.

python -I -S c_api_client.py TENSORFLOW OPERATIONS SAVED_MODEL INPUT OUTPUT < batches > translations

TENSORFLOW is the folder of TensorFlow's shared libraries, OPERATIONS a library of custom operations; INPUT and OUTPUT
are names of tensors. Each line of input is a JSON list of strings, each line of output a JSON object with the list
`translations`. Strings are bytes decoded as Latin-1.
"""

import ctypes
import json
import sys
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_void_p

STRING, STRING_SIZE, OK = 7, 24, 0  # TF_STRING, sizeof(TF_TString), TF_OK


class Output(ctypes.Structure):
    _fields_ = [("operation", c_void_p), ("index", c_int)]


class Session:
    """A session of the SavedModel."""

    def __init__(self, tensorflow: str, operations: str, saved_model: str):
        ctypes.CDLL(f"{tensorflow}/libtensorflow_framework.so.2", ctypes.RTLD_GLOBAL)
        self._library = ctypes.CDLL(f"{tensorflow}/libtensorflow_cc.so.2", ctypes.RTLD_GLOBAL)
        self._status = self._call("TF_NewStatus", c_void_p)
        self._checked("TF_LoadLibrary", c_void_p, operations.encode())
        self._graph, options = self._call("TF_NewGraph", c_void_p), self._call("TF_NewSessionOptions", c_void_p)
        tags = (c_char_p * 1)(b"serve")
        model = (c_void_p(options), None, saved_model.encode(), tags, c_int(1), c_void_p(self._graph), None)
        self._session = self._checked("TF_LoadSessionFromSavedModel", c_void_p, *model)

    def run(self, strings: list[bytes], source: str, target: str) -> list[bytes]:
        """Feeds strings to one tensor and returns those of another."""
        inputs, outputs = ((Output * 1)(self._output(name)) for name in (source, target))
        values, found = (c_void_p * 1)(self._tensor(strings)), (c_void_p * 1)()
        given = (inputs, values, c_int(1), outputs, found, c_int(1), None, c_int(0), None)
        self._checked("TF_SessionRun", None, c_void_p(self._session), None, *given)
        return self._strings(found[0])

    def _output(self, name: str) -> Output:
        operation, _, index = name.partition(":")
        found = self._call("TF_GraphOperationByName", c_void_p, c_void_p(self._graph), operation.encode())
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

    def _strings(self, tensor: int) -> list[bytes]:
        count = self._call("TF_TensorElementCount", c_int64, c_void_p(tensor))
        start = self._call("TF_TensorData", c_void_p, c_void_p(tensor)) or 0
        places = [c_void_p(start + i * STRING_SIZE) for i in range(count)]
        contents = [self._call("TF_StringGetDataPointer", POINTER(ctypes.c_char), place) for place in places]
        sizes = [self._call("TF_StringGetSize", c_size_t, place) for place in places]
        return [ctypes.string_at(content, size) for content, size in zip(contents, sizes, strict=True)]

    def _checked(self, name: str, result, *arguments):
        found = self._call(name, result, *arguments, c_void_p(self._status))
        if self._call("TF_GetCode", c_int, c_void_p(self._status)) != OK:
            sys.exit(self._call("TF_Message", c_char_p, c_void_p(self._status)).decode())
        return found

    def _call(self, name: str, result, *arguments):
        function = getattr(self._library, name)
        function.restype = result
        return function(*arguments)


if __name__ == "__main__":
    session = Session(*sys.argv[1:4])
    for line in sys.stdin:
        found = session.run([string.encode("latin-1") for string in json.loads(line)], *sys.argv[4:])
        print(json.dumps({"translations": [string.decode("latin-1") for string in found]}))
