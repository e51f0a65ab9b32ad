"""Ten thousand strange texts, translated by two exports."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from luong_keras.config import DecodingConfig
from luong_keras.models.translation_model import TranslationModel
from luong_keras.serving.export import export_saved_model
from luong_keras.serving.saved_model_session import (
    SavedModelSession,
    read_meta_graph,
)
from luong_keras.text.sentencepiece_tokenizer import SentencePieceTokenizer
from luong_keras.translator import Translator
from tests.layer_checks import small_config
from tests.serving.linux import needs_linux

pytestmark = needs_linux

NORMAL = b"the cat sees a dog ."
BATCH, BATCHES = 32, 160  # 4,960 texts to each of the two exports
MAX_MEMORY = 2**28

HUGE = [
    b"a" * 1_000_000,
    b"word " * 10_000,
    "\U0001f600".encode() * 50_000,
    b"\xff" * 100_000,
    b" " * 1_000_000,
    "\u00a0".encode() * 10_000 + b"end",
]
# Special tokens, and markers of tokenisers.
MARKERS = ["<unk>", "<s>", "</s>", "<pad>", "\u2581", "the", "##AT##", "@@"]
STRANGE = (
    st.text(max_size=100),
    # Control characters, kinds of spaces, direction marks.
    st.text("\0\t\n\r\x0b\x1b\x7f\x85\u00a0\u200b\u200f\u2028\u202e\ufeff"),
    # Arabic and Hebrew, emoji with joiners, combining marks.
    st.text(
        st.characters(min_codepoint=0x590, max_codepoint=0x6FF), max_size=60
    ),
    st.text("\U0001f469\u200d\U0001f680\U0001f1e9\u0301\u0308e", max_size=60),
    st.lists(st.sampled_from(MARKERS)).map(" ".join),
)
SHORT = st.one_of(
    st.binary(max_size=200),
    *(texts.map(str.encode) for texts in STRANGE),
    st.sampled_from([b"", b" ", NORMAL]),
)
TEXTS = st.lists(SHORT, min_size=BATCH - 1, max_size=BATCH - 1)


def subword_translator():
    """Create an untrained translator of subwords."""
    lines = ["the cat sees a dog .", "a house sees the dogs of the cats ."]
    tokenizer = SentencePieceTokenizer.train(lines, 30)
    model = TranslationModel(small_config(30, initial_range=1.0))
    decoding = DecodingConfig(beam_size=3, max_source_length=30)
    return Translator(model, tokenizer, tokenizer, decoding)


class Served:
    """The signature `translate` of an export."""

    def __init__(self, folder, max_source_length):
        self.max_text_bytes = 64 * max_source_length
        self.session = SavedModelSession(folder)
        signature = read_meta_graph(folder).signature_def["translate"]
        self.input = signature.inputs["text"].name
        self.outputs = {
            key: signature.outputs[key].name
            for key in ("translations", "scores", "truncated", "status")
        }

    def __call__(self, texts):
        return self.session.run(
            {self.input: np.array([*texts, None], object)[:-1]}, self.outputs
        )


@pytest.fixture(scope="module", params=["words", "subwords"])
def served(request, tmp_path_factory):
    if request.param == "words":
        models = request.getfixturevalue("exported_models")
        return Served(models / "1", 9)
    folder = tmp_path_factory.mktemp("subwords") / "1"
    return Served(export_saved_model(subword_translator(), folder), 30)


def check(served, texts, place):
    """Check a batch of strange texts with a normal one at a position."""
    texts = [*texts[:place], NORMAL, *texts[place:]]
    found, alone = served(texts), served([NORMAL])
    assert found["translations"].shape[0] == len(texts)
    assert np.isfinite(found["scores"]).all()
    for translation in found["translations"].flat:
        translation.decode("utf-8")
        assert len(translation) < 1_000_000
    assert (found["translations"][place] == alone["translations"][0]).all()
    scores = found["scores"][place], alone["scores"][0]
    np.testing.assert_allclose(*scores, rtol=1e-4)
    best, scores = found["translations"][:, 0], found["scores"][:, 0]
    rows = zip(texts, best, scores, found["status"], strict=True)
    for text, translation, score, status in rows:
        fits = len(text) <= served.max_text_bytes
        assert status == (b"OK" if fits else b"TEXT_TOO_LONG")
        if not fits or not text.strip():
            assert translation == b""
            assert score == (0 if fits else np.float32(-1e30))


@pytest.mark.slow
def test_strange_texts_do_not_change_other_rows(served):
    @settings(
        max_examples=BATCHES,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(texts=TEXTS, place=st.integers(0, BATCH - 1))
    def try_batch(texts, place):
        check(served, texts, place)
        seen.append(len(texts))

    seen = []
    try_batch()
    assert sum(seen) >= BATCHES * (BATCH - 1)


def memory(name):
    """Return a memory value of this process, such as VmHWM, in bytes."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return 1024 * int(re.search(rf"{name}:\s+(\d+) kB", status)[1])


@pytest.mark.slow
def test_huge_texts_take_little_memory(served):
    check(served, HUGE, 0)
    before = memory("VmHWM")
    for place in range(len(HUGE)):
        check(served, HUGE, place)
    assert served(HUGE)["status"].tolist() == [b"TEXT_TOO_LONG"] * 6
    assert memory("VmHWM") - before < MAX_MEMORY


@pytest.mark.slow
def test_texts_of_maximum_length_do_not_change_other_rows(served):
    texts = [text[: served.max_text_bytes] for text in HUGE]
    check(served, texts, 3)
    assert served(texts)["truncated"].any()


@pytest.mark.slow
def test_memory_of_requests_is_freed(served):
    served(HUGE[:1])
    before = memory("VmRSS")
    for _ in range(150):
        served(HUGE[:1])
    assert memory("VmRSS") - before < 75 * len(HUGE[0])
