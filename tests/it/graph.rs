//! A session file as a graph, without a store: what the formats' tests walk over, and what a view must agree with.

use std::{cell::Cell, collections::BTreeMap, fs, path::Path};

use undertext::{
    json::Raw,
    model::{EntryNumber, Kind, Landmark, Message, NameTag, Parent, PlaceNumber, Record},
    wire::{
        Back, Edit, Edited, Envelope, Failure, Format, Graph, Link, PhysicalLine, Sent, Setting,
        jsonl::Reader,
    },
};

/// One file, read whole; the entries have the numbers that a session of it alone gives them.
pub(crate) struct FileGraph {
    format: &'static dyn Format,
    lines: Vec<Vec<u8>>,
    links: Vec<Link>,
    pub(crate) records: Vec<Record>,
    /// The entry of a line behind another one; the one before is of no account where the line has a name.
    known: BTreeMap<(Option<EntryNumber>, Vec<u8>), EntryNumber>,
    /// The entry at each place, and whether it is glued.
    places: Vec<(EntryNumber, bool)>,
    place_of: BTreeMap<EntryNumber, PlaceNumber>,
    named: BTreeMap<String, EntryNumber>,
    tagged: BTreeMap<NameTag, EntryNumber>,
    n_bytes: u64,
    has_read_lines: Cell<bool>,
}

/// Returns the messages of entries as they are sent; of a history, those that rollbacks left.
pub(crate) fn said_of(
    format: &dyn Format,
    sent: &Sent,
    line: impl Fn(EntryNumber) -> Vec<u8>,
) -> Vec<Message> {
    let mut said = Vec::new();
    for &entry in &sent.entries {
        let own = line(entry);
        let Some(record) = Raw::object(&own) else { continue };
        let edits: Vec<Edit> =
            sent.edits.iter().filter(|edit| edit.0 == entry).map(|edit| edit.1).collect();
        let others: Vec<Option<Vec<u8>>> = edits
            .iter()
            .map(|edit| if let Edit::Content(other) = edit { Some(line(*other)) } else { None })
            .collect();
        let edited = edits.iter().zip(&others).filter_map(|(edit, other)| match edit {
            Edit::Content(_) => Raw::object(other.as_deref()?).map(Edited::Content),
            Edit::Turns(turns) => Some(Edited::Turns(*turns)),
            Edit::Later => Some(Edited::Later),
        });
        let edited: Vec<Edited<'_>> = edited.collect();
        said.extend(match edited[..] {
            [] => format.messages(record),
            _ => format.sent(record, &edited),
        });
    }
    said
}

impl FileGraph {
    /// Reads a file.
    pub(crate) fn open(format: &'static dyn Format, path: &Path) -> Self {
        Self::read(format, &fs::read(path).unwrap())
    }

    /// Reads the bytes of a file.
    pub(crate) fn read(format: &'static dyn Format, bytes: &[u8]) -> Self {
        let mut graph = Self {
            format,
            lines: Vec::new(),
            links: Vec::new(),
            records: Vec::new(),
            known: BTreeMap::new(),
            places: Vec::new(),
            place_of: BTreeMap::new(),
            named: BTreeMap::new(),
            tagged: BTreeMap::new(),
            n_bytes: 0,
            has_read_lines: Cell::new(false),
        };
        graph.append(bytes);
        graph
    }

    fn append(&mut self, bytes: &[u8]) {
        self.n_bytes += bytes.len() as u64;
        let mut reader = Reader::new(bytes);
        while let Some(located) = reader.next_line().unwrap() {
            let line = located.line;
            let is_named = line.shape.as_ref().is_some_and(|shape| shape.name.is_some());
            let before = self.places.last().map(|(entry, _)| *entry);
            let next = EntryNumber::new(self.lines.len() as u64 + 1);
            let key = (before.filter(|_| !is_named), line.bytes.to_vec());
            let entry = *self.known.entry(key).or_insert(next);
            let place = self.places.len() as u64;
            let joins = self.format.traits().line.joins(line.separator);
            self.places.push((entry, line.glued && joins));
            self.place_of.insert(entry, PlaceNumber::new(place));
            if entry == next {
                self.add(line.bytes, before);
            }
            let envelope = Raw::object(line.bytes).map(|record| self.format.envelope(record));
            if let Some(name) = envelope.and_then(|envelope| envelope.name) {
                self.tagged.insert(NameTag::of(&name), entry);
                self.named.insert(name, entry);
            }
        }
    }

    /// Reads one more line.
    pub(crate) fn push(&mut self, line: &[u8]) {
        self.append(&[line, b"\n"].concat());
    }

    fn add(&mut self, line: &[u8], before: Option<EntryNumber>) {
        let n = EntryNumber::new(self.lines.len() as u64 + 1);
        let Envelope { kind, name, parent, time, hint } =
            Raw::object(line).map_or_else(Envelope::opaque, |record| self.format.envelope(record));
        let edge = match &parent {
            Link::Root => Parent::Root,
            Link::Before => before.map_or(Parent::Root, Parent::Entry),
            Link::Named(name) => {
                self.named.get(name).map_or(Parent::Missing, |n| Parent::Entry(*n))
            }
        };
        let name = name.as_deref().map(NameTag::of);
        self.records.push(Record { n, kind, name, parent: edge, time, hint: hint.into() });
        self.links.push(parent);
        self.lines.push(line.to_vec());
    }

