"""Beam search that draws a sample without replacement (Kool et al. 2019)."""

from keras import ops

from luong_keras.decoding.argument_checks import check_positive
from luong_keras.decoding.beam import (
    Beam,
    Candidates,
    FinishedHypotheses,
    alone,
    best_of,
    no_finished_hypotheses,
)
from luong_keras.decoding.sampling import gumbel, of_each, seed_column
from luong_keras.decoding.strategy import FinalHypotheses, StepOutput, StepState
from luong_keras.decoding.top_words import (
    NEVER,
    at_most,
    gather_beams,
    largest,
    top_k,
)
from luong_keras.ops import masking
from luong_keras.ops.batch_compaction import column


class StochasticBeam(Beam):
    """K different translations, drawn from what the model says.

    "Stochastic beams and where to find them" (Kool et al. 2019): a beam whose
    hypotheses rank by their log-probability and Gumbel noise, where the noise
    of a hypothesis is the largest of all that may follow it. The result is a
    sample of K translations without replacement: the first one drawn is a
    sample of the model, the next one of what is left, and so on.

    Results are ordered by score, which is the model's log-probability at
    temperature 1 and what the scorers make of it; the drawing does not see
    what they do to finished hypotheses.

    Args:
        size: K.
        temperature: what logits are divided by before they are drawn from,
            a number, or one for each sentence, (B,).
        seeds: (B,) int32; 0 for all sentences when None.
    """

    per_sentence = ("temperature", "seeds")

    def __init__(self, size, temperature=1.0, seeds=None):
        super().__init__(size)
        check_positive(temperature=temperature)
        self.temperature = column(temperature)
        self.seeds = column(seeds)

    def initialize(self, state: StepState) -> StepOutput:
        k = self.num_hypotheses
        zeros = ops.zeros_like(state.scores)
        columns = [
            each[:, 0, :k] for each in self._proposed(state, zeros, zeros)
        ]
        missing = [(0, 0), (0, k - columns[0].shape[-1])]
        perturbed, tempered, scores = (
            ops.pad(each, missing, constant_values=NEVER)
            for each in columns[:3]
        )
        words = ops.pad(columns[3], missing)
        words = ops.where(state.unfinished[:, None], words, state.pad_id)
        perturbed, tempered, scores = (
            alone(state.unfinished, each)
            for each in (perturbed, tempered, scores)
        )
        pool = no_finished_hypotheses(
            ops.shape(words)[0], k, zeros.dtype, more=1
        )
        unfinished = state.max_lengths >= 2
        strategy_state = (pool, perturbed, tempered)
        return StepOutput(
            words, ops.zeros_like(words), scores, unfinished, strategy_state
        )

    def step(self, state: StepState, strategy_state) -> StepOutput:
        pool, perturbed, tempered = strategy_state
        found = self._candidates(state, (perturbed, tempered))
        pool = self._with_finished(pool, found, state)
        output, order = self._live(state, found, perturbed)
        perturbed = output.scores
        grows = state.unfinished[:, None]
        tempered, scores = (
            ops.where(grows, new, old)
            for new, old in zip(
                gather_beams(found.more, order),
                (tempered, state.scores),
                strict=True,
            )
        )
        return output._replace(
            scores=scores,
            unfinished=self._continues(state, pool, perturbed),
            strategy_state=(pool, perturbed, tempered),
        )

    def finalize(self, state: StepState, strategy_state) -> FinalHypotheses:
        pool, perturbed, _ = strategy_state
        slots, final = self._live_results(state, state.scores)
        # What was cut at its limit was drawn like all else.
        maximum = ops.zeros_like(slots) + state.max_lengths[:, None]
        live = FinishedHypotheses(perturbed, slots, maximum, (final,))
        merged = best_of(pool, live, self.num_hypotheses)
        empty = merged.ranking < NEVER / 2
        (scores,) = merged.more
        scores = ops.where(empty, -float("inf"), scores)
        scores, order = largest(scores, self.num_hypotheses)
        slots, lengths = gather_beams(merged[1:3], order)
        found = scores > -float("inf")
        lengths = ops.where(found, lengths, 0)
        ended = found & (lengths < state.max_lengths[:, None])
        ends = ops.where(ended, lengths, -1)
        return FinalHypotheses(scores, slots, lengths, ends)

    def _candidates(self, state, strategy_state):
        proposed = self._proposed(state, *strategy_state)
        proposals, k = proposed[0].shape[-1], self.num_hypotheses
        perturbed, tempered, scores, words = (
            ops.reshape(each, (-1, k * proposals)) for each in proposed
        )
        totals, order = largest(perturbed, min(2 * k, k * proposals))
        order = ops.cast(order, "int32")
        tempered, scores, words = gather_beams((tempered, scores, words), order)
        parents = order // proposals
        return Candidates(totals, parents, words, (tempered, scores))

    def _proposed(self, state, perturbed, tempered):
        """The words of every hypothesis whose noise is largest.

        Of each, (B, K, P): its perturbed log-probability, the one that was
        drawn from, the score, and the word.
        """
        logits = masking.upcast(state.logits)
        gains = logits - ops.logsumexp(logits, axis=-1, keepdims=True)
        bonus = state.bonus
        if bonus is not None:
            gains = gains + ops.cast(bonus, gains.dtype)
        drawn = ops.where(
            self._forbidden(state, state.vocabulary_size),
            NEVER,
            gains / of_each(self.temperature, gains.dtype),
        )
        possible = ops.max(drawn, axis=-1, keepdims=True) > NEVER / 2
        drawn = ops.where(possible, ops.log_softmax(drawn, axis=-1), NEVER)
        drawn = drawn + tempered[..., None]
        noisy = self._perturbed(state, drawn, perturbed[..., None])
        size = at_most(max(self.num_hypotheses, 2), state.vocabulary_size)
        noisy, words = top_k(noisy, size)
        return (
            noisy,
            ops.take_along_axis(drawn, words, axis=-1),
            ops.take_along_axis(gains, words, axis=-1)
            + state.scores[..., None],
            words,
        )

    @staticmethod
    def _forbidden(state, size):
        """Words that cannot be drawn, to fit (B, K, V)."""
        least = ops.maximum(state.min_lengths, 1)
        ends = ops.arange(size, dtype="int32") == state.eos_id
        forbidden = (state.position < least)[:, None, None] & ends
        suppressed = state.suppressed
        return forbidden if suppressed is None else forbidden | suppressed

    def _perturbed(self, state, drawn, parents):
        """Log-probabilities with noise whose largest is their parent's."""
        k, size = ops.shape(drawn)[1:]
        noise = gumbel(
            seed_column(self.seeds)[..., None],
            ops.arange(k, dtype="int32")[:, None],
            state.position,
            ops.arange(size, dtype="int32"),
        )
        noisy = drawn + ops.cast(noise, drawn.dtype)
        largest = ops.max(noisy, axis=-1, keepdims=True)
        # -log(exp(-parent) - exp(-largest) + exp(-noisy)), appendix B.3 of
        # Kool et al., without the overflow of its exponentials.
        below = ops.minimum(noisy - largest, -1e-30)
        gap = parents - noisy + ops.log(-ops.expm1(below))
        found = parents - ops.relu(gap) - ops.log1p(ops.exp(-ops.abs(gap)))
        found = ops.where(noisy >= largest, parents, found)
        return ops.where(drawn > NEVER / 2, found, NEVER)

    def _ranked(self, state, found):
        final = state.final(found.more[1], found.parents)
        return found.totals, final

    def _settled(self, state, pool, scores):
        """Mask of the sentences whose sample is complete."""
        worst = pool.ranking[:, -1]
        return (worst > NEVER / 2) & (worst >= scores[:, 0])
