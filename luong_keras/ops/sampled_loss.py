"""Word losses estimated from a part of the vocabulary.

The normaliser of the softmax (eq. 6) is a sum over V words. Here it is the
word itself and an estimate of the rest from C words that are drawn anew for
every batch, each divided by the probability that it is drawn: importance
sampling (Bengio and Senécal 2008), which Jean et al. (2015) brought to large
vocabularies in translation. The words are drawn without putting back, so that
none is projected twice, by the C largest of log q_i + Gumbel noise. With k the
largest of the others, word i is above it with the probability

    pi_i = 1 - exp(-exp(log q_i - k))

and the sum of exp(l_i) / pi_i over those drawn has the normaliser's expectation
(Vieira 2017; Kool et al. 2019). Its logarithm is too small by about half of the
estimate's relative variance. Jean et al. divide the training text instead and
project the words of a part, uncorrected.
"""

from keras import backend, ops, random

from luong_keras.ops import masking
from luong_keras.ops.products import product

_NEVER = -1e30  # a logit


def draw_words(vocabulary_size, count, seed):
    """Words of a vocabulary that is sorted by frequency, each at most once.

    q_i = log(1 + 1 / (i + 1)) / log(V + 1), about the law of Zipf.

    Args:
        vocabulary_size: V.
        count: C, less than V.
        seed: a `keras.random.SeedGenerator`.

    Returns:
        ids (C,), and log pi (C,), the logarithms of the probabilities with
        which they are drawn.
    """
    ranks = ops.arange(vocabulary_size, dtype="float32")
    log_q = ops.log(ops.log1p(1 / (ranks + 1)))
    log_q = log_q - ops.log(ops.log(float(vocabulary_size + 1)))
    uniform = random.uniform((vocabulary_size,), minval=1e-30, seed=seed)
    keys, ids = ops.top_k(log_q - ops.log(-ops.log(uniform)), count + 1)
    ids = ids[:-1]
    above = ops.exp(ops.take(log_q, ids) - keys[-1])
    return ids, ops.log(-ops.expm1(-above))


def sampled_word_losses(
    vectors, drawn, log_drawn, weights, own_weights, targets, pad_id=0
):
    """Estimated losses and hits of words, (N,) each, 0 at padding.

    A word is hit where no word that was drawn is more probable.

    Args:
        vectors: (N, U).
        drawn: ids (C,), from `draw_words`.
        log_drawn: (C,), likewise.
        weights: kernel (U, C) and bias (C,) or None, of what was drawn.
        own_weights: kernel (U, N) and bias (N,) or None, of the targets.
        targets: ids (N,).
        pad_id: the id of padding.
    """
    targets = ops.cast(targets, "int32")
    kernel, bias = weights
    own_kernel, own_bias = own_weights
    logits = masking.upcast(product(vectors, kernel, bias))
    own = ops.sum(
        masking.upcast(vectors) * masking.upcast(ops.transpose(own_kernel)), -1
    )
    if own_bias is not None:
        own = own + ops.cast(own_bias, own.dtype)
    is_own = ops.equal(targets[:, None], ops.cast(drawn, "int32")[None])
    others = ops.where(is_own, _NEVER, logits)
    hits = ops.cast(own >= ops.max(others, axis=-1), own.dtype)
    estimated = others - ops.cast(log_drawn, others.dtype)
    every = ops.concatenate([own[:, None], estimated], axis=-1)
    losses = ops.logsumexp(every, axis=-1) - own
    real = ops.not_equal(targets, pad_id)
    zero = ops.zeros_like(losses)
    return ops.where(real, losses, zero), ops.where(real, hits, zero)


def of_real_words(losses_of, vectors, targets, pad_id=0):
    """Result of `losses_of(vectors, targets)`, without projecting padding.

    On JAX, whose shapes cannot depend on values, and on torch all rows go.
    vectors (N, U), targets (N,).
    """
    if backend.backend() != "tensorflow":
        return losses_of(vectors, targets)
    rows = ops.nonzero(ops.not_equal(targets, pad_id))[0]
    found = losses_of(
        ops.take(vectors, rows, axis=0), ops.take(targets, rows, axis=0)
    )
    shape = ops.shape(targets)
    return tuple(ops.scatter(rows[:, None], x, shape) for x in found)
