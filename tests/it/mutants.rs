//! The mutants of tests/mutants: each patch fits the source that it changes, and names tests, so that whoever changes the one
//! changes the other. Whether these tests fail is what tests/mutants/run says.

use std::fs;
use std::path::Path;

/// The root of the project.
const ROOT: &str = env!("CARGO_MANIFEST_DIR");

#[test]
fn each_mutant_fits_what_it_changes() {
    let files = fs::read_dir(Path::new(ROOT).join("tests/mutants")).unwrap();
    let patches: Vec<_> = files
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "patch"))
        .collect();
    assert!(!patches.is_empty(), "no mutants");
    let astray: Vec<_> = patches
        .iter()
        .filter(|path| !fits(&fs::read_to_string(path).unwrap()))
        .map(|path| path.display().to_string())
        .collect();
    assert!(astray.is_empty(), "these patches do not fit their sources:\n{}", astray.join("\n"));
}

/// Returns whether a patch names tests that must fail, and the lines that it changes are in its file once.
fn fits(patch: &str) -> bool {
    let path = patch.lines().find_map(|line| line.strip_prefix("+++ b/"));
    let (_, hunk) = patch.split_once("\n@@ ").unwrap_or_default();
    let before: String = hunk
        .split_inclusive('\n')
        .skip(1)
        .filter_map(|line| line.strip_prefix(' ').or_else(|| line.strip_prefix('-')))
        .collect();
    let source = path.and_then(|path| fs::read_to_string(Path::new(ROOT).join(path)).ok());
    patch.contains("\nmust fail: ")
        && !before.is_empty()
        && source.is_some_and(|source| source.matches(&before).count() == 1)
}
