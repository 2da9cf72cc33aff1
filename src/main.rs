//! The command line: `cli` asks and answers, `render` lays out what is shown.

#![expect(dead_code, reason = "the commands that use the rest of the scaffolding come next")]

mod cli;
mod render;

fn main() -> std::process::ExitCode {
    cli::main()
}
