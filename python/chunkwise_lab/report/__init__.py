"""How do saved results become a page, or Markdown?

`sources` recognises results, `studies` and `benches` turn them into a `model.Report`, which is
plain data; `page` and `markdown` write it.  Nothing here measures.
"""
