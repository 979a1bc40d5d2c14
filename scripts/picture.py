"""Draw the picture of README.md and of the site's first page: see `book.picture`."""

from book.picture import main

if __name__ == "__main__":
    main()
