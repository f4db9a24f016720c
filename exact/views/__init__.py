"""What of a state fits into a prompt: observations cut to a budget, histories in a window, pictures scaled and marked.

Nothing is left out silently: what is says so in the text, and as a note for the journal.
"""
