"""Root mean square layer normalization for TensorFlow and Keras 3.

>>> import keras
>>> from rmsnorm_tf import RMSNormalization
>>> model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4), RMSNormalization()])
>>> model.output_shape
(None, 4)
"""

from rmsnorm_tf.convert import fold_layer_norm, replace_layer_norm
from rmsnorm_tf.fused import rms_norm
from rmsnorm_tf.recurrent import RMSNormGRUCell, RMSNormLSTMCell, RMSNormSimpleRNNCell
from rmsnorm_tf.recurrent_layers import RMSNormGRU, RMSNormLSTM
from rmsnorm_tf.rms_normalization import RMSNormalization

__all__ = [
    "RMSNormGRU",
    "RMSNormGRUCell",
    "RMSNormLSTM",
    "RMSNormLSTMCell",
    "RMSNormSimpleRNNCell",
    "RMSNormalization",
    "fold_layer_norm",
    "replace_layer_norm",
    "rms_norm",
]

__version__ = "0.1.0"
