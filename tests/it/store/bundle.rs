//! What is written to a bundle is read from it, and nothing else is.

use std::{fs, path::Path, sync::Arc};

use proptest::{collection::vec, prelude::*};

use super::writer::{Writer, given, place};
use crate::fixture::{Dice, damage, number, open};
use undertext::{
    model::{
        Checkpoint, CoveredFile, CoveredRuns, Digest, File, Named, Origin, Place, Run, Sidecar,
        Tombstone,
    },
    report::Fate,
    store::{BundleError, BundleReader, BundleWriter, Commit, Covered, MemoryStore},
    verbs,
};

/// Returns the commits of a session with these lines, out of which a line, a file and an unfinished line were taken.
fn commits(lines: &[Vec<Vec<u8>>]) -> (Writer, Vec<Commit>) {
    let mut writer = Writer::new(&MemoryStore::new(), "s");
    let mut first = writer.begin();
    let mut commits: Vec<Commit> = lines.iter().map(|lines| writer.next(lines, |_| {})).collect();
    let (bytes, end) = (b"a long secret".to_vec(), writer.state.ends[&number(1)].clone());
    let torn =
        Run { start: end.end(), count: 0, first: number(0), tail: b"{\"torn".to_vec(), ..end };
    let mut kept = writer.next(&[], |brought| {
        let (digest, size) = (Digest::of_bytes(&bytes), bytes.len() as u64);
        brought.facts.sidecars.push(Sidecar { file: number(1), digest, size });
        brought.kept.push(bytes);
        brought.bulk.runs.push(torn);
        brought.bulk.checkpoints.push(Checkpoint {
            n: number(0),
            place: place(1),
            before: Some(number(1)),
            own: Some("x".into()),
            note: Some(given("here")),
        });
        brought.bulk.origins.push(Origin { entry: number(2), origin: number(1), cut: None });
    });
    let came = first.lines[0].id();
    first.lines[0].cover(br#"{"uuid":"*"}"#.to_vec());
    kept.kept[0] = b"a long ******".to_vec();
    kept.bulk.runs[0].tail.clear();
    let covering = writer.next(&[], |brought| {
        let (line, bytes, n) = (&first.lines[0], &kept.kept[0], kept.operation.n);
        brought.facts.tombstones.push(Tombstone {
            entry: number(1),
            size: line.bytes().len() as u64,
            line: Some(came),
            covered: Some(line.id()),
            rule: None,
        });
        let (digest, size) = (Digest::of_bytes(bytes), bytes.len() as u64);
        brought.facts.covered_files.push(CoveredFile {
            operation: n,
            at: 0,
            digest,
            size,
            rule: None,
        });
        let digest = Named::of(&kept.bulk.runs).unwrap().digest;
        brought.facts.covered_runs.push(CoveredRuns { operation: n, digest, lines: Vec::new() });
    });
    commits.insert(0, first);
    commits.extend([kept, covering]);
    (writer, commits)
}

fn written(writer: &Writer, commits: &[Commit]) -> Vec<u8> {
    let mut bundle = BundleWriter::new(Vec::new(), writer.store).unwrap();
    bundle.session(&writer.name, &writer.state).unwrap();
    for commit in commits {
        bundle.operation(&commit.operation, &commit.bulk).unwrap();
        commit.lines.iter().for_each(|line| bundle.line(line.bytes()).unwrap());
        commit.kept.iter().for_each(|kept| bundle.kept(kept).unwrap());
    }
    bundle.finish().unwrap()
}

fn read(bundle: &[u8]) -> Result<Vec<Commit>, BundleError> {
    let mut reader = BundleReader::new(bundle)?;
    let mut commits = Vec::new();
    while let Some(mut session) = reader.session()? {
        while let Some(commit) = reader.commit(&mut session)? {
            commits.push(commit);
        }
    }
    Ok(commits)
}

/// Returns a commit without what a store derives.
fn bare(commit: &Commit) -> Commit {
    let (records, twins, ties) = (Vec::new(), Vec::new(), Vec::new());
    let covered = Arc::<Covered>::default();
    Commit { records, twins, ties, card: None, covered, ..commit.clone() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::needs::rounds(16, 64), ..ProptestConfig::default() })]

    #[test]
    fn a_bundle_gives_back_the_commits_that_were_written(
        lines in vec(vec("[ -~]{1,300}|\\{\"text\":\"[a-z]{250,400}\"\\}", 0..6), 0..5)
    ) {
        let lines: Vec<Vec<Vec<u8>>> = lines
            .into_iter()
            .map(|lines| lines.into_iter().map(String::into_bytes).collect())
            .collect();
        let (writer, commits) = commits(&lines);
        let found = read(&written(&writer, &commits)).unwrap();
        prop_assert_eq!(
            found.iter().map(bare).collect::<Vec<_>>(),
            commits.iter().map(bare).collect::<Vec<_>>()
        );
    }
}

