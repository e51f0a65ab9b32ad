"""Mutation testing of the library: single mistakes that a test must catch.

    python -m tests.mutations.listed            # all mutations
    python -m tests.mutations.listed sigma      # names that contain "sigma"
    python -m tests.mutations.listed --jobs 2   # two at a time

Each mutation is made in a copy of the project. The last line has the number of
mutations caught; the exit status is 1 if a test missed one.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from tests.mutations.project_copy import PACKAGE, ROOT, run_tests


class Mutation(NamedTuple):
    """Mistake in a module, `new` instead of `old`, that a test must catch.

    `tests` is a file or folder. If `cases` is set, only the tests that
    pytest's option `-k` selects by it are run, on `backend`.
    """

    name: str
    module: str
    old: str
    new: str
    tests: str
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


def read_mutations(text: str) -> Iterator[Mutation]:
    """Read mutations of modules ("---") by their names ("@@").

    After the lines of `old` ("-") and `new` ("+"), which may begin within a
    line of the module, the last line of an entry is
    `TESTS [-k CASES] [on BACKEND]`.
    """
    for part in re.split(r"^--- ", text, flags=re.MULTILINE)[1:]:
        module, *entries = re.split(r"^@@ ", part, flags=re.MULTILINE)
        for entry in entries:
            name, *lines, last = entry.splitlines()
            old, new = (
                "\n".join(line[1:] for line in lines if line[0] == sign)
                for sign in "-+"
            )
            tests, cases, backend = re.fullmatch(
                r"(\S+)(?: -k (.*?))?(?: on (\w+))?", last
            ).groups()
            yield Mutation(
                name,
                module.strip(),
                old,
                new,
                tests,
                cases or "",
                backend or "tensorflow",
            )


MUTATIONS = [
    *read_mutations(
        r"""
