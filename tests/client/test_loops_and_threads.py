"""Clients in event loops, threads and processes, and their lifetime."""

import asyncio
import gc
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from luong_keras_client import AsyncTranslationClient, TranslationClient
from luong_keras_client.modes import Awaited
from tests.client.conftest import python
from tests.client.fake_servers import shout, shout_together
from tests.client.test_answers import CUT, LINES, TARGETS, answer_by_hand
from tests.serving.answered_arrays import SCORED, SCORES, TEXTS, check

CALLS = {"status": (), "contract": (), "translate": (["a"],)}


@pytest.mark.filterwarnings(CUT)
def test_the_asynchronous_client_has_the_same_methods(served, model):
    model.answer = answer_by_hand
    public = {name for name in dir(TranslationClient) if name[0] != "_"}
    other = {name for name in dir(AsyncTranslationClient) if name[0] != "_"}
    assert public - {"close"} == other - {"aclose"}

    async def ask():
        async with AsyncTranslationClient(served.url) as client:
            answers = await asyncio.gather(
                client.translate(LINES),
                client.nbest(LINES, n_best=2),
                client.align(LINES),
                client.score(LINES, TARGETS),
                client.align_pairs(LINES, TARGETS),
                client.encode(LINES),
            )
            texts, nbest, words, scores, scored, memories = answers
            assert texts == [one.text for one in words]
            check(nbest, TEXTS)
            check(scores, SCORES)
            check(scored, SCORED)
            assert [len(memory) for memory in memories] == [2, 0, 3]
            assert (await client.contract()).max_rows == 64
            assert await client.status() == {3: "AVAILABLE", 12: "UNLOADING"}

    asyncio.run(ask())
    assert model.contract_calls == 1


def test_asynchronous_calls_run_concurrently(served, model):
    model.answer = shout_together(3)

    async def ask():
        async with AsyncTranslationClient(served.url) as client:
            calls = [client.translate([text]) for text in "abc"]
            return await asyncio.gather(*calls)

    assert asyncio.run(ask()) == [["A"], ["B"], ["C"]]


def test_cancelled_calls_leave_no_tasks(served, model):
    model.steps.append(model.sleep(30))

    async def ask():
        async with AsyncTranslationClient(served.url) as client:
            call = asyncio.create_task(client.translate(["a"]))
            while not model.requests:
                await asyncio.sleep(0.01)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            others = asyncio.all_tasks() - {asyncio.current_task()}
            working = [task for task in others if "_send_in_turn" in repr(task)]
            assert not working
            return await client.translate(["b"])

    assert asyncio.run(ask()) == ["B"]
    assert model.texts == [["a"], ["b"]]


def test_a_call_cancelled_beside_its_answer_is_cancelled():
    async def ask():
        work, caller = Awaited.start(asyncio.sleep(0)), asyncio.current_task()
        work.add_done_callback(lambda _: caller.cancel())
        await Awaited.join(work, 30)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(ask())


def test_asynchronous_clients_belong_to_one_event_loop(served):
    client = AsyncTranslationClient(served.url)
    assert asyncio.run(client.translate(["a"])) == ["A"]
    with pytest.raises(RuntimeError, match="in another event loop"):
        asyncio.run(client.translate(["a"]))
    asyncio.run(client.aclose())


def test_calls_may_be_created_before_their_loop_runs(served):
    for name, arguments in CALLS.items():
        client = AsyncTranslationClient(served.url)
        assert asyncio.run(getattr(client, name)(*arguments))


def test_blocking_calls_work_inside_a_running_loop(connect):
    async def ask():
        return connect().translate(["a"])

    assert asyncio.run(ask()) == ["A"]


def test_threads_share_a_client(connect, model):
    lines = [[f"{i} a", f"{i} bb", f"{i} ccc"] for i in range(40)]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(connect(batch_size=2).translate, lines))
    assert found == [[text.upper() for text in texts] for texts in lines]
    assert model.contract_calls == 1


def test_clients_leave_no_threads(rest):
    before = set(threading.enumerate())
    for _ in range(3):
        client = TranslationClient(rest.url, batch_size=1)
        client.translate(["a", "b", "c"])
        list(client.translate_lines(iter("abcdef")))
    # Threads of the server remain until the connections are closed.
    for thread in set(threading.enumerate()) - before:
        if "process_request" not in thread.name:
            thread.join(timeout=5)
            assert not thread.is_alive()


