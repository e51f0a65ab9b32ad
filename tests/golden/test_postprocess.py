"""Results of the authors' scripts for small texts.

Each test has the name of a section of the file.
"""

import collections
import json
import math

import numpy as np
import pytest
import sacrebleu
from keras import ops

from luong_keras.alignment.dictionary import (
    aligned_word_pairs,
    read_dictionary,
    write_dictionary,
)
from luong_keras.decoding.unk_replacement import copied_positions
from luong_keras.special_tokens import UNK, UNK_ID
from tests.golden.golden_files import golden_path


def joined(text):
    """Join compounds whose hyphens are separate words."""
    return text.replace(" ##AT##-##AT## ", "-")


class Section(dict):
    """A section of the file that records which entries were used."""

    def __init__(self, entries):
        super().__init__(entries)
        self.unused = set(entries)

    def __getitem__(self, name):
        self.unused.discard(name)
        return super().__getitem__(name)


@pytest.fixture(scope="module")
def sections():
    text = golden_path("postprocess.json").read_text(encoding="utf-8")
    return json.loads(text)


@pytest.fixture
def section(request, sections):
    """Return the section of a test; fail if it leaves an entry out."""
    name = request.node.originalname.removeprefix("test_")
    section = Section(sections[name])
    yield section
    assert section.unused == set()


def test_every_section_has_a_test(sections):
    assert {f"test_{name}" for name in sections} <= set(globals())


def words_of(lines):
    return [line.split() for line in lines]


def first_links(links, targets, sources):
    """Return weights (T, S) with the first link of every target word."""
    weights = np.zeros((targets, sources), "float32")
    for i, j in reversed(links):
        weights[j] = np.eye(sources)[i]
    return weights


@pytest.mark.tensorflow
def test_unk_replace(section, tmp_path):
    import tensorflow as tf

    from luong_keras.inference.word_lists import UnknownWords

    path = tmp_path / "dictionary"
    lines = section["dict_lines"]
    # The authors' script skips lines that do not have three fields.
    lines = [f"{line}\n" for line in lines if len(line.split()) == 3]
    path.write_text("".join(lines), encoding="utf-8")
    dictionary = read_dictionary(path)
    unknown_words = UnknownWords(str(path))
    found, unknown, translated, copied = [], 0, 0, 0
    for words, source, links in zip(
        words_of(section["hyp"]),
        words_of(section["src"]),
        links_of(section["align_src_tgt"]),
        strict=True,
    ):
        ids = np.array([UNK_ID if word == UNK else -1 for word in words])
        weights = first_links(links, len(words), len(source))
        (row,) = unknown_words.replace(
            tf.constant([[ids]]),
            tf.constant([[weights]]),
            tf.constant([[words]]),
            tf.constant([source]),
        )
        replaced = [word.decode() for word in row[0].numpy()]
        found.append(joined(" ".join(replaced)))
        unknown += np.sum(ids == UNK_ID)
        places = ops.convert_to_numpy(copied_positions(ids, weights))
        sources = [source[place] for place in places if place >= 0]
        known = sum(word in dictionary for word in sources)
        translated, copied = translated + known, copied + len(sources) - known
    assert found == section["expected_out"]
    hypotheses = [joined(hypothesis) for hypothesis in section["hyp"]]
    assert hypotheses == section["expected_hyp_joined"]
    assert section["authors_stats"] == (
        f"# num sents = {len(found)}, unk count={unknown}, "
        f"dictionary_count={translated}, identity_count={copied}"
    )


def links_of(lines):
    """Return the links of each line in their order, with repetitions."""
    return [
        [tuple(map(int, link.split("-"))) for link in line.split()]
        for line in lines
    ]


def figures(pairs):
    """Yield p(t|s), p(s|t), their mean, pmi and npmi of each pair."""
    of_source, of_target = collections.Counter(), collections.Counter()
    for source, target, count, _ in pairs:
        of_source[source] += count
        of_target[target] += count
    total = of_source.total()
    for source, target, count, forward in pairs:
        backward = count / of_target[target]
        pmi = math.log(count * total / (of_source[source] * of_target[target]))
        npmi = pmi / -math.log(count / total)
        yield forward, backward, (forward + backward) / 2, pmi, npmi


def test_word_dict(section, tmp_path):
    words = {
        "source_words": set(section["src_vocab"]),
        "target_words": set(section["tgt_vocab"]),
    }
    sentences = list(
        zip(
            words_of(section["src"]),
            words_of(section["tgt"]),
            links_of(section["align_src_tgt"]),
            strict=True,
        )
    )
    pairs = aligned_word_pairs(sentences, min_count=1, **words)
    assert section["row_format"] == (
        "src tgt p(t|s) p(s|t) mean pmi npmi (each %g)"
    )
    rows = [
        " ".join([*pair[:2], *(f"{figure:g}" for figure in found)])
        for pair, found in zip(pairs, figures(pairs), strict=True)
        if pair.count >= section["min_count"]
    ]
    assert sorted(rows) == sorted(section["expected_rows"])
    path = tmp_path / "dictionary"
    frequent = aligned_word_pairs(
        sentences, min_count=section["min_count"], **words
    )
    write_dictionary(path, frequent)
    rows = [row.rsplit(" ", 4)[0] for row in section["expected_rows"]]
    assert path.read_text(encoding="utf-8").splitlines() == sorted(rows)


def multi_bleu(hypotheses, references):
    """Return the BLEU of tokenised text, as `multi-bleu.perl` does."""
    return sacrebleu.corpus_bleu(
        hypotheses,
        [references],
        tokenize="none",
        smooth_method="none",
        force=True,
    ).score


def test_length_analysis(section):
    # Groups of equal size, the shortest references first.
    pairs = zip(section["hyp"], section["ref"], strict=True)
    pairs = sorted(pairs, key=lambda pair: len(pair[1].split()))
    hypotheses, references = zip(*pairs, strict=True)
    table = ["bleu\tbleu_cum\tlen\tsize"]
    for start in range(0, len(pairs), section["group_size"]):
        stop = min(start + section["group_size"], len(pairs))
        group_bleu = multi_bleu(hypotheses[start:stop], references[start:stop])
        cumulative_bleu = multi_bleu(hypotheses[:stop], references[:stop])
        length = len(references[stop - 1].split())
        table.append(
            f"{group_bleu:.2f}\t{cumulative_bleu:.2f}\t"
            f"{length:.1f}\t{stop - start}"
        )
    assert table == section["authors_stdout"]


@pytest.mark.tensorflow
def test_vocab(section):
    import tensorflow as tf

    from luong_keras.text.word_tokenizer import WordTokenizer

    # Our vocabulary begins with <pad>, so every id is one larger.
    tokenizer = WordTokenizer.train(
        section["corpus"], section["size"] + 1, pretokenized=True
    )
    lines = tokenizer.file_bytes().decode().splitlines()
    assert lines[1:] == section["vocab"]
    ids = tokenizer.encode(tf.constant(section["corpus"])) - 1
    found = [" ".join(map(str, row)) for row in ids.to_list()]
    assert found == section["ids"]
