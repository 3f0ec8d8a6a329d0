"""Compares what a page shows below a command with what the command printed."""

LEFT_OUT = "..."


def first_missing(shown, printed, fits):
    """The first line that is shown and was not printed where it should have been, or None."""
    at, anywhere = 0, False
    for line in shown:
        if line == LEFT_OUT:
            anywhere = True
            continue
        found = next((i for i in range(at, len(printed)) if fits(line, printed[i])), None)
        if found is None or (found != at and not anywhere):
            return line
        at, anywhere = found + 1, False
    return None if at == len(printed) or anywhere else f"the end, before: {printed[at]}"
