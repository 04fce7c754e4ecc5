"""Calls that must fail, and the words of their errors."""

import pytest


def fails(words, call, *arguments, error=ValueError, **named):
    """Make a call that must fail with these words, a regular expression."""
    with pytest.raises(error, match=words):
        call(*arguments, **named)
