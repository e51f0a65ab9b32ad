"""Error of the loss over a sample of the vocabulary.

    python benchmarks/sampled_softmax.py RUN --sampled 50 100 200 400

On a trained run's validation text, without dropout: the mean loss of a token
over the whole vocabulary, and the mean and the deviation over drawings of its
estimate from that many words; the ratio of the lengths of both gradients of the
output layer, and the cosine between them. To measure the saved time:

    python benchmarks/train_step.py --config paper --precision float32 \
        --programs ours ours-sampled
"""

import dataclasses
import os

from speed.command_line import make_parser

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def main() -> None:
    """Print a row for each number of words."""
    parser = make_parser(__doc__)
    parser.add_argument("run", help="folder of a trained run")
    parser.add_argument("--sampled", type=int, nargs="+", default=[100, 400])
    parser.add_argument("--drawings", type=int, default=50)
    parser.add_argument("--pairs", type=int, default=64)
    options = parser.parse_args()
    import numpy as np

    config, batch, weights = prepared(options)
    whole, gradient = losses_of(config, batch, weights, None)(1)
    (exact,) = whole
    print(
        f"{config.model.target_vocabulary_size} words of the target "
        f"vocabulary; the loss of a token is {exact:.4f}"
    )
    print("words | mean loss | bias | deviation | gradient's length | cosine")
    for count in options.sampled:
        found, estimate = losses_of(config, batch, weights, count)(
            options.drawings
        )
        cosine = np.vdot(estimate, gradient) / (
            np.linalg.norm(estimate) * np.linalg.norm(gradient)
        )
        length = np.linalg.norm(estimate) / np.linalg.norm(gradient)
        print(
            f"{count} | {np.mean(found):.4f} | "
            f"{np.mean(found) - exact:+.4f} | {np.std(found):.4f} | "
            f"{length:.3f} | {cosine:.4f}"
        )


def prepared(options):
    """Return the run's settings without dropout, a batch and the weights."""
    from luong_keras.data.evaluation_batches import EvaluationBatches
    from luong_keras.recipe.preparation import read_prepared_text
    from luong_keras.recipe.stored_settings import run_config
    from luong_keras.text.loading import load_tokenizer
    from luong_keras.tokenizers import preprocessors
    from luong_keras.training import RunFolder

    run = RunFolder(options.run)
    config = run_config(options.run, resolve_paths=False)
    model = dataclasses.replace(config.model, dropout=0.0)
    config = dataclasses.replace(config, model=model)
    pairs = read_prepared_text(run)[0].dev[: options.pairs]
    names = ("source_vocabulary", "target_vocabulary")
    source, target = (load_tokenizer(run.path, name) for name in names)
    prepare = [found or str for found in preprocessors(config.data)]
    batches = EvaluationBatches(
        [prepare[0](pair[0]) for pair in pairs],
        source,
        len(pairs),
        config.decoding.max_source_length,
        [prepare[1](pair[1]) for pair in pairs],
        target,
    )
    return config, next(iter(batches.dataset())), run.weights("best")


def losses_of(config, batch, weights, sampled):
    """Return a function from a number of drawings to losses and gradient."""
    import keras
    import tensorflow as tf

    from luong_keras import TranslationModel
    from luong_keras.training.weight_files import load_weights

    keras.utils.set_random_seed(1)
    made = TranslationModel(config.model, sampled_softmax=sampled)
    load_weights(made.model, weights)
    inputs = [batch[name] for name in ("source", "target_in", "target_out")]
    table = (
        made.projection.kernel
        if made.projection.embedding is None
        else made.projection.embedding.embeddings
    )
    words = tf.reduce_sum(tf.cast(inputs[-1] != 0, "float32"))

    @tf.function(autograph=False)
    def step():
        with tf.GradientTape() as tape:
            found = made.training_model(inputs, training=True)
            loss = tf.reduce_sum(found["word"]) / words
        return loss, tf.convert_to_tensor(tape.gradient(loss, table.value))

    def run(drawings):
        losses, total = [], 0.0
        for _ in range(drawings):
            loss, gradient = step()
            losses.append(float(loss))
            total = total + gradient.numpy()
        return losses, total / drawings

    return run


if __name__ == "__main__":
    main()
