"""Training of chat models on exports and against live environments, by TRL: `exact train`.

It needs torch, transformers, trl, peft and datasets, in a virtual environment of their own: `shells/setup.sh --train`, or the extra
`train`.
"""
