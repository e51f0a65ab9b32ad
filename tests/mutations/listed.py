"""Mutation testing of the library: single mistakes that a test must catch.

    python -m tests.mutations.listed            # all mutations
    python -m tests.mutations.listed sigma      # names that contain "sigma"
    python -m tests.mutations.listed --jobs 2   # two at a time

Each mutation is made in a copy of the project. The last line has the number of
mutations caught; the exit status is 1 if a test missed one.
"""

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from tests.mutations.project_copy import PACKAGE, ROOT, run_tests

LAYER = ("tests/golden/test_attention_layer.py",)
LOCATION = ("tests/golden/test_location.py",)
UNIT = ("tests/golden/test_lstm_unit.py",)
MODEL = ("tests/golden/test_model.py",)
DEFERRED = ("tests/layers/rnn/test_deferred_gradients.py",)
SCAN = ("tests/ops/test_scan.py",)
TRAINING = ("tests/golden/test_training.py",)
DECODE = ("tests/golden/test_decode.py",)
FINISHED = ("tests/decoding/test_finished_sentences.py",)
NOTHING = ("tests/decoding/test_nothing_allowed.py",)
OWN_MODELS = ("tests/decoding/test_model_step.py",)
SHORTLIST = ("tests/inference/test_word_lists.py",)
WIRING = ("tests/wiring",)
PARTS = ("tests/models/test_training_model.py",)
DEVICES = ("tests/training/test_jax_devices.py",)
REFUSALS = ("tests/client/test_refusals.py",)
ACCESS = ("tests/client/test_access.py",)
STREAMS = ("tests/client/test_line_streams.py",)
COMPARISON = ("tests/reproduction/test_comparison.py",)
REPRODUCED = "../examples/reproduction/"
SAMPLED = ("tests/ops/test_cross_entropy.py",)
SYMMETRIZATION = ("tests/alignment/test_symmetrization.py",)


class Mutation(NamedTuple):
    """Mistake in a module, `new` instead of `old`, that a test must catch.

    `tests` are files or folders. If `cases` is set, only the tests that
    pytest's option `-k` selects by it are run, on `backend`.
    """

    name: str
    module: str
    old: str
    new: str
    tests: tuple[str, ...]
    cases: str = ""
    backend: str = "tensorflow"

    def apply(self, text: str) -> str:
        """Return the module's text with the mistake."""
        if text.count(self.old) != 1:
            raise ValueError(
                f"{self.module} must have {self.old!r} once. Received: a "
                f"text that has it {text.count(self.old)} times. Adjust the "
                f"mutation {self.name!r} to the code."
            )
        return text.replace(self.old, self.new)