@pytest.fixture
def interruptible():
    """Let Ctrl-C raise, even if the shell makes programs ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("lines", [["a"], list("abcdefgh")])
def test_keyboard_interrupts_end_a_call(served, model, lines, interruptible):
    model.answer, main = model.sleep(30), threading.get_ident()

    def interrupt():
        while len(model.requests) < min(len(lines), 2):
            model.stopped.wait(0.01)
        signal.pthread_kill(main, signal.SIGINT)

    settings = {"batch_size": 1, "concurrency": 2}
    with TranslationClient(served.url, **settings) as client:
        begin, thread = time.monotonic(), threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            client.translate(lines)
        thread.join()
        assert time.monotonic() - begin < 10
        model.answer = shout
        assert client.translate(["b"]) == ["B"]
    # Requests that were not sent yet are dropped.
    assert len(model.requests) <= 4


def test_closed_clients_refuse_calls(served, model):
    client = TranslationClient(served.url)
    client.close()
    client.close()
    with TranslationClient(served.url) as other:
        other.translate(["a"])
    for closed in (client, other):
        for name, arguments in CALLS.items():
            with pytest.raises(RuntimeError, match="one that was closed"):
                getattr(closed, name)(*arguments)
        with pytest.raises(RuntimeError, match="one that was closed"):
            list(closed.translate_lines(["a"]))
    assert len(model.requests) == 1


def test_a_connection_made_during_close_is_closed(rest, monkeypatch):
    client, connecting = TranslationClient(rest.url), threading.Event()
    connect, made = client._connect, []

    def connect_slowly():
        connecting.set()
        time.sleep(0.3)
        made.append(connect())
        return made[0]

    monkeypatch.setattr(client, "_connect", connect_slowly)
    with ThreadPoolExecutor() as threads:
        threads.submit(client.translate, ["a"])
        connecting.wait(30)
        client.close()
    assert made[0]._client.is_closed


def test_garbage_collection_closes_connections(rest, model):
    client = TranslationClient(rest.url)
    client.translate(["a"])
    assert rest.hung_up.empty()
    del client
    gc.collect()
    rest.hung_up.get(timeout=30)


FORKS = """
import os, warnings
warnings.simplefilter("ignore", DeprecationWarning)
from luong_keras_client import TranslationClient
url = sys.argv[1]
unused, used = TranslationClient(url), TranslationClient(url)
assert used.translate(["a"]) == ["A"]
child = os.fork()
if child == 0:
    try:
        used.translate(["b"])
    except RuntimeError as error:
        assert "after a fork. Make a client in each process" in str(error)
        used.close()
        assert unused.translate(["c"]) == ["C"]
        with TranslationClient(url) as other:
            assert other.translate(["d"]) == ["D"]
        os._exit(7)
    os._exit(8)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert used.translate(["e"]) == ["E"]
"""


@pytest.mark.slow
def test_clients_refuse_calls_after_a_fork(rest, model):
    done = python(FORKS, rest.url)
    assert (done.returncode, done.stderr) == (0, "")
    assert model.texts == [["a"], ["c"], ["d"], ["e"]]


@pytest.mark.slow_after_first
def test_programs_that_close_nothing_end_without_errors(served):
    # Nor do they need another package of the project.
    blocked = ["luong_keras", "keras", "tensorflow", "tensorflow_serving"]
    program = (
        "from luong_keras_client import TranslationClient\n"
        "client = TranslationClient(sys.argv[1])\n"
        "print(client.translate(['a']))\n"
        "stream = client.translate_lines(iter('abcdef' * 1000))\n"
        "print(next(stream))\n"
    )
    done = python(program, served.url, blocked=blocked)
    assert (done.returncode, done.stdout) == (0, "['A']\nA\n"), done.stderr
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


@pytest.mark.slow_after_first
@pytest.mark.parametrize("module", ["grpc", "google.protobuf"])
def test_missing_grpc_error_names_the_install_command(module):
    program = (
        "from luong_keras_client import TranslationClient\n"
        "TranslationClient('http://localhost:1')\n"
        "TranslationClient('grpc://localhost:1')\n"
    )
    done = python(program, blocked=[module])
    assert "pip install luong-keras-client[grpc]`" in done.stderr
    assert module in done.stderr
