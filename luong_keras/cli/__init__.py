"""The command `luong-keras`, with one module per subcommand.

A module has the arguments, a dataclass of its name, and the function `run`,
which returns the exit status. `run` takes the arguments, or what the function
`parse` of the module returns.

No module imports Keras before the command line is parsed.
"""
