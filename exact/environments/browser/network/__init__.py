"""The requests of a browser: policy, interception, recordings and trust."""
