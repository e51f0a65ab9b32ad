"""BLEU, chrF and TER of translations, alone and of two systems compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from luong_keras.evaluation.bleu import check_sentences
from luong_keras.missing_package import missing_package


class TranslationScore(NamedTuple):
    """A score of a corpus and sacreBLEU's signature."""

    metric: str
    score: float
    signature: str


class PairedScore(NamedTuple):
    """A score of two systems on the same sentences.

    Attributes:
        metric: its name.
        first: of the first system.
        first_interval: half of its 95 % confidence interval.
        second: of the second system.
        second_interval: half of its 95 % confidence interval.
        p_value: how often a difference as large would come of resampling
            two systems that are equally good.
        signature: sacreBLEU's, with the seed and the number of samples.
    """

    metric: str
    first: float
    first_interval: float
    second: float
    second_interval: float
    p_value: float
    signature: str


def translation_scores(
    hypotheses: Sequence[str],
    references: Sequence[str],
    lowercase: bool = False,
) -> list[TranslationScore]:
    """BLEU, chrF and TER, each with its signature.

    Args:
        hypotheses: detokenised translations.
        references: one a hypothesis.
        lowercase: whether BLEU and chrF ignore case; TER always does.

    Raises:
        ValueError: if there are no sentences, or not equally many.
        ImportError: if sacreBLEU is not installed.

    Example:
        >>> same = ["Das ist ein Test ."]
        >>> for score in translation_scores(same, same):
        ...     print(score.metric, round(score.score))
        BLEU 100
        chrF2 100
        TER 0
    """
    return [
        translation_score(hypotheses, references, metric, lowercase)
        for metric in _metrics(lowercase)
    ]


def translation_score(
    hypotheses: Sequence[str],
    references: Sequence[str],
    metric: str = "chrF",
    lowercase: bool = False,
) -> TranslationScore:
    """One of these scores.

    Args:
        hypotheses: detokenised translations.
        references: one a hypothesis.
        metric: `"BLEU"`, `"chrF"` or `"TER"`.
        lowercase: as in `translation_scores`.

    Raises:
        ValueError: if there are no sentences, or not equally many.
        ImportError: if sacreBLEU is not installed.

    Example:
        >>> translation_score(["ein Hund"], ["ein Hund"], "TER").score
        0.0
    """
    check_sentences(hypotheses, references)
    scorer = _metrics(lowercase)[metric]
    result = scorer.corpus_score(list(hypotheses), [list(references)])
    signature = str(scorer.get_signature())
    return TranslationScore(result.name, result.score, signature)


def sentence_chrf(
    hypotheses: Sequence[str], references: Sequence[str]
) -> list[float]:
    """The chrF of every sentence.

    Of one sentence alone it says more than BLEU, which wants four words in a
    row.

    Args:
        hypotheses: translations.
        references: one a hypothesis.

    Example:
        >>> [round(score) for score in sentence_chrf(["ja", "x"], ["ja", "y"])]
        [100, 0]
    """
    check_sentences(hypotheses, references)
    metric = _metrics(False)["chrF"]
    return [
        metric.sentence_score(ours, [theirs]).score
        for ours, theirs in zip(hypotheses, references, strict=True)
    ]


def paired_bootstrap(
    first: Sequence[str],
    second: Sequence[str],
    references: Sequence[str],
    lowercase: bool = False,
    samples: int = 1000,
) -> list[PairedScore]:
    """Compares two systems by paired bootstrap resampling (Koehn, 2004).

    Args:
        first: translations of the first system, the baseline.
        second: those of the second.
        references: one for each.
        lowercase: as in `translation_scores`.
        samples: how many times the sentences are drawn anew. The draws are
            the same every time, SACREBLEU_SEED chooses others.

    Raises:
        ValueError: if there are no sentences, or not equally many.
        ImportError: if sacreBLEU is not installed.

    Example:
        >>> words = ["a b c d", "e f g h", "i j k l"]
        >>> wrong = ["a b c d", "e f", "x y z"]
        >>> bleu, *_ = paired_bootstrap(wrong, words, words, samples=100)
        >>> round(bleu.second), bleu.first < 60
        (100, True)
    """
    check_sentences(first, references)
    check_sentences(second, references)
    from sacrebleu.significance import PairedTest

    test = PairedTest(
        [("first", list(first)), ("second", list(second))],
        _metrics(lowercase),
        [list(references)],
        test_type="bs",
        n_samples=samples,
    )
    signatures, scores = test()
    found = []
    for name, signature in signatures.items():
        # The first column has the names of the systems.
        one, other = cast(list[Any], scores[name])
        found.append(
            PairedScore(
                name,
                *(one.score, one.ci, other.score, other.ci, other.p_value),
                str(signature),
            )
        )
    return found


def _metrics(lowercase: bool) -> dict[str, Any]:
    try:
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.chrf import CHRF
        from sacrebleu.metrics.ter import TER
    except ImportError as error:
        raise missing_package("sacrebleu", error) from error
    return {
        # `force` silences the warning about tokenised-looking text.
        "BLEU": BLEU(lowercase=lowercase, force=True),
        "chrF": CHRF(lowercase=lowercase),
        "TER": TER(),
    }
