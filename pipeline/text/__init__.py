"""Pure functions on text: URLs and links, sentences, words, languages, forms to compare in."""
