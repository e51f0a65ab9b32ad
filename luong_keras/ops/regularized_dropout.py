"""Two passes of a sentence through a model with dropout, kept close.

R-Drop (Liang et al. 2021, "R-Drop: Regularized Dropout for Neural Networks",
eq. 1 to 4) reads every sentence twice, each time with other dropout, and adds
to the losses of both how far their distributions p and q are apart,

    D = (KL(p | q) + KL(q | p)) / 2 = sum (p - q)(l - m) / 2

where l and m are the logits. The loss here is half of the paper's, so that it
is still that of a word, with the weight a of the paper:

    loss = (loss of p + loss of q + a D) / 2

Rows of a batch that are read twice stand beside each other: 0, 0, 1, 1, ...
"""

from keras import ops

from luong_keras.ops import cross_entropy, masking

PASSES = 2


def repeat_rows(rows):
    """Every row (B, ...) twice, (2 B, ...)."""
    return ops.repeat(rows, PASSES, axis=0)


def interleave_passes(vectors):
    """Vectors (2 B, T, U) to (2 B T, U), both passes of a word in turn."""
    rows, words, width = ops.shape(vectors)
    apart = ops.reshape(vectors, (rows // PASSES, PASSES, words, width))
    return ops.reshape(ops.transpose(apart, (0, 2, 1, 3)), (-1, width))


def mean_over_passes(of_passes):
    """The mean over the passes of each word, (2 N,) to (N,)."""
    return ops.mean(ops.reshape(of_passes, (-1, PASSES)), axis=-1)


def word_losses(logits, targets, label_smoothing, pad_id, r_drop):
    """Losses and hits of every target word, both (B, T), 0 at padding.

    logits (2 B, T, V) of `repeat_rows` the rows of targets (B, T).
    """
    losses, hits = (
        ops.mean(ops.reshape(x, (-1, PASSES, ops.shape(x)[-1])), axis=1)
        for x in cross_entropy.word_losses(
            logits, repeat_rows(targets), label_smoothing, pad_id
        )
    )
    logits = masking.upcast(interleave_passes(logits))
    apart, _ = divergences_and_gradients(logits, ops.softmax(logits, axis=-1))
    apart = ops.reshape(apart, ops.shape(targets))
    apart = ops.where(ops.not_equal(targets, pad_id), apart, 0.0)
    return losses + r_drop / 2 * apart, hits


def divergences_and_gradients(logits, probabilities):
    """D of every word (N,), and its gradient of the logits (2 N, V).

    With E_p = sum p (l - m) and E_q = sum q (l - m),

        D       = (E_p - E_q) / 2
        d D / d l = (p (1 + l - m - E_p) - q) / 2

    and the same with both exchanged.

    Args:
        logits: l and m of a word after the other, (2 N, V).
        probabilities: their softmax.
    """
    vocabulary = logits.shape[-1]
    one, other = _apart(logits, vocabulary)
    p, q = _apart(probabilities, vocabulary)
    gap = one - other
    mean_p = ops.sum(p * gap, axis=-1, keepdims=True)
    mean_q = ops.sum(q * gap, axis=-1, keepdims=True)
    gradients = [
        (p * (gap + (1 - mean_p)) - q) / 2,
        (q * ((1 + mean_q) - gap) - p) / 2,
    ]
    both = ops.reshape(ops.stack(gradients, axis=1), (-1, vocabulary))
    return ((mean_p - mean_q) / 2)[:, 0], both


def _apart(rows, width):
    pairs = ops.reshape(rows, (-1, PASSES, width))
    return pairs[:, 0], pairs[:, 1]
