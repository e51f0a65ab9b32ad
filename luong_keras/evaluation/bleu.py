"""BLEU of a corpus by sacreBLEU, with the signature that makes it mean."""

from collections.abc import Sequence
from typing import NamedTuple

#: One reference a sentence, or for every sentence a list of several.
References = Sequence[str] | Sequence[Sequence[str]]


class BleuScore(NamedTuple):
    """A BLEU score, 0 to 100, and sacreBLEU's signature.

    Two scores can be compared only if their signatures are equal.
    """

    score: float
    signature: str


def corpus_bleu(
    hypotheses: Sequence[str],
    references: References,
    tokenize: str = "13a",
    lowercase: bool = False,
) -> BleuScore:
    """Scores translations against one or several references each.

    Pass raw text: sacreBLEU does the tokenisation. Pass
    `tokenize="none"` only to compare with scores of tokenised text, as in
    older papers; the signature then says so.

    Args:
        hypotheses: translations, in the order of `references`.
        references: one a translation, or a list of several for each.
        tokenize: sacreBLEU's name of the tokenisation.
        lowercase: whether case is ignored.

    Returns:
        The score and its signature.

    Raises:
        ValueError: if there are no sentences, or not equally many.
        ImportError: if sacreBLEU is not installed.

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
    check_sentences(hypotheses, references)
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ImportError as error:
        raise ImportError(
            "BLEU needs sacrebleu, which is not installed. Install it with "
            "`pip install luong-keras[train]`."
        ) from error
    # `force` silences the warning about tokenised-looking text.
    metric = BLEU(tokenize=tokenize, lowercase=lowercase, force=True)
    result = metric.corpus_score(list(hypotheses), by_position(references))
    return BleuScore(result.score, str(metric.get_signature()))


def by_position(references: References) -> list[list[str]]:
    """Returns the first reference of every sentence, the second, and so on.

    Args:
        references: one a sentence, or a list of several for each.

    Raises:
        ValueError: if sentences have different numbers of references.

    Example:
        >>> by_position([["a", "b"], ["c", "d"]]), by_position(["a", "c"])
        ([['a', 'c'], ['b', 'd']], [['a', 'c']])
    """
    lists = [[r] if isinstance(r, str) else list(r) for r in references]
    if len({len(several) for several in lists}) > 1:
        counts = sorted({len(several) for several in lists})
        raise ValueError(
            "Every sentence must have the same number of references. "
            f"Received: {' and '.join(map(str, counts))}. Repeat one where "
            "there are fewer."
        )
    return [list(position) for position in zip(*lists, strict=True)]


def check_sentences(hypotheses: Sequence[str], references: References) -> None:
    """Checks that two lists of sentences can be compared.

    Args:
        hypotheses: translations.
        references: reference translations.

    Raises:
        ValueError: if either is a single string, if there are no sentences,
            or not equally many.

    Example:
        >>> check_sentences(["ein Test"], ["ein Test"])
    """
    for name, value in (("hypotheses", hypotheses), ("references", references)):
        if isinstance(value, str):
            raise ValueError(
                f"`{name}` must be a list of sentences. Received one string: "
                f"{value!r}. Put it into a list."
            )
    if len(hypotheses) != len(references):
        raise ValueError(
            "`hypotheses` and `references` must have equally many sentences. "
            f"Received: {len(hypotheses)} and {len(references)}. Check that "
            "no line was lost or split."
        )
    if not hypotheses:
        raise ValueError(
            "BLEU needs at least one sentence. Received: empty lists. Check "
            "the file that the sentences come from."
        )
