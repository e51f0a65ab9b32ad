"""Languages that a run takes from its text."""

import json

import pytest

from luong_keras.config import RunConfig
from luong_keras.config.values import with_values
from luong_keras.data.datasets import load_datasets
from luong_keras.recipe.user_text import decide_languages, text_settings
from luong_keras.training.run_folder import RunFolder

PAIRS = [(f"chat {i}", f"cat {i}") for i in range(12)]


def csv(names, pairs):
    return "".join(f"{a},{b}\n" for a, b in [names, *pairs])


def jsonl(names, pairs):
    return "".join(
        json.dumps(dict(zip(names, p, strict=True))) + "\n" for p in pairs
    )


def decided(**settings):
    values = {f"data.{name}": value for name, value in settings.items()}
    config = with_values(RunConfig(), {"data.dataset": "files", **values})
    return decide_languages(config).data


@pytest.mark.parametrize(("kind", "write"), [("csv", csv), ("jsonl", jsonl)])
def test_later_files_are_read_in_the_direction_of_the_first(
    kind, write, tmp_path
):
    reverse = [(b, a) for a, b in PAIRS]
    paths = {}
    for name, columns, pairs in (
        ("train", ("French", "English"), PAIRS),
        ("more", ("English", "French"), reverse),
        ("dev", ("English", "French"), reverse),
        ("test", ("English", "French"), reverse),
    ):
        path = tmp_path / f"{name}.{kind}"
        path.write_text(write(columns, pairs))
        paths[name] = str(path)
    train = (paths["train"], paths["more"])
    data = decided(train=train, dev=paths["dev"], test=paths["test"])
    assert (data.source_language, data.target_language) == ("fr", "en")
    found = load_datasets(data)
    assert found.dev == found.test == PAIRS
    assert [(pair[0], pair[1]) for pair in found.train()] == PAIRS * 2


@pytest.mark.parametrize("frames", [False, True])
def test_later_objects_are_read_in_the_direction_of_the_first(frames, tmp_path):
    kind = pytest.importorskip("pandas").DataFrame if frames else list
    records = [{"French": a, "English": b} for a, b in PAIRS]
    others = [{"English": b, "French": a} for a, b in PAIRS]
    run = RunFolder(tmp_path)
    train = [kind(records), kind(others)]
    settings = text_settings(run, train, kind(others), kind(others))
    data = with_values(RunConfig(), settings).data
    assert (data.source_language, data.target_language) == ("fr", "en")
    found = load_datasets(data)
    assert found.dev == found.test == PAIRS
    assert [(pair[0], pair[1]) for pair in found.train()] == PAIRS * 2


@pytest.mark.parametrize(
    ("names", "settings", "languages"),
    [
        # For the default languages, the settings stay None.
        (("German", "English"), {}, (None, None)),
        (("source", "target"), {}, (None, None)),
        (("German", "English"), {"columns": ("1", "2")}, ("de", "en")),
        (("German", "English"), {"source_language": "de"}, ("de", None)),
    ],
)
def test_other_columns_or_settings_name_the_languages(
    names, settings, languages, tmp_path
):
    path = tmp_path / "train.csv"
    path.write_text(csv(names, PAIRS))
    data = decided(train=str(path), **settings)
    assert (data.source_language, data.target_language) == languages


@pytest.mark.parametrize(
    "settings",
    [
        {"dataset": "wmt14_translate"},
        {"dataset": "phrasebook"},
        {"train": "corpus/train"},  # for corpus/train.de and corpus/train.en
    ],
)
def test_named_data_sets_and_prefixes_have_known_languages(settings):
    data = decided(target_language="en", **settings)
    assert (data.source_language, data.target_language) == ("de", "en")
