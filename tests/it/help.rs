//! All help in one snapshot, `help.snap`: a change of the command line shows as a change of one file.
//!
//! `INSTA_UPDATE=always cargo test --test it help` writes it anew.

use std::fmt::Write as _;

use insta::{Settings, assert_snapshot};

use crate::env::TestEnv;

#[test]
fn every_command_explains_itself() {
    let env = TestEnv::new();
    let mut all = String::new();
    let mut left = vec![vec![]];
    while let Some(command) = left.pop() {
        let help = env.run(&[command.as_slice(), &["--help".to_owned()]].concat()).success().stdout;
        for name in subcommands(&help).into_iter().rev() {
            left.push([command.as_slice(), &[name]].concat());
        }
        let title = [&["undertext".to_owned()], command.as_slice()].concat().join(" ");
        writeln!(all, "# {title}\n\n{help}").unwrap();
    }
    let mut settings = Settings::clone_current();
    settings.set_snapshot_path(".");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| assert_snapshot!("help", all));
}

/// Returns the names that a help text lists under "Commands:".
fn subcommands(help: &str) -> Vec<String> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    listed
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .collect()
}
