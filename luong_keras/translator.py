"""A translator, from its training run to its export."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras

from luong_keras.config import DecodingConfig, Precision
from luong_keras.config.checks import check_choice
from luong_keras.config.effects import check_effects, check_learning_rate
from luong_keras.config.values import (
    convert_values,
    leaf_values,
    with_values,
)
from luong_keras.decoding.scorers import Scorer
from luong_keras.decoding.strategy import DecodingStrategy
from luong_keras.evaluation.metrics.registry import register_metric
from luong_keras.files.folder_lock import lock_folder
from luong_keras.files.path_checks import no_pattern
from luong_keras.inference.text_translator import TextTranslator
from luong_keras.presets import PRESETS
from luong_keras.progress import no_output
from luong_keras.recipe.fine_tuning import parent_files
from luong_keras.recipe.initial_settings import initial_settings
from luong_keras.recipe.loading import load_run
from luong_keras.recipe.stages import list_callbacks, run_recipe
from luong_keras.recipe.user_text import Text, text_settings
from luong_keras.serving.export import export_saved_model
from luong_keras.serving.limits import ServingLimits
from luong_keras.training.run_folder import RunFolder


class Translator(TextTranslator):
    """A trained model, or several, with tokenizers and a search.

    `translate`, `translate_lines`, `nbest`, `score` and `links` are inherited
    from `TextTranslator`. `fit` trains a translator on sentence pairs,
    `from_run` loads one from a run folder, and `export` writes it for a server.

    Args:
        translation_model: The trained `TranslationModel`, or several with the
            same vocabularies, an ensemble.
        source_tokenizer: The tokenizer of the source language.
        target_tokenizer: The tokenizer of the target language.
        decoding: The settings of the search.
        source_preprocessor, target_preprocessor: The preprocessors of the
            training text, as in `TextTranslator`.
        strategy: The decoding strategy, as in `TextTranslator`.
        scorers: Additional scorers, as in `TextTranslator`.
    """

    # The run whose settings an export keeps, for fine-tuning.
    _run: str | Path | None = None

    @classmethod
    def from_run(
        cls,
        run_folder: str | Path | Sequence[str | Path],
        weights: str | None = None,
        decoding: DecodingConfig | None = None,
        precision: Precision | None = None,
        strategy: DecodingStrategy | None = None,
        scorers: Sequence[Scorer] = (),
    ) -> Translator:
        """Load the translator of a training run.

        Args:
            run_folder: The folder of the run, or the folders of several runs
                with the same vocabularies, which form an ensemble.
            weights: `"best"`, `"last"` or an epoch such as `"epoch-7"` whose
                file the run has. When None, the weights that it scored and
                exported, `training.final_weights`.
            decoding: The search settings; those of the first run when None.
            precision: Precision of the computation, as
                `ModelConfig.precision`; that of the run when None.
                `"mixed_bfloat16"` translates batches faster if the processor
                multiplies bfloat16; scores have two or three digits, and
                occasionally a word differs. A greedy search of single
                sentences is slower, because each call rounds the weights.
                `"auto"` times a product in both and takes the faster.
            strategy: The decoding strategy, as in `TextTranslator`; an export
                has it too.
            scorers: Additional scorers, likewise.

        Raises:
            FileNotFoundError: If a run or its weights are missing.
            ValueError: If the vocabularies or the preprocessing of runs
                differ, or for an unknown name of weights.
        """
        parts = load_run(run_folder, weights, decoding, precision)
        translator = cls(*parts, strategy, scorers)
        if isinstance(run_folder, str | Path):
            run_folder = [run_folder]
        if len(run_folder) == 1:
            translator._run = run_folder[0]
        return translator

    @classmethod
    def fit(
        cls,
        pairs: Text,
        preset: str | None = None,
        *,
        run_dir: str | Path,
        validation: Text | None = None,
        test: Text | None = None,
        callbacks: keras.callbacks.Callback
        | Sequence[keras.callbacks.Callback]
        | None = None,
        train_only: bool = False,
        verbose: int | str = "auto",
        **settings: Any,
    ) -> Translator:
        """Train a translator on sentence pairs, in a run folder.

        The run is that of `luong-keras train`: it is scored on the test
        pairs and exported. The same call continues an interrupted run or,
        with more `epochs`, a finished one.

        Args:
            pairs: List or iterator of (source, target) strings; or records
                with named fields, a `pandas.DataFrame`, a
                `datasets.Dataset` or a `tf.data.Dataset`; or the path of a
                file of both sides, `.tsv`, `.csv`, `.jsonl` or `.tmx`; or the
                paths of a source and a target file; each plain or
                compressed (`.gz`, `.xz`, `.zst`, `.bz2`). Or a list of
                several of these, with `**{"data.weights": (3, 1)}` to read
                some more often. Columns are guessed, and the guess is
                printed, unless they are named by
                `**{"data.columns": ("english", "german")}`.
            preset: The initial settings, a name in `PRESETS`. When None, the
                settings of the run if it has begun; otherwise `tiny` for
                fewer than 10,000 pairs, else `small`.
            run_dir: The folder of the run.
            validation: The pairs that decide the best epoch, in the same
                forms. When None, 2 % of `pairs`, chosen by a hash of each
                pair, are held out: at most 1,000, at least 100, but no more
                than 10 %.
            test: The pairs to score; held out likewise when None.
            callbacks: Additional Keras callbacks, such as those of an
                experiment tracker (docs/watching.md). They see the logs of an
                epoch with the validation score (such as `val_bleu`), the
                learning rate and the speed. The state of a callback with
                `get_state` and `set_state` is saved with the run. Those that
                change the learning rate or end the training are settings
                here: `training.halving` and `training.patience`.
            train_only: Whether to omit the scores of the test pairs and the
                export, until a call without it.
            verbose: 0 prints nothing but warnings, and discards what other
                threads print; `"auto"`, 1 and 2 print the progress and the
                scores.
            **settings: Other settings: `epochs`, `batch_size`,
                `learning_rate`, `units` and the like by the names of the
                flags of `luong-keras train`, any other by its full name, as
                in `**{"model.attention.kind": "global"}`, or by its section,
                as in `model={"attention": {"kind": "global"}}`.
                `init_from="runs/base"` begins with the weights of that run
                or export (docs/fine_tuning.md). `metric` decides the best
                epoch: a name, a user-defined function of
                (translations, references) or a
                `luong_keras.evaluation.Metric`.

        Returns:
            The translator of the best epoch, or of the weights that
                `training.final_weights` names.

        Raises:
            ValueError: For wrong settings or text, if `run_dir` has a run
                with other settings or text, or if Keras' backend is not
                TensorFlow.
            FolderInUseError: If another process uses `run_dir`.
            InterruptedError: If a signal stopped the training.
            KeyboardInterrupt: If Ctrl-C stopped it; the run is saved as well.

        Example:
            >>> pairs = [("a cat", "eine Katze"), ("a dog", "ein Hund")]
            >>> Translator.fit(pairs, run_dir="runs/mine", epochs=3) \
            ...     # doctest: +SKIP
        """
        check_choice((None, *PRESETS), preset=preset)
        check_choice(("auto", 0, 1, 2), verbose=verbose)
        callbacks = list_callbacks(callbacks)
        # Combinations of settings are checked with the settings of the text.
        settings = {
            name: os.fspath(value) if isinstance(value, os.PathLike) else value
            for name, value in leaf_values(settings).items()
        }
        for name in ("metric", "training.metric"):
            if name in settings and not isinstance(settings[name], str):
                settings[name] = register_metric(settings[name])
        checked = convert_values(settings)
        run = RunFolder(no_pattern(run_dir))
        with contextlib.ExitStack() as stack:
            if not verbose:
                stack.enter_context(no_output())
            # Another call must not replace the pairs of this one.
            lock_pairs = functools.cache(
                lambda: stack.enter_context(
                    lock_folder(run.path, run.pairs.name)
                )
            )
            text = text_settings(
                run,
                pairs,
                validation,
                test,
                checked,
                before_writing=lock_pairs,
            )
            values = {**text, **settings}
            chosen, base = initial_settings(values, run, preset)
            config = with_values(base, values)
            if chosen is not None:  # The run has not begun.
                check_effects(config, checked)
                check_learning_rate(config, checked, base)
            if not run_recipe(
                config, run_dir, callbacks=callbacks, train_only=train_only
            ):
                raise InterruptedError(
                    f"The training in {run_dir} was stopped within an epoch, "
                    "by a signal or a callback. The same call continues from "
                    "there."
                )
            return cls.from_run(run_dir)

    def export(
        self,
        folder: str | Path,
        say: Callable[[str], None] | None = None,
        limits: ServingLimits | None = None,
    ) -> Path:
        """Write a SavedModel for TensorFlow Serving (`export_saved_model`).

        The export of a run can be the parent of another run
        (docs/fine_tuning.md).

        Args:
            folder: The folder to write; its name is the version, a number.
            say: Function called with one line per check, such as `print`.
            limits: The limits of one batch of the server.

        Returns:
            The folder.
        """
        files = None
        if self._run is not None:
            files = parent_files(self._run, self.translation_model)
        return export_saved_model(self, folder, say, limits, files)
