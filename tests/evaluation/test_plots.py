import numpy as np
import pytest
from matplotlib import pyplot

from luong_keras.evaluation import plots
from luong_keras.evaluation.length_analysis import LengthGroup
from luong_keras.evaluation.plots import plot_alignment, plot_length_analysis
from tests.programs import run_program

WEIGHTS = np.array([[0.1, 0.9, 0.0], [0.7, 0.2, 0.1]])
GROUPS = [LengthGroup(0, 10, 5, 7.0, 30.0), LengthGroup(11, 20, 4, 15.0, 20.0)]


def label_texts(labels):
    return [label.get_text() for label in labels]


def test_alignment_plot_has_source_columns_and_target_rows(tmp_path):
    path = tmp_path / "new" / "alignment.png"
    padded = np.pad(WEIGHTS, ((0, 2), (0, 1)))
    axes = plot_alignment(
        ["a", "b", "$c$"], ["x", "y"], padded, path, "$5 or $6", [(1, 0)]
    )
    assert path.read_bytes().startswith(b"\x89PNG")
    assert label_texts(axes.get_xticklabels()) == ["a", "b", "$c$"]
    # Vertical, because horizontal long words would overlap.
    assert {label.get_rotation() for label in axes.get_xticklabels()} == {90}
    assert label_texts(axes.get_yticklabels()) == ["x", "y"]
    np.testing.assert_array_equal(axes.images[0].get_array(), WEIGHTS)
    assert axes.get_title() == "$5 or $6"
    frame = axes.patches[0]
    assert frame.get_x() + frame.get_width() / 2 == pytest.approx(1)
    assert frame.get_y() + frame.get_height() / 2 == pytest.approx(0)


def test_figures_are_as_large_as_their_sentences(tmp_path):
    def inches(rows, columns):
        weights = np.ones((rows, columns)) / columns
        words = (["a"] * columns, ["x"] * rows)
        axes = plot_alignment(*words, weights, tmp_path / "alignment.png")
        return axes.figure.get_size_inches().tolist()

    assert inches(30, 9) == inches(9, 30)[::-1]
    assert inches(30, 9)[1] > 2 * inches(9, 9)[1]


def test_length_analysis_has_one_line_per_system(tmp_path):
    path = tmp_path / "lengths.svg"
    systems = {"_global $1$": GROUPS, "local-p$\\bad{$": GROUPS[:1]}
    axes = plot_length_analysis(systems, str(path))
    text = path.read_text(encoding="utf-8")
    assert "<svg" in text
    assert all(f"<!-- {name} -->" in text for name in systems)
    lines = [line.get_xydata().tolist() for line in axes.lines]
    assert lines == [[[7.0, 30.0], [15.0, 20.0]], [[7.0, 30.0]]]


@pytest.mark.parametrize(
    ("source", "target", "weights"),
    [
        (["a"] * 4, ["x"], WEIGHTS),
        (["a"], ["x"] * 3, WEIGHTS),
        ([], ["x"], WEIGHTS),
        (["a"], ["x"], WEIGHTS[0]),
    ],
)
def test_weights_must_cover_the_words(tmp_path, source, target, weights):
    with pytest.raises(ValueError, match="at least"):
        plot_alignment(source, target, weights, tmp_path / "a.png")


@pytest.mark.parametrize("link", [(1, 0), (0, 1), (-1, 0)])
def test_links_must_be_inside(link):
    with pytest.raises(ValueError, match=r"below \(1, 1\)"):
        plot_alignment(["a"], ["x"], [[1]], links=[link])


def test_given_axes_are_used(tmp_path):
    figure, axes_pair = pyplot.subplots(1, 2)
    assert plot_alignment(["a"], ["x"], [[1]], ax=axes_pair[0]) is axes_pair[0]
    axes_pair[1].plot([3, 9], [1, 2], label="baseline")
    for name in ("a", "_b"):
        drawn = plot_length_analysis({name: GROUPS}, ax=axes_pair[1])
        assert drawn is axes_pair[1]
    assert axes_pair[0].images and len(axes_pair[1].lines) == 3
    texts = [text.get_text() for text in drawn.get_legend().get_texts()]
    assert texts == ["baseline", "a", "_b"]
    pyplot.close(figure)


def test_plots_without_a_file_are_current_figures():
    pyplot.close("all")
    axes = plot_alignment(["a"], ["x"], [[1]])
    assert pyplot.gcf() is axes.figure  # the figure that a notebook shows
    pyplot.close("all")


@pytest.mark.parametrize("systems", [{}, {"global": []}])
def test_length_analysis_needs_groups(tmp_path, systems):
    with pytest.raises(ValueError, match="at least one system"):
        plot_length_analysis(systems, tmp_path / "a.png")


@pytest.mark.slow
def test_importing_loads_no_matplotlib_and_plotting_no_pyplot(tmp_path):
    path = str(tmp_path / "a.png")
    program = (
        "from luong_keras.evaluation import plots\n"
        "assert 'matplotlib' not in sys.modules\n"
        f"plots.plot_alignment(['a'], ['x'], [[1]], {path!r}, links=[(0, 0)])\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
        "assert 'tensorflow' not in sys.modules"
    )
    # Otherwise the package imports Keras, which loads both.
    run_program(program, LUONG_KERAS_LAZY="1")


def test_characters_without_a_font_are_warned_of(monkeypatch):
    monkeypatch.setattr(plots, "_fallback_fonts", list)
    for draw in (
        lambda: plot_length_analysis({"系统": GROUPS}),
        lambda: plot_length_analysis({"a": GROUPS}, title="系统"),
        lambda: plot_alignment(["系统", "b", "c"], ["x", "y"], WEIGHTS),
    ):
        monkeypatch.setattr(plots, "_reported_scripts", set())
        with pytest.warns(UserWarning, match="No font") as caught:
            draw()
        assert caught[0].filename == __file__