MUTATIONS = [
    Mutation(
        "the gradient of a lower layer is not clipped",
        "layers/rnn/attention_cell.py",
        "below = clip_gradient(below, self.gradient_clip)",
        "below = clip_gradient(below, None)",
        ("tests/layers/rnn/test_input_feeding_cells.py",),
        "below_is_clipped",
    ),
    Mutation(
        "sigma = D instead of D / 2",
        "layers/attention/local_attention.py",
        "return self.sigma or self.half_width / 2",
        "return self.sigma or self.half_width",
        LAYER,
        "float64-localp_dot_norm0_D2_b1",
    ),
    Mutation(
        "weights renormalised after the Gaussian",
        "ops/windows.py",
        "weights = weights * ops.cast(window.gaussian, weights.dtype)",
        "weights = weights * ops.cast(window.gaussian, weights.dtype)\n"
        "        weights = weights / ops.sum(weights, axis=-1, keepdims=True)",
        LAYER,
        "float64-localp_dot_norm0_D2_b1",
    ),
    Mutation(
        "the Gaussian after the softmax where it belongs inside",
        "ops/windows.py",
        'if form == "inside_softmax":',
        'if form == "never":',
        LAYER,
        "float64-localp_dot_norm1_D2_b1",
    ),
    Mutation(
        "p_t rounded instead of floored",
        "ops/windows.py",
        "ops.floor(ops.stop_gradient(aligned_position))",
        "ops.round(ops.stop_gradient(aligned_position))",
        LAYER,
        "float64-localp_general_norm0_D1",
    ),
    Mutation(
        "p_t = (S - 1) sigmoid(...)",
        "ops/windows.py",
        "ops.cast(ops.expand_dims(lengths, -1), fraction.dtype) * fraction",
        "ops.cast(ops.expand_dims(lengths - 1, -1), fraction.dtype) * fraction",
        LAYER,
        "float64-localp_dot_norm0_D2_b1",
    ),
    Mutation(
        "positions counted from 1 in the Gaussian",
        "ops/windows.py",
        "distance = positions - ops.expand_dims(aligned_position, -1)",
        "distance = positions + 1 - ops.expand_dims(aligned_position, -1)",
        LAYER,
        "float64-localp_dot_norm0_D2_b1",
    ),
    Mutation(
        "local-m not kept at the last word",
        "layers/attention/local_attention.py",
        "clamp_position=True,",
        "clamp_position=False,",
        LAYER,
        "float64-localm_dot_D2_rev1_b1",
    ),
    Mutation(
        "the decoder step off by one in local-m",
        "ops/windows.py",
        "return ops.minimum(step, ops.maximum(last, 0))",
        "return ops.minimum(step + 1, ops.maximum(last, 0))",
        LAYER,
        "float64-localm_dot_D2_rev1_b1",
    ),
    Mutation(
        "the window cut at the padded length",
        "layers/attention/local_attention.py",
        "inside = ops.logical_and(inside, mask)",
        "inside = ops.logical_or(inside, inside)",
        LAYER,
        "float64-localm_dot_D2_rev1",
    ),
    Mutation(
        "W_a of the general score transposed",
        "layers/attention/scores.py",
        "ops.matmul(value, ops.cast(self.attention_kernel, value.dtype))",
        "ops.matmul(value, ops.transpose(self.attention_kernel))",
        LAYER,
        "float64-global_general_rev1_b1",
    ),
    Mutation(
        "[h; c] instead of [c; h]",
        "interop/authors_weights.py",
        'conversions["W_h"] = _transpose_conversion(cell.attentional_kernel)',
        'conversions["W_h"] = _transpose_conversion(cell.attentional_kernel)\n'
        '        conversions["W_h"].split = lambda a: '
        "[np.roll(a.T, len(a), 0)]",
        MODEL,
        "float64-global_dot_rev1_feed1",
    ),
    Mutation(
        "a masked softmax for the location score",
        "layers/attention/scores.py",
        "if mask_location:",
        "if True:",
        LOCATION,
        "float64",
    ),
    Mutation(
        "input and forget gate exchanged",
        "ops/recurrence.py",
        "i, f, g, o = ops.split(pre_activations, 4, axis=-1)",
        "f, i, g, o = ops.split(pre_activations, 4, axis=-1)",
        UNIT,
        "float64",
    ),
    Mutation(
        "h made of the clipped cell",
        "ops/recurrence.py",
        "return gates[-1] * squashed, clip_value(carry, cell_clip)",
        "c = clip_value(carry, 1.5)\n    return gates[-1] * ops.tanh(c), c",
        UNIT,
        "float64",
    ),
    Mutation(
        "gradients not clipped in the recurrence",
        "ops/recurrence.py",
        "lambda d: _clip(d, limit), x)",
        "lambda d: d, x)",
        UNIT,
        "float64",
    ),
    Mutation(
        "the clip of the cell stops its gradient",
        "ops/recurrence.py",
        "lambda x: _clip(x, limit), lambda d: d, x)",
        "lambda x: _clip(x, limit), "
        "lambda d: d * ops.cast(ops.abs(x) < limit, x.dtype), x)",
        UNIT,
        "float64",
    ),
    Mutation(
        "the memory left in the order of reading",
        "layers/encoder.py",
        "        if self.reverse:\n"
        "            x = reverse_within_mask(x, flipped_mask)\n"
        "        return (x, *states)",
        "        return (x, *states)",
        MODEL,
        "float64-global_dot_rev1_feed1",
    ),
    Mutation(
        "h instead of the attentional vector fed back",
        "layers/rnn/attention_cell.py",
        'fed_vector = _apply_mask(states[-1], masks.get("feeding"))',
        'fed_vector = _apply_mask(states[-3], masks.get("feeding"))',
        MODEL,
        "float64-global_dot_rev1_feed1",
    ),
    Mutation(
        "the embeddings counted in the gradient's norm",
        "training/optimizers.py",
        'and (count_embeddings or variable.name != "embeddings")',
        "",
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
        "if self.nominal_batch_size is not None:",
        "if False:",
        TRAINING,
        "lr_per_epoch",
    ),
    Mutation(
        "batches from long to short",
        "data/batch_order.py",
        "np.lexsort([key[lines] for key in reversed(keys)])",
        "np.lexsort([-key[lines] for key in reversed(keys)])",
        TRAINING,
        "lr_per_epoch",
    ),
    Mutation(
        "the end symbol takes a place in the beam",
        "decoding/beam.py",
        "ops.where(ends, NEVER * 2, candidates.totals)",
        "candidates.totals",
        DECODE,
        "rand_noattn-beam3_stack100",
    ),
    Mutation(
        "a translation may be one word shorter",
        "decoding/beam.py",
        "long_enough = (state.position >= state.min_lengths)",
        "long_enough = (state.position + 1 >= state.min_lengths)",
        DECODE,
        "min10_max30",
    ),
    Mutation(
        "a full stack gives up its worst for a better one",
        "decoding/beam.py",
        "finishes = finishes & (numbers <= column(self.stack_sizes))",
        "pass",
        DECODE,
        "small_stack",
    ),
    Mutation(
        "a sample that does not see its temperature",
        "decoding/sampling.py",
        "(gains - best) / ops.maximum(temperature, 1e-30)",
        "gains - best",
        ("tests/decoding/test_sampling.py",),
    ),
    Mutation(
        "the word that fills the nucleus is left out of it",
        "decoding/sampling.py",
        "before = ops.cumsum(weights, axis=-1) - weights",
        "before = ops.cumsum(weights, axis=-1)",
        ("tests/decoding/test_sampling.py",),
    ),
    Mutation(
        "samples score by what they were drawn from",
        "decoding/sampling.py",
        "gain = take_last(gains, words[..., None])[..., 0]",
        "gain = take_last(ops.log_softmax(allowed), words[..., None])[..., 0]",
        ("tests/decoding/test_sampling.py",),
    ),
    Mutation(
        "a translation that is cut has the length of its limit",
        "decoding/search.py",
        'ops.clip(max_lengths, 0, ops.cast(max_steps, "int32"))',
        "ops.maximum(max_lengths, 0)",
        ("tests/decoding/test_max_steps.py",),
    ),
    Mutation(
        "the score of a translation that nothing allows",
        "decoding/strategy.py",
        "(state.scores > NEVER / 2) & (ranks < counts)",
        "(ranks < counts)",
        NOTHING,
    ),
    Mutation(
        "a sample of forbidden words",
        "decoding/sampling.py",
        "is_possible = ops.max(allowed, axis=-1) > NEVER / 2",
        "is_possible = words >= 0",
        NOTHING,
    ),
    Mutation(
        "one temperature that is positive is enough",
        "decoding/argument_checks.py",
        "not test(values).all()",
        "not test(values).any()",
        ("tests/decoding/test_sampling.py",),
        "nonpositive",
    ),
    Mutation(
        "sizes above the size of the beam",
        "decoding/argument_checks.py",
        "(values >= minimum) & (values <= limit)",
        "(values >= minimum)",
        ("tests/decoding/test_wrong_numbers.py",),
    ),
    Mutation(
        "columns of another batch",
        "decoding/argument_checks.py",
        "if rows and rows != (1,) and not shapes_compatible(rows, (batch,)):",
        "if False:",
        ("tests/decoding/test_wrong_numbers.py",),
    ),
    Mutation(
        "inputs in the order of their names",
        "decoding/model_step.py",
        'named_inputs = getattr(decoder, "input", None)',
        "named_inputs = None",
        ("tests/decoding/test_wrong_decoders.py",),
        "by_name",
    ),
    Mutation(
        "constants repeated sentence by sentence in the wrong order",
        "decoding/model_step.py",
        "lambda x: ops.repeat(x, k, axis=0), self.constants",
        "lambda x: ops.concatenate([x] * k), self.constants",
        OWN_MODELS,
        "exhaustive",
    ),
    Mutation(
        "a decoder without a cache that reads only its last word",
        "decoding/model_step.py",
        "prefix_states = [decoder_ids]",
        "prefix_states = [prefix]",
        OWN_MODELS,
        "greedy and prefix",
    ),
    Mutation(
        "the logits of the first position of a prefix",
        "decoding/model_step.py",
        "step = position if self.reads_prefix else 0",
        "step = 0",
        OWN_MODELS,
        "greedy and prefix",
    ),
    Mutation(
        "probabilities as logits",
        "decoding/model_step.py",
        "logits = ops.log(masking.upcast(logits))",
        "logits = masking.upcast(logits)",
        OWN_MODELS,
        "exhaustive and functional",
    ),
    Mutation(
        "constants that stay when their sentence leaves the batch",
        "decoding/model_step.py",
        'per_sentence = ("constants",)',
        "per_sentence = ()",
        OWN_MODELS,
        "leave_the_batch and prefix",
    ),
    Mutation(
        "probabilities in the place of logits are not noticed",
        "decoding/model_step.py",
        "if are_probabilities == from_logits:",
        "if False:",
        ("tests/decoding/test_wrong_decoders.py",),
    ),
    Mutation(
        "an ensemble that divides by models without attention too",
        "decoding/ensemble.py",
        "_mean(weights) * self.scale if weights else None",
        "sum(weights) / len(results) * self.scale if weights else None",
        OWN_MODELS,
        "ensemble",
    ),
    Mutation(
        "coverage that padding lowers",
        "decoding/scorers.py",
        "if self.source_mask is not None:",
        "if False:",
        ("tests/decoding/test_scorers.py",),
    ),
    Mutation(
        "a search with coverage that does not wait",
        "decoding/scorers.py",
        "        # All words may still be attended; the penalty is then 0.\n"
        "        return scores",
        "        return scores - 1e9",
        ("tests/decoding/test_scorers.py",),
    ),
    Mutation(
        "an n-gram that is one word longer",
        "decoding/scorers.py",
        "(size[..., None] <= back)",
        "(size[..., None] < back)",
        ("tests/decoding/test_scorers.py",),
    ),
    Mutation(
        "a phrase that begins again from nothing",
        "decoding/constrained_beam.py",
        "is_begun = ops.any(is_here & self.borders[:, None], axis=-2)",
        "is_begun = is_here[..., 0, :] | ops.any(is_here & ops.eye("
        "ops.shape(self.words)[2], dtype='bool'), axis=-2)",
        ("tests/decoding/test_constrained_beam.py",),
    ),
    Mutation(
        "an end before all phrases are there",
        "decoding/constrained_beam.py",
        "is_complete = self._num_missing(candidates.more[0]) == 0",
        "is_complete = self._num_missing(candidates.more[0]) >= 0",
        ("tests/decoding/test_constrained_beam.py",),
    ),
    Mutation(
        "phrases that are begun too late",
        "decoding/constrained_beam.py",
        "self._num_missing(new_progress) <= ops.maximum(room, 0)",
        "self._num_missing(new_progress) <= ops.maximum(room, 0) + 9",
        ("tests/decoding/test_constrained_beam.py",),
    ),
    Mutation(
        "one bank for all hypotheses",
        "decoding/constrained_beam.py",
        "bank[:, :, None] == banks",
        "(bank[:, :, None] >= 0) & (banks == 0)",
        ("tests/decoding/test_constrained_beam.py",),
    ),
    Mutation(
        "samples that are the same for every seed",
        "inference/search_runner.py",
        "tf.cast(hashes, tf.int32) + tf.cast(seed, tf.int32) * 1_000_003",
        "tf.cast(hashes, tf.int32)",
        ("tests/inference/test_search_options.py",),
    ),
    Mutation(
        "ensembles average probabilities",
        "decoding/ensemble.py",
        'if self.average == "logits":',
        'if self.average == "never":',
        DECODE,
        "toy_ensemble-beam2_stack100",
    ),
    Mutation(
        "links of the step that produces a word",
        "alignment/aer.py",
        "rows = np.minimum(rows + 1, len(weights) - 1)",
        "rows = rows + 0",
        DECODE,
        "toy_global-beam2_stack100",
    ),
    Mutation(
        "a padded memory reversed with its padding",
        "layers/encoder.py",
        "[reverse_within_mask(outputs, flipped_mask), *last_states]",
        "[ops.flip(outputs, axis=1), *last_states]",
        ("tests/layers/test_padding.py",),
        "encoder",
    ),
    Mutation(
        "the target cut at its beginning as well",
        "data/batching.py",
        "self.pairs.target.rows(lines, self.max_length)",
        "self.pairs.target.rows(lines, self.max_length, keep_end)",
        ("tests/data/test_batching.py",),
    ),
    Mutation(
        "a snapshot that two processes may write",
        "training/fit.py",
        "if writes_snapshots:\n",
        "if False:\n",
        ("tests/training/test_fit.py",),
        "one_process",
    ),
    Mutation(
        "unknown words always of the step that writes them",
        "inference/word_lists.py",
        "copied_positions(ids, alignments, self.alignment_step)",
        "copied_positions(ids, alignments)",
        ("tests/inference/test_word_lists.py",),
    ),
    Mutation(
        "a first value of NaN is the best for ever",
        "training/monitoring.py",
        "better = not math.isnan(value)",
        "better = True",
        ("tests/training/test_callbacks.py",),
    ),
    Mutation(
        "kept weights removed",
        "training/weight_callbacks.py",
        "<= number - max(self.keep, 1)",
        "<= number - 1",
        ("tests/training/test_weights_of_runs.py",),
    ),
    Mutation(
        "a run that has ended trains on",
        "training/fit.py",
        "if position and position % steps == 0 and has_ended:",
        "if False:",
        ("tests/training/test_weights_of_runs.py",),
        "killed",
    ),
    Mutation(
        "a run ends within an epoch",
        "training/fit.py",
        "if position and position % steps == 0 and has_ended:",
        "if has_ended:",
        ("tests/training/test_weights_of_runs.py",),
        "patience",
    ),
    Mutation(
        "the best weights scored whatever is asked for",
        "recipe/loading.py",
        "config.training.final_weights if weights is None",
        '"best" if weights is None',
        ("tests/cli/test_commands.py",),
        "weights",
    ),
    Mutation(
        "snapshots missed between the batches of one step",
        "training/interruption.py",
        "due = position % self.every_steps < self.model.steps_per_execution",
        "due = position % self.every_steps == 0",
        ("tests/training/test_fit.py",),
        "snapshots_are_written",
    ),
    Mutation(
        "the clips of the encoder exchanged",
        "models/translation_model.py",
        "            cell_clip=config.cell_clip,\n"
        "            gradient_clip=config.gradient_clip,\n"
        "            kernel_initializer=self._make_initializer(None),",
        "            cell_clip=config.gradient_clip,\n"
        "            gradient_clip=config.cell_clip,\n"
        "            kernel_initializer=self._make_initializer(None),",
        ("tests/wiring/test_model_config.py",),
    ),
    Mutation(
        "the bias of the attentional vector not passed on",
        "models/translation_model.py",
        "            attentional_bias=config.attentional_bias,\n",
        "",
        ("tests/wiring/test_model_config.py",),
    ),
    Mutation(
        "an over-long target not told",
        "inference/translation_graph.py",
        "tokenized.truncated | target_tokens.truncated",
        "tokenized.truncated",
        ("tests/inference/test_translation_graph.py",),
    ),
    Mutation(
        "a row of zeros left where a translation was cut",
        "inference/translation.py",
        "    if not weights[length:].any():\n"
        "        weights = weights[:length]\n",
        "",
        ("tests/inference/test_translation.py",),
    ),
    Mutation(
        "no room for the end after a whole translation as prefix",
        "inference/search_runner.py",
        'symbols = request["prefix"].lengths + 1',
        'symbols = request["prefix"].lengths',
        ("tests/inference/test_translation_graph.py",),
    ),
    Mutation(
        "capitals count in BLEU by length",
        "evaluation/length_analysis.py",
        "        lowercase=data.lowercase,\n",
        "",
        ("tests/recipe/test_evaluation_figures.py",),
    ),
    Mutation(
        "BLEU by length splits tokenised text again",
        "evaluation/length_analysis.py",
        "        tokenize=tokenizer_of(target_of(data, references))[0],\n",
        "",
        ("tests/recipe/test_evaluation_figures.py",),
    ),
    Mutation(
        "only the first of several references counts in exact match",
        "evaluation/metrics/registry.py",
        "translation in alternatives for",
        "translation == alternatives[0] for",
        ("tests/cli/test_commands.py",),
    ),
    Mutation(
        "a baseline and the system change places",
        "cli/evaluate.py",
        "        baseline_lines,\n        translations,\n",
        "        translations,\n        baseline_lines,\n",
        ("tests/cli/test_commands.py",),
    ),
    Mutation(
        "a baseline run keeps its own search",
        "cli/evaluate.py",
        "Translator.from_run(folder, weights, decoding)",
        "Translator.from_run(folder, weights, weights and decoding)",
        ("tests/cli/test_commands.py",),
        "search_of_the_command",
    ),
    Mutation(
        "a fine-tuned run takes the settings of subwords of a preset",
        "recipe/fine_tuning.py",
        'name.startswith("data.sentencepiece.")',
        'name.startswith("data.sentencepiece.n.")',
        ("tests/recipe/test_fine_tuning.py",),
        "subwords_of_a_preset",
    ),
    Mutation(
        "the text of a run folder may be a link",
        "data/corpus.py",
        'return no_link(folder / f"{side}.txt")',
        'return folder / f"{side}.txt"',
        ("tests/data/test_corpus.py",),
    ),
    Mutation(
        "a copied <s> is left out of a translation",
        "text/sentencepiece_tokenizer.py",
        'b"<" + _CUT + rb"\\1"',
        'rb"<\\1"',
        ("tests/text/test_tokenizers.py",),
    ),
    Mutation(
        "SentencePiece replaces an error of the lines",
        "text/sentencepiece_tokenizer.py",
        "if failures:",
        "if False:",
        ("tests/text/test_tokenizers.py",),
    ),
    Mutation(
        "a translation keeps a line end",
        "text/sentencepiece_tokenizer.py",
        'r"[\\n\\r]", " "',
        'r"[\\n]", " "',
        ("tests/text/test_tokenizers.py",),
    ),
    Mutation(
        "the nearest number of subwords is learnt with other settings",
        "recipe/vocabularies.py",
        "error.nearest, **options",
        "error.nearest",
        ("tests/wiring/test_run_config.py",),
    ),
    Mutation(
        "the fingerprint of the batches without their kind",
        "data/batching.py",
        '            "batching": self.batching,\n',
        "",
        WIRING,
    ),
    Mutation(
        "a source begins anew in every epoch",
        "data/batch_order.py",
        "epoch * self.shares[source] + shuffled",
        "shuffled",
        ("tests/data/test_mixture.py",),
    ),
    Mutation(
        "every pass of a source in the same order",
        "data/batch_order.py",
        "[np.full_like(passes, self.seed), passes], -1)",
        "[np.full_like(passes, self.seed), 0 * passes], -1)",
        ("tests/data/test_mixture.py",),
    ),
    Mutation(
        "codes of a memory are text",
        "data/sources/tmx.py",
        'tag.rpartition("}")[2] not in _CODES',
        "True",
        ("tests/data/test_sources.py",),
        "same_text",
    ),
    Mutation(
        "entities of a memory are read",
        "data/sources/tmx.py",
        "                _refuse_entities(unit, path)\n",
        "",
        ("tests/data/test_sources.py",),
        "entities",
    ),
    Mutation(
        "a header that is a pair",
        "data/sources/delimited.py",
        "in itertools.islice(records, skipped, None)",
        "in itertools.islice(records, 0, None)",
        ("tests/data/test_sources.py",),
    ),
    Mutation(
        "a word table that reads the given file",
        "text/word_tokenizer.py",
        "table_asset(name, self._bytes)",
        "tf.saved_model.Asset(str(vocabulary_file))",
        ("tests/text/test_vocabulary.py",),
        "reads_its_file",
    ),
    Mutation(
        "a corpus that removes other files of its folder",
        "data/corpus_writer.py",
        'folder.glob(f"{side}.{name}")',
        'folder.glob(f"{side}.*")',
        ("tests/data/test_corpus_writing.py",),
        "other_files",
    ),
    Mutation(
        "disk errors of other files explained",
        "files/atomic_file.py",
        "if reason is None or not is_here:",
        "if reason is None:",
        ("tests/files/test_atomic_file.py",),
        "elsewhere",
    ),
    Mutation(
        "texts and labels taken for pairs",
        "data/sources/records.py",
        "{spec.shape.rank if _is_text(spec) else None for spec in specs}",
        "{spec.shape.rank for spec in specs}",
        ("tests/data/test_sources.py",),
        "labels",
    ),
    Mutation(
        "Ctrl-C ends the processes that prepare text",
        "data/corpus_writer.py",
        "signal.SIG_IGN",
        "signal.SIG_DFL",
        ("tests/data/test_corpus_writing.py",),
    ),
    Mutation(
        "duplicates are kept",
        "data/corpus_writer.py",
        "if result[2] in seen_hashes:",
        "if not seen_hashes:",
        ("tests/data/test_corpus_writing.py",),
    ),
    Mutation(
        "held out whatever is filtered",
        "data/datasets.py",
        "checked_chunks(pairs, preprocess, filters, processes)",
        "checked_chunks(pairs, preprocess, FilterConfig(), processes)",
        ("tests/data/test_datasets.py",),
    ),
    Mutation(
        "ids of another vocabulary",
        "data/token_ids.py",
        "\\n{side}\\n{tokenizer.fingerprint}",
        "\\n{side}",
        ("tests/data/test_batching.py",),
    ),
    Mutation(
        "the same pairs in a pool whatever the seed",
        "data/batching.py",
        "np.arange(start, stop), count, (self.seed, epoch)",
        "np.arange(start, stop), count, (1, epoch)",
        ("tests/data/test_batching.py",),
        "epochs_and_seeds",
    ),
    Mutation(
        "the same order of batches in every epoch",
        "data/batching.py",
        "epoch * self.pools_per_epoch + pool)",
        "pool)",
        WIRING,
    ),
    Mutation(
        "an optimizer that forgets whether embeddings count",
        "training/optimizers.py",
        '            "count_embeddings": self.count_embeddings,\n',
        "",
        WIRING,
    ),
    Mutation(
        "Adam with the epsilon of Keras",
        "training/optimizers.py",
        '(ClippedAdam, {"epsilon": 1e-9})',
        "(ClippedAdam, {})",
        WIRING,
    ),
    Mutation(
        "the encoder's dropout without its seed",
        "layers/encoder.py",
        "keras.random.SeedGenerator(seed)",
        "keras.random.SeedGenerator()",
        WIRING,
    ),
    Mutation(
        "the clips of the authors' preset exchanged",
        "presets.py",
        "        cell_clip=50.0,\n        gradient_clip=1000.0,\n",
        "        cell_clip=1000.0,\n        gradient_clip=50.0,\n",
        ("tests/wiring/test_presets.py",),
    ),
    Mutation(
        "the authors' preset without its step of alignment",
        "presets.py",
        '        alignment_step="reads",\n',
        "",
        ("tests/wiring/test_presets.py",),
    ),
    Mutation(
        "a beam of 12",
        "config/decoding.py",
        "    beam_size: Count = 10 ",
        "    beam_size: Count = 12 ",
        ("tests/wiring/test_presets.py",),
    ),
    Mutation(
        "an entity in the text turned into its character",
        "text/preprocessing.py",
        "text.split(), return_str=True, unescape=False",
        "text.split(), return_str=True",
        ("tests/text/test_preprocessing.py",),
    ),
    Mutation(
        "one temporary name for all processes",
        "files/atomic_file.py",
        "path.with_name(partial_name(path.name))",
        'path.with_name(f"{_PREFIX}{path.name}")',
        ("tests/files",),
    ),
    Mutation(
        "the last bad step named instead of the first",
        "training/optimizers.py",
        "ops.cast(self.nonfinite_steps == 0, is_bad.dtype)",
        "1",
        ("tests/training/test_nonfinite.py",),
    ),
    Mutation(
        "an optimizer that gets a row for each occurrence of a word",
        "training/optimizers.py",
        "[sum_equal_rows(g) if _is_sparse(g) else g for g in grads]",
        "list(grads)",
        ("tests/training/test_optimizers.py",),
        "one_hot",
    ),
    Mutation(
        "rows of padding counted as sentences",
        "training/losses.py",
        "counted = ops.any(counted, axis=-1)",
        "counted = ops.ones_like(counted[:, 0])",
        ("tests/training/test_losses.py",),
    ),
    Mutation(
        "no snapshot before this one",
        "training/snapshot_file.py",
        "atomic_path(path, _keep_previous(Path(path)), size)",
        "atomic_path(path)",
        ("tests/training/test_snapshot.py",),
    ),
    Mutation(
        "the parts of a batch are not divided by its words",
        "models/microbatches.py",
        "factor = 1 / tf.maximum(_sum_in_order(numbers), 1)",
        "factor = 1 / tf.maximum(numbers[0], 1)",
        PARTS,
        "step_of_the_whole",
    ),
    Mutation(
        "sparse gradients of the first part alone",
        "models/microbatches.py",
        "tf.concat([gradient.values, addend.values], 0)",
        "tf.concat([gradient.values, gradient.values], 0)",
        PARTS,
        "step_of_the_whole",
    ),
    Mutation(
        "a row without a word is a sentence",
        "training/losses.py",
        "counted = ops.any(counted, axis=-1)",
        "counted = ops.ones_like(counted[:, 0])",
        PARTS,
        "is_a_sum",
    ),
    Mutation(
        "the gradients of the devices are not added up",
        "models/microbatches.py",
        "sums, gradients = jax.lax.psum((sums, gradients), axis)",
        "sums = jax.lax.psum(sums, axis)",
        DEVICES,
        "micro_batches_train_as_one",
        "jax",
    ),
    Mutation(
        "all devices draw the same numbers",
        "models/microbatches.py",
        "np.uint32(0x9E3779B9)",
        "np.uint32(0)",
        DEVICES,
        "different_dropout_masks",
        "jax",
    ),
    Mutation(
        "a process reads the rows of the first one",
        "data/padding.py",
        "ids[rank * row_count : (rank + 1) * row_count]",
        "ids[:row_count]",
        ("tests/data/test_batching.py",),
        "share",
    ),
    Mutation(
        "no check within a step of several batches",
        "training/monitoring.py",
        "(batch + 1) % self.every_steps < self.model.steps_per_execution",
        "(batch + 1) % self.every_steps == 0",
        ("tests/training/test_nonfinite.py",),
        "several_batches",
    ),
    Mutation(
        "processes stop by themselves",
        "training/interruption.py",
        "return self._should_stop if self.agree is None else self._agreed",
        "return self._should_stop",
        ("tests/training/test_callbacks.py",),
        "processes",
    ),
    Mutation(
        "cut lines of a check of an export are a Python warning",
        "cli/translate.py",
        "    with TruncationInParts() as cut:\n        expected",
        "    cut = TruncationInParts()\n    if True:\n        expected",
        ("tests/cli/test_commands.py",),
    ),
    Mutation(
        "a shortlist may be empty",
        "cli/lexicon.py",
        "if not pairs:",
        "if False:",
        ("tests/cli/test_commands.py",),
    ),
    Mutation(
        "changed files of a continued run not reported",
        "data/datasets.py",
        "any(x != _stamp(Path(x[0])) for files in sources for x in files)",
        "False",
        ("tests/recipe/test_preparation.py",),
    ),
    Mutation(
        "a request whose time ran out is sent again",
        "../export/client/luong_keras_client/client.py",
        '_TRANSIENT_CODES = ("UNAVAILABLE", ',
        '_TRANSIENT_CODES = ("UNAVAILABLE", "DEADLINE_EXCEEDED", ',
        REFUSALS,
        "timeouts_are_not_retried",
    ),
    Mutation(
        "the error of another request is asked again for ever",
        "../export/client/luong_keras_client/client.py",
        "tenacity.stop_after_attempt(self._attempts)\n            | ",
        "",
        REFUSALS,
        "transient_errors_are_retried",
    ),
    Mutation(
        "what was answered beside a failure is lost",
        "../export/client/luong_keras_client/requests.py",
        "error.results = [",
        "error.results = [] and [",
        REFUSALS,
        "a_failing_request_keeps",
    ),
    Mutation(
        "a proxy to this machine",
        "../export/client/luong_keras_client/rest.py",
        "trust_env=not address.is_loopback",
        "trust_env=True",
        ACCESS,
        "bypass_proxies",
    ),
    Mutation(
        "an error shows what the server says again of a token",
        "../export/client/luong_keras_client/errors.py",
        "hide(str(self))",
        "str(self)",
        ACCESS,
        "errors_of_the_server_hide",
    ),
    Mutation(
        "a stream that reads far ahead",
        "../export/client/luong_keras_client/client.py",
        "1 if self._concurrency == 1 else 2",
        "1 if self._concurrency == 1 else 20",
        STREAMS,
        "reading_ahead_is_bounded",
    ),
    Mutation(
        "a bar hides the cursor of who is killed",
        "progress.py",
        "console.show_cursor(True)",
        "pass",
        ("tests/test_progress.py",),
        "cursor",
    ),
    Mutation(
        "errors of TensorFlow are taken for noise",
        "cli/main.py",
        r'rb"[IW]\d{4} ',
        r'rb"[IWEF]\d{4} ',
        ("tests/cli/test_startup_noise.py",),
    ),
    Mutation(
        "a beam of one continues after its first end",
        "decoding/beam.py",
        "settled | (full & ops.reshape(is_greedy, (-1, 1)))",
        "settled",
        ("tests/decoding/test_greedy.py",),
        "beam_of_one",
    ),
    Mutation(
        "a first process waits for processes that have ended",
        "cli/train.py",
        "if process == 0:",
        "if process == 1:",
        ("tests/cli/test_train.py",),
        "scores_alone",
    ),
    Mutation(
        "the only process of a node uses one GPU",
        "recipe/processes.py",
        'return {"local_device_ids": []} if is_alone else {}',
        "return {}",
        ("tests/recipe/test_devices.py",),
        "environment",
    ),
    Mutation(
        "a file of some settings decides the preset",
        "cli/train.py",
        "file_values.keys() >= LEAVES.keys()",
        "file_values",
        ("tests/cli/test_train.py",),
        "test_named_settings_are_kept",
    ),
    Mutation(
        "a signal counts as the end of --stop-after",
        "cli/train.py",
        "time.monotonic() - began >= call.stop_after",
        "True",
        ("tests/cli/test_train.py",),
        "exit_status",
    ),
    Mutation(
        "a resumed epoch is shown from its beginning",
        "training/training_progress.py",
        "self._step = self._step or batch",
        "pass",
        ("tests/training/test_training_progress.py",),
        "resumed_runs",
    ),
    Mutation(
        "text of a translation is HTML",
        "report/page.py",
        "autoescape=True",
        "autoescape=False",
        ("tests/report/test_page.py",),
        "escaped_in_html",
    ),
    Mutation(
        "two runs are compared on pairs that are not the same",
        "report/page.py",
        "        first.translations\n        and",
        "        False and",
        ("tests/report/test_page.py",),
        "same_test_pairs",
    ),
    Mutation(
        "a rematerialised step takes its products for constants",
        "ops/products.py",
        "return ops.cast(d_x, x.dtype), d_value",
        "return ops.cast(0 * d_x, x.dtype), d_value",
        SCAN,
        "unrolled_steps",
    ),
    Mutation(
        "the addend of a product is lost in a scan",
        "ops/products.py",
        "return _add_bias(value, addend)",
        "return value",
        SCAN,
        "rows_and_windows",
    ),
    Mutation(
        "windows go back to their positions one too late",
        "ops/products.py",
        "index = ops.reshape(row, (-1, 1, 1)) + first",
        "index = ops.reshape(row, (-1, 1, 1)) + first + 1",
        SCAN,
        "rows_and_windows",
    ),
    Mutation(
        "windows of a long source leave out their second product",
        "ops/products.py",
        "ops.stack(by_row, axis=-1), ops.stack(by_width, axis=-2)",
        "ops.stack(by_row[:1], axis=-1), ops.stack(by_width[:1], axis=-2)",
        DEFERRED,
        "one_graph and predictive",
    ),
    Mutation(
        "a weight that a step also reads beside has half of its gradient",
        "ops/scan.py",
        "gradients[index] = d if previous is None else previous + d",
        "gradients[index] = d if previous is None else previous",
        DEFERRED,
        "test_every_cell and reset-plain",
    ),
    Mutation(
        "every step adds up the gradient of every kernel",
        "ops/products.py",
        "index = None if tape is None else tape.index(kernel)",
        "index = None",
        DEFERRED,
        "test_no_step_computes_a_kernel_gradient and gru",
    ),
    # Finished sentences and shortlists.
    Mutation(
        "finished sentences leave before a quarter has finished",
        "decoding/search.py",
        "share >= LEAST_SHARE",
        "share > LEAST_SHARE",
        FINISHED,
    ),
    Mutation(
        "what one attends after its end is counted",
        "decoding/search.py",
        "active_mask, attended, scorer_states",
        "active_mask, attended, attended",
        ("tests/decoding/test_scorers.py",),
        "after_the_end",
    ),
    Mutation(
        "the steps of a smaller batch are written at the wrong sentences",
        "decoding/search.py",
        "write_rows(history, t, rows, self.indices)",
        "write_rows(history, t, rows, None if self.indices is None else "
        "ops.arange(ops.shape(self.indices)[0], dtype='int32'))",
        FINISHED,
    ),
    Mutation(
        "the beams of sentences that have left stay",
        "decoding/beam.py",
        '        "stack_sizes",\n        "num_return_sequences",\n',
        '        "num_return_sequences",\n',
        FINISHED,
    ),
    Mutation(
        "a search for one translation ends with the first that it finds",
        "decoding/beam.py",
        "settled = (worst > NEVER / 2) & (worst >= bound)",
        "settled = worst > NEVER / 2",
        ("tests/decoding/test_num_return_sequences.py",),
        "full_search",
    ),
    Mutation(
        "a subclass is taken to have the columns of its base",
        "ops/batch_compaction.py",
        'vars(type(self)).get("per_sentence")',
        "self.per_sentence",
        FINISHED,
    ),
    Mutation(
        "a shortlist reads indices as ids",
        "models/translation_model.py",
        "            ids = ops.take(self.words, ids)\n",
        "            pass\n",
        SHORTLIST,
    ),
    Mutation(
        "a shortlist without what sentences ask for",
        "inference/word_lists.py",
        "self.words(sources, *(x.ids for x in phrases.values()))",
        "self.words(sources, *(x.ids for x in list(phrases.values())[1:]))",
        SHORTLIST,
    ),
    Mutation(
        "the bias of all words beside the logits of some",
        "layers/output_projection.py",
        "bias = ops.take(bias, words)",
        "bias = bias[: ops.shape(words)[0]]",
        SHORTLIST,
    ),
    Mutation(
        "a lexicon's least probable words",
        "alignment/dictionary.py",
        "key=lambda x: -x[0]",
        "key=lambda x: x[0]",
        SHORTLIST,
    ),
    Mutation(
        "links that grow where both words have one",
        "alignment/symmetrization.py",
        "if uncovered >= min_uncovered:",
        "if (i, j) not in links:",
        SYMMETRIZATION,
    ),
    Mutation(
        "links that grow no further from new ones",
        "alignment/symmetrization.py",
        "    while has_grown:\n        has_grown = False",
        "    for _ in range(1):\n        has_grown = False",
        SYMMETRIZATION,
    ),
    Mutation(
        "the last links that cover one word where two were asked for",
        "alignment/symmetrization.py",
        'min_uncovered = 2 if method == "grow-diag-final-and" else 1',
        "min_uncovered = 1",
        SYMMETRIZATION,
    ),
    Mutation(
        "a token of the word of its first character",
        "inference/word_links.py",
        "vote.most_common(1)[0][0] if vote",
        "next(iter(vote)) if vote",
        ("tests/inference/test_word_links.py",),
    ),
    Mutation(
        "links of the other direction that are not reversed",
        "recipe/aligned_text.py",
        "frozenset((i, j) for j, i in back.links)",
        "frozenset(back.links)",
        ("tests/cli/test_align.py",),
        "symmetrised",
    ),
    Mutation(
        "a precision by the sure links alone",
        "alignment/aer.py",
        "return self.possible_links / self.links",
        "return self.sure_links / self.links",
        ("tests/alignment/test_aer.py",),
    ),
    Mutation(
        "links of words always of the step that produces them",
        "inference/word_links.py",
        "links_of_words(pair, sources[place], targets[place], step)",
        'links_of_words(pair, sources[place], targets[place], "produces")',
        ("tests/inference/test_word_links.py",),
        "links_of_word_tokens or steps_differ",
    ),
    Mutation(
        "sampled words with the threshold of one word more",
        "ops/cross_entropy.py",
        "ops.take(log_q, ids) - keys[-1]",
        "ops.take(log_q, ids) - keys[-2]",
        SAMPLED,
    ),
    Mutation(
        "sampled words without their importance",
        "ops/cross_entropy.py",
        "other_logits - ops.cast(log_pi, other_logits.dtype)",
        "other_logits",
        SAMPLED,
    ),
    Mutation(
        "a sampled word that is the target counted twice",
        "ops/cross_entropy.py",
        "ops.where(is_target, _NEVER, logits)",
        "logits",
        SAMPLED,
    ),
    Mutation(
        "an evaluation by sampled words",
        "layers/word_losses.py",
        "if training and self.estimates:",
        "if self.estimates:",
        SAMPLED,
    ),
    Mutation(
        "rows compared on different resamplings",
        REPRODUCED + "comparison.py",
        "random = np.random.default_rng([_SEED, count])",
        "random = np.random.default_rng([_SEED, *record.row.encode()])",
        COMPARISON,
    ),
    Mutation(
        "a claim that holds without an interval",
        REPRODUCED + "comparison.py",
        "if value.low > 0:",
        "if value.value > 0:",
        COMPARISON,
    ),
    Mutation(
        "rows of another search trained again",
        REPRODUCED + "plan.py",
        "if other.training == row.training",
        "if other.name == row.name",
        ("tests/reproduction/test_plan.py",),
    ),
    Mutation(
        "trials of other seeds compared",
        REPRODUCED + "comparison.py",
        "key=lambda record: record.seeds",
        "key=lambda record: record.made['version']",
        COMPARISON,
    ),
    Mutation(
        "the chance of few seeds as of many",
        REPRODUCED + "comparison.py",
        "student = stats.t.ppf(1 - _LEVEL / 2, degrees)",
        "student = normal",
        COMPARISON,
    ),
    Mutation(
        "intervals of 90 percent",
        REPRODUCED + "comparison.py",
        "_LEVEL = 0.05",
        "_LEVEL = 0.10",
        COMPARISON,
    ),
    Mutation(
        "unequal deviations pooled",
        REPRODUCED + "comparison.py",
        "equal_variances_p(spreads) < _LEVEL",
        "not spreads",
        COMPARISON,
    ),
    Mutation(
        "chance of the sentences counted twice",
        REPRODUCED + "comparison.py",
        "means[1:].var() - known.sum()",
        "means[1:].var()",
        COMPARISON,
    ),
    Mutation(
        "an unknown word scored as three",
        REPRODUCED + "jobs.py",
        "text = translation.text.replace(UNK, _UNKNOWN)",
        "text = translation.text",
        ("tests/reproduction/test_jobs.py",),
    ),
    Mutation(
        "the first batches of a translator traced by threads",
        "inference/line_search.py",
        "itertools.islice(batches, 1))",
        "itertools.islice(batches, 0))",
        ("tests/inference/test_many_lines.py",),
    ),
    Mutation(
        "threads where there are no graphs",
        "inference/line_search.py",
        "threads = 1 if is_sequential else batches_at_once()",
        "threads = batches_at_once()",
        ("tests/inference/test_many_lines.py",),
    ),
    Mutation(
        "threads under a strategy",
        "inference/line_search.py",
        " or tf.distribute.has_strategy()",
        "",
        ("tests/inference/test_many_lines.py",),
    ),
    Mutation(
        "phrases of the first part for all parts",
        "cli/translate.py",
        "column[start:end]",
        "column[:size]",
        ("tests/cli/test_commands.py",),
    ),
    Mutation(
        "every parallel chunk with the words of the first",
        "ops/chunked_loss.py",
        "self._chunk_rows(step * self.workers + worker)",
        "self._chunk_rows(step * self.workers)",
        ("tests/ops/test_chunked_loss.py",),
    ),
    Mutation(
        "the precision whose product is slower",
        "ops/devices.py",
        "if seconds >= _MIN_SPEEDUP * half_seconds",
        "if half_seconds >= _MIN_SPEEDUP * seconds",
        ("tests/ops/test_devices.py",),
    ),
    Mutation(
        "a run that continues measures its precision again",
        "recipe/decisions.py",
        'if config.model.precision == "auto":\n        values',
        'if config.model.precision == "float32":\n        values',
        ("tests/recipe/test_resumption.py",),
    ),
    Mutation(
        "a run of precision auto decided by its model alone",
        "recipe/stages.py",
        "        config = decide_precision(config)\n",
        "",
        ("tests/recipe/test_length_limit.py",),
    ),
    Mutation(
        "the rate of a run resumed in its first epoch read anew",
        "training/schedules.py",
        "if epoch == 0 and not self._restored:",
        "if epoch == 0:",
        ("tests/training/test_schedules.py",),
    ),
    Mutation(
        "a product of no rows with one step",
        "ops/products.py",
        "sizes = (-1, rows[1]) if rows[1] else ops.shape(x)[:2]",
        "sizes = (-1, ops.shape(x)[1])",
        ("tests/layers/test_compiled_and_exported.py",),
        "accepts_empty_inputs",
    ),
    Mutation(
        "padding looked up by its id",
        "ops/cross_entropy.py",
        "return ops.where(ops.equal(targets, pad_id), 0, targets)",
        "return targets",
        ("tests/training/test_metrics.py",),
        "vocabulary",
    ),
    Mutation(
        "copied losses with a projection of their own",
        "layers/word_losses.py",
        "if self.sharing_may_be_lost:  # from a saved configuration",
        "self.sharing_may_be_lost = False\n"
        "        if isinstance(projection, dict):",
        ("tests/layers/test_output_projection.py",),
        "shares",
    ),
    Mutation(
        "a command waits for the processes that prepared its text",
        "cli/main.py",
        "os.write(2, _END)",
        'os.write(2, b"")',
        ("tests/cli/test_startup_noise.py",),
        "workers",
    ),
    Mutation(
        "equal rows of a gradient are those that differ",
        "ops/backends.py",
        "tf.cast(indices[1:] != indices[:-1]",
        "tf.cast(indices[1:] == indices[:-1]",
        ("tests/ops/test_backends.py",),
    ),
    Mutation(
        "indices that TensorFlow keeps on the host",
        "ops/masking.py",
        'INDEX_DTYPE = "int64" if',
        'INDEX_DTYPE = "int32" if',
        ("tests/models/test_gpu_kernels.py",),
        "goes_through_the_host",
    ),
    Mutation(
        "a length that is known only in the graph as a condition",
        "layers/rnn/attention_cell.py",
        "if memory is not None and memory.shape[1] == 0:",
        "if source_length == 0:",
        ("tests/layers/test_layer_contract.py",),
        "unknown_sizes and InputFeedingLSTMCell",
    ),
    Mutation(
        "any object as a step function",
        "decoding/model_step.py",
        "isinstance(step, keras.Layer) or not callable(step)",
        "isinstance(step, keras.Layer)",
        ("tests/decoding/test_wrong_calls.py",),
        "step_must_be_a_function",
    ),
    Mutation(
        "logits of fewer hypotheses than words",
        "decoding/model_step.py",
        "if not shapes_compatible(shapes[0][:2], static_shape(ids)):",
        "if False:",
        ("tests/decoding/test_wrong_calls.py",),
        "logits_must_have_a_row",
    ),
    Mutation(
        "no reason for skipped lines",
        "recipe/preparation.py",
        "for reason, entry in corpus.skipped.items():",
        "for reason, entry in ():",
        ("tests/data/test_datasets.py",),
        "bad_lines_are_reported",
    ),
    Mutation(
        "scores of a run as JSON",
        "recipe/stages.py",
        "print(format_results(results))",
        "print(results)",
        ("tests/test_translator.py",),
        "fit_trains_on_pairs",
    ),
    Mutation(
        "pairs in memory written without a lock",
        "translator.py",
        "before_writing=lock_pairs,",
        "",
        ("tests/test_translator.py",),
        "second_call_leaves_the_pairs",
    ),
    Mutation(
        "text that grows while it is read",
        "recipe/preparation.py",
        "if changed := changed_settings(datasets.train_key, config.data):",
        "if False:",
        ("tests/recipe/test_preparation.py",),
        "grows_while_it_is_read",
    ),
    Mutation(
        "NaN at padding reaches the gradients of the encoder",
        "layers/encoder.py",
        "x = zero_where_masked(inputs, mask)",
        "x = inputs",
        ("tests/layers/test_padding.py",),
        "nan_in_padding",
    ),
    Mutation(
        "bytes are the frequent words of a shortlist",
        "inference/word_lists.py",
        "first + MIN_FREQUENT_WORDS",
        "MIN_FREQUENT_WORDS",
        SHORTLIST,
        "bytes",
    ),
    Mutation(
        "a coverage penalty counts without attention",
        "inference/search_runner.py",
        "if self.has_attention and (",
        "if (",
        ("tests/inference/test_word_links.py",),
        "without_attention",
    ),
    Mutation(
        "a run that another callback stops is not saved",
        "training/interruption.py",
        "stops = self.stop.stopping or self.model.stop_training",
        "stops = self.stop.stopping",
        ("tests/training/test_fit.py",),
        "another_callback",
    ),
    Mutation(
        "the best epoch is chosen on samples",
        "recipe/validation_callbacks.py",
        'search="beam", beam_size=1',
        "beam_size=1",
        ("tests/wiring/test_run_config.py",),
        "parts_of_a_run",
    ),
]