    /// Returns an entry's record.
    pub(crate) fn raw(&self, entry: EntryNumber) -> Raw<'_> {
        Raw::object(&self.lines[index(entry)]).unwrap()
    }

    /// Returns what an entry says.
    pub(crate) fn messages(&self, entry: EntryNumber) -> Vec<Message> {
        Raw::object(&self.lines[index(entry)])
            .map(|record| self.format.messages(record))
            .unwrap_or_default()
    }

    /// Returns where the agent would resume; no walk reads a line.
    pub(crate) fn head(&self) -> Option<EntryNumber> {
        self.without_lines(self.format.head(self))
    }

    /// Returns the path to a head.
    pub(crate) fn path(&self, head: EntryNumber) -> Vec<EntryNumber> {
        self.without_lines(self.format.path(self, head, usize::MAX)).entries
    }

    /// Returns the lines that take the agent to an entry and say a note there.
    pub(crate) fn way(
        &self,
        to: Option<EntryNumber>,
        note: Option<&str>,
        setting: &Setting,
    ) -> Option<Vec<Vec<u8>>> {
        let path = to.map(|to| self.path(to)).unwrap_or_default();
        let stood = self.head().map(|head| self.path(head)).unwrap_or_default();
        let back = Back { from: self.head(), to, stood: &stood, path: &path, note };
        let lines = self.format.branch(self, &back, setting).unwrap();
        // To say something again, it must be read.
        self.has_read_lines.set(false);
        lines
    }

    /// Returns what the agent would send.
    pub(crate) fn context(&self) -> Vec<EntryNumber> {
        self.send().entries
    }

    /// Returns the messages that the agent would send; of a history, those that rollbacks left.
    pub(crate) fn sent_messages(&self) -> Vec<Message> {
        said_of(self.format, &self.send(), |entry| self.lines[index(entry)].clone())
    }

    /// Returns what the agent would send; for what a record cuts or answers, lines may have to be read.
    fn send(&self) -> Sent {
        let path = self.head().map(|head| self.path(head)).unwrap_or_default();
        let sent = self.format.context(self, &path).unwrap();
        self.has_read_lines.set(false);
        sent
    }

    /// Returns where the conversation was left.
    pub(crate) fn leaves(&self) -> Vec<EntryNumber> {
        self.without_lines(self.format.leaves(self))
    }

    /// Returns the words of entries, as the model would get them.
    pub(crate) fn words(&self, entries: &[EntryNumber]) -> String {
        let messages = entries.iter().flat_map(|&entry| self.messages(entry));
        messages.map(|message| message.text()).collect::<Vec<_>>().join(" ")
    }

    /// Returns the words that the agent would send.
    pub(crate) fn sent(&self) -> String {
        self.words(&self.context())
    }

    /// Returns the words with which the conversation was left.
    pub(crate) fn left(&self) -> String {
        self.words(&self.leaves())
    }

    fn without_lines<T>(&self, found: Result<T, Failure>) -> T {
        assert!(!self.has_read_lines.get(), "a walk has read a line");
        found.unwrap()
    }
}

fn index(entry: EntryNumber) -> usize {
    entry.index().unwrap()
}

impl Graph for FileGraph {
    fn end(&self) -> PlaceNumber {
        PlaceNumber::new(self.places.len() as u64)
    }

    fn at(&self, place: PlaceNumber) -> Result<Option<EntryNumber>, Failure> {
        Ok(self.places.get(usize::try_from(place.get())?).map(|(entry, _)| *entry))
    }

    fn place(&self, entry: EntryNumber) -> Result<Option<PlaceNumber>, Failure> {
        Ok(self.place_of.get(&entry).copied())
    }

    fn record(&self, entry: EntryNumber) -> Result<Record, Failure> {
        let mut record = self.records[index(entry)].clone();
        let shares = |place: PlaceNumber| {
            let is_mark = |place: PlaceNumber| {
                let before = self.places[usize::try_from(place.get()).unwrap() - 1].0;
                self.format.traits().line == PhysicalLine::OneRecordOrMarked
                    && self.lines[index(before)] == "\u{feff}".as_bytes()
            };
            let is_glued = |place: PlaceNumber| self.is_glued(place).unwrap() && !is_mark(place);
            is_glued(place) || place.next() < self.end() && is_glued(place.next())
        };
        if self.format.traits().line != PhysicalLine::Records
            && self.place_of.get(&entry).copied().is_some_and(shares)
        {
            record.kind = Kind::Opaque;
        }
        Ok(record)
    }

    fn parent(&self, entry: EntryNumber) -> Result<Option<EntryNumber>, Failure> {
        Ok(match (&self.links[index(entry)], self.records[index(entry)].parent) {
            (Link::Named(name), _) => self.named.get(name).copied(),
            (Link::Before, Parent::Entry(before)) => Some(before),
            _ => None,
        })
    }

    fn line(&self, entry: EntryNumber) -> Result<Vec<u8>, Failure> {
        self.has_read_lines.set(true);
        Ok(self.lines[index(entry)].clone())
    }

    fn named(&self, name: NameTag) -> Result<Option<EntryNumber>, Failure> {
        Ok(self.tagged.get(&name).copied())
    }

    fn landmark(
        &self,
        landmark: Landmark,
        before: PlaceNumber,
    ) -> Result<Option<(PlaceNumber, EntryNumber)>, Failure> {
        let placed = before.earlier().zip(&self.places);
        let mut last = None;
        for (place, (entry, _)) in placed {
            if landmark.is(&self.records[index(*entry)]) {
                last = Some((place, *entry));
            }
        }
        Ok(last)
    }

    fn is_glued(&self, place: PlaceNumber) -> Result<bool, Failure> {
        Ok(self.places.get(usize::try_from(place.get())?).is_some_and(|(_, glued)| *glued))
    }

    fn bytes(&self) -> Result<u64, Failure> {
        Ok(self.n_bytes)
    }
}
