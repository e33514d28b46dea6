"""Marks of quotation that models put around the words they cite."""

import re

#: Words in quotes. No pair may hold its own opening mark, so that looking stays linear.
QUOTED = re.compile(
    r'"([^"\n]+)"|“([^“”\n]+)”|„([^„“”\n]+)[“”]|«([^«»\n]+)»|「([^「」\n]+)」|`([^`\n]+)`'
)