def main() -> None:
    """Make the mistakes and print which test caught each."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("only", nargs="?", default="", help="part of a name")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    chosen = [m for m in MUTATIONS if options.only in m.name]
    missed = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        tried = pool.map(try_mutation, chosen)
        for mutation, (caught, what) in zip(chosen, tried, strict=True):
            missed += not caught
            word = "caught by" if caught else "MISSED:"
            print(f"{mutation.name:56} {word} {what}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} mutations caught")
    sys.exit(bool(missed))


def try_mutation(mutation: Mutation) -> tuple[bool, str]:
    """Return whether a test caught the mistake, and which one or why none."""
    absent = [test for test in mutation.tests if not (ROOT / test).exists()]
    if absent:
        return False, f"no such test: {', '.join(absent)}"
    module = ROOT / PACKAGE / mutation.module
    text = mutation.apply(module.read_text(encoding="utf-8"))
    outcome = run_tests(
        mutation.tests,
        changed={mutation.module: text},
        options=["-x", "-k", mutation.cases],
        backend=mutation.backend,
    )
    tests = " ".join(mutation.tests)
    if mutation.cases:
        tests += f" [{mutation.cases}]"
    if outcome.status == "no tests":
        return False, f"no such test: {tests}"
    if outcome.status == "failed":
        return True, outcome.tests[0]
    return False, f"{outcome.passed} tests passed in {tests}"


if __name__ == "__main__":
    main()
