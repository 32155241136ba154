"""One update: the gradient of the mean cost of a batch, its norm clipped, and Adam's step, compiled as one graph."""

import keras
import tensorflow as tf

from .config import Config
from .data import Batch


class Update:
    """Updates a model from a batch.

    Args:
        model: Offers `costs`, as `rnnsearch.RNNSearch` does.
        config: How to train.
    """

    def __init__(self, model: keras.Model, config: Config):
        self._model, self._config = model, config
        self._optimizer = keras.optimizers.Adam(
            config.learning_rate,
            beta_1=config.adam_beta1,
            beta_2=config.adam_beta2,
            epsilon=config.adam_epsilon,
            name="adam",  # or Keras counts, and the names in a checkpoint with it
        )
        self._optimizer.build(model.trainable_variables)
        self._compiled = tf.function(self._once, reduce_retracing=True)

    @property
    def variables(self) -> list[keras.Variable]:
        """All that updates change: the model's variables and the optimizer's."""
        return [*self._model.variables, *self._optimizer.variables]

    def __call__(self, batch: Batch, number: int) -> tuple[float, float, float]:
        """Makes update `number`, unless the loss or its gradient is not finite; then nothing changes.

        Returns:
            The batch's summed loss in nats, its number of target tokens, and the norm of the gradient.
        """
        loss, tokens, norm = self._compiled(batch, tf.constant(number))
        return float(loss), float(tokens), float(norm)

    def _once(self, batch: Batch, number: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        seed = tf.stack([self._config.seed, number])
        with tf.GradientTape() as tape:
            costs = self._model.costs(*batch, label_smoothing=self._config.label_smoothing, dropout_seed=seed)
            sentences = tf.reduce_sum(batch.target_mask[:, 0])
            loss = tf.reduce_sum(costs) / sentences
        variables = self._model.trainable_variables
        # Nematus's norm: in an embedding's gradient the rows of a word's occurrences are not yet summed.
        gradients, norm = tf.clip_by_global_norm(tape.gradient(loss, variables), self._config.clip_c)
        loss *= sentences
        if tf.math.is_finite(loss) & tf.math.is_finite(norm):
            # Keras wants all gradients of one graph, which is that of the branch.
            dense = [tf.identity(tf.convert_to_tensor(gradient)) for gradient in gradients]
            self._optimizer.apply(dense, variables)
        return loss, tf.reduce_sum(batch.target_mask), norm
