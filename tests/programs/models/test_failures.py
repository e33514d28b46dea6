"""What a run could not use is not asked for again in it."""

import pytest

from judgesmith.errors import CallError
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.models.failures import Failures


@pytest.mark.parametrize("closed", [False, True])
def test_passing_failures_count_where_nothing_is_asked_any_more(closed: bool) -> None:
    refused, busy = CallError("a content filter"), CallError("HTTP 503 after 5 tries")
    refused.lasting = True
    failures = Failures(closed)
    failures.keep(b"empty", Reply(""))
    failures.keep(b"refused", refused)
    failures.keep(b"busy", busy)
    assert failures.earlier(b"empty") == Reply("")
    assert failures.earlier(b"another") is None
    with pytest.raises(CallError, match="a content filter"):
        failures.earlier(b"refused")
    if not closed:
        assert failures.earlier(b"busy") is None
        return
    with pytest.raises(CallError, match="after 5 tries"):
        failures.earlier(b"busy")
