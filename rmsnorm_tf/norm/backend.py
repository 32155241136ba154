"""Chooses, once for the whole package, what depends on the backend of Keras.

`compute` is the norm itself. `tensors` is a module with what else the package needs beyond
`keras.ops`.
"""

from typing import TYPE_CHECKING

import keras

if TYPE_CHECKING or keras.backend.backend() == "tensorflow":
    from rmsnorm_tf.norm.tensorflow import tensors
    from rmsnorm_tf.norm.tensorflow.compiled import compute, set_fused
else:
    from rmsnorm_tf.norm import portable as tensors
    from rmsnorm_tf.norm.portable import set_fused

    if keras.backend.backend() == "jax":
        from rmsnorm_tf.norm.on_jax import compute
    elif keras.backend.backend() == "torch":
        from rmsnorm_tf.norm.on_torch import compute
    else:
        from rmsnorm_tf.norm.portable import compute

__all__ = ["compute", "set_fused", "tensors"]
