"""What a browser may request: request policy, interception, recordings, certificates."""
