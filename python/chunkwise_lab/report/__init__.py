"""How do saved results become a page, Markdown or lines on a terminal?"""
