"""An HTTP service of SavedModels, which speaks the REST API of TensorFlow Serving. It knows nothing of translation."""
