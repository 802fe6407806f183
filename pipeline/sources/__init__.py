"""What answers cite: URLs in; pages, text and passages out."""
