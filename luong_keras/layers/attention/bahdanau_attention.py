"""Additive attention of Bahdanau, Cho and Bengio (2015)."""

import keras
from keras import ops

from luong_keras.layers.attention import scores
from luong_keras.layers.attention.luong_attention import LuongAttention
from luong_keras.ops import masking


@keras.saving.register_keras_serializable(package="luong_keras")
class BahdanauAttention(LuongAttention):
    """Additive attention, for comparison with the scores of Luong et al.

        score(s, h̄_j) = v_a . tanh(W_a s + U_a h̄_j)

    (Bahdanau et al. 2015, appendix A.1.2), or, with `normalize`,

        score(s, h̄_j) = g v_a / |v_a| . tanh(W_a s + U_a h̄_j + b)

    where v_a gives a direction alone and g the length (Salimans and Kingma
    2016, eq. 2). It is the paper's "concat" score
    with a width of its own. What else differs is the decoder's path: there
    the query is the state before the step and the context enters the
    recurrence; `BahdanauLSTM` and `BahdanauGRU` take that path.

    Args:
        units: A, the width of the comparison; the query's width when None.
        normalize: whether the score has the second form. The gain g starts
            at sqrt(1 / A), the bias b at zero.
        **kwargs: `use_scale`, `dropout`, `seed`, `kernel_initializer` of
            `LuongAttention`, and `name`, `dtype`, ….

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

    def __init__(self, units=None, normalize=False, **kwargs):
        super().__init__(
            score_mode="concat", units=units, concat_form="separate", **kwargs
        )
        if normalize and self.use_scale:
            raise ValueError(
                "`normalize=True` has a learned gain already, so a second "
                "factor would be redundant. Expected: `use_scale=False`. "
                "Received: normalize=True, use_scale=True. Leave `use_scale` "
                "out."
            )
        self.normalize = normalize

    def build(self, query_shape, value_shape):
        super().build(query_shape, value_shape)
        if self.normalize:
            width = self.attention_vector.shape[0]
            self.gain = self.add_weight(
                name="gain",
                shape=(),
                initializer=keras.initializers.Constant(width**-0.5),
            )
            self.bias = self.add_weight(
                name="bias", shape=(width,), initializer="zeros"
            )

    def project_keys(self, value):
        """U_a h̄_s, and with `normalize` + b, to be passed as `keys`."""
        keys = super().project_keys(value)
        return (
            keys + ops.cast(self.bias, keys.dtype) if self.normalize else keys
        )

    def _score_vector(self):
        if not self.normalize:
            return super()._score_vector()
        vector, gain = (
            masking.widen(ops.convert_to_tensor(weight))
            for weight in (self.attention_vector, self.gain)
        )
        return gain * scores.unit_vectors(vector)

    def get_config(self):
        config = {**super().get_config(), "normalize": self.normalize}
        for fixed in (
            "score_mode",
            "concat_form",
            "max_length",
            "mask_location",
        ):
            del config[fixed]
        return config
