"""What PyTorch users do with the norm: derivatives of every kind, compilation and export."""

import keras
import numpy as np
import pytest

from rmsnorm_tf import RMSNormalization, RMSNormGRU, RMSNormGRUCell, rms_norm
from tests.backends import BACKEND, to_array
from tests.cases import assert_close

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.skipif(BACKEND != "torch", reason="Keras does not run on PyTorch")

ARGUMENTS = [{}, {"partial": 0.5}, {"groups": 2}, {"axis": 0, "scale_axis": 1}]


def draw(*shapes):
    rng = np.random.default_rng(0)
    return [torch.tensor(rng.normal(size=shape), requires_grad=True) for shape in shapes]


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=str)
def test_derivatives_agree_with_differences(arguments):
    def norm(x, gate, scale, offset):
        return rms_norm(x, scale, offset, gate=gate, **arguments)

    sources = draw((3, 8), (3, 8), (8,), (8,))
    assert torch.autograd.gradcheck(norm, sources, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(norm, sources)


def test_transformed_functions():
    x, scale = (t.detach() for t in draw((3, 8), (8,)))

    def loss(x):
        return torch.sin(rms_norm(x, scale)).sum()

    assert_close(
        torch.func.vmap(lambda row: rms_norm(row, scale))(x), rms_norm(x, scale), "float64"
    )
    assert_close(torch.func.vmap(torch.func.grad(loss))(x), torch.func.grad(loss)(x), "float64")
    hessian = torch.func.hessian(loss)(x[0])
    assert_close(hessian, torch.func.jacrev(torch.func.grad(loss))(x[0]), "float64", factor=10)


@pytest.mark.parametrize("arguments", ARGUMENTS[:3], ids=str)
def test_a_compiled_layer_is_one_graph(arguments):
    torch.compiler.reset()  # a compilation that failed before would leave the layer's code out
    layer = RMSNormalization(center=True, **arguments)
    layer.build((None, 8))
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    x, y = (torch.arange(24.0).reshape(3, 8).requires_grad_() for _ in range(2))
    compiled(x).square().sum().backward()
    layer(y).square().sum().backward()
    assert_close(x.grad, y.grad, factor=100)


def test_the_backward_pass_keeps_the_input_and_a_number_a_row():
    x = torch.ones((64, 1024), dtype=torch.bfloat16, requires_grad=True)
    scale = torch.ones(1024, requires_grad=True)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        rms_norm(x, scale)
    assert sum(t.numel() * t.element_size() for t in kept) <= 2 * x.numel() + 4 * (64 + 1024)


@pytest.mark.parametrize(
    "layer", [RMSNormGRU, lambda units: keras.layers.RNN(RMSNormGRUCell(units))]
)
def test_exported_programs(layer, tmp_path):
    model = keras.Sequential([keras.Input((5, 3)), layer(4)])
    x = np.random.default_rng(0).normal(size=(1, 5, 3)).astype("float32")
    model(x)
    model.export(tmp_path / "model.pt2", format="torch", verbose=False)
    loaded = torch.export.load(tmp_path / "model.pt2").module()
    assert_close(loaded(torch.tensor(x)), model(x))


@pytest.mark.parametrize("arguments", [*ARGUMENTS[:3], {"axis": 1, "scale_axis": 2}], ids=str)
def test_onnx(arguments, tmp_path):
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    model = keras.Sequential([keras.Input((6, 8)), RMSNormalization(center=True, **arguments)])
    x = np.random.default_rng(0).normal(size=(2, 6, 8)).astype("float32")
    y = to_array(model(x))
    model.export(tmp_path / "model.onnx", format="onnx", verbose=False)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    assert_close(session.run(None, {session.get_inputs()[0].name: x})[0], y)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_kernel_of_pytorch_computes_the_same(dtype):
    """Which the layer calls on a GPU for float32 and float64, and where there is no gain."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x, dy = torch.randn((2, 3, 4096), device=device, dtype=dtype)
    scale = torch.rand(4096, device=device, dtype=dtype)
    results = []
    for norm in (
        lambda x: rms_norm(x, scale),
        lambda x: torch.nn.functional.rms_norm(x, (4096,), scale, 1e-6),
    ):
        source = x.clone().requires_grad_()
        y = norm(source)
        y.backward(dy)
        results.append([y, source.grad])
    for ours, theirs in zip(*results, strict=True):
        assert_close(ours.float(), theirs.float(), str(dtype).removeprefix("torch."), factor=4)
