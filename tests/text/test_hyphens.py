"""Compounds that were split at their hyphens."""

import pytest

from luong_keras.text.hyphens import HYPHEN, join_hyphens


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        (f"a {HYPHEN} b {HYPHEN} c d", "a-b-c d"),
        # Without a word on either side it stays.
        (f"{HYPHEN} b", f"{HYPHEN} b"),
        (f"a {HYPHEN}", f"a {HYPHEN}"),
        ("a - b", "a - b"),
    ],
)
def test_hyphens_join_two_words(text, joined):
    assert join_hyphens(text) == joined
