"""Pseudo-terminal that records the text drawn on it."""

import contextlib
import os
import pty
import re
import sys
import threading

# Colours, the cursor, "erase this line", "up by n lines".
_CODE = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])")
_END = b"\0"


class Terminal:
    """Output of a program on a terminal."""

    def __init__(self):
        self.raw = b""

    @property
    def text(self):
        return self.raw.decode()

    def shown(self):
        """Return every line that was drawn, including the redrawn ones."""
        plain = _CODE.sub("", self.text)
        return [line for line in re.split(r"[\r\n]+", plain) if line.strip()]

    def left(self):
        """Return the lines that were neither erased nor overwritten."""
        rows, row, column = [""], 0, 0
        for token in re.findall(r"\x1b\[[?\d;]*[A-Za-z]|[\s\S]", self.text):
            code = _CODE.fullmatch(token)
            if code and code[2] == "A":
                row = max(row - int(code[1] or 1), 0)
            elif code and code[2] == "K":
                rows[row] = ""
            elif token == "\r":
                column = 0
            elif token == "\n":
                row += 1
                rows += [""] * (row + 1 - len(rows))
            elif not code:
                rows[row] = rows[row][:column].ljust(column) + token
                column += 1
        return [line.rstrip() for line in rows if line.strip()]

    def cursor_is_shown(self):
        return self.text.rfind("\x1b[?25h") >= self.text.rfind("\x1b[?25l")


@contextlib.contextmanager
def terminal(monkeypatch, columns=80, term="xterm-256color"):
    """Replace standard output and error by a terminal of given width."""
    for name in ("TTY_INTERACTIVE", "TTY_COMPATIBLE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("COLUMNS", str(columns))
    controller, device = pty.openpty()
    found = Terminal()

    def read():
        while not found.raw.endswith(_END):
            found.raw += os.read(controller, 65536)
        found.raw = found.raw.removesuffix(_END)

    reader = threading.Thread(target=read)
    reader.start()
    with os.fdopen(device, "w", buffering=1) as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr(sys, "stderr", stream)
        try:
            yield found
        finally:
            monkeypatch.undo()
            # What a terminal has not passed on is lost when its device is
            # closed, so the reader ends first.
            stream.flush()
            os.write(device, _END)
            reader.join()
    os.close(controller)
