"""Cross-entropy of target words, over the vocabulary or a sample of it.

The normaliser of the softmax (eq. 6) is a sum over V words. In
`sampled_word_losses` it is the target word plus an estimate of the rest from C
words, drawn anew for each batch, each divided by the probability that it is
drawn: importance sampling (Bengio and Senécal 2008), which Jean et al. (2015)
introduced for large vocabularies in translation. The words are the C largest of
log q_i + Gumbel noise: drawn without replacement, so none is projected twice.
With k the largest of the remaining values, word i exceeds k with probability

    pi_i = 1 - exp(-exp(log q_i - k))

and the expectation of the sum of exp(l_i) / pi_i over the drawn words is the
normaliser (Vieira 2017; Kool et al. 2019). The logarithm of the sum is too
small by about half of its relative variance. Jean et al. instead divide the
training text and project the words of one part, without a correction.
"""

from keras import backend, ops, random

from luong_keras.config.checks import check_fraction
from luong_keras.ops import masking
from luong_keras.ops.backends import take_last
from luong_keras.ops.masking import shapes_compatible
from luong_keras.ops.products import product
from luong_keras.special_tokens import PAD_ID

_NEVER = -1e30  # the logit of an excluded word


def word_losses(logits, targets, label_smoothing=0.0, pad_id=PAD_ID):
    """Return the losses and hits of target words, both (B, T), 0 at padding.

    These are `masked_cross_entropy` and `word_hits` of logits (B, T, V) and
    target ids (B, T).
    """
    return (
        masked_cross_entropy(logits, targets, label_smoothing, pad_id),
        word_hits(logits, targets, pad_id),
    )


def masked_cross_entropy(logits, targets, label_smoothing=0.0, pad_id=PAD_ID):
    """Return -log p(y_t | y_<t, x) of target words (eq. 4), 0 at padding.

    The log-softmax is taken in the wider of float32 and the dtype of the
    logits. With `label_smoothing` e the target distribution is 1 - e on the
    word plus e / V on every word (Szegedy et al. 2016, section 7).

    Args:
        logits: Unnormalised scores, (B, T, V).
        targets: Word ids, (B, T).
        label_smoothing: The mass e, at least 0 and less than 1.
        pad_id: The padding id, whose positions give zero.

    Returns:
        The losses, (B, T), in at least float32. A target outside the
        vocabulary has the loss NaN if the backend raises no error, as on JAX.

    Raises:
        ValueError: If `label_smoothing` is outside [0, 1).

    Example:
        >>> import numpy as np
        >>> logits = np.log([[[0.1, 0.2, 0.7], [0.5, 0.3, 0.2]]])
        >>> losses = masked_cross_entropy(logits, np.array([[2, 0]]))
        >>> [f"{p:.3f}" for p in np.exp(-np.array(losses))[0]]
        ['0.700', '1.000']
    """
    check_fraction(label_smoothing=label_smoothing)
    logits = masking.upcast(ops.convert_to_tensor(logits))
    targets = ops.cast(targets, "int32")
    words = real_ids(targets, pad_id)
    losses = ops.sparse_categorical_crossentropy(
        words, logits, from_logits=True
    )
    if label_smoothing:
        # (1 - e) loss + e (normaliser - mean), where the loss is
        # normaliser - logit of the target: no second normaliser is needed.
        surplus = _target_logits(logits, words) - ops.mean(logits, axis=-1)
        losses = losses + label_smoothing * surplus
    losses = nan_where_unknown(losses, words, logits.shape[-1])
    return _zero_padding(losses, targets, pad_id)


def word_hits(logits, targets, pad_id=PAD_ID):
    """Return 1.0 where no word is more probable than the target, (B, T).

    A word that ties with the most probable one is a hit. Padding gives 0.
    """
    logits = masking.upcast(ops.convert_to_tensor(logits))
    targets = ops.cast(targets, "int32")
    # A maximum is several times cheaper than an argmax.
    target_logits = _target_logits(logits, real_ids(targets, pad_id))
    # Keras refuses the maximum of no words without an initial value.
    hits = target_logits >= ops.max(logits, axis=-1, initial=_NEVER)
    return _zero_padding(ops.cast(hits, logits.dtype), targets, pad_id)


def word_weights(sample_weight, targets):
    """Return the weights of target words, (B, T) or (B, 1).

    Args:
        sample_weight: (B,) or (B, 1) weights of sentences, or (B, T) weights
            of words.
        targets: (B, T).

    Raises:
        ValueError: For a weight of another shape.
    """
    weights = ops.convert_to_tensor(sample_weight)
    weights_shape, (batch, steps) = tuple(weights.shape), tuple(targets.shape)
    expected = [(batch,), (batch, steps), (batch, 1)]
    if not any(shapes_compatible(weights_shape, shape) for shape in expected):
        raise ValueError(
            "`sample_weight` must have one weight per sentence, (B,), or one "
            f"per word, (B, T). Expected: {expected[0]} or {expected[1]}. "
            f"Received: sample_weight.shape={weights_shape}, with y_true.shape="
            f"{(batch, steps)}."
        )
    return ops.expand_dims(weights, -1) if len(weights_shape) == 1 else weights


