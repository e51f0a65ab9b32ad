"""What a process says of itself."""

from luong_keras.serving.saved_model_session import process_memory


def test_memory_is_in_bytes_and_zero_where_it_is_not_said():
    # This process holds more than Python alone, and less than the machine.
    assert 10e6 < process_memory("VmRSS") <= process_memory("VmHWM") < 1e12
    assert process_memory("VmSomethingElse") == 0
