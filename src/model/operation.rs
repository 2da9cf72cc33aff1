//! Operations: the canonical record of one command, and the hash chain.
//!
//! ```text
//! record    1 when   2 what   3 the number of its first entry   4 entries   5 runs   6 checkpoints   7 origins   8 facts
//! hash      BLAKE3( hash before, store, session's format and id, number, record )
//! ```
//!
//! See [`super::tagged`] for the encoding. The `tagged!` lines of this file and of `fact` define the field numbers, and `command`
//! defines the command numbers; they are frozen with the first release.
//!
//! Invariant: a fact uses space only if it is present, so a new kind of fact does not change the hash of an operation without it.

use super::{
    Bulk, Command, Digest, EntryNumber, Facts, Malformed, Named, OperationId, OperationNumber, Run,
    SessionName, StoreId, Tagged, Text, Timestamp, Words, tagged::tagged,
};

/// One command that changed a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operation {
    /// Its number in the session.
    pub n: OperationNumber,
    /// When it was executed.
    pub at: Timestamp,
    /// Its command.
    pub command: Command,
    /// The number of the first entry that it added, or would have added.
    pub first: EntryNumber,
    /// The entries that it added.
    pub entries: Option<Named>,
    /// The runs that it added.
    pub runs: Option<Named>,
    /// The checkpoints that it added.
    pub checkpoints: Option<Named>,
    /// The origins that it added.
    pub origins: Option<Named>,
    /// The small facts.
    pub facts: Facts,
    /// The numbers of fields, kinds and commands that a newer program wrote and this program does not know.
    pub unknown: Vec<u64>,
    /// The encoded record, as stored and hashed.
    pub record: Vec<u8>,
    /// Its hash.
    pub hash: OperationId,
}

tagged!(Operation {
    1: at,
    2: command,
    3: first,
    4: entries,
    5: runs,
    6: checkpoints,
    7: origins,
    8: facts,
});

impl Operation {
    /// Makes the record and the hash of an operation that says all but what its bulk is.
    #[must_use]
    pub fn seal(
        self,
        before: Option<OperationId>,
        store: StoreId,
        session: &SessionName,
        bulk: &Bulk,
    ) -> Self {
        let mut operation = Self {
            entries: Named::entries(&bulk.entries),
            runs: Named::of(&bulk.runs),
            checkpoints: Named::of(&bulk.checkpoints),
            origins: Named::of(&bulk.origins),
            ..self
        };
        operation.record = operation.to_bytes();
        operation.hash = operation.hash_after(before, store, session);
        operation
    }

    /// Decodes a stored operation, and fills in the words of people.
    pub fn open(
        n: OperationNumber,
        record: Vec<u8>,
        hash: OperationId,
        words: &[Words],
    ) -> Result<Self, Malformed> {
        let mut unknown = Vec::new();
        let mut operation: Self = Tagged::read(&record, &mut unknown)?;
        if operation.command == Command::default() {
            return Err(Malformed("it has no command"));
        }
        if !words.is_empty() {
            operation.texts(&mut |text| text.fill(words));
        }
        Ok(Self { n, unknown, record, hash, ..operation })
    }

    /// Returns the hash that the record must have.
    pub fn hash_after(
        &self,
        before: Option<OperationId>,
        store: StoreId,
        session: &SessionName,
    ) -> OperationId {
        OperationId::of(before, store, session, self.n, &self.record)
    }

    /// Returns true if the record names exactly these facts. If unfinished lines were removed from the runs, the digest of the
    /// runs may be `covered` instead.
    pub fn names(&self, bulk: &Bulk, covered: Option<Digest>) -> bool {
        self.entries == Named::entries(&bulk.entries)
            && self.names_runs(&bulk.runs, covered)
            && self.checkpoints == Named::of(&bulk.checkpoints)
            && self.origins == Named::of(&bulk.origins)
    }

    /// Returns true if the record names exactly these runs.
    pub fn names_runs(&self, runs: &[Run], covered: Option<Digest>) -> bool {
        let found = Named::of(runs);
        let as_covered = self.runs.zip(covered).map(|(of, digest)| Named { digest, ..of });
        found == self.runs || as_covered.is_some() && found == as_covered
    }

    /// Returns how many entries it added.
    pub fn count(&self) -> u64 {
        self.entries.map_or(0, |entries| entries.count)
    }

    /// Returns the numbers of the entries that it added.
    pub fn added(&self) -> std::ops::Range<EntryNumber> {
        self.first..self.first.plus(self.count())
    }

