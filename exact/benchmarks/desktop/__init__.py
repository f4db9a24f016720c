"""Tasks on a desktop: a text editor, a calculator, a file manager, a terminal, and viewers of pictures and papers."""
