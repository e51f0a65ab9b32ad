"""Numbers and durations in a few characters."""


def rounded(count: float) -> str:
    """A large number in three digits.

    Example:
        >>> [rounded(count) for count in (7, 999, 1234, 12_345, 4_500_000)]
        ['7', '999', '1.23k', '12.3k', '4.5M']
    """
    for unit in ("", "k", "M"):
        if count < 999.5:
            return f"{count:.3g}{unit}"
        count /= 1000
    return f"{count:.3g}G"


def clock(seconds: float) -> str:
    """A duration in at most six characters.

    Example:
        >>> [clock(seconds) for seconds in (7, 75, 3 * 3600 + 61, 1e5, 1e6)]
        ['0:07', '1:15', '3h01m', '27h46m', '11d13h']
    """
    minutes, left = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}:{left:02d}"
    hours, minutes = divmod(minutes, 60)
    if hours < 100:
        return f"{hours}h{minutes:02d}m"
    return f"{hours // 24}d{hours % 24:02d}h"
