//! Taking in files: a session file as it stands becomes a session of an archive.

use std::{fs::File, io::Read, os::unix::ffi::OsStrExt, path::Path};

use serde_json::json;

use super::change::Change;
use crate::{
    model::{Mark, Position, SessionName, json::Raw},
    ops::{Ambient, Archive, OpsError, Session},
    wire::{self, Format, jsonl::Reader},
};

/// How many records are asked which format they are of.
const ASKED: usize = 200;

/// Reads a session file into an archive that lasts as long as its value; nothing is written.
pub fn peek(path: &Path, ambient: Box<dyn Ambient>) -> Result<(Archive, Session), OpsError> {
    let mut archive = Archive::in_memory(ambient);
    let (format, name) = identify(path)?;
    let mut change = Change::first(&mut archive, name, format, "import");
    let file = change.file(path.as_os_str().as_bytes().to_vec());
    let mut growth = change.generation(Some(file));
    change.read(&mut growth, open(path)?)?;
    let horizon = growth.entries;
    let mut position = Position { generation: growth.generation, head: None, horizon };
    change.grown(growth);
    change.set_branch("main", Some(position))?;
    change.mark(Mark::CURRENT, Some("main"));
    let session = change.commit(&json!({ "files": 1 }))?.session;
    // The head is where the agent would resume, which the records tell once they are there.
    let view = super::View::new(archive.store(), &session, position, None);
    position.head = format.head(&view)?;
    let mut change = Change::bare(&mut archive, &session, "import")?;
    change.set_branch("main", Some(position))?;
    change.commit(&json!({ "files": 1 }))?;
    Ok((archive, session))
}

fn open(path: &Path) -> Result<File, OpsError> {
    File::open(path).map_err(|source| OpsError::Io { path: path.to_owned(), source })
}

/// Returns the format of a file, by its content, and the name of its session.
fn identify(path: &Path) -> Result<(&'static dyn Format, SessionName), OpsError> {
    let mut reader = Reader::new(open(path)?.take(64 << 20));
    let mut lines: Vec<Vec<u8>> = Vec::new();
    while lines.len() < ASKED {
        match reader.next_line()? {
            Some(located) if located.line.shape.is_some() => {
                lines.push(located.line.bytes.to_vec());
            }
            Some(_) => {}
            None => break,
        }
    }
    let records: Vec<Raw<'_>> = lines.iter().filter_map(|line| Raw::object(line)).collect();
    let format = wire::detect(&records).ok_or_else(|| OpsError::NoFormat(path.to_owned()))?;
    let id = records.iter().find_map(|record| format.session(*record));
    let id =
        id.or_else(|| Some(path.file_stem()?.to_string_lossy().into_owned())).unwrap_or_default();
    Ok((format, SessionName { format: format.name().to_owned(), id }))
}
