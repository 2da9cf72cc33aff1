//! Excerpts: the files that a summariser may read, from disk.
//!
//! Invariant: no file is shown because of its name alone; its resolved path decides.

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

/// How many bytes of a file are read at most.
const LONGEST: u64 = 1 << 20;

/// Reads the files that a conversation is about, if they may be shown. Links are resolved first, and a file with several hard
/// links is not read, because another name of it may be among secrets.
pub(crate) fn excerpts(
    pieces: &[Piece<'_>],
    session: Option<&str>,
    visible: Visible<'_>,
) -> Vec<Excerpt> {
    let real = |folder: &Path| fs::canonicalize(folder).ok();
    let folder = visible.folder.and_then(real);
    let hidden: Vec<PathBuf> = visible.hidden.iter().filter_map(|path| real(path)).collect();
    let bounds = Visible { folder: folder.as_deref(), hidden: &hidden, ..visible };
    // A folder that no longer exists limits nothing, so nothing is shown.
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
