"""The quality of the translations after each epoch."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras

from luong_keras.files.atomic_file import write_text


class TranslationValidation(keras.callbacks.Callback):
    """Translate the development set after each epoch and score it.

    The score joins the logs, where the history, TensorBoard, `BestWeights`
    and `JsonLinesLog` find it when they come later in the list.

    Args:
        translate: A function from source sentences to translations.
        sources: The source sentences.
        references: The translations to compare with, one a source.
        scorer: A function of (translations, references) that returns a number
            or an object with a `score`.
        name: The key in the logs.
        samples: How many sentences to print, evenly spread over the set.
        output_folder: Where to write all translations, as `epoch-001.txt`;
            `None` for nowhere.
        agree: A function from the score found here to the one that counts;
            of several processes that train together each has this one's.

    Raises:
        ValueError: If sources and references do not pair up.

    Example:
        >>> validation = TranslationValidation(
        ...     translate=lambda lines: [line.upper() for line in lines],
        ...     sources=["ein haus", "ein hund"],
        ...     references=["EIN HAUS", "A DOG"],
        ...     scorer=lambda ours, theirs: sum(map(str.__eq__, ours, theirs)),
        ...     samples=1,
        ... )
        >>> logs = {}
        >>> validation.on_epoch_end(0, logs)
        <BLANKLINE>
        val_bleu after epoch 1: 1.00
          source       ein haus
          reference    EIN HAUS
          translation  EIN HAUS
        >>> logs
        {'val_bleu': 1.0}
    """

    def __init__(
        self,
        translate: Callable[[list[str]], Sequence[str]],
        sources: Sequence[str],
        references: Sequence[str],
        scorer: Callable[[list[str], list[str]], Any],
        name: str = "val_bleu",
        samples: int = 3,
        output_folder: str | os.PathLike[str] | None = None,
        agree: Callable[[float], float] | None = None,
    ) -> None:
        super().__init__()
        if len(sources) != len(references) or not sources:
            raise ValueError(
                "`sources` and `references` must be of equal length and not "
                f"empty. Received: {len(sources)} sources, {len(references)} "
                "references."
            )
        self.translate = translate
        self.sources = list(sources)
        self.references = list(references)
        self.scorer = scorer
        self.name = name
        self.samples = samples
        self.agree = agree
        #: Those of the last epoch.
        self.translations: list[str] = []
        self.output_folder = (
            None if output_folder is None else Path(output_folder)
        )

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Translate, score, print."""
        translations = list(self.translate(self.sources))
        if len(translations) != len(self.sources):
            raise ValueError(
                "`translate` must return one translation a source. Received: "
                f"{len(translations)} for {len(self.sources)} sources."
            )
        self.translations = translations
        result = self.scorer(translations, self.references)
        score = float(getattr(result, "score", result))
        if self.agree is not None:
            score = self.agree(score)
        if logs is not None:
            logs[self.name] = score
        print(f"\n{self.name} after epoch {epoch + 1}: {score:.2f}")
        self._print_samples(translations)
        self._write(epoch, translations)

    def shown(self) -> list[int]:
        """The places of the sentences that are shown."""
        count = min(self.samples, len(self.sources))
        return [n * len(self.sources) // count for n in range(count)]

    def _print_samples(self, translations: list[str]) -> None:
        for index in self.shown():
            print(f"  source       {self.sources[index]}")
            print(f"  reference    {self.references[index]}")
            print(f"  translation  {translations[index]}", flush=True)

    def _write(self, epoch: int, translations: list[str]) -> None:
        if self.output_folder is None:
            return
        path = self.output_folder / f"epoch-{epoch + 1:03d}.txt"
        write_text(path, "".join(f"{line}\n" for line in translations))