#[test]
fn a_bundle_that_is_cut_anywhere_is_short_and_one_with_a_flipped_bit_says_nothing_else() {
    let long = vec![vec![format!("{{\"text\":\"{}\"}}", "x".repeat(3 << 20)).into_bytes()]];
    let (writer, commits) = commits(&long);
    let whole = written(&writer, &commits);
    let said: Vec<Commit> = commits.iter().map(bare).collect();
    for length in 0..whole.len() {
        let cut = read(&whole[..length]);
        assert!(matches!(cut, Err(BundleError::Short | BundleError::Foreign)), "{length}: {cut:?}");
    }
    let mut random = Dice(3);
    for _ in 0..200 {
        let at = usize::try_from(random.below(whole.len() as u64)).unwrap();
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << random.below(8);
        if let Ok(found) = read(&bytes) {
            assert_eq!(found.iter().map(bare).collect::<Vec<_>>(), said, "{at}");
        }
    }
    assert!(matches!(read(&[&whole[..], b"x"].concat()), Err(BundleError::Damaged(_))));
}

/// Writes a bundle of a session with these commits next to an archive, and imports it.
fn imported(root: &Path, writer: &Writer, commits: &[Commit]) -> (Fate, Option<String>) {
    let path = root.with_extension("bundle");
    fs::write(&path, written(writer, commits)).unwrap();
    let mut fates = Vec::new();
    let archive = open(root, 1);
    verbs::import_bundle(&archive, &path, &mut |brought| fates.push((brought.state, brought.why)))
        .unwrap();
    assert_eq!(damage(&archive), [""; 0]);
    let [fate] = <[_; 1]>::try_from(fates).unwrap();
    fate
}

#[test]
fn a_file_that_is_no_transcript_of_its_own_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("store");
    for path in [
        "x.jsonl",
        "store.db",
        "/etc/passwd",
        "transcripts",
        "transcripts/",
        "transcripts/..",
        "transcripts/../../x",
        "transcripts/a/b",
        "transcripts/.x",
        "../transcripts/x",
    ] {
        let mut writer = Writer::new(&MemoryStore::new(), "s");
        let commit = writer.next(&[], |brought| {
            let place = Place::Store(path.into());
            brought.facts.files.push(File { n: number(1), place });
        });
        let (fate, why) = imported(&root, &writer, &[commit]);
        assert_eq!(fate, Fate::Refused, "{path}");
        assert!(why.unwrap().contains("would have the file"), "{path}");
    }
    let mut one = Writer::new(&MemoryStore::new(), "one");
    let mut other = Writer::new(&MemoryStore::new(), "other");
    let (first, second) = (one.begin(), other.begin());
    assert_eq!(imported(&root, &one, &[first]).0, Fate::New);
    assert_eq!(imported(&root, &other, &[second]).0, Fate::Refused);
    assert_eq!(open(&root, 2).every().unwrap().len(), 1);
}
