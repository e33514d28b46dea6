"""Paths and small things."""
import json, os, random, re, sys
from pathlib import Path
DATA = Path(os.environ["JUDGESMITH_DATA"])
HERE = Path(os.environ["SPANS_OUT"])  # what is made goes there
MODEL = Path.home() / ".cache/judgesmith/models/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
LAYERS = (6, 12, 16, 20, 24)
LANG = {"en-de": ("English", "German"), "zh-en": ("Chinese", "English"), "ro-en": ("Romanian", "English"),
        "et-en": ("Estonian", "English"), "ru-en": ("Russian", "English"), "ne-en": ("Nepali", "English"), "si-en": ("Sinhala", "English")}

def lines(path):
    return [json.loads(line) for line in open(path, encoding="utf-8")]
