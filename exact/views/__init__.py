"""Views of a state for a prompt: observations cut to a token budget, histories in a window, pictures scaled and marked.

Every omission is stated in the text and noted in the journal.
"""
