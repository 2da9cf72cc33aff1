//! The command line: `cli` asks and answers, `render` lays out what is shown, `browse` has the screens that one moves in.

#[cfg(feature = "browse")]
mod browse;
mod cli;
mod render;

fn main() -> std::process::ExitCode {
    cli::main()
}
