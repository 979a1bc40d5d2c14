"""Saved results as a page, as Markdown, and as still pictures.

`sources` recognises results, `studies` and `benches` make a `model.Report` of them, which is
plain data; `page`, `markdown` and `stills` write it.  Nothing here measures.
"""
