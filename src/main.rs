//! The command line: `cli` parses and runs commands, `render` formats output, `browse` has the interactive screens.

#[cfg(feature = "browse")]
mod browse;
mod cli;
mod render;

fn main() -> std::process::ExitCode {
    cli::main()
}
