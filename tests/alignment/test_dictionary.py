import numpy as np
import pytest

from luong_keras.alignment.dictionary import (
    WordPair,
    aligned_word_pairs,
    read_dictionary,
    write_dictionary,
)

PAIRS = [
    WordPair("Tür", "door", 20, 2 / 3),
    WordPair("Tür", "gate", 10, 1 / 3),
    # Subwords of a text that is not normalized.
    WordPair("\u3000!", "\xa0", 5, 0.5),
]


def test_most_probable_translation_wins_then_the_first(tmp_path):
    path = tmp_path / "dictionary"
    path.write_text("a x 0.2\na y 0.7\na z 0.7\nb w 1e-05\n\n")
    assert read_dictionary(path) == {"a": "y", "b": "w"}


def test_written_dictionary_can_be_read(tmp_path):
    path = tmp_path / "dictionary"
    write_dictionary(path, PAIRS)
    assert path.read_bytes().decode("utf-8") == (
        "Tür door 0.666667\nTür gate 0.333333\n\u3000! \xa0 0.5\n"
    )
    expected = {"Tür": "door", "\u3000!": "\xa0"}
    assert read_dictionary(path) == expected
    content = path.read_bytes().replace(b"\n", b"\r\n")
    path.write_bytes(b"\xef\xbb\xbf \r\n" + content)
    assert read_dictionary(path) == expected


def test_invalid_files_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent', which does not"):
        read_dictionary(tmp_path / "absent")
    with pytest.raises(FileNotFoundError, match="which is no file"):
        read_dictionary(tmp_path)
    path = tmp_path / "dictionary"
    for line in ("b y much", "b y nan", "a v 0.9 0.9", "c v"):
        path.write_text(f"a x 0.5\n\n{line}\n")
        message = f"Line 3 of .* three fields .*Received: '{line}'"
        with pytest.raises(ValueError, match=message):
            read_dictionary(path)
    path.write_bytes("a x 0.5\nTür y 0.5\n".encode("latin-1"))
    with pytest.raises(ValueError, match="Line 2 of .* is not UTF-8"):
        read_dictionary(path)


def test_file_is_replaced_completely_or_not_at_all(tmp_path):
    path = tmp_path / "dictionary"
    write_dictionary(path, PAIRS)
    before = path.read_bytes()

    def ends_midway():
        yield PAIRS[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_dictionary(path, ends_midway())
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["dictionary"]


def test_words_with_spaces_are_not_written(tmp_path):
    path = tmp_path / "dictionary"
    for words in (("xin chào", "hello"), ("a", "b\tc"), ("", "x")):
        with pytest.raises(ValueError, match=f"without spaces.*{words[0]!r}"):
            write_dictionary(path, [WordPair(*words, 2, 0.5)])
    assert not path.exists()


SENTENCES = [
    (["a", "b"], ["x", "y"], [(0, 0), (1, 1)]),
    (["a", "c"], ["x", "z"], [(0, 0), (0, 1), (1, 1)]),
]


def test_rare_pairs_are_left_out_but_counted():
    # Three of the five links leave a; two of them lead to x.
    pairs = aligned_word_pairs(SENTENCES, min_count=2)
    assert pairs == [("a", "x", 2, pytest.approx(2 / 3))]
    words = [pair[:3] for pair in aligned_word_pairs(SENTENCES, min_count=1)]
    rare = [("a", "z", 1), ("b", "y", 1), ("c", "z", 1)]
    assert words == [("a", "x", 2), *rare]


def test_links_of_words_outside_the_vocabularies_do_not_count():
    # Without c, only a has links to z; without y, b has no links.
    pairs = aligned_word_pairs(SENTENCES, {"a", "b"}, {"x", "z"}, 1)
    assert pairs == [
        ("a", "x", 2, pytest.approx(2 / 3)),
        ("a", "z", 1, pytest.approx(1 / 3)),
    ]


@pytest.mark.parametrize("link", [(2, 0), (0, 2), (-1, 0), (0, -1)])
def test_link_outside_its_sentences_is_refused(link):
    wrong = (["a", "b"], ["x", "y"], [link])
    with pytest.raises(ValueError, match=f"pair 3 .*{link[0]}-{link[1]}\\."):
        aligned_word_pairs([*SENTENCES, wrong])
    wrong = (["a"], [], [(0, 0)])
    with pytest.raises(ValueError, match="none, since a sentence is empty"):
        aligned_word_pairs([wrong])


def test_links_may_be_rows_of_an_array():
    given = [(*words, np.array(links)) for *words, links in SENTENCES]
    assert aligned_word_pairs(given) == aligned_word_pairs(SENTENCES)
