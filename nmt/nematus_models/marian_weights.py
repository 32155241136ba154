"""The weights of Marian models in files of transformers, which may be hostile, and their names there."""

import re
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np

from ..errors import UserError
from ..storage.files import path_inside

TABLE = "model.shared.weight"
BIAS = "final_logits_bias"
_BLOCKS = {
    "self_attention": "self_attn",
    "cross_attention": "encoder_attn",
    "self_attention_residual": "self_attn_layer_norm",
    "cross_attention_residual": "encoder_attn_layer_norm",
    "feed_forward_residual": "final_layer_norm",
}
_WEIGHTS = {
    "queries": "q_proj.weight",
    "keys": "k_proj.weight",
    "values": "v_proj.weight",
    "output": "out_proj.weight",
    "queries_bias": "q_proj.bias",
    "keys_bias": "k_proj.bias",
    "values_bias": "v_proj.bias",
    "output_bias": "out_proj.bias",
    "inner_kernel": "fc1.weight",
    "inner_bias": "fc1.bias",
    "outer_kernel": "fc2.weight",
    "outer_bias": "fc2.bias",
    "gamma": "weight",
    "beta": "bias",
}
# What some files hold besides the weights: copies of the table, and positions. config.json says
# that they are those.
_COPY = re.compile(r"lm_head\.weight|model\.(encoder|decoder)\.embed_(tokens|positions)\.weight")
# The last parts of names in files of TensorFlow.
_OF_TENSORFLOW = {"kernel": "weight", "gamma": "weight", "beta": "bias", "embeddings": "weight"}
_CONVERT = (
    "it is a pickle, which may run any code when it is read; where PyTorch and transformers are, convert it: "
    "python -c \"from transformers import MarianMTModel as M; M.from_pretrained(F := '{0}').save_pretrained(F)\""
)


def marian_name(path: str, names: Collection[str] = ()) -> str:
    if path == "encoder/embedding/embeddings":
        return TABLE
    if path == "decoder/output_bias":
        return BIAS
    side, layer, block, *_, weight = path.split("/")
    name = f"model.{side}.layers.{int(layer.removeprefix('layer_')) - 1}"
    return (
        f"{name}.{_BLOCKS[block]}.{_WEIGHTS[weight]}"
        if block in _BLOCKS
        else f"{name}.{_WEIGHTS[weight]}"
    )


def is_transposed(name: str) -> bool:
    """Returns whether an array is the transpose of our variable, as all matrices but the table are."""
    return name.endswith(("proj.weight", "fc1.weight", "fc2.weight"))


def read_weights(folder: Path) -> tuple[Path, dict[str, np.ndarray]]:
    """Returns the file of the weights in a folder, and the weights by name, in float32."""
    readers = {"model.safetensors": _read_safetensors, "tf_model.h5": _read_hdf5}
    path = next((folder / name for name in readers if (folder / name).is_file()), None)
    if path is None:
        if (pickled := folder / "pytorch_model.bin").exists():
            raise UserError(f"{pickled} is not read: {_CONVERT.format(folder)}")
        raise UserError(
            f"{folder} has neither model.safetensors nor tf_model.h5; download the whole model again"
        )
    path_inside(path, folder)
    try:
        arrays = dict(readers[path.name](path))
    except UserError:
        raise
    except Exception as error:  # the readers raise many types for a damaged file
        raise UserError(
            f"{path} is damaged: {(str(error) or type(error).__name__).splitlines()[0]}; copy it again"
        ) from None
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise UserError(f"{path} has values in {name} that are not finite; copy it again")
    kept = {name: each for name, each in arrays.items() if not _COPY.fullmatch(name)}
    if BIAS in kept and kept[BIAS].ndim == 2:  # [1, words]
        kept[BIAS] = kept[BIAS].reshape(-1)
    return path, kept


def _read_safetensors(path: Path) -> Iterator[tuple[str, np.ndarray]]:
    from safetensors import safe_open

    with safe_open(path, "numpy") as file:
        for name in file.keys():  # noqa: SIM118 - it is no dictionary
            kind = file.get_slice(name).get_dtype()
            if kind not in ("F32", "F16"):
                raise UserError(f"{path} has {name} in {kind}; only F32 and F16 can be imported")
            yield name, file.get_tensor(name).astype(np.float32)


def _read_hdf5(path: Path) -> Iterator[tuple[str, np.ndarray]]:
    import h5py

    found = []
    with h5py.File(path, "r") as file:
        file.visititems(
            lambda _, each: found.append(each) if isinstance(each, h5py.Dataset) else None
        )
        sets = [each for each in found if not each.name.startswith("/optimizer_weights")]
        stored = sum(each.nbytes for each in sets)
        for each in sets:
            if (
                each.external
                or each.is_virtual
                or each.id.get_storage_size() < each.nbytes
                or each.dtype.kind != "f"
            ):
                raise UserError(
                    f"{path} has {each.name}, which is no plain array of numbers; copy it again"
                )
        if stored > path.stat().st_size:
            raise UserError(f"{path} has arrays of more bytes than the file; copy it again")
        for each in sets:
            name = _name_of(each.name)
            array = np.asarray(each[()], np.float32)
            yield name, array.T if is_transposed(name) else array


def _name_of(path: str) -> str:
    """Returns the name in PyTorch of a weight in a file of TensorFlow."""
    name = path.removesuffix(":0").replace("/", ".")
    name = re.sub(rf".*(model\.(?:encoder|decoder|shared)\b|\b{BIAS}$)", r"\1", name)
    stem, _, last = name.rpartition(".")
    return f"{stem}.{_OF_TENSORFLOW.get(last, last)}" if stem else name
