import io
import sys
import time

import pytest

from luong_keras import progress
from luong_keras.progress import no_output, progress_bar, with_bar
from tests.programs import run_program
from tests.terminals import terminal


def test_discarded_output_may_have_any_character():
    program = (
        "from luong_keras.progress import no_output\n"
        "with no_output():\n    print(chr(215))"
    )
    run_program(program, LC_ALL="POSIX", PYTHONUTF8="0", LUONG_KERAS_LAZY="1")


def test_output_returns_after_the_last_of_overlapping_calls(capsys):
    first, second = no_output(), no_output()
    for call in (first, second):
        call.__enter__()
        print("discarded")
    first.__exit__(None, None, None)
    print("discarded")
    second.__exit__(None, None, None)
    print("shown")
    assert capsys.readouterr().out == "shown\n"


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_bar_fits_in_one_line_and_is_removed(monkeypatch, columns):
    title = "a step with rather a long name"
    with terminal(monkeypatch, columns) as seen:
        with progress_bar(title, total=4_500_000) as advance:
            for _ in range(12):
                advance(123_456)
                time.sleep(0.03)
            print("printed meanwhile")
        print("printed afterwards")
    assert max(map(len, seen.shown())) <= columns
    assert any("of 4.5M" in line for line in seen.shown())
    assert any(line.startswith(title[:9]) for line in seen.shown())
    assert seen.left() == ["printed meanwhile", "printed afterwards"]
    assert seen.cursor_is_shown()


def test_bar_never_hides_the_cursor(monkeypatch):
    with terminal(monkeypatch) as seen, progress_bar("a step"):
        sys.stderr.flush()
        while "a step" not in seen.text:
            time.sleep(0.01)
        assert seen.cursor_is_shown()


def test_nested_bar_is_not_shown(monkeypatch):
    with terminal(monkeypatch) as seen:
        with progress_bar("outer", 2):
            assert list(with_bar(range(3), "inner")) == [0, 1, 2]
        with progress_bar("later", 2):
            pass
    assert "inner" not in seen.text and "later" in seen.text


def test_bar_without_a_total_shows_the_time(monkeypatch):
    with terminal(monkeypatch) as seen, progress_bar("a step"):
        time.sleep(0.3)
    assert all(line.endswith(" 0:00:00") for line in seen.shown())
    assert not any("0 0:00:00" in line for line in seen.shown())
    with terminal(monkeypatch) as seen, progress_bar("a step") as advance:
        time.sleep(0.2)
        advance(1234)
        time.sleep(0.3)
    assert any(line.endswith("1.23k 0:00:00") for line in seen.shown())


def test_bar_is_removed_after_an_error(monkeypatch):
    with (
        terminal(monkeypatch) as seen,
        pytest.raises(ZeroDivisionError),
        progress_bar("a step", 3),
    ):
        raise ZeroDivisionError
    assert seen.left() == [] and seen.cursor_is_shown()


def test_file_gets_lines_of_slow_steps_only(monkeypatch):
    file = io.StringIO()
    monkeypatch.setattr(sys, "stderr", file)
    monkeypatch.setenv("FORCE_COLOR", "1")  # does not make it a terminal
    assert list(with_bar("abc", "quick")) == ["a", "b", "c"]
    assert file.getvalue() == ""
    monkeypatch.setattr(progress, "SECONDS_A_LINE", 0.0)
    assert list(with_bar("ab", "few")) == ["a", "b"]
    with progress_bar("slow", 4000) as advance:
        advance(1000)
        advance(2000)
    assert file.getvalue().splitlines() == [
        "few: 1 of 2",
        "few: 2 of 2",
        "slow: 1,000 of 4,000",
        "slow: 3,000 of 4,000",
    ]


@pytest.mark.parametrize("term, columns", [("dumb", 80), ("xterm", 39)])
def test_terminal_that_cannot_redraw_is_treated_as_a_file(
    monkeypatch, term, columns
):
    with (
        terminal(monkeypatch, columns, term) as seen,
        progress_bar("a step", 3) as advance,
    ):
        advance(1)
    assert seen.text == ""
