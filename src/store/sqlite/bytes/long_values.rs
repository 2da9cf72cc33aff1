//! Long values: compresses the bytes of a column if they are long.

use std::{borrow::Cow, io::Read};

use rusqlite::{Row, types::ToSqlOutput};

use crate::model::{State, Tagged};
use crate::store::sqlite::query::damaged;

/// The first bytes of a zstd frame.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Values of at least this many bytes are compressed.
const LONG: usize = 4 << 10;
/// The maximum length of a value, whatever a frame claims.
const LONGEST: u64 = 1 << 30;
/// The compression level.
const LEVEL: i32 = 3;

/// Encodes bytes for a column.
pub(crate) fn pack(bytes: &[u8]) -> rusqlite::Result<ToSqlOutput<'_>> {
    if bytes.len() < LONG && !bytes.starts_with(&MAGIC) {
        return Ok(ToSqlOutput::from(bytes));
    }
    let packed = zstd::stream::encode_all(bytes, LEVEL);
    let packed = packed.map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    Ok(ToSqlOutput::from(packed))
}

/// Decodes the bytes from [`pack`].
pub(crate) fn read<'r>(row: &'r Row<'_>, column: usize) -> rusqlite::Result<Cow<'r, [u8]>> {
    let bytes = row.get_ref(column)?.as_blob()?;
    if !bytes.starts_with(&MAGIC) {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut unpacked = Vec::new();
    zstd::Decoder::with_buffer(bytes)
        .and_then(|decoder| decoder.take(LONGEST).read_to_end(&mut unpacked))
        .map_err(|error| damaged(column, &format!("it cannot be unpacked: {error}")))?;
    Ok(Cow::Owned(unpacked))
}

/// Reads a session's state from a column.
pub(crate) fn state(row: &Row<'_>, column: usize) -> rusqlite::Result<State> {
    let bytes = read(row, column)?;
    State::read(&bytes, &mut Vec::new()).map_err(|malformed| damaged(column, malformed.0))
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    #[test]
    fn bytes_come_back_and_long_ones_take_less_room() {
        let db = Connection::open_in_memory().unwrap();
        let stored = |bytes: &[u8]| -> (usize, Vec<u8>) {
            let value = pack(bytes).unwrap();
            db.query_row("SELECT length(?1), ?1", [value], |row| {
                Ok((row.get(0)?, read(row, 1)?.into_owned()))
            })
            .unwrap()
        };
        let long = b"{\"torn\":".repeat(100_000);
        for bytes in [&b""[..], b"\n", b"{\"a", &MAGIC, &[&MAGIC[..], b"abc"].concat(), &long] {
            assert_eq!(stored(bytes).1, bytes);
        }
        assert!(stored(&long).0 < long.len() / 100);
    }

    #[test]
    fn a_torn_frame_is_damage() {
        let db = Connection::open_in_memory().unwrap();
        let found = db.query_row("SELECT ?", [&MAGIC[..]], |row| read(row, 0).map(Cow::into_owned));
        assert!(found.unwrap_err().to_string().contains("cannot be unpacked"));
    }
}
