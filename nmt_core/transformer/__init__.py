"""Transformers that other programs have trained, used as they are.

CTranslate2 runs what its converters wrote (``ct2:DIR``), PyTorch a directory of the library transformers (``hf:DIR``).
"""

CT2 = "ct2:"
HF = "hf:"
TRANSFORMERS = (CT2, HF)
"""What stands before the directory of such a model where commands take a model."""
