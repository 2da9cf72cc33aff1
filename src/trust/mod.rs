//! Trust: which stores in folders this user trusts on this machine, and which agents' files may be written.
//!
//! A store, a setting or a path that someone else could have written is just data. It only takes effect through an item of a list
//! in the user's state folder, which no repository, archive or transcript can change.
//!
//! Trust identifies a store by its path, the device and inode of its folder, the inode of its database, and its own random id. A
//! store that a checkout puts in its place is a strange one.
//!
//! Invariant: no file of a strange store is opened; only its metadata is examined.

mod list;

pub use list::List;

use std::{
    ffi::OsStr,
    fmt,
    fs::{self, Metadata},
    io,
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, PermissionsExt},
    },
    path::{Path, PathBuf},
};

use crate::model::{
    DATABASE, MENDING, MachineId, StoreId, TRANSCRIPTS, is_damaged_folder, is_part,
};

/// The list that contains the number of this computer.
const MACHINE: &str = "machine";
/// The maximum number of files in a store's folder; a store creates fewer than ten.
const MOST_PARTS: usize = 100;

/// What identifies a store, apart from its own id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The device that its folder is on.
    pub device: u64,
    /// The inode of its folder.
    pub inode: u64,
    /// The inode of its database.
    pub database: u64,
}

/// A store that this user trusts on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trusted {
    /// Its folder, without links.
    pub path: PathBuf,
    /// Its place when it was trusted.
    pub place: Place,
    /// Its own id.
    pub store: StoreId,
}

/// Why a store in a folder is not used. A part is named by its path relative to that folder; the folder itself is the empty path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strange {
    /// This user has not trusted it on this machine.
    Unknown,
    /// Another store was trusted at this path.
    Replaced,
    /// It contains no store.
    Empty,
    /// A part of it is a link.
    Link(PathBuf),
    /// A part of it is not the kind of file that it should be.
    Odd(PathBuf),
    /// A part of it belongs to another user.
    Foreign(PathBuf),
    /// Other users can access its content.
    Open,
    /// A part of it has a mode that undertext never sets, so something else created it.
    Brought(PathBuf),
    /// A part of it, or the list of trusted stores, cannot be read.
    Unreadable(String),
}

impl fmt::Display for Strange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |part: &Path| match part.to_string_lossy() {
            part if part.is_empty() => "it".to_owned(),
            part => part.into_owned(),
        };
        match self {
            Self::Unknown => f.write_str("you have not trusted it on this machine"),
            Self::Replaced => f.write_str("it is not the store that you trusted there"),
            Self::Empty => f.write_str("it contains no store"),
            Self::Link(part) if part == Path::new("") => {
                f.write_str("it is a link, not a store's folder")
            }
            Self::Link(part) => write!(f, "{} is a link, and a store has no links", name(part)),
            Self::Odd(part) if part == Path::new("") => f.write_str("it is not a store's folder"),
            Self::Odd(part) => write!(f, "{} does not belong in a store", name(part)),
            Self::Foreign(part) => write!(f, "{} belongs to another user", name(part)),
            Self::Open => f.write_str("other users can access its files"),
            Self::Brought(part) => {
                write!(f, "{} is readable by others, so undertext did not create it", name(part))
            }
            Self::Unreadable(why) => write!(f, "it cannot be inspected: {why}"),
        }
    }
}

impl Strange {
    /// Returns true if the store would be used if this user trusted it.
    pub fn may_be_trusted(&self) -> bool {
        matches!(self, Self::Unknown | Self::Replaced | Self::Open | Self::Brought(_))
    }
}

impl From<io::Error> for Strange {
    fn from(error: io::Error) -> Self {
        Self::Unreadable(error.to_string())
    }
}

/// The stores that this user trusts on this machine.
#[derive(Clone, Debug)]
pub struct Stores(List);

impl Stores {
    /// Returns the stores that are listed in a user's state folder.
    pub fn of(state: &Path) -> Self {
        Self(List::new(state, "trusted"))
    }

    /// Returns all of them, oldest first.
    pub fn all(&self) -> io::Result<Vec<Trusted>> {
        Ok(self.0.read()?.iter().filter_map(|item| Trusted::parse(item)).collect())
    }

    /// Trusts a store, replacing earlier items with the same path.
    pub fn trust(&self, store: &Trusted) -> io::Result<()> {
        self.0.change(|items| {
            forget(items, &store.path);
            items.push(store.item());
        })
    }

    /// Removes a path, and returns true if it was trusted.
    pub fn distrust(&self, path: &Path) -> io::Result<bool> {
        let mut found = false;
        self.0.change(|items| found = forget(items, path))?;
        Ok(found)
    }

