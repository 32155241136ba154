"""Transformers of KerasHub with random weights, of any size."""

from typing import Any

import keras
import keras_hub
import numpy as np

models = keras_hub.models


def sizes(width: int, depth: int) -> dict[str, Any]:
    """Returns the arguments that most models share."""
    return {
        "num_layers": depth,
        "num_heads": max(2, width // 64),
        "hidden_dim": width,
        "intermediate_dim": 4 * width,
    }


def language(backbone: str, length_as: str | None = None, heads_as: str = "num_heads"):
    """Returns a function that builds a model of text.

    `length_as` and `heads_as` are the names of its arguments. With `num_query_heads`, it has half
    as many heads of keys and values.
    """

    def build(width, depth, length):
        given = {"vocabulary_size": 1000, **sizes(width, depth)}
        given[heads_as] = heads = given.pop("num_heads")
        given |= {length_as: length} if length_as else {}
        given |= {"num_key_value_heads": heads // 2} if heads_as == "num_query_heads" else {}
        given |= (
            {"head_dim": width // heads} if backbone in ("GemmaBackbone", "Qwen3Backbone") else {}
        )
        return getattr(models, backbone)(**given)

    return build


def image(length: int) -> tuple[int, int, int]:
    """Returns the shape of an image of about this many patches of 8 by 8."""
    side = 8 * max(2, round(length**0.5))
    return side, side, 3


def vit(width, depth, length):
    given = sizes(width, depth)
    inner = given.pop("intermediate_dim")
    return models.ViTBackbone(image_shape=image(length), patch_size=(8, 8), mlp_dim=inner, **given)


def clip(width, depth, length):
    shape = image(length)
    given = sizes(width, depth)
    vision = models.CLIPVisionEncoder(patch_size=8, image_shape=shape, name="vision", **given)
    text = models.CLIPTextEncoder(
        vocabulary_size=1000, embedding_dim=width, max_sequence_length=length, name="text", **given
    )
    return models.CLIPBackbone(vision, text, projection_dim=width)


def dinov2(width, depth, length):
    shape = image(length)
    return models.DINOV2Backbone(
        patch_size=8, image_shape=shape, position_embedding_shape=shape, **sizes(width, depth)
    )


def whisper(width, depth, length):
    lengths = {"max_encoder_sequence_length": 2 * length, "max_decoder_sequence_length": length}
    return models.WhisperBackbone(vocabulary_size=1000, **lengths, **sizes(width, depth))


LAYER_NORM = {
    "GPT-2": language("GPT2Backbone", "max_sequence_length"),
    "OPT": language("OPTBackbone", "max_sequence_length"),
    "BLOOM": language("BloomBackbone"),
    "GPT-NeoX": language("GPTNeoXBackbone", "max_sequence_length"),
    "Falcon": language("FalconBackbone", heads_as="num_attention_heads"),
    "ViT": vit,
    "CLIP": clip,
    "DINOv2": dinov2,
    "Whisper": whisper,
    "BERT": language("BertBackbone", "max_sequence_length"),
}
WITH_KEY_VALUE_HEADS = ("Llama", "Gemma", "Mistral", "Qwen", "Qwen3", "Phi3")
RMS_NORM = {
    name: language(f"{name}Backbone", heads_as="num_query_heads") for name in WITH_KEY_VALUE_HEADS
}
RMS_NORM["T5"] = language("T5Backbone")


def draw(model: keras.Model) -> keras.Model:
    """Perturbs all weights, so that no bias is 0, no gain 1, and nothing is centred by chance."""
    rng = np.random.default_rng(0)
    floats = [weight for weight in model.weights if "float" in weight.dtype]
    for weight in floats:
        weight.assign(weight.numpy() + rng.normal(0.05, 0.1, weight.shape))
    return model


def inputs_for(model: keras.Model, batch: int, length: int) -> Any:
    """Returns drawn inputs in the structure that a model takes; all tokens count."""
    rng = np.random.default_rng(1)

    def one(x):
        times = 2 * length if x.name == "encoder_features" else length
        shape = [batch, *(size or times for size in x.shape[1:])]
        if "int" not in x.dtype:
            return rng.normal(size=shape).astype("float32")
        return (
            np.ones(shape, "int32")
            if "mask" in x.name
            else rng.integers(0, 2, shape).astype("int32")
        )

    return keras.tree.map_structure(one, model.input)
