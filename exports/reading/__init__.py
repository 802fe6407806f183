"""Files in; responses, judgements and decisions out."""
