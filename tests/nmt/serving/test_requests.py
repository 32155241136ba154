"""What the service says to good and bad requests."""

import json

import pytest

from tests.nmt.serving.toy import b64

GOOD = [
    (
        {"instances": ["a", "b"]},
        {
            "predictions": [
                {"translations": "A!", "scores": 1.0},
                {"translations": "B!", "scores": 1.0},
            ]
        },
    ),
    ({"instances": [{"sources": "é"}]}, {"predictions": [{"translations": "é!", "scores": 2.0}]}),
    ({"inputs": ["a"]}, {"outputs": {"translations": ["A!"], "scores": [1.0]}}),
    (
        {"inputs": {"sources": ["a", b64(b"b")]}},
        {"outputs": {"translations": ["A!", "B!"], "scores": [1.0, 1.0]}},
    ),
    ({"inputs": {"sources": []}}, {"outputs": {"translations": [], "scores": []}}),
    (
        {"instances": [b64(b"a\xff\0")]},
        {"predictions": [{"translations": b64(b"A\xff\0!"), "scores": 3.0}]},
    ),
    (
        {"inputs": {"sources": ["a"], "more": 1}, "also": [{}]},  # ignored, as TensorFlow Serving
        {"outputs": {"translations": ["A!"], "scores": [1.0]}},
    ),
    (
        {"signature_name": "", "inputs": ["a"]},
        {"outputs": {"translations": ["A!"], "scores": [1.0]}},
    ),
    (
        {"signature_name": "pair", "instances": [{"sources": "a", "targets": "b"}]},
        {"predictions": ["ab"]},
    ),
    (
        {"signature_name": "pair", "inputs": {"sources": ["a"], "targets": ["b"]}},
        {"outputs": ["ab"]},
    ),
    (
        {"signature_name": "add", "inputs": [[1, 2], [-3, 4]]},
        {"outputs": {"sums": [3, 1], "flags": [True, False]}},
    ),
    (
        {"signature_name": "add", "instances": [[1, 2]]},
        {"predictions": [{"sums": 3, "flags": True}]},
    ),
    ({"signature_name": "halves", "instances": [3]}, {"predictions": [1.5]}),
    (
        {"signature_name": "reverse", "instances": ["né"]},
        {"predictions": [b64("né".encode()[::-1])]},
    ),
]


@pytest.mark.parametrize("request_, response", GOOD)
def test_rows_and_columns(service, request_, response):
    assert service.predict(request_) == (200, response)


def test_numbers_that_json_has_not_are_written_as_tensorflow_serving_writes_them(service):
    body = '{"signature_name": "log", "instances": [1, 0, -1]}'
    status, _, body = service.request("POST", "/v1/models/toy:predict", body)
    assert (status, body) == (200, b'{"predictions":[0.0,-Infinity,NaN]}')
    body = '{"signature_name": "halves", "instances": [NaN, Infinity, -Infinity, 3]}'
    status, _, body = service.request("POST", "/v1/models/toy:predict", body)
    assert (status, body) == (200, b'{"predictions":[NaN,Infinity,-Infinity,1.5]}')


