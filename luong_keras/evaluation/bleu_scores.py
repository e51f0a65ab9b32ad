"""The three BLEU figures that a translation system is compared by."""

from collections.abc import Callable, Sequence

from luong_keras.evaluation.bleu import BleuScore, corpus_bleu


def bleu_scores(
    hypotheses: Sequence[str],
    references: Sequence[str],
    tokenize: Callable[[str], str],
) -> dict[str, BleuScore]:
    """Cased, lower-cased and tokenised BLEU of the same translations.

    Luong et al. (2015), section 4, report BLEU of tokenised text and of
    detokenised text ("NIST"); the first is comparable to other systems only
    where the tokenisation is the same.

    Args:
        hypotheses: detokenised translations.
        references: detokenised references, one a hypothesis.
        tokenize: the tokenisation behind `bleu_tokenized`, applied to both.

    Returns:
        `bleu` (sacreBLEU's default, 13a, cased), `bleu_lowercase` (the same,
        lower-cased) and `bleu_tokenized` (of `tokenize`d text).

    Example:
        >>> scores = bleu_scores(["A b c d."], ["a b c d."], str)
        >>> round(scores["bleu"].score), round(scores["bleu_lowercase"].score)
        (67, 100)
    """
    return {
        "bleu": corpus_bleu(hypotheses, references),
        "bleu_lowercase": corpus_bleu(hypotheses, references, lowercase=True),
        "bleu_tokenized": corpus_bleu(
            [tokenize(line) for line in hypotheses],
            [tokenize(line) for line in references],
            tokenize="none",
        ),
    }
