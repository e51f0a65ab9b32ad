"""Breaks the library, one formula at a time, and sees the golden tests fail.

    python tests/golden/mutations.py            # all
    python tests/golden/mutations.py sigma      # those whose name has "sigma"

Each mutation is made in a copy of the project. The last line says how many
were caught; the exit status is 1 if one was not.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
LAYER, UNIT, MODEL = "attention_layer", "lstm_unit", "model"
DECODE, TRAINING, LOCATION = "decode", "training", "location"


class Mutation(NamedTuple):
    """A mistake: `old` becomes `new`, and a golden test must see it."""

    name: str
    module: str
    old: str
    new: str
    test: str
    cases: str


MUTATIONS = [
    Mutation(
        "sigma = D instead of D / 2",
        "layers/local_attention.py",
        "return self.sigma or self.half_width / 2",
        "return self.sigma or self.half_width",
        LAYER,
        "float64-localp_dot_norm0_D2_b1",
    ),
    Mutation(
        "weights renormalised after the Gaussian",
        "windows.py",
        'if form == "renormalized" else weights',
        'if form != "inside_softmax" else weights',
        LAYER,
        "float64-localp_dot_norm0_D2_b1",
    ),
    Mutation(
        "the Gaussian after the softmax where it belongs inside",
        "windows.py",
        'if form == "inside_softmax":',
        'if form == "never":',
        LAYER,
        "float64-localp_dot_norm1_D2_b1",
    ),
    Mutation(
        "p_t rounded instead of floored",
        "windows.py",
        "ops.floor(ops.stop_gradient(aligned_position))",
        "ops.round(ops.stop_gradient(aligned_position))",
        LAYER,
        "float64-localp_general_norm0_D1",
    ),
    Mutation(
        "p_t = (S - 1) sigmoid(...)",
        "windows.py",
        "ops.cast(ops.expand_dims(lengths, -1), share.dtype) * share",
        "ops.cast(ops.expand_dims(lengths - 1, -1), share.dtype) * share",
        LAYER,
        "float64-localp_dot_norm0_D2_b1",
    ),
    Mutation(
        "positions counted from 1 in the Gaussian",
        "windows.py",
        "return positions - ops.expand_dims(aligned_position, -1)",
        "return positions + 1 - ops.expand_dims(aligned_position, -1)",
        LAYER,
        "float64-localp_dot_norm0_D2_b1",
    ),
    Mutation(
        "local-m not kept at the last word",
        "layers/local_attention.py",
        "clamp_position=True,",
        "clamp_position=False,",
        LAYER,
        "float64-localm_dot_D2_rev1_b1",
    ),
    Mutation(
        "the decoder step off by one in local-m",
        "windows.py",
        "return ops.minimum(step, ops.maximum(last, 0))",
        "return ops.minimum(step + 1, ops.maximum(last, 0))",
        LAYER,
        "float64-localm_dot_D2_rev1_b1",
    ),
    Mutation(
        "the window cut at the padded length",
        "layers/local_attention.py",
        "positions < lengths,",
        "positions >= 0,",
        LAYER,
        "float64-localm_dot_D2_rev1",
    ),
    Mutation(
        "W_a of the general score transposed",
        "layers/luong_attention.py",
        "return ops.matmul(value, self.attention_kernel)",
        "return ops.matmul(value, ops.transpose(self.attention_kernel))",
        LAYER,
        "float64-global_general_rev1_b1",
    ),
    Mutation(
        "[h; c] instead of [c; h]",
        "models/authors_weights.py",
        'parts["W_h"] = _transposed(cell.attentional_kernel)',
        'parts["W_h"] = _transposed(cell.attentional_kernel)\n'
        '        parts["W_h"].split = lambda a: [np.roll(a.T, len(a), 0)]',
        MODEL,
        "float64-global_dot_rev1_feed1",
    ),
    Mutation(
        "a masked softmax for the location score",
        "layers/luong_attention.py",
        "if self.mask_location:",
        "if True:",
        LOCATION,
        "float64",
    ),
    Mutation(
        "input and forget gate exchanged",
        "recurrence.py",
        "i, f, g, o = ops.split(pre_activations, 4, axis=-1)",
        "f, i, g, o = ops.split(pre_activations, 4, axis=-1)",
        UNIT,
        "float64",
    ),
    Mutation(
        "h made of the clipped cell",
        "recurrence.py",
        "return gates[-1] * squashed, clip_value(carry, cell_clip)",
        "c = clip_value(carry, 1.5)\n    return gates[-1] * ops.tanh(c), c",
        UNIT,
        "float64",
    ),
    Mutation(
        "gradients not clipped in the recurrence",
        "recurrence.py",
        "return bounded(upstream, limit)",
        "return upstream",
        UNIT,
        "float64",
    ),
    Mutation(
        "the clip of the cell stops its gradient",
        "recurrence.py",
        "return arguments[0] if upstream is None else upstream",
        "given = arguments[0] if upstream is None else upstream\n"
        "            return given * ops.cast(ops.abs(x) < limit, x.dtype)",
        UNIT,
        "float64",
    ),
    Mutation(
        "the memory left in the order of reading",
        "layers/encoder.py",
        "        if self.reverse:\n"
        "            x = reverse_within_mask(x, mask)\n"
        "        return (x, *states)",
        "        return (x, *states)",
        MODEL,
        "float64-global_dot_rev1_feed1",
    ),
    Mutation(
        "h instead of the attentional vector fed back",
        "layers/input_feeding_cell.py",
        'fed = _dropped(states[-1], masks.get("feeding"))',
        'fed = _dropped(states[-3], masks.get("feeding"))',
        MODEL,
        "float64-global_dot_rev1_feed1",
    ),
    Mutation(
        "the embeddings counted in the gradient's norm",
        "training/optimizers.py",
        'if count_embeddings or variable.name != "embeddings"',
        "if True",
        MODEL,
        "float64-noattn_rev1_feed0",
    ),
    Mutation(
        "the halving one epoch early",
        "training/schedules.py",
        "finetune_epoch * steps_per_epoch // period",
        "(finetune_epoch - 1) * steps_per_epoch // period",
        TRAINING,
        "lr_per_epoch",
    ),
    Mutation(
        "the rule by iteration one update late",
        "training/schedules.py",
        "halvings = step // period - (first - 1) // period",
        "halvings = (step - 1) // period - (first - 1) // period",
        TRAINING,
        "epochIter",
    ),
    Mutation(
        "a short batch divided by its own size",
        "training/losses.py",
        "return sentences * size / self.nominal_batch_size",
        "return sentences",
        TRAINING,
        "lr_per_epoch",
    ),
    Mutation(
        "batches from long to short",
        "data/epoch_order.py",
        'lines = lines[np.argsort(target_lengths, kind="stable")]',
        'lines = lines[np.argsort(target_lengths, kind="stable")[::-1]]',
        TRAINING,
        "lr_per_epoch",
    ),
    Mutation(
        "the end symbol takes a place in the beam",
        "decoding/beam_search.py",
        "ops.where(ends, _NEVER * 2, totals)",
        "totals",
        DECODE,
        "rand_noattn-beam3_stack100",
    ),
    Mutation(
        "a translation may be one word shorter",
        "decoding/beam_search.py",
        "long_enough = (t >= min_lengths)",
        "long_enough = (t + 1 >= min_lengths)",
        DECODE,
        "min10_max30",
    ),
    Mutation(
        "a full stack gives up its worst for a better one",
        "decoding/beam_search.py",
        "finishes = finishes & self._has_room(pool, finishes)",
        "pass",
        DECODE,
        "small_stack",
    ),
    Mutation(
        "ensembles average probabilities",
        "decoding/ensemble.py",
        'if average == "logits":',
        'if average == "never":',
        DECODE,
        "toy_ensemble-beam2_stack100",
    ),
    Mutation(
        "links of the step that produces a word",
        "evaluation/aer.py",
        "rows = np.minimum(rows + 1, len(weights) - 1)",
        "rows = rows + 0",
        DECODE,
        "toy_global-beam2_stack100",
    ),
]


def main() -> None:
    """Runs the mutations and prints which test caught each."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("only", nargs="?", default="", help="part of a name")
    wanted = [m for m in MUTATIONS if parser.parse_args().only in m.name]
    missed = 0
    for mutation in wanted:
        caught = is_caught(mutation)
        missed += not caught
        word = "caught by" if caught else "MISSED by"
        test = f"test_{mutation.test} [{mutation.cases}]"
        print(f"{mutation.name:56} {word} {test}", flush=True)
    print(f"{len(wanted) - missed} of {len(wanted)} mutations caught")
    sys.exit(bool(missed))


def is_caught(mutation: Mutation) -> bool:
    """Whether the golden test that passes now fails with the mistake."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("luong_keras", "tests"):
            shutil.copytree(
                ROOT / name,
                Path(folder, name),
                ignore=shutil.ignore_patterns("__pycache__"),
            )
        shutil.copy(ROOT / "pyproject.toml", folder)
        module = Path(folder, "luong_keras", mutation.module)
        text = module.read_text(encoding="utf-8")
        if text.count(mutation.old) != 1:
            sys.exit(
                f"{mutation.module} must have {mutation.old!r} once. Found: "
                f"{text.count(mutation.old)} times."
            )
        module.write_text(
            text.replace(mutation.old, mutation.new), encoding="utf-8"
        )
        status = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-x"),
                *("-p", "no:cacheprovider", "-k", mutation.cases),
                f"tests/golden/test_{mutation.test}.py",
            ],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": folder},
            capture_output=True,
            check=False,
        ).returncode
    if status not in (0, 1):
        sys.exit(f"pytest ended with {status} for {mutation.name!r}.")
    return status == 1


if __name__ == "__main__":
    main()
