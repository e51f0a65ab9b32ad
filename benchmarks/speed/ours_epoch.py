"""Training of this library on text, like a run."""

import keras

from luong_keras.losses import TranslationLoss
from luong_keras.metrics import TokenAccuracy, TokenCount, TokenPerplexity
from luong_keras.optimizers import make_optimizer
from speed.batches import multi30k_pairs, training_batches
from speed.configurations import CONFIGURATIONS
from speed.ours_model import translation_model
from speed.paced import Paced
from speed.worker import Work


def epoch(configuration, folder, precision):
    """Return `fit` on the batches of Multi30k, epoch after epoch."""
    # First, because it sets the seed, which empties TensorFlow's tokenizers.
    model = translation_model(
        configuration, precision, "global", bidirectional=True
    ).training_model
    size = CONFIGURATIONS[configuration].batch_size
    batches, _ = training_batches(multi30k_pairs(), size, folder)
    model.compile(
        make_optimizer("adam", learning_rate=1e-3, clip_norm=1.0),
        loss={"word": TranslationLoss("word"), "hits": None},
        metrics={
            "word": [TokenPerplexity(), TokenCount(name="count")],
            "hits": [TokenAccuracy()],
        },
        jit_compile=False,
    )
    seen = [0, 0]  # target words of all epochs, and of this one

    def train(before_step):
        def note_words(batch, logs):
            words = int(logs["word_count"])
            # The metric restarts with every epoch.
            seen[:] = seen[0] + words - (seen[1] if batch else 0), words

        callback = keras.callbacks.LambdaCallback(
            on_train_batch_begin=lambda batch, logs: before_step(),
            on_train_batch_end=note_words,
        )
        steps = batches.steps_per_epoch
        model.fit(
            batches.dataset(0, 100 * steps).map(_inputs_and_targets),
            steps_per_epoch=steps,
            epochs=100,
            verbose=0,
            callbacks=[callback],
        )

    paced = Paced(train)

    def run(steps):
        before = seen[0]
        paced.run(steps)
        return {"words": seen[0] - before}

    return Work(run, model.count_params())


def _inputs_and_targets(batch):
    targets = batch["target_out"]
    return batch, {"word": targets, "hits": targets}
