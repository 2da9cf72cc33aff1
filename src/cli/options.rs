//! The options that all commands share, and the help page about them. The help of a command omits them.

use std::path::PathBuf;

use clap::{Args as _, ColorChoice};

use super::{NAME, common};

#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Global options")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Global {
    /// Use this store; default: $UNDERTEXT_STORE, the nearest .undertext above that you trust, or your own
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) store: Option<PathBuf>,

    /// Print JSON Lines: one object a line, tagged with its "type"
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// When to use colour; auto is on a terminal unless $NO_COLOR is set
    #[arg(long, global = true, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    pub(crate) color: ColorChoice,

    /// Do not send long output through $UNDERTEXT_PAGER or $PAGER
    #[arg(long, global = true)]
    pub(crate) no_pager: bool,

    /// Do not import the agents' new sessions first
    #[arg(long, global = true)]
    pub(crate) no_import: bool,

    /// Wait this many seconds for another program that changes the store
    #[arg(long, global = true, value_name = "SECONDS", default_value_t = 30, value_parser = common::number::<u64>, allow_negative_numbers = true)]
    pub(crate) wait: u64,

    /// Print only data, warnings and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}

/// The ids of the shared options.
pub(crate) const SHARED: [&str; 7] =
    ["store", "json", "color", "no_pager", "no_import", "wait", "quiet"];

/// The rest of the page: exit codes and JSON.
const REST: &str = "
Exit codes:
  0  done, or yes
  1  no: nothing found, something damaged, nobody agreed
  2  wrong use; nothing was done
  3  failed
  4  the store was made by a newer undertext
  5  the change was made, but the answer could not be written

With --json, ids are whole, times are RFC 3339 in UTC, and unknown values are null.
Keys may be added but are never removed. Errors are objects on stderr.
docs/json.md has every shape.
";

/// Formats the page about the shared options, at most `width` columns wide.
pub(crate) fn page(width: usize) -> String {
    let page = Global::augment_args(clap::Command::new(NAME));
    let page = page.disable_help_flag(true).term_width(width);
    let text = page.help_template("{all-args}").render_help().to_string();
    format!("{}\n{REST}", text.trim_end())
}
