import numpy as np
import pytest
from matplotlib import font_manager

from luong_keras.evaluation import plots
from luong_keras.evaluation.plots import alignment_figure, fonts_for, pixels

# Matplotlib brings a font that has it, and the default one has it not.
ELSEWHERE = next(
    character
    for character in map(chr, range(0x2100, 0x2C00))
    if character not in plots._characters(plots._path_of("DejaVu Sans"))
    and character in plots._characters(plots._path_of("STIXGeneral"))
)


def test_latin_and_arabic_need_one_font():
    assert fonts_for("Tür öffnen, قطة 42!") == (["DejaVu Sans"], "")


def test_another_font_is_found():
    families, missing = fonts_for(f"ä{ELSEWHERE}")
    assert missing == "" and families[0] == "DejaVu Sans"
    path = font_manager.findfont(families[1])
    assert ELSEWHERE in plots._characters(path)


def test_boxes_are_not_taken_for_letters(monkeypatch):
    monkeypatch.setattr(plots, "_others", lambda: [])
    assert fonts_for("猫 a 猫犬") == (["DejaVu Sans"], "犬猫")
    monkeypatch.undo()
    assert not any("Last Resort" in name for name, _ in plots._others())


def test_a_picture_says_what_it_cannot_draw(monkeypatch):
    monkeypatch.setattr(plots, "_others", lambda: [])
    monkeypatch.setattr(plots, "_scripts_told", set())
    with pytest.warns(UserWarning, match="No font .*猫.* here.png") as told:
        pixels(alignment_figure(["猫"], ["x"], [[1.0]], what="here.png"))
        pixels(alignment_figure(["犬"], ["x"], [[1.0]], what="there.png"))
    assert len(told) == 1


def test_the_words_are_drawn_in_the_fonts_that_have_them():
    figure = alignment_figure([ELSEWHERE], ["باب"], [[0.5]])
    axes = figure.axes[0]
    assert axes.get_title() and axes.get_xlabel() and axes.get_ylabel()
    (label,) = axes.get_xticklabels()
    assert label.get_fontfamily() == fonts_for(ELSEWHERE)[0]
    image = pixels(figure)
    assert image.dtype == np.uint8 and image.shape[2] == 4
