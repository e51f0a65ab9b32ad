import threading

import pytest

from luong_keras.truncation import (
    TruncatedPlaces,
    TruncationWarning,
)


def test_other_threads_get_their_own_warnings():
    def warn():
        cut = TruncatedPlaces()
        cut.add(2, True)
        cut.warn(stacklevel=1)

    with pytest.warns(TruncationWarning), TruncatedPlaces() as collected:
        thread = threading.Thread(target=warn)
        thread.start()
        thread.join()
    assert not collected.any
    with TruncatedPlaces() as outer, TruncatedPlaces() as inner:
        warn()
    assert inner.first == [2] and not outer.any
    with pytest.warns(TruncationWarning):
        warn()
