"""From a trained model to translations, scores and metrics."""
