import numpy as np
import pytest

from luong_keras.config import DataConfig
from luong_keras.data.batch_order import Mixture
from luong_keras.data.batching import TrainingBatches
from luong_keras.data.corpus_writer import write_corpus
from luong_keras.data.sources.source_kinds import PlacedPair
from luong_keras.text.word_tokenizer import WordTokenizer

COUNTS = (40, 7, 53)
WORDS = WordTokenizer.from_words(["s", "t"])


def pairs_of_sources(counts):
    for part, count in enumerate(counts):
        for i in range(count):
            pair = PlacedPair("s " * (1 + i % 7), "t " * (1 + i % 5), "x:1")
            pair.part = part
            yield pair


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    return write_corpus(pairs_of_sources(COUNTS), folder)


def make(corpus, weights=(1, 2, 1), max_length=50, **options):
    arguments = corpus, WORDS, WORDS, 4, 1, max_length
    options = {"pool_batches": 5, "weights": weights, **options}
    return TrainingBatches(*arguments, **options)


def lines_of_epochs(batches, count):
    steps = np.arange(count * batches.steps_per_epoch).reshape(count, -1)
    return [np.concatenate([*map(batches.lines, epoch)]) for epoch in steps]


@pytest.mark.parametrize(
    "weights, max_length, shares",
    [
        ((1, 2, 1), 50, [25, 50, 25]),
        ((1, 1, 1), 50, [34, 33, 33]),
        ((0.98, 0.01, 0.01), 50, [98, 1, 1]),
        # Pairs that are dropped count for no source.
        ((1, 1, 1), 3, [10, 10, 10]),
    ],
)
def test_weights_set_shares_of_an_epoch(corpus, weights, max_length, shares):
    assert corpus.parts == list(COUNTS)
    batches = make(corpus, weights, max_length)
    assert batches.pairs_per_epoch == sum(shares)
    sources = np.repeat(range(3), COUNTS)
    for lines in lines_of_epochs(batches, 3):
        assert np.bincount(sources[lines]).tolist() == shares


def test_a_source_continues_across_epochs(corpus):
    """Check that a source is read completely before pairs are repeated."""
    drawn = np.concatenate(lines_of_epochs(make(corpus), 8))
    times_of_all = np.bincount(drawn, minlength=sum(COUNTS))
    for times in np.split(times_of_all, np.cumsum(COUNTS)[:-1]):
        # The last pass over the source may be incomplete.
        assert times.max() - times.min() <= 1
        assert times.sum() >= 2 * len(times)


def test_sources_and_epochs_have_different_orders():
    mixture = Mixture([50, 50], [1, 1], seed=1)
    found = [mixture.pairs(0, 100, epoch).tolist() for epoch in range(3)]
    # The order of existing runs stays.
    assert found[0][:9] == [20, 86, 85, 65, 53, 44, 62, 5, 50]
    sources = [[p for p in places if p < 50] for places in found]
    other = [[p - 50 for p in places if p >= 50] for places in found]
    assert len({tuple(o) for o in (*sources, *other, range(50))}) == 7
    turned = Mixture([50, 50], [1, 1], seed=2).pairs(0, 100, 0)
    assert turned.tolist() != found[0]


def test_each_pass_over_a_source_is_reshuffled():
    # A pass of the first source is two epochs long.
    mixture = Mixture([100, 100], [1, 3], seed=1)
    halves = [
        frozenset(p for p in mixture.pairs(0, 200, epoch) if p < 100)
        for epoch in range(6)
    ]
    assert all(len(half) == 50 for half in halves)
    for first, second in zip(halves[::2], halves[1::2], strict=True):
        assert first | second == {*range(100)}
    assert len(set(halves)) == 6


def test_resuming_and_process_shares_give_the_same_batches(corpus):
    batches = make(corpus)
    straight = [
        {name: x.numpy().tolist() for name, x in batch.items()}
        for batch in batches.dataset(0, 60)
    ]
    # Across the end of an epoch.
    assert straight[23:27] == [
        {name: x.numpy().tolist() for name, x in batch.items()}
        for batch in make(corpus).dataset(23, 27)
    ]
    halves = [list(batches.dataset(0, 3, rank, 2)) for rank in (0, 1)]
    for whole, one, two in zip(straight, *halves, strict=False):
        both = np.concatenate([one["source"], two["source"]])
        assert both.tolist() == whole["source"]


def test_unweighted_sources_act_as_one_text(corpus, tmp_path):
    pairs = [tuple(pair) for pair in pairs_of_sources(COUNTS)]
    one = make(write_corpus(pairs, tmp_path), weights=None)
    several = make(corpus, weights=None)
    assert one.fingerprint == several.fingerprint
    np.testing.assert_array_equal(
        lines_of_epochs(one, 2), lines_of_epochs(several, 2)
    )
    prints = {make(corpus, w).fingerprint for w in (None, (1, 2, 1), (1, 1, 1))}
    assert len(prints) == 3


def test_invalid_weights_are_refused(corpus):
    with pytest.raises(ValueError, match="2 weights"):
        make(corpus, (1, 2))
    with pytest.raises(ValueError, match=r"sources of \[40, 7, 53, 0\] pairs"):
        make(corpus, (1, 1, 1, 1))
    for weight in (0, np.nan, np.inf, 1e308):
        with pytest.raises(ValueError, match="must be positive and finite"):
            make(corpus, (1, weight, 1e308))
    # A weight that is too small, and the smallest one.
    with pytest.raises(ValueError, match="weight 1 among .* least 20.2,"):
        make(corpus, (1000, 1, 1000))
    assert make(corpus, (1000, 20.2, 1000)).pairs_per_epoch == 100
    with pytest.raises(ValueError, match="takes them in their order"):
        make(corpus, batching="authors")
    for values, message in (
        ({"weights": (1.0, 0.0)}, "positive"),
        ({"weights": (1.0, 2.0, 3.0)}, "3 weights and train="),
        ({"weights": (1.0, 2.0), "batching": "authors"}, "Leave one out"),
    ):
        with pytest.raises(ValueError, match=message):
            DataConfig("files", train=("a.tsv", "b.tsv"), **values)
