"""Translates standard input, one sentence a line, through the gRPC API of TensorFlow Serving.

    python grpc_client.py HOST:8500 NAME < text

Needs `pip install tensorflow-serving-api`.
"""

import sys

import grpc
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

BATCH = 32  # Lines in a request.


def main():
    if len(sys.argv) != 3:
        return "give an address and the name of a model, such as 127.0.0.1:8500 en-de"
    address, name = sys.argv[1:]
    lines = [line.rstrip(b"\r\n") for line in sys.stdin.buffer]
    with grpc.insecure_channel(address) as channel:
        service = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        for start in range(0, len(lines), BATCH):
            request = predict_pb2.PredictRequest()
            request.model_spec.name = name
            request.model_spec.signature_name = "serving_default"
            request.inputs["sources"].CopyFrom(
                tf.make_tensor_proto(lines[start : start + BATCH], tf.string)
            )
            try:
                found = service.Predict(request, timeout=60)
            except grpc.RpcError as error:
                return f"the server says {error.code().name}: {error.details()}"
            for translation in found.outputs["translations"].string_val:
                print(translation.decode(), flush=True)
    return None


if __name__ == "__main__":
    if error := main():
        print(f"grpc_client.py: {error}", file=sys.stderr)
        sys.exit(2)
