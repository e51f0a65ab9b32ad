"""Translations made from the arrays of an answer."""

import json

import numpy as np
import pytest

from luong_keras.inference.translation import (
    NBest,
    Translation,
    scored_translation_of,
    translations_of,
)
from tests.serving.answered_arrays import (
    ANSWERS,
    SCORED,
    SEARCHED,
    arrays,
    check,
    translations,
)


def rows_of(answer):
    """Split the arrays of three sentences."""
    return [{name: answer[name][i] for name in answer} for i in range(3)]


@pytest.mark.parametrize("step", ["produces", "reads"])
def test_translations_of_every_sentence(step):
    answer = arrays(SEARCHED)
    found = [translations_of(row, step) for row in rows_of(answer)]
    check(found, translations(step))
    if step == "produces":
        check(translations_of(rows_of(answer)[2]), translations(step)[2])


def test_translation_cut_at_the_end_of_the_batch():
    # No row follows the last word, which the step that produces it aligns.
    answer = arrays(SEARCHED)
    for name in ("tokens", "alignments"):
        answer[name] = answer[name][:, :, :2]
    (cut, _) = translations_of(rows_of(answer)[0], "reads")
    check(cut, translations("reads")[0][0])


def test_translations_without_attention_have_no_links():
    answer = arrays(SEARCHED)
    answer["alignments"] = np.zeros((3, 2, 4, 3), "float32")
    for step in ("produces", "reads"):
        for row in rows_of(answer):
            found = translations_of(row, step)
            assert [t.links for t in found] == [[]] * len(found)


def test_scored_translation_of_every_pair():
    answer = arrays(ANSWERS["align_pair"])
    check([scored_translation_of(row) for row in rows_of(answer)], SCORED)


def test_results_are_compared_without_their_arrays():
    searched, pairs = arrays(SEARCHED), arrays(ANSWERS["align_pair"])
    for read, answer in (
        (translations_of, searched),
        (scored_translation_of, pairs),
    ):
        found, same = ([*map(read, rows_of(answer))] for _ in range(2))
        assert found == same and found[0] != found[2]
    assert found[2] in same and len({*found, *same}) == 3
    assert len({*translations_of(rows_of(searched)[0])}) == 2


def test_a_translation_as_json():
    weights = np.ones((1, 2))
    found = Translation("Tür", -0.5, ["t"], ["d", "o"], weights, [(1, 0)], True)
    assert json.dumps(found.as_dict()) == '{"text": "T\\u00fcr", "score": -0.5}'
    assert found.as_dict(links=True) == {
        "text": "Tür",
        "score": -0.5,
        "tokens": ["t"],
        "source_tokens": ["d", "o"],
        "links": [(1, 0)],
    }


def test_n_best_lists_print_as_a_table():
    found = translations_of(rows_of(arrays(SEARCHED))[0])
    assert repr(found).splitlines() == [
        "score  translation",
        "-0.50  Tür auf",
        "-2.50  x",
    ]
    both = NBest([found, NBest()])
    assert repr(both).splitlines()[1:] == [
        "1         -0.50  Tür auf",
        "1         -2.50  x",
    ]
    assert "<td>Tür auf</td></tr><tr><td>-2.50</td>" in found._repr_html_()
    # Without the arrays.
    assert repr(found[0]) == (
        "Translation(text='Tür auf', score=-0.5, truncated=False)"
    )
