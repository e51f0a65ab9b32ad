"""Perplexity a word, from a summed negative log-likelihood."""

import math


def word_perplexity(negative_log_likelihood: float, words: int) -> float:
    """Computes the perplexity a word.

    Args:
        negative_log_likelihood: sum over all words of -log p, with the
            natural logarithm (in nats), the end symbols included.
        words: number of those words, the end symbols included.

    Returns:
        exp(negative_log_likelihood / words), infinite where that is too
        large for a float.

    Raises:
        ValueError: if `words` is not positive, or the sum is negative or
            not a number.

    Example:
        >>> round(word_perplexity(3 * math.log(8.0), 3), 6)
        8.0
    """
    if words <= 0:
        raise ValueError(
            f"`words` must be positive. Received: {words}. Count the target "
            "words, with one end symbol a sentence and without padding."
        )
    if not negative_log_likelihood >= 0:
        raise ValueError(
            "`negative_log_likelihood` must be a number of at least 0. "
            f"Received: {negative_log_likelihood}. Pass the sum of -log p, "
            "not of log p."
        )
    try:
        return math.exp(negative_log_likelihood / words)
    except OverflowError:
        return math.inf
