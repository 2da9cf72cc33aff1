//! Excerpts: the files that a summariser is shown, read from the disk.
//!
//! Invariant: the place where a file really is decides whether it may be shown.

use std::{
    fs,
    io::Read as _,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use crate::{
    context::{
        files::{self, Excerpt},
        plan::Piece,
        visible::Visible,
    },
    disk::{self, Links},
    wire,
};

/// The most that is read of a file.
const LONGEST: u64 = 1 << 20;

/// Reads the files that a conversation is about and that may be shown. Links are resolved first, and a file that has
/// another name, which may lie among secrets, is not read.
pub(crate) fn excerpts(
    pieces: &[Piece<'_>],
    session: Option<&str>,
    visible: Visible<'_>,
) -> Vec<Excerpt> {
    let real = |folder: &Path| fs::canonicalize(folder).ok();
    let folder = visible.folder.and_then(real);
    let hidden: Vec<PathBuf> = visible.hidden.iter().filter_map(|path| real(path)).collect();
    let bounds = Visible { folder: folder.as_deref(), hidden: &hidden, ..visible };
    // A missing folder bounds nothing and is not a place to work in.
    let at = match session.map(|session| real(Path::new(session))) {
        Some(None) => return Vec::new(),
        at => at.flatten(),
    };
    if !bounds.admits(at.as_deref()) {
        return Vec::new();
    }
    let base = session.or_else(|| visible.folder?.to_str());
    let typed = [session, visible.folder.and_then(Path::to_str)];
    let below: Vec<&str> = typed.into_iter().flatten().collect();
    let below = (!visible.outside).then_some(below.as_slice());
    let named = files::named(pieces.iter().map(|piece| piece.message), base, below);
    files::read(&named, &mut |path| {
        let path =
            real(Path::new(path)).filter(|path| bounds.shows(path) && !wire::is_secret(path))?;
        let file = disk::open(&path, Links::Refuse).ok()?;
        if file.metadata().ok()?.nlink() > 1 {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(LONGEST).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    })
}
