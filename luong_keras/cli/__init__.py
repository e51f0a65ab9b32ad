"""The command `luong-keras`, with one module per subcommand.

A module has the arguments, a dataclass of its name, and the function `run`,
which takes them and returns the exit status. If reading the command line needs
more than the dataclass, it also has a function `parse`.

No module imports Keras before the command line is parsed.
"""
