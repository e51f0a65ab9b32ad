"""BLEU, chrF and TER of one system, and comparisons of two systems."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from luong_keras.config.checks import check_choice, check_integers
from luong_keras.missing_package import needs, private_name

#: One reference per sentence, or a list of several references per sentence.
References = Sequence[str] | Sequence[Sequence[str]]
METRICS = ("BLEU", "chrF", "TER")


class BleuScore(NamedTuple):
    """A BLEU score, 0 to 100, and its sacreBLEU signature.

    Two scores can be compared only if their signatures are equal.
    """

    score: float
    signature: str


class TranslationScore(NamedTuple):
    """A score of a corpus and its sacreBLEU signature."""

    metric: str
    score: float
    signature: str


class PairedScore(NamedTuple):
    """Scores of two systems on the same sentences.

    Attributes:
        metric: Name of the metric.
        first: Score of the first system.
        first_interval: Half width of its 95 % confidence interval.
        second: Score of the second system.
        second_interval: Half width of its 95 % confidence interval.
        p_value: Probability that random swaps of the translations of the two
            systems give a difference at least as large, of either sign.
        signature: SacreBLEU signature, with the seed, the number of samples
            of the intervals (`bs`) and the number of random swaps (`ar`).
    """

    metric: str
    first: float
    first_interval: float
    second: float
    second_interval: float
    p_value: float
    signature: str


def corpus_bleu(
    hypotheses: Sequence[str],
    references: References,
    tokenize: str = "13a",
    lowercase: bool = False,
) -> BleuScore:
    """Compute BLEU of translations with one or several references each.

    Pass raw text: sacreBLEU tokenises it. Pass `tokenize="none"` only to
    compare with scores of tokenised text, as in older papers; the signature
    then contains it.

    Args:
        hypotheses: Translations, in the order of `references`.
        references: One reference per translation, or a list of several.
        tokenize: Name of the tokenizer in sacreBLEU.
        lowercase: Whether case is ignored.

    Returns:
        The score and its signature.

    Raises:
        ValueError: If the lists are empty or of different lengths, or for an
            unknown metric or tokenizer.
        ImportError: If sacreBLEU is not installed.

    Example:
        >>> bleu = corpus_bleu(["Das ist ein Test."], ["Das ist ein Test."])
        >>> round(bleu.score, 1)
        100.0
        >>> bleu.signature.split("|version")[0]
        'nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp'
        >>> both = [["Dies ist ein Test.", "Das ist ein Test."]]
        >>> round(corpus_bleu(["Das ist ein Test."], both).score, 1)
        100.0
    """
    score = translation_score(
        hypotheses, references, "BLEU", lowercase, tokenize
    )
    return BleuScore(score.score, score.signature)


def translation_scores(
    hypotheses: Sequence[str],
    references: References,
    lowercase: bool = False,
    tokenize: str = "13a",
) -> list[TranslationScore]:
    """Compute BLEU, chrF and TER, each with its signature.

    Args:
        hypotheses: Detokenised translations.
        references: One reference per translation, or a list of several.
        lowercase: Whether BLEU and chrF ignore case; TER always does.
        tokenize: Name of the tokenizer of BLEU in sacreBLEU. With others than
            `"13a"`, `"intl"` and `"none"`, TER counts Chinese characters and
            punctuation as words.

    Raises:
        ValueError: If the lists are empty or of different lengths, or for an
            unknown metric or tokenizer.
        ImportError: If sacreBLEU is not installed.

    Example:
        >>> same = ["Das ist ein Test ."]
        >>> for score in translation_scores(same, same):
        ...     print(score.metric, round(score.score))
        BLEU 100
        chrF2 100
        TER 0
    """
    return [
        translation_score(hypotheses, references, metric, lowercase, tokenize)
        for metric in METRICS
    ]


def translation_score(
    hypotheses: Sequence[str],
    references: References,
    metric: str = "chrF",
    lowercase: bool = False,
    tokenize: str = "13a",
) -> TranslationScore:
    """Compute BLEU, chrF or TER.

    Args:
        hypotheses: Detokenised translations.
        references: One reference per translation, or a list of several.
        metric: `"BLEU"`, `"chrF"` or `"TER"`.
        lowercase: As in `translation_scores`.
        tokenize: As in `translation_scores`.

    Raises:
        ValueError: If the lists are empty or of different lengths, or for an
            unknown metric or tokenizer.
        ImportError: If sacreBLEU is not installed.

    Example:
        >>> translation_score(["ein Hund"], ["ein Hund"], "TER").score
        0.0
    """
    check_sentences(hypotheses, references)
    scorer = _make_metric(metric, lowercase, tokenize)
    result = scorer.corpus_score(list(hypotheses), by_position(references))
    signature = str(scorer.get_signature())
    return TranslationScore(result.name, result.score, signature)


def sentence_chrf(
    hypotheses: Sequence[str],
    references: Sequence[str],
    lowercase: bool = False,
) -> list[float]:
    """Compute the chrF of each sentence.

    For single sentences chrF is more informative than BLEU, which needs
    matches of four words in a row.

    Args:
        hypotheses: Translations.
        references: One reference per translation.
        lowercase: Whether to ignore case.

    Example:
        >>> [round(score) for score in sentence_chrf(["ja", "x"], ["ja", "y"])]
        [100, 0]
    """
    check_sentences(hypotheses, references)
    metric = _make_metric("chrF", lowercase)
    return [
        metric.sentence_score(hypothesis, [reference]).score
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]


def paired_test(
    first: Sequence[str],
    second: Sequence[str],
    references: References,
    lowercase: bool = False,
    samples: int = 1000,
    tokenize: str = "13a",
) -> list[PairedScore]:
    """Compare two systems by paired approximate randomisation (Riezler 2005).

    Under the hypothesis that the systems are equally good, their translations
    of a sentence can be swapped. The p value is two-sided; differences equal
    to the observed one count. The confidence intervals come from bootstrap
    resampling (Koehn, 2004).

    Args:
        first: Translations of the first system, the baseline.
        second: Translations of the second system.
        references: One reference per translation, or a list of several.
        lowercase: As in `translation_scores`.
        samples: Number of bootstrap samples, and number of random swaps. The
            draws are the same in every call; SACREBLEU_SEED selects others.
        tokenize: As in `translation_scores`.

    Raises:
        ValueError: If the lists are empty or of different lengths, for no
            samples, or for an unknown metric or tokenizer.
        ImportError: If sacreBLEU is not installed.

    Example:
        >>> words = ["a b c d", "e f g h", "i j k l"]
        >>> wrong = ["a b c d", "e f", "x y z"]
        >>> bleu, *_ = paired_test(wrong, words, words, samples=400)
        >>> round(bleu.second), bleu.first < 60
        (100, True)
        >>> round(bleu.p_value, 1)  # half of the swaps change nothing
        0.5
    """
    check_integers(samples=samples)
    check_sentences(first, references)
    check_sentences(second, references)
    with needs("sacrebleu"):
        from sacrebleu.significance import PairedTest
    metrics = {
        metric: _make_metric(metric, lowercase, tokenize) for metric in METRICS
    }
    test = PairedTest(
        [("first", list(first)), ("second", list(second))],
        metrics,
        by_position(references),
        test_type="bs",
        n_samples=samples,
    )
    signatures, scores = test()
    paired_scores = []
    for metric, (name, signature) in zip(
        metrics.values(), signatures.items(), strict=True
    ):
        # The other column of `scores` has the names of the systems.
        first_score, second_score = cast(list[Any], scores[name])
        seed = signature.info["seed"]
        random = np.random.default_rng(None if seed == "none" else int(seed))
        # sacreBLEU's randomisation counts no ties; its bootstrap is one-sided.
        p_value = _randomisation_p_value(
            metric,
            first,
            second,
            by_position(references),
            random.integers(2, size=(samples, len(references))),
        )
        paired_scores.append(
            PairedScore(
                name,
                float(first_score.score),
                float(first_score.ci),
                float(second_score.score),
                float(second_score.ci),
                p_value,
                f"{signature}|ar:{samples}",
            )
        )
    return paired_scores


def _randomisation_p_value(
    metric: Any,
    first: Sequence[str],
    second: Sequence[str],
    references: list[list[Any]],
    swapped: np.ndarray,
) -> float:
    """Compute the two-sided p value of paired approximate randomisation.

    `references` are those of `by_position`; `swapped`, (samples, N), is 1 where
    the two translations of a sentence are swapped.
    """
    extract = private_name(
        "sacrebleu.metrics.base.Metric._extract_corpus_statistics", metric
    )
    score = private_name(
        "sacrebleu.metrics.base.Metric._compute_score_from_stats", metric
    )
    # Sufficient statistics, (N, K), one row per sentence.
    ours, theirs = (
        np.array(extract(list(system), references), float)
        for system in (first, second)
    )
    moved = swapped @ (theirs - ours)
    first_totals = ours.sum(axis=0) + moved
    second_totals = theirs.sum(axis=0) - moved
    observed = abs(
        score(ours.sum(axis=0)).score - score(theirs.sum(axis=0)).score
    )
    exceeds = [
        abs(score(one).score - score(other).score) >= observed - 1e-9
        for one, other in zip(first_totals, second_totals, strict=True)
    ]
    return (sum(exceeds) + 1) / (len(exceeds) + 1)


def _make_metric(
    name: str, lowercase: bool = False, tokenize: str = "13a"
) -> Any:
    with needs("sacrebleu"):
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.chrf import CHRF
        from sacrebleu.metrics.ter import TER
    check_choice(METRICS, metric=name)
    check_choice(sorted(BLEU.TOKENIZERS), tokenize=tokenize)
    if name == "BLEU":
        # `force` silences the warning about text that looks tokenised.
        return BLEU(lowercase=lowercase, tokenize=tokenize, force=True)
    if name == "chrF":
        return CHRF(lowercase=lowercase)
    # TER then counts Chinese characters and punctuation as words.
    asian = tokenize not in ("13a", "intl", "none")
    return TER(normalized=asian, asian_support=asian)


def by_position(references: References) -> list[list[Any]]:
    """Return the first references of all sentences, the second, and so on.

    A blank one beside others is None: it would count as a translation without
    words.

    Args:
        references: One reference per sentence, or a list of several.

    Raises:
        ValueError: If sentences have different numbers of references, or
            none.

    Example:
        >>> by_position([["a", "b"], ["c", ""]]), by_position(["a", "c"])
        ([['a', 'c'], ['b', None]], [['a', 'c']])
    """
    lists: Any = [[r] if isinstance(r, str) else list(r) for r in references]
    counts = {len(alternatives) for alternatives in lists}
    if len(counts) > 1 or 0 in counts:
        raise ValueError(
            "Every sentence must have the same number of references, at least "
            "one. "
            f"Received: {' and '.join(map(str, sorted(counts)))}. Write '' "
            "where there are fewer."
        )
    for row in lists:
        if any(map(str.strip, row)):
            row[:] = [one if one.strip() else None for one in row]
    return [list(position) for position in zip(*lists, strict=True)]


def check_sentences(hypotheses: Sequence[str], references: References) -> None:
    """Check that two lists of sentences can be compared.

    Args:
        hypotheses: Translations.
        references: Reference translations.

    Raises:
        ValueError: If either is a single string or has a value that is no
            string, or if the lists are empty or of different lengths.
    """
    for name, value in (("hypotheses", hypotheses), ("references", references)):
        if isinstance(value, str):
            raise ValueError(
                f"`{name}` must be a list of sentences. Received one string: "
                f"{value!r}. Put it into a list."
            )
        for place, texts in enumerate(value):
            several = name == "references" and isinstance(texts, Iterable)
            if not isinstance(texts, str) and not (
                several and all(isinstance(text, str) for text in texts)
            ):
                raise ValueError(
                    f"`{name}` must be sentences, each a str. Received: "
                    f"{texts!r:.80} at place {place}. Correct it."
                )
    if len(hypotheses) != len(references):
        raise ValueError(
            "`hypotheses` and `references` must have equally many sentences. "
            f"Received: {len(hypotheses)} and {len(references)}. Check that "
            "no line was lost or split."
        )
    if len(hypotheses) == 0:  # a column of a data frame has no truth value
        raise ValueError(
            "A score needs at least one sentence. Received: empty lists."
        )
