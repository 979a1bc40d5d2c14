"""Take the pictures of docs/start/slow.md: see `book.walk`."""

from book.walk import main

if __name__ == "__main__":
    main()
