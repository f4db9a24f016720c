"""The presumption of writes: what an action would change outside, told before it is carried out."""
