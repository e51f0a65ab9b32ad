"""What the authors' own scripts made of small texts.

A test has the name of its section of the file.
"""

import json

import pytest

from luong_keras.alignment.dictionary import (
    read_dictionary,
    write_dictionary,
)
from luong_keras.alignment.links import parse_links
from luong_keras.alignment.word_pairs import aligned_word_pairs
from luong_keras.decoding.unk_replacement import replace_unknown_words
from luong_keras.evaluation.length_analysis import bleu_by_reference_length
from tests.golden.golden_files import golden_path


def joined(text):
    """The text with whole compounds, whose hyphens are words of their own."""
    return text.replace(" ##AT##-##AT## ", "-")


class Section(dict):
    """A section of the file that knows which entries were used."""

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
    """The test's section; fails where the test leaves an entry out."""
    name = request.node.originalname.removeprefix("test_")
    section = Section(sections[name])
    yield section
    assert section.unused == set()


def test_every_section_has_a_test(sections):
    assert {f"test_{name}" for name in sections} <= set(globals())


def words_of(lines):
    return [line.split() for line in lines]


def test_unk_replace(section, tmp_path):
    path = tmp_path / "dictionary"
    lines = section["dict_lines"]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    dictionary = read_dictionary(path)
    assert dictionary.skipped == sum(len(line.split()) != 3 for line in lines)
    replaced = [
        replace_unknown_words(hypothesis, source, links, dictionary.words)
        for hypothesis, source, links in zip(
            words_of(section["hyp"]),
            words_of(section["src"]),
            parse_links(section["align_src_tgt"]),
            strict=True,
        )
    ]
    found = [joined(" ".join(result.words)) for result in replaced]
    assert found == section["expected_out"]
    hypotheses = [joined(hypothesis) for hypothesis in section["hyp"]]
    assert hypotheses == section["expected_hyp_joined"]
    translated = sum(result.translated for result in replaced)
    copied = sum(result.copied for result in replaced)
    unknown = translated + copied + sum(result.kept for result in replaced)
    assert section["authors_stats"] == (
        f"# num sents = {len(replaced)}, unk count={unknown}, "
        f"dictionary_count={translated}, identity_count={copied}"
    )


def test_word_dict(section, tmp_path):
    pairs = aligned_word_pairs(
        zip(
            words_of(section["src"]),
            words_of(section["tgt"]),
            parse_links(section["align_src_tgt"]),
            strict=True,
        ),
        source_words=set(section["src_vocab"]),
        target_words=set(section["tgt_vocab"]),
        min_count=section["min_count"],
    )
    assert section["row_format"] == (
        "src tgt p(t|s) p(s|t) mean pmi npmi (each %g)"
    )
    path = tmp_path / "dictionary"
    write_dictionary(path, pairs, all_figures=True)
    rows = path.read_text(encoding="utf-8").splitlines()
    assert sorted(rows) == sorted(section["expected_rows"])


def test_length_analysis(section):
    groups = bleu_by_reference_length(
        section["hyp"], section["ref"], section["group_size"]
    )
    table = ["bleu\tbleu_cum\tlen\tsize"]
    for bleu, cumulative, length, sentences in groups:
        table.append(f"{bleu:.2f}\t{cumulative:.2f}\t{length:.1f}\t{sentences}")
    assert table == section["authors_stdout"]


@pytest.mark.tensorflow
def test_vocab(section):
    import tensorflow as tf

    from luong_keras.text.word_tokenizer import WordTokenizer

    # Ours has <pad> before the authors' first id, so every id is one more.
    tokenizer = WordTokenizer.train(
        section["corpus"], section["size"] + 1, pretokenized=True
    )
    lines = tokenizer.file_bytes().decode().splitlines()
    assert lines[1:] == section["vocab"]
    ids = tokenizer.encode(tf.constant(section["corpus"])) - 1
    found = [" ".join(map(str, row)) for row in ids.to_list()]
    assert found == section["ids"]
