"""Choice of the translation that the other translations agree with most."""

import collections
from collections.abc import Sequence

from luong_keras.config.checks import check_choice
from luong_keras.evaluation.metrics.bleu import tokenizer_of
from luong_keras.evaluation.metrics.metric import Target
from luong_keras.missing_package import needs

UTILITIES = ("chrf", "bleu")


def minimum_bayes_risk(texts: Sequence[str], utility: str = "chrf") -> int:
    """Choose the translation of one sentence with the least expected loss.

    It has the largest mean utility with all translations, such as samples
    from a model, as references (Kumar and Byrne 2004; for samples, Eikema and
    Aziz 2020). The most probable translation of a model is often poor; one
    that resembles many samples seldom is.

    Args:
        texts: The translations, each as often as it was drawn.
        utility: `"chrf"` or `"bleu"`, the sentence score of sacreBLEU; BLEU
            of text without spaces has a tokenizer for its script.

    Returns:
        The place of the chosen translation, the first of equal ones.

    Raises:
        ValueError: For an unknown utility, or without texts.

    Example:
        >>> minimum_bayes_risk(["ein Haus", "das Haus", "das Auto", "das Haus"])
        1
    """
    check_utility(utility)
    texts = list(texts)
    if not texts:
        raise ValueError("Expected: one text or more. Received: none.")
    import sacrebleu

    metric = (
        sacrebleu.CHRF()
        if utility == "chrf"
        else sacrebleu.BLEU(
            tokenize=tokenizer_of(Target(references=texts))[0],
            effective_order=True,
        )
    )
    counts = collections.Counter(texts)
    mean = {
        text: sum(
            count * metric.sentence_score(text, [other]).score
            for other, count in counts.items()
        )
        for text in counts
    }
    return max(range(len(texts)), key=lambda place: mean[texts[place]])


def check_utility(utility: str) -> None:
    """Check that a utility exists and that its package is installed.

    Args:
        utility: As in `minimum_bayes_risk`.

    Raises:
        ValueError: For an unknown utility.
        ImportError: If sacreBLEU is not installed.

    Example:
        >>> check_utility("chrf")
    """
    check_choice(UTILITIES, utility=utility)
    with needs("sacrebleu"):
        import sacrebleu  # noqa: F401
