"""The presumption of writes: the changes that an action would make outside, predicted before it is carried out."""
