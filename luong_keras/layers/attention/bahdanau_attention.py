"""Additive attention of Bahdanau, Cho and Bengio (2015)."""

import keras
from keras import ops

from luong_keras.config.checks import check_integers
from luong_keras.layers.attention.luong_attention import LuongAttention
from luong_keras.layers.attention.scores import ConcatScore
from luong_keras.ops import masking
from luong_keras.ops.masking import unit_vectors


class BahdanauScore(ConcatScore):
    """score(s, h̄_j) = v_a . tanh(W_a s + U_a h̄_j) (Bahdanau et al. 2015).

    Args:
        units: A, the width of the comparison; the query's width when None.
        normalize: Whether the score is g v_a / |v_a| . tanh(W_a s + U_a h̄_j
            + b) (Salimans and Kingma 2016, eq. 2).
    """

    def __init__(self, units=None, normalize=False):
        super().__init__(units, "separate")
        self.normalize = normalize

    def build(self, add_weight, query_shape, value_shape):
        super().build(add_weight, query_shape, value_shape)
        if self.normalize:
            width = self.attention_vector.shape[0]
            self.gain = add_weight(
                "gain", (), keras.initializers.Constant(width**-0.5)
            )
            self.bias = add_weight("bias", (width,), "zeros")

    def project_keys(self, value):
        keys = super().project_keys(value)
        return (
            keys + ops.cast(self.bias, keys.dtype) if self.normalize else keys
        )

    def _score_vector(self):
        if not self.normalize:
            return super()._score_vector()
        vector, gain = (
            masking.upcast(ops.convert_to_tensor(weight))
            for weight in (self.attention_vector, self.gain)
        )
        return gain * unit_vectors(vector)


@keras.saving.register_keras_serializable(package="luong_keras")
class BahdanauAttention(LuongAttention):
    """Additive attention, for comparison with the scores of Luong et al.

        score(s, h̄_j) = v_a . tanh(W_a s + U_a h̄_j)

    (Bahdanau et al. 2015, appendix A.1.2), or, with `normalize`,

        score(s, h̄_j) = g v_a / |v_a| . tanh(W_a s + U_a h̄_j + b)

    where v_a gives only a direction and g the length (Salimans and Kingma
    2016, eq. 2). The first form is the "concat" score with two matrices
    (`concat_form="separate"`). Bahdanau's decoder also takes another path:
    its query is the state before the step, and the context enters the
    recurrence. `BahdanauLSTM` and `BahdanauGRU` take that path.

    Args:
        units: A, the width of the comparison; the query's width when None.
        normalize: Whether the score has the second form. The gain g starts
            at sqrt(1 / A), the bias b at zero.
        use_scale, dropout, seed, kernel_initializer: As in `LuongAttention`.
        name, dtype, trainable: As in every Keras layer.

    Call arguments and output: as in `LuongAttention`.

    Example:

    >>> import numpy as np
    >>> from luong_keras import BahdanauAttention
    >>> query, memory = np.ones((2, 4, 8)), np.ones((2, 6, 10))
    >>> tuple(BahdanauAttention(units=5)(query, memory).shape)
    (2, 4, 10)

    Reference:
        Bahdanau, Cho and Bengio (2015), "Neural Machine Translation by
        Jointly Learning to Align and Translate", arXiv:1409.0473;
        Salimans and Kingma (2016), "Weight Normalization: A Simple
        Reparameterization to Accelerate Training of Deep Neural Networks",
        arXiv:1602.07868.
    """

    def __init__(
        self,
        units=None,
        normalize=False,
        use_scale=False,
        dropout=0.0,
        seed=None,
        kernel_initializer="glorot_uniform",
        name=None,
        dtype=None,
        trainable=True,
    ):
        if not isinstance(normalize, bool):
            raise ValueError(
                "`normalize` must be True or False. Received: normalize="
                f"{normalize!r}. The memory is an argument of the call: "
                "`BahdanauAttention(units)(query, memory)`."
            )
        if normalize and use_scale:
            raise ValueError(
                "`normalize=True` has a learned gain already, so a second "
                "factor would be redundant. Expected: `use_scale=False`. "
                "Received: normalize=True, use_scale=True. Leave `use_scale` "
                "out."
            )
        check_integers(optional=True, units=units)
        super().__init__(
            score_mode=BahdanauScore(units, normalize),
            use_scale=use_scale,
            dropout=dropout,
            seed=seed,
            kernel_initializer=kernel_initializer,
            name=name,
            dtype=dtype,
            trainable=trainable,
        )
        self.units = units
        self.normalize = normalize

    def get_config(self):
        config = super().get_config()
        for name in (
            "score_mode",
            "concat_form",
            "max_length",
            "mask_location",
        ):
            del config[name]
        return {**config, "normalize": self.normalize}
