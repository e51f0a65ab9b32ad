"""Additive attention of Bahdanau, Cho and Bengio (2015)."""

import keras

from luong_keras.layers.luong_attention import LuongAttention


@keras.saving.register_keras_serializable(package="luong_keras")
class BahdanauAttention(LuongAttention):
    """Additive attention, for comparison with the scores of Luong et al.

        score(s, h̄_j) = v_a . tanh(W_a s + U_a h̄_j)

    (Bahdanau et al. 2015, appendix A.1.2.) It is the paper's "concat" score
    with a width of its own. What else differs is the decoder's path: there
    the query is the state before the step and the context enters the
    recurrence; `BahdanauLSTM` and `BahdanauGRU` take that path.

    Args:
        units: width of the comparison; the query's width when None.
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
        Jointly Learning to Align and Translate", arXiv:1409.0473.
    """

    def __init__(self, units=None, **kwargs):
        super().__init__(
            score_mode="concat", units=units, concat_form="separate", **kwargs
        )

    def get_config(self):
        config = super().get_config()
        for fixed in (
            "score_mode",
            "concat_form",
            "max_length",
            "mask_location",
        ):
            del config[fixed]
        return config
