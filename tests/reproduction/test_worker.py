"""The process of one part."""

from luong_keras.config_values import with_values
from luong_keras.presets import PRESETS
from reproduction.worker import _prepare_text
from luong_keras.text.loading import load_tokenizer
from luong_keras.training.run_folder import RunFolder


def test_vocabularies_are_those_of_the_text_as_it_is(tmp_path):
    text = tmp_path / "text.tsv"
    files = dict.fromkeys(("data.train", "data.dev", "data.test"), str(text))
    config = with_values(PRESETS["demo"], {"data.dataset": "files"} | files)
    folder = RunFolder(tmp_path / "prepared")

    def words():
        text.write_text("".join(f"{word} x\t{word}\n" for word in said))
        _prepare_text(config, folder)
        names = ("source_vocabulary", "target_vocabulary")
        return [load_tokenizer(folder.path, n).vocabulary_size for n in names]

    said = ["one", "two"]
    source, target = words()
    made = {p: p.stat().st_mtime_ns for p in folder.path.glob("*_vocab*")}
    assert words() == [source, target]
    assert made == {p: p.stat().st_mtime_ns for p in made}
    said = ["one", "two", "three", "four"]
    assert words() == [source + 2, target + 2]