    /// Returns the operation that this one undoes.
    pub fn undoes(&self) -> Option<OperationNumber> {
        self.command.undoes()
    }

    /// Returns the words that people wrote in it, including the notes of its checkpoints.
    pub fn words(&self, bulk: &Bulk) -> Vec<Words> {
        let mut all: Vec<Words> = Vec::new();
        let mut add = |text: &mut Text| {
            if let Some(words) = text.words().filter(|words| !all.contains(words)) {
                all.push(words.clone());
            }
        };
        self.clone().texts(&mut add);
        for note in bulk.checkpoints.iter().filter_map(|checkpoint| checkpoint.note.as_ref()) {
            add(&mut note.clone());
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        Base, Checkpoint, CheckpointNumber, Container, CutOff, Cutting, Digest, Entry, EntryId,
        File, FileNumber, Gaps, Generation, GenerationNumber, LineId, MachineId, Move, Origin,
        Place, Position, Request, Rotation, Run, Running, Sidecar, Step, Tombstone,
        tagged::put_field,
    };

    const STORE: StoreId = StoreId::new([0xab; 16]);

    fn session() -> SessionName {
        SessionName { format: "native".into(), id: "s".into() }
    }

    /// Returns words that a person gave, under a salt of their own.
    fn given(salt: u8, text: &str) -> Text {
        Text::Given(Words { salt: [salt; 16], text: text.into() })
    }

    fn place(head: u64) -> Position {
        Position {
            generation: GenerationNumber::FIRST,
            head: Some(EntryNumber::new(head)),
            horizon: head,
        }
    }

    fn run() -> Run {
        Run {
            generation: GenerationNumber::FIRST,
            start: 2,
            first: EntryNumber::new(3),
            count: 1,
            gaps: Gaps(vec![(1, b"\r\n".to_vec())]),
            bytes: 30,
            running: Running::EMPTY.then(b"\r\n", EntryId::new([3; 32])),
            tail: b"\n".to_vec(),
        }
    }

    fn append() -> Operation {
        let bulk = Bulk {
            entries: vec![Entry {
                n: EntryNumber::new(3),
                id: EntryId::of(None, LineId::of(b"{}")),
                link: None,
            }],
            runs: vec![run()],
            ..Bulk::default()
        };
        let (from, to) = (Some(place(2)), Some(place(3)));
        let branch = Text::Own("main".into());
        let facts =
            Facts { moves: vec![Move { branch: branch.clone(), from, to }], ..Facts::default() };
        let command = Command::Append { branch, limit: None, events: None };
        let before = Some(OperationId::new([9; 32]));
        let operation = Operation {
            n: OperationNumber::new(2),
            at: Timestamp(1_700_000_000_000),
            first: EntryNumber::new(3),
            command,
            facts,
            ..Operation::default()
        };
        operation.seal(before, STORE, &session(), &bulk)
    }

    /// Returns a fact of every kind that is in a record.
    fn every_fact() -> Facts {
        let machine = MachineId::new(300);
        let digest = Digest::of_bytes(b"kept");
        let places = [
            Place::Store(b"transcripts/s.jsonl".to_vec()),
            Place::Home(machine, b".agent/s.jsonl".to_vec()),
            Place::Path(machine, b"/\xff".to_vec()),
        ];
        Facts {
            files: FileNumber::FIRST
                .onwards()
                .zip(places)
                .map(|(n, place)| File { n, place })
                .collect(),
            generations: vec![
                Generation { n: GenerationNumber::FIRST, file: Some(FileNumber::FIRST) },
                Generation { n: GenerationNumber::new(2), file: None },
            ],
            moves: vec![
                Move { branch: Text::Own("main".into()), from: None, to: Some(place(2)) },
                Move {
                    branch: given(1, "mine"),
                    from: Some(Position { head: None, ..place(0) }),
                    to: None,
                },
            ],
            current: Some(Step {
                from: Some(Text::Own("main".into())),
                to: Some(given(1, "mine")),
            }),
            live: Some(Step { from: None, to: Some(FileNumber::FIRST) }),
            hidden: Some(Step { from: Some(1), to: None }),
            rotations: vec![Rotation {
                file: FileNumber::FIRST,
                aside: b"s.jsonl.undertext-1".to_vec(),
                old: GenerationNumber::FIRST,
                new: GenerationNumber::new(2),
                inode: u64::MAX,
                length: 1 << 40,
            }],
            containers: vec![Container { generation: GenerationNumber::new(2), digest, size: 4 }],
            sidecars: vec![Sidecar { file: FileNumber::new(2), digest, size: 4 }],
            gone: vec![FileNumber::new(3), FileNumber::new(2)],
            bases: vec![Base {
                generation: GenerationNumber::new(2),
                format: "codex".into(),
                id: "other".into(),
                entry: Some(EntryId::new([7; 32])),
            }],
            request: Some(Request {
                verb: "revert".into(),
                checkpoint: Some(CheckpointNumber::FIRST),
                entry: Some(EntryId::new([8; 32])),
                branch: Some(Text::Own("main.1".into())),
                operation: Some(OperationNumber::FIRST),
                note: Some(given(2, "not so")),
                options: vec![Text::Own("--keep".into())],
                machine: Some(machine),
            }),
            waiting: Some(Step { from: Some(OperationNumber::FIRST), to: None }),
            tombstones: vec![Tombstone {
                entry: EntryNumber::new(2),
                size: 12,
                // These came later, and what was pinned stays.
                ..Tombstone::default()
            }],
            // It came later, and what was pinned stays.
            title: None,
            covered_files: Vec::new(),
            folder: None,
            covered_runs: Vec::new(),
        }
    }

    /// Returns an operation with a fact of every kind.
    fn everything() -> (Operation, Bulk) {
        let cutting = Cutting {
            tool: Some("read".into()),
            tokens_before: 900,
            tokens_after: 100,
            texts: vec![CutOff { call: "c1".into(), text: 0, whole: 3600, kept: 400, suffix: 20 }],
        };
        let bulk = Bulk {
            entries: vec![
                Entry {
                    n: EntryNumber::new(3),
                    id: EntryId::of(None, LineId::of(b"{}")),
                    link: None,
                },
                Entry {
                    n: EntryNumber::new(4),
                    id: EntryId::new([4; 32]),
                    link: Some(EntryNumber::new(3)),
                },
            ],
            runs: vec![run()],
            checkpoints: vec![Checkpoint {
                n: CheckpointNumber::FIRST,
                place: place(1),
                before: Some(EntryNumber::new(2)),
                own: Some("turn-1".into()),
                note: Some(given(3, "here it was whole")),
            }],
            origins: vec![Origin {
                entry: EntryNumber::new(4),
                origin: EntryNumber::new(2),
                cut: Some(cutting),
            }],
        };
        let command = Command::Compact {
            branch: given(1, "mine"),
            trigger: Some("auto".into()),
            pre_tokens: 1000,
            post_tokens: Some(0),
            window: 2000,
            summarised: 3,
            kept: 1,
            model: Some("m".into()),
            duration_ms: Some(5),
            fallback: Some(Text::Own("no model".into())),
            left: Some(Text::Own("main.1".into())),
            events: None,
            files: Some(Text::Own("[]".into())),
            losses: None,
        };
        let operation = Operation {
            n: OperationNumber::FIRST,
            at: Timestamp(-1),
            first: EntryNumber::new(3),
            command,
            facts: every_fact(),
            ..Operation::default()
        };
        (operation.seal(None, STORE, &session(), &bulk), bulk)
    }

    /// Returns bytes as rows of hexadecimal digits.
    fn hex(bytes: &[u8]) -> String {
        let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        let digits: Vec<char> = digits.filter_map(|n| char::from_digit(n.into(), 16)).collect();
        digits.chunks(80).map(String::from_iter).collect::<Vec<_>>().join("\n")
    }

    /// Pins exact output, so that no later change of code can change a record or a hash.
    #[test]
    fn an_append_is_pinned_for_ever() {
        let append = append();
        insta::assert_snapshot!(format!("{}\n{}", hex(&append.record), append.hash), @r"
        010680a0abfef962020a0208010601046d61696e030103042501010102206c5bcf21c09a31019df3
        1b16b88061ea883d1e2efe0cd4d05ae9f8779ae7f06605250101010220dcc2b0a64968b324458850
        bee338264433c2f2fba9982edf3dc9c27ada014df90820031e010601046d61696e02090101010201
        020301020309010101020103030103
        30439f6203345cba3297a21ff4d0a3216aa954f9d26a1f83ea1d5553cf4f1699
        ");
    }

    #[test]
    fn a_fact_of_every_kind_is_pinned_for_ever() {
        let (everything, _) = everything();
        insta::assert_snapshot!(format!("{}\n{}", hex(&everything.record), everything.hash), @r"
        010101025f095d012202209f01b1b4006e006045df88d0af4f7403ed11d099d13b1ade5bb9acbc34
        34eb5302046175746f0302e8070401000502d00f06010307010108016d0901050a0a01086e6f206d
        6f64656c0b0801066d61696e2e310d0401025b5d030103042501010202203a6063962fafaea780ac
        e58160af867d34c97a46923e42aed2e6bbe42f5b408305250101010220dcc2b0a64968b324458850
        bee338264433c2f2fba9982edf3dc9c27ada014df906250101010220658f6d4b606a45202dfa107a
        6cd685d6183a787d51cadd7a03635d6ce351515607250101010220a4f589b84b6e21945b5b681a4d
        58b88e2366728ef27932f10e4a35bb1d30ef95088f04011a010101021503137472616e7363726970
        74732f732e6a736f6e6c011c01010202170101010202ac02030e2e6167656e742f732e6a736f6e6c
        0110010103020b0101020202ac0203022fff020601010102010102030101020313010601046d6169
        6e03090101010201020301020329012202209f01b1b4006e006045df88d0af4f7403ed11d099d13b
        1ade5bb9acbc3434eb530203010101042c010601046d61696e022202209f01b1b4006e006045df88
        d0af4f7403ed11d099d13b1ade5bb9acbc3434eb530503020101060301010107320101010213732e
        6a736f6e6c2e756e646572746578742d31030101040102050affffffffffffffffff010606808080
        808020082801010202205e6f1a1a18575bd6705c9f36b25b50795525dc34e37f11bcbf0ff4bb1ff6
        90e5030104092801010202205e6f1a1a18575bd6705c9f36b25b50795525dc34e37f11bcbf0ff4bb
        1ff690e50301040a01030a01020b330101020205636f64657803056f746865720420070707070707
        07070707070707070707070707070707070707070707070707070c6c010672657665727402010003
        200808080808080808080808080808080808080808080808080808080808080808040801066d6169
        6e2e310501010622022013b13742fe69d3fd0757663568904902e8ecfb1b4cd7a5f8753857acd952
        e05f070801062d2d6b6565700802ac020d030101010e0601010202010c
        dd028847423060435f141774c64e374b77d57d0bb0f5972cc7c6ffd6b2cf9c18
        ");
    }

    #[test]
    fn a_hash_covers_the_store_the_session_the_number_and_what_was_before() {
        let append = append();
        let other = SessionName { format: "nativ".into(), id: "es".into() };
        let before = Some(OperationId::new([9; 32]));
        let next = Operation { n: OperationNumber::new(3), ..append.clone() };
        assert_eq!(append.hash_after(before, STORE, &session()), append.hash);
        for hash in [
            append.hash_after(None, STORE, &session()),
            append.hash_after(before, StoreId::default(), &session()),
            append.hash_after(before, STORE, &other),
            next.hash_after(before, STORE, &session()),
        ] {
            assert_ne!(hash, append.hash);
        }
    }

    #[test]
    fn what_is_read_is_what_was_sealed() {
        let (sealed, bulk) = everything();
        let words = sealed.words(&bulk);
        let texts: Vec<&str> = words.iter().map(|words| words.text.as_str()).collect();
        assert_eq!(texts, ["mine", "not so", "here it was whole"]);
        let open = |words| Operation::open(sealed.n, sealed.record.clone(), sealed.hash, words);
        assert_eq!(open(&words).unwrap(), sealed);
        // Without the words it is the same operation, but for them.
        let bare = open(&[]).unwrap();
        assert_ne!(bare, sealed);
        assert_eq!(bare.to_bytes(), sealed.record);
        assert_eq!(bare.hash_after(None, STORE, &session()), sealed.hash);
        let Command::Compact { branch, .. } = bare.command else { panic!() };
        assert!(branch.to_text().starts_with("removed-"), "{branch:?}");
    }

    #[test]
    fn words_of_persons_are_nowhere_in_a_record() {
        let (sealed, bulk) = everything();
        for words in sealed.words(&bulk) {
            let text = words.text.as_bytes();
            assert!(!sealed.record.windows(text.len()).any(|part| part == text), "{words:?}");
        }
    }

    #[test]
    fn a_record_of_an_import_of_a_million_entries_is_short() {
        let named = |count| Some(Named { count, digest: Digest::of_bytes(b"all of them") });
        let operation = Operation {
            at: Timestamp(1_700_000_000_000),
            command: Command::Import { files: 1, part: false },
            first: EntryNumber::FIRST,
            entries: named(1_000_000),
            runs: named(3),
            checkpoints: named(50_000),
            origins: named(20_000),
            facts: Facts {
                files: vec![File {
                    n: FileNumber::FIRST,
                    place: Place::Home(MachineId::new(u64::MAX), vec![b'x'; 300]),
                }],
                generations: vec![Generation {
                    n: GenerationNumber::FIRST,
                    file: Some(FileNumber::FIRST),
                }],
                moves: vec![Move {
                    branch: Text::Own("main".into()),
                    from: None,
                    to: Some(place(1_000_000)),
                }],
                current: Some(Step { from: None, to: Some(Text::Own("main".into())) }),
                live: Some(Step { from: None, to: Some(FileNumber::FIRST) }),
                ..Facts::default()
            },
            ..Operation::default()
        };
        assert!(operation.to_bytes().len() < 1024, "{}", operation.to_bytes().len());
    }

    #[test]
    fn a_kind_that_does_not_occur_takes_no_room() {
        let command = Command::Clear { left: None };
        let (n, first) = (OperationNumber::FIRST, EntryNumber::FIRST);
        let clear = Operation { n, command, first, ..Operation::default() };
        let clear = clear.seal(None, STORE, &session(), &Bulk::default());
        // The command, which has no fields, and the number of the first entry.
        assert_eq!(clear.record, [2, 2, 7, 0, 3, 1, 1]);
    }

    /// Returns a record in which `field` comes after its own fields.
    fn with(record: &[u8], field: (u64, &[u8])) -> Vec<u8> {
        let mut record = record.to_vec();
        put_field(field.0, &field.1.to_vec(), &mut record);
        record
    }

    #[test]
    fn what_a_newer_program_wrote_is_told_and_kept() {
        let (sealed, _) = everything();
        let command = |fields: &[u8]| with(&[1, 1, 2], (2, fields));
        let small = |facts: &[u8]| with(&command(&[7, 0]), (8, facts));
        let cases: [(&str, Vec<u8>, &[u64]); 9] = [
            ("a field of the operation", with(&sealed.record, (9, b"new")), &[9]),
            ("two fields", with(&with(&sealed.record, (9, b"")), (300, b"x")), &[9, 300]),
            ("a command", command(&[99, 3, 1, 1, 5]), &[99]),
            ("a field of a command", command(&[7, 3, 40, 1, 5]), &[40]),
            ("a kind of fact, and no other", small(&[99, 1, 1]), &[99]),
            ("a field of a fact, and no other", small(&[3, 3, 9, 1, 1]), &[9]),
            // The branch of a move, and the place of a file.
            ("a kind of text", small(&[3, 5, 1, 3, 3, 1, 1]), &[3]),
            ("a kind of place", small(&[1, 5, 2, 3, 1, 1, 3]), &[3]),
            ("a field of a request", small(&[12, 3, 99, 1, 1]), &[99]),
        ];
        for (what, record, unknown) in cases {
            let hash = OperationId::new([1; 32]);
            let opened = Operation::open(OperationNumber::new(4), record.clone(), hash, &[]);
            let opened = opened.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(opened.unknown, unknown, "{what}");
            assert_eq!(opened.record, record, "{what}");
            assert_eq!((opened.n, opened.hash), (OperationNumber::new(4), hash), "{what}");
        }
        // The known fields next to it are read.
        let opened = Operation::open(
            OperationNumber::FIRST,
            with(&sealed.record, (9, b"new")),
            sealed.hash,
            &[],
        );
        assert_eq!(opened.unwrap().facts.files, sealed.facts.files);
        let opened =
            Operation::open(OperationNumber::FIRST, command(&[99, 0]), sealed.hash, &[]).unwrap();
        assert_eq!((opened.command.as_str(), opened.at), ("unknown", Timestamp(1)));
    }

    #[test]
    fn what_nobody_wrote_is_refused() {
        let (sealed, _) = everything();
        let bad: [(&str, Vec<u8>); 8] = [
            ("nothing", Vec::new()),
            ("no command", vec![1, 1, 2]),
            ("a command of no number", vec![2, 2, 0, 0]),
            ("a record cut short", sealed.record[..sealed.record.len() - 1].to_vec()),
            ("a field twice", [&sealed.record[..], &sealed.record[..]].concat()),
            ("a field behind its place", [&sealed.record[..], &[1, 1, 2]].concat()),
            ("a field that holds nothing", vec![2, 2, 7, 0, 3, 1, 0]),
            ("a number in more bytes than it needs", vec![2, 2, 7, 0, 3, 2, 0x81, 0]),
        ];
        for (what, record) in bad {
            assert!(
                Operation::open(OperationNumber::FIRST, record, sealed.hash, &[]).is_err(),
                "{what}"
            );
        }
    }
}
