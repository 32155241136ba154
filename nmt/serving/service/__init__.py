"""An HTTP service of SavedModels, which speaks the REST API of TensorFlow Serving.

Only its page knows translation.
"""
