"""The loss of every target word, as a pure function of the logits."""

from keras import ops

from luong_keras import masking
from luong_keras.special_tokens import PAD_ID


def word_losses(logits, targets, label_smoothing=0.0, pad_id=PAD_ID):
    """-log p(y_t | y_<t, x) (eq. 4) and hits, both (B, T), 0 at padding.

    logits (B, T, V), targets (B, T) ids. The log-softmax is taken in the
    wider of float32 and the dtype of the logits. With `label_smoothing` e
    the target distribution is 1 - e on the word plus e / V on every word
    (Szegedy et al. 2016). A hit is 1.0 where the most probable word is the
    target.
    """
    logits = masking.widen(logits)
    real = ops.not_equal(targets, pad_id)
    losses = ops.sparse_categorical_crossentropy(
        targets, logits, from_logits=True
    )
    of_target = ops.squeeze(
        ops.take_along_axis(logits, ops.expand_dims(targets, -1), axis=-1), -1
    )
    if label_smoothing:
        # (1 - e) loss + e (normaliser - mean), where loss is
        # normaliser - of_target: no second normaliser is needed.
        surplus = of_target - ops.mean(logits, axis=-1)
        losses = losses + label_smoothing * surplus
    # No argmax: a maximum is several times cheaper.
    hits = ops.cast(of_target >= ops.max(logits, axis=-1), logits.dtype)
    zero = ops.zeros((), dtype=logits.dtype)
    return ops.where(real, losses, zero), ops.where(real, hits, zero)
