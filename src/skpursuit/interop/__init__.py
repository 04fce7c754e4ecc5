"""Other libraries: scikit-learn made faster (`patch.py`), models for skl2onnx (`onnx.py`) and skops."""
