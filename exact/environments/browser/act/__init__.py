"""Acting on a page: one handler for each verb, and the grammar that names them."""
