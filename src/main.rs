//! The command line: `cli` parses and runs commands, `render` formats output, `browse` has the interactive screens,
//! `page` the pages of HTML, `serve` the server that shows them.

#[cfg(feature = "browse")]
mod browse;
mod cli;
mod page;
mod render;
#[cfg(feature = "serve")]
mod serve;

fn main() -> std::process::ExitCode {
    cli::main()
}
