import numpy as np
import pytest
import tensorflow as tf

from luong_keras.data.batching import TrainingBatches
from luong_keras.data.corpus_writer import write_corpus
from luong_keras.data.padding import WIDTHS
from luong_keras.data.token_ids import TokenIds, token_ids
from luong_keras.special_tokens import UNK_ID
from luong_keras.text.sentencepiece_tokenizer import SentencePieceTokenizer
from luong_keras.text.word_tokenizer import WordTokenizer

COUNT = 103
# The source of pair i begins with n{i} and has 1 to 7 words; its target has 1
# to 5.
PAIRS = [
    (" ".join([f"n{i}"] + ["s"] * (i % 7)), " ".join(["t"] * (1 + i % 5)))
    for i in range(COUNT)
]
WORDS = WordTokenizer.from_words(["s", "t", *(f"n{i}" for i in range(COUNT))])
FIRST_ID = 6  # The id of "n0".


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(PAIRS, tmp_path_factory.mktemp("corpus"))


def make(corpus, seed=1, batch_size=4, max_length=50, **options):
    options = {"pool_batches": 5, **options}
    return TrainingBatches(
        corpus, WORDS, WORDS, batch_size, seed, max_length, **options
    )


def as_lists(dataset):
    return [
        {name: array.tolist() for name, array in batch.items()}
        for batch in dataset.as_numpy_iterator()
    ]


def pair_numbers(batches):
    """Return the pair numbers of each batch."""
    return [[row[0] - FIRST_ID for row in batch["source"]] for batch in batches]


def test_an_epoch_has_each_pair_once_in_full_batches(corpus, full_run):
    batches = make(corpus)
    assert batches.pairs_per_epoch == COUNT
    assert batches.steps_per_epoch == 26
    assert batches.pools_per_epoch == 6
    epoch = pair_numbers(full_run[:26])
    assert sorted(sum(epoch, [])) == list(range(COUNT))
    # Only the last pool has a smaller batch.
    assert [len(batch) for batch in epoch[:25]] == [4] * 25
    assert len(epoch[25]) == 3


def test_epochs_and_seeds_have_different_orders(corpus, full_run):
    two = pair_numbers(full_run[:52])
    # Pairs also move between pools, beyond the shuffling of batches.
    assert set(sum(two[:5], [])) != set(sum(two[26:31], []))
    assert two[:26] != two[26:]
    assert sorted(sum(two[26:], [])) == list(range(COUNT))
    other = pair_numbers(as_lists(make(corpus, seed=2).dataset(0, 26)))
    assert set(sum(other[:5], [])) != set(sum(two[:5], []))


@pytest.fixture(scope="module")
def full_run(corpus):
    return as_lists(make(corpus).dataset(0, 60))


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "start, stop",
    [(1, 60), (5, 60), (13, 60), (25, 60), (26, 60), (58, 60), (8, 12)],
)
def test_any_range_of_steps_has_the_same_batches(corpus, full_run, start, stop):
    resumed = make(corpus).dataset(start, stop)
    assert int(resumed.cardinality()) == stop - start
    assert as_lists(resumed) == full_run[start:stop]


def test_an_empty_range_gives_an_empty_dataset(corpus):
    for step in 0, 7:
        assert as_lists(make(corpus).dataset(step, step)) == []


def test_earlier_batches_are_not_read(corpus, monkeypatch):
    batches = make(corpus)
    read = []
    rows_of = TokenIds.rows

    def note(self, lines, *options):
        read.append(len(lines))
        return rows_of(self, lines, *options)

    monkeypatch.setattr(TokenIds, "rows", note)
    as_lists(batches.dataset(8, 9))  # The fourth batch of the second pool.
    assert read == [4, 4]


def test_batches_hold_pairs_of_similar_length(corpus):
    def padding_share(pool_batches):
        batches = make(corpus, pool_batches=pool_batches).dataset(0, 26)
        ids = [x for b in as_lists(batches) for x in sum(b.values(), [])]
        return np.mean(np.concatenate(ids) == 0)

    assert padding_share(26) < padding_share(1) / 2