--- ../examples/reproduction/comparison.py
@@ rows compared on different resamplings
-random = np.random.default_rng([_SEED, count])
+random = np.random.default_rng([_SEED, *record.row.encode()])
tests/reproduction/test_comparison.py
@@ a claim that holds without an interval
-if value.low > 0:
+if value.value > 0:
tests/reproduction/test_comparison.py
@@ trials of other seeds compared
-key=lambda record: record.seeds
+key=lambda record: record.made['version']
tests/reproduction/test_comparison.py
@@ the chance of few seeds as of many
-student = stats.t.ppf(1 - _LEVEL / 2, degrees)
+student = normal
tests/reproduction/test_comparison.py
@@ intervals of 90 percent
-_LEVEL = 0.05
+_LEVEL = 0.10
tests/reproduction/test_comparison.py
@@ unequal deviations pooled
-equal_variances_p(spreads) < _LEVEL
+not spreads
tests/reproduction/test_comparison.py
@@ chance of the sentences counted twice
-means[1:].var() - known.sum()
+means[1:].var()
tests/reproduction/test_comparison.py
--- ../examples/reproduction/jobs.py
@@ an unknown word scored as three
-text = translation.text.replace(UNK, _UNKNOWN)
+text = translation.text
tests/reproduction/test_jobs.py
--- ../examples/reproduction/plan.py
@@ rows of another search trained again
-if other.training == row.training
+if other.name == row.name
tests/reproduction/test_plan.py
--- ../export/client/luong_keras_client/client.py
@@ a request whose time ran out is sent again
-_TRANSIENT_CODES = ("UNAVAILABLE",
+_TRANSIENT_CODES = ("UNAVAILABLE", "DEADLINE_EXCEEDED",
tests/client/test_refusals.py -k timeouts_are_not_retried
@@ the error of another request is asked again for ever
-tenacity.stop_after_attempt(self._attempts)
-            |
tests/client/test_refusals.py -k transient_errors_are_retried
@@ a stream that reads far ahead
-1 if self._concurrency == 1 else 2
+1 if self._concurrency == 1 else 20
tests/client/test_line_streams.py -k reading_ahead_is_bounded
--- ../export/client/luong_keras_client/errors.py
@@ an error shows what the server says again of a token
-hide(str(self))
+str(self)
tests/client/test_access.py -k errors_of_the_server_hide
--- ../export/client/luong_keras_client/requests.py
@@ what was answered beside a failure is lost
-error.results = [
+error.results = [] and [
tests/client/test_refusals.py -k a_failing_request_keeps
--- ../export/client/luong_keras_client/rest.py
@@ a proxy to this machine
-trust_env=not address.is_loopback
+trust_env=True
tests/client/test_access.py -k bypass_proxies
--- alignment/aer.py
@@ links of the step that produces a word
-rows = np.minimum(rows + 1, len(weights) - 1)
+rows = rows + 0
tests/golden/test_decode.py -k toy_global-beam2_stack100
@@ a precision by the sure links alone
-return self.possible_links / self.links
+return self.sure_links / self.links
tests/alignment/test_aer.py
--- alignment/dictionary.py
@@ a lexicon's least probable words
-key=lambda x: -x[0]
+key=lambda x: x[0]
tests/inference/test_word_lists.py
--- alignment/symmetrization.py
@@ links that grow where both words have one
-if uncovered >= min_uncovered:
+if (i, j) not in links:
tests/alignment/test_symmetrization.py
@@ links that grow no further from new ones
-    while has_grown:
-        has_grown = False
+    for _ in range(1):
+        has_grown = False
tests/alignment/test_symmetrization.py
@@ the last links that cover one word where two were asked for
-min_uncovered = 2 if method == "grow-diag-final-and" else 1
+min_uncovered = 1
tests/alignment/test_symmetrization.py
--- cli/evaluate.py
@@ a baseline and the system change places
-        baseline_lines,
-        translations,
+        translations,
+        baseline_lines,
tests/cli/test_commands.py
@@ a baseline run keeps its own search
-Translator.from_run(folder, weights, decoding)
+Translator.from_run(folder, weights, weights and decoding)
tests/cli/test_commands.py -k search_of_the_command
--- cli/lexicon.py
@@ a shortlist may be empty
-if not pairs:
+if False:
tests/cli/test_commands.py
--- cli/main.py
@@ errors of TensorFlow are taken for noise
-rb"[IW]\d{4}
+rb"[IWEF]\d{4}
tests/cli/test_startup_noise.py
@@ a command waits for the processes that prepared its text
-os.write(2, _END)
+os.write(2, b"")
tests/cli/test_startup_noise.py -k workers
--- cli/train.py
@@ a first process waits for processes that have ended
-if process == 0:
+if process == 1:
tests/cli/test_train.py -k scores_alone
@@ a file of some settings decides the preset
-file_values.keys() >= LEAVES.keys()
+file_values
tests/cli/test_train.py -k test_named_settings_are_kept
@@ a signal counts as the end of --stop-after
-time.monotonic() - began >= call.stop_after
+True
tests/cli/test_train.py -k exit_status
--- cli/translate.py
@@ cut lines of a check of an export are a Python warning
-    with TruncatedPlaces() as cut:
-        expected
+    cut = TruncatedPlaces()
+    if True:
+        expected
tests/cli/test_commands.py
@@ phrases of the first part for all parts
-column[start:end]
+column[:size]
tests/cli/test_commands.py
--- config/decoding.py
@@ a beam of 12
-beam_size: Count = 10  # number
+beam_size: Count = 12  # number
tests/wiring/test_presets.py
--- data/batch_order.py
@@ batches from long to short
-np.lexsort([key[lines] for key in reversed(keys)])
+np.lexsort([-key[lines] for key in reversed(keys)])
tests/golden/test_training.py -k lr_per_epoch
@@ a source begins anew in every epoch
-epoch * self.shares[source] + shuffled
+shuffled
tests/data/test_mixture.py
@@ every pass of a source in the same order
-[np.full_like(passes, self.seed), passes], -1)
+[np.full_like(passes, self.seed), 0 * passes], -1)
tests/data/test_mixture.py
--- data/batching.py
@@ the target cut at its beginning as well
-self.pairs.target.rows(lines, self.max_length)
+self.pairs.target.rows(lines, self.max_length, keep_end)
tests/data/test_batching.py
@@ the fingerprint of the batches without their kind
-            "batching": self.batching,
tests/wiring
@@ the same pairs in a pool whatever the seed
-np.arange(start, stop), count, (self.seed, epoch)
+np.arange(start, stop), count, (1, epoch)
tests/data/test_batching.py -k epochs_and_seeds
@@ the same order of batches in every epoch
-epoch * self.pools_per_epoch + pool)
+pool)
tests/wiring
--- data/corpus.py
@@ the text of a run folder may be a link
-return no_link(folder / f"{side}.txt")
+return folder / f"{side}.txt"
tests/data/test_corpus.py
--- data/corpus_writer.py
@@ a corpus that removes other files of its folder
-folder.glob(f"{side}.{name}")
+folder.glob(f"{side}.*")
tests/data/test_corpus_writing.py -k other_files
@@ Ctrl-C ends the processes that prepare text
-signal.SIG_IGN
+signal.SIG_DFL
tests/data/test_corpus_writing.py
@@ duplicates are kept
-if result[2] in seen_hashes:
+if not seen_hashes:
tests/data/test_corpus_writing.py
--- data/datasets.py
@@ held out whatever is filtered
-checked_chunks(pairs, preprocess, filters, processes)
+checked_chunks(pairs, preprocess, FilterConfig(), processes)
tests/data/test_datasets.py
@@ changed files of a continued run not reported
-any(_differs(stamp, kept) for files in sources for stamp in files)
+False
tests/recipe/test_preparation.py
--- data/padding.py
@@ a process reads the rows of the first one
-ids[rank * row_count : (rank + 1) * row_count]
+ids[:row_count]
tests/data/test_batching.py -k share
--- data/sources/delimited.py
@@ a header that is a pair
-in itertools.islice(records, skipped, None)
+in itertools.islice(records, 0, None)
tests/data/test_sources.py
--- data/sources/python_objects.py
@@ texts and labels taken for pairs
-{spec.shape.rank if _is_text(spec) else None for spec in specs}
+{spec.shape.rank for spec in specs}
tests/data/test_sources.py -k labels
--- data/sources/tmx.py
@@ codes of a memory are text
-tag.rpartition("}")[2] not in _CODES
+True
tests/data/test_sources.py -k same_text
@@ entities of a memory are read
-                _refuse_entities(unit, path)
tests/data/test_sources.py -k entities
--- data/token_ids.py
@@ ids of another vocabulary
-\n{side}\n{tokenizer.fingerprint}
+\n{side}
tests/data/test_batching.py
--- decoding/argument_checks.py
@@ one temperature that is positive is enough
-not test(values).all()
+not test(values).any()
tests/decoding/test_sampling.py -k nonpositive
@@ sizes above the size of the beam
-(values >= minimum) & (values <= limit)
+(values >= minimum)
tests/decoding/test_wrong_numbers.py
@@ columns of another batch
-if rows and rows != (1,) and not shapes_compatible(rows, (batch,)):
+if False:
tests/decoding/test_wrong_numbers.py
--- decoding/beam.py
@@ the end symbol takes a place in the beam
-ops.where(ends, NEVER * 2, candidates.totals)
+candidates.totals
tests/golden/test_decode.py -k rand_noattn-beam3_stack100
@@ a translation may be one word shorter
-long_enough = (state.position >= state.min_lengths)
+long_enough = (state.position + 1 >= state.min_lengths)
tests/golden/test_decode.py -k min10_max30
@@ a full stack gives up its worst for a better one
-finishes = finishes & (numbers <= column(self.stack_sizes))
+pass
tests/golden/test_decode.py -k small_stack
@@ a beam of one continues after its first end
-settled | (full & ops.reshape(is_greedy, (-1, 1)))
+settled
tests/decoding/test_greedy.py -k beam_of_one
@@ the beams of sentences that have left stay
-        "stack_sizes",
-        "num_return_sequences",
+        "num_return_sequences",
tests/decoding/test_finished_sentences.py
@@ a search for one translation ends with the first that it finds
-settled = (worst > NEVER / 2) & (worst >= bound)
+settled = worst > NEVER / 2
tests/decoding/test_num_return_sequences.py -k full_search
--- decoding/constrained_beam.py
@@ a phrase that begins again from nothing
-is_begun = ops.any(is_here & self.borders[:, None], axis=-2)
+same = ops.eye(ops.shape(self.words)[2], dtype='bool')
+        is_begun = is_here[..., 0, :] | ops.any(is_here & same, axis=-2)
tests/decoding/test_constrained_beam.py
@@ an end before all phrases are there
-is_complete = self._num_missing(candidates.more[0]) == 0
+is_complete = self._num_missing(candidates.more[0]) >= 0
tests/decoding/test_constrained_beam.py
@@ phrases that are begun too late
-self._num_missing(new_progress) <= ops.maximum(room, 0)
+self._num_missing(new_progress) <= ops.maximum(room, 0) + 9
tests/decoding/test_constrained_beam.py
@@ one bank for all hypotheses
-bank[:, :, None] == banks
+(bank[:, :, None] >= 0) & (banks == 0)
tests/decoding/test_constrained_beam.py
--- decoding/ensemble.py
@@ an ensemble that divides by models without attention too
-_mean(weights) * self.scale if weights else None
+sum(weights) / len(results) * self.scale if weights else None
tests/decoding/test_model_step.py -k ensemble
@@ ensembles average probabilities
-if self.average == "logits":
+if self.average == "never":
tests/golden/test_decode.py -k toy_ensemble-beam2_stack100
--- decoding/model_step.py
@@ inputs in the order of their names
-named_inputs = getattr(decoder, "input", None)
+named_inputs = None
tests/decoding/test_wrong_decoders.py -k by_name
@@ constants repeated sentence by sentence in the wrong order
-lambda x: ops.repeat(x, k, axis=0), self.constants
+lambda x: ops.concatenate([x] * k), self.constants
tests/decoding/test_model_step.py -k exhaustive
@@ a decoder without a cache that reads only its last word
-prefix_states = [decoder_ids]
+prefix_states = [prefix]
tests/decoding/test_model_step.py -k greedy and prefix
@@ the logits of the first position of a prefix
-step = position if self.reads_prefix else 0
+step = 0
tests/decoding/test_model_step.py -k greedy and prefix
@@ probabilities as logits
-logits = ops.log(masking.upcast(logits))
+logits = masking.upcast(logits)
tests/decoding/test_model_step.py -k exhaustive and functional
@@ constants that stay when their sentence leaves the batch
-per_sentence = ("constants", "masks")
+per_sentence = ()
tests/decoding/test_model_step.py -k leave_the_batch and prefix
@@ probabilities in the place of logits are not noticed
-if are_probabilities == from_logits:
+if False:
tests/decoding/test_wrong_decoders.py
@@ any object as a step function
-isinstance(step, keras.Layer) or not callable(step)
+isinstance(step, keras.Layer)
tests/decoding/test_wrong_calls.py -k step_must_be_a_function
@@ logits of fewer hypotheses than words
-if not shapes_compatible(shapes[0][:2], static_shape(ids)):
+if False:
tests/decoding/test_wrong_calls.py -k logits_must_have_a_row
--- decoding/sampling.py
@@ a sample that does not see its temperature
-(gains - best) / ops.maximum(temperature, 1e-30)
+gains - best
tests/decoding/test_sampling.py
@@ the word that fills the nucleus is left out of it
-before = ops.cumsum(weights, axis=-1) - weights
+before = ops.cumsum(weights, axis=-1)
tests/decoding/test_sampling.py
@@ samples score by what they were drawn from
-gain = take_last(gains, words[..., None])[..., 0]
+gain = take_last(ops.log_softmax(allowed), words[..., None])[..., 0]
tests/decoding/test_sampling.py
@@ a sample of forbidden words
-is_possible = ops.max(allowed, axis=-1) > NEVER / 2
+is_possible = words >= 0
tests/decoding/test_nothing_allowed.py
--- decoding/scorers.py
@@ coverage that padding lowers
-if self.source_mask is not None:
+if False:
tests/decoding/test_scorers.py
@@ a search with coverage that does not wait
-        # All words may still be attended; the penalty is then 0.
-        return scores
+        return scores - 1e9
tests/decoding/test_scorers.py
@@ an n-gram that is one word longer
-(size[..., None] <= back)
+(size[..., None] < back)
tests/decoding/test_scorers.py
--- decoding/search.py
@@ a translation that is cut has the length of its limit
-ops.clip(max_lengths, 0, ops.cast(max_steps, "int32"))
+ops.maximum(max_lengths, 0)
tests/decoding/test_max_steps.py
@@ finished sentences leave before a quarter has finished
-share >= LEAST_SHARE
+share > LEAST_SHARE
tests/decoding/test_finished_sentences.py
@@ what one attends after its end is counted
-active_mask, attended, scorer_states
+active_mask, attended, attended
tests/decoding/test_scorers.py -k after_the_end
@@ the steps of a smaller batch are written at the wrong sentences
-write_rows(history, t, rows, self.indices)
+write_rows(history, t, rows, None if self.indices is None else
+                ops.arange(ops.shape(self.indices)[0], dtype='int32'))
tests/decoding/test_finished_sentences.py
--- decoding/strategy.py
@@ the score of a translation that nothing allows
-(state.scores > NEVER / 2) & (ranks < counts)
+(ranks < counts)
tests/decoding/test_nothing_allowed.py
--- evaluation/length_analysis.py
@@ capitals count in BLEU by length
-        lowercase=data.lowercase,
tests/recipe/test_evaluation_figures.py
@@ BLEU by length splits tokenised text again
-        tokenize=tokenizer_of(target_of(data, references))[0],
tests/recipe/test_evaluation_figures.py
--- evaluation/metrics/registry.py
@@ only the first of several references counts in exact match
-translation in alternatives for
+translation == alternatives[0] for
tests/cli/test_commands.py
--- files/atomic_file.py
@@ disk errors of other files explained
-if reason is None or not is_here:
+if reason is None:
tests/files/test_atomic_file.py -k elsewhere
@@ one temporary name for all processes
-path.with_name(partial_name(path.name))
+path.with_name(f"{_PREFIX}{path.name}")
tests/files
--- inference/line_search.py
@@ the first batches of a translator traced by threads
-itertools.islice(batches, 1))
+itertools.islice(batches, 0))
tests/inference/test_many_lines.py
@@ threads where there are no graphs
-threads = 1 if is_sequential else batches_at_once()
+threads = batches_at_once()
tests/inference/test_many_lines.py
@@ threads under a strategy
- or tf.distribute.has_strategy()
tests/inference/test_many_lines.py
--- inference/search_runner.py
@@ samples that are the same for every seed
-tf.cast(hashes, tf.int32) + tf.cast(seed, tf.int32) * 1_000_003
+tf.cast(hashes, tf.int32)
tests/inference/test_search_options.py
@@ no room for the end after a whole translation as prefix
-symbols = request["prefix"].lengths + 1
+symbols = request["prefix"].lengths
tests/inference/test_translation_graph.py
@@ a coverage penalty counts without attention
-if self.has_attention and (
+if (
tests/inference/test_word_links.py -k without_attention
--- inference/translation.py
@@ a row of zeros left where a translation was cut
-    if not weights[length:].any():
-        weights = weights[:length]
tests/inference/test_translation.py
--- inference/translation_graph.py
@@ an over-long target not told
-tokenized.truncated | target_tokens.truncated
+tokenized.truncated
tests/inference/test_translation_graph.py
--- inference/word_links.py
@@ a token of the word of its first character
-vote.most_common(1)[0][0] if vote
+next(iter(vote)) if vote
tests/inference/test_word_links.py
@@ links of words always of the step that produces them
-links_of_words(pair, sources[place], targets[place], step)
+links_of_words(pair, sources[place], targets[place], "produces")
tests/inference/test_word_links.py -k links_of_word_tokens
--- inference/word_lists.py
@@ unknown words always of the step that writes them
-copied_positions(ids, alignments, self.alignment_step)
+copied_positions(ids, alignments)
tests/inference/test_word_lists.py
@@ a shortlist without what sentences ask for
-self.words(sources, *(x.ids for x in phrases.values()))
+self.words(sources, *(x.ids for x in list(phrases.values())[1:]))
tests/inference/test_word_lists.py
@@ bytes are the frequent words of a shortlist
-first + MIN_FREQUENT_WORDS
+MIN_FREQUENT_WORDS
tests/inference/test_word_lists.py -k bytes
--- interop/authors_weights.py
@@ [h; c] instead of [c; h]
-conversions["W_h"] = _transpose_conversion(cell.attentional_kernel)
+conversions["W_h"] = _transpose_conversion(cell.attentional_kernel)
+        conversions["W_h"].split = lambda a: [np.roll(a.T, len(a), 0)]
tests/golden/test_model.py -k float64-global_dot_rev1_feed1
--- layers/attention/local_attention.py
@@ sigma = D instead of D / 2
-return self.sigma or self.half_width / 2
+return self.sigma or self.half_width
tests/golden/test_attention_layer.py -k float64-localp_dot_norm0_D2_b1
@@ local-m not kept at the last word
-clamp_position=True,
+clamp_position=False,
tests/golden/test_attention_layer.py -k float64-localm_dot_D2_rev1_b1
@@ the window cut at the padded length
-inside = ops.logical_and(inside, mask)
+inside = ops.logical_or(inside, inside)
tests/golden/test_attention_layer.py -k float64-localm_dot_D2_rev1
--- layers/attention/scores.py
@@ W_a of the general score transposed
-ops.matmul(value, ops.cast(self.attention_kernel, value.dtype))
+ops.matmul(value, ops.transpose(self.attention_kernel))
tests/golden/test_attention_layer.py -k float64-global_general_rev1_b1
@@ a masked softmax for the location score
-if mask_location:
+if True:
tests/golden/test_location.py -k float64
--- layers/encoder.py
@@ the memory left in the order of reading
-        if self.reverse:
-            x = reverse_within_mask(x, flipped_mask)
-        return (x, *states)
+        return (x, *states)
tests/golden/test_model.py -k float64-global_dot_rev1_feed1
@@ a padded memory reversed with its padding
-[reverse_within_mask(outputs, flipped_mask), *last_states]
+[ops.flip(outputs, axis=1), *last_states]
tests/layers/test_padding.py -k encoder
@@ the encoder's dropout without its seed
-keras.random.SeedGenerator(seed)
+keras.random.SeedGenerator()
tests/wiring
@@ NaN at padding reaches the gradients of the encoder
-x = zero_where_masked(inputs, mask)
+x = inputs
tests/layers/test_padding.py -k nan_in_padding
--- layers/output_projection.py
@@ the bias of all words beside the logits of some
-bias = ops.take(bias, words)
+bias = bias[: ops.shape(words)[0]]
tests/inference/test_word_lists.py
--- layers/rnn/attention_cell.py
@@ the gradient of a lower layer is not clipped
-below = clip_gradient(below, self.gradient_clip)
+below = clip_gradient(below, None)
tests/layers/rnn/test_input_feeding_cells.py -k below_is_clipped
@@ h instead of the attentional vector fed back
-fed_vector = _apply_mask(states[-1], masks.get("feeding"))
+fed_vector = _apply_mask(states[-3], masks.get("feeding"))
tests/golden/test_model.py -k float64-global_dot_rev1_feed1
@@ a length that is known only in the graph as a condition
-if memory is not None and memory.shape[1] == 0:
+if source_length == 0:
tests/layers/test_layer_contract.py -k unknown_sizes and InputFeedingLSTMCell
--- layers/word_losses.py
@@ an evaluation by sampled words
-if training and self.estimates:
+if self.estimates:
tests/ops/test_cross_entropy.py
@@ copied losses with a projection of their own
-if self.sharing_may_be_lost:  # from a saved configuration
+self.sharing_may_be_lost = False
+        if isinstance(projection, dict):
tests/layers/test_output_projection.py -k shares
--- models/microbatches.py
@@ the parts of a batch are not divided by its words
-factor = 1 / tf.maximum(_sum_in_order(numbers), 1)
+factor = 1 / tf.maximum(numbers[0], 1)
tests/models/test_training_model.py -k step_of_the_whole
@@ sparse gradients of the first part alone
-tf.concat([gradient.values, addend.values], 0)
+tf.concat([gradient.values, gradient.values], 0)
tests/models/test_training_model.py -k step_of_the_whole
@@ the gradients of the devices are not added up
-sums, gradients = jax.lax.psum((sums, gradients), axis)
+sums = jax.lax.psum(sums, axis)
tests/training/test_jax_devices.py -k micro_batches_train_as_one on jax
@@ all devices draw the same numbers
-np.uint32(0x9E3779B9)
+np.uint32(0)
tests/training/test_jax_devices.py -k different_dropout_masks on jax
--- models/translation_model.py
@@ the clips of the encoder exchanged
-            cell_clip=config.cell_clip,
-            gradient_clip=config.gradient_clip,
-            kernel_initializer=self._make_initializer(None),
+            cell_clip=config.gradient_clip,
+            gradient_clip=config.cell_clip,
+            kernel_initializer=self._make_initializer(None),
tests/wiring/test_model_config.py
@@ the bias of the attentional vector not passed on
-            attentional_bias=config.attentional_bias,
tests/wiring/test_model_config.py
@@ a shortlist reads indices as ids
-            ids = ops.take(self.words, ids)
+            pass
tests/inference/test_word_lists.py
--- ops/backends.py
@@ equal rows of a gradient are those that differ
-tf.cast(indices[1:] != indices[:-1]
+tf.cast(indices[1:] == indices[:-1]
tests/ops/test_backends.py
--- ops/batch_compaction.py
@@ a subclass is taken to have the columns of its base
-vars(type(self)).get("per_sentence")
+self.per_sentence
tests/decoding/test_finished_sentences.py
--- ops/chunked_loss.py
@@ every parallel chunk with the words of the first
-self._chunk_rows(step * self.parallel_chunks + worker)
+self._chunk_rows(step * self.parallel_chunks)
tests/ops/test_chunked_loss.py
--- ops/cross_entropy.py
@@ sampled words with the threshold of one word more
-ops.take(log_q, ids) - keys[-1]
+ops.take(log_q, ids) - keys[-2]
tests/ops/test_cross_entropy.py
@@ sampled words without their importance
-other_logits - ops.cast(log_pi, other_logits.dtype)
+other_logits
tests/ops/test_cross_entropy.py
@@ a sampled word that is the target counted twice
-ops.where(is_target, _NEVER, logits)
+logits
tests/ops/test_cross_entropy.py
@@ padding looked up by its id
-return ops.where(ops.equal(targets, pad_id), 0, targets)
+return targets
tests/training/test_metrics.py -k vocabulary
--- ops/devices.py
@@ the precision whose product is slower
-if seconds >= _MIN_SPEEDUP * half_seconds
+if half_seconds >= _MIN_SPEEDUP * seconds
tests/ops/test_devices.py
--- ops/masking.py
@@ indices that TensorFlow keeps on the host
-INDEX_DTYPE = "int64" if
+INDEX_DTYPE = "int32" if
tests/models/test_gpu_kernels.py -k goes_through_the_host
--- ops/products.py
@@ a rematerialised step takes its products for constants
-return ops.cast(d_x, x.dtype), *[d_value for _ in addends]
+return ops.cast(0 * d_x, x.dtype), *[d_value for _ in addends]
tests/ops/test_scan.py -k unrolled_steps
@@ a summand of a product has no gradient
-(self.zeros[i], summand) if x is not None]
+(self.zeros[i], None) if x is not None]
tests/ops/test_scan.py -k rows_and_windows
@@ windows go back to their positions one too late
-index = ops.reshape(row, (-1, 1, 1)) + first
+index = ops.reshape(row, (-1, 1, 1)) + first + 1
tests/ops/test_scan.py -k rows_and_windows
@@ windows of a long source leave out their second product
-ops.stack(by_row, axis=-1), ops.stack(by_width, axis=-2)
+ops.stack(by_row[:1], axis=-1), ops.stack(by_width[:1], axis=-2)
tests/layers/rnn/test_deferred_gradients.py -k one_graph and predictive
@@ every step adds up the gradient of every kernel
-index = None if tape is None else tape.index(kernel)
+index = None
tests/layers/rnn/test_deferred_gradients.py -k no_step_computes and gru
@@ a product of no rows with one step
-sizes = (-1, rows[1]) if rows[1] else ops.shape(x)[:2]
+sizes = (-1, ops.shape(x)[1])
tests/layers/test_compiled_and_exported.py -k accepts_empty_inputs
--- ops/recurrence.py
@@ input and forget gate exchanged
-i, f, g, o = ops.split(pre_activations, 4, axis=-1)
+f, i, g, o = ops.split(pre_activations, 4, axis=-1)
tests/golden/test_lstm_unit.py -k float64
@@ h made of the clipped cell
-return gates[-1] * squashed, clip_value(carry, cell_clip)
+c = clip_value(carry, 1.5)
+    return gates[-1] * ops.tanh(c), c
tests/golden/test_lstm_unit.py -k float64
@@ gradients not clipped in the recurrence
-lambda d: _clip(d, limit), x)
+lambda d: d, x)
tests/golden/test_lstm_unit.py -k float64
@@ the clip of the cell stops its gradient
-lambda x: _clip(x, limit), lambda d: d, x)
+lambda x: _clip(x, limit),
+        lambda d: d * ops.cast(ops.abs(x) < limit, x.dtype), x)
tests/golden/test_lstm_unit.py -k float64
--- ops/scan.py
@@ a weight that a step also reads beside has half of its gradient
-gradients[index] = d if previous is None else previous + d
+gradients[index] = d if previous is None else previous
tests/layers/rnn/test_deferred_gradients.py -k test_every_cell and reset-plain
--- ops/windows.py
@@ weights renormalised after the Gaussian
-weights = weights * ops.cast(window.gaussian, weights.dtype)
+weights = weights * ops.cast(window.gaussian, weights.dtype)
+        weights = weights / ops.sum(weights, axis=-1, keepdims=True)
tests/golden/test_attention_layer.py -k float64-localp_dot_norm0_D2_b1
@@ the Gaussian after the softmax where it belongs inside
-if form == "inside_softmax":
+if form == "never":
tests/golden/test_attention_layer.py -k float64-localp_dot_norm1_D2_b1
@@ p_t rounded instead of floored
-ops.floor(ops.stop_gradient(aligned_position))
+ops.round(ops.stop_gradient(aligned_position))
tests/golden/test_attention_layer.py -k float64-localp_general_norm0_D1
@@ p_t = (S - 1) sigmoid(...)
-ops.cast(ops.expand_dims(lengths, -1), fraction.dtype) * fraction
+ops.cast(ops.expand_dims(lengths - 1, -1), fraction.dtype) * fraction
tests/golden/test_attention_layer.py -k float64-localp_dot_norm0_D2_b1
@@ positions counted from 1 in the Gaussian
-distance = positions - ops.expand_dims(aligned_position, -1)
+distance = positions + 1 - ops.expand_dims(aligned_position, -1)
tests/golden/test_attention_layer.py -k float64-localp_dot_norm0_D2_b1
@@ the decoder step off by one in local-m
-return ops.minimum(step, ops.maximum(last, 0))
+return ops.minimum(step + 1, ops.maximum(last, 0))
tests/golden/test_attention_layer.py -k float64-localm_dot_D2_rev1_b1
--- presets.py
@@ the clips of the authors' preset exchanged
-        cell_clip=50.0,
-        gradient_clip=1000.0,
+        cell_clip=1000.0,
+        gradient_clip=50.0,
tests/wiring/test_presets.py
@@ the authors' preset without its step of alignment
-        alignment_step="reads",
tests/wiring/test_presets.py
--- progress.py
@@ a bar hides the cursor of who is killed
-console.show_cursor(True)
+pass
tests/test_progress.py -k cursor
--- recipe/aligned_text.py
@@ links of the other direction that are not reversed
-frozenset((i, j) for j, i in back.links)
+frozenset(back.links)
tests/cli/test_align.py -k symmetrised
--- recipe/devices.py
@@ the only process of a node uses one GPU
-return {"local_device_ids": []} if is_alone else {}
+return {}
tests/recipe/test_devices.py -k environment
--- recipe/fine_tuning.py
@@ a fine-tuned run takes the settings of subwords of a preset
-name.startswith("data.sentencepiece.")
+name.startswith("data.sentencepiece.n.")
tests/recipe/test_fine_tuning.py -k subwords_of_a_preset
--- recipe/loading.py
@@ the best weights scored whatever is asked for
-config.training.final_weights if weights is None
+"best" if weights is None
tests/cli/test_commands.py -k weights
--- recipe/preparation.py
@@ no reason for skipped lines
-for reason, entry in corpus.skipped.items():
+for reason, entry in ():
tests/data/test_datasets.py -k bad_lines_are_reported
@@ text that grows while it is read
-if changed := changed_settings(datasets.train_key, data):
+if False:
tests/recipe/test_preparation.py -k grows_while_it_is_read
--- recipe/resumption.py
@@ a run that continues measures its precision again
-if new["model.precision"] == "auto":
+if new["model.precision"] == "float32":
tests/recipe/test_resumption.py
--- recipe/stages.py
@@ a run of precision auto decided by its model alone
-config = with_values(config, {"model.precision": precision})
+pass
tests/recipe/test_length_limit.py
@@ scores of a run as JSON
-print(format_results(results))
+print(results)
tests/test_translator.py -k fit_trains_on_pairs
--- recipe/training.py
@@ the best epoch is chosen on samples
-search="beam", beam_size=1
+beam_size=1
tests/wiring/test_run_config.py -k parts_of_a_run
--- recipe/vocabularies.py
@@ the nearest number of subwords is learnt with other settings
-error.nearest, **options
+error.nearest
tests/wiring/test_run_config.py
--- report/page.py
@@ text of a translation is HTML
-autoescape=True
+autoescape=False
tests/report/test_page.py -k escaped_in_html
@@ two runs are compared on pairs that are not the same
-        first.translations
-        and
+        False and
tests/report/test_page.py -k same_test_pairs
--- text/preprocessing.py
@@ an entity in the text turned into its character
-text.split(), return_str=True, unescape=False
+text.split(), return_str=True
tests/text/test_preprocessing.py
--- text/sentencepiece_tokenizer.py
@@ a copied <s> is left out of a translation
-b"<" + _CUT + rb"\1"
+rb"<\1"
tests/text/test_tokenizers.py
@@ SentencePiece replaces an error of the lines
-if failures:
+if False:
tests/text/test_tokenizers.py
@@ a translation keeps a line end
-r"[\n\r]", " "
+r"[\n]", " "
tests/text/test_tokenizers.py
--- text/word_tokenizer.py
@@ a word table that reads the given file
-table_asset(name, self._bytes)
+tf.saved_model.Asset(str(vocabulary_file))
tests/text/test_vocabulary.py -k reads_its_file
--- training/fit.py
@@ a snapshot that two processes may write
-if writes_snapshots:
+if False:
tests/training/test_fit.py -k one_process
@@ a run that has ended trains on
-if position and position % steps == 0 and has_ended:
+if False:
tests/training/test_weights_of_runs.py -k killed
@@ a run ends within an epoch
-if position and position % steps == 0 and has_ended:
+if has_ended:
tests/training/test_weights_of_runs.py -k patience
--- training/interruption.py
@@ snapshots missed between the batches of one step
-due = position % self.every_steps < self.model.steps_per_execution
+due = position % self.every_steps == 0
tests/training/test_fit.py -k snapshots_are_written
@@ processes stop by themselves
-return self._should_stop if self.agree is None else self._agreed
+return self._should_stop
tests/training/test_callbacks.py -k processes
@@ a run that another callback stops is not saved
-stops = self.stop.stopping or self.model.stop_training
+stops = self.stop.stopping
tests/training/test_fit.py -k another_callback
--- training/losses.py
@@ a short batch divided by its own size
-if self.nominal_batch_size is not None:
+if False:
tests/golden/test_training.py -k lr_per_epoch
@@ rows of padding counted as sentences
-counted = ops.any(counted, axis=-1)
+counted = ops.ones_like(counted[:, 0])
tests/training/test_losses.py
--- training/monitoring.py
@@ a first value of NaN is the best for ever
-better = not math.isnan(value)
+better = True
tests/training/test_callbacks.py
@@ no check within a step of several batches
-(batch + 1) % self.every_steps < self.model.steps_per_execution
+(batch + 1) % self.every_steps == 0
tests/training/test_nonfinite.py -k several_batches
--- training/optimizers.py
@@ the embeddings counted in the gradient's norm
-and (count_embeddings or variable.name != "embeddings")
tests/golden/test_model.py -k float64-noattn_rev1_feed0
@@ an optimizer that forgets whether embeddings count
-            "count_embeddings": self.count_embeddings,
tests/wiring
@@ Adam with the epsilon of Keras
-(ClippedAdam, {"epsilon": 1e-9})
+(ClippedAdam, {})
tests/wiring
@@ the last bad step named instead of the first
-ops.cast(self.nonfinite_steps == 0, is_bad.dtype)
+1
tests/training/test_nonfinite.py
@@ an optimizer that gets a row for each occurrence of a word
-[sum_equal_rows(g) if _is_sparse(g) else g for g in grads]
+list(grads)
tests/training/test_optimizers.py -k one_hot
--- training/schedules.py
@@ the halving one epoch early
-finetune_epoch * steps_per_epoch // period
+(finetune_epoch - 1) * steps_per_epoch // period
tests/golden/test_training.py -k lr_per_epoch
@@ the rule by iteration one update late
-halvings = step // period - (first - 1) // period
+halvings = (step - 1) // period - (first - 1) // period
tests/golden/test_training.py -k epochIter
@@ the rate of a run resumed in its first epoch read anew
-if epoch == 0 and not self._restored:
+if epoch == 0:
tests/training/test_schedules.py
--- training/snapshot_file.py
@@ no snapshot before this one
-atomic_path(path, _keep_previous(Path(path)), size)
+atomic_path(path)
tests/training/test_snapshot.py
--- training/training_progress.py
@@ a resumed epoch is shown from its beginning
-self._step = self._step or batch
+pass
tests/training/test_training_progress.py -k resumed_runs
--- training/weight_callbacks.py
@@ kept weights removed
-<= number - max(self.keep, 1)
+<= number - 1
tests/training/test_weights_of_runs.py
--- translator.py
@@ pairs in memory written without a lock
-before_writing=lock_pairs,
tests/test_translator.py -k second_call_leaves_the_pairs
"""
    )
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
    if not (ROOT / mutation.tests).exists():
        return False, f"no such test: {mutation.tests}"
    module = ROOT / PACKAGE / mutation.module
    text = mutation.apply(module.read_text(encoding="utf-8"))
    outcome = run_tests(
        [mutation.tests],
        changed={mutation.module: text},
        options=["-x", "-k", mutation.cases],
        backend=mutation.backend,
    )
    tests = mutation.tests
    if mutation.cases:
        tests += f" [{mutation.cases}]"
    if outcome.status == "no tests":
        return False, f"no such test: {tests}"
    if outcome.status == "failed":
        return True, outcome.tests[0]
    return False, f"{outcome.passed} tests passed in {tests}"


if __name__ == "__main__":
    main()
