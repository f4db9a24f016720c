"""Training of chat models on exports and against live environments, by TRL: `exact train`.

It needs torch, transformers, trl, peft and datasets, in a separate virtual environment: `shells/setup.sh --train`, or the extra `train`.
"""
