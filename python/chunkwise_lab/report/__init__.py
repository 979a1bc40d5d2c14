"""How do saved results become a page, Markdown or lines on a terminal?

`build` reads results, `studies` turns them into a `model.Report`, which is plain data; `page`,
`markdown` and `terminal` write it.  Nothing here measures.
"""
