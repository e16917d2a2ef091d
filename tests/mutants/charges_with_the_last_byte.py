"""Charges as soon as the last byte is there, whoever may still give the call up."""

from compliance.__main__ import main
from fairwall.rpc import uploads

KILLED_BY = "C717"

sound = uploads.array_after


def after(header, requests, part, *rest, **named):
    size = 1
    for length in header.shape:
        size *= length
    size *= {1: 8, 2: 4, 3: 1}.get(header.element_type, 0)

    def enough():
        came = 0
        for request in requests:
            came += len(getattr(request, part))
            yield request
            if came == size:
                return

    return sound(header, enough(), part, *rest, **named)


uploads.array_after = after

if __name__ == "__main__":
    main()
