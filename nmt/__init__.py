"""The pinned baseline: the RNN translation model of Nematus v0.3 in TensorFlow 2 and Keras 3."""
