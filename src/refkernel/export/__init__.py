"""Models outside of Python: files that run no code when they are loaded, and ONNX graphs."""
