import threading

import pytest

from luong_keras.truncation import (
    TruncatedPlaces,
    TruncationInParts,
    TruncationWarning,
)


def test_other_threads_get_their_own_warnings():
    def warn():
        cut = TruncatedPlaces()
        cut.add(2, True)
        cut.warn(stacklevel=1)

    with pytest.warns(TruncationWarning), TruncationInParts() as collected:
        thread = threading.Thread(target=warn)
        thread.start()
        thread.join()
    assert not collected.places.any
    with TruncationInParts() as outer, TruncationInParts() as inner:
        warn()
    assert inner.places.first == [2] and not outer.places.any
    with pytest.warns(TruncationWarning):
        warn()
