"""Valid, expensive and invalid requests at the same time.

Sixteen clients send requests to a server with batching. Every valid sentence
must have the same translation as without other requests.
"""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from luong_keras_client import TranslationClient
from tests.serving.linux import needs_linux
from tests.serving.server_process import CHECKOUT, LoopbackProcess
from tests.serving.tiny_translator import SOURCE_WORDS

pytestmark = [
    pytest.mark.slow,
    needs_linux,
]
VALID, WORST, INVALID, CLIENTS = 1000, 200, 200, 16
ROWS, TOKENS = 32, 9  # limits of `exported_models`
OPTIONS = {"beam_size": 99, "length_penalty": 2.0, "replace_unknown": 1}
TOO_LONG = {"instances": ["x" * 1_000_000]}
INVALID_BODIES = [
    {"inputs": [["a", "b"]]},  # of rank 2: fails its whole batch
    {"inputs": "of rank 0"},
    {"instances": ["a"] * (ROWS + 1)},  # more rows than a batch
    {"instances": [1, 2]},
    TOO_LONG,
    {"signature_name": "sing", "instances": ["a"]},
    {
        "signature_name": "score",
        "inputs": {"source": ["a"], "target": ["x", "y"]},
    },
    {"instances": [{"text": "a", "melody": 1}]},
]


@pytest.fixture(scope="module")
def batching(exported_models):
    running = LoopbackProcess(
        exported_models,
        *("--batching-parameters-file", f"{CHECKOUT}/export/batching.config"),
    )
    yield running
    running.stop()


def test_valid_requests_are_not_affected_by_others(batching):
    generator = random.Random(1)
    sentences = [
        " ".join(generator.choices(SOURCE_WORDS, k=generator.randint(1, 8)))
        for _ in range(VALID)
    ]
    url, _, name = batching.rest_url.partition("/v1/models/")
    with TranslationClient(url, name, timeout=300, attempts=8) as client:
        distinct = sorted(set(sentences))
        expected = dict(zip(distinct, client.translate(distinct), strict=True))

        def valid(sentence):
            assert client.translate([sentence]) == [expected[sentence]]
            return "valid"

        def worst(_):
            words = " ".join(generator.choices(SOURCE_WORDS, k=TOKENS))
            row = {"text": words, "rank": 0, "prefix": words, **OPTIONS}
            body = {"signature_name": "align", "instances": [row] * ROWS}
            answer = requests.post(f"{batching.rest_url}:predict", json=body)
            # 400 in a batch with an invalid request, 503 if the queue is full.
            assert answer.status_code in (200, 400, 503), answer.text[:300]
            return "worst"

        def invalid(body):
            answer = requests.post(f"{batching.rest_url}:predict", json=body)
            if body is TOO_LONG and answer.status_code == 200:
                (row,) = answer.json()["predictions"]
                assert row["status"] == "TEXT_TOO_LONG"
            else:
                assert answer.status_code in (400, 503), answer.text[:300]
            return "invalid"

        calls = [(valid, sentence) for sentence in sentences]
        calls += [(worst, None)] * WORST
        calls += [
            (invalid, INVALID_BODIES[i % len(INVALID_BODIES)])
            for i in range(INVALID)
        ]
        generator.shuffle(calls)
        with ThreadPoolExecutor(CLIENTS) as threads:
            kinds = list(threads.map(lambda call: call[0](call[1]), calls))
    assert len(kinds) == VALID + WORST + INVALID
