"""How do saved results become a page, or Markdown?

`build` reads results, `studies` turns them into a `model.Report`, which is plain data; `page` and
`markdown` write it.  Nothing here measures.
"""
