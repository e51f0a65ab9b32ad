import numpy as np
import pytest
from keras import ops

from luong_keras.interop import authors_weights
from luong_keras.training.optimizers import gradient_norm
from tests.golden.authors_models import authors_model, gradient_arrays, padded
from tests.golden.golden_files import cases
from tests.layer_checks import loss_and_gradients, to_numpy

FILE = "model.npz"
INPUTS = ("src", "src_len", "tgt", "tgt_len", "drop_mask", "drop_mask_feed")
PARAMETERS = "param/"


def is_input(name):
    return name in INPUTS or name.startswith(PARAMETERS)


class Case:
    """A model and a batch of the golden file."""

    def __init__(self, arrays, meta, precision):
        self.arrays, self.meta = arrays, meta
        weights = {
            name.removeprefix(PARAMETERS): array
            for name, array in arrays.items()
            if name.startswith(PARAMETERS)
        }
        self.model = authors_model(meta, weights, precision)
        self.source = padded(arrays["src_used"], meta["src_pad_id"])
        self.target_in = padded(arrays["dec_in"], meta["tgt_bos_id"])
        self.target_out = np.where(
            arrays["dec_mask"] > 0, arrays["dec_out"], meta["tgt_bos_id"]
        ).astype("int32")
        self.words = arrays["dec_mask"] > 0

    def dropout_masks(self):
        """Return the masks of encoder and decoder, equal at every step."""
        if "drop_mask" not in self.arrays:
            return {}, {}
        every = self.arrays["drop_mask"][None]
        layers = {
            f"layer_{i}": every for i in range(1, self.meta["num_layers"])
        }
        encoder = {"inputs": every, **layers}
        if not self.meta["feed_input"]:
            return encoder, dict(encoder)
        fed = self.arrays["drop_mask_feed"][None]
        units = every.shape[-1]
        lowest = {"inputs": fed[..., :units], "feeding": fed[..., units:]}
        return encoder, {**lowest, **layers}

    def encode(self):
        model, (masks, _) = self.model, self.dropout_masks()
        mask = self.source != self.meta["src_pad_id"]
        memory, *states = model.encoder(
            model.source_embedding(self.source), mask=mask, dropout_masks=masks
        )
        return memory, mask, states

    def word_losses(self):
        """Return the losses of all words, from the layers of training."""
        model = self.model
        memory, mask, states = self.encode()
        attended = {"memory": memory, "memory_mask": mask}
        if not self.meta["attn_func"]:
            attended = {}
        vectors = model.decoder(
            model.target_embedding(self.target_in),
            initial_state=states,
            start_position=0,
            dropout_masks=self.dropout_masks()[1],
            **attended,
        )
        return model.projection.word_losses(
            vectors, self.target_out, pad_id=self.meta["tgt_bos_id"]
        )[0]

    def steps(self):
        """Run the cell step by step: top hidden state, h̃, weights and p."""
        model, cell = self.model, self.model.decoder.cell
        memory, mask, states = self.encode()
        first = cell.get_initial_state(len(self.source))[-1]
        states = [*states, first]
        attended = {"memory": memory, "memory_mask": mask}
        if not self.meta["attn_func"]:
            attended = {}
        masks = {k: m[0] for k, m in self.dropout_masks()[1].items()}
        rows = []
        for t in range(self.target_in.shape[1]):
            vector, states, weights = cell(
                model.target_embedding(self.target_in[:, t]),
                states,
                position=t,
                dropout_masks=masks,
                return_attention_scores=True,
                **attended,
            )
            hidden = cell.top_hidden(states)
            rows.append((hidden, vector, weights, self._position(hidden)))
        return [
            None
            if each[0] is None
            else np.stack([to_numpy(x) for x in each], 1)
            for each in zip(*rows, strict=True)
        ]

    def _position(self, hidden):
        if self.meta["attn_func"] != 4:
            return None
        memory, mask, _ = self.encode()
        attention = self.model.decoder.cell.attention
        window = attention.window(ops.expand_dims(hidden, 1), memory, mask)
        return window.aligned_position[:, 0]


