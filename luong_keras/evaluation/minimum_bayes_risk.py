"""The translation that the others agree with most."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence

from luong_keras.missing_package import needs

UTILITIES = ("chrf", "bleu")


def minimum_bayes_risk(texts: Sequence[str], utility: str = "chrf") -> int:
    """Chooses among translations of one sentence.

    Of samples from a model, the one with the largest mean utility, all being
    taken as references: the least expected loss (Kumar and Byrne 2004; on
    samples, Eikema and Aziz 2020). A model's most probable translation is
    often a poor one; what many samples are like seldom is.

    Args:
        texts: the translations, equal ones as often as they were drawn.
        utility: `"chrf"` or `"bleu"`, of sentences, by sacreBLEU.

    Returns:
        The place of the chosen one, the first of equals.

    Raises:
        ValueError: for an unknown utility, or where there is no text.

    Example:
        >>> minimum_bayes_risk(["ein Haus", "das Haus", "das Auto", "das Haus"])
        1
    """
    if not texts:
        raise ValueError("Expected: one text or more. Received: none.")
    measure = _measure(utility)
    counts = collections.Counter(texts)
    mean = {
        text: sum(
            count * measure(text, other) for other, count in counts.items()
        )
        for text in counts
    }
    return max(range(len(texts)), key=lambda place: mean[texts[place]])


def _measure(utility: str) -> Callable[[str, str], float]:
    if utility not in UTILITIES:
        raise ValueError(
            f"`utility` must be one of {', '.join(UTILITIES)}. Received: "
            f"utility={utility!r}."
        )
    with needs("sacrebleu"):
        import sacrebleu
    metric = (
        sacrebleu.CHRF()
        if utility == "chrf"
        else sacrebleu.BLEU(effective_order=True)
    )
    return lambda text, other: metric.sentence_score(text, [other]).score