BAD = {
    "xx": "not JSON",
    b"\xff{}": "not UTF-8",
    "[]": "must be a JSON object",
    "{}": "either instances or inputs",
    '{"instances": ["a"], "inputs": ["a"]}': "either instances or inputs",
    '{"instances": []}': "not empty",
    '{"instances": {}}': "must be a list",
    '{"instances": [1]}': "sources must be a list of strings",
    '{"instances": [null]}': "sources must be a list of strings",
    '{"instances": [["a"]]}': "sources must be a list of strings",
    '{"instances": ["\\ud800"]}': "surrogate",
    '{"instances": [{"b64": "!"}]}': "not base64",
    '{"instances": [{"b64": "\u00e9"}]}': "not base64",
    '{"inputs": {"wrong": ["a"]}}': "inputs must be an object with sources",
    '{"instances": [{"sources": "a", "more": "b"}]}': "sources must be a list of strings",
    '{"inputs": "a"}': "sources must be a list",
    '{"signature_name": "none", "instances": ["a"]}': "there is no signature",
    '{"signature_name": [], "instances": ["a"]}': "there is no signature",
    '{"signature_name": null, "instances": ["a"]}': "there is no signature",
    '{"signature_name": "pair", "instances": ["a"]}': "an object with sources and targets",
    '{"signature_name": "pair", "inputs": {"sources": ["a"], "targets": []}}': "same length",
    '{"signature_name": "add", "inputs": [[1]]}': "numbers must be",
    '{"signature_name": "add", "inputs": [[1, 2], [3]]}': "numbers must be",
    '{"signature_name": "add", "inputs": [[1, 2.5]]}': "numbers must be",
    '{"signature_name": "add", "inputs": [[1, true]]}': "numbers must be",
    '{"signature_name": "add", "inputs": [[1, 4294967296]]}': "numbers must be",
    '{"signature_name": "add", "inputs": [[1, NaN]]}': "numbers must be",
    '{"signature_name": "halves", "inputs": [1e999]}': "numbers must be",
    '{"inputs": [Infinity]}': "sources must be a list of strings",
    '{"inputs": [nan]}': "not JSON",
    '{"inputs": ["a"], "inputs": ["b"]}': "has the key 'inputs' twice",
    '{"inputs": {"sources": ["a"], "sources": ["a"]}}': "has the key 'sources' twice",
    '{"instances": [{"b64": "YQ==", "b64": "Yg=="}]}': "has the key 'b64' twice",
    '{"signature_name": "add", "inputs": [[1, 1e999]]}': "numbers must be",
    '{"signature_name": "reverse", "instances": ["axa"]}': "refuses the inputs: no x",
    '{"signature_name": "roots", "inputs": [1]}': "cannot be served: roots is complex64",
    "[" * 60_000: "nested too deeply",
    '{"instances": [' + "1" * 10_000 + "]}": "not JSON: Exceeds the limit",
}


@pytest.mark.parametrize("body", BAD, ids=range(len(BAD)))
def test_a_wrong_request_gets_one_sentence(service, body):
    status, answer = service.post(
        "/v1/models/toy:predict", body if isinstance(body, bytes) else body.encode()
    )
    assert (status, list(answer)) == (400, ["error"])
    assert BAD[body] in answer["error"]
    assert "\n" not in answer["error"]


@pytest.mark.parametrize(
    "method, path, status",
    [
        ("GET", "/v1/models/toy:predict", 405),
        ("DELETE", "/v1/models/toy", 405),
        ("POST", "/v1/models/toy", 405),
        ("POST", "/v1/models/other:predict", 404),
        ("POST", "/v1/models/toy/versions/2:predict", 404),
        ("POST", "/v1/models/toy/versions/x:predict", 404),
        ("POST", "/v1/models/toy:classify", 400),
        ("GET", "/v1/models/other", 404),
        ("GET", "/v1/models/toy/versions/2", 404),
        ("GET", "/v1/models/../../../etc/passwd", 404),
        ("GET", "/v1/models/%2e%2e/1", 404),
        ("GET", "/v1/models/toy/1", 404),
        ("GET", "/static/page.html", 404),
    ],
)
def test_a_wrong_path_gets_one_sentence(service, method, path, status):
    found, headers, body = service.request(method, path, "{}" if method == "POST" else None)
    assert (found, headers["content-type"]) == (status, "application/json")
    assert list(json.loads(body)) == ["error"]


def test_status_metadata_and_models(service):
    state = {
        "version": "1",
        "state": "AVAILABLE",
        "status": {"error_code": "OK", "error_message": ""},
    }
    assert service.get("/v1/models/toy") == (200, {"model_version_status": [state]})
    assert service.request("HEAD", "/v1/models/toy")[0] == 200
    assert service.get("/v1/models/toy/versions/1") == (200, {"model_version_status": [state]})
    status, found = service.get("/v1/models/toy/metadata")
    assert (status, found["model_spec"]) == (
        200,
        {"name": "toy", "signature_name": "", "version": "1"},
    )
    pair = found["metadata"]["signature_def"]["signature_def"]["pair"]
    assert pair["method_name"] == "tensorflow/serving/predict"
    assert pair["inputs"]["targets"]["dtype"] == "DT_STRING"
    assert pair["inputs"]["targets"]["tensor_shape"]["dim"][0]["size"] == "-1"
    assert service.get("/healthz")[0] == service.get("/readyz")[0] == 200
    (model,) = service.get("/v1/models")[1]["models"]
    assert (model["name"], model["version"], model["card"]) == ("toy", "1", None)
