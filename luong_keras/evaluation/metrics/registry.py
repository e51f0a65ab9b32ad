"""Metrics of a run and their registry; a new metric is an entry of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from luong_keras.config.checks import check_choice
from luong_keras.evaluation.metrics import bleu
from luong_keras.evaluation.metrics.bleu import Target
from luong_keras.evaluation.translation_scores import (
    References,
    by_position,
    check_sentences,
    corpus_bleu,
    translation_score,
)
from luong_keras.suggestions import did_you_mean

Score = Callable[[Sequence[str], Any], Any]


@dataclass(frozen=True)
class Metric:
    """A score of translations, and its better direction.

    Args:
        name: Name of the metric, `val_NAME` in the logs of an epoch.
        score: Function of (translations, references) that returns a number,
            or an object with a `score` and optionally a `signature`. None for
            a value that the validation computes anyway.
        mode: `"max"` or `"min"`, the better direction.
        title: Label on charts; the name when empty.
        variant: Distinguishes metrics of one name, such as a tokenizer.
        logged: Key of the value in the logs of an epoch, if `score` is None.

    Raises:
        ValueError: If `mode` is another word, or if the metric has neither
            `score` nor `logged`, or both.

    Example:
        >>> length = Metric("length", lambda ours, theirs: len(ours), "min")
        >>> length.key, length.setting, length.score(["a b"], ["a"])
        ('val_length', 'length', 1)
    """

    name: str
    score: Score | None = None
    mode: Literal["max", "min"] = "max"
    title: str = ""
    variant: str | None = None
    logged: str | None = None

    def __post_init__(self) -> None:
        check_choice(
            ("max", "min"), " It is the better direction.", mode=self.mode
        )
        if (self.score is None) == (self.logged is None):
            raise ValueError(
                "A metric has either `score`, a function of (translations, "
                "references), or `logged`, a key of the logs. Received: "
                f"score={self.score!r}, logged={self.logged!r}."
            )

    @property
    def key(self) -> str:
        """Key in the logs of an epoch."""
        return self.logged or f"val_{self.name}"

    @property
    def setting(self) -> str:
        """Value of `training.metric` that selects this metric."""
        return f"{self.name}:{self.variant}" if self.variant else self.name

    def scored(
        self, translations: Sequence[str], references: References
    ) -> dict[str, Any]:
        """Return the score in the form of a results file.

        Args:
            translations: Translations in the order of `references`.
            references: One reference per translation, or a list of several;
                a user-defined metric must handle such lists.

        Returns:
            `score` and, if the score has it, `signature`.
        """
        assert self.score is not None  # Logged metrics compare no texts.
        score: Any = self.score(translations, references)
        result: dict[str, Any] = {
            "score": float(getattr(score, "score", score))
        }
        signature = getattr(score, "signature", None)
        return result | ({"signature": signature} if signature else {})


def exact_match(
    translations: Sequence[str],
    references: References,
    lowercase: bool = False,
) -> float:
    """Return the percentage of translations that equal one of their references.

    Args:
        translations: Translations in the order of `references`.
        references: One reference per translation, or a list of several.
        lowercase: Whether case is ignored. Runs of white space always count
            as one space.

    Raises:
        ValueError: If the lists are empty or of different lengths.

    Example:
        >>> exact_match(["ran ", "Ran"], ["ran", "ran"])
        50.0
    """
    check_sentences(translations, references)

    def normalize(texts: Sequence[Any]) -> list[Any]:
        return [
            t and " ".join((t.lower() if lowercase else t).split())
            for t in texts
        ]

    positions = [normalize(texts) for texts in by_position(references)]
    rows = zip(normalize(translations), *positions, strict=True)
    matches = sum(
        translation in alternatives for translation, *alternatives in rows
    )
    return 100 * matches / len(references)


def _bleu(target: Target) -> Metric:
    """Create the BLEU metric; its variant is a tokenizer of sacreBLEU.

    Raises:
        ValueError: If sacreBLEU has no such tokenizer.
        ImportError: If the package of the tokenizer is missing.
        FileNotFoundError: If the model of the tokenizer is missing.
    """
    variant = target.variant
    if variant is None:
        variant, _ = bleu.tokenizer_of(target)
    else:
        bleu.tokenizer(variant)
    score = partial(corpus_bleu, tokenize=variant, lowercase=target.lowercase)
    return Metric("bleu", score, title="BLEU", variant=variant)


AUTO = "auto"
_FACTORIES: dict[str, Callable[[Target], Metric]] = {
    "bleu": _bleu,
    "chrf": lambda target: Metric(
        "chrf",
        partial(translation_score, metric="chrF", lowercase=target.lowercase),
        title="chrF",
    ),
    "ter": lambda target: Metric(
        "ter",
        partial(
            translation_score,
            metric="TER",
            tokenize=bleu.tokenizer_of(target)[0],
        ),
        "min",
        title="TER",
    ),
    "exact_match": lambda target: Metric(
        "exact_match",
        partial(exact_match, lowercase=target.lowercase),
        title="exact match",
    ),
    "token_accuracy": lambda target: Metric(
        "token_accuracy", title="token accuracy", logged="val_hits_accuracy"
    ),
    "loss": lambda target: Metric(
        "loss", mode="min", title="loss", logged="val_loss"
    ),
}


def register_metric(metric: Metric | Score, name: str | None = None) -> str:
    """Register a user-defined metric under its name.

    Args:
        metric: A `Metric`; or a function of (translations, references) that
            returns a number, the higher the better, or an object with a
            `score`.
        name: Name of a function as a metric; the function name by default.

    Returns:
        The value of `training.metric` that selects the metric.

    Raises:
        ValueError: For a name that is not an identifier, that a metric or
            another result of this library has, or that differs from the name
            of a `Metric`.
        TypeError: For an object that is neither a `Metric` nor callable.

    Example:
        >>> def first_word(translations, references):
        ...     pairs = zip(translations, references, strict=True)
        ...     return sum(a.split()[:1] == b.split()[:1] for a, b in pairs)
        >>> register_metric(first_word)
        'first_word'
    """
    if not isinstance(metric, Metric):
        if not callable(metric):
            raise TypeError(
                "Expected: a Metric, or a function of (translations, "
                f"references). Received: {metric!r}."
            )
        function_name: str = getattr(metric, "__name__", type(metric).__name__)
        metric = Metric(name or function_name, metric)
    elif name not in (None, metric.name):
        raise ValueError(
            "`name` is only for functions: a Metric has a name. Received: "
            f"name={name!r} and {metric.name!r}. Leave `name` out."
        )
    if not metric.name.isidentifier() or metric.name in _TAKEN:
        raise ValueError(
            "The name of a metric must be an identifier, and none of "
            f"{', '.join(_TAKEN)}. Received: {metric.name!r}. Pass another "
            "name: register_metric(function, 'my_metric')."
        )
    registered = metric
    _FACTORIES[metric.name] = lambda target: registered
    return metric.name


BUILT_IN = tuple(_FACTORIES)
_TAKEN = (
    *(AUTO, *BUILT_IN),
    # Other scores and facts in the results of a run.
    *("bleu_lowercase", "bleu_tokenized", "bleu_word_for_word"),
    *("bleu_by_length", "perplexity", "aer", "set", "sentences", "weights"),
    *("translations", "decoding", "baseline", "compared"),
    # Other values in its logs, there with `val_`.
    *("word_perplexity", "word_count", "hits_accuracy"),
)


def find_metric(setting: str, target: Target = Target()) -> Metric:  # noqa: B008
    """Return the metric that a setting names.

    Args:
        setting: A name, or a name and a variant such as `bleu:zh`. `auto`
            is BLEU here; `choose_metric` also considers the text.
        target: The target text of the run.

    Raises:
        ValueError: For an unknown name or variant.
        ImportError: If the package of the variant is missing.

    Example:
        >>> find_metric("ter").mode, find_metric("bleu:zh").key
        ('min', 'val_bleu')
    """
    name, colon, variant = setting.partition(":")
    name = "bleu" if name == AUTO else name
    if name not in _FACTORIES:
        raise ValueError(
            f"There is no metric {name!r}. Expected: training.metric as one "
            f"of {', '.join((AUTO, *_FACTORIES))}. Received: {setting!r}."
            f"{did_you_mean(name, _FACTORIES)} A user-defined metric exists "
            "only in a Python process that registers it, not in a command: "
            "call luong_keras.evaluation.register_metric, then Translator.fit "
            "with the text and the run_dir, which also continues a run."
        )
    metric = _FACTORIES[name](target._replace(variant=variant or None))
    if colon and not variant:
        raise ValueError(
            "Expected: a variant after the colon, as in 'bleu:zh'. Received: "
            f"{setting!r}."
        )
    if colon and metric.variant != variant:
        raise ValueError(
            f"The metric {name} has no variants. Received: {setting!r}."
        )
    return metric


def choose_metric(setting: str, target: Target) -> tuple[Metric, str]:
    """Choose the metric that selects the best epoch, with the reason.

    Args:
        setting: As in `find_metric`; `auto` is BLEU with the tokenizer of the
            target language. If most references have fewer than four tokens,
            BLEU is meaningless: `auto` is then exact match if most references
            are single words, and otherwise chrF.
        target: The target text of the run, with the validation references.

    Returns:
        The metric, and one line for the user.

    Example:
        >>> choose_metric("auto", Target(references=["ran", "saw"]))[0].name
        'exact_match'
    """
    name, _, variant = setting.partition(":")
    reason = "as training.metric says"
    if name in (AUTO, "bleu") and not variant:
        variant, reason = bleu.tokenizer_of(target)
        setting = f"bleu:{variant}"
    if name == AUTO:
        counts = bleu.token_counts(variant, target.references)
        short = sum(count < 4 for count in counts)
        if 2 * short > len(counts):
            single = 2 * sum(count < 2 for count in counts) > len(counts)
            setting = "exact_match" if single else "chrf"
            reason = (
                f"{short} of {len(counts)} references have fewer than four "
                f"tokens ({variant}), too few for BLEU"
            )
    metric = find_metric(setting, target)
    return metric, f"the best epoch is chosen by {metric.setting}: {reason}"
