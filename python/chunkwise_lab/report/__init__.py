"""How do saved results become a page, or Markdown?"""
