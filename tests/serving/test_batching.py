"""An export behind the batching of `export/batching.config`."""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from luong_keras_client import TranslationClient
from tests.serving.linux import needs_linux
from tests.serving.server_process import CHECKOUT
from tests.serving.tiny_translator import SOURCE_WORDS

pytestmark = [pytest.mark.slow, needs_linux]


def test_clients_that_share_batches_get_their_own_translations(
    exported_models, monkeypatch
):
    monkeypatch.syspath_prepend(f"{CHECKOUT}/benchmarks")
    from speed.served_model import BatchingProcess

    draw = random.Random(1)
    lengths = [draw.randint(1, 8) for _ in range(300)]
    lines = [" ".join(draw.choices(SOURCE_WORDS, k=k)) for k in lengths]
    option = "--batching-parameters-file", f"{CHECKOUT}/export/batching.config"
    server = BatchingProcess(exported_models, *option)
    url, _, name = server.rest_url.partition("/v1/models/")
    try:
        with TranslationClient(url, name, timeout=300, attempts=8) as client:
            expected = client.translate(lines)
            with ThreadPoolExecutor(8) as threads:
                found = threads.map(lambda x: client.translate([x])[0], lines)
                assert list(found) == expected
    finally:
        server.stop()
