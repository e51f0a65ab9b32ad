"""The metric that selects the best epoch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from luong_keras.config.checks import check_choice
from luong_keras.evaluation.translation_scores import References

if TYPE_CHECKING:
    from luong_keras.config import DataConfig

Score = Callable[[Sequence[str], Any], Any]


class Target(NamedTuple):
    """Properties of the target text that determine a metric.

    Attributes:
        language: Code of the target language, or None if it is unknown.
        lowercase: Whether the run ignores case.
        variant: The part of the setting after the colon, `zh` in `bleu:zh`.
        references: Reference translations; their script decides if the
            language does not.
        pretokenized: Whether the text is already tokenised.
    """

    language: str | None = None
    lowercase: bool = False
    variant: str | None = None
    references: Sequence[str] = ()
    pretokenized: bool = False


def target_of(data: DataConfig, references: References) -> Target:
    """Return the target text that settings and references describe.

    Args:
        data: The data settings of a run.
        references: One reference per sentence, or a list of several.
    """
    return Target(
        data.target_language,
        data.lowercase,
        references=[r if isinstance(r, str) else r[0] for r in references],
        pretokenized=data.pretokenized,
    )


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
