"""Links as text: order, marks, one-based positions and errors."""

import pytest

from luong_keras.alignment.links import format_links, marked_links, parse_links


def test_links_keep_their_order_and_repetitions():
    first, empty = parse_links(["3-0 0p2 1?1 3-0\n", "\n"])
    assert first == ((3, 0), (0, 2), (1, 1), (3, 0))
    assert empty == ()


def test_marks_distinguish_sure_and_possible_links():
    (links,) = marked_links(["1-2 10p11 1?1"], one_based=True)
    assert links == [((0, 1), True), ((9, 10), False), ((0, 0), False)]


def test_malformed_links_name_their_line():
    with pytest.raises(ValueError, match="'1:2' in line 2"):
        parse_links(["0-0", "0-0 1:2"])
    with pytest.raises(ValueError, match="'0-1' in line 1"):
        parse_links(["0-1"], one_based=True)


def test_formatted_links_equal_the_parsed_text():
    text = "0-1 2-0 2-10 10-2"
    assert format_links(set(parse_links([text])[0])) == text
    assert format_links([]) == ""