    /// Returns the trusted store of a folder, if its place is unchanged. The caller still has to compare the store's own id.
    pub fn at(&self, folder: &Path) -> Result<Trusted, Strange> {
        let listed = self.all()?.into_iter().find(|store| store.path == folder);
        let (listed, place) = match (listed, examine(folder)) {
            (None, Err(why)) if !why.may_be_trusted() => return Err(why),
            (None, _) => return Err(Strange::Unknown),
            (Some(listed), place) => (listed, place?),
        };
        if listed.place == place { Ok(listed) } else { Err(Strange::Replaced) }
    }
}

/// The agents' files that this user named on this machine: commands may write them anywhere.
#[derive(Clone, Debug)]
pub struct Files(List);

impl Files {
    /// Returns the files that are listed in a user's state folder.
    pub fn of(state: &Path) -> Self {
        Self(List::new(state, "attached"))
    }

    /// Returns the paths of all of them, without links.
    pub fn all(&self) -> io::Result<Vec<PathBuf>> {
        let path = |item: &Vec<u8>| PathBuf::from(OsStr::from_bytes(item));
        Ok(self.0.read()?.iter().map(path).collect())
    }

    /// Adds a file, if it is not listed.
    pub fn add(&self, file: &Path) -> io::Result<()> {
        if self.all()?.iter().any(|listed| listed == file) {
            return Ok(());
        }
        self.0.change(|items| items.push(file.as_os_str().as_bytes().to_vec()))
    }

    /// Removes a file, if it is listed.
    pub fn remove(&self, file: &Path) -> io::Result<()> {
        if !self.all()?.iter().any(|listed| listed == file) {
            return Ok(());
        }
        self.0.change(|items| items.retain(|item| item != file.as_os_str().as_bytes()))
    }
}

/// Removes the items with a path, and returns true if there were any.
fn forget(items: &mut Vec<Vec<u8>>, path: &Path) -> bool {
    let before = items.len();
    items.retain(|item| Trusted::parse(item).is_none_or(|store| store.path != path));
    items.len() < before
}

/// Examines the metadata of a store's folder and all its parts: they must be files and folders of this user alone.
pub fn examine(folder: &Path) -> Result<Place, Strange> {
    let meta = check(folder, Path::new(""))?;
    if !meta.is_dir() {
        return Err(Strange::Odd(PathBuf::new()));
    }
    let mut brought = None;
    for name in names(folder, MOST_PARTS)? {
        let meta = check(folder, &name)?;
        if meta.is_dir() != is_folder(&name) {
            return Err(Strange::Odd(name));
        }
        if is_own(&name) && is_open(&meta) {
            brought = brought.or(Some(name));
        }
    }
    let database = match check(folder, Path::new(DATABASE)) {
        Err(Strange::Unreadable(_)) => return Err(Strange::Empty),
        checked => checked?,
    };
    let transcripts = folder.join(TRANSCRIPTS);
    if transcripts.exists() {
        for name in names(&transcripts, usize::MAX)? {
            let part = Path::new(TRANSCRIPTS).join(name);
            let meta = check(folder, &part)?;
            if !meta.is_file() {
                return Err(Strange::Odd(part));
            }
            if is_open(&meta) {
                brought = brought.or(Some(part));
            }
        }
    }
    if is_open(&meta) {
        return Err(Strange::Open);
    }
    // A repository's checkout creates files with such a mode, and it changes neither the folder nor the database.
    if let Some(part) = brought {
        return Err(Strange::Brought(part));
    }
    Ok(Place { device: meta.dev(), inode: meta.ino(), database: database.ino() })
}

/// Returns true if a part of a store's folder must be a folder. The folders of a repair, and those that preserve a damaged store,
/// are not examined, because only a repair reads them.
fn is_folder(name: &Path) -> bool {
    let names = [TRANSCRIPTS, MENDING];
    names.iter().any(|one| name == Path::new(one)) || is_damaged_folder(name.as_os_str())
}

/// Returns true if only undertext writes this part of a store's folder.
fn is_own(name: &Path) -> bool {
    is_part(name.as_os_str())
}

fn is_open(meta: &Metadata) -> bool {
    meta.permissions().mode() & 0o077 != 0
}

