"""Readers of models: by OpenVINO, llama.cpp, torch or a server."""
