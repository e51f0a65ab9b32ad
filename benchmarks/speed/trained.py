"""Models of real text for all programs, trained once and kept in a folder.

Untrained models do not end their sentences. All models learn the same subwords
of Multi30k, English to German, for equally many epochs, so their translations
have similar lengths. Their quality is not compared.
"""

import json
import subprocess
import sys
from pathlib import Path

from speed import driver, marian_options
from speed.batches import LANGUAGES, write_multi30k
from speed.configurations import CONFIGURATIONS
from speed.joeynmt_config import run_config, subword_side

EPOCHS = 2
# Changes to the preset `small-fast`, to match the other programs.
SETTINGS = {
    "data.max_length": 80,
    "model.tied_embeddings": "false",
    "model.dropout": 0.0,
    "training.label_smoothing": 0.0,
    "training.samples": 0,
}


class Trained:
    """Models of one size, each trained at the first request for its path.

    Args:
        options: Options of the benchmark.
        configuration: Name of the size.
        epochs: Number of epochs of all programs.
    """

    def __init__(self, options, configuration, epochs):
        self.options, self.epochs = options, epochs
        self.size = CONFIGURATIONS[configuration]
        name = f"{configuration}-{epochs}-epochs"
        self.folder = (options.output / "trained" / name).resolve()
        self.text = self.folder / "text"

    def run(self):
        """Return the folder of our run."""
        folder = self.folder / "ours"
        size = self.size
        settings = SETTINGS | {
            "data.train": write_multi30k(self.text, "train"),
            "data.dev": write_multi30k(self.text, "val"),
            "data.test": write_multi30k(self.text, "test_2016_flickr"),
            "model.units": size.units,
            "model.embedding_size": size.units,
            "model.encoder_layers": size.layers,
            "model.decoder_layers": size.layers,
            "model.source_vocabulary_size": size.vocabulary_size,
            "model.target_vocabulary_size": size.vocabulary_size,
            "training.batch_size": size.batch_size,
            "training.epochs": self.epochs,
        }
        command = ["-m", "luong_keras", "train", "--preset", "small-fast"]
        command += ["--run-dir", str(folder), "--set"]
        command += [f"{name}={value}" for name, value in settings.items()]
        self._train("ours", command)
        return folder

    def shortlist(self):
        """Return the lexicon of our run, and the same lexicon for Marian."""
        from luong_keras.alignment.dictionary import read_entries

        ours = self.run() / "shortlist.txt"
        command = ["-m", "luong_keras", "lexicon", "--run-dir", str(self.run())]
        self._train("lexicon", command)
        marian = self.folder / "marian-shortlist.txt"
        with marian.open("w", encoding="utf-8") as file:
            file.writelines(marian_options.lexical_table(read_entries(ours)))
        return ours, marian

    def vocabulary(self):
        """Return the subwords of all programs, with the name for Marian."""
        path = self.folder / "vocabulary.spm"
        model = (self.run() / "source_vocabulary.model").read_bytes()
        if not path.exists() or path.read_bytes() != model:
            path.write_bytes(model)
        return path

    def marian(self):
        """Return the file of Marian's model."""
        model = self.folder / "marian.npz"
        text = self.training_text()
        more = ["--after-epochs", self.epochs, "--disp-freq", 50]
        more += ["--no-reload", "--overwrite", "--tempdir", self.folder]
        given = marian_options.training(
            self.size, text, self.vocabulary(), model, more
        )
        self._train("marian", ["-m", "pymarian", *given])
        return model

    def marian_int8(self):
        """Return the file of Marian's model with weights in 8 bits."""
        model, rounded = self.marian(), self.folder / "marian-int8.bin"
        command = ["-m", "pymarian", "convert", "--gemm-type", "intgemm8"]
        command += ["--from", str(model), "--to", str(rounded)]
        self._train("marian-int8", command, "marian")
        return rounded

    def joeynmt(self, **testing):
        """Return the file of Joey NMT's configuration, with search settings."""
        config = self._joeynmt_config()
        path = self.folder / "joeynmt.json"
        path.write_text(json.dumps(config, indent=2), encoding="utf-8")
        command = ["-m", "joeynmt", "train", str(path), "--skip-test"]
        self._train("joeynmt", command)
        path = self.folder / "joeynmt-search.json"
        config["testing"] = testing
        path.write_text(json.dumps(config, indent=2), encoding="utf-8")
        return path

    def path(self, name, count=None):
        """Return a file of Multi30k, or a file of its first lines."""
        part, language = name.rsplit(".", 1)
        source = Path(f"{write_multi30k(self.text, part)}.{language}")
        if count is None:
            return source
        lines = source.read_text(encoding="utf-8").splitlines()[:count]
        path = self.text / f"{part}-{count}.{language}"
        path.write_text("\n".join(lines), encoding="utf-8")
        return path

    def training_text(self):
        """Return both files of the training text."""
        return [self.path(f"train.{language}") for language in LANGUAGES]

    def _joeynmt_config(self):
        # Validation saves the model; here it uses few pairs.
        lines = self.path("train.en").read_text(encoding="utf-8").count("\n")
        updates = self.epochs * (lines // self.size.batch_size)
        for language in LANGUAGES:
            few = self.path(f"val.{language}", 10).read_text(encoding="utf-8")
            path = self.text / f"few.{language}"
            path.write_text(few + "\n", encoding="utf-8")
        return run_config(
            self.size,
            self.folder / "joeynmt",
            self.text / "train",
            self.text / "few",
            subword_side(self.vocabulary(), self.folder),
            {
                "updates": updates,
                "validation_freq": updates,
                "logging_freq": updates,
                "overwrite": True,
            },
        )

    def _train(self, name, command, python=None):
        """Run a program unless it has already finished."""
        done = self.folder / f"{name}.done"
        if done.exists():
            return
        program = driver.Program(name, "", python=name)
        python = self.options.pythons.get(python or name, sys.executable)
        log = self.folder / f"{name}.log"
        self.folder.mkdir(parents=True, exist_ok=True)
        print(f"training {name}, see {log}", file=sys.stderr, flush=True)
        with log.open("w", encoding="utf-8") as file:
            code = subprocess.run(
                [python, *command],
                stdout=file,
                stderr=subprocess.STDOUT,
                env=driver.environment(program, 0),
                check=False,
            ).returncode
        if code:
            lines = log.read_text(encoding="utf-8").strip().splitlines()
            raise driver.ProgramFailed(
                f"{name}: {lines[-1] if lines else 'no message'} (see {log})"
            )
        done.touch()
