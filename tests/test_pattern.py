"""Regular expressions of strangers."""

import pytest

from exact.errors import UsageError
from exact.pattern import compiled


@pytest.mark.parametrize("pattern", ["(", "a{99999999999999999999}", "(" * 5000 + ")" * 5000, "a" * 20_000])
def test_a_pattern_that_cannot_be_compiled_is_an_error_in_one_line(pattern: str) -> None:
    with pytest.raises(UsageError, match=r"invalid pattern .* in reads: ") as raised:
        compiled(pattern, "reads")
    assert len(str(raised.value)) < 400