@pytest.mark.parametrize(
    "case",
    [pytest.param((FILE, name), id=name) for name in cases(FILE)],
    indirect=True,
)
@pytest.mark.parametrize(
    "precision",
    ["float64", pytest.param("float32", marks=pytest.mark.tensorflow)],
)
def test_model_matches_the_authors(case, precision, compare, float64):
    arrays, meta = case
    inputs = [name for name in arrays if is_input(name)]
    check = compare(arrays, inputs, single=precision == "float32")
    batch = Case(arrays, meta, precision)
    check_batch(check, batch)
    check_encoder(check, batch)
    check_steps(check, batch)
    losses, gradients = check_losses(check, batch)
    check_gradients(check, batch, gradients)
    if "drop_mask" not in arrays:
        # The functional training model has the same layers.
        found = batch.model.training_model(
            [batch.source, batch.target_in, batch.target_out]
        )
        exact = 1e-12 if precision == "float64" else 1e-5
        found = to_numpy(found["word"])
        np.testing.assert_allclose(found, losses, exact, exact)


def check_batch(check, batch):
    """Check truncation and the decoder's inputs and targets."""
    source, target = (
        truncated(batch.arrays[name], batch.meta, is_source)
        for name, is_source in (("src", True), ("tgt", False))
    )
    width = batch.arrays["src_used"].shape[1]
    check.check("src_used", as_rectangle(source, width))
    check.check("src_used_len", [len(row) for row in source])
    bos, eos = batch.meta["tgt_bos_id"], batch.meta["tgt_eos_id"]
    width = batch.arrays["dec_in"].shape[1]
    words = np.arange(width) <= np.array([[len(row)] for row in target])
    check.check("dec_mask", words)
    read = as_rectangle([[bos, *row] for row in target], width)
    check.check("dec_in", read, where=words)
    predicted = as_rectangle([[*row, eos] for row in target], width)
    check.check("dec_out", predicted, where=words)
    check.check("num_words", words.sum())


def truncated(rows, meta, is_source):
    from luong_keras.data.token_ids import TokenIds

    offsets = np.cumsum([0, *(rows >= 0).sum(1)])
    keep_end = is_source and bool(meta["is_reverse"])
    limit = meta["max_sent_len"] - 1
    ids = TokenIds(rows[rows >= 0], offsets).rows(
        np.arange(len(rows)), limit, keep_end
    )
    return [row.tolist() for row in ids]


def as_rectangle(rows, width):
    return np.array([[*row, *[-1] * (width - len(row))] for row in rows])


def check_encoder(check, batch):
    memory, mask, states = batch.encode()
    check.check("enc_top", to_numpy(memory), where=mask[..., None])
    check.check("enc_last_h", np.stack([to_numpy(h) for h in states[::2]]))
    check.check("enc_last_c", np.stack([to_numpy(c) for c in states[1::2]]))


def check_steps(check, batch):
    hidden, vectors, weights, positions = batch.steps()
    words = batch.words
    # After the end the authors' arrays are zero, and ours are meaningless.
    check.check("dec_top", hidden, where=words[..., None])
    check.check("h_tilde", vectors, where=words[..., None])
    if weights is not None:
        check.check("align", weights, where=words[..., None])
    if positions is not None:
        check.check("p", positions, where=words)


def check_losses(check, batch):
    variables = batch.model.training_model.trainable_variables
    losses = to_numpy(batch.word_losses())
    cost, gradients = loss_and_gradients(
        lambda: ops.sum(batch.word_losses()), variables
    )
    check.check("step_cost", losses.sum(0))
    check.check("cost", cost)
    return losses, gradients


def check_gradients(check, batch, gradients):
    arrays = gradient_arrays(batch.model, gradients, authors_weights)
    for name, gradient in arrays.items():
        check.check(f"grad/{name}", gradient, gradient=True)
    norm = gradient_norm(
        [gradient / len(batch.source) for gradient in gradients],
        batch.model.training_model.trainable_variables,
        count_embeddings=False,
    )
    check.check("grad_norm_dense", to_numpy(norm), gradient=True)
