"""Layer between the encoder's last and the decoder's initial states."""

import keras

from luong_keras.config.checks import check_integers
from luong_keras.layers.argument_checks import check_floats, check_same_batch
from luong_keras.layers.checked_layer import VersionedLayer
from luong_keras.layers.initializers import fresh_initializer


@keras.saving.register_keras_serializable(package="luong_keras")
class Bridge(VersionedLayer):
    """Learned initial states of the decoder: tanh(W s + b) for each state.

    The paper passes the last states on unchanged, which requires equal
    stacks. If heights or widths differ, each decoder layer starts from a
    learned projection of the encoder's highest layer (Bahdanau et al. 2015,
    appendix A.2.2).

    Args:
        units: U, the decoder's width.
        num_states: Total number of states of the decoder's layers.
        kernel_initializer: Initializer of the matrices.
        name, dtype, trainable: As in every Keras layer.

    Call arguments:
        states: List of (B, M), the last states of the encoder's highest
            layer, used in turn, so that carries are made from carries.

    Output:
        list of `num_states` tensors (B, U).

    Example:

    >>> import numpy as np
    >>> from luong_keras import Bridge
    >>> states = Bridge(8, num_states=4)([np.ones((2, 6)), np.ones((2, 6))])
    >>> len(states), tuple(states[0].shape)
    (4, (2, 8))
    """

    def __init__(
        self,
        units,
        num_states,
        kernel_initializer="glorot_uniform",
        name=None,
        dtype=None,
        trainable=True,
    ):
        check_integers(units=units, num_states=num_states)
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        self.units = units
        self.num_states = num_states
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        # One attribute per layer: `tf.train.Checkpoint` skips lists.
        for i in range(num_states):
            projection = _Projection(
                units,
                activation="tanh",
                kernel_initializer=fresh_initializer(self.kernel_initializer),
                dtype=self.dtype_policy,
                trainable=trainable,
                name=f"state_{i}",
            )
            setattr(self, f"projection_{i}", projection)

    @property
    def projections(self):
        """Dense layers, one per state."""
        return [
            getattr(self, f"projection_{i}") for i in range(self.num_states)
        ]

    def build(self, states_shape):
        for i, projection in enumerate(self.projections):
            projection.build(states_shape[i % len(states_shape)])
        self.built = True

    def _check_call(self, states, **others):
        if not isinstance(states, (list, tuple)) or not states:
            raise ValueError(
                "`states` must be a list of the last states of the encoder's "
                "highest layer, (B, M) each. Received: "
                f"states={states!r}. Pass `[h, c]`, or `[h]` of a GRU."
            )
        for state in states:
            check_floats("states", state, "(B, U)")
        check_same_batch(**{f"states[{i}]": s for i, s in enumerate(states)})

    def call(self, states):
        return [
            projection(states[i % len(states)])
            for i, projection in enumerate(self.projections)
        ]

    def _output_shape(self, states_shape):
        return [(states_shape[0][0], self.units)] * self.num_states

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "num_states": self.num_states,
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            ),
        }


class _Projection(keras.layers.Dense):
    """Dense layer that `quantize` leaves in floats, like all subclasses.

    A bridge made from its configuration could not read quantised weights.
    """
