"""Transformers of KerasHub with random weights, of any size."""

from typing import Any

import keras
import keras_hub
import numpy as np

models = keras_hub.models


def sizes(width: int, depth: int) -> dict[str, Any]:
    return {"num_layers": depth, "num_heads": max(2, width // 64), "hidden_dim": width, "intermediate_dim": 4 * width}


def gpt2(width, depth, length):
    return models.GPT2Backbone(vocabulary_size=1000, max_sequence_length=length, **sizes(width, depth))


def opt(width, depth, length):
    return models.OPTBackbone(vocabulary_size=1000, max_sequence_length=length, **sizes(width, depth))


def bloom(width, depth, length):
    return models.BloomBackbone(vocabulary_size=1000, **sizes(width, depth))


def gpt_neo_x(width, depth, length):
    return models.GPTNeoXBackbone(vocabulary_size=1000, max_sequence_length=length, **sizes(width, depth))


def falcon(width, depth, length):
    given = sizes(width, depth)
    return models.FalconBackbone(vocabulary_size=1000, num_attention_heads=given.pop("num_heads"), **given)


def vit(width, depth, length):
    given = sizes(width, depth)
    return models.ViTBackbone(
        image_shape=(8 * _side(length), 8 * _side(length), 3),
        patch_size=(8, 8),
        mlp_dim=given.pop("intermediate_dim"),
        **given,
    )


def clip(width, depth, length):
    side = 8 * _side(length)
    vision = models.CLIPVisionEncoder(patch_size=8, image_shape=(side, side, 3), **sizes(width, depth))
    text = models.CLIPTextEncoder(
        vocabulary_size=1000, embedding_dim=width, max_sequence_length=length, **sizes(width, depth)
    )
    return models.CLIPBackbone(vision, text, projection_dim=width)


def dinov2(width, depth, length):
    side = 8 * _side(length)
    shape = (side, side, 3)
    return models.DINOV2Backbone(patch_size=8, image_shape=shape, position_embedding_shape=shape, **sizes(width, depth))


def whisper(width, depth, length):
    return models.WhisperBackbone(
        vocabulary_size=1000,
        max_encoder_sequence_length=2 * length,
        max_decoder_sequence_length=length,
        **sizes(width, depth),
    )


def bert(width, depth, length):
    return models.BertBackbone(vocabulary_size=1000, max_sequence_length=length, **sizes(width, depth))


LAYER_NORM = {
    "GPT-2": gpt2,
    "OPT": opt,
    "BLOOM": bloom,
    "GPT-NeoX": gpt_neo_x,
    "Falcon": falcon,
    "ViT": vit,
    "CLIP": clip,
    "DINOv2": dinov2,
    "Whisper": whisper,
    "BERT": bert,
}


def with_key_value_heads(backbone):
    def build(width, depth, length):
        given = sizes(width, depth)
        heads = given.pop("num_heads")
        more = {"head_dim": width // heads} if backbone in ("GemmaBackbone", "Qwen3Backbone") else {}
        return getattr(models, backbone)(
            vocabulary_size=1000, num_query_heads=heads, num_key_value_heads=heads // 2, **more, **given
        )

    return build


def t5(width, depth, length):
    return models.T5Backbone(vocabulary_size=1000, **sizes(width, depth))


RMS_NORM = {
    name: with_key_value_heads(f"{name}Backbone") for name in ("Llama", "Gemma", "Mistral", "Qwen", "Qwen3", "Phi3")
} | {"T5": t5}


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
        return np.ones(shape, "int32") if "mask" in x.name else rng.integers(0, 2, shape).astype("int32")

    return keras.tree.map_structure(one, model.input)


def _side(length):
    """Returns how many patches an image has along each side."""
    return max(2, round(length**0.5))