def test_authors_batching_sorts_each_chunk_by_target_length(corpus):
    batches = make(corpus, batching="authors", pool_batches=3)
    default = make(corpus, batching="authors", pool_batches=None)
    assert default.pool_batches == 100
    expected = []
    for first in range(0, COUNT, 12):
        chunk = range(first, min(first + 12, COUNT))
        by_length = sorted(chunk, key=lambda i: i % 5)  # stable
        expected += [by_length[i : i + 4] for i in range(0, len(by_length), 4)]
    assert batches.steps_per_epoch == 26
    assert pair_numbers(as_lists(batches.dataset(0, 26))) == expected
    assert pair_numbers(as_lists(batches.dataset(26, 29))) == expected[:3]


SOURCE = WordTokenizer.from_words(list("abcde"))  # a is 4
TARGET = WordTokenizer.from_words(list("vwxyzu"))  # v is 4


@pytest.mark.parametrize(
    ("over_long", "counts", "sources"),
    [
        ("drop", (2, 0), [[7, 8], [8, 0]]),
        ("truncate", (0, 2), [[7, 8], [4, 5], [8, 0], [4, 5]]),
        ("truncate_source_left", (0, 2), [[7, 8], [6, 7], [8, 0], [5, 6]]),
    ],
)
def test_batches_of_each_over_long_option(tmp_path, over_long, counts, sources):
    pairs = [("a b c d", "w x y z"), ("e", "v w"), ("a b c", "v x")]
    corpus = write_corpus([*pairs, ("d e", "u")], tmp_path)
    arguments = SOURCE, TARGET, 4, 1, 2, over_long, "authors"
    batches = TrainingBatches(corpus, *arguments)
    assert (batches.dropped, batches.cut) == counts
    (batch,) = as_lists(batches.dataset(0, 1))
    # Sorted by the length of the cut target, which always loses its last words.
    targets_in = [[2, 9, 0], [2, 5, 6], [2, 4, 5], [2, 4, 6]]
    targets_out = [[9, 3, 0], [5, 6, 3], [4, 5, 3], [4, 6, 3]]
    if over_long == "drop":
        del targets_in[1::2], targets_out[1::2]
    expected = {"target_in": targets_in, "target_out": targets_out}
    assert batch == {"source": sources, **expected}


def test_pairs_with_over_long_sides_are_counted_once(tmp_path):
    pairs = [("a", "v"), ("a b", "v"), ("a", "v w"), ("a b", "v w")]
    corpus = write_corpus(pairs, tmp_path)
    for limit, dropped in ((2, 0), (1, 3)):
        arguments = (corpus, SOURCE, TARGET, 4, 1, limit)
        batches = TrainingBatches(*arguments)
        assert (batches.dropped, batches.cut) == (dropped, 0)
        assert batches.pairs_per_epoch == 4 - dropped
        cut = TrainingBatches(*arguments, "truncate")
        assert (cut.dropped, cut.cut, cut.pairs_per_epoch) == (0, dropped, 4)


def test_pairs_without_tokens_are_left_out(tmp_path):
    text = ["a cat sat here"] * 3
    subwords = SentencePieceTokenizer.train(text, 20)
    # SentencePiece deletes zero width spaces: no token is left.
    corpus = write_corpus([("a cat", "cat"), ("\u200b", "cat")], tmp_path)
    batches = TrainingBatches(corpus, subwords, subwords, 2, 1, 50)
    assert (batches.empty, batches.pairs_per_epoch) == (1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("size", [65_536, 65_537])
def test_ids_are_cached_per_text_and_tokenizer(tmp_path, size):
    corpus = write_corpus(PAIRS, tmp_path)
    calls = []

    class Counting(WordTokenizer):
        vocabulary_size = size

        def encode(self, text):
            calls.append(1)
            ids = super().encode(text)
            return tf.where(ids == 4, size - 1, ids)  # The largest id.

    tokenizer = Counting.from_words(["s"])
    expected = [[UNK_ID] + [size - 1] * (i % 7) for i in range(COUNT)]

    def check():
        found = token_ids(corpus, "source", tokenizer)
        ids = found.rows(np.arange(COUNT), 50)
        assert [row.tolist() for row in ids] == expected
        assert found.lengths.tolist() == list(map(len, expected))

    for _ in range(2):
        check()
    assert len(calls) == 1
    for count, kind in enumerate(("ids.*.bin", "offsets.*.npy"), start=2):
        file = next(tmp_path.glob(f"source.{kind}"))
        # Truncated files are rewritten.
        file.write_bytes(file.read_bytes()[:-40])
        check()
        assert len(calls) == count
    token_ids(corpus, "target", tokenizer)
    token_ids(corpus, "source", Counting.from_words(["s", "u"]))
    assert len(calls) == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "`batch_size` must be an integer and at least 1"),
        ({"batch_size": 1.5}, "Received: batch_size=1.5"),
        ({"seed": -1}, "`seed` must be an integer and at least 0"),
        ({"max_length": 0}, "`max_length` must be an integer and at least 1"),
        (
            {"pool_batches": 0},
            "`pool_batches` must be an integer and at least 1",
        ),
        ({"over_long": "split"}, "`over_long`"),
    ],
)
def test_invalid_arguments_are_refused(corpus, options, message):
    with pytest.raises(ValueError, match=message):
        make(corpus, **options)


