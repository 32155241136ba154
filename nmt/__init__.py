"""The baseline: Nematus-style neural machine translation in TensorFlow 2 and Keras 3."""
