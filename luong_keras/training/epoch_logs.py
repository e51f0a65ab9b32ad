"""Callbacks that add to the logs of an epoch and write them to a file."""

import math
import os
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras

from luong_keras.files.atomic_file import (
    json_lines,
    read_json_lines,
    write_text,
)
from luong_keras.tables import format_score, sample_table


def find_result(
    logs: Mapping[str, Any], name: str, validation: bool = False
) -> Any:
    """Find a result, whose key may begin with the name of a model output.

    If several keys fit, the shortest is taken. The result of the validation
    has the key of the training result, with `val_` before it.

    Args:
        logs: The logs of a batch or an epoch.
        name: The name of the metric.
        validation: Whether to find the result of the validation.

    Returns:
        The value, or `None` if it is missing.

    Example:
        >>> logs = {"val_word_loss": 3.0, "word_loss": 2.0}
        >>> find_result(logs, "loss")
        2.0
        >>> find_result(logs, "loss", validation=True)
        3.0
    """
    for key in sorted(logs, key=len):
        if not key.startswith("val_") and f"_{key}".endswith(f"_{name}"):
            return logs.get(f"val_{key}" if validation else key)
    return None


class TokensPerSecond(keras.callbacks.Callback):
    """Callback that adds the target tokens per second to the logs of an epoch.

    A `TokenCount` metric counts the tokens, words or subwords. The time runs
    from the beginning of the epoch to the end of its last training batch: it
    includes compilation and snapshots, but not validation. The time is saved
    with the run, so an interrupted epoch has its full time.

    Args:
        count: The key of the token count in the logs. With several outputs
            Keras prefixes the name of the output; a key that ends in `_` and
            `count` is therefore found too.
        name: The key of the result.

    Example:
        >>> speed = TokensPerSecond()
        >>> speed.set_state({"seconds": 2.0})
        >>> speed.on_epoch_begin(0)
        >>> logs = {"losses_words": 100.0}
        >>> speed.on_epoch_end(0, logs)
        >>> logs["tokens_per_second"]
        50.0
    """

    def __init__(
        self, count: str = "words", name: str = "tokens_per_second"
    ) -> None:
        super().__init__()
        self.count = count
        self.name = name
        self._seconds_before = 0.0
        self._start = self._end = 0.0

    def on_epoch_begin(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Start the clock."""
        self._start = self._end = time.perf_counter()

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Read the clock, in the last batch when the device has ended it."""
        if logs and batch + 1 == (self.params or {}).get("steps"):
            float(find_result(logs, self.count) or 0)
        self._end = time.perf_counter()

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Add the speed to the logs."""
        seconds = self._seconds
        self._start, self._seconds_before = self._end, 0.0
        if logs is None or seconds <= 0:
            return
        count = find_result(logs, self.count)
        if count is None:
            raise ValueError(
                f"The logs of the epoch must hold {self.count!r}. Received: "
                f"{sorted(logs)}. Give a `TokenCount` metric to `compile`."
            )
        logs[self.name] = float(count) / seconds

    @property
    def _seconds(self) -> float:
        return self._seconds_before + self._end - self._start

    def get_state(self) -> dict[str, Any]:
        """Return the time of the unfinished epoch."""
        return {"seconds": self._seconds}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the time of the unfinished epoch."""
        self._seconds_before = state["seconds"]


class TranslationValidation(keras.callbacks.Callback):
    """Callback that translates and scores the validation set after each epoch.

    It adds the score to the logs for callbacks later in the list, such as the
    history, TensorBoard, `BestWeights` and `JsonLinesLog`.

    Args:
        translate: A function from source sentences to translations.
        sources: The source sentences.
        references: The reference translations, one per source.
        scorer: A function of (translations, references) that returns a number
            or an object with a `score`.
        name: The key in the logs.
        samples: The number of sentences to print, evenly spread over the set.
            Long ones are shortened.
        output_folder: The folder for all translations, as `epoch-001.txt`;
            `None` writes none.
        agree: A function from the score of this process to the score that all
            processes that train together use.

    Raises:
        ValueError: If the sources and references differ in number or are empty.

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
        self.output_folder = (
            None if output_folder is None else Path(output_folder)
        )

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Translate and score the set, and print samples."""
        translations = list(self.translate(self.sources))
        if len(translations) != len(self.sources):
            raise ValueError(
                "`translate` must return one translation a source. Received: "
                f"{len(translations)} for {len(self.sources)} sources."
            )
        result = self.scorer(translations, self.references)
        score = float(getattr(result, "score", result))
        if self.agree is not None:
            score = self.agree(score)
        if logs is not None:
            logs[self.name] = score
        print(f"\n{self.name} after epoch {epoch + 1}: {format_score(score)}")
        self._print_samples(translations)
        if self.output_folder is not None:
            path = self.output_folder / f"epoch-{epoch + 1:03d}.txt"
            write_text(path, "".join(f"{line}\n" for line in translations))

    def _print_samples(self, translations: list[str]) -> None:
        count = min(self.samples, len(self.sources))
        for number in range(count):
            index = number * len(self.sources) // count
            sample = sample_table(
                self.sources[index], self.references[index], translations[index]
            )
            print(textwrap.indent(sample, "  "), flush=True)


class JsonLinesLog(keras.callbacks.Callback):
    """Callback that writes the logs of each epoch as one line of JSON.

    An epoch that ran twice, because the run was killed between its end and
    the snapshot, has one line: the line of the second time.

    Args:
        path: The file; a resumed run appends to it.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "log.jsonl"
        >>> log = JsonLinesLog(path)
        >>> log.on_epoch_end(0, {"loss": 2.5})
        >>> log.on_epoch_end(1, {"loss": 2.0})
        >>> print(path.read_text(), end="")
        {"epoch": 1, "loss": 2.5}
        {"epoch": 2, "loss": 2.0}
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__()
        self.path = Path(path)

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Write the line of the epoch, counted from 1."""
        number = epoch + 1
        # JSON has no NaN and no infinity.
        values = {
            key: float(value) if math.isfinite(value) else None
            for key, value in (logs or {}).items()
        }
        lines = [past for past in self.read() if past["epoch"] < number]
        lines.append({"epoch": number, **values})
        write_text(self.path, json_lines(lines))

    def read(self) -> list[dict[str, Any]]:
        """Read the lines written so far.

        Returns:
            One dict per epoch; NaN and infinity are None. A truncated last
            line is left out.

        Raises:
            ValueError: If another line is damaged, with its number, or the
                file is a link.
        """
        return read_json_lines(
            self.path,
            "the results of an epoch",
            lambda line: (
                isinstance(line, dict) and isinstance(line.get("epoch"), int)
            ),
            appended=True,
        )
