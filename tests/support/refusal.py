"""Refusals: a call, and the words of the error that it must end with."""

import pytest


def refused(words, call, *arguments, error=ValueError, **named):
    """Make a call that must be refused with these words, a regular expression."""
    with pytest.raises(error, match=words):
        call(*arguments, **named)