/// Removes other users' access to a store's folder and to the files that undertext wrote in it.
pub fn close(folder: &Path) -> io::Result<()> {
    let shut = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    shut(folder, 0o700)?;
    for part in fs::read_dir(folder)? {
        let part = part?;
        match part.file_type()? {
            kind if !is_own(Path::new(&part.file_name())) || kind.is_symlink() => {}
            kind if kind.is_file() => shut(&part.path(), 0o600)?,
            kind if kind.is_dir() => {
                shut(&part.path(), 0o700)?;
                for file in fs::read_dir(part.path())? {
                    let file = file?;
                    if file.file_type()?.is_file() {
                        shut(&file.path(), 0o600)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the names in a folder, if there are at most `most`.
fn names(folder: &Path, most: usize) -> Result<Vec<PathBuf>, Strange> {
    let mut names = Vec::new();
    for part in fs::read_dir(folder)? {
        names.push(PathBuf::from(part?.file_name()));
        if names.len() > most {
            return Err(Strange::Odd(PathBuf::new()));
        }
    }
    names.sort();
    Ok(names)
}

/// Examines the metadata of one part of a store's folder.
fn check(folder: &Path, part: &Path) -> Result<Metadata, Strange> {
    let path = if part == Path::new("") { folder.to_owned() } else { folder.join(part) };
    let meta = fs::symlink_metadata(path)?;
    let part = part.to_owned();
    if meta.is_symlink() {
        Err(Strange::Link(part))
    } else if !meta.is_file() && !meta.is_dir() {
        Err(Strange::Odd(part))
    } else if meta.uid() != rustix::process::geteuid().as_raw() {
        Err(Strange::Foreign(part))
    } else {
        Ok(meta)
    }
}

impl Trusted {
    /// Encodes it as an item of the list: four fields, then the path, which may contain spaces.
    fn item(&self) -> Vec<u8> {
        let Place { device, inode, database } = self.place;
        let mut item = format!("{device} {inode} {database} {} ", self.store).into_bytes();
        item.extend(self.path.as_os_str().as_bytes());
        item
    }

    fn parse(item: &[u8]) -> Option<Self> {
        let mut fields = item.splitn(5, |&byte| byte == b' ');
        let mut text = || str::from_utf8(fields.next()?).ok();
        let place = Place {
            device: text()?.parse().ok()?,
            inode: text()?.parse().ok()?,
            database: text()?.parse().ok()?,
        };
        let store = StoreId::from_hex(text()?)?;
        let path = Path::new(OsStr::from_bytes(fields.next()?)).to_owned();
        Some(Self { path, place, store })
    }
}

/// Returns the number that was drawn for this user on this computer. It is an error if it cannot be read: with a new number, all
/// files would seem to be on another computer.
pub fn machine(state: &Path) -> io::Result<Option<MachineId>> {
    let items = List::new(state, MACHINE).read()?;
    let Some(item) = items.first() else { return Ok(None) };
    let number = str::from_utf8(item).ok().and_then(|text| u64::from_str_radix(text, 16).ok());
    let why = || {
        let why = format!("{} does not begin with a number", state.join(MACHINE).display());
        io::Error::new(io::ErrorKind::InvalidData, why)
    };
    number.map(|number| Some(MachineId::new(number))).ok_or_else(why)
}

/// Stores a number that was drawn for this user on this computer, unless there is one already, and returns the stored one.
pub fn draw_machine(state: &Path, drawn: MachineId) -> io::Result<MachineId> {
    List::new(state, MACHINE).change(|items| {
        if items.is_empty() {
            items.push(format!("{:016x}", drawn.get()).into_bytes());
        }
    })?;
    Ok(machine(state)?.unwrap_or(drawn))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test reads and writes what it made itself")]
mod tests {
    use super::*;

    fn store_in(folder: &Path) -> PathBuf {
        let store = folder.join(".undertext");
        fs::create_dir(&store).unwrap();
        fs::write(store.join(DATABASE), b"").unwrap();
        close(&store).unwrap();
        store
    }

    fn trusted(path: &Path) -> Trusted {
        let place = examine(path).unwrap();
        Trusted { path: path.to_owned(), place, store: StoreId::new([7; 16]) }
    }

    #[test]
    fn a_store_is_used_once_it_is_trusted_and_until_it_is_not() {
        let home = tempfile::tempdir().unwrap();
        let (store, stores) = (store_in(home.path()), Stores::of(&home.path().join("state")));
        assert_eq!(stores.at(&store), Err(Strange::Unknown));
        stores.trust(&trusted(&store)).unwrap();
        stores.trust(&trusted(&store)).unwrap();
        assert_eq!(stores.at(&store), Ok(trusted(&store)));
        assert_eq!(stores.all().unwrap().len(), 1);
        assert!(stores.distrust(&store).unwrap());
        assert!(!stores.distrust(&store).unwrap());
        assert_eq!(stores.at(&store), Err(Strange::Unknown));
    }

    #[test]
    fn another_store_in_its_place_is_strange() {
        let home = tempfile::tempdir().unwrap();
        let (store, stores) = (store_in(home.path()), Stores::of(&home.path().join("state")));
        stores.trust(&trusted(&store)).unwrap();
        let database = store.join(DATABASE);
        // Both files are there for a moment, so that the inode is not given again.
        fs::write(store.join("fresh"), b"").unwrap();
        fs::rename(store.join("fresh"), &database).unwrap();
        close(&store).unwrap();
        assert_eq!(stores.at(&store), Err(Strange::Replaced));
        stores.trust(&trusted(&store)).unwrap();
        fs::rename(&store, home.path().join("gone")).unwrap();
        store_in(home.path());
        assert_eq!(stores.at(&store), Err(Strange::Replaced));
    }

    #[test]
    fn every_part_is_a_private_file_of_this_user() {
        let home = tempfile::tempdir().unwrap();
        let store = store_in(home.path());
        let transcripts = store.join(TRANSCRIPTS);
        fs::create_dir(&transcripts).unwrap();
        for part in ["config.toml", "transcripts/a.jsonl"].map(PathBuf::from) {
            let path = store.join(&part);
            fs::write(&path, b"").unwrap();
            close(&store).unwrap();
            assert!(examine(&store).is_ok());
            // Settings are a person's, and have what mode they have.
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
            let is_settings = part == Path::new("config.toml");
            assert_eq!(
                examine(&store).err(),
                (!is_settings).then(|| Strange::Brought(part.clone()))
            );
            fs::remove_file(&path).unwrap();
            std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
            assert_eq!(examine(&store), Err(Strange::Link(part.clone())));
            fs::remove_file(&path).unwrap();
            assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
            assert_eq!(examine(&store), Err(Strange::Odd(part.clone())));
            fs::remove_file(&path).unwrap();
            fs::create_dir(&path).unwrap();
            assert_eq!(examine(&store), Err(Strange::Odd(part)));
            fs::remove_dir(&path).unwrap();
        }
        fs::set_permissions(&store, fs::Permissions::from_mode(0o750)).unwrap();
        assert_eq!(examine(&store), Err(Strange::Open));
        fs::set_permissions(&store, fs::Permissions::from_mode(0o700)).unwrap();
        fs::remove_file(store.join(DATABASE)).unwrap();
        assert_eq!(examine(&store), Err(Strange::Empty));
        let link = home.path().join("link");
        std::os::unix::fs::symlink(&store, &link).unwrap();
        assert_eq!(examine(&link), Err(Strange::Link(PathBuf::new())));
    }

    #[test]
    fn what_a_mending_leaves_belongs_to_a_store_if_nobody_else_can_reach_it() {
        let home = tempfile::tempdir().unwrap();
        let store = store_in(home.path());
        // Each name, and whether a folder of that name belongs in a store.
        for (part, belongs) in [
            ("mending", true),
            ("damaged-1", true),
            ("damaged-12", true),
            ("damaged-", false),
            ("damaged-x", false),
            ("damaged", false),
        ] {
            let (path, name) = (store.join(part), PathBuf::from(part));
            fs::create_dir(&path).unwrap();
            fs::write(path.join(DATABASE), b"").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            let open =
                if belongs { Strange::Brought(name.clone()) } else { Strange::Odd(name.clone()) };
            assert_eq!(examine(&store), Err(open));
            close(&store).unwrap();
            assert_eq!(examine(&store).is_ok(), belongs, "{part}");
            fs::remove_dir_all(&path).unwrap();
            fs::write(&path, b"").unwrap();
            assert_eq!(examine(&store).is_ok(), !belongs, "{part}, a file");
            fs::remove_file(&path).unwrap();
            std::os::unix::fs::symlink(home.path(), &path).unwrap();
            assert_eq!(examine(&store), Err(Strange::Link(name)));
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn an_item_keeps_any_path() {
        let store = Trusted {
            path: Path::new(OsStr::from_bytes(b"/a b/\xff\n/.undertext")).to_owned(),
            place: Place { device: 1, inode: u64::MAX, database: 3 },
            store: StoreId::new([0xab; 16]),
        };
        assert_eq!(Trusted::parse(&store.item()), Some(store));
        for broken in [&b""[..], b"1 2 3", b"1 2 3 zz /p", b"x 2 3 4 /p"] {
            assert_eq!(Trusted::parse(broken), None);
        }
    }

    #[test]
    fn a_number_that_cannot_be_read_is_not_drawn_again() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(machine(state.path()).unwrap(), None);
        let one = draw_machine(state.path(), MachineId::new(1)).unwrap();
        assert_eq!(draw_machine(state.path(), MachineId::new(2)).unwrap(), one);
        fs::write(state.path().join(MACHINE), "zzz\n").unwrap();
        for drawn in
            [machine(state.path()).unwrap_err(), draw_machine(state.path(), one).unwrap_err()]
        {
            assert!(drawn.to_string().ends_with("machine does not begin with a number"), "{drawn}");
        }
        assert_eq!(fs::read_to_string(state.path().join(MACHINE)).unwrap(), "zzz\n");
    }
}
