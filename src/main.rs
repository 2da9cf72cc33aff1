//! The command line: `cli` asks and answers, `render` lays out what is shown.

mod cli;
mod render;

fn main() -> std::process::ExitCode {
    cli::main()
}