def test_one_pair_fills_every_epoch_if_it_is_usable(tmp_path):
    corpus = write_corpus([("n0 s s", "t t t")], tmp_path)
    batches = make(corpus)
    assert pair_numbers(as_lists(batches.dataset(0, 3))) == [[0]] * 3
    with pytest.raises(ValueError, match="No pair is left"):
        make(corpus, max_length=2)


def test_a_pool_is_sorted_by_target_then_source_length(corpus):
    lines = np.concatenate(make(corpus).pool_lines(3, 2))
    lengths = [(1 + line % 5, 1 + line % 7) for line in lines]
    groups = [lengths[i : i + 4] for i in range(0, 20, 4)]
    assert all(group == sorted(group) for group in groups)
    flat = sum(sorted(groups), [])
    assert flat == sorted(lengths)


@pytest.mark.slow_after_first
@pytest.mark.parametrize("world, row_multiple", [(2, None), (3, None), (2, 8)])
def test_processes_share_each_batch(corpus, full_run, world, row_multiple):
    batches = make(corpus)
    found = [
        as_lists(batches.dataset(0, 27, rank, world, row_multiple))
        for rank in range(world)
    ]
    multiple = row_multiple or world
    for whole, *shares in zip(full_run, *found, strict=False):
        size = -(-len(whole["source"]) // multiple) * multiple
        for name, expected in whole.items():
            own_rows = [batch[name] for batch in shares]
            assert {len(share) for share in own_rows} == {size // world}
            together = sum(own_rows, [])
            assert together[: len(expected)] == expected
            # Added rows are all padding, without `<s>`.
            width = len(expected[0])
            rest = [[0] * width] * (size - len(expected))
            assert together[len(expected) :] == rest


def test_batches_are_padded_to_the_given_widths(corpus, full_run):
    batches = make(corpus)
    found = as_lists(batches.dataset(0, 27, widths=(3, 6)))
    for whole, batch in zip(full_run, found, strict=False):
        for name, expected in whole.items():
            width = len(expected[0])
            wide = 3 if width <= 3 else 6 if width <= 6 else width
            assert batch[name] == [r + [0] * (wide - width) for r in expected]


def test_default_widths_grow_in_small_steps():
    assert list(WIDTHS) == sorted(set(WIDTHS))
    assert WIDTHS[0] == 8 and len(WIDTHS) < 30 <= 10_000 < WIDTHS[-1]
    steps = np.array(WIDTHS)
    assert ((steps[1:] - steps[:-1]) % 4 == 0).all()
    assert (steps[1:] <= np.maximum(1.35 * steps[:-1], steps[:-1] + 4)).all()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((-1, 3), "start_step"),
        ((4, 3), "start_step"),
        ((0, 1, 2, 2), "rank=2, world=2"),
        ((0, 1, -1, 2), "rank=-1"),
        ((0, 1, 0, 2, 3), "row_multiple=3, world=2"),
    ],
)
def test_invalid_ranges_and_shares_are_refused(corpus, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(corpus).dataset(*arguments)
