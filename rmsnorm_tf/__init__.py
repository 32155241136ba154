"""Root mean square layer normalization for TensorFlow and Keras 3.

>>> import keras
>>> from rmsnorm_tf import RMSNormalization
>>> model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4), RMSNormalization()])
>>> model.output_shape
(None, 4)
"""

from rmsnorm_tf.conversion.layer_norm import fold_layer_norm, replace_layer_norm
from rmsnorm_tf.conversion.model.report import Conversion, ConversionReport
from rmsnorm_tf.conversion.rms_norm import replace_rms_norm
from rmsnorm_tf.norm.backend import set_fused
from rmsnorm_tf.norm.function import rms_norm
from rmsnorm_tf.norm.layer import RMSNormalization
from rmsnorm_tf.recurrent.cells import RMSNormGRUCell, RMSNormLSTMCell, RMSNormSimpleRNNCell
from rmsnorm_tf.recurrent.layers import RMSNormGRU, RMSNormLSTM

__all__ = [
    "Conversion",
    "ConversionReport",
    "RMSNormGRU",
    "RMSNormGRUCell",
    "RMSNormLSTM",
    "RMSNormLSTMCell",
    "RMSNormSimpleRNNCell",
    "RMSNormalization",
    "fold_layer_norm",
    "replace_layer_norm",
    "replace_rms_norm",
    "rms_norm",
    "set_fused",
]

__version__ = "0.1.0"
