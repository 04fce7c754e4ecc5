"""Warnings about what will be removed are told once, in the caller's line."""

import pytest

from skpursuit._deprecation import warn_deprecated


def old_name():
    warn_deprecated("old_name", since="1.2", until="1.4", instead="new_name()")


def test_the_warning_says_what_to_write_and_points_to_the_caller():
    with pytest.warns(FutureWarning, match=r"old_name is deprecated since 1\.2 .* use new_name\(\)") as told:
        old_name()
    assert told[0].filename == __file__
