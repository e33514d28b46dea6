"""OpeNLGauge: annotators mark error spans, a supervisor merges them; reading and grounding what they write."""
