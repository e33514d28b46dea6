"""What a report's page holds compressed, which its script unpacks."""

import base64
import gzip
import json
import re
from typing import Any


def unpacked(words: str) -> Any:
    """The data of a page, from the words of its script."""
    return json.loads(gzip.decompress(base64.b64decode(words)))


def rows_of(page: str) -> list[str]:
    """The HTML of each row of a page."""
    found = re.search(r'<script type="application/gzip" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    rows: list[str] = unpacked(found[1])["html"]
    return rows
