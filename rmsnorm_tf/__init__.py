"""Root mean square layer normalization for TensorFlow and Keras 3."""

__version__ = "0.1.0"