def check_targets(targets, predicted, form, fix):
    """Check that targets are (B, T) and that predictions have `form`."""
    rank, shape = len(form), tuple(predicted.shape)
    if len(shape) != rank or not shapes_compatible(
        tuple(targets.shape), shape[:2]
    ):
        raise ValueError(
            f"`y_true` must be ids (B, T), and `y_pred` ({', '.join(form)}). "
            f"Received: y_true.shape={tuple(targets.shape)}, y_pred.shape="
            f"{shape}. {fix}"
        )


def real_ids(targets, pad_id):
    """Replace padding by 0, because its id may be outside the vocabulary."""
    return ops.where(ops.equal(targets, pad_id), 0, targets)


def nan_where_unknown(losses, targets, vocabulary_size):
    """Set the losses of ids outside the vocabulary to NaN.

    JAX reports no such index, and would read another logit.
    """
    is_known = ops.logical_and(targets >= 0, targets < vocabulary_size)
    # TensorFlow's `enable_check_numerics` refuses a constant NaN.
    return losses + 0.0 / ops.cast(is_known, losses.dtype)


def _target_logits(logits, targets):
    return take_last(logits, ops.expand_dims(targets, -1))[..., 0]


def _zero_padding(values, targets, pad_id):
    return ops.where(
        ops.not_equal(targets, pad_id), values, ops.zeros_like(values)
    )


def draw_words(vocabulary_size, count, seed):
    """Draw words of a vocabulary sorted by frequency, each at most once.

    q_i = log(1 + 1 / (i + 1)) / log(V + 1), approximately Zipf's law.

    Args:
        vocabulary_size: V.
        count: C, less than V.
        seed: A `keras.random.SeedGenerator`.

    Returns:
        ids (C,), and log pi (C,), the logarithms of their probabilities of
        being drawn.
    """
    ranks = ops.arange(vocabulary_size, dtype="float32")
    log_q = ops.log(ops.log1p(1 / (ranks + 1)))
    log_q = log_q - ops.log(ops.log(float(vocabulary_size + 1)))
    uniform = random.uniform((vocabulary_size,), minval=1e-30, seed=seed)
    keys, ids = ops.top_k(log_q - ops.log(-ops.log(uniform)), count + 1)
    ids = ids[:-1]
    rate = ops.exp(ops.take(log_q, ids) - keys[-1])
    return ids, ops.log(-ops.expm1(-rate))


def sampled_word_losses(
    vectors, sampled_words, log_pi, weights, target_weights, targets, pad_id=0
):
    """Return estimated losses and hits of words, (N,) each, 0 at padding.

    A word is a hit if no drawn word is more probable.

    Args:
        vectors: (N, U).
        sampled_words: Ids (C,), from `draw_words`.
        log_pi: Log pi (C,), from `draw_words`.
        weights: Kernel (U, C) and bias (C,) or None, of the drawn words.
        target_weights: Kernel (U, N) and bias (N,) or None, of the targets.
        targets: Ids (N,).
        pad_id: The id of padding.
    """
    targets = ops.cast(targets, "int32")
    kernel, bias = weights
    target_kernel, target_bias = target_weights
    logits = masking.upcast(product(vectors, kernel, bias))
    target_logits = ops.sum(
        masking.upcast(vectors) * masking.upcast(ops.transpose(target_kernel)),
        -1,
    )
    if target_bias is not None:
        target_logits = target_logits + ops.cast(
            target_bias, target_logits.dtype
        )
    is_target = ops.equal(
        targets[:, None], ops.cast(sampled_words, "int32")[None]
    )
    other_logits = ops.where(is_target, _NEVER, logits)
    # As in `word_hits`, there may be no words.
    highest = ops.max(other_logits, axis=-1, initial=_NEVER)
    hits = ops.cast(target_logits >= highest, target_logits.dtype)
    estimated = other_logits - ops.cast(log_pi, other_logits.dtype)
    all_logits = ops.concatenate([target_logits[:, None], estimated], axis=-1)
    losses = ops.logsumexp(all_logits, axis=-1) - target_logits
    return tuple(_zero_padding(x, targets, pad_id) for x in (losses, hits))


def without_padding(losses_of, vectors, targets, pad_id=0):
    """Return `losses_of(vectors, targets)` without projecting padding.

    JAX, whose shapes cannot depend on values, and torch project all rows.
    vectors (N, U), targets (N,).
    """
    if backend.backend() != "tensorflow":
        return losses_of(vectors, targets)
    rows = ops.nonzero(ops.not_equal(targets, pad_id))[0]
    results = losses_of(
        ops.take(vectors, rows, axis=0), ops.take(targets, rows, axis=0)
    )
    shape = ops.shape(targets)
    return tuple(ops.scatter(rows[:, None], x, shape) for x in results)
