"""An answer goes in as its model wrote it; the HTML that Argilla's page shows for it comes out.

Argilla's page renders Markdown by rules that renumber dates, strike out numbers and take backslashes away. So the
Markdown is read here, and the page gets finished HTML of a few elements, which its renderer and its sanitiser pass
through. Every character of the answer is visible in its order except markup that took effect, and nothing is added.
What could be read in two ways is shown as it was written.

Read `answer` first; `_lines` decides what begins a block, `_inline` what is emphasis, `_elements` writes the HTML, and
`_check` compares it with the answer again, knowing nothing of the other three.
"""
