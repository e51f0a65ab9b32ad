import pytest

from luong_keras.cli.train import seconds


@pytest.mark.parametrize(
    "text, expected",
    [
        ("45s", 45),
        ("90m", 5400),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("2d", 172_800),
        ("0s", 0),
    ],
)
def test_durations(text, expected):
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "3", "3 h", "h", "-3h", "3hours", "1h3"])
def test_wrong_durations_are_refused(text):
    with pytest.raises(ValueError, match="such as 3h, 90m or 1h30m. Received"):
        seconds(text)
