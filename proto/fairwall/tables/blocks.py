"""Read CSV a block at a time, with the column types that pyarrow finds when it reads a whole file at once.

pyarrow's reader of whole files keeps every byte until the end; its stream keeps the types of the first block. If a
later block does not fit these types, the file is read again as bytes, and each column's type is found from all blocks.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairwall.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa


def header(path: Path, name: str) -> list[str]:
    """Return the columns' names; ``name`` is the file's name in errors."""
    with _stream(path, name) as stream:
        return list(stream.schema.names)


def read(path: Path, name: str, columns: Sequence[str], kept: Callable[[int, int], None]) -> pa.Table:
    """Read some columns, each once in the header; ``name`` is the file's name in errors.

    `kept` is called after each block with the rows and bytes so far, and may end the reading. DataError for a row with
    another number of fields than the header; pyarrow.ArrowException or OSError.
    """
    import pyarrow as pa

    try:
        return _as_the_first_block(path, name, columns, kept)
    except pa.ArrowInvalid:
        return _as_all_blocks(path, name, columns, kept)


def read_text(path: Path, name: str, columns: Sequence[str], kept: Callable[[int, int], None]) -> pa.Table:
    """Read some columns as `read` does, but as text, in the file's spelling."""
    import pyarrow as pa

    return _as_the_first_block(path, name, columns, kept, pa.string())


def _as_the_first_block(
    path: Path, name: str, columns: Sequence[str], kept: Callable[[int, int], None], kind: pa.DataType | None = None
) -> pa.Table:
    import pyarrow as pa

    batches: list[pa.RecordBatch] = []
    rows = size = 0
    with _stream(path, name, columns, kind) as stream:
        for batch in stream:
            batches.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
            kept(rows, size)
        return pa.Table.from_batches(batches, stream.schema)


def _as_all_blocks(path: Path, name: str, columns: Sequence[str], kept: Callable[[int, int], None]) -> pa.Table:
    import pyarrow as pa

    # The bytes of a block's distinct values once, and each row's index into these.
    blocks: list[list[pa.DictionaryArray]] = [[] for _ in columns]
    rows = size = 0
    with _stream(path, name, columns, pa.binary()) as stream:
        for batch in stream:
            for own, values in zip(blocks, batch.columns, strict=True):
                own.append(values.dictionary_encode())
                size += own[-1].nbytes
            rows += batch.num_rows
            kept(rows, size)
    # One column after the other, so that only one column exists both as bytes and as values.
    return pa.table([_typed(blocks.pop(0)) for _ in columns], names=list(columns))


@contextmanager
def _stream(path: Path, name: str, columns: Sequence[str] = (), kind: pa.DataType | None = None) -> Iterator[Any]:
    """Open a file: all columns if none are given, with the first block's types if no type is given."""
    import pyarrow as pa
    from pyarrow import csv

    as_text, ragged = kind == pa.string(), list[Any]()

    def refuse(row: Any) -> str:
        ragged.append(row)
        return "error"

    try:
        with csv.open_csv(
            path,
            # One thread, so that bad rows have numbers; several gain nothing on tables of this size.
            read_options=csv.ReadOptions(use_threads=False),
            parse_options=csv.ParseOptions(newlines_in_values=True, invalid_row_handler=refuse),
            convert_options=csv.ConvertOptions(
                # In text, markers of missing values stay as spelt.
                strings_can_be_null=not as_text,
                include_columns=list(columns),
                column_types={} if kind is None else dict.fromkeys(columns, kind),
            ),
        ) as stream:
            yield stream
    except ValueError:
        if not ragged:
            raise
        row = ragged[0]
        raise DataError(
            f"{name}: row {row.number} has {row.actual_columns} fields where the header has {row.expected_columns}"
        ) from None


def _typed(blocks: Sequence[pa.DictionaryArray]) -> pa.ChunkedArray:
    """Return a column's bytes as values of pyarrow's first type that fits them all."""
    import pyarrow as pa

    distinct = _parsed([block.dictionary for block in blocks])
    chunks, start = [], 0
    for block in blocks:
        chunks.append(distinct.slice(start, len(block.dictionary)).take(block.indices))
        start += len(block.dictionary)
    return pa.chunked_array(chunks, distinct.type)


def _parsed(texts: Sequence[pa.BinaryArray]) -> pa.Array:
    """Return values as pyarrow reads the fields of one column."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv

    lines = io.BytesIO()
    for values in texts:
        if len(values):
            quoted = pc.replace_substring(values, b'"', b'""')
            lines.write(pc.binary_join_element_wise(b'"', quoted, b'"\n', b"").buffers()[2])
    if not (size := lines.tell()):
        return pa.nulls(0)
    lines.seek(0)
    table = csv.read_csv(
        lines,
        # In one block: a value may be of any length.
        read_options=csv.ReadOptions(column_names=["values"], block_size=size, use_threads=False),
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(strings_can_be_null=True),
    )
    return table.column(0).combine_chunks()
