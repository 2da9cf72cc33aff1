//! What is written to a bundle is read from it, and nothing else is.

use std::sync::Arc;

use proptest::{collection::vec, prelude::*};

use super::writer::Writer;
use crate::fixture::Dice;
use undertext::store::{
    BundleError, BundleReader, BundleWriter, Commit, Covered, MemoryStore, Store as _,
};

/// Returns the commits of a session that has a fact of every kind, and then these lines.
fn commits(lines: &[Vec<Vec<u8>>]) -> (Writer, Vec<Commit>) {
    let mut writer = Writer::new(&MemoryStore::new(), "s");
    let mut commits = vec![writer.begin()];
    commits.extend(writer.rest());
    commits.extend(lines.iter().map(|lines| writer.next(lines, |_| {})));
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
    #![proptest_config(ProptestConfig { cases: crate::needs::rounds(16, 64) as u32, ..ProptestConfig::default() })]

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
