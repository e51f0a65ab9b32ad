"""Dictionary files."""

import pytest

from luong_keras.alignment.dictionary import (
    read_dictionary,
    write_dictionary,
)
from luong_keras.alignment.word_pairs import WordPair

PAIRS = [
    WordPair("Tür", "door", 20, 2 / 3),
    WordPair("Tür", "gate", 10, 1 / 3),
    # Subwords of a text that is not normalized.
    WordPair("\u3000!", "\xa0", 5, 0.5),
]


def test_most_probable_translation_wins_then_the_first(tmp_path):
    path = tmp_path / "dictionary"
    path.write_text(
        "a x 0.2\na y 0.7\na z 0.7\nb w 1e-05\n\n",
        encoding="utf-8",
    )
    assert read_dictionary(path) == {"a": "y", "b": "w"}


def test_written_dictionary_can_be_read(tmp_path):
    path = tmp_path / "dictionary"
    write_dictionary(path, PAIRS)
    assert path.read_bytes().decode("utf-8") == (
        "Tür door 0.666667\nTür gate 0.333333\n\u3000! \xa0 0.5\n"
    )
    expected = {"Tür": "door", "\u3000!": "\xa0"}
    assert read_dictionary(path) == expected
    path.write_bytes(b" \r\n" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert read_dictionary(path) == expected


def test_byte_order_mark_belongs_to_no_word(tmp_path):
    path = tmp_path / "dictionary"
    path.write_text("door Tür 0.5\ncat Katze 1\n", "utf-8-sig")
    assert read_dictionary(path) == {"door": "Tür", "cat": "Katze"}


def test_invalid_files_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent', which does not"):
        read_dictionary(tmp_path / "absent")
    with pytest.raises(FileNotFoundError, match="which is no file"):
        read_dictionary(tmp_path)
    path = tmp_path / "dictionary"
    path.write_text("a x 0.5\nb y much\n")
    with pytest.raises(ValueError, match="'much' in line 2"):
        read_dictionary(path)
    path.write_text("a x 0.5\nb y nan\n")
    with pytest.raises(ValueError, match="'nan' in line 2"):
        read_dictionary(path)
    path.write_bytes("a x 0.5\nTür y 0.5\n".encode("latin-1"))
    with pytest.raises(ValueError, match="Line 2 of .* is not UTF-8"):
        read_dictionary(path)
    for line in ("a v 0.9 0.9", "c v"):
        path.write_text(f"a x 0.5\n\n{line}\n")
        with pytest.raises(ValueError, match="Line 3 of .* three fields"):
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
