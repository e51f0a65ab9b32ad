import pytest
from matplotlib import font_manager

from luong_keras.evaluation import plots
from luong_keras.evaluation.plots import fonts_for, plot_alignment

DEFAULT, OTHER = (
    plots._font_characters(font_manager.findfont(name))
    for name in ("DejaVu Sans", "STIXGeneral")
)
# A character that the default font lacks and another font of Matplotlib has.
RARE_CHARACTER = next(
    character
    for character in map(chr, range(0x2100, 0x2C00))
    if character not in DEFAULT and character in OTHER
)


def test_latin_and_arabic_need_one_font():
    assert fonts_for("Tür öffnen, قطة 42!") == (["DejaVu Sans"], "")


def test_a_fallback_font_is_found():
    families, missing = fonts_for(f"ä{RARE_CHARACTER}")
    assert missing == "" and families[0] == "DejaVu Sans"
    path = font_manager.findfont(families[1])
    assert RARE_CHARACTER in plots._font_characters(path)


def test_missing_characters_are_listed(monkeypatch):
    monkeypatch.setattr(plots, "_fallback_fonts", lambda: [])
    assert fonts_for("猫 a 猫犬") == (["DejaVu Sans"], "犬猫")
    monkeypatch.undo()
    assert not any("Last Resort" in name for name, _ in plots._fallback_fonts())


def test_missing_characters_cause_one_warning(monkeypatch, tmp_path):
    monkeypatch.setattr(plots, "_fallback_fonts", lambda: [])
    monkeypatch.setattr(plots, "_reported_scripts", set())
    with pytest.warns(UserWarning, match="No font .*猫.* drawing") as warned:
        for word in "猫犬":
            axes = plots._new_axes(3, 3)
            plot_alignment([word], ["x"], [[1.0]], ax=axes)
    assert len(warned) == 1
    monkeypatch.setattr(plots, "_reported_scripts", set())
    with pytest.warns(UserWarning, match="No font .*猫.*here.png"):
        plot_alignment(["猫"], ["x"], [[1.0]], tmp_path / "here.png")


def test_labels_use_fonts_that_have_their_characters(tmp_path):
    axes = plot_alignment(
        [RARE_CHARACTER], ["باب"], [[0.5]], tmp_path / "a.png"
    )
    assert axes.get_title() and axes.get_xlabel() and axes.get_ylabel()
    (label,) = axes.get_xticklabels()
    assert label.get_fontfamily() == fonts_for(RARE_CHARACTER)[0]
